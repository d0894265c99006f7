//! Why a round of polling failed.

use super::decide::MAX_COMMIT_ATTEMPTS;
use super::judge::JudgeError;
use std::error::Error as _;
use tidegate_net::fetch::{FetchBlame, FetchError, PauseRequest, Retry};
use tidegate_status::PollFailure;
use tidegate_store::{CommitError, StoreError, in_words};

/// How much of an error is kept and shown, in bytes.
pub const MAX_ERROR_BYTES: usize = 1024;

/// Why a round failed.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// No document came.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The document could not be taken in.
    #[error(transparent)]
    Judge(JudgeError),
    /// The store failed.
    #[error("what was found could not be stored: {0}")]
    Store(#[from] StoreError),
    /// The feed changed under every attempt.
    #[error("the feed was changed by others {MAX_COMMIT_ATTEMPTS} times while this poll decided")]
    Contended,
    /// Another gateway has stored a document that was asked for later.
    #[error("another gateway has stored a newer document of the feed")]
    Overtaken,
    /// A defect of the gateway.
    #[error("the gateway has a defect: {0}; please report it with the address of the feed")]
    Defect(String),
    /// The gateway stops, or the feed was removed.
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
    /// Whether the store could not take in what was found, so that the publisher has no part in it. `is_shared`: several
    /// gateways share the store, a database that may not have answered.
    pub const fn is_of_store(&self, is_shared: bool) -> bool {
        match self {
            Self::Store(StoreError::Stopped(_) | StoreError::LowSpace { .. }) => true,
            // It is no smaller the next time.
            Self::Store(StoreError::TooLarge { .. }) => false,
            Self::Store(_) | Self::Contended => is_shared,
            _ => false,
        }
    }

    /// Who is to blame.
    pub const fn blame(&self) -> FetchBlame {
        match self {
            Self::Fetch(error) => error.blame(),
            Self::Judge(JudgeError::Unreadable(_)) => FetchBlame::Upstream,
            Self::Judge(JudgeError::Refused(_)) => FetchBlame::Operator,
            _ => FetchBlame::Gateway,
        }
    }

    /// When to try again.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Fetch(error) => error.retry(),
            _ => Retry::Backoff,
        }
    }

    /// Whether a host asks to be left alone; `asked`: the address that was asked for.
    pub fn pause(&self, asked: &str) -> Option<PauseRequest> {
        match self {
            Self::Fetch(error) => error.pause(asked),
            _ => None,
        }
    }

    /// In words, cut to `MAX_ERROR_BYTES`: publishers have a say in it.
    pub fn describe(&self) -> String {
        let mut text = self.to_string();
        if text.len() > MAX_ERROR_BYTES {
            let end = (0..=MAX_ERROR_BYTES).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or(0));
            text.push('…');
        }
        text
    }

    /// The same with all that is behind it, for the log alone: it may name the database's machine.
    pub fn report(&self) -> String {
        match self {
            // A cause of the others is said with them.
            Self::Store(error) => match error.source() {
                Some(cause) => format!("{self}: {}", in_words(cause)),
                None => self.describe(),
            },
            _ => self.describe(),
        }
    }

    /// As it is told to the operator.
    pub fn failure(&self) -> PollFailure {
        let status = match self {
            Self::Fetch(error) => error.status(),
            _ => None,
        };
        PollFailure { error: self.describe(), blame: self.blame(), status }
    }
}

/// Why "poll now" was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// Nothing of that name is polled.
    #[error("no feed of that name is polled; it may be paused")]
    Unknown,
    /// Too many are waiting already.
    #[error("{limit} polls of this kind are waiting already, which is the limit; try again later")]
    TooMany { limit: usize },
    /// Another gateway owns the feed.
    #[error(
        "the feed is polled by the gateway {owner}, which alone walks through its older documents; ask it there"
    )]
    OwnedElsewhere { owner: String },
    /// Polling has stopped, or the feed was removed.
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
