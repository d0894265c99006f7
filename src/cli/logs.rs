//! Where logs go: to standard error, so that standard output is for programs.

use super::args::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The environment variable that says what is logged.
const FILTER: &str = "TIDEGATE_LOG";

/// The environment variable by which people do without colours: whatever it says, unless it is empty
/// (no-color.org).
const NO_COLOUR: &str = "NO_COLOR";

fn has_colour(said: Option<std::ffi::OsString>) -> bool {
    said.is_none_or(|said| said.is_empty())
}

/// Whether what is printed on a terminal may have colours.
pub(super) fn may_colour() -> bool {
    has_colour(std::env::var_os(NO_COLOUR))
}

/// What is logged where nothing else is said.
const USUAL: &str = "info";
/// The same of a command that tells people what happens: only what they must know beside it.
const QUIET: &str = "warn";

/// Starts logging for this process; a second call changes nothing.
pub(super) fn start(format: LogFormat) {
    start_with(format, USUAL);
}

/// The same of a command that tells what happens on standard output.
pub(super) fn start_quiet(format: LogFormat) {
    start_with(format, QUIET);
}

fn start_with(format: LogFormat, usual: &str) {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(usual));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && may_colour())
        // A log that is a file on a full disk cannot be written: saying so there too would end the process.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    // Somebody who started it before keeps what they chose.
    let _ = match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::has_colour;

    #[test]
    fn colours_are_left_out_where_somebody_says_so() {
        assert!(has_colour(None) && has_colour(Some("".into())));
        assert!(!has_colour(Some("1".into())) && !has_colour(Some("0".into())));
    }
}
