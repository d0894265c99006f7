//! Why an item is missing: one piece of evidence each, in the order of the rules below.

use super::Scene;
use super::window::{Window, date_of};
use crate::model::{Absence, Evidence, Known};
use std::collections::HashSet;

/// A missing item with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its index in the ledger.
    pub known: usize,
    /// The evidence, since when it has stood, and what was seen.
    pub absence: Absence,
}

/// The evidence for each missing item of a full document, in the order of the last document.
pub fn missing(scene: &Scene<'_>, window: &Window) -> Vec<Missing> {
    let said: HashSet<&str> =
        scene.document.tombstones.iter().map(|t| t.native_id.as_str()).collect();
    let judge = Judge { scene, window, said, holes: holes(window) };
    let missing = scene.matching.missing.iter();
    missing.filter_map(|at| Some(judge.one(*at, scene.snapshot.known.get(*at)?))).collect()
}

/// How many items are missing while others on their old side stayed.
pub fn holes(window: &Window) -> usize {
    let gone = |place: &usize| window.kept.get(*place) == Some(&false);
    (0..window.old.len()).filter(gone).filter(|place| !window.slid_off(*place)).count()
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
        let backfilled = self.window.backfilled;
        let habitual = known.absence.as_ref().is_some_and(|a| a.evidence == Evidence::Hole)
            && habit(self, 0, known).is_some();
        let absence = match &known.absence {
            // What was first seen stands while nothing stronger is, nor shows it to be usual; each
            // look adds to it.
            Some(before) if !habitual && !is_stronger(evidence, before.evidence) => Absence {
                evidence: before.evidence,
                since: before.since,
                observations: before.observations.saturating_add(1),
                backfilled: before.backfilled || backfilled,
                probe: before.probe.clone(),
                seen: if before.seen.is_empty() { bounded(seen) } else { before.seen.clone() },
            },
            before => Absence {
                evidence,
                since: before.as_ref().map_or(self.scene.now, |b| b.since),
                observations: before.as_ref().map_or(0, |b| b.observations).saturating_add(1),
                backfilled,
                probe: before.as_ref().and_then(|b| b.probe.clone()),
                seen: bounded(seen),
            },
        };
        Missing { known: at, absence }
    }

    /// The rules, in order.
    fn evidence(&self, at: usize, known: &Known) -> (Evidence, String) {
        if self.said.contains(known.native_shown.as_str()) {
            return (Evidence::Said, "the document says that it was deleted".to_owned());
        }
        if self.scene.is_complete() {
            let seen = "the document lists every item and not this one";
            return (Evidence::Complete, seen.to_owned());
        }
        match self.window.place(at) {
            Some(place) if self.window.slid_off(place) => {
                (Evidence::Aged, "it slid off the end of the document".to_owned())
            }
            Some(place) => match self.objection(place, known) {
                Some(objection) => {
                    (Evidence::Unplaced, format!("gone from the middle, but {objection}"))
                }
                None => {
                    let also = if self.window.backfilled {
                        ", and an older one came back at the end"
                    } else {
                        ""
                    };
                    (Evidence::Hole, format!("gone while older items stay{also}"))
                }
            },
            // It was missing before: has everything older left since?
            None if self.has_outlived(known) => {
                (Evidence::Aged, "everything that was older is gone as well by now".to_owned())
            }
            None => (Evidence::Unplaced, "it is still missing".to_owned()),
        }
    }

    /// What else than a deletion could have made the hole. The first rule that objects is told.
    fn objection(&self, place: usize, known: &Known) -> Option<String> {
        OBJECTIONS.iter().find_map(|rule| rule(self, place, known))
    }

    /// Whether no entry of the document is older than an item that was missing before.
    fn has_outlived(&self, known: &Known) -> bool {
        let Some(date) = date_of(known) else { return false };
        let mut dates =
            self.scene.document.entries.iter().filter_map(|e| e.published.or(e.updated));
        self.window.dated && !dates.any(|d| d < date)
    }
}

/// Publishers have a say in what was seen: it names their hosts.
fn bounded(mut seen: String) -> String {
    let end = (0..=Absence::SEEN_LIMIT).rev().find(|at| seen.is_char_boundary(*at));
    seen.truncate(end.unwrap_or(0));
    seen
}

