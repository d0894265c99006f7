//! The two sides of a matching, and what can be seen of an entry beside an item.

use super::pairs::ANOTHER_DAY;
use super::signs::Basis;
use super::{MatchedEntry, Matching};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use std::cell::OnceCell;
use std::hash::Hash;
use tidegate_core::model::{FeedDocument, Ignore, ItemStatus, Snapshot, Time};

/// Both sides of a matching while it is made.
pub(super) struct Sides<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) document: &'a FeedDocument<'a>,
    pub(super) names: &'a [String],
    /// What the operator ignores.
    pub(super) ignore: &'a [Ignore],
    entry_pair: Vec<Option<(usize, Basis)>>,
    /// Entries that repeat an earlier one of the document; they are nobody.
    copies: HashSet<usize>,
    known_pair: Vec<Option<usize>>,
    /// Position of each known item in the last document.
    place: Vec<Option<usize>>,
    /// The known item at each position of the last document.
    old: Vec<usize>,
    /// The first and the last entry that is paired with an item of the last document, and the first
    /// and the last place that such an item had there.
    paired: Option<((usize, usize), (usize, usize))>,
    /// Whether any are paired by their id.
    pub(super) has_ids: bool,
    /// The time of day, in seconds, that so many entries have that it tells nothing.
    day_second: OnceCell<Option<i64>>,
    /// The date that so many entries have.
    common_date: OnceCell<Option<Time>>,
}

const DAY: i64 = 86_400;
/// The fewest entries with the same time of day that show, if they are at least half of the dated ones, that the time
/// is a placeholder: these dates are days without a time.
const LEAST_DAYS: u64 = 3;
/// How many places up and down are searched for the nearest paired entry.
const NEIGHBOURS: usize = 100;

impl<'a> Sides<'a> {
    pub(super) fn new(
        snapshot: &'a Snapshot,
        document: &'a FeedDocument<'a>,
        names: &'a [String],
        ignore: &'a [Ignore],
    ) -> Self {
        let old: Vec<usize> =
            snapshot.order.iter().filter_map(|id| snapshot.position(id)).collect();
        let mut place = vec![None; snapshot.known.len()];
        for (at, known) in old.iter().enumerate() {
            if let Some(place) = place.get_mut(*known) {
                *place = Some(at);
            }
        }
        Self {
            snapshot,
            document,
            names,
            ignore,
            entry_pair: vec![None; document.entries.len()],
            copies: copies(document, names),
            known_pair: vec![None; snapshot.known.len()],
            place,
            old,
            paired: None,
            has_ids: false,
            day_second: OnceCell::new(),
            common_date: OnceCell::new(),
        }
    }

    pub(super) fn is_entry_free(&self, entry: usize) -> bool {
        matches!(self.entry_pair.get(entry), Some(None)) && !self.is_copy(entry)
    }

    /// Whether the entry repeats an earlier one.
    pub(super) fn is_copy(&self, entry: usize) -> bool {
        self.copies.contains(&entry)
    }

    pub(super) fn is_known_free(&self, known: usize) -> bool {
        matches!(self.known_pair.get(known), Some(None))
    }

    pub(super) fn pair(&mut self, entry: usize, known: usize, basis: Basis) {
        if let (Some(of_entry), Some(of_known)) =
            (self.entry_pair.get_mut(entry), self.known_pair.get_mut(known))
        {
            *of_entry = Some((known, basis));
            *of_known = Some(entry);
            self.has_ids |= basis == Basis::SameId;
            if let Some(place) = self.place(known) {
                let (entries, places) = self.paired.unwrap_or(((entry, entry), (place, place)));
                let join = |(first, last): (usize, usize), at| (first.min(at), last.max(at));
                self.paired = Some((join(entries, entry), join(places, place)));
            }
        }
    }

    /// Whether one side has nothing left that could be paired.
    pub(super) fn is_settled(&self) -> bool {
        (0..self.entry_pair.len()).all(|at| !self.is_entry_free(at))
            || self.known_pair.iter().all(Option::is_some)
    }

    /// Where the item stood in the last document.
    pub(super) fn place(&self, known: usize) -> Option<usize> {
        self.place.get(known).copied().flatten()
    }

    /// The items of the last document, in its order.
    pub(super) fn listed(&self) -> &[usize] {
        &self.old
    }

    /// Whether it stands between the same neighbours, or first in both documents.
    pub(super) fn same_slot(&self, entry: usize, known: usize) -> bool {
        let Some(place) = self.place(known) else { return false };
        let old = |at: usize| self.old.get(at).copied().filter(|k| !self.is_known_free(*k));
        let new = |at: usize| self.entry_pair.get(at).copied().flatten().map(|(known, _)| known);
        let old_above = (0..place).rev().take(NEIGHBOURS).find_map(old);
        let new_above = (0..entry).rev().take(NEIGHBOURS).find_map(new);
        let old_below = (place + 1..self.old.len()).take(NEIGHBOURS).find_map(old);
        let new_below = (entry + 1..self.entry_pair.len()).take(NEIGHBOURS).find_map(new);
        let is_first = entry == 0 && place == 0;
        let is_above_same = old_above.is_some() && old_above == new_above;
        (is_above_same || is_first) && old_below.is_some() && old_below == new_below
    }

