//! A decision over a feed's newest snapshot, from its turn to its commit.

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

/// What is decided over a snapshot, and what it lacks of its ledger.
type Decide = dyn Fn(&dyn DocumentJudge, &Observation<'_>, &LedgerReader) -> Result<Judged, JudgeError>
    + Send
    + Sync;

/// What a decision is made over.
#[derive(Default)]
pub(super) struct DecisionBasis {
    /// The bytes of what is decided on, where there are such.
    pub(super) document: Bytes,
    /// When the document was asked for, where there is one: one that was asked for later is not overtaken by it.
    pub(super) asked_at: Option<Time>,
    /// Whether the settled items of the ledger are read only where the decision asks for them.
    pub(super) is_unsettled: bool,
}

impl DecisionBasis {
    /// The items that are not settled.
    pub(super) fn unsettled() -> Self {
        Self { is_unsettled: true, ..Self::default() }
    }
}

/// Decides over the newest snapshot and commits; decides anew where the feed changed meanwhile. Where others change the feed again and again, they wait in the
/// end.
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
    let _turn = wait_to_judge(context, cost).await?;
    let mark = context.attempts.begin(&feed.name, entries, now).await?;
    let settled = decide_until_committed(context, feed, now, &basis, true, decide).await;
    if let Some(mark) = mark {
        context.attempts.end(&mark).await?;
    }
    settled
}

/// What judging takes. Where that takes its time, it is found out aside.
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

/// Judges and commits, again where the feed changed meanwhile. `has_turn`: the turn to judge is held; otherwise each
/// judgement has one.
async fn decide_until_committed(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    basis: &DecisionBasis,
    has_turn: bool,
    decide: Arc<Decide>,
) -> Result<CommitProgress, RoundError> {
    let mut alone = None;
    for attempt in 0..MAX_COMMIT_ATTEMPTS {
        // Others may change the feed meanwhile; after three times its turn to be changed is waited for.
        if attempt >= 3 && alone.is_none() {
            alone = Box::pin(context.decisions.wait_for_turn(&feed.name)).await;
        }
        let (snapshot, reader) = if basis.is_unsettled {
            context.decisions.unsettled(&feed.name).await?.unzip()
        } else {
            (context.store.snapshot(&feed.name).await?, None)
        };
        let before = snapshot.as_ref().map(|snapshot| snapshot.state.clone());
        let turn = match has_turn {
            true => None,
            false => Some(wait_to_judge(context, JudgeCost::Usual).await?),
        };
        let judging = judge(context, feed, now, (snapshot, reader), Arc::clone(&decide));
        let judged = match turn {
            Some(turn) => context.turns.wait(turn, judging).await?,
            None => judging.await?,
        };
        let mut settled = CommitProgress::new(judged, before);
        let Some(mut change) = settled.judged.verdict.change.take() else { return Ok(settled) };
        if !settled.judged.full {
            (change.state.wire, change.state.body) = (NO_PRINTS.wire, NO_PRINTS.body);
        }
        let (after, tick) = (change.state.clone(), change.tick.or(change.state.tick));
        // A gateway that is alone overtakes nobody, and its clock may be set back.
        change.asked_at = basis.asked_at.filter(|_| context.store.gateways().is_some());
        let committed = context.decisions.commit(change).instrument(debug_span!("commit")).await?;
        if let Some(revision) = committed {
            settled.after = Some(FeedState { revision, tick, ..after });
            return Ok(settled);
        }
    }
    Err(RoundError::Contended)
}

/// Waits for the turn to judge.
async fn wait_to_judge(
    context: &PollContext,
    cost: JudgeCost,
) -> Result<OwnedSemaphorePermit, RoundError> {
    context.turns.acquire(cost).await.map_err(|_| RoundError::Cancelled)
}

/// Lets the judge work where it may take its time. A judge that panics costs one poll. A large ledger is let go of
/// there as well.
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
        let round = shared.decisions.observe(&feed, snapshot.as_ref(), now);
        // The reader goes before the commit, which would keep what it might read.
        let (store, name) = (Arc::clone(&shared.store), feed.name.clone());
        let ledger = LedgerReader { store, feed: name, pinned: reader, runtime };
        decide(shared.judge.as_ref(), &round, &ledger)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(judged) => Ok(judged?),
        Err(error) => Err(RoundError::Defect(error.to_string())),
    }
}

/// Beyond the limit by less than this part of it, items leave with the next commit.
const SLACK: usize = 100;

/// Lets changes leave the window of a feed, and what is too old its ledger and archives ([`record::age`]). As for a
/// document, a large ledger is read in the turn of large ones, and the decision is made where it may take its time.
pub(super) async fn age_feed(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
) -> Result<CommitProgress, RoundError> {
    let decide = |_: &dyn DocumentJudge, round: &Observation<'_>, _: &LedgerReader| {
        Ok(Judged { verdict: record::age(round), full: true, ..Judged::default() })
    };
    decide_and_commit(context, feed, now, DecisionBasis::default(), decide).await
}

/// Lets items leave the ledger of a feed, in bounded portions, where a commit left it well beyond its limit.
pub(super) async fn evict_surplus(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    settled: &mut CommitProgress,
) -> Result<(), RoundError> {
    let kept = context.decisions.items_kept(feed);
    // More commits than the largest document brings.
    for _ in 0..8 {
        let Some(state) = context.store.state(&feed.name).await? else { return Ok(()) };
        let all = state.living.saturating_add(state.tombstones);
        let over = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(kept);
        if over <= (kept / SLACK).min(EVICTED_AT_ONCE) {
            return Ok(());
        }
        let aged = age_feed(context, feed, now).await?;
        let (Some(after), Some(aged)) = (&mut settled.after, aged.after) else { return Ok(()) };
        after.revision = aged.revision;
    }
    Ok(())
}
