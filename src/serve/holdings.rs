//! What is kept of a feed, what it takes, and the limits on both, for people and programs.

use super::answers::{Interval, duration, retired};
use super::html::{self, moment};
use super::{AppState, Cache};
use maud::{Markup, html};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Publish;
use tidegate_core::model::{
    ArchiveNote, FeedName, FeedState, ItemStatus, LedgerEntry, Revision, Snapshot, SyncId, Time,
    counted, shown_size,
};
use tidegate_store::{Holdings, StoreError};
use utoipa::ToSchema;

/// Ages from here on are said to be for ever: a hundred years.
const FOR_EVER: Duration = Duration::from_secs(36_525 * 86_400);

/// How long the counts of an unchanged feed are reused: counting reads all that is kept of it, and anybody may ask for
/// it.
pub(super) const COUNTED_FRESH: Duration = Duration::from_secs(60);
/// How many feeds have their counts remembered.
pub(super) const COUNTED_FEEDS: u64 = 1024;

/// The counts of feeds, by feed and revision.
pub(super) type CountedHoldings = Cache<(FeedName, Revision), Holdings>;

/// What is kept of a feed in this state.
pub(super) async fn count(
    app: &AppState,
    feed: &FeedName,
    state: Option<&FeedState>,
) -> Result<Arc<Holdings>, StoreError> {
    let key = state.map(|state| (feed.clone(), state.revision));
    if let Some(counted) = key.as_ref().and_then(|key| app.holdings.get(key)) {
        return Ok(counted);
    }
    let counted = Arc::new(app.store.holdings(feed).await?);
    key.into_iter().for_each(|key| app.holdings.insert(key, Arc::clone(&counted)));
    Ok(counted)
}

/// The part of the page about a feed.
pub(super) fn part(
    (feed, missing): (&FeedName, u32),
    state: &FeedState,
    kept: &KeptAnswer,
    oldest: Option<&ArchiveNote>,
) -> Markup {
    let (chain, limits) = (&state.archives, &kept.limits);
    let limits_yield = chain.kept() > limits.archives
        || limits.archive_bytes.is_some_and(|most| chain.bytes > most && chain.kept() > 1);
    html! {
        h2 #kept { "What is kept" }
        dl.facts {
            dt { "Items" }
            dd { (state.living) " kept: " (state.current) " current, " (missing) " missing, "
                (retired(state, missing)) " retired; "
                (counted(state.tombstones, "tombstone"))
                @if let Some(since) = state.evictions.since.filter(|_| state.evictions.count > 0) {
                    br; span.quiet {
                        (state.evictions.count) " of the oldest left the complete view, the first "
                        (moment(since)) ": they are in archives alone" }
                } }
            dt { "Versions" }
            dd { (kept.versions) ", " (shown_size(kept.version_bytes)) br;
                span.quiet { "At most " (limits.versions) " of an item"
                    @if let Some(age) = &limits.versions_age { ", for " (age) " after the next one came" }
                    ". The newest stays." } }
            dt { "Past documents" }
            dd { (kept.past_documents) ", " (shown_size(kept.past_document_bytes))
                @if let Some(back_to) = kept.back_to {
                    "; the feed can be read back to "
                    a href={ "/feeds/" (feed) "?as-of=" (back_to) } { (moment(back_to)) }
                }
                br; span.quiet { "With the versions at most " (shown_size(limits.versions_bytes)) "." } }
            dt { "Archives" }
            dd {
                (chain.kept()) ", " (shown_size(chain.bytes)) "; "
                (counted(chain.unsealed, "version")) " in none yet"
                @if chain.first > 0 { "; " (chain.first) " were dropped" }
                @if let Some(oldest) = oldest {
                    br; "The oldest is of "
                    a href={ "/feeds/" (feed) "/archive/" (oldest.id) } { (moment(oldest.sealed)) }
                    @if let Some(newest) = chain.newest.as_ref().filter(|id| **id != oldest.id) {
                        ", here is the "
                        a href={ "/feeds/" (feed) "/archive/" (newest) } { "newest" }
                    }
                }
                br; span.quiet { "At most " (limits.archives) " of " (counted(limits.archive_entries, "entry"))
                    @if let Some(bytes) = limits.archive_bytes { ", " (shown_size(bytes)) }
                    @if let Some(age) = &limits.archive_age { ", for " (age) }
                    "; the oldest go first." }
                @if limits_yield {
                    br; span.quiet { "There are more, because what lives stands in them." }
                }
            }
        }
    }
}

/// What is kept of a feed, with the limits.
#[derive(Serialize, ToSchema)]
#[schema(as = Kept)]
pub(super) struct KeptAnswer {
    versions: u64,
    version_bytes: u64,
    past_documents: u64,
    past_document_bytes: u64,
    archives: Option<u64>,
    archive_bytes: Option<u64>,
    oldest_archive: Option<Time>,
    /// How far back the feed can be read.
    back_to: Option<Time>,
    limits: KeptLimits,
}

