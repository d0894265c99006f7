//! Makes a store that was restored from a copy a new incarnation.

use super::committer::{Committer, WriteScope};
use super::plan::PlannedCommit;
use super::records::Records;
use super::{Store, open};
use crate::engine::{Class, Writes};
use crate::record::StateRecord;
use crate::{CommitError, LoggedChange, StoreError, endpoint};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Gap, Lineage, PollState, Tick, Time};
use tokio::task::JoinSet;

/// The most feeds that are restarted at once, and announced in one epoch.
const RESTARTED_AT_ONCE: usize = 256;

impl Store {
    /// Makes a store that was restored from a copy a new incarnation: each feed begins a new window, and the change
    /// log announces all of them, so that readers of the log, of SUP documents and of the hub check each feed. Answers
    /// how many feeds there are.
    pub async fn reincarnate(&self) -> Result<usize, CommitError> {
        // In a shared database each restart is a transaction of one feed.
        self.restart_feeds(self.inner.database().is_some()).await
    }

    /// Restarts all feeds; `is_shared`: other gateways may change feeds meanwhile.
    pub(super) async fn restart_feeds(&self, is_shared: bool) -> Result<usize, CommitError> {
        let (feeds, known) = self.inner.query_feeds(feeds_of_copy).await?;
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
        let (feed, writes) = (feed.clone(), Writes::new());
        let (revision, versions) = (head.state.revision, 0);
        let logged = head.state.tick.map(|tick| LoggedChange {
            feed: feed.clone(),
            tick,
            revision,
            versions,
        });
        self.commit(PlannedCommit { feed, writes, base, head, logged }).map(drop)
    }
}

/// The state of a feed that restarts from a copy, at the time `now`. `known`: the latest time in the copy.
///
/// The original may have gone on, and its subscribers hold ticks and tags that the copy does not know. So a new
/// window begins after all of them: every subscriber finds itself out of sync and reads the complete feed (SSE 1.0
/// section 4.1). The unknown interval is noted ([`gap`](tidegate_core::model::FeedState::gap)).
fn restarted(mut head: StateRecord, known: Time, now: Time) -> StateRecord {
    let state = &mut head.state;
    let second = Duration::from_secs(1);
    if let Some(last) = state.tick {
        let tick = Tick::next(now, Some(last));
        state.tick = Some(tick);
        state.window_start = Some(tick);
        state.complete_start = state.complete_start.or(Some(tick));
    }
    let until = state.tick.map_or(now, |tick| now.max(tick.time()));
    state.gap = Some(Gap { since: known.min(until), until }.after(state.gap));
    let found = state.render_revision;
    state.render_revision = found.saturating_add(1);
    state.deltas_from = state.render_revision;
    state.updated_at = now.max(state.updated_at.plus(second));
    match endpoint::random_mark() {
        Some(mark) => state.lineage.go_on(mark, found),
        // Unknown which opening made the next revisions: claim none.
        None => state.lineage = Lineage::default(),
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::make::{Draft, feed, state, time};
    use tidegate_core::clock::ManualClock;
    use tidegate_core::model::Stretch;

    #[test]
    fn a_copy_begins_a_new_window() {
        let restarted = |state, known, now| {
            let head = StateRecord { state, next_event: 0, write: 1, asked_at: None };
            restarted(head, time(known), time(now)).state
        };
        assert_eq!(restarted(state(), 0, 50).tick, None, "nothing was ever told");
        let mut state = state();
        state.tick = Some(Tick::at(time(9)));
        (state.window_start, state.complete_start) = (state.tick, Some(Tick::at(time(1))));
        (state.render_revision, state.lineage) = (7, Lineage::new([Stretch { mark: 5, after: 0 }]));
        for now in [50, -50] {
            let fresh = restarted(state.clone(), 20, now);
            let until = fresh.tick.unwrap().time();
            assert_eq!(fresh.gap, Some(Gap { since: time(20).min(until), until }));
            assert!(fresh.tick > state.tick && fresh.window_start == fresh.tick);
            assert_eq!(fresh.complete_start, state.complete_start);
            assert!(fresh.updated_at > state.updated_at);
            assert_eq!((fresh.render_revision, fresh.deltas_from), (8, 8));
            assert!(fresh.lineage.made(5, 7, 8), "what the copy had is known");
            assert!(!fresh.lineage.made(5, 8, 8), "what the first store went on with is not");
        }
        let later = restarted(state, 20, 50);
        assert_eq!(later.tick, Some(Tick::at(time(50))));
        let again = restarted(later, 70, 90);
        assert_eq!(again.gap, Some(Gap { since: time(20), until: time(90) }), "both times");
    }

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
