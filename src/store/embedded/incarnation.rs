//! Makes a store that was restored from a copy a new incarnation.

use super::committer::{Committer, WriteScope};
use super::plan::PlannedCommit;
use super::records::Records;
use super::{Store, open};
use crate::engine::{Class, Writes};
use crate::portable::{announcement, restarted};
use crate::record::StateRecord;
use crate::{CommitError, StoreError};
use std::sync::Arc;
use tidegate_core::model::{FeedName, PollState, Time};
use tokio::task::JoinSet;

/// The most feeds that are restarted at once, and announced in one epoch.
const RESTARTED_AT_ONCE: usize = 256;

impl Store {
    /// Makes a store that was restored from a copy a new incarnation.
    pub async fn reincarnate(&self) -> Result<usize, CommitError> {
        let (feeds, known) = self.inner.query_feeds(feeds_of_copy).await?;
        // In a shared database each restart is a transaction of one feed.
        let is_shared = self.inner.database().is_some();
        for feeds in feeds.chunks(RESTARTED_AT_ONCE) {
            let mut restarts = JoinSet::new();
            for feeds in feeds.chunks(if is_shared { 1 } else { RESTARTED_AT_ONCE }) {
                let (inner, feeds) = (Arc::clone(&self.inner), feeds.to_vec());
                let only = feeds.first().filter(|_| is_shared).cloned();
                let scope = only.map_or(WriteScope::Identity, WriteScope::Feed);
                let restart = move |committer: &mut Committer| {
                    feeds.iter().try_for_each(|feed| committer.restart(feed, known))
                };
                restarts.spawn(async move { inner.submit(scope, restart).await });
            }
            restarts.join_all().await.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(feeds.len())
    }
}

/// The feeds with content, and the last time in the copy. A feed that a broken-off run has restarted notes that time
/// itself, so that a repetition finds the same. A time that is too early only makes numbers leap further.
fn feeds_of_copy(records: &Records) -> Result<(Vec<FeedName>, Time), StoreError> {
    let (mut feeds, mut known) = (Vec::new(), Time::MIN);
    for entry in records.scan::<StateRecord>(Class::States, &[]) {
        let (key, head) = entry?;
        feeds.push(open::name(records, &key)?);
        let restarted = head.state.gap.filter(|gap| gap.until >= head.latest());
        known = known.max(restarted.map_or(head.latest(), |gap| gap.since));
    }
    for entry in records.scan::<PollState>(Class::Polls, &[]) {
        known = known.max(entry?.1.refreshed.unwrap_or(Time::MIN));
    }
    Ok((feeds, known))
}

impl Committer {
    /// Restarts a feed, where it has content.
    fn restart(&mut self, feed: &FeedName, known: Time) -> Result<(), CommitError> {
        let Some(before) = self.head(feed)? else { return Ok(()) };
        let base = (before.state.revision, before.write);
        let restarted = restarted(before, known, self.group.at);
        let head = StateRecord { write: base.1 + 1, asked_at: None, ..restarted };
        let logged = announcement(feed, &head.state);
        let (feed, writes) = (feed.clone(), Writes::new());
        self.commit(PlannedCommit { feed, writes, base, head, logged }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::make::{Draft, feed, time};
    use tidegate_core::clock::ManualClock;
    use tidegate_core::model::Gap;

    #[tokio::test]
    async fn a_repetition_knows_what_the_copy_knew() {
        let clock = ManualClock::at(time(20));
        let store = Store::in_memory(None, Arc::new(clock.clone())).unwrap();
        for name in ["first", "second"] {
            Draft::on(&store, name, 4).await.item("a", "text").order(&["a"]).commit(&store).await;
        }
        // The first run breaks off after the first feed.
        let (first, known) = (feed("first"), time(4));
        let restart = move |committer: &mut Committer| committer.restart(&first, known);
        store.inner.submit(WriteScope::Identity, restart).await.unwrap();
        // Then it is run twice to its end.
        for now in [50, 80] {
            clock.set(time(now));
            assert_eq!(store.reincarnate().await.unwrap(), 2);
            for name in ["first", "second"] {
                let state = store.state(&feed(name)).await.unwrap().unwrap();
                assert_eq!(state.gap, Some(Gap { since: time(4), until: time(now) }), "{name}");
            }
        }
    }
}
