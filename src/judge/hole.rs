//! Why an item is missing: one piece of evidence each, in the order of [`HoleCase::find_evidence`].
//!
//! An item that went from the middle of a document was deleted unless a rule objects ([`RULES`]). Some objections are
//! settled when they are made. Others are doubts that what is learned of the feed settles later: the item waits as
//! long as they are open ([`reconsider`]).

mod came_late;
mod conclude;
mod habit;
mod many;
mod new_address;
mod pushed_out;
mod replaced;
mod still_there;
mod turned_over;
mod unsteady;

pub use conclude::Conclusion;
pub(crate) use conclude::{conclude, ripens, ripens_from};

use crate::HOUR;
use crate::rules::Rule;
use crate::window::{Direction, WindowShift};
use foldhash::HashSet;
use tidegate_core::model::{
    Absence, Character, Deletions, Doubt, Doubts, Evidence, ItemStatus, LedgerEntry,
};
use tidegate_core::xml::shortened;

/// A way in which feeds lose items from the middle without a deletion.
pub(crate) struct HoleRule {
    pub(crate) rule: Rule,
    /// Returns the objection to the deletion of the item at a place of the last document, if there is one.
    objects: fn(&HoleCase<'_>, usize, &LedgerEntry) -> Option<Objection>,
}

/// The rules, in the order in which they are asked. A settled objection ends the matter; doubts add up.
pub(crate) const RULES: [HoleRule; 9] = [
    new_address::RULE,
    still_there::RULE,
    many::RULE,
    turned_over::RULE,
    replaced::RULE,
    came_late::RULE,
    habit::RULE,
    unsteady::RULE,
    pushed_out::RULE,
];

/// What one rule says of a hole.
enum Objection {
    Settled(String),
    Open(Doubt, String),
}

impl Objection {
    fn settled(why: &str) -> Self {
        Self::Settled(why.to_owned())
    }
}

/// Returns the missing items of a full document by their indices in the ledger, in the order of the last document,
/// each with its evidence.
pub(crate) fn find_missing(window: &WindowShift<'_>) -> Vec<(usize, Absence)> {
    let input = &window.input;
    if input.matching.missing.is_empty() && input.document.tombstones.is_empty() {
        return Vec::new();
    }
    let deleted_ids =
        input.document.tombstones.iter().map(|tombstone| tombstone.native_id.as_str());
    let case = HoleCase {
        window,
        deleted_ids: deleted_ids.collect(),
        shown: input.matching.names.iter().map(String::as_str).collect(),
        holes: holes(window),
    };
    let missing = input.matching.missing.iter().copied().chain(case.find_retired_deletions());
    missing
        .filter_map(|at| Some((at, case.judge_absence(at, input.snapshot.known.get(at)?))))
        .collect()
}

/// How many items are missing while others on their old side stayed.
pub(crate) fn holes(window: &WindowShift<'_>) -> usize {
    let gone = |place: &usize| window.kept.get(*place) == Some(&false);
    (0..window.old.len()).filter(gone).filter(|place| !window.slid_off(*place)).count()
}

/// What the rules are about.
struct HoleCase<'a> {
    window: &'a WindowShift<'a>,
    /// The native ids in the document's tombstones.
    deleted_ids: HashSet<&'a str>,
    /// The ids that the document shows.
    shown: HashSet<&'a str>,
    /// How many items are missing from the middle.
    holes: usize,
}

/// So many documents without an item, the first of them an hour old, show that it was no accident.
const LASTING_DOCUMENTS: u32 = 3;

