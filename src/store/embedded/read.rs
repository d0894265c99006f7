//! Reads of the change log and of purge marks. The caller holds the lock of what is read over all feeds.

use super::keys;
use super::records::Records;
use crate::engine::{Class, KeyOrder, beginning_with};
use crate::limits::TAIL_LIMIT;
use crate::purge_mark::PurgeMark;
use crate::record::PurgeRecord;
use crate::{ClosedEpoch, Epoch, LoggedChange, StoreError};
use std::ops::Bound;
use tidegate_core::model::{FeedName, Time};

/// Turns damage into `None`; other errors are passed on, since they say nothing of what is stored.
pub(super) fn undamaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The purge mark of this name, unless a new feed has replaced it.
pub(super) fn purged(records: &Records, feed: &FeedName) -> Result<Option<PurgeMark>, StoreError> {
    let found: Option<PurgeRecord> =
        records.record(Class::Marks, &keys::of_kind(keys::PURGED, feed))?;
    Ok(found.map(|record| record.mark))
}

/// Closed epochs after `after` up to `newest`, which is newer, oldest first.
pub(super) fn epochs_after(
    records: &Records,
    after: Epoch,
    newest: Epoch,
    limit: usize,
) -> Result<Vec<ClosedEpoch>, StoreError> {
    let mut epochs: Vec<ClosedEpoch> = Vec::new();
    let (begin, end) = (keys::log(after.0 + 1, 0), keys::log(newest.0, u32::MAX));
    let range = (Bound::Included(begin), Bound::Included(end));
    for entry in records.range(Class::Log, range, KeyOrder::Ascending) {
        let (key, value) = entry?;
        let (epoch, at, announced) = logged(records, &key, &value)?;
        if let Some(last) = epochs.last_mut()
            && last.epoch == epoch
        {
            last.changes.push(announced);
            continue;
        }
        if epochs.len() >= limit.min(TAIL_LIMIT) {
            break;
        }
        epochs.push(ClosedEpoch { epoch, at, changes: vec![announced] });
    }
    Ok(epochs)
}

/// Decodes a change in the log: its epoch, the closing time of that, and the change.
pub(super) fn logged(
    records: &Records,
    key: &[u8],
    value: &[u8],
) -> Result<(Epoch, Time, LoggedChange), StoreError> {
    let damaged = |what: &str| records.damaged(Class::Log, key, what);
    let epoch = keys::log_epoch(key).ok_or_else(|| damaged("its key names no epoch"))?;
    let (at, value) = value.split_first_chunk().ok_or_else(|| damaged("it is cut off"))?;
    let announced = records.decode::<LoggedChange>(Class::Log, key, value)?;
    Ok((Epoch(epoch), Time::from_unix(i64::from_be_bytes(*at)), announced))
}

/// The last epoch of the change log, and its closing time.
pub(super) fn last_epoch(records: &Records) -> Result<Option<(Epoch, Time)>, StoreError> {
    match records.first(Class::Log, beginning_with(&[]), KeyOrder::Descending)? {
        Some((key, value)) => logged(records, &key, &value).map(|(epoch, at, _)| Some((epoch, at))),
        None => Ok(None),
    }
}
