//! Large documents while they are taken in, on disk.

use super::{Record, RecordError};
use crate::model::{Attempt, FeedName, Time};
use serde::{Deserialize, Serialize};

/// An [`Attempt`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct AttemptRecord {
    feed: String,
    entries: u32,
    begun: i64,
    kills: u32,
    is_open: bool,
}

impl Record for AttemptRecord {}

impl From<&Attempt> for AttemptRecord {
    fn from(attempt: &Attempt) -> Self {
        Self {
            feed: attempt.feed.as_str().to_owned(),
            entries: attempt.entries,
            begun: attempt.begun.unix(),
            kills: attempt.kills,
            is_open: attempt.is_open,
        }
    }
}

impl TryFrom<AttemptRecord> for Attempt {
    type Error = RecordError;

    fn try_from(record: AttemptRecord) -> Result<Self, RecordError> {
        Ok(Self {
            feed: FeedName::new(&record.feed)?,
            entries: record.entries,
            begun: Time::from_unix(record.begun),
            kills: record.kills,
            is_open: record.is_open,
        })
    }
}
