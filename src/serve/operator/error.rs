//! Why an administration action was not done.

use tidegate_core::model::FeedName;
use tidegate_judge::record::local::ActError;
use tidegate_poll::PollError;
use tidegate_store::{CommitError, StoreError};

/// Why an administration action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperatorError {
    /// There is no such feed.
    #[error("there is no feed {0}")]
    UnknownFeed(FeedName),
    /// The feed has no such item.
    #[error("the feed {0} has no item of that sync id")]
    UnknownItem(FeedName),
    /// The feed stands in the configuration file, which wins.
    #[error("the feed {0} stands in the configuration file, which wins over this; change it there")]
    ConfiguredByFile(FeedName),
    /// The request makes no sense as it stands; says why.
    #[error("{0}")]
    BadRequest(String),
    /// The feed's state does not allow it (nothing is held, the feed is deleted); says why.
    #[error("{0}")]
    Conflict(String),
    /// What was asked of an item was not done; says why.
    #[error(transparent)]
    Item(ActError),
    /// It failed here; says why.
    #[error("{0}")]
    Internal(String),
    /// The file system has too little space for anything new.
    #[error("{0}")]
    NoSpace(String),
    /// It may be done soon: the store is opened again, or its database is away.
    #[error("{0}")]
    Stopped(String),
}

impl From<StoreError> for OperatorError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LowSpace { .. } => Self::NoSpace(error.to_string()),
            StoreError::Away { .. } => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "administration is to ask again once the database answers"
                );
                Self::Stopped(error.to_string())
            }
            error if error.is_passing() => Self::Stopped(error.to_string()),
            error => Self::Internal(error.to_string()),
        }
    }
}

impl From<CommitError> for OperatorError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(_) => {
                Self::Stopped("others change this feed at the moment; try again".to_owned())
            }
            CommitError::Store(error) => error.into(),
            CommitError::Ambiguous(error) if error.is_passing() => Self::Stopped(format!(
                "it is unknown whether this was stored, look at the feed before you do it again: \
                 {error}"
            )),
            CommitError::Overtaken => Self::Stopped(error.to_string()),
            CommitError::Ambiguous(_) => Self::Internal(error.to_string()),
        }
    }
}

impl From<PollError> for OperatorError {
    fn from(error: PollError) -> Self {
        match error {
            PollError::OwnedElsewhere { .. } | PollError::TooMany { .. } => {
                Self::Conflict(error.to_string())
            }
            error => Self::Internal(error.to_string()),
        }
    }
}
