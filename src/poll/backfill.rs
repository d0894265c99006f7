//! The walk through a publisher's older documents: fetches them one by one and commits their items.

use super::decide::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::feeds::FeedCell;
use super::judge::{DocumentJudge, LedgerReader};
use super::politeness::HostRank;
use super::polling::{PollContext, rate_pause, unless_it_breaks};
use super::scheduler::{SLICE, STORE_REST};
use super::walk;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Backfill, FeedName, FeedRecord, Revision, WalkStanding};
use tidegate_judge::record::Observation;
use tidegate_net::fetch::{self, FetchAnswer, FetchError, FetchRequest};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

/// The result of one step.
enum StepResult {
    /// A document was read; the feed's revision if anything was committed.
    Read(Option<Revision>),
    /// The next step is made after this pause.
    Wait(Duration),
    /// The walk waits for the feed's next poll.
    Idle,
}

/// Makes steps after `later`, until the walk ends or must wait for a poll of the feed. Each step waits in its host's
/// line like a poll, at a slower pace. `cancel`: the walk is given up, or polling stops.
pub(super) async fn walk(
    context: Arc<PollContext>,
    cell: Arc<FeedCell>,
    later: Duration,
    cancel: CancellationToken,
) {
    let mut wait = later;
    let walking = |cell: &FeedCell| {
        cell.lock().memory.state.backfill.clone().filter(|walk| walk.is_walking())
    };
    while walking(&cell).is_some() {
        let waiting = async {
            sleep(wait).await;
            context.until_open().await;
        };
        if cancel.run_until_cancelled(waiting).await.is_none() {
            return;
        }
        let feed = Arc::clone(&cell.lock().record);
        let Some(mut walk) = walking(&cell) else { return };
        let next = walk.next.as_deref().unwrap_or(&feed.url).to_owned();
        let pause = context.hosts.host(&next).pace.spacing.saturating_mul(walk::PAUSES);
        let pause = pause.max(context.settings.load().walk_pause);
        // Boxed, so that a waiting walk takes little memory.
        let result = Box::pin(make_step(&context, &feed, &mut walk, &next, &cancel));
        let result = unless_it_breaks(result).await;
        if cancel.is_cancelled() && matches!(result, Err(RoundError::Cancelled)) {
            return;
        }
        let is_idle = matches!(result, Ok(StepResult::Idle));
        wait = match result {
            Ok(StepResult::Wait(wait)) => wait.max(pause),
            Ok(StepResult::Read(_) | StepResult::Idle) => pause,
            // Another gateway was faster; repeat the step.
            Err(RoundError::Cancelled | RoundError::Overtaken) => pause,
            Err(ref error) if error.is_of_store(context.store.gateways().is_some()) => {
                let error = error.report();
                tracing::warn!(feed = %feed.name, error, "a step through older documents could not be stored");
                STORE_REST.max(pause)
            }
            Err(ref error) => {
                let error = error.report();
                tracing::error!(feed = %feed.name, error, "a step through older documents failed");
                Duration::from_secs(3600)
            }
        };
        let mut polling = cell.lock();
        if let Ok(StepResult::Read(Some(revision))) = result {
            polling.memory.moved_on(revision);
        }
        // A cancelled walk got its status from the code that cancelled it. A step finished while polling stops counts.
        let is_given_up = || cancel.is_cancelled() && !context.cancel.is_cancelled();
        if is_given_up() {
            return;
        }
        if result.is_ok() {
            log_progress(&feed.name, &walk);
            polling.memory.state.backfill = Some(walk);
        }
        drop(polling);
        context.table.remember_unless(&feed.name, &cell, Duration::ZERO, is_given_up);
        if is_idle || cancel.is_cancelled() {
            return;
        }
    }
}

fn log_progress(feed: &FeedName, walk: &Backfill) {
    let (documents, items) = (walk.documents, walk.items);
    match (&walk.standing, &walk.note) {
        (WalkStanding::Walking, Some(note)) => {
            tracing::info!(%feed, documents, items, note, "walking through older documents");
        }
        (WalkStanding::Walking, None) if documents.is_multiple_of(10) => {
            tracing::info!(%feed, documents, items, "walking through older documents");
        }
        (WalkStanding::Walking, None) => {}
        (standing, note) => {
            let (state, note) = (standing.name(), note.as_deref().unwrap_or_default());
            tracing::info!(%feed, state, documents, items, note, "the walk through older documents is over");
        }
    }
}

