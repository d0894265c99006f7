//! Taking in an older document of a publisher: what it lists and nobody knows becomes items that
//! were never new.
//!
//! They are retired from the beginning: in the complete feed, in the sync view as created versions
//! (a subscriber must not miss them) and in the archive that the same commit seals, and never in the
//! reader view. Nothing else is concluded from such a document: what is known is newer, no absence
//! is judged, and nothing is held.

use super::draft::{ChangeDraft, EventDetails};
use super::mint::NewIds;
use super::{Observation, ObservationError, Verdict, check_size, redacted_filter};
use crate::same_item;
use foldhash::{HashMap, HashSet, HashSetExt as _};
use tidegate_core::model::{EventKind, FeedDocument, ItemStatus, LedgerEntry};
use tidegate_core::xml::plain_address::{hostless, plain_link};

/// What an older document brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backfilled {
    /// What to commit.
    pub verdict: Verdict,
    /// Entries that were taken in.
    pub taken: u32,
    /// Entries that were known already.
    pub known: u32,
}

/// Takes in an older document. `is_gone`: whether a newer document said that the entry of this id
/// was deleted.
pub fn backfill(
    observation: &Observation<'_>,
    document: &FeedDocument<'_>,
    is_gone: impl Fn(&str) -> bool,
) -> Result<Backfilled, ObservationError> {
    let Some(snapshot) = observation.snapshot else { return Ok(Backfilled::default()) };
    // What was redacted stands in older documents as well.
    let rest = redacted_filter::without(observation, snapshot, document);
    let document = rest.as_ref().unwrap_or(document);
    let names = same_item::natives(document);
    let known = OlderNames::new(&snapshot.known);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut fresh = Vec::new();
    let mut found = 0_u32;
    for (entry, native) in document.entries.iter().zip(&names) {
        let shown = native.as_str();
        // What is shared comes with the complete feed, under its own id.
        if entry.sync.is_some() {
            continue;
        }
        if known.has(shown, entry.link.as_deref()) {
            found = found.saturating_add(1);
        } else if !is_gone(shown) && seen.insert(shown) {
            fresh.push((entry, native));
        }
    }
    check_size(snapshot.known.len() + fresh.len())?;
    let mut draft = ChangeDraft::new(observation, snapshot);
    draft.seals_now = !fresh.is_empty();
    let mut ids = NewIds::new(&draft);
    let mut taken = 0_u32;
    // From the last to the first, so that what stands above, the newer, is made later.
    for (entry, native) in fresh.into_iter().rev() {
        let Ok(known) = ids.newcomer(&draft, entry, native) else { continue };
        let standing = ItemStatus::Retired { since: known.first_seen };
        let known = LedgerEntry { standing, ..known };
        let markup = tidegate_format::parse::own(document, entry);
        let reason = "in an older document of its publisher";
        draft.create(known, markup, EventDetails::new(EventKind::Backfilled, reason));
        taken = taken.saturating_add(1);
    }
    Ok(Backfilled { verdict: draft.into_verdict(None), taken, known: found })
}

/// The names by which items are known. An older document may name them as they were once.
struct OlderNames<'a> {
    ids: HashSet<&'a str>,
    hostless: HashSet<String>,
    /// How many items have a link.
    links: HashMap<String, u64>,
}

impl<'a> OlderNames<'a> {
    fn new(known: &'a [LedgerEntry]) -> Self {
        let names = |item: &'a LedgerEntry| {
            [&item.native_shown, &item.published_id].into_iter().chain(&item.aliases)
        };
        let ids: HashSet<&str> = known.iter().flat_map(names).map(String::as_str).collect();
        let hostless = ids.iter().filter_map(|name| hostless(name)).collect();
        let links = known.iter().filter_map(|item| item.link.as_deref()).map(plain_link);
        Self { ids, hostless, links: crate::count(links) }
    }

    /// Whether an entry is a known item: by its id, by its id but for scheme and host, or by a link
    /// that only one item has.
    fn has(&self, id: &str, link: Option<&str>) -> bool {
        self.ids.contains(id)
            || hostless(id).is_some_and(|id| self.hostless.contains(&id))
            || link.is_some_and(|link| self.links.get(&plain_link(link)) == Some(&1))
    }
}
