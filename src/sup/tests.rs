mod documents;
mod model;