    /// Whether the item left at the old end of the feed while the entry came at the new one, or where others kept
    /// their ids, for a later day: the next post of a series, however like the last one it is. What had left before is
    /// not posted again under a later date of publication, or above all that kept their ids.
    pub(super) fn is_scroll(&self, entry: usize, known: usize) -> bool {
        let Some(place) = self.place(known) else {
            let new = self.document.entries.get(entry).and_then(|entry| entry.published);
            let old = self.snapshot.known.get(known).and_then(|known| known.published);
            let character = &self.snapshot.state.character;
            let is_new_end = |(first, last)| match character.grew_below > character.grew_above {
                true => entry > last,
                false => entry < first,
            };
            return match (new, old) {
                (Some(new), Some(old)) => new > old,
                _ => self.has_ids && self.paired.is_some_and(|(entries, _)| is_new_end(entries)),
            };
        };
        if self.old.len() == 1 && self.document.entries.len() == 1 {
            // A feed of one entry turns over with each post.
            return self.dates(entry, known) != (None, None);
        }
        let Some((entries, places)) = self.paired else { return false };
        let (left_below, left_above) = (place > places.1, place < places.0);
        let came_above = left_below && entry < entries.0;
        let came_below = left_above && entry > entries.1;
        let is_later = self.has_ids && self.is_later(entry, known);
        match self.runs_down() {
            Some(true) => came_above || left_below && is_later,
            Some(false) => came_below || left_above && is_later,
            None => came_above || came_below,
        }
    }

    /// Whether the entry is of a later day than the item.
    fn is_later(&self, entry: usize, known: usize) -> bool {
        let (new, old) = self.dates(entry, known);
        new.zip(old).is_some_and(|(new, old)| new.since(old) >= ANOTHER_DAY)
    }

    /// Whether the document has its newest entry first, by the dates of its ends.
    fn runs_down(&self) -> Option<bool> {
        let date = |at: usize| self.document.entries.get(at)?.published;
        let (first, last) = (date(0)?, date(self.document.entries.len().checked_sub(1)?)?);
        (first != last).then_some(first > last)
    }

    /// Whether a date is a day without a time, in whatever zone: at midnight UTC, or at a time of day
    /// that half of the document's dates have.
    pub(super) fn is_day(&self, date: Time) -> bool {
        let of_day = |date: Time| date.unix().rem_euclid(DAY);
        let second = of_day(date);
        let common = self.day_second.get_or_init(|| most_common(self.document, of_day));
        second == 0 || *common == Some(second)
    }

    /// The date that half of the document's entries have, or more of them.
    pub(super) fn common_date(&self) -> Option<Time> {
        *self.common_date.get_or_init(|| most_common(self.document, |date| date))
    }

    /// When they were published, or else updated.
    pub(super) fn dates(&self, entry: usize, known: usize) -> (Option<Time>, Option<Time>) {
        let new = self.document.entries.get(entry).and_then(|e| e.published.or(e.updated));
        let old = self.snapshot.known.get(known).and_then(|k| k.published.or(k.updated));
        (new, old)
    }

    /// Whether an entry that bears the id of an item may be another: what was told apart by its id stays
    /// apart; a link or a title that stands for an id tells nobody apart.
    pub(super) fn may_differ(&self, entry: usize, known: usize) -> bool {
        let new = self.names.get(entry);
        new != self.snapshot.known.get(known).map(|known| &known.native_shown)
            || self.is_nameless(entry)
    }

    /// Whether an entry has no id, so that its link or its title stands for it.
    pub(super) fn is_nameless(&self, entry: usize) -> bool {
        self.document.entries.get(entry).is_some_and(|entry| entry.native_id.is_none())
    }

    pub(super) fn into_matching(self) -> Matching {
        let mut matching = Matching::default();
        for (entry, pair) in self.entry_pair.iter().enumerate() {
            match pair {
                Some((known, basis)) => {
                    matching.pairs.push(MatchedEntry { entry, known: *known, basis: *basis });
                }
                None if self.copies.contains(&entry) => {}
                None => matching.fresh.push(entry),
            }
        }
        let mut missing: Vec<usize> = (0..self.known_pair.len())
            .filter(|at| {
                self.is_known_free(*at)
                    && self
                        .snapshot
                        .known
                        .get(*at)
                        .is_some_and(|k| k.standing == ItemStatus::Current)
            })
            .collect();
        missing.sort_by_key(|at| {
            let place = self.place.get(*at).copied().flatten();
            (place.is_none(), place)
        });
        matching.missing = missing;
        matching
    }
}

/// The part that half of the document's dates have in common, or more of them.
fn most_common<T: Copy + Ord + Hash>(
    document: &FeedDocument<'_>,
    part: impl Fn(Time) -> T,
) -> Option<T> {
    let dates = document.entries.iter().filter_map(|entry| entry.published.or(entry.updated));
    let parts = crate::count(dates.map(part));
    let all: u64 = parts.values().sum();
    let (part, count) = parts.into_iter().max_by_key(|(part, count)| (*count, *part))?;
    (count >= LEAST_DAYS && count * 2 >= all).then_some(part)
}

/// The entries that stand in the document a second time, byte for byte.
fn copies(document: &FeedDocument<'_>, names: &[String]) -> HashSet<usize> {
    let mut seen: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut copies = HashSet::new();
    for (at, native) in names.iter().enumerate() {
        seen.entry(native.as_str()).or_default().push(at);
    }
    for group in seen.into_values().filter(|group| group.len() > 1) {
        let mut bytes: HashSet<&str> = HashSet::new();
        for at in group {
            let entry = document.entries.get(at);
            if entry.is_some_and(|entry| !bytes.insert(&entry.markup)) {
                copies.insert(at);
            }
        }
    }
    copies
}
