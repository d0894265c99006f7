//! What a publisher's complete feed does not list any more, seen by a subscriber that is out of sync:
//! it is discarded (SSE 1.0 section 4.1.2, step 2.a.ii; READINGS 1, row 28).
//!
//! Why it is gone was said in changes that were missed, so no tombstone is made of it. It leaves all
//! views but archives, and the feed's own window begins anew, so that every subscriber reads the
//! complete feed and discards it too. Only what came from this publisher first is discarded, and only
//! after its complete feed was read whole.

use super::super::draft::{ChangeDraft, EventDetails};
use super::Peers;
use super::gap::is_id_of;
use crate::document::Braked;
use crate::same_item;
use foldhash::HashSet;
use tidegate_core::model::{
    Completeness, EndpointId, Entry, EventKind, FeedDocument, ItemStatus, LedgerEntry, Origin,
    Snapshot, SyncId,
};

/// Of fewer items than this, what a complete feed does not list is no share worth holding it for.
const LEAST_BEFORE_DISCARD: usize = 3;

/// Up to where the publisher is known, where a document says that its subscriber is out of sync
/// (section 4.1.2, step 2.a). The values are compared by their characters (section 2.1.4), which are in
/// the order of their bytes.
fn missed<'s>(snapshot: &'s Snapshot, document: &FeedDocument<'_>) -> Option<&'s str> {
    let known = snapshot.state.upstream_until.as_deref().filter(|known| !known.is_empty())?;
    let (since, _) = document.sharing.as_ref()?.bounds.as_ref()?;
    (since.as_str() > known).then_some(known)
}

/// Why what a complete feed does not list is discarded.
pub(in crate::record) const UNLISTED: &str =
    "its publisher's complete feed, which was read because changes were missed, does not list it";

/// Where the items stand that are to be discarded after a complete feed was merged, and why that feed is to be held
/// first.
pub(in crate::record) fn discarded(
    draft: &ChangeDraft<'_>,
    document: &FeedDocument<'_>,
    peers: &Peers<'_>,
) -> (Vec<usize>, Option<Braked>) {
    let observation = draft.observation;
    let (Some(snapshot), Some(complete)) = (observation.snapshot, peers.complete) else {
        return Default::default();
    };
    let Some(known) = missed(snapshot, document) else { return Default::default() };
    let is_whole =
        complete.completeness == Completeness::Full && document.completeness == Completeness::Full;
    let until = complete.sharing.as_ref().and_then(|sharing| sharing.bounds.as_ref());
    let is_current = until.is_some_and(|(_, until)| until.as_str() >= known);
    // What another address said up to then says nothing of this one.
    if !is_whole || !is_current || crate::record::has_moved(&snapshot.state, observation.url) {
        return Default::default();
    }
    let entries = || document.entries.iter().chain(&complete.entries);
    let ids: HashSet<&SyncId> =
        entries().filter_map(Entry::shared).map(|incoming| incoming.id()).collect();
    // One whose sync markup is broken, or not believed, is there all the same.
    let names: HashSet<String> = entries().map(same_item::native).collect();
    let all = draft.positions(|known| known.origin == Origin::Upstream && !known.is_deleted());
    let is_gone = |known: &LedgerEntry| {
        snapshot.state.source_since.is_none_or(|since| known.first_seen >= since)
            && !is_made_by(known, observation.endpoint)
            && !ids.contains(&known.id)
            && !names.contains(&known.native_shown)
            && !names.contains(&known.published_id)
    };
    let gone: Vec<usize> =
        all.iter().copied().filter(|at| draft.item(*at).is_some_and(is_gone)).collect();
    let braked = braked(draft, gone.len(), all.len(), complete.entries.is_empty());
    (gone, braked)
}

/// Why a complete feed is held first, where it lists nothing or little of what its publisher had.
fn braked(draft: &ChangeDraft<'_>, gone: usize, all: usize, empty: bool) -> Option<Braked> {
    let is_on = |kind: &str| !draft.observation.options.without.has(kind);
    let is_much = gone * 2 > all && all >= LEAST_BEFORE_DISCARD;
    if gone == 0 || !(is_much || gone == all) {
        return None;
    }
    let kind = if empty { "empty" } else { "shrunken" };
    let reason = format!(
        "the complete feed, which was read because changes were missed, does not list {gone} of the \
         {all} items that its publisher shared"
    );
    is_on(kind).then_some(Braked { kind, reason })
}

/// Whether an item was made or last updated by an endpoint (section 4.1.2, step 2.a.ii): its id is one
/// of the endpoint's, or its first or its topmost update is.
fn is_made_by(known: &LedgerEntry, own: &EndpointId) -> bool {
    let mut updates = known.history.iter();
    let topmost = updates.next();
    let first = updates.last().or(topmost);
    let is_own = |update: &tidegate_core::model::Update| update.stamp.by() == Some(own);
    topmost.is_some_and(is_own) || first.is_some_and(is_own) || is_id_of(&known.id, own)
}

/// Discards items, and begins the feed's own window anew.
pub(in crate::record) fn discard(draft: &mut ChangeDraft<'_>, gone: &[usize], reason: &str) {
    if gone.is_empty() {
        return;
    }
    let since = draft.observation.now;
    for &at in gone {
        draft.set_conflicts(at, Vec::new());
        draft.change(at, |item| {
            item.standing = ItemStatus::Discarded { since };
            item.absence = None;
        });
        draft.event(at, EventDetails::new(EventKind::Discarded, reason));
    }
    draft.begins_window = true;
    draft.shown_changed = true;
}
