//! Where logs go: to standard error, so that standard output is for programs.

use super::args::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The environment variable that says what is logged.
const FILTER: &str = "TIDEGATE_LOG";

/// Starts logging for this process; a second call changes nothing.
pub(super) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // Somebody who started it before keeps what they chose.
    let _ = match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}
