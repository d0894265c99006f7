//! What else than a deletion can make a hole in a document: one rule each, in their order.
//!
//! Some objections are settled when they are made. Others are doubts that what is learned of the
//! feed settles later: the item waits as long as they are open.

use super::JudgeInput;
use super::absence::Judge;
use super::superseded::superseded;
use super::window::{Direction, WindowShift};
use crate::identity::is_made_up;
use crate::model::{Character, Deletions, Doubt, Doubts, Entry, Evidence, LedgerEntry, Order};
use std::collections::HashSet;
use std::time::Duration;

/// What the rules say of a hole.
pub(super) enum Objections {
    /// Nothing speaks against a deletion.
    None,
    /// It says nothing, for this reason.
    Settled(String),
    /// It depends on what is learned of the feed.
    Open(Doubts, String),
    /// One of many that went at once, from a feed that keeps everything.
    Mass(String),
}

/// What has become of open doubts.
pub(super) enum ResolvedDoubts {
    /// The feed has shown that it means a deletion by a hole.
    Deleted(Evidence, String),
    /// It has shown that it does not.
    Explained(String),
    /// It has not shown anything yet.
    Open(Doubts),
}

/// What one rule says of a hole.
pub(super) enum Objection {
    Settled(String),
    Open(Doubt, String),
    Mass(String),
}

type ObjectionRule = fn(&Judge<'_>, usize, &LedgerEntry) -> Option<Objection>;

/// Each is a way in which feeds lose items from the middle without a deletion. A settled objection
/// ends the matter; doubts add up.
const OBJECTIONS: [(&str, ObjectionRule); 14] = [
    ("new-address", new_address),
    ("still-there", still_there),
    ("nameless", nameless),
    ("unsteady", unsteady),
    ("turned-over", turned_over),
    ("made-anew", made_anew),
    ("both-ways", both_ways),
    ("many-at-once", many_at_once),
    ("superseded", superseded),
    ("came-late", came_late),
    ("pushed-out", pushed_out),
    ("own-window", own_window_of_its_source),
    ("habit", habit),
    ("young", young_and_undated),
];

/// The names of the rules, in their order.
pub fn objection_names() -> impl Iterator<Item = &'static str> {
    OBJECTIONS.iter().map(|(name, _)| *name)
}

