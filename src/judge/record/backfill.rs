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
use crate::same_item::{self, Matching};
use foldhash::HashSet;
use tidegate_core::model::{EventKind, FeedDocument, ItemStatus, LedgerEntry};

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
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    is_gone: impl Fn(&str) -> bool,
) -> Result<Backfilled, ObservationError> {
    let Some(snapshot) = round.snapshot else { return Ok(Backfilled::default()) };
    // What was redacted stands in older documents as well.
    let rest = redacted_filter::without(round, snapshot, document);
    let document = rest.as_ref().unwrap_or(document);
    // What is shared comes with the complete feed, under its own id.
    let plain = document.entries.iter().filter(|entry| entry.sync.is_none());
    let document = &document.with_entries(plain.cloned().collect());
    let Matching { names, pairs, fresh, .. } =
        same_item::matching(snapshot, document, round.options);
    let known = pairs.iter().filter_map(|pair| names.get(pair.entry));
    let mut seen: HashSet<&str> = known.map(String::as_str).collect();
    let fresh = fresh.iter().filter_map(|at| document.entries.get(*at).zip(names.get(*at)));
    let fresh: Vec<_> =
        fresh.filter(|(_, native)| !is_gone(native) && seen.insert(native)).collect();
    check_size(snapshot.known.len() + fresh.len())?;
    let mut draft = ChangeDraft::new(round, snapshot);
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
    let known = u32::try_from(pairs.len()).unwrap_or(u32::MAX);
    Ok(Backfilled { verdict: draft.into_verdict(None), taken, known })
}
