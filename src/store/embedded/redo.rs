//! Changes that are too large for one transaction of an engine on disk.
//!
//! The entries are first written as blobs, which no reader sees. Then the redo mark makes the change certain: its
//! entries are applied in portions, here or by the next opening of the store, while readers of the feed wait. The
//! commit removes the mark.

use super::committer::{Committer, WriteScope};
use super::plan::PlannedCommit;
use super::records::Records;
use super::{Found, StoreInner, committer, keys};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::record::StateRecord;
use crate::{CommitError, Committed, Epoch, FreeSpace, LoggedChange, StoreError};
use serde::{Deserialize, Serialize};

/// About how many entries one transaction has; few in unit tests, to make them use portions.
pub(super) const PORTION: usize = if cfg!(test) { 7 } else { 1024 };
/// About how many bytes of values a portion has.
pub(super) const PORTION_BYTES: usize = 2 * 1024 * 1024;

/// The redo mark, which makes a large change certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RedoMark {
    /// How many blobs it has.
    blobs: u32,
    head: StateRecord,
    logged: Option<LoggedChange>,
}

/// Entries in portions.
fn portions(writes: Writes) -> Vec<Writes> {
    let (mut portions, mut last, mut bytes) = (Vec::new(), Writes::new(), 0_usize);
    for (key, value) in writes {
        bytes = bytes.saturating_add(value.as_ref().map_or(0, Vec::len));
        last.insert(key, value);
        if last.len() >= PORTION || bytes >= PORTION_BYTES {
            portions.push(std::mem::take(&mut last));
            bytes = 0;
        }
    }
    portions.push(last);
    portions
}

fn blob(records: &Records, portion: &Writes) -> Result<Vec<u8>, StoreError> {
    records.encoded(portion, || "a portion of a large change".to_owned())
}

impl StoreInner {
    /// Commits a large change; it breaks off when `space` runs low. The caller holds the locks of the feed, against
    /// other changes and readers.
    pub(super) async fn commit_large(
        &self,
        planned: PlannedCommit,
        space: Option<&FreeSpace>,
    ) -> Result<Committed, CommitError> {
        let feed = planned.feed.clone();
        let done = self.write_large(planned, space).await;
        // If this fails, the next opening removes the blobs.
        let scope = WriteScope::Feed(feed.clone());
        let _ = self.submit(scope, move |committer| committer.forget_redo(&feed)).await;
        done
    }

    async fn write_large(
        &self,
        mut planned: PlannedCommit,
        space: Option<&FreeSpace>,
    ) -> Result<Committed, CommitError> {
        let (feed, fence) = (planned.feed.clone(), self.shared.identity().fence);
        let scope = || WriteScope::Feed(feed.clone());
        let portions = portions(std::mem::take(&mut planned.writes));
        let blobs = u32::try_from(portions.len()).unwrap_or(u32::MAX);
        for (number, portion) in (0_u32..).zip(&portions) {
            self.check_not_closing()?;
            space.map_or(Ok(()), FreeSpace::check)?;
            let key = (Class::Marks, keys::redo_blob(&feed, number));
            let value = blob(&self.records()?, portion)?;
            self.put(scope(), fence, Writes::from([(key, Some(value))])).await?;
        }
        let mark_key = keys::of_kind(keys::UNFINISHED, &feed);
        let (head, logged) = (planned.head.clone(), planned.logged.clone());
        let (mark, mut marked) = (RedoMark { blobs, head, logged }, Writes::new());
        self.records()?.put(&mut marked, Class::Marks, mark_key.clone(), &mark)?;
        for writes in [marked].into_iter().chain(portions) {
            self.put(scope(), fence, writes).await.map_err(CommitError::Ambiguous)?;
        }
        planned.writes.insert((Class::Marks, mark_key), None);
        let commit = move |committer: &mut Committer| {
            same_opening(committer, fence).map_err(CommitError::Ambiguous)?;
            committer.commit(planned)
        };
        self.submit(scope(), commit).await
    }

    /// Writes entries as one transaction; an error where the store was opened again since it had the number `fence`.
    async fn put(&self, scope: WriteScope, fence: u64, writes: Writes) -> Result<(), StoreError> {
        let put = move |committer: &mut Committer| {
            same_opening(committer, fence)?;
            committer.apply(writes);
            Ok(())
        };
        Ok(self.submit(scope, put).await?)
    }
}

/// An error where the store was opened again since: that opening has applied certain changes and removed all others.
fn same_opening(committer: &Committer, fence: u64) -> Result<(), StoreError> {
    if committer.shared.identity().fence == fence { Ok(()) } else { Err(super::committer_failed()) }
}

/// Applies every large change that has a redo mark, and removes the blobs of the others. `found`: the content of the
/// store, which is updated.
pub(super) fn finish_all(records: &Records, found: &mut Found) -> Result<(), StoreError> {
    let all = || beginning_with(keys::UNFINISHED);
    while let Some((key, value)) = records.first(Class::Marks, all(), KeyOrder::Ascending)? {
        let (feed, _) = records.read_key(Class::Marks, &key, keys::split_kind(&key))?;
        let RedoMark { blobs, head, logged } = records.decode(Class::Marks, &key, &value)?;
        tracing::info!(%feed, "a large change that was certain is applied");
        for number in 0..blobs {
            let key = keys::redo_blob(&feed, number);
            records.engine().apply(records.expected(Class::Marks, &key)?)?;
        }
        let mut writes = Writes::from([((Class::Marks, key), None)]);
        records.put(&mut writes, Class::States, keys::feed(&feed), &head)?;
        if let Some(logged) = logged {
            let (last, at) = found.newest;
            let (epoch, at) = (Epoch(last.0 + 1), at.max(logged.tick.time()));
            committer::log(records, &mut writes, (epoch, 0, at), &logged)?;
            found.newest = (epoch, at);
        }
        records.engine().apply(writes)?;
        found.committed.insert(feed, head);
    }
    while records.clear(Class::Marks, keys::REDO)? {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MemoryEngine;
    use std::sync::Arc;
    use tidegate_core::model::{FeedName, Time};

    #[test]
    fn what_is_cleared_goes_in_portions_of_bytes() {
        let records = Records::new(Arc::new(MemoryEngine::default()));
        let feed = FeedName::new("news").unwrap();
        let blob =
            |n| ((Class::Marks, keys::redo_blob(&feed, n)), Some(vec![0; PORTION_BYTES - 1]));
        records.engine().apply((0..4).map(blob).collect()).unwrap();
        for (has_more, left) in [(true, 2), (false, 0)] {
            assert_eq!(records.clear(Class::Marks, keys::REDO).unwrap(), has_more);
            assert_eq!(records.entries(Class::Marks, keys::REDO).count(), left);
        }
    }

    /// A large change that was begun before the store was opened again writes nothing any more.
    #[tokio::test]
    async fn portions_of_an_earlier_opening_are_refused() {
        let clock = Arc::new(tidegate_core::clock::ManualClock::at(Time::from_unix(7)));
        let store = crate::Store::in_memory(None, clock).unwrap();
        let (inner, key) = (&store.inner, (Class::Texts, vec![1]));
        let (fence, writes) = (inner.shared.identity().fence, Writes::from([(key, Some(vec![1]))]));
        assert!(inner.put(WriteScope::Notes, fence + 1, writes.clone()).await.is_err());
        let is_there = || inner.records().unwrap().contains(Class::Texts, &[1]).unwrap();
        assert!(!is_there());
        inner.put(WriteScope::Notes, fence, writes).await.unwrap();
        assert!(is_there());
    }
}