/// Asks every rule.
pub(super) fn all(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> Objections {
    let (mut doubts, mut words, mut mass) = (Vec::new(), Vec::new(), None);
    for (name, rule) in OBJECTIONS {
        if judge.scene.options.without.has(name) {
            continue;
        }
        match rule(judge, place, known) {
            Some(Objection::Settled(why)) => return Objections::Settled(why),
            Some(Objection::Open(doubt, why)) => {
                doubts.push(doubt);
                words.push(why);
            }
            Some(Objection::Mass(why)) => mass = Some(why),
            None => {}
        }
    }
    match (doubts.is_empty(), mass) {
        (false, _) => Objections::Open(doubts.into_iter().collect(), words.join(" and ")),
        (true, Some(why)) => Objections::Mass(why),
        (true, None) => Objections::None,
    }
}

/// Looks at doubts again, now that more is known.
pub(super) fn reconsider(judge: &Judge<'_>, doubts: Doubts) -> ResolvedDoubts {
    let character = &judge.scene.snapshot.state.character;
    if is_habit(judge) {
        return ResolvedDoubts::Explained("items of this feed often go from there".to_owned());
    }
    let mut open = Vec::new();
    for doubt in doubts.iter() {
        match doubt {
            Doubt::PushedOut => match pushes_out_of_its_middle(character) {
                Some(true) => {
                    let why = "what comes to this feed pushes out from its middle";
                    return ResolvedDoubts::Explained(why.to_owned());
                }
                Some(false) => {}
                None => open.push(doubt),
            },
            Doubt::Unsteady if is_orderly(judge) => {}
            Doubt::Young if character.documents >= YOUNG && is_orderly(judge) => {}
            Doubt::Many if keeps_everything(character) => {}
            Doubt::Unsteady | Doubt::Young | Doubt::Many => open.push(doubt),
        }
    }
    if !open.is_empty() {
        return ResolvedDoubts::Open(open.into_iter().collect());
    }
    if doubts.iter().any(|doubt| doubt == Doubt::Many) {
        let why = "gone with many others from a feed that has kept everything so far";
        return ResolvedDoubts::Deleted(Evidence::Mass, why.to_owned());
    }
    let why = "gone while older items stayed, from a feed that loses items at its end alone";
    ResolvedDoubts::Deleted(Evidence::Hole, why.to_owned())
}

/// What an operator points at another address may list other items.
fn new_address(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let why = "the feed has a new address, which may list other items";
    judge.scene.moved.then(|| Objection::Settled(why.to_owned()))
}

/// An id that the document still shows is no id that went.
fn still_there(judge: &Judge<'_>, _: usize, known: &LedgerEntry) -> Option<Objection> {
    let there = judge.shown.contains(known.native_shown.as_str());
    there.then(|| Objection::Settled("another entry bears its id".to_owned()))
}

/// Where all others bear an id, an item without one was made of broken markup.
fn nameless(judge: &Judge<'_>, _: usize, known: &LedgerEntry) -> Option<Objection> {
    let why = "it had no id, unlike all others";
    is_odd(judge, known).then(|| Objection::Settled(why.to_owned()))
}

/// Whether an item bears no id and all entries of the document do.
pub(super) fn is_odd(judge: &Judge<'_>, known: &LedgerEntry) -> bool {
    is_made_up(&known.native_shown) && judge.all_named
}

/// Ranked and hand-ordered lists have no middle.
fn unsteady(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    if judge.scene.options.order == Order::None {
        let why = "the order of its items says nothing of their age, as configured";
        return Some(Objection::Settled(why.to_owned()));
    }
    if window.ordered {
        return None;
    }
    if is_restless(&judge.scene.snapshot.state.character) {
        return Some(Objection::Settled("the order of its items changes often".to_owned()));
    }
    if !window.steady {
        let why = "the items that stayed changed their order";
        return Some(Objection::Open(Doubt::Unsteady, why.to_owned()));
    }
    let character = &judge.scene.snapshot.state.character;
    let (above, below) = (character.grew_above, character.grew_below);
    let mixed = above.min(below).saturating_mul(MIXED_PART) > above.max(below);
    let unknown = window.direction == Direction::None && character.documents < TELLING;
    let disordered = (window.has_dates || mixed || unknown) && !is_orderly(judge);
    let why = "its items are in no order that says which is older";
    disordered.then(|| Objection::Open(Doubt::Unsteady, why.to_owned()))
}

fn is_restless(character: &Character) -> bool {
    character.reordered > character.kept_order / 3
}

/// Until so many documents came, an end at which a feed grows may still show.
const TELLING: u32 = 6;
/// Growth on both sides shows that neither is the new end, where the lesser is so much of the other.
const MIXED_PART: u32 = 4;
/// Growth on one side alone shows an order where it happened so often.
const ORDERLY_GROWTH: u32 = 2;

/// Whether the document runs in an order that says which item is older: that of the dates, or one
/// that was kept while new items came on one side alone.
fn is_orderly(judge: &Judge<'_>) -> bool {
    let character = &judge.scene.snapshot.state.character;
    let (above, below) = (character.grew_above, character.grew_below);
    let grows = above.max(below) >= ORDERLY_GROWTH && above.min(below) == 0;
    let window = judge.window;
    window.ordered
        || (grows
            && window.steady
            && (window.mostly_dated || !window.has_dates)
            && window.direction != Direction::None
            && !is_restless(character))
}

/// Where most of a window goes at once, some that stay prove nothing.
fn turned_over(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let (gone, all) = (judge.window.outgoing, judge.window.old.len());
    let most = gone * 2 > all && !keeps_everything(&judge.scene.snapshot.state.character);
    most.then(|| Objection::Settled(format!("{gone} of {all} items went at once")))
}

/// Where most of what stays changed as well, the document was made anew, by other rules perhaps.
fn made_anew(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let changed = judge.scene.is_changed.iter().filter(|changed| **changed).count();
    let all = judge.scene.is_changed.len();
    let keeps = keeps_everything(&judge.scene.snapshot.state.character);
    let most = changed >= MADE_ANEW_LEAST && changed * 2 > all && !keeps;
    most.then(|| Objection::Settled(format!("{changed} of {all} others changed at once")))
}

/// So few changes are edits, however small the feed.
const MADE_ANEW_LEAST: usize = 4;

/// A window does not slide on and back at once: where an older item came in and others went from the
/// old end, it goes by something else than age.
fn both_ways(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let keeps = keeps_everything(&judge.scene.snapshot.state.character);
    let slid = judge.window.outgoing > judge.holes && !keeps;
    let why = "others went from the old end while an older one came in there";
    (slid && judge.window.backfill > 0).then(|| Objection::Settled(why.to_owned()))
}

/// Up to this many holes at once may be single removals, whatever the size of the feed.
const FEW_HOLES: usize = 2;
/// Beyond that, at most this part of the last document's items.
const HOLES_PART: usize = 8;

/// A scraper that missed a page, an editor's choice: many at once are no single deletions, but where
/// the feed has kept everything so far.
fn many_at_once(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let limit = FEW_HOLES.max(judge.window.old.len() / HOLES_PART);
    if judge.holes <= limit {
        return None;
    }
    let many = format!("{} went from there at once", judge.holes);
    let character = &judge.scene.snapshot.state.character;
    if keeps_everything(character) {
        return Some(Objection::Mass(format!(
            "gone with {} others from a feed that has kept everything so far",
            judge.holes - 1
        )));
    }
    Some(match lost_at_its_end(character) {
        true => Objection::Settled(many),
        false => Objection::Open(Doubt::Many, many),
    })
}

fn lost_at_its_end(character: &Character) -> bool {
    character.left_end > 0
}

/// Arrivals that show how a feed works.
const ARRIVALS_LEAST: u32 = 3;

/// Documents that grew and lost nothing, which show that a feed keeps everything.
const GROWTH_LEAST: u32 = 2;

/// Whether new items came and came to the feed and nothing ever left at its end.
fn keeps_everything(character: &Character) -> bool {
    !lost_at_its_end(character)
        && character.came_alone >= GROWTH_LEAST
        && character.came_alone > character.came_swapping.saturating_mul(2)
}

/// Among so many another is looked for.
pub(super) const LOOKED_AT: usize = 100;
/// What stayed for longer than this between older and newer items was posted with an older date.
const BREATH: Duration = Duration::from_secs(7 * 24 * 3600);

/// A window that breathes shows older items for a while: what came in below newer ones that were
/// known before may go from there again.
fn came_late(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    let ledger = &judge.scene.snapshot.known;
    let was_before = |at: usize| ledger.get(at).is_some_and(|k| k.came < known.came);
    let stayed = judge.scene.now.since(known.came) >= BREATH;
    let late = window.came_late(ledger, place)
        && !(stayed && window.older_that_stay(place).any(was_before));
    let why = "it had come in below newer items, as a window that breathes shows older ones";
    late.then(|| Objection::Settled(why.to_owned()))
}

/// What comes may push out what goes, wherever that stood, unless the feed is known to grow or to
/// lose at its end.
fn pushed_out(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    // Who is in a hurry takes it that what left at the end made room for what came.
    let replaced = match judge.scene.options.deletions {
        Deletions::Eager => window.crowding() > 0,
        Deletions::Safe | Deletions::Off => window.incoming.len() > window.backfill,
    };
    let new = window.incoming.len().saturating_sub(window.backfill);
    let character = &judge.scene.snapshot.state.character;
    // A window that had more items before is not full, and has no need to push any out.
    let room = character.came_alone.saturating_add(character.came_sliding);
    let has_room = window.ordered
        && window.has_room(character.largest)
        && room >= ROOM_LEAST.max(character.came_swapping);
    if judge.holes > 1
        && window.outgoing == judge.holes
        && new == judge.holes
        && !keeps_everything(character)
    {
        let why = format!("{0} new ones came and {0} went, none at the end", judge.holes);
        return Some(Objection::Settled(why));
    }
    if !replaced || has_room || pushes_out_of_its_middle(character) == Some(false) {
        return None;
    }
    let why = "a new item came that may have pushed it out";
    Some(Objection::Open(Doubt::PushedOut, why.to_owned()))
}

/// Arrivals that pushed nothing out of the middle, so that a window with room in it is believed.
const ROOM_LEAST: u32 = 4;
/// So many times more often must a feed do one thing than the other to be known for it.
const CLEAR: u32 = 2;

/// Whether what comes to a feed pushes out what stands in its middle, as in one merged from sources
/// that have a window each; nothing where it has not shown it.
fn pushes_out_of_its_middle(character: &Character) -> Option<bool> {
    let swaps = character.came_swapping;
    let came = character.came_alone.saturating_add(character.came_sliding);
    let gone = character.went_alone.saturating_sub(character.holes_returned);
    let otherwise = came.saturating_add(gone);
    if otherwise >= ARRIVALS_LEAST && otherwise >= swaps.saturating_mul(CLEAR) {
        return Some(false);
    }
    (swaps > ARRIVALS_LEAST && swaps > otherwise).then_some(true)
}

/// In a feed merged from several sources each may have a window of its own: a new item of a source
/// pushes out an old one of the same.
fn own_window_of_its_source(
    judge: &Judge<'_>,
    place: usize,
    known: &LedgerEntry,
) -> Option<Objection> {
    let source = host(known.link.as_deref()?)?;
    if judge.sources.are_shared && !judge.sources.all.contains(&source) {
        return Some(Objection::Settled(format!("nothing of its source, {source}, is left")));
    }
    if !(judge.sources.is_merged && judge.sources.joined.contains(&source)) {
        return None;
    }
    // Where it was the oldest of its source, it is what the new one pushed out.
    let ledger = &judge.scene.snapshot.known;
    let is_its = |at: usize| {
        let link = ledger.get(at).and_then(|other| other.link.as_deref());
        link.and_then(host).as_ref() == Some(&source)
    };
    if !judge.window.older_that_stay(place).take(LOOKED_AT).any(is_its) {
        let why = format!("a new item of the same source, {source}, came for its oldest");
        return Some(Objection::Settled(why));
    }
    if pushes_out_of_its_middle(&judge.scene.snapshot.state.character) == Some(false) {
        return None;
    }
    let why = format!("a new item of the same source, {source}, came");
    Some(Objection::Open(Doubt::PushedOut, why))
}

/// The sites that a document's entries lead to.
pub(super) struct Sources {
    /// Whether entries share them: a feed of links leads to other sites than its own, and to none of
    /// them often.
    are_shared: bool,
    /// Whether there are several, too.
    is_merged: bool,
    /// Those of all entries.
    all: HashSet<String>,
    /// Those of new ones.
    joined: HashSet<String>,
}

impl Sources {
    pub(super) fn new(scene: &JudgeInput<'_>, window: &WindowShift) -> Self {
        let entries = &scene.document.entries;
        let of = |entry: &Entry<'_>| host(entry.link.as_deref()?);
        let all: HashSet<String> = entries.iter().filter_map(of).collect();
        let new = window.incoming.iter().filter_map(|at| entries.get(*at));
        let are_shared = !all.is_empty() && all.len() * 2 <= entries.len();
        let is_merged = are_shared && all.len() > 1;
        Self { are_shared, is_merged, joined: new.filter_map(of).collect(), all }
    }
}

fn host(link: &str) -> Option<String> {
    let plain = crate::xml::plain_address::plain_link(link);
    plain.split(['/', '?', '#']).next().filter(|h| h.contains('.')).map(str::to_owned)
}

/// So many transitions with a loss from the middle may be deletions, in any feed.
const HABIT_LEAST: u32 = 4;
/// Beyond that, one document in so many that brings something new and loses from the middle …
const SWAPS_PART: u32 = 3;
/// … or in so many that lose from there at all.
const LOSSES_PART: u32 = 2;

fn habit(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    if is_habit(judge) {
        let why = "items of this feed often go from the middle";
        return Some(Objection::Settled(why.to_owned()));
    }
    let character = &judge.scene.snapshot.state.character;
    let fickle = character.holes_returned > character.left_middle.max(1);
    let why = "items of this feed that went like this came back";
    fickle.then(|| Objection::Settled(why.to_owned()))
}

/// Where items go from the middle all the time, it is how the feed works.
pub(super) fn is_habit(judge: &Judge<'_>) -> bool {
    let character = &judge.scene.snapshot.state.character;
    let now = u32::from(judge.holes > 0);
    let swaps = character.came_swapping.saturating_add(now);
    let all = character.left_middle.saturating_add(now);
    let often = |times: u32, part: u32| {
        times >= HABIT_LEAST && times.saturating_mul(part) > character.documents
    };
    (often(swaps, SWAPS_PART) || (often(all, LOSSES_PART) && !judge.window.dated))
        && !judge.scene.options.without.has("habit")
}

/// So few documents say nothing of how a feed works.
const YOUNG: u32 = 3;

/// Of a feed that is hardly known, only dates in order or a shorter document are believed.
fn young_and_undated(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    let young = judge.scene.snapshot.state.character.documents < YOUNG;
    let shorter = window.backfill > 0;
    let why = "too little is known of this feed and its dates are in no order";
    (young && !window.ordered && !shorter).then(|| Objection::Open(Doubt::Young, why.to_owned()))
}