#[derive(Serialize, ToSchema)]
struct KeptLimits {
    versions: usize,
    #[schema(value_type = Option<Interval>)]
    versions_age: Option<String>,
    versions_bytes: u64,
    archive_entries: u32,
    archives: u64,
    #[schema(value_type = Option<Interval>)]
    archive_age: Option<String>,
    archive_bytes: Option<u64>,
}

impl KeptAnswer {
    /// What is kept of a feed, of which this was counted. `oldest`: its oldest archive.
    pub(super) fn new(
        counted: &Holdings,
        state: Option<&FeedState>,
        oldest: Option<&ArchiveNote>,
        Publish { archives, past, .. }: &Publish,
    ) -> Self {
        Self {
            versions: counted.versions,
            version_bytes: counted.version_bytes,
            past_documents: counted.documents,
            past_document_bytes: counted.document_bytes,
            archives: state.map(|state| state.archives.kept()),
            archive_bytes: state.map(|state| state.archives.bytes),
            oldest_archive: oldest.map(|oldest| oldest.sealed),
            back_to: counted.back_to,
            limits: KeptLimits {
                versions: past.versions,
                versions_age: Some(past.age).filter(|age| *age < FOR_EVER).map(duration),
                versions_bytes: past.bytes,
                archive_entries: archives.entries,
                archives: archives.kept,
                archive_age: archives.age.map(duration),
                archive_bytes: archives.bytes,
            },
        }
    }
}

// Items that were discarded (SSE 1.0 section 4.1.2): in no view any more, and told of here.

/// The most that are listed.
const DISCARDED_SHOWN: usize = 100;

/// What was discarded of a feed.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Discarded {
    /// How many there are.
    count: usize,
    /// What went last first, at most 100.
    items: Vec<DiscardedItem>,
}

#[derive(Serialize, ToSchema)]
struct DiscardedItem {
    sync_id: SyncId,
    native_id: String,
    title: String,
    since: Time,
}

impl Discarded {
    /// What a feed of which this is kept discarded.
    pub(super) fn new(snapshot: Option<&Snapshot>) -> Self {
        let since = |known: &LedgerEntry| match known.standing {
            ItemStatus::Discarded { since } => Some(since),
            _ => None,
        };
        let known = snapshot.into_iter().flat_map(|snapshot| snapshot.known.iter());
        let mut all: Vec<_> = known.filter_map(|known| Some((since(known)?, known))).collect();
        all.sort_by_key(|(since, known)| (std::cmp::Reverse(*since), &known.id));
        let item = |(since, known): &(Time, &LedgerEntry)| DiscardedItem {
            sync_id: known.id.clone(),
            native_id: known.native_shown.clone(),
            title: known.title.clone(),
            since: *since,
        };
        Self { count: all.len(), items: all.iter().take(DISCARDED_SHOWN).map(item).collect() }
    }

    /// The part of the page about the feed; nothing where nothing was discarded.
    pub(super) fn part(&self, name: &FeedName) -> Markup {
        html! {
            @if self.count > 0 {
                h2 #discarded { "Discarded" }
                p.quiet {
                    "Changes of the publisher were missed, and its complete feed does not list these any \
                     more. No view shows them but archives, and nothing says that they were deleted."
                }
                ul { @for item in &self.items {
                    li { (html::item(name, &item.sync_id, &item.title)) span.quiet { " since " time { (item.since) } } }
                } }
                (html::shown_of(self.items.len(), self.count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{ArchiveId, Chain, Format, Tick, Time};

    #[test]
    fn everything_that_is_kept_is_named_with_its_limits() {
        let at = Time::from_unix;
        let mut state = FeedState::untouched(Format::Atom10, at(0));
        (state.living, state.current, state.tombstones) = (30, 10, 2);
        state.archives = Chain {
            newest: ArchiveId::new("new").ok(),
            first: 3,
            next: 10,
            unsealed: 4,
            bytes: 4096,
            ..Chain::default()
        };
        let oldest = ArchiveNote {
            number: 3,
            id: ArchiveId::new("old").unwrap(),
            previous: None,
            sealed: at(86_400),
            until: Tick::at(at(86_400)),
            entries: 1,
            deletions: 0,
            bytes: 100,
            redacted: None,
            dropped: false,
        };
        let kept = Holdings {
            versions: 44,
            version_bytes: 2048,
            documents: 5,
            document_bytes: 99,
            back_to: Some(at(0)),
        };
        let mut keeping = Publish::default();
        keeping.archives.age = Some(Duration::from_secs(90 * 86_400));
        let news = FeedName::new("news").unwrap();
        let page = |keeping: &Publish| {
            let kept = KeptAnswer::new(&kept, Some(&state), Some(&oldest), keeping);
            part((&news, 4), &state, &kept, Some(&oldest)).into_string()
        };
        let mut pages = vec![page(&keeping)];
        keeping.past.age = Duration::from_secs(7200);
        pages.push(page(&keeping));
        keeping.archives.kept = 6;
        pages.push(page(&keeping));
        insta::assert_snapshot!("keeping", pages.join("\n\n"));
    }
}
