//! Why an item is missing: one piece of evidence each, in the order of the rules below.

use super::JudgeInput;
use super::objections;
use super::window::WindowShift;
use std::collections::HashSet;
use std::time::Duration;
use tidegate_core::model::{Absence, Deletions, Doubts, Evidence, ItemStatus, LedgerEntry};
use tidegate_core::xml::shortened;

/// A missing item with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingItem {
    /// Its index in the ledger.
    pub known: usize,
    /// The evidence, since when it has stood, and what was seen.
    pub absence: Absence,
}

/// The evidence for each missing item of a full document, in the order of the last document.
pub fn missing(scene: &JudgeInput<'_>, window: &WindowShift) -> Vec<MissingItem> {
    if scene.matching.missing.is_empty() && scene.document.tombstones.is_empty() {
        return Vec::new();
    }
    let said: HashSet<&str> =
        scene.document.tombstones.iter().map(|t| t.native_id.as_str()).collect();
    let judge = Judge {
        scene,
        window,
        said,
        shown: scene.matching.names.iter().map(String::as_str).collect(),
        holes: holes(window),
    };
    let missing = scene.matching.missing.iter().copied().chain(judge.said_of_retired());
    missing.filter_map(|at| Some(judge.one(at, scene.snapshot.known.get(at)?))).collect()
}

/// How many items are missing while others on their old side stayed.
pub fn holes(window: &WindowShift) -> usize {
    let gone = |place: &usize| window.kept.get(*place) == Some(&false);
    (0..window.old.len()).filter(gone).filter(|place| !window.slid_off(*place)).count()
}

/// What the rules are about.
pub(super) struct Judge<'a> {
    pub(super) scene: &'a JudgeInput<'a>,
    pub(super) window: &'a WindowShift,
    said: HashSet<&'a str>,
    /// The ids that the document shows.
    pub(super) shown: HashSet<&'a str>,
    /// How many items are missing from the middle.
    pub(super) holes: usize,
}

/// What was seen of a missing item.
pub(super) struct AbsenceEvidence {
    pub(super) evidence: Evidence,
    pub(super) doubts: Doubts,
    pub(super) words: String,
}

impl AbsenceEvidence {
    pub(super) fn plain(evidence: Evidence, words: &str) -> Self {
        Self { evidence, doubts: Doubts::NONE, words: words.to_owned() }
    }

    /// Of a hole that says nothing, for this reason.
    pub(super) fn explained(why: &str) -> Self {
        Self::plain(Evidence::Unplaced, &format!("gone from the middle, but {why}"))
    }
}

/// So many documents without an item, of which the first is so old, show that it was no accident.
const LASTING_DOCUMENTS: u32 = 3;
/// How old the first of them is at least.
const LASTING_TIME: Duration = Duration::from_secs(3600);

/// A hole above fewer items than this is near the old end, which is ragged where a list is scraped.
const OLDER_LEAST: usize = 3;

