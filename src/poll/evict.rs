//! What leaves a feed with time; and what is left to leave its ledger after a poll, so that no publisher outruns the
//! limit.

use super::decision::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::judge::{DocumentJudge, Judged};
use super::ledger::LedgerReader;
use super::polling::{CommitProgress, PollContext};
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, Time};
use tidegate_judge::record::{self, EVICTED_AT_ONCE, Observation};

/// How many commits after a poll let items leave, at most: more than the largest document brings.
const MAX_COMMITS: usize = 8;
/// Beyond the limit by less than this part of it, items leave with the next commit.
const SLACK: usize = 100;

/// Lets changes leave the window of a feed, and what is too old its ledger and archives ([`record::age`]). As for a
/// document, a large ledger is read in the turn of large ones, and the decision is made where it may take its time.
pub(super) async fn age_feed(
    bench: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
) -> Result<CommitProgress, RoundError> {
    let decide = |_: &dyn DocumentJudge, round: &Observation<'_>, _: &dyn LedgerReader| {
        Ok(Judged { verdict: record::age(round), full: true, ..Judged::default() })
    };
    decide_and_commit(bench, feed, now, DecisionBasis::default(), decide).await
}

/// Lets items leave the ledger of a feed, in bounded portions, where a commit left it well beyond its limit.
pub(super) async fn evict_surplus(
    bench: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    now: Time,
    settled: &mut CommitProgress,
) -> Result<(), RoundError> {
    let kept = bench.decisions.items_kept(feed);
    for _ in 0..MAX_COMMITS {
        let Some(state) = bench.store.state(&feed.name).await? else { return Ok(()) };
        let all = state.living.saturating_add(state.tombstones);
        let over = usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(kept);
        if over <= (kept / SLACK).min(EVICTED_AT_ONCE) {
            return Ok(());
        }
        let aged = age_feed(bench, feed, now).await?;
        if !aged.committed {
            return Ok(());
        }
        settled.revision = aged.revision;
    }
    Ok(())
}