impl HoleCase<'_> {
    /// What was learned of how the feed behaves.
    const fn character(&self) -> &Character {
        &self.window.input.snapshot.state.character
    }

    /// Finds the retired items, evicted ones included, for which the document has a tombstone.
    fn find_retired_deletions(&self) -> Vec<usize> {
        let input = &self.window.input;
        if self.deleted_ids.is_empty() || input.options.deletions == Deletions::Off {
            return Vec::new();
        }
        let there: HashSet<usize> = input.matching.pairs.iter().map(|pair| pair.known).collect();
        let known = input.snapshot.known.iter().enumerate();
        let deleted = known.filter(|(at, known)| {
            let is_out = known.standing != ItemStatus::Current && known.standing.lives();
            (is_out || known.standing.left_alive())
                && self.deleted_ids.contains(known.native_shown.as_str())
                && !there.contains(at)
        });
        deleted.map(|(at, _)| at).collect()
    }

    fn judge_absence(&self, at: usize, known: &LedgerEntry) -> Absence {
        let before = known.absence.as_ref();
        // What was first seen stands; each look adds to it.
        let seen = self.find_evidence(at, known).or_else(|| before.cloned());
        let seen = seen.unwrap_or_else(|| self.new_absence(Evidence::Unplaced, "it is missing"));
        Absence {
            since: before.map_or(seen.since, |before| before.since),
            observations: before.map_or(0, |before| before.observations).saturating_add(1),
            probe: before.and_then(|before| before.probe.clone()),
            ..seen
        }
    }

    /// An absence that is seen for the first time. Publishers have a say in the words: these name their hosts.
    fn new_absence(&self, evidence: Evidence, words: &str) -> Absence {
        let seen = shortened(words, Absence::SEEN_LIMIT).to_owned();
        let (since, doubts) = (self.window.input.now, Doubts::NONE);
        Absence { evidence, since, observations: 0, doubts, seen, probe: None }
    }

    /// Returns an absence that proves nothing, because `why` explains the hole.
    fn new_unplaced(&self, why: &str) -> Absence {
        self.new_absence(Evidence::Unplaced, &format!("gone from the middle, but {why}"))
    }

    /// Returns the strongest evidence that the document gives; `None` if the earlier evidence still holds.
    fn find_evidence(&self, at: usize, known: &LedgerEntry) -> Option<Absence> {
        let plain = |evidence, words| Some(self.new_absence(evidence, words));
        if self.deleted_ids.contains(known.native_shown.as_str()) {
            return plain(Evidence::Said, "the document says that it was deleted");
        }
        if self.window.input.is_complete() {
            return plain(Evidence::Complete, "the document lists every item and not this one");
        }
        match (self.window.place(at), &known.absence) {
            (Some(place), _) if self.window.slid_off(place) => {
                plain(Evidence::Aged, "it slid off the end of the document")
            }
            (Some(_), _) if self.was_oldest(known) => {
                plain(Evidence::Aged, "no item that is as old is left")
            }
            (Some(place), _) => Some(self.examine_hole(place, known)),
            (None, Some(before)) => self.review_evidence(known, before),
            (None, None) => None,
        }
    }

    /// Gone from the middle: asks every rule what else than a deletion could have made the hole.
    fn examine_hole(&self, place: usize, known: &LedgerEntry) -> Absence {
        let (mut doubts, mut words) = (Vec::new(), Vec::new());
        for HoleRule { rule, objects } in RULES {
            if self.window.input.options.without.has(rule.name) {
                continue;
            }
            match objects(self, place, known) {
                Some(Objection::Settled(why)) => return self.new_unplaced(&why),
                Some(Objection::Open(doubt, why)) => {
                    doubts.push(doubt);
                    words.push(why);
                }
                None => {}
            }
        }
        if doubts.is_empty() {
            let also = match self.window.backfill > 0 {
                true => ", and an older one came back at the end",
                false => "",
            };
            let words = format!("gone while older items stay{also}");
            return self.new_absence(Evidence::Hole, &words);
        }
        let doubts = doubts.into_iter().collect();
        Absence { doubts, ..self.new_unplaced(&words.join(" and ")) }
    }

    /// It was missing before: what has been learned since?
    fn review_evidence(&self, known: &LedgerEntry, before: &Absence) -> Option<Absence> {
        let input = &self.window.input;
        let plain = |evidence, words| Some(self.new_absence(evidence, words));
        let is_hole = before.evidence == Evidence::Hole;
        if is_hole && habit::is_habit(self) {
            return Some(self.new_unplaced("items of this feed often are"));
        }
        if self.has_outlived(known) {
            // An empty document says nothing of any item.
            let adds = u32::from(!input.document.entries.is_empty());
            let documents = before.observations.saturating_add(adds);
            let stood = input.now.since(before.since);
            // After a probe the count includes observations of one and the same document.
            let lasting = before.probe.is_none() && documents >= LASTING_DOCUMENTS && stood >= HOUR;
            return match before.evidence {
                Evidence::Said | Evidence::Passed => None,
                Evidence::Hole if lasting => plain(
                    Evidence::Passed,
                    "gone while older items stayed, which have left since without it",
                ),
                _ => plain(Evidence::Aged, "everything that was older is gone as well by now"),
            };
        }
        (!before.doubts.is_empty()).then(|| self.reconsider(known, before))
    }

    /// Looks at doubts again, now that more is known.
    fn reconsider(&self, known: &LedgerEntry, before: &Absence) -> Absence {
        if habit::is_habit(self) {
            return self.new_unplaced("items of this feed often go from there");
        }
        let direction = self.window.direction;
        let mut open = Vec::new();
        for doubt in before.doubts.iter() {
            match doubt {
                Doubt::PushedOut if pushed_out::pushes_out_of_its_middle(self.character()) => {
                    let why = "what comes to this feed pushes out from its middle";
                    return self.new_unplaced(why);
                }
                Doubt::PushedOut if pushed_out::loses_at_its_end(self, known) => {}
                Doubt::Top if direction == Direction::Up => {
                    let why = "it stood at the old end of the document";
                    return self.new_absence(Evidence::Aged, why);
                }
                Doubt::Top if direction == Direction::Down => {}
                Doubt::Unsteady if unsteady::is_orderly(self) => {}
                Doubt::PushedOut | Doubt::Top | Doubt::Unsteady => open.push(doubt),
            }
        }
        if open.is_empty() {
            let why =
                "gone while older items stayed, from a feed that loses items at its end alone";
            return self.new_absence(Evidence::Hole, why);
        }
        let doubts = open.into_iter().collect();
        Absence { evidence: Evidence::Unplaced, doubts, ..before.clone() }
    }

    /// The dates of the document's entries by which it runs.
    fn dates(&self) -> impl Iterator<Item = tidegate_core::model::Time> {
        self.window.input.document.entries.iter().filter_map(|entry| self.window.date_in(entry))
    }

    /// Whether it was older, by its date, than every entry of a document whose dates say something:
    /// wherever it stood, it went by its age.
    fn was_oldest(&self, known: &LedgerEntry) -> bool {
        let ordered = self.window.dated;
        // Dates that do not run as the operator says say nothing.
        let tells = ordered || !self.window.ordered;
        let Some(date) = self.window.date_of(known).filter(|_| tells) else { return false };
        if self.window.has_dates {
            return self.dates().all(|other| date < other || (date == other && !ordered));
        }
        // Days without times are mostly several posts'; one date for all says nothing.
        let (first, all) = (self.dates().next(), self.window.input.document.entries.len());
        self.dates().filter(|other| date < *other).count() == all
            && self.dates().any(|other| Some(other) != first)
    }

    /// Whether no entry of the document is older than an item that was missing before.
    fn has_outlived(&self, known: &LedgerEntry) -> bool {
        let Some(date) = self.window.date_of(known) else { return false };
        // A document of one entry or none is in any order.
        let is_in_order = self.window.dated || self.window.input.document.entries.len() <= 1;
        is_in_order && !self.dates().any(|other| other < date)
    }
}