impl Judge<'_> {
    /// The retired items that the document says were deleted, those among them that left the ledger.
    fn said_of_retired(&self) -> Vec<usize> {
        if self.said.is_empty() || self.scene.options.deletions == Deletions::Off {
            return Vec::new();
        }
        let there: HashSet<usize> =
            self.scene.matching.pairs.iter().map(|pair| pair.known).collect();
        let known = self.scene.snapshot.known.iter().enumerate();
        let said = known.filter(|(at, known)| {
            let is_out = known.standing != ItemStatus::Current && known.standing.lives();
            (is_out || known.standing.left_alive())
                && self.said.contains(known.native_shown.as_str())
                && !there.contains(at)
        });
        said.map(|(at, _)| at).collect()
    }

    fn one(&self, at: usize, known: &LedgerEntry) -> MissingItem {
        let seen = self.see(at, known);
        let before = known.absence.as_ref();
        let (evidence, doubts, words) = match (seen, before) {
            (Some(seen), _) => (seen.evidence, seen.doubts, seen.words),
            // What was first seen stands; each look adds to it.
            (None, Some(before)) => (before.evidence, before.doubts, before.seen.clone()),
            (None, None) => (Evidence::Unplaced, Doubts::NONE, "it is missing".to_owned()),
        };
        let absence = Absence {
            evidence,
            since: before.map_or(self.scene.now, |before| before.since),
            observations: before.map_or(0, |before| before.observations).saturating_add(1),
            doubts,
            // Publishers have a say in it: it names their hosts.
            seen: shortened(&words, Absence::SEEN_LIMIT).to_owned(),
            probe: before.and_then(|before| before.probe.clone()),
        };
        MissingItem { known: at, absence }
    }

    /// The rules, in order; nothing where what was seen before stands.
    fn see(&self, at: usize, known: &LedgerEntry) -> Option<AbsenceEvidence> {
        if self.said.contains(known.native_shown.as_str()) {
            return Some(AbsenceEvidence::plain(
                Evidence::Said,
                "the document says that it was deleted",
            ));
        }
        if self.scene.is_complete() {
            let words = "the document lists every item and not this one";
            return Some(AbsenceEvidence::plain(Evidence::Complete, words));
        }
        match (self.window.place(at), &known.absence) {
            (Some(place), _) if self.window.slid_off(place) => {
                Some(AbsenceEvidence::plain(Evidence::Aged, "it slid off the end of the document"))
            }
            (Some(_), _) if self.was_oldest(known) => {
                Some(AbsenceEvidence::plain(Evidence::Aged, "no item that is as old is left"))
            }
            (Some(place), _) => Some(self.hole(place, known)),
            (None, Some(before)) => self.still(known, before),
            (None, None) => None,
        }
    }

    /// Gone from the middle: what else than a deletion could have made the hole?
    fn hole(&self, place: usize, known: &LedgerEntry) -> AbsenceEvidence {
        objections::all(self, place, known).unwrap_or_else(|| {
            let also = match self.window.backfill > 0 {
                true => ", and an older one came back at the end",
                false => "",
            };
            let words = format!("gone while older items stay{also}");
            AbsenceEvidence::plain(Evidence::Hole, &words)
        })
    }

    /// It was missing before: what has been learned since?
    fn still(&self, known: &LedgerEntry, before: &Absence) -> Option<AbsenceEvidence> {
        let is_hole = before.evidence == Evidence::Hole;
        if is_hole && objections::is_habit(self) {
            return Some(AbsenceEvidence::explained("items of this feed often are"));
        }
        if self.has_outlived(known) {
            // An empty document says nothing of any item.
            let adds = u32::from(!self.scene.document.entries.is_empty());
            let documents = before.observations.saturating_add(adds);
            let stood = self.scene.now.since(before.since);
            // Where its address was asked, looks at the same document are among them.
            let lasting =
                before.probe.is_none() && documents >= LASTING_DOCUMENTS && stood >= LASTING_TIME;
            return match before.evidence {
                Evidence::Said | Evidence::Passed => None,
                Evidence::Hole if lasting => {
                    let words = "gone while older items stayed, which have left since without it";
                    Some(AbsenceEvidence::plain(Evidence::Passed, words))
                }
                _ => {
                    let words = "everything that was older is gone as well by now";
                    Some(AbsenceEvidence::plain(Evidence::Aged, words))
                }
            };
        }
        (!before.doubts.is_empty())
            .then(|| objections::reconsider(self, known, before.doubts, &before.seen))
    }

    /// Whether it was older, by its date, than every entry of a document whose dates say something:
    /// wherever it stood, it went by its age.
    fn was_oldest(&self, known: &LedgerEntry) -> bool {
        let ordered = self.window.dated;
        // Dates that do not run as the operator says say nothing.
        let tells = self.window.has_dates && (ordered || !self.window.ordered);
        let Some(date) = self.window.date_of(known).filter(|_| tells) else { return false };
        let mut dates = self.scene.document.entries.iter().filter_map(|e| self.window.date_in(e));
        dates.all(|other| date < other || (date == other && !ordered))
    }

    /// Whether enough items stay that are older: by their dates where the document runs by them, else by
    /// their places in the last one.
    pub(super) fn is_above_others(&self, place: usize, known: &LedgerEntry) -> bool {
        let older = match self.window.date_of(known).filter(|_| self.window.dated) {
            Some(date) => {
                let entries = self.scene.document.entries.iter();
                entries.filter(|e| self.window.date_in(e).is_some_and(|d| d < date)).count()
            }
            None => self.window.older_that_stay(place).count(),
        };
        older >= OLDER_LEAST
    }

    /// Whether no entry of the document is older than an item that was missing before.
    fn has_outlived(&self, known: &LedgerEntry) -> bool {
        let Some(date) = self.window.date_of(known) else { return false };
        let entries = &self.scene.document.entries;
        let mut dates = entries.iter().filter_map(|e| self.window.date_in(e));
        // A document of one entry or none is in any order.
        (self.window.dated || entries.len() <= 1) && !dates.any(|d| d < date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity;
    use tidegate_core::model::{FeedOptions, Format, ItemStatus, LedgerEntry, Snapshot, Time};
    use tidegate_format::parse::{self, Limits};

    const SAID: &str = "<feed xmlns='http://www.w3.org/2005/Atom' \
                        xmlns:at='http://purl.org/atompub/tombstones/1.0'><at:deleted-entry \
                        ref='urn:a' when='2026-01-02T00:00:00Z'/>";

    /// What is missing from a document after such a one, of a feed that this left.
    fn of(left: LedgerEntry, deletions: Deletions, entries: &str) -> Vec<Evidence> {
        let now = Time::from_unix(1_767_300_000);
        let snapshot = Snapshot::untouched(Format::Atom10, now).with_stubs([left]);
        let text = format!("{SAID}{entries}</feed>");
        let document = parse::document(&text, None, &Limits::default()).unwrap();
        let options = FeedOptions { deletions, ..FeedOptions::default() };
        let scene = JudgeInput {
            snapshot: &snapshot,
            document: &document,
            matching: &identity::matching(&snapshot, &document, &options.without),
            options: &options,
            is_changed: &[],
            moved: false,
            now,
        };
        let missing = missing(&scene, &WindowShift::new(&scene));
        missing.into_iter().map(|missing| missing.absence.evidence).collect()
    }

    #[test]
    fn what_is_said_of_an_item_that_left_counts_where_it_left_alive() {
        let left = || LedgerEntry::left("urn:a");
        for deletions in [Deletions::Safe, Deletions::Eager] {
            assert_eq!(of(left(), deletions, ""), [Evidence::Said]);
        }
        assert_eq!(of(left(), Deletions::Off, ""), []);
        let standing = ItemStatus::Evicted { since: Time::from_unix(1_767_225_600), deleted: true };
        assert_eq!(of(LedgerEntry { standing, ..left() }, Deletions::Safe, ""), []);
        let entry = |id: &str| format!("<entry><id>urn:{id}</id><title>It</title></entry>");
        assert_eq!(of(left(), Deletions::Safe, &entry("a")), [], "it is there");
        assert_eq!(of(left(), Deletions::Safe, &entry("b")), [Evidence::Said]);
        // A name that it had once may be another's by now.
        let aliases = vec!["urn:a".to_owned()];
        let renamed = LedgerEntry { aliases, ..LedgerEntry::left("urn:b") };
        assert_eq!(of(renamed, Deletions::Safe, ""), []);
    }
}
