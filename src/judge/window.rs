//! How a document's window lies over the last one: order, direction, what stayed.

mod older;

pub(crate) use older::ItemBelow;

use super::JudgeInput;
use crate::same_item::MatchedEntry;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use tidegate_core::model::{Character, Entry, ItemStatus, LedgerEntry, Order, Time};

/// Which way a document's entries run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Newest first.
    Down,
    /// Oldest first.
    Up,
    /// Neither, or nothing says.
    None,
}

/// Of the neighbours whose dates can be compared, this share in tenths must agree.
const AGREEING_TENTHS: usize = 9;
/// So many show that a list follows its dates, if not strictly.
const MOSTLY_TENTHS: usize = 7;
/// Neighbours whose dates differ tell nothing of a list where they are fewer than one in so many.
const TELLING_PART: usize = 4;
/// Where so many can be compared, one may disagree.
const FORGIVING: usize = 8;
/// Growth on one side must outweigh that on the other by this factor to tell the direction.
const CLEAR_GROWTH: u32 = 3;
/// … and must have been seen so often.
const LEAST_GROWTH: u32 = 2;

/// The last document's order against the new one. Both are looked at from their new end: a document that has its
/// oldest entry first is turned around.
#[derive(Debug, Clone)]
pub(crate) struct WindowShift<'a> {
    /// What is judged.
    pub(crate) input: JudgeInput<'a>,
    /// Ledger indices in the order of the last document, from its new end. Where nothing says which that is, it is the
    /// top, as in most feeds.
    pub(crate) old: Vec<usize>,
    /// The place of each of [`WindowShift::old`] in it.
    places: HashMap<usize, usize>,
    /// For each of [`WindowShift::old`]: whether the new document has it.
    pub(crate) kept: Vec<bool>,
    /// Which way the feed runs: as the operator says, else by its dates, else by where new items
    /// came so far.
    pub(crate) direction: Direction,
    /// Whether both documents run in order of date.
    pub(crate) dated: bool,
    /// Whether these are the dates of updates, not of publication.
    by_updated: bool,
    /// Whether they do, or the operator says how they run.
    pub(crate) ordered: bool,
    /// Whether most of both documents runs in order of date.
    pub(crate) mostly_dated: bool,
    /// Whether most entries bear dates.
    pub(crate) has_dates: bool,
    /// Entries that were not in the last document, by their index.
    pub(crate) incoming: Vec<usize>,
    /// Items of the last document that are missing.
    pub(crate) outgoing: usize,
    /// How many items came in at the old end of the new document that are older than what stayed.
    pub(crate) backfill: usize,
    /// The entries that came in at once below the old end and are older than all that is known; none where they
    /// are so few that they may be new.
    older: HashSet<usize>,
    /// Items that stood below the reader view before ([`ItemStatus::Older`]) and stay, by their entries.
    pub(crate) below: HashMap<usize, ItemBelow>,
    /// Those of such items that are gone, by their index in the ledger.
    pub(crate) below_gone: Vec<usize>,
    /// The dates of [`WindowShift::old`], where the feed runs by them.
    dates: Vec<Option<Time>>,
    /// How many places at the old end the window has moved past: all there is gone, but for what
    /// may be pinned there.
    past: usize,
}

/// The most items that count as pinned: items at the old end that stay while the ones above them slide off.
const PINNED_MOST: usize = 2;
/// A document of fewer items has no pinned ones.
const PINNED_LEAST: usize = 4;
/// One item may be pinned per this many items of the document, but always at least one.
const PINNED_PART: usize = 8;

