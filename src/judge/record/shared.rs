//! Items that their publisher shares: merged (SSE 1.0 section 3.3), never compared.
//!
//! In one document some entries may be shared and others plain. The plain ones are judged as ever,
//! over a ledger without the shared items; what is shared goes by what it says of itself, so that
//! neither its look nor its absence proves anything.

mod datum;
mod discard;
mod gap;
mod merge;
mod offer;
mod order;
mod split;

pub(super) use datum::extras_of;
pub(super) use discard::{UNLISTED, discard, discarded};
pub(super) use merge::{Merging, merge};
pub(super) use offer::{Offer, OfferedBody};
pub(super) use order::{by_changes, by_update, listed, order};
pub(super) use split::{EntryOwner, SharedSplit, split_document, without};

use std::collections::{HashMap, HashSet};
use tidegate_core::model::{
    Count, Entry, FeedDocument, FeedState, ItemStatus, LedgerEntry, Origin, Snapshot, SyncId,
};

/// By how much `updates` may be greater than what is known of the item. A greater leap is not taken
/// in: an item whose numbers are used up can never be changed again. An item that is seen for the first
/// time may have any number (SSE 1.0 section 2.4: up to 2³¹−1), since whoever sends it first owns it and
/// can harm nothing but it; one that bears the name of this gateway may not, for its owner is this one.
pub const LEAP_LIMIT: u32 = 65_536;

/// What is known of the gateway's own updates elsewhere: of the items that were asked for the
/// greatest sequence that it issued.
pub type Issued = HashMap<SyncId, Option<Count>>;

/// What a round has beside the document itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peers<'a> {
    /// The complete feed that the document names, where it was read (section 4.1).
    pub complete: Option<&'a FeedDocument<'a>>,
    /// What other feeds of this gateway know of items that bear its own name.
    pub issued: Option<&'a Issued>,
}

/// Whether the complete feed is to be read first: at the first look, by a subscriber who is out of
/// sync (SSE 1.0 section 4.1.2 step 2), and where a document without `since` does not list an item
/// that it had or that was made here, or says that one is deleted. Such a document, as a reader view
/// is, has no tombstones: whoever shares both ways through it would never learn what the other deleted.
pub fn needs_complete(snapshot: Option<&Snapshot>, document: &FeedDocument<'_>) -> bool {
    let Some(sharing) = &document.sharing else { return false };
    if sharing.complete.is_none()
        || document.completeness != tidegate_core::model::Completeness::Full
    {
        return false;
    }
    let Some(snapshot) = snapshot else { return true };
    let Some(known) = &snapshot.state.upstream_until else { return true };
    match &sharing.bounds {
        // The values are compared by their characters (section 2.1.4), which are in the order of
        // their bytes.
        Some((since, _)) => since > known,
        None => is_one_missing(snapshot, document),
    }
}

fn is_one_missing(snapshot: &Snapshot, document: &FeedDocument<'_>) -> bool {
    let shared = document.entries.iter().filter_map(Entry::shared);
    let listed: HashSet<&SyncId> = shared.map(|incoming| incoming.id()).collect();
    let deleted_ids: HashSet<&str> =
        document.tombstones.iter().map(|t| t.native_id.as_str()).collect();
    let is_missing = |known: &LedgerEntry| {
        known.standing == ItemStatus::Current && !listed.contains(&known.id)
            || (!known.is_deleted() || known.standing.left_alive())
                && (deleted_ids.contains(known.published_id.as_str())
                    || deleted_ids.contains(known.native_shown.as_str()))
    };
    let is_theirs = |known: &&LedgerEntry| matches!(known.origin, Origin::Upstream | Origin::Local);
    snapshot.known.iter().filter(is_theirs).any(is_missing)
}

/// Notes how far the upstream is known now (section 4.1): the lesser of what the document and the
/// complete feed say (READINGS 1, row 28).
pub(super) fn catch_up(
    state: &mut FeedState,
    snapshot: Option<&Snapshot>,
    document: &FeedDocument<'_>,
    peers: &Peers<'_>,
) {
    let Some(sharing) = &document.sharing else {
        state.upstream_until = None;
        return;
    };
    let until = sharing.bounds.as_ref().map(|(_, until)| until.clone()).unwrap_or_default();
    match peers.complete {
        Some(complete) => {
            let whole = complete.sharing.as_ref().and_then(|sharing| sharing.bounds.as_ref());
            let known = whole.map_or(until.clone(), |(_, whole)| until.min(whole.clone()));
            state.upstream_until = Some(known);
        }
        // It was asked for and could not be had: the next look asks again.
        None if needs_complete(snapshot, document) => {}
        None if document.completeness != tidegate_core::model::Completeness::Full => {}
        None => state.upstream_until = Some(until),
    }
}
