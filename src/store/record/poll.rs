//! What polling remembers, on disk.

use super::sharing::Seconds;
use super::{Record, RecordError, fields, newest};
use crate::model::{FeedName, PollState};
use serde::{Deserialize, Serialize};

/// A [`PollState`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct PollRecord {
    feed: String,
    etag: Option<String>,
    last_modified: Option<String>,
    answered_by: Option<String>,
    moved_to: Option<String>,
    failures: u32,
    last_error: Option<String>,
    refreshed: Option<Seconds>,
    not_before: Option<Seconds>,
    url: String,
    body: Option<u128>,
}

/// The first layout: it says neither which address it is about nor which document.
#[derive(Deserialize)]
struct First {
    feed: String,
    etag: Option<String>,
    last_modified: Option<String>,
    answered_by: Option<String>,
    moved_to: Option<String>,
    failures: u32,
    last_error: Option<String>,
    refreshed: Option<Seconds>,
    not_before: Option<Seconds>,
}

impl Record for PollRecord {
    const VERSION: u8 = 2;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        if version != 1 {
            return newest(version, payload);
        }
        let first: First = fields(payload)?;
        Ok(Self {
            feed: first.feed,
            etag: first.etag,
            last_modified: first.last_modified,
            answered_by: first.answered_by,
            moved_to: first.moved_to,
            failures: first.failures,
            last_error: first.last_error,
            refreshed: first.refreshed,
            not_before: first.not_before,
            url: String::new(),
            body: None,
        })
    }
}

impl From<&PollState> for PollRecord {
    fn from(state: &PollState) -> Self {
        Self {
            feed: state.feed.as_str().to_owned(),
            etag: state.etag.clone(),
            last_modified: state.last_modified.clone(),
            answered_by: state.answered_by.clone(),
            moved_to: state.moved_to.clone(),
            failures: state.failures,
            last_error: state.last_error.clone(),
            refreshed: state.refreshed.map(Seconds::from),
            not_before: state.not_before.map(Seconds::from),
            url: state.url.clone(),
            body: state.body,
        }
    }
}

impl TryFrom<PollRecord> for PollState {
    type Error = RecordError;

    fn try_from(record: PollRecord) -> Result<Self, RecordError> {
        Ok(Self {
            feed: FeedName::new(&record.feed)?,
            etag: record.etag,
            last_modified: record.last_modified,
            answered_by: record.answered_by,
            moved_to: record.moved_to,
            failures: record.failures,
            last_error: record.last_error,
            refreshed: record.refreshed.map(Into::into),
            not_before: record.not_before.map(Into::into),
            url: record.url,
            body: record.body,
        })
    }
}
