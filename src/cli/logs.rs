//! Where logs go: to standard error, so that standard output is for programs.

use super::args::LogFormat;
use std::io::{IsTerminal, Write};
use tidegate_core::terminal::{printable, printable_json};
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

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

/// Starts logging for this process; a second call changes nothing. `usual`: what is logged where nothing else is said.
pub(super) fn start(format: LogFormat, usual: LevelFilter) {
    let said = std::env::var(FILTER).unwrap_or_default();
    let (filter, fault) = match filter(&said, usual) {
        Ok(filter) => (filter, None),
        Err(error) => (Targets::new().with_default(usual), Some(error)),
    };
    // What no target logs is passed over where it arises, instead of at the filter.
    let most = Layer::<Registry>::max_level_hint(&filter).unwrap_or(LevelFilter::TRACE);
    let logs = tracing_subscriber::fmt()
        .with_max_level(most)
        .with_ansi(std::io::stderr().is_terminal() && may_colour())
        // A log that is a file on a full disk cannot be written: saying so there too would end the process.
        .log_internal_errors(false)
        // How long a poll and its parts took, where those are logged (debug).
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(move || LogWriter(format));
    // Somebody who started it before keeps what they chose.
    let _ = match format {
        LogFormat::Text => logs.finish().with(filter).try_init(),
        LogFormat::Json => logs.json().finish().with(filter).try_init(),
    };
    if let Some(error) = fault {
        tracing::warn!(%error, "{FILTER} is no list of levels and targets; {usual} is logged");
    }
}

/// Writes lines to standard error, each whole, so that foreign text in them is nothing but text.
struct LogWriter(LogFormat);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n');
        let shown = match self.0 {
            LogFormat::Json => printable_json(text),
            // The formatter writes this character in front of its colours, and no other.
            LogFormat::Text => {
                text.split('\u{1b}').map(printable).collect::<Vec<_>>().join("\u{1b}")
            }
        };
        writeln!(std::io::stderr(), "{shown}")?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged: a level, or targets with their levels, each for all whose names begin like it
/// (`info,tidegate_poll=debug`). Nothing said: `usual`.
fn filter(said: &str, usual: LevelFilter) -> Result<Targets, ParseError> {
    match said.trim() {
        "" => Ok(Targets::new().with_default(usual)),
        said => said.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_and_targets_say_what_is_logged() {
        let logs = |said: &str, target: &str, level: Level| {
            filter(said, LevelFilter::WARN).unwrap().would_enable(target, &level)
        };
        assert!(logs("", "tidegate_poll", Level::WARN) && !logs(" ", "hyper", Level::INFO));
        assert!(logs("info", "hyper", Level::INFO) && !logs("info", "tidegate", Level::DEBUG));
        // Each crate of the program is meant.
        for target in ["tidegate::app", "tidegate_poll::hub"] {
            assert!(logs("info,tidegate=debug", target, Level::DEBUG), "{target}");
        }
        assert!(!logs("info,tidegate=debug", "hyper", Level::DEBUG));
        assert!(logs("warn,tidegate_poll=trace", "tidegate_poll::hub", Level::TRACE));
        assert!(filter("tidegate=loud", LevelFilter::INFO).is_err());
        // Colours are left out where somebody says so.
        assert!(has_colour(None) && has_colour(Some("".into())));
        assert!(!has_colour(Some("1".into())) && !has_colour(Some("0".into())));
    }
}
