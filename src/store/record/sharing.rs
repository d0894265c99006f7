//! Histories, ticks and times on disk.

use super::RecordError;
use crate::model::{Count, EndpointId, History, Stamp, Tick, Time, Update};
use serde::{Deserialize, Serialize};

/// Seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Seconds(i64);

impl From<Time> for Seconds {
    fn from(time: Time) -> Self {
        Self(time.unix())
    }
}

impl From<Seconds> for Time {
    fn from(seconds: Seconds) -> Self {
        Self::from_unix(seconds.0)
    }
}

impl From<Tick> for Seconds {
    fn from(tick: Tick) -> Self {
        tick.time().into()
    }
}

impl From<Seconds> for Tick {
    fn from(seconds: Seconds) -> Self {
        Self::at(seconds.into())
    }
}

/// One update of a history; at least one of `when` and `by` stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct UpdateRecord {
    sequence: u32,
    stamp: StampRecord,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StampRecord {
    Both { when: Seconds, by: String },
    By(String),
    When(Seconds),
}

impl From<&Stamp> for StampRecord {
    fn from(stamp: &Stamp) -> Self {
        match stamp {
            Stamp::Both { when, by } => {
                Self::Both { when: (*when).into(), by: by.as_str().to_owned() }
            }
            Stamp::By(by) => Self::By(by.as_str().to_owned()),
            Stamp::When(when) => Self::When((*when).into()),
        }
    }
}

impl TryFrom<StampRecord> for Stamp {
    type Error = RecordError;

    fn try_from(record: StampRecord) -> Result<Self, RecordError> {
        Ok(match record {
            StampRecord::Both { when, by } => {
                Self::Both { when: when.into(), by: EndpointId::new(&by)? }
            }
            StampRecord::By(by) => Self::By(EndpointId::new(&by)?),
            StampRecord::When(when) => Self::When(when.into()),
        })
    }
}

impl From<&Update> for UpdateRecord {
    fn from(update: &Update) -> Self {
        Self { sequence: update.sequence.value(), stamp: StampRecord::from(&update.stamp) }
    }
}

impl TryFrom<UpdateRecord> for Update {
    type Error = RecordError;

    fn try_from(record: UpdateRecord) -> Result<Self, RecordError> {
        Ok(Self { sequence: Count::new(record.sequence)?, stamp: record.stamp.try_into()? })
    }
}

/// A history on disk, newest first.
pub(super) fn history_record(history: &History) -> Vec<UpdateRecord> {
    history.iter().map(UpdateRecord::from).collect()
}

/// A history from disk.
pub(super) fn history(records: Vec<UpdateRecord>) -> Result<History, RecordError> {
    let updates: Vec<Update> =
        records.into_iter().map(Update::try_from).collect::<Result<_, _>>()?;
    History::from_newest_first(updates).ok_or(RecordError::NoHistory)
}