impl<'a> WindowShift<'a> {
    /// Lays the new document over the last one.
    pub(crate) fn new(input: JudgeInput<'a>) -> Self {
        let known = &input.snapshot.known;
        let mut old = last_document(&input);
        let (by_date, by_updated) = dates_run(&input, &old, AGREEING_TENTHS);
        let (direction, said) = match input.options.order {
            Order::NewestFirst | Order::Updated => (Direction::Down, true),
            Order::OldestFirst => (Direction::Up, true),
            Order::None => (Direction::None, false),
            Order::Auto if by_date == Direction::None => match by_growth(&input) {
                Direction::None => (by_this_step(&input), false),
                grown => (grown, false),
            },
            Order::Auto => (by_date, false),
        };
        let dated = by_date != Direction::None && by_date == direction;
        let mostly_dated = dates_run(&input, &old, MOSTLY_TENTHS).0 != Direction::None;
        if direction == Direction::Up {
            old.reverse();
        }
        let places: HashMap<usize, usize> =
            old.iter().enumerate().map(|(at, known)| (*known, at)).collect();
        let there: HashSet<usize> = input.matching.pairs.iter().map(|pair| pair.known).collect();
        let kept: Vec<bool> = old.iter().map(|at| there.contains(at)).collect();
        let is_below = |at: usize| {
            known.get(at).is_some_and(|known| matches!(known.standing, ItemStatus::Older { .. }))
        };
        let returned = input.matching.pairs.iter();
        let returned =
            returned.filter(|pair| !places.contains_key(&pair.known) && !is_below(pair.known));
        let mut incoming: Vec<usize> = returned.map(|pair| pair.entry).collect();
        incoming.extend(&input.matching.fresh);
        incoming.sort_unstable();
        let mut window = Self {
            input,
            direction,
            dated,
            by_updated,
            ordered: dated || said,
            mostly_dated,
            has_dates: has_dates(&input),
            incoming,
            outgoing: kept.iter().filter(|kept| !**kept).count(),
            backfill: 0,
            older: HashSet::new(),
            below: HashMap::new(),
            dates: Vec::new(),
            below_gone: (0..known.len())
                .filter(|at| is_below(*at) && !there.contains(at))
                .collect(),
            past: 0,
            old,
            places,
            kept,
        };
        if dated {
            let date = |at: &usize| known.get(*at).and_then(|known| window.date_of(known));
            window.dates = window.old.iter().map(date).collect();
        }
        let below = input.matching.pairs.iter().filter(|pair| is_below(pair.known));
        window.below = window.find_below(below);
        window.backfill = window.count_backfill();
        let character = &input.snapshot.state.character;
        window.older = window.find_older();
        let never_lost = character.left_end == 0
            && window.below_gone.is_empty()
            && window.has_room(character.largest);
        window.past = window.moved_past(never_lost || keeps_everything(character));
        window
    }

    /// Whether the items that stayed and did not change kept their order.
    pub(crate) fn is_steady(&self) -> bool {
        let unchanged = self.input.matching.pairs.iter().zip(self.input.is_changed);
        let unchanged = unchanged.filter(|(pair, changed)| !**changed && !pair.basis.is_rename());
        self.places_now(unchanged.map(|(pair, _)| pair)).is_sorted()
    }

    /// How far an entry is from the new end of the document.
    pub(crate) fn rank(&self, entry: usize) -> usize {
        match self.direction {
            Direction::Up => self.input.document.entries.len().saturating_sub(entry + 1),
            Direction::Down | Direction::None => entry,
        }
    }

