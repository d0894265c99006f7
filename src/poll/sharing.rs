//! Further reads for a document whose publisher shares its items: the complete feed (SSE 1.0 section 4.1), and other
//! feeds' knowledge of items in this gateway's name.

use super::decide::{CommitProgress, DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::judge::{LedgerReader, READS_AT_ONCE, SharingContext, Wants, take_in};
use super::polling::PollContext;
use super::schedule::describe_duration;
use super::walk::without_credentials;
use futures_util::future::try_join_all;
use std::sync::Arc;
use tidegate_core::model::{Count, FeedRecord, SyncId, Time, Update};
use tidegate_judge::record::{Issued, Observation};
use tidegate_net::fetch::{FetchAnswer, FetchLimits, FetchRequest, FetchedDocument, PauseRequest};
use tidegate_store::in_words;
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt as _;

/// The most reads of other feeds for one document; its publisher decides how many items bear this gateway's name.
pub const MAX_LOOKS: usize = 50_000;

/// Judges a document, performs the reads that the judgement asks for, and commits.
pub(super) async fn judge_and_commit(
    context: &Arc<PollContext>,
    feed: &Arc<FeedRecord>,
    (asked_at, now): (Time, Time),
    fetched: FetchedDocument,
) -> Result<CommitProgress, RoundError> {
    let fetched = Arc::new(fetched);
    let mut sharing = SharingContext::default();
    let mut pause = None;
    // Ends, because each read is done once.
    loop {
        // The cost is that of the larger of the document and the complete feed.
        let complete = sharing.complete.iter().flatten().map(|complete| &complete.bytes);
        let document = complete.chain([&fetched.bytes]).max_by_key(|bytes| bytes.len());
        let document = document.cloned().unwrap_or_default();
        let basis = DecisionBasis { document, asked_at: Some(asked_at), is_unsettled: true };
        let (fetched, known) = (Arc::clone(&fetched), sharing.clone());
        let decide = move |observation: &Observation<'_>, ledger: &LedgerReader| {
            take_in(observation, &fetched, &known, ledger)
        };
        let mut progress = decide_and_commit(context, feed, now, basis, decide).await?;
        match &progress.judged.wants {
            Some(Wants::Complete(url)) if sharing.complete.is_none() => {
                sharing.complete = Some(fetch_complete_feed(context, feed, url, &mut pause).await);
            }
            Some(Wants::Issued(ids)) if sharing.issued.is_none() => {
                sharing.issued = Some(find_issued(context, feed, ids).await?);
            }
            _ => {
                progress.pause = pause;
                return Ok(progress);
            }
        }
    }
}

/// Fetches the complete feed; the error says why it failed. `pause`: receives the pause that its host asks for.
async fn fetch_complete_feed(
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
    let leads = context.lead_scope(feed).await.map_err(|error| in_words(&error))?;
    let fetched = context.fetch().oneshot(request.for_feed(feed, leads)).await;
    let fetched = fetched.map_err(|error| {
        *pause = error.pause(url);
        error.to_string()
    })?;
    match fetched.answer {
        FetchAnswer::Document(document) => Ok(document),
        _ => Err("it was answered as unchanged, though nothing of it is known".to_owned()),
    }
}

/// Returns the greatest sequence of this gateway's own updates for each item. Items beyond the limits of time and reads
/// are missing; they are asked for again.
async fn find_issued(
    context: &PollContext,
    feed: &FeedRecord,
    ids: &[SyncId],
) -> Result<Issued, RoundError> {
    // Bounded in time: on PostgreSQL each read takes milliseconds, and the poll holds its slot meanwhile.
    let end = Instant::now() + FetchLimits::STANDARD.total;
    // A purged feed of this name left an upper bound for the updates of its items.
    let state = context.store.state(&feed.name).await?;
    let before = context.store.purged_updates(&feed.name).await?;
    let before = before.max(state.map_or(0, |state| state.updates_before));
    let before = Count::new(before).ok();
    let others = context.store.feed_list().await?;
    let others: Vec<_> = others.values().filter(|other| other.name != feed.name).collect();
    let mut issued = Issued::new();
    let mut reads = 0_usize;
    // Rotate the start, so that slow lookups do not shut out the same items each time.
    let first = usize::try_from(context.clock.now().unix()).unwrap_or_default() % ids.len().max(1);
    for id in ids.iter().cycle().skip(first).take(ids.len()) {
        // The complete feed may contain the same item.
        if issued.contains_key(id) {
            continue;
        }
        // Look up at least one item, however many feeds there are.
        if reads.saturating_add(others.len()) > MAX_LOOKS && reads > 0 {
            break;
        }
        reads = reads.saturating_add(others.len());
        let lookup = find_greatest_issued(context, feed, &others, id);
        // Knowledge of only some feeds would be mistaken for the whole.
        let Ok(greatest) = timeout_at(end, lookup).await else { break };
        issued.insert(id.clone(), before.max(greatest?));
    }
    Ok(issued)
}

/// Returns the greatest sequence of this gateway's own updates of an item, from other feeds and from this feed's stored
/// versions. An own update that lost a conflict may be in no history: with `noconflicts`, or if another endpoint
/// removed it (section 3.2). It still comes back in versions based on it.
async fn find_greatest_issued(
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
    // Newest first.
    let kept = context.store.versions(&feed.name, id, 1000).await?;
    let kept = kept.iter().map(|note| &note.update);
    Ok(greatest.max(Update::greatest_by(own, kept)))
}
