//! What leaves the ledger, so that a feed does not grow without bound, and how it comes back.
//!
//! Beyond `publish.items` the oldest retired items leave, once an archive has their last state. Each
//! leaves a stub, which no snapshot has. What judges a document asks the store first for the stubs of what the
//! snapshot does not know ([`super::ledger_query`]): these stand among what is known then, and come back as
//! themselves: as living items where the publisher lists them, as tombstones where it says that they were
//! deleted.

use super::draft::ChangeDraft;
use super::{Observation, Verdict};
use foldhash::HashSet;
use std::time::Duration;
use tidegate_core::model::{History, ItemStatus, LedgerEntry, Origin, Seal, SyncId, Tick};
use tidegate_core::sync;

/// The default of `publish.items`: the most items, tombstones included, in the ledger of a feed.
pub const ITEMS_KEPT: usize = 100_000;
/// The most items that one commit evicts; the next commits evict the rest.
pub const EVICTED_AT_ONCE: usize = 10_000;
/// The default of `publish.tombstones`: how long tombstones are kept.
pub const TOMBSTONES_KEPT: Duration = Duration::from_secs(180 * 86_400);

/// Lets items leave the window and the ledger, and drops archives, of a feed that did not change
/// otherwise; a change without a tick.
pub fn age(observation: &Observation<'_>) -> Verdict {
    let Some(snapshot) = observation.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(observation, snapshot);
    draft.shown_changed = draft.advance_window() | draft.has_surplus();
    // Archives grow old too.
    let drops_archives = draft.drop_archives(snapshot.state.archives.next);
    if !draft.shown_changed && !drops_archives {
        return Verdict::default();
    }
    draft.into_verdict(None)
}

impl ChangeDraft<'_> {
    /// Whether this commit could let items leave the ledger.
    pub(super) fn has_surplus(&self) -> bool {
        !self.surplus(&[]).is_empty()
    }

    /// Lets tombstones that are too old leave the ledger, and beyond the limit the oldest retired items and,
    /// where those are too few, the oldest tombstones: nothing that this commit changes or seals, that a
    /// reader is shown, that waits, is in conflict, or was made here.
    pub(super) fn evict(&mut self, seals: &[Seal]) -> Vec<LedgerEntry> {
        if !self.shown_changed {
            return Vec::new();
        }
        let now = self.observation.now;
        let leaving = self.surplus(seals);
        let leaving = leaving.into_iter().filter_map(|at| self.snapshot.known.get(at));
        let stubs: Vec<LedgerEntry> = leaving.map(|known| known.stub(cut(known), now)).collect();
        // Who is behind this learns that it is out of sync, and reads the complete feed.
        let last = stubs.iter().map(|stub| stub.tick).max();
        for start in [&mut self.state.window_start, &mut self.state.complete_start] {
            *start = (*start).max(last);
        }
        stubs
    }

    /// Where the items stand that are to leave.
    fn surplus(&self, seals: &[Seal]) -> Vec<usize> {
        if self.state.hold.is_some() || self.observation.options.sharing.local {
            return Vec::new();
        }
        let settled = self.snapshot.settled;
        let unread = settled.map_or(0, |s| s.living.saturating_add(s.tombstones));
        let all = self.ledger().filter(|known| !known.is_hidden()).count();
        let all = all.saturating_add(usize::try_from(unread).unwrap_or(usize::MAX));
        let over = all.saturating_sub(self.observation.items).min(EVICTED_AT_ONCE);
        let cut = Tick::at(self.observation.running_now.minus(self.observation.tombstones));
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
        let stays: HashSet<&SyncId> = seals
            .iter()
            .flat_map(|seal| &seal.items)
            .chain(order)
            .chain(self.changed_ids())
            .collect();
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
        // A tombstone says what a retired item does not, so one that is not too old is the last to go.
        let rank = |known: &LedgerEntry| match (is_old(known), known.is_deleted()) {
            (true, _) => 0,
            (false, is_tombstone) => 1 + u8::from(is_tombstone),
        };
        let leaving = self.snapshot.known.iter().enumerate().filter(may_leave);
        let mut leaving: Vec<(u8, Tick, usize)> =
            leaving.map(|(at, known)| (rank(known), known.tick, at)).collect();
        leaving.sort_unstable();
        // What goes by its age makes place.
        let aged = leaving.iter().filter(|(rank, ..)| *rank == 0).count();
        leaving.truncate(aged.max(over).min(EVICTED_AT_ONCE));
        leaving.sort_unstable_by_key(|(_, tick, at)| (*tick, *at));
        leaving.into_iter().map(|(.., at)| at).collect()
    }

    /// The items that had left the ledger and come back in this commit.
    pub(super) fn reinstated(&self) -> Vec<SyncId> {
        let left = |at: &usize| self.snapshot.known.get(*at).filter(|known| known.is_evicted());
        self.known.keys().filter_map(left).map(|known| known.id.clone()).collect()
    }

    /// Counts what lives and what is a tombstone, without what leaves.
    pub(super) fn count(&mut self, evicted: &[LedgerEntry]) {
        let settled = self.snapshot.settled;
        let (mut living, mut tombstones) = settled.map_or((0, 0), |s| (s.living, s.tombstones));
        for known in self.ledger().filter(|known| !known.is_hidden()) {
            let count = if known.is_deleted() { &mut tombstones } else { &mut living };
            *count = count.saturating_add(1);
        }
        for stub in evicted {
            let has_lived = stub.standing.left_alive();
            let count = if has_lived { &mut living } else { &mut tombstones };
            *count = count.saturating_sub(1);
        }
        (self.state.living, self.state.tombstones) = (living, tombstones);
    }
}