    /// Where items stood in the last document, in the order in which they stand in the new one.
    pub(crate) fn places_now<'m>(
        &self,
        pairs: impl Iterator<Item = &'m MatchedEntry>,
    ) -> Vec<usize> {
        let stood = pairs.filter_map(|pair| Some((self.rank(pair.entry), self.place(pair.known)?)));
        let mut stood: Vec<(usize, usize)> = stood.collect();
        stood.sort_unstable();
        stood.into_iter().map(|(_, place)| place).collect()
    }

    /// The date of an item by which the feed runs.
    pub(crate) fn date_of(&self, known: &LedgerEntry) -> Option<Time> {
        if self.by_updated { known.updated.or(known.published) } else { date_of(known) }
    }

    /// The date of an entry by which the feed runs.
    pub(crate) fn date_in(&self, entry: &Entry<'_>) -> Option<Time> {
        if self.by_updated { entry.updated.or(entry.published) } else { dated(entry) }
    }

    /// Where the item stood in the last document.
    pub(crate) fn place(&self, known: usize) -> Option<usize> {
        self.places.get(&known).copied()
    }

    /// Whether the window has moved past this place: nothing that stood on its old side is kept,
    /// or only what is pinned there.
    pub(crate) fn slid_off(&self, place: usize) -> bool {
        place + self.past >= self.old.len()
    }

    /// How many places at the old end have been moved past. What goes from just above a few items
    /// that stay, while at least as many new ones come, has slid off: those below it are pinned.
    fn moved_past(&self, loses_none: bool) -> usize {
        let pinned = match self.backfill {
            // A feed that never lost an item at its end, and had more items before, loses none now.
            _ if loses_none => 0,
            1.. => 0,
            0 if self.old.len() < PINNED_LEAST => 0,
            0 => (self.old.len() / PINNED_PART).clamp(1, PINNED_MOST),
        };
        let moved = self.moved();
        let (mut stay, mut gone, mut past) = (0, 0, 0);
        for (place, is_kept) in self.kept.iter().enumerate().rev() {
            if moved.contains(&place) {
                continue;
            }
            stay += usize::from(*is_kept);
            let all = stay + self.below_of(place, stay).take(pinned + 1).count();
            if all > pinned {
                break;
            }
            if !is_kept {
                gone += 1;
                if all == 0 || gone <= self.incoming.len() {
                    past = self.kept.len() - place;
                }
            }
        }
        past
    }

    /// The places of old items that stand at the new end now, above such as were newer: they are posted anew, and do
    /// not tell what is older.
    fn moved(&self) -> HashSet<usize> {
        let places = self.places_now(self.input.matching.pairs.iter());
        let next = places.iter().skip(1);
        let moved = places.iter().zip(next).take_while(|(place, next)| place > next);
        moved.map(|(place, _)| *place).collect()
    }

    /// Whether all that is new stands at the new end of the document.
    pub(crate) fn came_at_head(&self) -> bool {
        let old = self.input.matching.pairs.iter().map(|pair| pair.entry);
        let old = old.filter(|entry| self.incoming.binary_search(entry).is_err());
        let first = old.map(|entry| self.rank(entry)).min();
        first.is_none_or(|first| self.incoming.iter().all(|at| self.rank(*at) < first))
    }

    /// Whether nothing that stood above the item in the last document stays.
    pub(crate) fn stood_at_head(&self, place: usize) -> bool {
        !self.kept.iter().take(place).any(|kept| *kept)
    }

    /// The items that stood on the old side of this place and stay, by their index in the ledger.
    pub(crate) fn older_that_stay(&self, place: usize) -> impl Iterator<Item = usize> {
        let stays = |at: &usize| self.kept.get(*at) == Some(&true);
        let older: Vec<usize> = (place + 1..self.old.len()).filter(stays).collect();
        let below = self.below_of(place, older.len()).map(|below| below.known);
        older.into_iter().filter_map(|at| self.old.get(at).copied()).chain(below)
    }

    /// Whether the item had come in below newer ones that were there before, as where a window
    /// breathes.
    pub(crate) fn came_late(&self, place: usize) -> bool {
        let ledger = &self.input.snapshot.known;
        let came = |at: usize| ledger.get(*self.old.get(at)?).map(|known| known.came);
        (0..place).any(|newer| came(newer) < came(place))
    }

    /// Whether items that came later stood on its old side, and not because they came in at the old end.
    pub(crate) fn stood_above_newer(&self, place: usize) -> bool {
        let ledger = &self.input.snapshot.known;
        let came = self.old.iter().rev().map(|at| ledger.get(*at).map(|known| known.came));
        let came: Vec<_> = came.take(self.old.len().saturating_sub(place)).collect();
        let mut first = None;
        came.iter().any(|at| {
            let is_newer = first.is_some_and(|first| *at > first) && Some(at) > came.last();
            first = Some(first.map_or(*at, |first: Option<_>| first.min(*at)));
            is_newer
        })
    }

    /// Whether others came in with the item in one document, and all of them are gone with it.
    pub(crate) fn goes_with_all_that_came(&self, place: usize) -> bool {
        let ledger = &self.input.snapshot.known;
        let came = |at: &usize| ledger.get(*at).map(|known| known.came);
        let mine = self.old.get(place).and_then(came);
        let mut with = self.old.iter().zip(&self.kept).filter(|(at, _)| came(at) == mine);
        self.outgoing > 1 && with.clone().count() > 1 && with.all(|(_, kept)| !*kept)
    }

    /// How many entries at the old end of the new document are items that the last one did not
    /// have and that are older than all that stayed.
    fn count_backfill(&self) -> usize {
        let entries = &self.input.document.entries;
        let known = &self.input.snapshot.known;
        let is_retired = |at: usize| {
            known.get(at).is_some_and(|known| matches!(known.standing, ItemStatus::Retired { .. }))
        };
        let pairs = self.input.matching.pairs.iter();
        let retired: HashSet<usize> =
            pairs.filter(|pair| is_retired(pair.known)).map(|pair| pair.entry).collect();
        let stayed = self.old.iter().zip(&self.kept).filter(|(_, kept)| **kept);
        let oldest =
            stayed.filter_map(|(at, _)| known.get(*at).and_then(|k| self.date_of(k))).min();
        let is_older = |at: usize| {
            let date = entries.get(at).and_then(|e| self.date_in(e));
            retired.contains(&at)
                || (self.dated && matches!((date, oldest), (Some(d), Some(o)) if d < o))
        };
        let came = |at: &usize| self.incoming.binary_search(at).is_ok() && is_older(*at);
        self.entries_upward().take_while(came).count()
    }

    /// How many stood at the old end and are gone, with nothing kept below them; none where it is
    /// unknown which end is the old one.
    pub(crate) fn slid_cleanly(&self) -> usize {
        let is_gone = |place: &usize| {
            self.kept.get(*place) == Some(&false) && self.below_of(*place, 0).next().is_none()
        };
        let from_end = (0..self.kept.len()).rev();
        let is_known = self.direction != Direction::None;
        from_end.take_while(|place| is_known && is_gone(place)).count()
    }

    /// Whether all that is gone stood at the old end, with nothing kept below it.
    pub(crate) fn only_slid(&self) -> bool {
        self.slid_cleanly() == self.outgoing
    }

    /// Whether all that came would have found room among as many items as a document had at most.
    pub(crate) fn has_room(&self, largest: u32) -> bool {
        let needed = self.old.len() + self.below.len() + self.incoming.len();
        u32::try_from(needed).is_ok_and(|needed| needed <= largest)
    }

    /// How many new items came that nothing which left at the old end made room for.
    pub(crate) fn crowding(&self) -> usize {
        let new = self.incoming.len().saturating_sub(self.backfill);
        new.saturating_sub(self.slid_cleanly() + self.below_gone.len())
    }
}

