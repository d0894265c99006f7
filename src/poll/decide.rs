//! Decides each change of a feed over its newest snapshot and commits it; decides anew if the feed changed meanwhile.

use super::PollSettings;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    Change, FeedName, FeedRecord, FeedState, Revision, Snapshot, Tick, Time,
};
use tidegate_judge::record::Observation;
use tidegate_store::{CommitError, FeedLock, FeedLocks, PinnedFeed, Store, StoreError};

/// How often a change is decided anew because the feed changed meanwhile.
pub const MAX_COMMIT_ATTEMPTS: u32 = 5;

/// What decisions need; shared by polls, operators and upkeep.
#[derive(Clone)]
pub struct DecisionContext {
    pub store: Arc<Store>,
    /// Locks per feed, so that requested changes of one feed are decided one after the other.
    pub changing: Arc<FeedLocks>,
    /// The running clock, by which retained data ages.
    pub running: Arc<dyn Clock>,
    /// The settings that may change while the gateway runs.
    pub settings: Arc<ArcSwap<PollSettings>>,
}

impl DecisionContext {
    /// Returns the most items that the feed's ledger retains.
    pub fn items_kept(&self, feed: &FeedRecord) -> usize {
        let own = feed.options.items.and_then(|items| usize::try_from(items).ok());
        own.unwrap_or_else(|| self.settings.load().items)
    }

    /// Converts a time of the running clock to the wall clock, which shows `now`.
    pub fn by_wall_clock(&self, at: Time, now: Time) -> Time {
        at.by_another_clock(self.running.now(), now)
    }

