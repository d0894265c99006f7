//! Why a round of polling failed.

use super::decide::MAX_COMMIT_ATTEMPTS;
use super::judge::JudgeError;
use std::error::Error as _;
use tidegate_net::fetch::{FetchBlame, FetchError, PauseRequest, Retry};
use tidegate_status::PollFailure;
use tidegate_store::{CommitError, StoreError, in_words};

/// The longest error that is stored and shown, in bytes.
pub const MAX_ERROR_BYTES: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// No document was received.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The document could not be judged.
    #[error(transparent)]
    Judge(JudgeError),
    #[error("what was found could not be stored: {0}")]
    Store(#[from] StoreError),
    /// The feed changed during every attempt.
    #[error("the feed was changed by others {MAX_COMMIT_ATTEMPTS} times while this poll decided")]
    Contended,
    /// Another gateway stored a document that was requested later.
    #[error("another gateway has stored a newer document of the feed")]
    Overtaken,
    #[error("the gateway has a defect: {0}; please report it with the address of the feed")]
    Defect(String),
    #[error("the poll was given up because the gateway stops or the feed was removed")]
    Cancelled,
}

impl From<JudgeError> for RoundError {
    fn from(error: JudgeError) -> Self {
        match error {
            JudgeError::Ledger(error) => Self::Store(error),
            error => Self::Judge(error),
        }
    }
}

impl From<CommitError> for RoundError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(_) => Self::Contended,
            CommitError::Overtaken => Self::Overtaken,
            CommitError::Ambiguous(error) | CommitError::Store(error) => Self::Store(error),
        }
    }
}

impl RoundError {
    /// Whether the store failed to accept the result, so that the publisher is not to blame. `is_shared`: several
    /// gateways share the store, and the database may not have answered.
    pub const fn is_of_store(&self, is_shared: bool) -> bool {
        match self {
            Self::Store(StoreError::Stopped(_) | StoreError::LowSpace { .. }) => true,
            // The change is just as large the next time.
            Self::Store(StoreError::TooLarge { .. }) => false,
            Self::Store(_) | Self::Contended => is_shared,
            _ => false,
        }
    }

    pub const fn blame(&self) -> FetchBlame {
        match self {
            Self::Fetch(error) => error.blame(),
            Self::Judge(JudgeError::Unreadable(_)) => FetchBlame::Upstream,
            Self::Judge(JudgeError::Refused(_)) => FetchBlame::Operator,
            _ => FetchBlame::Gateway,
        }
    }

    /// Returns why no document was received, if so.
    const fn of_fetch(&self) -> Option<&FetchError> {
        if let Self::Fetch(error) = self { Some(error) } else { None }
    }

    pub fn retry(&self) -> Retry {
        self.of_fetch().map_or(Retry::Backoff, FetchError::retry)
    }

    /// Returns the pause that a host asks for. `asked`: the requested address.
    pub fn pause(&self, asked: &str) -> Option<PauseRequest> {
        self.of_fetch()?.pause(asked)
    }

    /// Describes the error within `MAX_ERROR_BYTES`, because publishers can influence its text.
    pub fn describe(&self) -> String {
        let mut text = self.to_string();
        if text.len() > MAX_ERROR_BYTES {
            let end = (0..=MAX_ERROR_BYTES).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or(0));
            text.push('…');
        }
        text
    }

    /// Describes the error with its causes, for the log only: they may name the database host.
    pub fn report(&self) -> String {
        match self {
            // Other errors already contain their causes.
            Self::Store(error) => match error.source() {
                Some(cause) => format!("{self}: {}", in_words(cause)),
                None => self.describe(),
            },
            _ => self.describe(),
        }
    }

    /// Returns the failure as shown to the operator.
    pub fn failure(&self) -> PollFailure {
        let status = self.of_fetch().and_then(FetchError::status);
        PollFailure { error: self.describe(), blame: self.blame(), status }
    }
}

/// Why a poll on demand was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// No feed of that name is polled.
    #[error("no feed of that name is polled; it may be paused")]
    Unknown,
    #[error("{limit} polls of this kind are waiting already, which is the limit; try again later")]
    TooMany { limit: usize },
    #[error(
        "the feed is polled by the gateway {owner}, which alone walks through its older documents; ask it there"
    )]
    OwnedElsewhere { owner: String },
    #[error("polling has stopped")]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Time;
    use tidegate_store::StoreStop;

    #[test]
    fn the_stores_trouble_is_none_of_the_publishers() {
        let (cause, since) = ("the disk failed".to_owned(), Time::from_unix(1));
        let stop = StoreStop { cause, since, next_try: None, failed_tries: 0 };
        let stopped = RoundError::Store(StoreError::Stopped(Box::new(stop)));
        assert!(stopped.is_of_store(false) && stopped.is_of_store(true));
        let closed = RoundError::Store(StoreError::Closed);
        for error in [closed, RoundError::Contended] {
            assert!(error.is_of_store(true) && !error.is_of_store(false));
        }
        let large = StoreError::TooLarge { what: "a change".to_owned(), size: 9, limit: 8 };
        assert!(!RoundError::Store(large).is_of_store(true));
    }

    #[test]
    fn the_log_says_why_the_store_failed() {
        let said = "the store could not write: could not extend file: check free disk space";
        let source = std::io::Error::other(said);
        let failed = StoreError::Io { doing: "pass a write on", source };
        for error in [CommitError::Store(failed), CommitError::Ambiguous(StoreError::Closed)] {
            let is_known = matches!(error, CommitError::Store(_));
            let error = RoundError::from(error);
            assert_eq!(error.report().ends_with(&format!("pass a write on: {said}")), is_known);
            assert_eq!(error.report().matches("could not be stored").count(), 1);
            assert!(!error.describe().contains("disk"));
        }
        assert_eq!(RoundError::Overtaken.report(), RoundError::Overtaken.describe());
    }

    #[test]
    fn what_a_publisher_says_is_cut() {
        let long = RoundError::Judge(JudgeError::Unreadable("ä".repeat(MAX_ERROR_BYTES)));
        let words = long.describe();
        assert!(words.len() <= MAX_ERROR_BYTES + '…'.len_utf8());
        assert!(words.starts_with("ää") && words.ends_with("ä…"));
        assert_eq!(long.blame(), FetchBlame::Upstream);
    }
}