/// Documents that grew and lost nothing, which show that a feed keeps everything.
const GROWTH_LEAST: u32 = 2;

/// Whether the feed seems to keep every item: it grew repeatedly, more than twice as often as new items replaced others
/// in its middle, and never lost one at its end.
pub(crate) const fn keeps_everything(character: &Character) -> bool {
    character.left_end == 0
        && character.came_alone >= GROWTH_LEAST
        && character.came_alone > character.came_swapping.saturating_mul(2)
}

/// Whether the item was let in while a document is held.
pub(crate) fn is_let_in(input: &JudgeInput<'_>, known: usize) -> bool {
    let held = input.snapshot.state.hold.as_ref().map(|hold| hold.row_since);
    let seen = input.snapshot.known.get(known).map(|known| known.first_seen);
    held.zip(seen).is_some_and(|(held, seen)| seen >= held)
}

/// The items of the last document, in its order. What was let in while a document is held was not in it.
fn last_document(input: &JudgeInput<'_>) -> Vec<usize> {
    let listed = input.snapshot.order.iter().filter_map(|id| input.snapshot.position(id));
    let listed: Vec<usize> = listed.collect();
    let old = listed.iter().copied().filter(|at| !is_let_in(input, *at));
    let old: Vec<usize> = old.collect();
    // A hold that began with the first document lets nothing in.
    if old.is_empty() { listed } else { old }
}