    /// Builds the input of a judgement.
    pub fn observe<'a>(
        &'a self,
        feed: &'a FeedRecord,
        snapshot: Option<&'a Snapshot>,
        now: Time,
    ) -> Observation<'a> {
        let PollSettings { window, tombstones, versions_per_day, archives, .. } =
            **self.settings.load();
        Observation {
            feed: &feed.name,
            url: &feed.url,
            endpoint: self.store.endpoint(),
            options: &feed.options,
            snapshot,
            now,
            aged: self.running.now(),
            window,
            tombstones,
            versions_per_day,
            items: self.items_kept(feed),
            archives,
        }
    }

    /// Reads the newest snapshot of a feed, with stubs of evicted items that bear one of these names
    /// ([`Store::stubs`]). A later eviction makes it outdated, and a commit over it is refused.
    pub async fn snapshot(
        &self,
        feed: &FeedName,
        names: &[String],
    ) -> Result<Option<Snapshot>, StoreError> {
        let Some(snapshot) = self.store.snapshot(feed).await? else { return Ok(None) };
        if names.is_empty() || snapshot.state.evictions.count == 0 {
            return Ok(Some(snapshot));
        }
        Ok(Some(snapshot.with_stubs(self.store.stubs(feed, names).await?)))
    }

    /// Reads the snapshot without the settled items of the ledger, and a reader for those; `None` if the ledger has no
    /// index.
    pub(super) async fn unsettled(
        &self,
        feed: &FeedName,
    ) -> Result<Option<(Snapshot, PinnedFeed)>, StoreError> {
        let Some(reader) = self.store.pin(feed).await? else { return Ok(None) };
        let cutoff = Tick::at(self.running.now().minus(self.settings.load().window));
        Ok(reader.unsettled(cutoff).await?.map(|snapshot| (snapshot, reader)))
    }

    /// Decides over the newest snapshot of a feed and commits; repeats if the feed changed meanwhile. Returns what was
    /// decided. Changes of one feed wait for each other. Fails with [`CommitError::Conflict`] if every attempt met a
    /// change or the lock was not available in time. `names`: the names of evicted items that matter.
    pub async fn decide_and_commit<T, E: From<StoreError> + From<CommitError>>(
        &self,
        feed: &FeedRecord,
        clock: &dyn Clock,
        names: &[String],
        decide: impl Fn(&Observation<'_>) -> Result<(Option<Change>, T), E>,
    ) -> Result<T, E> {
        let mut base = Revision::default();
        let Some(_lock) = self.wait_for_turn(&feed.name).await else {
            return Err(CommitError::Conflict(base).into());
        };
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let snapshot = self.snapshot(&feed.name, names).await?;
            let now = clock.now();
            let (change, decided) = decide(&self.observe(feed, snapshot.as_ref(), now))?;
            let Some(change) = change else { return Ok(decided) };
            base = change.base;
            if self.commit(change).await?.is_some() {
                return Ok(decided);
            }
        }
        Err(CommitError::Conflict(base).into())
    }

    /// Waits for the lock for changing a feed; `None` if too many wait or it takes too long.
    pub async fn wait_for_turn(&self, feed: &FeedName) -> Option<FeedLock> {
        // At most 128 wait, each for at most 20 seconds.
        self.changing.lock_within(feed, 128, Duration::from_secs(20)).await
    }

    /// Commits a change and returns the feed's new revision; `None` if the feed is not at the change's base revision
    /// any more.
    pub async fn commit(&self, change: Change) -> Result<Option<Revision>, CommitError> {
        let (feed, base) = (change.feed.clone(), change.base);
        let (tick, body) = (change.tick, change.state.body);
        match self.store.commit(change).await {
            Ok(committed) => Ok(Some(committed.revision)),
            Err(CommitError::Conflict(_)) => {
                // Another gateway's commit must be visible here before the change is decided anew.
                self.store.catch_up().await?;
                Ok(None)
            }
            // The store cannot tell: if stopped, it shows the state before the failure; with several gateways, the new
            // state may be another gateway's.
            Err(CommitError::Ambiguous(error))
                if self.store.condition().stop.is_some() || self.store.gateways().is_some() =>
            {
                Err(CommitError::Ambiguous(error))
            }
            Err(CommitError::Ambiguous(_)) => {
                let stored = self.store.state(&feed).await?;
                // Ticks are unique, so that ours proves that the change was stored.
                let is_ours = |stored: &FeedState| {
                    let is_told = tick.is_none() || stored.tick == tick;
                    stored.revision > base && stored.body == body && is_told
                };
                Ok(stored.filter(is_ours).map(|stored| stored.revision))
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{record, state, store_of};
    use crate::testing::gateway::{Gateway, Publisher};
    use tidegate_core::model::BodyPrints;
    use tidegate_status::PollEnding;
    use tokio_util::sync::CancellationToken;

    fn touch(observation: &Observation<'_>) -> Result<(Option<Change>, ()), CommitError> {
        let state = state(observation.snapshot, BodyPrints { wire: 1, body: 1 }, observation.now);
        let base = observation.snapshot.map_or(Revision(0), |it| it.state.revision);
        let tick = state.tick;
        let change = Change::of_state(observation.feed.clone(), base, observation.now, state);
        Ok((Some(Change { tick, ..change }), ()))
    }

    #[tokio::test]
    async fn all_who_change_a_feed_at_the_same_time_have_their_turn() {
        let gateway = Gateway::start(&store_of(&[]), &Publisher::new("one")).await;
        // Hold each commit until all others have decided.
        let gate = gateway.store.hold_commits();
        let change = || {
            let (decisions, clock) = (gateway.poller.decisions().clone(), gateway.clock.clone());
            tokio::spawn(async move {
                decisions.decide_and_commit(&record("local"), &clock, &[], touch).await
            })
        };
        let changes: Vec<_> = (0..24).map(|_| change()).collect();
        while !changes.iter().all(tokio::task::JoinHandle::is_finished) {
            if gate.available_permits() == 0 {
                gate.add_permits(1);
            }
            tokio::task::yield_now().await;
        }
        for change in changes {
            change.await.unwrap().unwrap();
        }
        assert_eq!(gateway.store.writes().0, 24);
    }

    #[tokio::test]
    async fn a_poll_has_its_turn_as_well_while_others_change_its_feed_all_the_time() {
        let gateway = Gateway::with_news("one").await;
        let is_over = CancellationToken::new();
        let changes: Vec<_> = (0..3)
            .map(|_| {
                let (decisions, clock) =
                    (gateway.poller.decisions().clone(), gateway.clock.clone());
                let is_over = is_over.clone();
                tokio::spawn(async move {
                    let news = record("news");
                    while !is_over.is_cancelled() {
                        let changed = decisions.decide_and_commit(&news, &clock, &[], touch).await;
                        changed.unwrap();
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        gateway.publisher.says("two", "2");
        let report = gateway.poll().await;
        is_over.cancel();
        assert_eq!((report.outcome, report.error), (PollEnding::Changed, None));
        for change in changes {
            change.await.unwrap();
        }
    }
}
