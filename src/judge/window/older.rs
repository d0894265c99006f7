//! What stands below the reader view: items that were older than all that was known when they came in.

use super::{Direction, WindowShift, by_growth, date_of, dated};
use crate::same_item::MatchedEntry;
use foldhash::{HashMap, HashSet, HashSetExt as _};
use tidegate_core::model::{Completeness, Format, ItemStatus, LedgerEntry, Time};

/// So many unknown entries that come in at once below the old end were always there; fewer are new.
const LEAST_BACKFILLED: usize = 5;

/// An item that is listed below what readers are shown.
#[derive(Debug, Clone)]
pub(crate) struct ItemBelow {
    /// Its index in the ledger.
    pub(super) known: usize,
    date: Option<Time>,
    /// How many items that are shown and stay stand on its old side.
    older: usize,
}

impl WindowShift<'_> {
    /// The entries of the new document from its old end, but for those that stood below the reader view before.
    pub(super) fn entries_upward(&self) -> impl Iterator<Item = usize> {
        // The rank of a rank is the entry.
        let all = (0..self.input.document.entries.len()).rev().map(|rank| self.rank(rank));
        all.filter(|at| !self.below.contains_key(at))
    }

    /// See [`WindowShift::below`].
    pub(super) fn find_below<'m>(
        &self,
        pairs: impl Iterator<Item = &'m MatchedEntry>,
    ) -> HashMap<usize, ItemBelow> {
        let input = &self.input;
        let shown = input.matching.pairs.iter();
        let shown = shown.filter(|pair| self.places.contains_key(&pair.known));
        let mut shown: Vec<usize> = shown.map(|pair| self.rank(pair.entry)).collect();
        shown.sort_unstable();
        let below = pairs.map(|pair| {
            let rank = self.rank(pair.entry);
            let below = ItemBelow {
                known: pair.known,
                date: input.snapshot.known.get(pair.known).and_then(|known| self.date_of(known)),
                older: shown.len() - shown.partition_point(|above| *above < rank),
            };
            (pair.entry, below)
        });
        let mut below: HashMap<usize, ItemBelow> = below.collect();
        // A few that stand above all of them were posted anew, unless under their old date: that is an edit. Where many
        // do, the feed was turned around.
        let is_anew = |(at, it): (&usize, &ItemBelow)| {
            let date = input.document.entries.get(*at).and_then(dated);
            let old_date = input.snapshot.known.get(it.known).and_then(date_of);
            let is_above = !shown.is_empty() && it.older == shown.len();
            is_above && (date.is_none() || date != old_date)
        };
        if below.iter().filter(|it| is_anew(*it)).count() < LEAST_BACKFILLED {
            below.retain(|at, it| !is_anew((at, it)));
        }
        below
    }

    /// The items below the reader view that are older than what stood at a place, on whose old side so many items
    /// stay: by date, else as they stand now. What stands next to the place may be on either side.
    pub(super) fn below_of(&self, place: usize, stay: usize) -> impl Iterator<Item = &ItemBelow> {
        let date = self.dates.get(place).copied().flatten();
        self.below.values().filter(move |below| match below.date.zip(date) {
            Some((below, date)) => below < date,
            None => below.older < stay,
        })
    }

    /// See [`WindowShift::older`]. An item that left as it was taken, so that no reader was ever shown it, counts as
    /// an unknown one.
    pub(super) fn find_older(&self) -> HashSet<usize> {
        let input = &self.input;
        let (document, known) = (input.document, &input.snapshot.known);
        // Only a full document shows where the window ends.
        let has_end = input.snapshot.state.character.documents > 0;
        let grows = self.direction != Direction::None && self.direction == by_growth(input);
        // What was learned of the order counts where this document keeps it.
        let grows = grows && self.is_steady();
        let is_whole = document.completeness == Completeness::Full && !document.lists_changes();
        // A feed that lists everything has no window: an item that goes was deleted, so readers must be shown it first.
        let is_window = !input.is_complete() && document.format != Format::Opml;
        let has_kept_end = self.kept.last() == Some(&true);
        if !(has_end && (self.ordered || grows) && is_whole && is_window && has_kept_end) {
            return HashSet::new();
        }
        let is_unshown = |known: &LedgerEntry| matches!(known.standing, ItemStatus::Retired { since } if since == known.first_seen);
        let shown = known.iter().filter(|known| known.standing.lives() && !is_unshown(known));
        let oldest = shown.filter_map(|known| self.date_of(known)).min();
        let is_older = |at: usize| {
            let date = document.entries.get(at).and_then(|entry| self.date_in(entry));
            // What is still to come was not always there.
            let is_past = |date: Time| date <= input.now;
            oldest.is_none_or(|oldest| date.is_some_and(|date| date < oldest && is_past(date)))
        };
        let pairs = input.matching.pairs.iter();
        let unshown = pairs.filter(|pair| known.get(pair.known).is_some_and(is_unshown));
        let fresh = input.matching.fresh.iter().copied();
        let unknown: HashSet<usize> = fresh.chain(unshown.map(|pair| pair.entry)).collect();
        let run = self.entries_upward().take_while(|at| unknown.contains(at) && is_older(*at));
        let run: HashSet<usize> = run.collect();
        if run.len() < LEAST_BACKFILLED { HashSet::new() } else { run }
    }

    /// Whether an entry is of an item that readers are not shown: it stands below the old end, and always did.
    pub(crate) fn is_older(&self, entry: usize) -> bool {
        self.older.contains(&entry) || self.below.contains_key(&entry)
    }
}
