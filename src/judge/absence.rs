//! Why an item is missing: one piece of evidence each, in the order of the rules below.

use super::Scene;
use super::window::{Direction, Window, date_of_known};
use crate::model::{Absence, Evidence, Known};
use std::collections::HashSet;

/// A missing item with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its index in the ledger.
    pub known: usize,
    /// The evidence, and since when it has stood.
    pub absence: Absence,
    /// What was seen, in words.
    pub seen: String,
}

/// Up to this many holes at once may be single removals, whatever the size of the feed.
const FEW_HOLES: usize = 2;
/// Beyond that, at most this part of the last document's items.
const HOLES_PART: usize = 5;

/// The evidence for each missing item of a full document, in the order of the last document.
pub fn missing(scene: &Scene<'_>, window: &Window) -> Vec<Missing> {
    let said: HashSet<&str> =
        scene.document.tombstones.iter().map(|t| t.native_id.as_str()).collect();
    let holes = (0..window.old.len())
        .filter(|place| window.kept.get(*place) == Some(&false) && !window.slid_off(*place))
        .count();
    let judge = Judge { scene, window, said, holes };
    scene
        .matching
        .missing
        .iter()
        .filter_map(|at| Some(judge.one(*at, scene.snapshot.known.get(*at)?)))
        .collect()
}

struct Judge<'a> {
    scene: &'a Scene<'a>,
    window: &'a Window,
    said: HashSet<&'a str>,
    holes: usize,
}

impl Judge<'_> {
    fn one(&self, at: usize, known: &Known) -> Missing {
        let (evidence, seen) = self.evidence(at, known);
        let absence = match &known.absence {
            // What was first seen stands while it is not contradicted; each look adds to it.
            Some(before) if !stronger(evidence, before.evidence) => Absence {
                evidence: before.evidence,
                since: before.since,
                observations: before.observations.saturating_add(1),
                backfilled: before.backfilled || self.window.backfilled,
            },
            before => Absence {
                evidence,
                since: before.as_ref().map_or(self.scene.now, |b| b.since),
                observations: before.as_ref().map_or(0, |b| b.observations).saturating_add(1),
                backfilled: self.window.backfilled,
            },
        };
        Missing { known: at, absence, seen }
    }

    /// The rules, in order.
    fn evidence(&self, at: usize, known: &Known) -> (Evidence, String) {
        if self.said.contains(known.native_shown.as_str()) {
            return (Evidence::Said, "the document says that it was deleted".to_owned());
        }
        if self.scene.is_complete() {
            return (
                Evidence::Complete,
                "the document lists every item and not this one".to_owned(),
            );
        }
        match self.window.place(at) {
            Some(place) if self.window.slid_off(place) => (Evidence::Aged, self.off_the_end(place)),
            Some(_) => self.hole(known),
            // It was missing before: has everything older left since?
            None if self.has_outlived(known) => {
                (Evidence::Aged, "everything that was older is gone as well by now".to_owned())
            }
            None => (Evidence::Unplaced, "it is still missing".to_owned()),
        }
    }

    fn off_the_end(&self, place: usize) -> String {
        let below = self.window.old.len() - place - 1;
        match (below, self.window.direction) {
            (_, Direction::Up) => "it slid off the old end of the document".to_owned(),
            (0, _) => "it stood last and slid off the end of the document".to_owned(),
            (n, _) => format!("it and the {n} below it slid off the end of the document"),
        }
    }

    /// Gone while something older stays. What else could have done that?
    fn hole(&self, known: &Known) -> (Evidence, String) {
        let unplaced = |why: &str| (Evidence::Unplaced, format!("gone from the middle, but {why}"));
        let window = self.window;
        if window.direction == Direction::None {
            return unplaced("the document is not in order of date");
        }
        let Some(date) = date_of_known(known) else {
            return unplaced("it bears no date");
        };
        let older_kept = window.old.iter().zip(&window.kept).any(|(at, kept)| {
            *kept
                && self
                    .scene
                    .snapshot
                    .known
                    .get(*at)
                    .and_then(date_of_known)
                    .is_some_and(|d| d < date)
        });
        if !older_kept {
            return unplaced("nothing with an older date stays");
        }
        let many = FEW_HOLES.max(window.old.len() / HOLES_PART);
        if self.holes > many {
            return unplaced(&format!("{} went at once", self.holes));
        }
        if window.incoming >= window.outgoing && !window.backfilled {
            return unplaced("a new item took its place, as in a feed merged from several");
        }
        let character = &self.scene.snapshot.state.character;
        if character.holes_returned > character.holes_stayed {
            return unplaced("items of this feed that went like this came back");
        }
        let how = if window.backfilled { ", and an older item came back at the end" } else { "" };
        (Evidence::Hole, format!("gone while older items stay{how}"))
    }

    /// Whether no entry of the document is older than an item that was missing before.
    fn has_outlived(&self, known: &Known) -> bool {
        let Some(date) = date_of_known(known) else { return false };
        let mut dates =
            self.scene.document.entries.iter().filter_map(|e| e.published.or(e.updated));
        self.window.direction != Direction::None && !dates.any(|d| d < date)
    }
}

/// Whether new evidence replaces what was noted before.
fn stronger(new: Evidence, before: Evidence) -> bool {
    let rank = |e: Evidence| match e {
        Evidence::Unplaced => 0,
        Evidence::Hole => 1,
        Evidence::Complete => 2,
        Evidence::Aged => 3,
        Evidence::Said => 4,
    };
    rank(new) > rank(before)
}
