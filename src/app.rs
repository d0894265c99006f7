//! The wiring: what the subcommands do, with every room in its place.

mod demo;
mod error;
mod feeds;
mod gateway;
mod keep;
mod operator;
mod options;
mod replay;
mod serve;
mod sup;
mod token;
mod translate;

pub use demo::demo;
pub use error::AppError;
pub use gateway::{Gateway, Outside};
pub use options::{DemoOptions, ReplayOptions, ServeOptions, Settings, SupOptions};
pub use replay::replay;
pub use serve::serve;
pub use sup::sup;