/// Returns the part of an item's history that detecting conflicts and numbering the next update need.
fn cut(known: &LedgerEntry) -> History {
    let mut history = known.history.clone();
    sync::truncate(&mut history, 1);
    history
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Observation, ledger_query};
    use crate::testing::{self, read, rss};
    use tidegate_core::model::{Format, LedgerQuery, SettledItems, Snapshot, Time};

    /// What stands in a part of a ledger: so many items in all, and among them one that was deleted long ago.
    /// `after`: where the items begin that were not read.
    fn part(living: u32, after: Option<Tick>) -> Snapshot {
        let since = Time::from_unix(1_767_225_600);
        let standing = ItemStatus::Deleted { since };
        let old = LedgerEntry { standing, ..LedgerEntry::left("urn:a") };
        let settled = SettledItems { living, tombstones: 0, left_window: None, after };
        let first = Snapshot::untouched(Format::Rss20, since).with_stubs([old]);
        Snapshot { settled: Some(settled), ..first }
    }

    /// At the end of the time that tombstones are kept, of a thousand items.
    fn with_observation<T>(snapshot: &Snapshot, look: impl FnOnce(&Observation<'_>) -> T) -> T {
        let now = Time::from_unix(1_767_225_600 + 200 * 86_400);
        testing::with_observation(snapshot, now, |observation| {
            look(&Observation { items: 1000, ..*observation })
        })
    }

    #[test]
    fn of_a_part_of_the_ledger_those_leave_that_are_the_oldest_of_all() {
        let tick = part(1, None).known[0].tick;
        let leaves = |after: Option<Tick>| {
            let snapshot = part(1, after);
            with_observation(&snapshot, |observation| {
                ChangeDraft::new(observation, &snapshot).surplus(&[]).len()
            })
        };
        assert_eq!((leaves(None), leaves(Some(tick))), (0, 1));
    }

    #[test]
    fn the_oldest_are_read_where_a_document_brings_more_than_may_stay() {
        let post = "<item><title>A new post</title><guid isPermaLink='false'>urn:b</guid></item>";
        let text = rss(post);
        let asks = |living: u32| -> LedgerQuery {
            let snapshot = part(living, None);
            with_observation(&snapshot, |observation| ledger_query(observation, &[&read(&text)]))
        };
        assert_eq!(asks(998).oldest, 0);
        assert!(asks(999).oldest > 1 && !asks(999).whole);
    }
}
