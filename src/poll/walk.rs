//! The walk through a publisher's older documents: fetches them one by one and commits their items.
//!
//! It begins with the feed's own document, of which only the links count. It follows links from one older document to
//! the next, until there is none, they repeat, or a limit is met.

use super::decide::{DecisionBasis, decide_and_commit};
use super::error::RoundError;
use super::feeds::FeedCell;
use super::judge::{self, LedgerReader};
use super::politeness::HostRank;
use super::polling::{PollContext, rate_pause, unless_it_breaks};
use super::schedule::BUSY_PAUSE;
use super::scheduler::{SLICE, STORE_REST};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    ArchiveLayout, Backfill, FeedDocument, FeedName, FeedRecord, Older, Revision, Time,
    WalkStanding,
};
use tidegate_core::pause::GrowingPause;
use tidegate_judge::record::Observation;
use tidegate_net::fetch::{self, FetchAnswer, FetchError, FetchRequest, MAX_URL_BYTES, Retry};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The most older documents per walk.
pub const MAX_DOCUMENTS: u32 = 5_000;
/// The most decompressed bytes of documents per walk.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// The most items that one walk adds: the complete view lists them all.
pub const MAX_ITEMS: u32 = 50_000;
/// The most bytes of items that one walk adds, for the same reason; well below the memory for rendered documents.
pub const MAX_TAKEN_BYTES: u64 = 24 * 1024 * 1024;
/// The most consecutive failures of the next document.
pub const MAX_FAILURES: u32 = 6;
/// The pause between two documents of a walk, as a multiple of its host's spacing.
pub const SPACINGS_PER_DOCUMENT: u32 = 5;
/// The pause after failures; its maximum also limits `Retry-After`.
const RETRY_PAUSE: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(60), Duration::from_secs(24 * 3600));
/// The query parameter by which WordPress numbers its pages.
const PAGED: &str = "paged";

/// What a document says about older documents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArchiveLinks {
    /// The address and layout of the next older one.
    pub older: Option<(ArchiveLayout, String)>,
    /// A fingerprint of its list of entries.
    pub entries_hash: u64,
    pub has_entries: bool,
    /// Fingerprints of the ids in its tombstones.
    pub gone: Vec<u64>,
}

impl ArchiveLinks {
    /// Reads the links of a document. `url`: its requested address; `trail`: the layout of the walk, if known.
    pub fn from_document(
        document: &FeedDocument<'_>,
        url: &str,
        trail: Option<ArchiveLayout>,
    ) -> Self {
        let mut hash = Xxh3::new();
        for entry in &document.entries {
            let name = entry.native_id.as_deref().or(entry.link.as_deref());
            hash.update(name.or(entry.title.as_deref()).unwrap_or_default().as_bytes());
            hash.update(&[0]);
        }
        let walked = match trail {
            Some(ArchiveLayout::Archives) => Some(Older::Archives),
            Some(ArchiveLayout::Pages) => Some(Older::Pages),
            Some(ArchiveLayout::Numbered) | None => None,
        };
        let linked = document.head.links.older(walked).map(|(layout, at)| match layout {
            Older::Archives => (ArchiveLayout::Archives, at.to_owned()),
            Older::Pages => (ArchiveLayout::Pages, at.to_owned()),
        });
        let generator = document.head.generator.as_deref().unwrap_or_default();
        let is_word_press = generator.to_ascii_lowercase().contains("wordpress");
        let numbered = || Some((ArchiveLayout::Numbered, next_number(url)?));
        let older = match trail {
            Some(ArchiveLayout::Numbered) => numbered(),
            Some(_) => linked,
            None => linked.or_else(|| numbered().filter(|_| is_word_press)),
        };
        Self {
            older,
            entries_hash: hash.digest(),
            has_entries: !document.entries.is_empty(),
            gone: document.tombstones.iter().map(|gone| hash_text(&gone.native_id)).collect(),
        }
    }
}

/// Returns the address with the next page number.
fn next_number(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    let now = url.query_pairs().find(|(key, _)| key == PAGED).map(|(_, number)| number.parse());
    let next = match now {
        // The feed itself is page 1.
        None => 2,
        Some(Ok(number)) => u32::checked_add(number, 1)?,
        Some(Err(_)) => return None,
    };
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(key, _)| key != PAGED)
        .map(|(k, v)| (k.into(), v.into()))
        .collect();
    url.query_pairs_mut().clear().extend_pairs(others).append_pair(PAGED, &next.to_string());
    Some(url.into())
}

