//! Decides each change of a feed over its newest snapshot and commits it; decides anew if the feed changed meanwhile.

use super::PollSettings;
use super::error::RoundError;
use super::judge::{DocumentJudge, JudgeError, Judged, LedgerReader};
use super::memory::{NO_PRINTS, Turnover};
use super::permits::{count_large, is_large_ledger};
use super::polling::PollContext;
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    Change, EventKind, FeedName, FeedRecord, FeedState, Revision, Snapshot, Tick, Time,
};
use tidegate_judge::record::{self, EVICTED_AT_ONCE, Observation};
use tidegate_net::fetch::PauseRequest;
use tidegate_store::{CommitError, FeedLock, FeedLocks, PinnedFeed, Store, StoreError};
use tokio::runtime::Handle;
use tracing::{Instrument as _, debug_span};

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
            running_now: self.running.now(),
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
        let Some(_lock) = self.lock_feed(&feed.name).await else {
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
    pub async fn lock_feed(&self, feed: &FeedName) -> Option<FeedLock> {
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

/// A judgement and its effect on the stored feed.
pub(super) struct CommitProgress {
    pub(super) judged: Judged,
    pub(super) counts: BTreeMap<EventKind, u32>,
    pub(super) rewritten: u32,
    /// The feed before the judgement.
    pub(super) before: Option<FeedState>,
    /// The feed after the commit; `None` if nothing was committed.
    pub(super) after: Option<FeedState>,
    /// The pause that a host asked for in answer to a further request.
    pub(super) pause: Option<PauseRequest>,
}

impl CommitProgress {
    /// Returns the feed's current revision.
    pub(super) fn revision(&self) -> Revision {
        self.after.as_ref().or(self.before.as_ref()).map(|state| state.revision).unwrap_or_default()
    }

    /// Whether readers see a change.
    pub(super) fn is_shown(&self) -> bool {
        let renders = |after: &FeedState| {
            let before = self.before.as_ref().map(|before| before.render_revision);
            before != Some(after.render_revision)
        };
        self.after.as_ref().is_some_and(|after| renders(after) || !self.counts.is_empty())
    }

    /// Returns how much of the document was new; `None` if that tells nothing about missed items.
    pub(super) fn turnover(&self) -> Option<Turnover> {
        let before = self.before.as_ref().filter(|_| self.judged.full)?;
        Turnover::between(before, self.after.as_ref()?, &self.counts)
    }
}

/// Decides over a snapshot; the reader supplies the missing part of the ledger.
type Decide = dyn Fn(&dyn DocumentJudge, &Observation<'_>, &LedgerReader) -> Result<Judged, JudgeError>
    + Send
    + Sync;

/// The input of a decision.
#[derive(Default)]
pub(super) struct DecisionBasis {
    /// The bytes of the document to judge; empty if there is none.
    pub(super) document: Bytes,
    /// When the document was requested, to tell which of two gateways' documents is newer.
    pub(super) asked_at: Option<Time>,
    /// Whether settled items of the ledger are read only on demand.
    pub(super) is_unsettled: bool,
}

/// Decides over the newest snapshot and commits; repeats if the feed changed meanwhile. The last attempts hold the
/// feed's lock.
pub(super) async fn decide_and_commit(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    basis: DecisionBasis,
    decide: impl Fn(&dyn DocumentJudge, &Observation<'_>, &LedgerReader) -> Result<Judged, JudgeError>
    + Send
    + Sync
    + 'static,
) -> Result<CommitProgress, RoundError> {
    let decide: Arc<Decide> = Arc::new(decide);
    let Some(entries) = estimate_cost(context, feed, &basis).await? else {
        return decide_until_committed(context, feed, now, &basis, false, decide).await;
    };
    // Held until the commit.
    let _permit = context.judge_permits.large.acquire().await;
    let mark = context.attempts.begin(&feed.name, entries, now).await?;
    let progress = decide_until_committed(context, feed, now, &basis, true, decide).await;
    if let Some(mark) = mark {
        context.attempts.end(&mark).await?;
    }
    progress
}

/// Returns the approximate number of entries of a document whose judgement takes the permit of large ones; `None` for
/// others. Counts those of long documents on a blocking thread.
async fn estimate_cost(
    context: &PollContext,
    feed: &FeedRecord,
    basis: &DecisionBasis,
) -> Result<Option<usize>, RoundError> {
    let state = context.store.state(&feed.name).await?;
    let mut has_index = false;
    if basis.is_unsettled && state.as_ref().is_some_and(is_large_ledger) {
        let reader = context.store.pin(&feed.name).await?;
        has_index = match reader {
            Some(reader) => reader.has_index().await?,
            None => false,
        };
    }
    let document = basis.document.clone();
    let is_long = document.len() > 64 * 1024;
    let estimate = move || count_large(state.as_ref(), &document, has_index);
    if !is_long {
        return Ok(estimate());
    }
    let cost = tokio::task::spawn_blocking(estimate).await;
    cost.map_err(|error| RoundError::Defect(error.to_string()))
}

/// Judges and commits, again on conflict. `has_permit`: the caller holds a permit to judge; otherwise each judgement
/// takes one.
async fn decide_until_committed(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    basis: &DecisionBasis,
    has_permit: bool,
    decide: Arc<Decide>,
) -> Result<CommitProgress, RoundError> {
    let mut lock = None;
    for attempt in 0..MAX_COMMIT_ATTEMPTS {
        // After three conflicts, wait for the feed's lock.
        if attempt >= 3 && lock.is_none() {
            lock = Box::pin(context.decisions.lock_feed(&feed.name)).await;
        }
        let (snapshot, reader) = if basis.is_unsettled {
            context.decisions.unsettled(&feed.name).await?.unzip()
        } else {
            (context.store.snapshot(&feed.name).await?, None)
        };
        let before = snapshot.as_ref().map(|snapshot| snapshot.state.clone());
        let judging = judge(context, feed, now, (snapshot, reader), Arc::clone(&decide));
        let judged = match has_permit {
            true => judging.await?,
            false => context.judge_permits.run(judging).await?,
        };
        let (counts, rewritten) = (judged.verdict.counts(), judged.verdict.rewritten());
        let (after, pause) = (None, None);
        let mut progress = CommitProgress { judged, counts, rewritten, before, after, pause };
        let Some(mut change) = progress.judged.verdict.change.take() else { return Ok(progress) };
        if !progress.judged.full {
            (change.state.wire, change.state.body) = (NO_PRINTS.wire, NO_PRINTS.body);
        }
        let (after, tick) = (change.state.clone(), change.tick.or(change.state.tick));
        // A single gateway is never overtaken, and its clock may be set back.
        change.asked_at = basis.asked_at.filter(|_| context.store.gateways().is_some());
        let committed = context.decisions.commit(change).instrument(debug_span!("commit")).await?;
        if let Some(revision) = committed {
            progress.after = Some(FeedState { revision, tick, ..after });
            return Ok(progress);
        }
    }
    Err(RoundError::Contended)
}

/// Runs the judge on a blocking thread, where a large ledger is dropped as well. A panic of the judge fails only this
/// poll.
async fn judge(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    (snapshot, reader): (Option<Snapshot>, Option<PinnedFeed>),
    decide: Arc<Decide>,
) -> Result<Judged, RoundError> {
    let (shared, feed) = (Arc::clone(context), Arc::clone(feed));
    let runtime = Handle::current();
    let judging = debug_span!("judge");
    let work = move || {
        let _entered = judging.entered();
        let observation = shared.decisions.observe(&feed, snapshot.as_ref(), now);
        // The reader must be dropped before the commit; it pins the old data.
        let (store, name) = (Arc::clone(&shared.store), feed.name.clone());
        let ledger = LedgerReader { store, feed: name, pinned: reader, runtime };
        decide(shared.judge.as_ref(), &observation, &ledger)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(judged) => Ok(judged?),
        Err(error) => Err(RoundError::Defect(error.to_string())),
    }
}

/// Surplus items are evicted at once only beyond 1/[`SLACK`] of the limit; smaller surpluses leave with the next
/// commit.
const SLACK: usize = 100;

/// Drops changes that left the feed's window, and items that are too old from its ledger and archives
/// ([`record::age`]). A large ledger takes the permit of large documents.
pub(super) async fn age_feed(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
) -> Result<CommitProgress, RoundError> {
    let decide = |_: &dyn DocumentJudge, observation: &Observation<'_>, _: &LedgerReader| {
        Ok(Judged { verdict: record::age(observation), full: true, ..Judged::default() })
    };
    decide_and_commit(context, feed, now, DecisionBasis::default(), decide).await
}

/// Evicts items in bounded portions if a commit left the ledger well beyond its limit.
pub(super) async fn evict_surplus(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    progress: &mut CommitProgress,
) -> Result<(), RoundError> {
    let kept = context.decisions.items_kept(feed);
    // More commits than the largest document needs.
    for _ in 0..8 {
        let Some(state) = context.store.state(&feed.name).await? else { return Ok(()) };
        let all = state.living.saturating_add(state.tombstones);
        let over = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(kept);
        if over <= (kept / SLACK).min(EVICTED_AT_ONCE) {
            return Ok(());
        }
        let aged = age_feed(context, feed, now).await?;
        let (Some(after), Some(aged)) = (&mut progress.after, aged.after) else { return Ok(()) };
        after.revision = aged.revision;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{record, state};
    use crate::testing::gateway::Gateway;
    use tidegate_core::model::BodyPrints;
    use tidegate_status::PollEnding;
    use tokio::task::JoinHandle;
    use tokio_util::sync::CancellationToken;

    fn touch(observation: &Observation<'_>) -> Result<(Option<Change>, ()), CommitError> {
        let state = state(observation.snapshot, BodyPrints { wire: 1, body: 1 }, observation.now);
        let base = observation.snapshot.map_or(Revision(0), |it| it.state.revision);
        let tick = state.tick;
        let change = Change::of_state(observation.feed.clone(), base, observation.now, state);
        Ok((Some(Change { tick, ..change }), ()))
    }

    /// Changes the feed `news` until the test is over, and once at least.
    fn change(gateway: &Gateway, is_over: &CancellationToken) -> JoinHandle<()> {
        let (decisions, clock) = (gateway.poller.decisions().clone(), gateway.clock.clone());
        let is_over = is_over.clone();
        tokio::spawn(async move {
            loop {
                let feed = record("news");
                decisions.decide_and_commit(&feed, &clock, &[], touch).await.unwrap();
                if is_over.is_cancelled() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
    }

    #[tokio::test]
    async fn all_who_change_a_feed_at_the_same_time_have_their_turn() {
        let (gateway, is_over) = (Gateway::with_news("one").await, CancellationToken::new());
        let changes: Vec<_> = (0..3).map(|_| change(&gateway, &is_over)).collect();
        gateway.publisher.says("two", "2");
        let report = gateway.poll().await;
        is_over.cancel();
        assert_eq!((report.outcome, report.error), (PollEnding::Changed, None));
        for change in changes {
            change.await.unwrap();
        }
        // So have those that change it once.
        let before = gateway.store.writes().0;
        // Hold each commit until all others have decided.
        let gate = gateway.store.hold_commits();
        let changes: Vec<_> = (0..24).map(|_| change(&gateway, &is_over)).collect();
        while !changes.iter().all(JoinHandle::is_finished) {
            if gate.available_permits() == 0 {
                gate.add_permits(1);
            }
            tokio::task::yield_now().await;
        }
        for change in changes {
            change.await.unwrap();
        }
        assert_eq!(gateway.store.writes().0, before + 24);
    }
}
