//! A decision over a feed's newest snapshot, from the judgement permit to the commit.

use super::decide::MAX_COMMIT_ATTEMPTS;
use super::error::RoundError;
use super::judge::{DocumentJudge, JudgeError, Judged, LedgerReader};
use super::memory::NO_PRINTS;
use super::polling::{CommitProgress, PollContext};
use super::turns::{JudgeCost, is_large_ledger};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, FeedState, Snapshot, Time};
use tidegate_judge::record::{self, EVICTED_AT_ONCE, Observation};
use tidegate_store::PinnedFeed;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tracing::{Instrument as _, debug_span};

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

impl DecisionBasis {
    /// Decides without a document over the unsettled items.
    pub(super) fn unsettled() -> Self {
        Self { is_unsettled: true, ..Self::default() }
    }
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
    let cost = estimate_cost(context, feed, &basis).await?;
    let JudgeCost::Large(entries) = cost else {
        return decide_until_committed(context, feed, now, &basis, false, decide).await;
    };
    // Held until the commit.
    let _permit = wait_to_judge(context, cost).await?;
    let mark = context.attempts.begin(&feed.name, entries, now).await?;
    let progress = decide_until_committed(context, feed, now, &basis, true, decide).await;
    if let Some(mark) = mark {
        context.attempts.end(&mark).await?;
    }
    progress
}

/// Estimates the cost of judging; on a blocking thread for long documents.
async fn estimate_cost(
    context: &PollContext,
    feed: &FeedRecord,
    basis: &DecisionBasis,
) -> Result<JudgeCost, RoundError> {
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
    let estimate = move || JudgeCost::estimate(state.as_ref(), &document, has_index);
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
            lock = Box::pin(context.decisions.wait_for_turn(&feed.name)).await;
        }
        let (snapshot, reader) = if basis.is_unsettled {
            context.decisions.unsettled(&feed.name).await?.unzip()
        } else {
            (context.store.snapshot(&feed.name).await?, None)
        };
        let before = snapshot.as_ref().map(|snapshot| snapshot.state.clone());
        let permit = match has_permit {
            true => None,
            false => Some(wait_to_judge(context, JudgeCost::Usual).await?),
        };
        let judging = judge(context, feed, now, (snapshot, reader), Arc::clone(&decide));
        let judged = match permit {
            Some(permit) => context.turns.wait(permit, judging).await?,
            None => judging.await?,
        };
        let mut progress = CommitProgress::new(judged, before);
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

/// Waits for a permit to judge.
async fn wait_to_judge(
    context: &PollContext,
    cost: JudgeCost,
) -> Result<OwnedSemaphorePermit, RoundError> {
    context.turns.acquire(cost).await.map_err(|_| RoundError::Cancelled)
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