/// Returns the hash of an id or address.
pub fn hash_text(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

/// Continues after a document was read. `counts`: the number of new and of known items in an older document; `None`
/// for the feed's own document.
pub fn continue_walk(
    walk: &mut Backfill,
    links: ArchiveLinks,
    counts: Option<(u32, u32)>,
    now: Time,
) {
    (walk.failures, walk.note) = (0, None);
    remember_gone(walk, &links.gone);
    let repeats = walk.marks.contains(&links.entries_hash);
    remember(walk, links.entries_hash);
    let mut why = "the feed leads to no older documents";
    if let Some((taken, known)) = counts {
        walk.documents = walk.documents.saturating_add(1);
        walk.items = walk.items.saturating_add(taken);
        walk.known = walk.known.saturating_add(known);
        // Some sites answer any page number with the first or last page.
        let pages = walk.trail != Some(ArchiveLayout::Archives);
        if pages && (repeats || !links.has_entries) {
            return end(walk, WalkStanding::Done, "the pages came to their end", now);
        }
        why = "the last older document was read";
    }
    match links.older {
        Some((trail, next)) => follow_link(walk, trail, next, now),
        None => end(walk, WalkStanding::Done, why, now),
    }
}

fn follow_link(walk: &mut Backfill, trail: ArchiveLayout, next: String, now: Time) {
    if next.len() > MAX_URL_BYTES {
        let note = format!(
            "the next older document has an address of {} bytes, the limit is {MAX_URL_BYTES}",
            next.len()
        );
        return end(walk, WalkStanding::Done, &note, now);
    }
    let address = hash_text(&next);
    walk.trail = Some(trail);
    walk.next = Some(next);
    if walk.marks.contains(&address) {
        return end(walk, WalkStanding::Done, "the documents lead in a circle", now);
    }
    let limits = [
        (u64::from(walk.documents), u64::from(MAX_DOCUMENTS), "documents were read"),
        (walk.bytes, MAX_BYTES, "bytes were read"),
        (u64::from(walk.items), u64::from(MAX_ITEMS), "items were taken in"),
        (walk.taken_bytes, MAX_TAKEN_BYTES, "bytes of items were taken in"),
    ];
    if let Some((count, limit, what)) = limits.into_iter().find(|(count, limit, _)| count >= limit)
    {
        let note = format!("{count} {what}, the limit is {limit}");
        return end(walk, WalkStanding::Stopped, &note, now);
    }
    remember(walk, address);
}

/// Records a failure of the next document. Returns the pause before the retry; `None` if the walk ends.
pub fn fail(
    walk: &mut Backfill,
    error: &str,
    (status, retry): (Option<u16>, Retry),
    now: Time,
) -> Option<Duration> {
    walk.failures = walk.failures.saturating_add(1);
    let is_absent = matches!(status, Some(404 | 410));
    if is_absent && walk.trail == Some(ArchiveLayout::Numbered) && walk.next.is_some() {
        end(walk, WalkStanding::Done, "the pages came to their end", now);
        return None;
    }
    if is_absent || walk.failures >= MAX_FAILURES || retry == Retry::Seldom {
        let note = format!("{error}; what is only there or in older documents is missing");
        end(walk, WalkStanding::Stopped, &note, now);
        return None;
    }
    walk.note = Some(error.to_owned());
    let doubled = RETRY_PAUSE.after(walk.failures);
    let pause = match retry {
        Retry::After(pause) => pause,
        Retry::Busy => doubled.max(BUSY_PAUSE),
        Retry::Backoff | Retry::Seldom => doubled,
    };
    Some(pause.min(RETRY_PAUSE.most))
}

/// Ends a walk with a status and a note.
pub fn end(walk: &mut Backfill, standing: WalkStanding, note: &str, now: Time) {
    walk.standing = standing;
    walk.note = Some(note.to_owned());
    walk.ended = Some(now);
}

/// Starts a walk on request: continues one that was stopped, begins anew otherwise.
pub fn restart(before: Option<Backfill>, now: Time) -> Backfill {
    match before {
        Some(walk) if walk.is_walking() => walk,
        Some(walk) if walk.standing == WalkStanding::Stopped => Backfill {
            standing: WalkStanding::Walking,
            failures: 0,
            ended: None,
            documents: if walk.documents >= MAX_DOCUMENTS { 0 } else { walk.documents },
            bytes: if walk.bytes >= MAX_BYTES { 0 } else { walk.bytes },
            items: if walk.items >= MAX_ITEMS { 0 } else { walk.items },
            taken_bytes: if walk.taken_bytes >= MAX_TAKEN_BYTES { 0 } else { walk.taken_bytes },
            ..walk
        },
        _ => Backfill::begin(now),
    }
}

fn remember(walk: &mut Backfill, mark: u64) {
    walk.marks.insert(0, mark);
    walk.marks.truncate(Backfill::MARKS_KEPT);
}

fn remember_gone(walk: &mut Backfill, gone: &[u64]) {
    for id in gone {
        if walk.gone.len() < Backfill::GONE_KEPT && !walk.gone.contains(id) {
            walk.gone.push(*id);
        }
    }
}

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
pub(super) async fn take_steps(
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
        let pause = context.hosts.host(&next).pace.spacing.saturating_mul(SPACINGS_PER_DOCUMENT);
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
            polling.memory.note_foreign_commit(revision);
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
    let wait = fail(walk, &error.describe(), (status, error.retry()), now);
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
        end(walk, WalkStanding::Done, note, now);
        return Ok(StepResult::Read(None));
    }
    let asked_at = Some(now);
    let url = without_credentials(walk.next.as_deref().unwrap_or(&feed.url));
    let request = FetchRequest::whole(url, now).for_feed(feed, context.lead_scope(feed).await?);
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
    let decide = move |observation: &Observation<'_>, ledger: &LedgerReader| {
        judge::backfill(observation, &older, &before, ledger)
    };
    let basis = DecisionBasis { document, asked_at, is_unsettled: false };
    let progress = decide_and_commit(context, feed, now, basis, decide).await?;
    let walked = progress.judged.walked.unwrap_or_default();
    walk.taken_bytes = walk.taken_bytes.saturating_add(walked.bytes);
    let counts = walk.next.is_some().then_some((walked.taken, walked.known));
    continue_walk(walk, walked.links, counts, now);
    Ok(StepResult::Read(progress.after.map(|after| after.revision)))
}

/// Returns the address without credentials: a document must not choose the identity we present.
pub(super) fn without_credentials(address: &str) -> String {
    Url::parse(address).map_or_else(|_| address.to_owned(), |url| fetch::bare(&url))
}

#[cfg(test)]
mod tests;
