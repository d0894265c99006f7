//! Where every change of a feed is decided over its newest snapshot and committed, and decided anew
//! where the feed changed meanwhile.

use crate::archive;
use crate::clock::Clock;
use crate::model::{Change, FeedRecord, FeedState, Revision, Snapshot, Time};
use crate::record::Observation;
use crate::store::{Claim, CommitError, Store, StoreError};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How often a change is decided because the feed changed under the last decision.
pub const MAX_COMMIT_ATTEMPTS: u32 = 5;

/// What decisions are made with, the same for polls, operators and upkeep.
#[derive(Clone)]
pub struct DecisionContext {
    pub store: Arc<dyn Store>,
    /// The right to commit.
    pub claim: Arc<RwLock<Claim>>,
    /// How long changes stay in the sync view. Like the others it changes with a restart only, or what
    /// is polled, aged and shown would not agree.
    pub window: Duration,
    /// The most updates of one item in a day that make a version each.
    pub versions_per_day: u32,
    /// How archives are made and kept.
    pub archives: archive::Policy,
}

impl DecisionContext {
    /// The right to commit as it is now.
    pub fn claim(&self) -> Claim {
        self.claim.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An observation of a feed.
    pub fn observe<'a>(
        &'a self,
        feed: &'a FeedRecord,
        snapshot: Option<&'a Snapshot>,
        now: Time,
    ) -> Observation<'a> {
        Observation {
            feed: &feed.name,
            url: &feed.url,
            endpoint: self.store.endpoint(),
            options: &feed.options,
            snapshot,
            now,
            window: self.window,
            versions_per_day: self.versions_per_day,
            archives: self.archives,
        }
    }

    /// Decides over the newest snapshot of a feed and commits, anew where the feed changed meanwhile;
    /// answers what was decided. The error is [`CommitError::Conflict`] where it changed under every
    /// attempt.
    pub async fn decide_and_commit<T, E: From<StoreError> + From<CommitError>>(
        &self,
        feed: &FeedRecord,
        clock: &dyn Clock,
        decide: impl Fn(&Observation<'_>) -> Result<(Option<Change>, T), E>,
    ) -> Result<T, E> {
        let mut base = Revision::default();
        for _ in 0..MAX_COMMIT_ATTEMPTS {
            let snapshot = self.store.snapshot(&feed.name).await?;
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

    /// Commits a change; the feed's new revision, or `None` where the feed is another one than the
    /// change was decided over.
    pub async fn commit(&self, change: Change) -> Result<Option<Revision>, CommitError> {
        let (feed, base) = (change.feed.clone(), change.base);
        let (tick, body) = (change.tick, change.state.body);
        match self.store.commit(&self.claim(), change).await {
            Ok(committed) => Ok(Some(committed.revision)),
            Err(CommitError::Conflict(_)) => Ok(None),
            Err(CommitError::Ambiguous(_)) => {
                // Ticks are never given twice, so that ours tells whether the change is in.
                let is_ours = |stored: &FeedState| {
                    let is_told = tick.is_none() || stored.tick == tick;
                    stored.revision > base && stored.body == body && is_told
                };
                let stored = self.store.state(&feed).await?.filter(is_ours);
                Ok(stored.map(|stored| stored.revision))
            }
            Err(error) => Err(error),
        }
    }
}
