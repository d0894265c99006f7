//! Where every change of a feed is decided over its newest snapshot and committed, and decided anew
//! where the feed changed meanwhile.

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

/// How often a change is decided because the feed changed under the last decision.
pub const MAX_COMMIT_ATTEMPTS: u32 = 5;

/// What decisions are made with, the same for polls, operators and upkeep.
#[derive(Clone)]
pub struct DecisionContext {
    pub store: Arc<Store>,
    /// Who decides on what somebody asks for, feed by feed: over what the one before has committed.
    pub changing: Arc<FeedLocks>,
    /// By which everything that is kept ages.
    pub running: Arc<dyn Clock>,
    /// What may change while the gateway runs.
    pub settings: Arc<ArcSwap<PollSettings>>,
}

impl DecisionContext {
    /// The most items that the ledger of a feed keeps.
    pub fn items_kept(&self, feed: &FeedRecord) -> usize {
        let own = feed.options.items.and_then(|items| usize::try_from(items).ok());
        own.unwrap_or_else(|| self.settings.load().items)
    }

    /// A moment of the running time by the wall clock, which shows `now`.
    pub fn by_wall_clock(&self, at: Time, now: Time) -> Time {
        at.by_another_clock(self.running.now(), now)
    }

    /// An observation of a feed.
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

    /// The newest snapshot of a feed, with what left its ledger and bears or bore one of these names
    /// ([`Store::stubs`]). Whatever leaves meanwhile makes it outdated, and a commit over it is refused.
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

    /// The same without the settled items of the ledger, where it has an index; and what reads these.
    pub(super) async fn unsettled(
        &self,
        feed: &FeedName,
    ) -> Result<Option<(Snapshot, PinnedFeed)>, StoreError> {
        let Some(reader) = self.store.pin(feed).await? else { return Ok(None) };
        let cutoff = Tick::at(self.running.now().minus(self.settings.load().window));
        Ok(reader.unsettled(cutoff).await?.map(|snapshot| (snapshot, reader)))
    }

    /// Decides over the newest snapshot of a feed and commits, anew where the feed changed meanwhile;
    /// answers what was decided. Changes of one feed are made one after the other, or each would be decided anew after
    /// each other one. The error is [`CommitError::Conflict`] where it changed under every attempt, or
    /// its turn does not come. `names`: of what may have left the ledger, those that the decision is about.
    pub async fn decide_and_commit<T, E: From<StoreError> + From<CommitError>>(
        &self,
        feed: &FeedRecord,
        clock: &dyn Clock,
        names: &[String],
        decide: impl Fn(&Observation<'_>) -> Result<(Option<Change>, T), E>,
    ) -> Result<T, E> {
        let mut base = Revision::default();
        let Some(_turn) = self.wait_for_turn(&feed.name).await else {
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

    /// Waits for the turn to change a feed: what others ask for is decided before or after it. `None` where it does not
    /// come in time.
    pub async fn wait_for_turn(&self, feed: &FeedName) -> Option<FeedLock> {
        // Behind so many others, and for so long.
        self.changing.lock_within(feed, 128, Duration::from_secs(20)).await
    }

    /// Commits a change; the feed's new revision, or `None` where the feed is another one than the
    /// change was decided over.
    pub async fn commit(&self, change: Change) -> Result<Option<Revision>, CommitError> {
        let (feed, base) = (change.feed.clone(), change.base);
        let (tick, body) = (change.tick, change.state.body);
        match self.store.commit(change).await {
            Ok(committed) => Ok(Some(committed.revision)),
            Err(CommitError::Conflict(_)) => {
                // What another gateway wrote meanwhile has to be seen here before it is decided anew.
                self.store.catch_up().await?;
                Ok(None)
            }
            // What a store that has stopped says of the feed is from before the failure; where other gateways write, what
            // is there may be theirs.
            Err(CommitError::Ambiguous(error))
                if self.store.condition().stop.is_some() || self.store.gateways().is_some() =>
            {
                Err(CommitError::Ambiguous(error))
            }
            Err(CommitError::Ambiguous(_)) => {
                let stored = self.store.state(&feed).await?;
                // Ticks are never given twice, so that ours tells whether the change is in.
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

    /// Changes the state of a feed.
    fn touch(round: &Observation<'_>) -> Result<(Option<Change>, ()), CommitError> {
        let state = state(round.snapshot, BodyPrints { wire: 1, body: 1 }, round.now);
        let base = round.snapshot.map_or(Revision(0), |it| it.state.revision);
        let tick = state.tick;
        let change = Change::of_state(round.feed.clone(), base, round.now, state);
        Ok((Some(Change { tick, ..change }), ()))
    }

    #[tokio::test]
    async fn all_who_change_a_feed_at_the_same_time_have_their_turn() {
        let gateway = Gateway::start(&store_of(&[]), &Publisher::new("one")).await;
        // Whoever commits waits until everybody else has decided who may.
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