/// Reads and commits the document at `next`. An error is the gateway's own; failures of the publisher are noted in
/// `walk`.
async fn make_step(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    walk: &mut Backfill,
    next: &str,
    cancel: &CancellationToken,
) -> Result<StepResult, RoundError> {
    let slot = cancel.run_until_cancelled(context.hosts.slot(next, HostRank::Usual)).await;
    // Held until a pause that the host asks for is recorded.
    let _slot = match slot.ok_or(RoundError::Cancelled)? {
        Ok(slot) => slot,
        Err(left) => {
            let note = "it waits, because the host asked for a pause (Retry-After)";
            walk.note = Some(note.to_owned());
            return Ok(StepResult::Wait(left + SLICE));
        }
    };
    let error = match read_and_commit(context, feed, walk, cancel).await {
        Err(error @ (RoundError::Cancelled | RoundError::Overtaken)) => return Err(error),
        // The publisher is not to blame: the walk stays where it was.
        Err(error) if error.is_of_store(context.store.gateways().is_some()) => return Err(error),
        Err(error) => error,
        result => return result,
    };
    if let Some(pause) = error.pause(next) {
        context.hosts.pause(&pause);
    }
    let status = error.failure().status;
    let now = context.clock.now();
    let wait = walk::fail(walk, &error.describe(), (status, error.retry()), now);
    Ok(wait.map_or(StepResult::Read(None), StepResult::Wait))
}

async fn read_and_commit(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    walk: &mut Backfill,
    cancel: &CancellationToken,
) -> Result<StepResult, RoundError> {
    let state = context.store.state(&feed.name).await?;
    let Some(state) = state else {
        walk.note = Some("it waits for the feed's first document".to_owned());
        return Ok(StepResult::Idle);
    };
    if state.hold.is_some() {
        walk.note = Some("it waits while a document of the feed is held".to_owned());
        return Ok(StepResult::Idle);
    }
    let now = context.clock.now();
    if feed.options.complete || state.says_complete {
        let note = "the feed lists everything, so that nothing is older";
        walk::end(walk, WalkStanding::Done, note, now);
        return Ok(StepResult::Read(None));
    }
    let asked_at = Some(now);
    let url = without_credentials(walk.next.as_deref().unwrap_or(&feed.url));
    let request = FetchRequest::whole(url, now).for_feed(feed, context.leads_of(feed).await?);
    let fetched = cancel.run_until_cancelled(context.fetch().oneshot(request)).await;
    let fetched = fetched.ok_or(RoundError::Cancelled)??;
    if let Some(pause) = rate_pause(&fetched) {
        context.hosts.pause(&pause);
    }
    let FetchAnswer::Document(older) = fetched.answer else {
        return Err(FetchError::Unasked304.into());
    };
    let length = u64::try_from(older.bytes.len()).unwrap_or(u64::MAX);
    walk.bytes = walk.bytes.saturating_add(length);
    let (now, before) = (context.clock.now(), walk.clone());
    let document = older.bytes.clone();
    let decide =
        move |judge: &dyn DocumentJudge, observation: &Observation<'_>, ledger: &LedgerReader| {
            judge.backfill(observation, &older, &before, ledger)
        };
    let basis = DecisionBasis { document, asked_at, is_unsettled: false };
    let progress = decide_and_commit(context, feed, now, basis, decide).await?;
    let walked = progress.judged.walked.unwrap_or_default();
    walk.taken_bytes = walk.taken_bytes.saturating_add(walked.bytes);
    let brought = walk.next.is_some().then_some((walked.taken, walked.known));
    walk::go_on(walk, walked.signpost, brought, now);
    Ok(StepResult::Read(progress.after.map(|after| after.revision)))
}

/// Returns the address without credentials: a document must not choose the identity we present.
pub(super) fn without_credentials(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), |url| fetch::bare(&url))
}
