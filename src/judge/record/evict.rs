//! What leaves the ledger, so that a feed does not grow without bound, and how it comes back.
//!
//! Beyond `publish.items` the oldest retired items leave, once an archive has their last state. Each
//! leaves a stub, which no snapshot has. So whoever judges a document asks the store first for the stubs
//! of what the snapshot does not know ([`unknown_names`]): these stand among what is known then, and come
//! back as themselves: as living items where the publisher lists them, as tombstones where it says that they
//! were deleted.

use super::draft::{ChangeDraft, EventDetails};
use super::{Observation, Verdict, mint, stand_in};
use crate::diff;
use crate::identity;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tidegate_core::model::{
    Deletions, EventKind, FeedDocument, History, ItemStatus, LedgerEntry, Markup, Origin, Seal,
    Stub, SyncId, Tick,
};
use tidegate_core::sync;

/// The most items of which nobody says otherwise that the ledger of a feed has, tombstones included.
pub const ITEMS_KEPT: usize = 100_000;
/// The most items that leave with one commit; the rest go with the next ones.
pub const EVICTED_AT_ONCE: usize = 10_000;
/// How long tombstones are kept where nobody says otherwise.
pub const TOMBSTONES_KEPT: Duration = Duration::from_secs(180 * 86_400);

/// The names of what documents list, or say was deleted, and the snapshot does not know, as far as they
/// were not asked for: the store has to be asked for their stubs before anything is judged. None where
/// nothing ever left the ledger.
pub fn unknown_names(
    round: &Observation<'_>,
    documents: &[&FeedDocument<'_>],
    asked: &HashSet<String>,
) -> Vec<String> {
    let Some(snapshot) = round.snapshot.filter(|snapshot| snapshot.state.evictions.count > 0)
    else {
        return Vec::new();
    };
    let natives: HashSet<&str> =
        snapshot.known.iter().map(|known| known.native_shown.as_str()).collect();
    let ids: HashSet<&SyncId> = snapshot.known.iter().map(|known| &known.id).collect();
    let tells_deletions = round.options.deletions != Deletions::Off;
    // A name that a document has more than once may be that of several items.
    let mut listed: HashMap<String, u32> = HashMap::new();
    let mut names = Vec::new();
    for document in documents {
        let mut times: HashMap<String, u32> = HashMap::new();
        for entry in &document.entries {
            *times.entry(identity::native(entry).shown).or_default() += 1;
            let shared = entry.shared().map(|said| said.id()).filter(|id| !ids.contains(id));
            names.extend(shared.map(SyncId::to_string));
        }
        let said = document.tombstones.iter().filter(|_| tells_deletions);
        let said = said.map(|tombstone| tombstone.native_id.as_str());
        names.extend(said.filter(|name| !natives.contains(name)).map(str::to_owned));
        for (name, times) in times {
            let most = listed.entry(name).or_default();
            *most = times.max(*most);
        }
    }
    for held in &snapshot.kept {
        listed.entry(identity::native(&held.entry).shown).or_insert(1);
    }
    for (name, times) in listed {
        if times == 1 && natives.contains(name.as_str()) {
            continue;
        }
        // What would be made of it, where it is new.
        names.extend(mint::first_sync_id(round, &name).map(|id| id.to_string()));
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !asked.contains(name));
    names
}

/// The sync ids that a verdict gives to new items, as far as they were not asked for: an item that left
/// may have had one, and it is never given out twice.
pub fn minted_names(
    round: &Observation<'_>,
    verdict: &Verdict,
    asked: &HashSet<String>,
) -> Vec<String> {
    let snapshot = round.snapshot.filter(|snapshot| snapshot.state.evictions.count > 0);
    let (Some(snapshot), Some(change)) = (snapshot, &verdict.change) else { return Vec::new() };
    let is_new = |known: &&LedgerEntry| snapshot.find(&known.id).is_none();
    let minted = change.known.iter().filter(is_new).map(|known| known.id.to_string());
    minted.filter(|name| !asked.contains(name)).collect()
}

impl ChangeDraft<'_> {
    /// Whether this commit could let items leave the ledger.
    pub(super) fn has_surplus(&self) -> bool {
        !self.surplus(&[]).is_empty()
    }

    /// Lets tombstones that are too old leave the ledger, and beyond the limit the oldest retired items and,
    /// where those are too few, the oldest tombstones: nothing that this commit changes or seals, that a
    /// reader is shown, that waits, is in conflict, or was made here.
    pub(super) fn evict(&mut self, seals: &[Seal]) -> Vec<Stub> {
        if !self.shown_changed {
            return Vec::new();
        }
        let now = self.round.now;
        let leaving = self.surplus(seals);
        let leaving = leaving.into_iter().filter_map(|at| self.snapshot.known.get(at));
        let stubs: Vec<Stub> = leaving.map(|known| Stub::new(known, cut(known), now)).collect();
        // Who is behind this learns that it is out of sync, and reads the complete feed.
        let last = stubs.iter().map(|stub| stub.tick).max();
        for start in [&mut self.state.window_start, &mut self.state.complete_start] {
            *start = (*start).max(last);
        }
        stubs
    }

    /// Where the items stand that are to leave.
    fn surplus(&self, seals: &[Seal]) -> Vec<usize> {
        if self.state.hold.is_some() || self.round.options.sharing.local {
            return Vec::new();
        }
        let settled = self.snapshot.settled;
        let unread = settled.map_or(0, |s| s.living.saturating_add(s.tombstones));
        let all = self.ledger().filter(|known| !known.is_hidden()).count();
        let all = all.saturating_add(usize::try_from(unread).unwrap_or(usize::MAX));
        let over = all.saturating_sub(self.round.items).min(EVICTED_AT_ONCE);
        let cut = Tick::at(self.round.aged.minus(self.round.tombstones));
        let is_old = |known: &LedgerEntry| {
            matches!(known.standing, ItemStatus::Deleted { .. }) && known.tick < cut
        };
        // Of items that were not all read, those leave that are known to be the oldest.
        let is_among_oldest = |known: &LedgerEntry| {
            settled.is_none_or(|settled| settled.after.is_some_and(|after| known.tick <= after))
        };
        if over == 0 && !self.snapshot.known.iter().any(is_old) {
            return Vec::new();
        }
        let order = self.order.as_deref().unwrap_or(self.old_order());
        let stays: HashSet<&SyncId> =
            seals.iter().flat_map(|seal| &seal.items).chain(order).chain(self.brought()).collect();
        let chain = &self.snapshot.state.archives;
        let may_leave = |(at, known): &(usize, &LedgerEntry)| {
            let goes =
                matches!(known.standing, ItemStatus::Retired { .. } | ItemStatus::Deleted { .. });
            (is_old(known) || (goes && chain.is_sealed(known.tick)))
                && is_among_oldest(known)
                && known.conflicts == 0
                && known.origin != Origin::Local
                && known.noise.waiting.is_none()
                && !self.known.contains_key(at)
                && !stays.contains(&known.id)
        };
        let old = self.snapshot.known.iter().enumerate().filter(may_leave);
        let (gone, old): (Vec<_>, Vec<_>) = old.partition(|(_, known)| is_old(known));
        let ticks = |all: Vec<(usize, &LedgerEntry)>| -> Vec<(Tick, usize)> {
            all.into_iter().map(|(at, known)| (known.tick, at)).collect()
        };
        let (buried, old): (Vec<_>, Vec<_>) = old.into_iter().partition(|(_, k)| k.is_deleted());
        let (mut gone, mut old, mut buried) = (ticks(gone), ticks(old), ticks(buried));
        gone.sort_unstable();
        gone.truncate(EVICTED_AT_ONCE);
        // What goes by its age makes place.
        let over = over.saturating_sub(gone.len());
        keep_oldest(&mut old, over);
        // A tombstone says what a retired item does not, so it is the last to go.
        keep_oldest(&mut buried, over.saturating_sub(old.len()));
        old.extend(gone);
        old.extend(buried);
        old.sort_unstable();
        old.into_iter().map(|(_, at)| at).collect()
    }

    /// Takes an item back that had left the ledger, as `like_new` has it but for its ids and its updates,
    /// of which it has one more. Answers false where it can be updated no further.
    pub(super) fn reinstate(
        &mut self,
        at: usize,
        like_new: LedgerEntry,
        markup: Markup,
        said: EventDetails,
    ) -> bool {
        self.bring_back(at, ItemStatus::Current, markup, said, |item| {
            let old = item.clone();
            *item = LedgerEntry {
                native: old.native,
                native_shown: old.native_shown,
                published_id: old.published_id,
                aliases: old.aliases,
                updates: old.updates,
                history: old.history,
                noconflicts: old.noconflicts,
                sse091: old.sse091,
                tick: old.tick,
                first_seen: old.first_seen,
                standing: old.standing,
                ..like_new
            };
        })
    }

    /// Takes an item back that had left the ledger and is deleted: as a tombstone, which says its native id
    /// and when it was published, for archives alone have more of it. Answers false where it can be updated
    /// no further.
    pub(super) fn bury(&mut self, at: usize, said: EventDetails) -> bool {
        let Some(left) = self.item(at) else { return false };
        let (markup, standing) =
            (stand_in::named(left), ItemStatus::Deleted { since: self.round.now });
        let bytes = diff::markup_print(&markup);
        self.bring_back(at, standing, markup, said, |item| {
            item.bytes = bytes;
            item.noise.scheme = diff::SCHEME;
        })
    }

    /// Takes an item back that had left the ledger, with its next update.
    fn bring_back(
        &mut self,
        at: usize,
        standing: ItemStatus,
        markup: Markup,
        said: EventDetails,
        how: impl FnOnce(&mut LedgerEntry),
    ) -> bool {
        self.change(at, how);
        let is_made = self.update(at, standing, Some(markup), said);
        if !is_made {
            self.known.remove(&at);
        }
        is_made
    }

    /// The items that had left the ledger and come back in this commit.
    pub(super) fn reinstated(&self) -> Vec<SyncId> {
        let left = |at: &usize| self.snapshot.known.get(*at).filter(|known| known.is_evicted());
        self.known.keys().filter_map(left).map(|known| known.id.clone()).collect()
    }

    /// Counts what lives and what is a tombstone, without what leaves.
    pub(super) fn count(&mut self, evicted: &[Stub]) {
        let settled = self.snapshot.settled;
        let (mut living, mut tombstones) = settled.map_or((0, 0), |s| (s.living, s.tombstones));
        for known in self.ledger().filter(|known| !known.is_hidden()) {
            let count = if known.is_deleted() { &mut tombstones } else { &mut living };
            *count = count.saturating_add(1);
        }
        for stub in evicted {
            let count = if stub.deleted { &mut tombstones } else { &mut living };
            *count = count.saturating_sub(1);
        }
        (self.state.living, self.state.tombstones) = (living, tombstones);
    }
}

/// Leaves the `most` with the earliest ticks.
fn keep_oldest(all: &mut Vec<(Tick, usize)>, most: usize) {
    if all.len() > most {
        all.select_nth_unstable(most);
        all.truncate(most);
    }
}

/// What is told of an item that comes back to the ledger.
pub(super) fn comes_back(left: &ItemStatus) -> EventDetails {
    let (kind, reason) = if left.left_alive() {
        (EventKind::Returned, "it is in the document again after it had left the complete view")
    } else {
        (EventKind::Undeleted, "it is in the document again, long after it was deleted")
    };
    EventDetails { makes_version: true, ..EventDetails::new(kind, reason) }
}

/// Of a history what conflicts are detected by, and what the next update counts on from.
fn cut(known: &LedgerEntry) -> History {
    let mut history = known.history.clone();
    sync::truncate(&mut history, 1);
    history
}
