//! The wiring: what the subcommands do, with every module in its place.

mod compact;
mod demo;
mod disk;
mod error;
mod export;
mod feeds;
mod followers;
mod gateway;
mod import;
mod maintenance;
mod names;
mod options;
mod origins;
mod outgoing;
mod progress;
mod pull;
mod reincarnate;
mod replay;
mod running;
mod serve;
mod service;
pub mod startup;
mod sup;
mod titles;
mod tls;
mod token;

pub use compact::compact;
pub use demo::demo;
pub use error::{AppError, ErrorContext};
pub use export::{export, export_of};
pub use gateway::{Gateway, Outside};
pub use import::{Imported, ImportedState, LeftOutCredentials, import, import_to, read_bounded};
pub use options::{
    ConfigSource, DemoOptions, PullOptions, ReplayOptions, SupOptions, config_file, interval,
};
pub use pull::{Pulled, pull};
pub use reincarnate::reincarnate;
pub use replay::{replay, rule_names};
pub use running::{GatewayOptions, RunningGateway, health};
pub use serve::serve;
pub use sup::sup;
pub use token::random_reader_token;