type Rule = fn(&Judge<'_>, usize, &Known) -> Option<String>;

/// Each is a way in which feeds lose items from the middle without a deletion.
const OBJECTIONS: [Rule; 10] = [
    new_address,
    still_there,
    unsteady,
    turned_over,
    many_at_once,
    superseded,
    pushed_out,
    own_window_of_its_source,
    habit,
    young_and_undated,
];

/// What an operator points at another address may list other items.
fn new_address(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    judge.scene.moved.then(|| "the feed has a new address, which may list other items".to_owned())
}

/// An id that the document still shows is no id that went.
fn still_there(judge: &Judge<'_>, _: usize, known: &Known) -> Option<String> {
    let shown = &known.native_shown;
    let mut names = judge.scene.names.iter();
    names.any(|n| n.shown == *shown).then(|| "another entry bears its id".to_owned())
}

/// Ranked and hand-ordered lists have no middle.
fn unsteady(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let character = &judge.scene.snapshot.state.character;
    let restless = character.reordered > character.kept_order / 3;
    if !judge.window.steady || (restless && !judge.window.dated) {
        return Some("the items that stayed changed their order".to_owned());
    }
    let disordered = judge.window.has_dates && !judge.window.dated;
    disordered.then(|| "its items are dated, and not in order of date".to_owned())
}

/// Where most of a window goes at once, some that stay prove nothing.
fn turned_over(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let (gone, all) = (judge.window.outgoing, judge.window.old.len());
    (gone * 2 > all).then(|| format!("{gone} of {all} items went at once"))
}

/// Up to this many holes at once may be single removals, whatever the size of the feed.
const FEW_HOLES: usize = 2;
/// Beyond that, at most this part of the last document's items.
const HOLES_PART: usize = 8;

/// A scraper that missed a page, an editor's choice: many at once are no single deletions.
fn many_at_once(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let limit = FEW_HOLES.max(judge.window.old.len() / HOLES_PART);
    (judge.holes > limit).then(|| format!("{} went from there at once", judge.holes))
}

/// A release that takes the place of its betas, a post that was written anew: where something new
/// stands in the place of what went, at the new end, it was superseded.
fn superseded(judge: &Judge<'_>, place: usize, _: &Known) -> Option<String> {
    (judge.window.stood_newest(place) && judge.window.has_new_head)
        .then(|| "a newer item took its place at the head".to_owned())
}

/// Arrivals without departures that show that nothing is pushed out.
const GROWING_PART: u32 = 3;
/// Departures at the end that show how a feed's window moves.
const MOVING_LEAST: u32 = 3;

/// What comes may push out what goes, wherever that stood, unless the feed is known to grow or to
/// lose at its end.
fn pushed_out(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let window = judge.window;
    let character = &judge.scene.snapshot.state.character;
    let arrivals = character.grew_above + character.grew_below;
    let departures = character.left_end + character.left_middle;
    let grows = arrivals >= MOVING_LEAST && departures.saturating_mul(GROWING_PART) <= arrivals;
    let moves = character.left_end >= MOVING_LEAST
        && character.left_middle.saturating_mul(2) <= character.left_end;
    let replaced = window.incoming.len() >= window.outgoing && !window.backfilled;
    (replaced && !grows && !moves).then(|| "a new item came that may have pushed it out".to_owned())
}

/// In a feed merged from several sources each may have a window of its own: a new item of a source
/// pushes out an old one of the same.
fn own_window_of_its_source(judge: &Judge<'_>, _: usize, known: &Known) -> Option<String> {
    let source = host(known.link.as_deref()?)?;
    let entries = &judge.scene.document.entries;
    let sources: HashSet<String> =
        entries.iter().filter_map(|e| host(e.link.as_deref()?)).collect();
    let joined = judge.window.incoming.iter().any(|at| {
        let link = entries.get(*at).and_then(|e| e.link.as_deref());
        link.and_then(host).is_some_and(|h| h == source)
    });
    // A feed of links leads to other sites than its own, and none of them often.
    let merged = sources.len() > 1 && sources.len() * 2 <= entries.len();
    (merged && joined).then(|| format!("a new item of the same source, {source}, came"))
}

fn host(link: &str) -> Option<String> {
    let plain = crate::identity::plain_link(link);
    plain.split(['/', '?', '#']).next().filter(|h| h.contains('.')).map(str::to_owned)
}

/// So many transitions with a loss from the middle may be deletions, in any feed.
const HABIT_LEAST: u32 = 4;
/// Beyond that, of all documents, one in so many.
const HABIT_PART: u32 = 3;

/// Where items go from the middle all the time, it is how the feed works.
fn habit(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let character = &judge.scene.snapshot.state.character;
    let times = character.left_middle.saturating_add(u32::from(judge.holes > 0));
    let often = times >= HABIT_LEAST && times.saturating_mul(HABIT_PART) > character.documents;
    let fickle = character.holes_returned > character.left_middle.max(1);
    if often {
        return Some("items of this feed often go from the middle".to_owned());
    }
    fickle.then(|| "items of this feed that went like this came back".to_owned())
}

/// So few documents say nothing of how a feed works.
const YOUNG: u32 = 3;

/// Of a feed that is hardly known, only dates in order or a shorter document are believed.
fn young_and_undated(judge: &Judge<'_>, _: usize, _: &Known) -> Option<String> {
    let window = judge.window;
    let young = judge.scene.snapshot.state.character.documents < YOUNG;
    let shorter = window.incoming.len() < window.outgoing || window.backfilled;
    (young && !window.dated && !shorter)
        .then(|| "too little is known of this feed and its dates are in no order".to_owned())
}

/// Whether new evidence replaces what was noted before.
fn is_stronger(new: Evidence, before: Evidence) -> bool {
    let rank = |e: Evidence| match e {
        Evidence::Unplaced => 0,
        Evidence::Hole => 1,
        Evidence::Complete => 2,
        Evidence::Aged => 3,
        Evidence::Said => 4,
    };
    rank(new) > rank(before)
}
