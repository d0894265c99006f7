//! Why an administration action was not done.

use http::StatusCode;
use tidegate_core::model::FeedName;
use tidegate_core::sync::SyncError;
use tidegate_judge::record::local::ActError;
use tidegate_poll::PollError;
use tidegate_store::{CommitError, StoreError};

/// Why an administration action was not done: a sentence, and the HTTP status that is told with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct OperatorError {
    pub(crate) status: StatusCode,
    detail: String,
}

impl OperatorError {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    pub(crate) fn unknown_feed(feed: &FeedName) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no feed {feed}"))
    }

    pub(crate) fn unknown_item(feed: &FeedName) -> Self {
        let detail = format!("the feed {feed} has no item of that sync id");
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request makes no sense as it stands.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The feed's state does not allow it (nothing is held, the feed is deleted).
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// It failed here.
    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// It may be done soon: the store is opened again, or its database is away.
    pub(super) fn later(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }
}

impl From<ActError> for OperatorError {
    fn from(error: ActError) -> Self {
        let status = match &error {
            ActError::Unknown(_) => StatusCode::NOT_FOUND,
            ActError::Stale { .. } => StatusCode::PRECONDITION_FAILED,
            ActError::Entry(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ActError::Sync(SyncError::NoSuchConflict { .. }) => StatusCode::BAD_REQUEST,
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, error.to_string())
    }
}

impl From<StoreError> for OperatorError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LowSpace { .. } => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string())
            }
            StoreError::Away { .. } => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "administration is to ask again once the database answers"
                );
                Self::later(error.to_string())
            }
            error if error.is_passing() => Self::later(error.to_string()),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<CommitError> for OperatorError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict(_) => {
                Self::later("others change this feed at the moment; try again")
            }
            CommitError::Store(error) => error.into(),
            CommitError::Ambiguous(error) if error.is_passing() => Self::later(format!(
                "it is unknown whether this was stored, look at the feed before you do it again: \
                 {error}"
            )),
            CommitError::Overtaken => Self::later(error.to_string()),
            CommitError::Ambiguous(_) => Self::internal(error.to_string()),
        }
    }
}

impl From<PollError> for OperatorError {
    fn from(error: PollError) -> Self {
        match error {
            PollError::Unknown | PollError::OwnedElsewhere { .. } | PollError::TooMany { .. } => {
                Self::conflict(error.to_string())
            }
            PollError::Stopped => Self::later(error.to_string()),
        }
    }
}
