mod documents;
mod gateways;
mod model;
