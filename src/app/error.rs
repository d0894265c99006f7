//! Why a command did not do what it was asked, and the exit status that says so.

use std::error::Error;
use tidegate_config::ConfigError;
use tokio::task::JoinError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What was given to the command is wrong: a file, a folder, an address.
    #[error("{0}")]
    Input(String),
    /// It failed while it ran.
    #[error("{doing}")]
    Run {
        /// What failed, as a sentence: "127.0.0.1:8080 cannot be listened on".
        doing: String,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The gateway that runs does not do it; in its words.
    #[error("{said}")]
    Refused {
        /// The status of its answer.
        status: u16,
        said: String,
    },
    /// Whoever read what it prints reads no further, as `head` does: there is nothing to tell.
    #[error("standard output was closed")]
    OutputClosed,
}

impl AppError {
    /// A failure at run time.
    pub fn run(doing: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Run { doing: doing.into(), source: source.into() }
    }

    /// What is printed could not be.
    pub fn output(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::run("standard output cannot be written", error),
        }
    }

    /// The exit status (CONTRACT, Command line): 1 failed at run time, 2 wrong arguments,
    /// configuration or input.
    pub const fn exit_status(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Config(_) | Self::Input(_) => 2,
            Self::Refused { status, .. } if is_input(*status) => 2,
            Self::Refused { .. } | Self::Run { .. } => 1,
        }
    }

    /// The error and everything behind it, in one line for each mistake.
    pub fn report(&self) -> String {
        let mut report = self.to_string();
        let mut behind = self.source();
        // An error chain has no known end; a handful of causes is all that anyone reads.
        for _ in 0..CAUSES_SHOWN {
            let Some(cause) = behind else { break };
            let said = cause.to_string();
            if !report.ends_with(&said) {
                report.push_str(": ");
                report.push_str(&said);
            }
            behind = cause.source();
        }
        report
    }
}

/// Says what failed, as a sentence.
pub trait ErrorContext<T> {
    fn context(self, doing: impl Into<String>) -> Result<T, AppError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> ErrorContext<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T, AppError> {
        self.map_err(|error| AppError::run(doing, error))
    }
}

/// What came of a task; `failed`: what did not go well where it ended badly or says so itself.
pub(super) fn joined<T, E: Error + Send + Sync + 'static>(
    failed: &str,
    ended: Result<Result<T, E>, JoinError>,
) -> Result<T, AppError> {
    ended.context(failed)?.context(failed)
}

/// Does work that waits for the disk.
pub(super) async fn blocking<T, E>(
    failed: &str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, AppError>
where
    T: Send + 'static,
    E: Error + Send + Sync + 'static,
{
    joined(failed, tokio::task::spawn_blocking(work).await)
}

/// Whether a status blames what was typed or configured, and not how things are just now.
const fn is_input(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 404 | 405 | 413 | 415 | 422)
}

/// The most causes behind an error that are shown.
const CAUSES_SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn the_status_says_whose_fault_it_is_and_the_report_every_cause_once() {
        let config =
            tidegate_config::check("f", "x = 1").map_err(ConfigError::from).map_err(AppError::from);
        assert_eq!(config.map_err(|error| error.exit_status()), Err(2));
        assert_eq!(AppError::Input("no".into()).exit_status(), 2);
        let closed = AppError::output(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(closed.exit_status(), 0);
        assert_eq!(AppError::output(io::Error::other("full")).exit_status(), 1);
        assert_eq!(AppError::run("x", io::Error::other("y")).exit_status(), 1);
        let refused = |status| AppError::Refused { status, said: "no".into() }.exit_status();
        assert_eq!([400, 401, 404, 409, 503].map(refused), [2, 2, 2, 1, 1]);
        // The report has every cause once.
        let inner = io::Error::new(io::ErrorKind::AddrInUse, "the address is in use");
        let error = AppError::run("127.0.0.1:1 cannot be listened on", inner);
        assert_eq!(error.report(), "127.0.0.1:1 cannot be listened on: the address is in use");
    }
}
