//! The change log on disk: one record per change, under its epoch and its place in it.

use super::sharing::Seconds;
use super::{Record, RecordError};
use crate::model::{FeedName, Revision, Time};
use crate::store::Announced;
use serde::{Deserialize, Serialize};

/// An [`Announced`] and when its epoch was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct LogRecord {
    at: Seconds,
    feed: String,
    tick: Seconds,
    revision: u64,
    versions: u32,
}

impl Record for LogRecord {}

impl LogRecord {
    /// A change in an epoch closed at `at`.
    pub(in crate::store) fn new(at: Time, announced: &Announced) -> Self {
        Self {
            at: at.into(),
            feed: announced.feed.as_str().to_owned(),
            tick: announced.tick.into(),
            revision: announced.revision.0,
            versions: announced.versions,
        }
    }

    /// When the epoch was closed, and the change.
    pub(in crate::store) fn read(self) -> Result<(Time, Announced), RecordError> {
        let announced = Announced {
            feed: FeedName::new(&self.feed)?,
            tick: self.tick.into(),
            revision: Revision(self.revision),
            versions: self.versions,
        };
        Ok((self.at.into(), announced))
    }
}
