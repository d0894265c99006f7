//! What a round asks for beside a document whose publisher shares its items: the complete feed
//! (SSE 1.0 section 4.1), and whether another feed of this gateway knows what bears its name.

use super::backfill::without_credentials;
use super::decision::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::judge::{DocumentJudge, LedgerReader, READS_AT_ONCE, SharingContext, Wants};
use super::polling::{CommitProgress, PollContext};
use super::schedule::describe_duration;
use futures_util::future::try_join_all;
use std::sync::Arc;
use tidegate_core::model::{Count, FeedRecord, SyncId, Time, Update};
use tidegate_judge::record::{Issued, Observation};
use tidegate_net::fetch::{FetchAnswer, FetchLimits, FetchRequest, FetchedDocument, PauseRequest};
use tidegate_store::in_words;
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt as _;

/// The most looks into other feeds for one document. Its publisher decides how many items bear this gateway's name.
pub const MAX_LOOKS: usize = 50_000;

/// Judges a document, gets what the judgement waits for, and commits.
pub(super) async fn judge_and_commit(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    (asked_at, now): (Time, Time),
    seen: FetchedDocument,
) -> Result<CommitProgress, RoundError> {
    let seen = Arc::new(seen);
    let mut beside = SharingContext::default();
    let mut pause = None;
    // Each is waited for once, so that this ends.
    loop {
        // The complete feed that is read beside it may be the larger one.
        let complete = beside.complete.iter().flatten().map(|complete| &complete.bytes);
        let document = complete.chain([&seen.bytes]).max_by_key(|bytes| bytes.len());
        let document = document.cloned().unwrap_or_default();
        let basis = DecisionBasis { document, asked_at: Some(asked_at), is_unsettled: true };
        let (seen, known) = (Arc::clone(&seen), beside.clone());
        let decide =
            move |judge: &dyn DocumentJudge, round: &Observation<'_>, ledger: &LedgerReader| {
                judge.take_in(round, &seen, &known, ledger)
            };
        let mut settled = decide_and_commit(context, feed, now, basis, decide).await?;
        match &settled.judged.wants {
            Some(Wants::Complete(url)) if beside.complete.is_none() => {
                beside.complete = Some(complete_feed(context, feed, url, &mut pause).await);
            }
            Some(Wants::Issued(ids)) if beside.issued.is_none() => {
                beside.issued = Some(issued(context, feed, ids).await?);
            }
            _ => {
                settled.pause = pause;
                return Ok(settled);
            }
        }
    }
}

/// Reads the complete feed; where that fails, why. `pause`: what its host asks for.
async fn complete_feed(
    context: &PollContext,
    feed: &FeedRecord,
    url: &str,
    pause: &mut Option<PauseRequest>,
) -> Result<FetchedDocument, String> {
    if let Some(left) = context.hosts.paused(url) {
        let left = describe_duration(left);
        return Err(format!("its host asked for a pause (Retry-After), {left} of it are left"));
    }
    let request = FetchRequest::whole(without_credentials(url), context.clock.now());
    let mut request = request.for_feed(feed);
    request.leads = context.leads_of(feed).await.map_err(|error| in_words(&error))?;
    let fetched = context.fetch().oneshot(request).await;
    let fetched = fetched.map_err(|error| {
        *pause = error.pause(url);
        error.to_string()
    })?;
    match fetched.answer {
        FetchAnswer::Document(document) => Ok(document),
        _ => Err("it was answered as unchanged, though nothing of it is known".to_owned()),
    }
}

/// What this gateway did to items, as far as its store knows: the greatest sequence of its own updates. It lacks the
/// items for which there was no time or which would take too many looks: these are asked for again.
async fn issued(
    context: &PollContext,
    feed: &FeedRecord,
    ids: &[SyncId],
) -> Result<Issued, RoundError> {
    // Over PostgreSQL each takes some milliseconds, and the poll keeps its place meanwhile.
    let end = Instant::now() + FetchLimits::STANDARD.total;
    // A purged feed of this name left how often items were updated in it at most.
    let state = context.store.state(&feed.name).await?;
    let before = context.store.purged_updates(&feed.name).await?;
    let before = before.max(state.map_or(0, |state| state.updates_before));
    let before = Count::new(before).ok();
    let others = context.store.feed_list().await?;
    let others: Vec<_> = others.values().filter(|other| other.name != feed.name).collect();
    let mut issued = Issued::new();
    let mut looks = 0_usize;
    // Each time from another one on: what is looked up in vain keeps none of the others out for good.
    let first = usize::try_from(context.clock.now().unix()).unwrap_or_default() % ids.len().max(1);
    for id in ids.iter().cycle().skip(first).take(ids.len()) {
        // The complete feed may have it as well.
        if issued.contains_key(id) {
            continue;
        }
        // One item is looked for however many feeds there are.
        if looks.saturating_add(others.len()) > MAX_LOOKS && looks > 0 {
            break;
        }
        looks = looks.saturating_add(others.len());
        let looking = greatest_issued(context, feed, &others, id);
        // What only some of the feeds say would be taken for all that this gateway did.
        let Ok(greatest) = timeout_at(end, looking).await else { break };
        issued.insert(id.clone(), before.max(greatest?));
    }
    Ok(issued)
}

/// The greatest sequence of this gateway's own updates of an item. Other feeds know of it, and the kept versions of
/// this one: an update of ours that lost is in no history here where the item has `noconflicts`, or where another
/// endpoint cut it off (section 3.2), and comes back all the same with a version that was made upon it.
async fn greatest_issued(
    context: &PollContext,
    feed: &FeedRecord,
    others: &[&Arc<FeedRecord>],
    id: &SyncId,
) -> Result<Option<Count>, RoundError> {
    let own = context.store.endpoint();
    let mut greatest: Option<Count> = None;
    for others in others.chunks(READS_AT_ONCE) {
        let reads = others.iter().map(|other| context.store.known(&other.name, id));
        for known in try_join_all(reads).await?.into_iter().flatten() {
            greatest = greatest.max(Update::greatest_by(own, known.history.iter()));
        }
    }
    // From the newest.
    let kept = context.store.versions(&feed.name, id, 1000).await?;
    let kept = kept.iter().map(|note| &note.update);
    Ok(greatest.max(Update::greatest_by(own, kept)))
}
