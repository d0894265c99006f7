mod documents;
mod gateways;
