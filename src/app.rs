//! The wiring: what the subcommands do, with every room in its place.

mod error;
mod options;

pub use error::AppError;
pub use options::{DemoOptions, ReplayOptions, ServeOptions, Settings};

/// Runs the gateway until it is told to stop.
pub async fn serve(options: ServeOptions) -> Result<(), AppError> {
    options.settings.load()?;
    Err(AppError::NotBuilt { command: "serve" })
}

/// Runs the gateway in front of a small publisher of its own.
pub async fn demo(_options: DemoOptions) -> Result<(), AppError> {
    Err(AppError::NotBuilt { command: "demo" })
}

/// Takes recorded documents through the same code as `serve`.
pub fn replay(_options: &ReplayOptions) -> Result<(), AppError> {
    Err(AppError::NotBuilt { command: "replay" })
}