/// When its publisher says that an item was published, or at least updated.
pub(crate) fn date_of(known: &LedgerEntry) -> Option<Time> {
    known.published.or(known.updated)
}

/// The same of an entry.
pub(crate) fn dated(entry: &Entry<'_>) -> Option<Time> {
    entry.published.or(entry.updated)
}

/// The direction that the dates of both documents run in, where so many tenths of the neighbours
/// agree; none where the documents differ.
fn dates_run(input: &JudgeInput<'_>, old: &[usize], tenths: usize) -> (Direction, bool) {
    type Dates = (fn(&LedgerEntry) -> Option<Time>, fn(&Entry<'_>) -> Option<Time>);
    let run_by = |(of_item, of_entry): Dates| {
        let old = old.iter().filter_map(|at| input.snapshot.known.get(*at));
        let before = run(old.map(of_item), tenths);
        let after = run(input.document.entries.iter().map(of_entry), tenths);
        if before == after { before } else { Direction::None }
    };
    let is_by_update = input.options.order == Order::Updated;
    let by_publication = run_by((|known| known.published, |entry| entry.published));
    if by_publication != Direction::None && !is_by_update {
        return (by_publication, false);
    }
    let by_update = run_by((|known| known.updated, |entry| entry.updated));
    (by_update, is_by_update || by_update != Direction::None)
}

fn has_dates(input: &JudgeInput<'_>) -> bool {
    let entries = &input.document.entries;
    let dates: HashSet<Time> = entries.iter().filter_map(dated).collect();
    dates.len() * 2 > entries.len()
}

/// The direction that follows from where new items came so far.
fn by_growth(input: &JudgeInput<'_>) -> Direction {
    let character = &input.snapshot.state.character;
    let (above, below) = (character.grew_above, character.grew_below);
    let clear =
        |this: u32, other: u32| this >= LEAST_GROWTH && this > other.saturating_mul(CLEAR_GROWTH);
    if clear(above, below) {
        Direction::Down
    } else if clear(below, above) {
        Direction::Up
    } else {
        Direction::None
    }
}

/// The direction that follows from where new items came in this document alone.
fn by_this_step(input: &JudgeInput<'_>) -> Direction {
    let old = || input.matching.pairs.iter().map(|pair| pair.entry);
    let fresh = || input.matching.fresh.iter().copied();
    let (Some(first), Some(last)) = (old().min(), old().max()) else { return Direction::None };
    if input.matching.fresh.is_empty() {
        Direction::None
    } else if fresh().all(|at| at < first) {
        Direction::Down
    } else if fresh().all(|at| at > last) {
        Direction::Up
    } else {
        Direction::None
    }
}

fn run(dates: impl Iterator<Item = Option<Time>>, tenths: usize) -> Direction {
    let dates: Vec<Time> = dates.flatten().collect();
    let (mut down, mut up) = (0, 0);
    for (a, b) in dates.iter().zip(dates.iter().skip(1)) {
        down += usize::from(a > b);
        up += usize::from(a < b);
    }
    let all = down + up;
    let most = |agree: usize| agree * 10 >= all * tenths || (all >= FORGIVING && agree + 1 == all);
    if all == 0 || all * TELLING_PART < dates.len() - 1 {
        Direction::None
    } else if most(down) {
        Direction::Down
    } else if most(up) {
        Direction::Up
    } else {
        Direction::None
    }
}
