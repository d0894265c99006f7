//! What else than a deletion can make a hole in a document: one rule each, in their order.
//!
//! Some objections are settled when they are made. Others are doubts that what is learned of the
//! feed settles later: the item waits as long as they are open.

use super::absence::{AbsenceEvidence, Judge};
use super::replaced::replaced;
use super::window::Direction;
use tidegate_core::model::{Character, Deletions, Doubt, Doubts, Evidence, LedgerEntry, Order};

/// What one rule says of a hole.
pub(super) enum Objection {
    Settled(String),
    Open(Doubt, String),
}

type ObjectionRule = fn(&Judge<'_>, usize, &LedgerEntry) -> Option<Objection>;

/// Each is a way in which feeds lose items from the middle without a deletion. A settled objection
/// ends the matter; doubts add up.
const OBJECTIONS: [(&str, ObjectionRule); 9] = [
    ("new-address", new_address),
    ("still-there", still_there),
    ("many", many_at_once),
    ("turned-over", turned_over),
    ("replaced", replaced),
    ("came-late", came_late),
    ("habit", habit),
    ("unsteady", unsteady),
    ("pushed-out", pushed_out),
];

/// The names of the rules, in their order.
pub fn objection_names() -> impl Iterator<Item = &'static str> {
    OBJECTIONS.iter().map(|(name, _)| *name)
}

/// Asks every rule. What it means where any objects: nothing, or nothing until what is learned of the feed
/// settles the doubts.
pub(super) fn all(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> Option<AbsenceEvidence> {
    let (mut doubts, mut words) = (Vec::new(), Vec::new());
    for (name, rule) in OBJECTIONS {
        if judge.scene.options.without.has(name) {
            continue;
        }
        match rule(judge, place, known) {
            Some(Objection::Settled(why)) => return Some(AbsenceEvidence::explained(&why)),
            Some(Objection::Open(doubt, why)) => {
                doubts.push(doubt);
                words.push(why);
            }
            None => {}
        }
    }
    let doubted = AbsenceEvidence::explained(&words.join(" and "));
    (!doubts.is_empty())
        .then(|| AbsenceEvidence { doubts: doubts.into_iter().collect(), ..doubted })
}

/// Looks at doubts again, now that more is known; `seen` says what they are about.
pub(super) fn reconsider(
    judge: &Judge<'_>,
    known: &LedgerEntry,
    doubts: Doubts,
    seen: &str,
) -> AbsenceEvidence {
    let character = &judge.scene.snapshot.state.character;
    if is_habit(judge) {
        return AbsenceEvidence::explained("items of this feed often go from there");
    }
    let mut open = Vec::new();
    for doubt in doubts.iter() {
        match doubt {
            Doubt::PushedOut if pushes_out_of_its_middle(character) => {
                let why = "what comes to this feed pushes out from its middle";
                return AbsenceEvidence::explained(why);
            }
            Doubt::PushedOut if loses_at_its_end(judge, known) => {}
            Doubt::Top if judge.window.direction == Direction::Up => {
                let why = "it stood at the old end of the document";
                return AbsenceEvidence::plain(Evidence::Aged, why);
            }
            Doubt::Top if judge.window.direction == Direction::Down => {}
            Doubt::Unsteady if is_orderly(judge) => {}
            Doubt::PushedOut | Doubt::Top | Doubt::Unsteady => open.push(doubt),
        }
    }
    if open.is_empty() {
        let why = "gone while older items stayed, from a feed that loses items at its end alone";
        return AbsenceEvidence::plain(Evidence::Hole, why);
    }
    let doubts = open.into_iter().collect();
    AbsenceEvidence { doubts, ..AbsenceEvidence::plain(Evidence::Unplaced, seen) }
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

/// Ranked and hand-ordered lists have no middle.
fn unsteady(judge: &Judge<'_>, place: usize, _: &LedgerEntry) -> Option<Objection> {
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
    let unsteady = |why: &str| Some(Objection::Open(Doubt::Unsteady, why.to_owned()));
    if !window.steady {
        return unsteady("the items that stayed changed their order");
    }
    if window.direction == Direction::None && window.stood_at_head(place) {
        let why = "it stood at the top, and nothing says yet which end is the old one";
        return Some(Objection::Open(Doubt::Top, why.to_owned()));
    }
    if is_orderly(judge) {
        return None;
    }
    let character = &judge.scene.snapshot.state.character;
    let (above, below) = (character.grew_above, character.grew_below);
    let mixed = above.min(below).saturating_mul(MIXED_PART) > above.max(below);
    if window.has_dates || mixed {
        return unsteady("its items are in no order that says which is older");
    }
    let enough = if window.direction == Direction::None { TELLING } else { YOUNG };
    if character.documents < enough {
        return unsteady("too little is known of this feed and its dates are in no order");
    }
    None
}

fn is_restless(character: &Character) -> bool {
    character.reordered > character.kept_order / 3
}

/// So few documents say nothing of how a feed works.
const YOUNG: u32 = 3;
/// Until so many came, an end at which it grows may still show.
const TELLING: u32 = 6;
/// Growth on both sides shows that neither is the new end, where the lesser is so much of the other.
const MIXED_PART: u32 = 4;
/// Growth on one side shows an order where it happened so often.
const ORDERLY_GROWTH: u32 = 2;
/// An order that was kept while a feed grew so often on one side says more than its dates.
const TELLING_GROWTH: u32 = 4;

/// Whether the document runs in an order that says which item is older: that of the dates, or one
/// that was kept while new items came on one side.
fn is_orderly(judge: &Judge<'_>) -> bool {
    let character = &judge.scene.snapshot.state.character;
    let (most, least) = (
        character.grew_above.max(character.grew_below),
        character.grew_above.min(character.grew_below),
    );
    let grows = most >= ORDERLY_GROWTH && least.saturating_mul(MIXED_PART) <= most;
    let window = judge.window;
    let agrees = window.mostly_dated || !window.has_dates || most >= TELLING_GROWTH;
    window.ordered
        || (grows
            && agrees
            && window.steady
            && window.direction != Direction::None
            && character.documents >= YOUNG
            && !is_restless(character))
}

/// Where half of a window goes at once and others come, some that stay prove nothing.
fn turned_over(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    // What slid off with nothing left below it says nothing of what went from the middle.
    let gone = if window.slid_cleanly() > 0 { judge.holes } else { window.outgoing };
    let all = window.old.len();
    let half = gone * 2 > all || (gone * 2 == all && !window.incoming.is_empty());
    let keeps = keeps_everything(&judge.scene.snapshot.state.character);
    (half && !keeps).then(|| Objection::Settled(format!("{gone} of {all} items went at once")))
}

/// So many holes in one step are no removals of single items.
const MANY: usize = 3;

/// A scraper that missed a page, an editor's choice, a front page: publishers bring back one in four
/// of what goes like this. Single items go one by one.
fn many_at_once(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let others = judge.holes.saturating_sub(1);
    let why = format!("it went with {others} others at once, which publishers often bring back");
    (judge.holes >= MANY).then_some(Objection::Settled(why))
}

/// Documents that grew and lost nothing, which show that a feed keeps everything.
const GROWTH_LEAST: u32 = 2;

/// Whether new items came and came to the feed and nothing ever left at its end.
pub(super) fn keeps_everything(character: &Character) -> bool {
    character.left_end == 0
        && character.came_alone >= GROWTH_LEAST
        && character.came_alone > character.came_swapping.saturating_mul(2)
}

/// A window that breathes shows older items for a while: what came in at its old end, after all that
/// is newer, may go from there again, and so may several that came in among others and go together.
fn came_late(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    let ledger = &judge.scene.snapshot.known;
    let was_before = |at: usize| ledger.get(at).is_some_and(|k| k.came < known.came);
    let goes_as_it_came = || !window.older_that_stay(place).any(was_before);
    let late = window.came_late(ledger, place)
        && (goes_as_it_came() || window.goes_with_all_that_came(ledger, place));
    let why = "it had come in below newer items, as a window that breathes shows older ones";
    late.then(|| Objection::Settled(why.to_owned()))
}

/// What comes may push out what goes, wherever that stood, where nothing that left at the end made
/// room for it.
fn pushed_out(judge: &Judge<'_>, place: usize, known: &LedgerEntry) -> Option<Objection> {
    let window = judge.window;
    let character = &judge.scene.snapshot.state.character;
    let new = window.incoming.len().saturating_sub(window.backfill);
    // Who is in a hurry takes a single one for deleted.
    let is_hurried = judge.scene.options.deletions == Deletions::Eager && judge.holes == 1;
    let is_known =
        judge.holes == 1 && is_known_to_slide(character) && judge.is_above_others(place, known);
    if new == 0 || is_hurried || is_known || keeps_everything(character) || has_room(judge) {
        return None;
    }
    let is_paid_for = window.crowding() == 0;
    let at_head = window.dated || window.came_at_head(judge.scene);
    // One that never slid cleanly may push out a few at its end and others elsewhere.
    if is_paid_for && at_head && clean_arrivals(character) > 0 {
        return None;
    }
    let why = match (new, judge.holes) {
        (1, _) => "a new item came that may have pushed it out".to_owned(),
        (_, holes) => format!("{new} new items came while {holes} went from there"),
    };
    Some(Objection::Open(Doubt::PushedOut, why))
}

/// Arrivals that pushed nothing out of the middle, so that a window with room in it is believed.
const ROOM_LEAST: u32 = 4;

/// So many clean arrivals show that a feed loses items at its end …
const SLIDES_LEAST: u32 = 3;
/// … where they are so many times as many as its swaps.
const CLEAR: u32 = 2;

/// Whether what came to the feed has clearly pushed out nothing but what stood at its end.
fn is_known_to_slide(character: &Character) -> bool {
    let clean = clean_arrivals(character);
    clean >= SLIDES_LEAST && clean >= character.came_swapping.saturating_mul(CLEAR)
}

/// Whether the window had more items before than would be in it with all that came: it is not full,
/// and has no need to push any out.
fn has_room(judge: &Judge<'_>) -> bool {
    let character = &judge.scene.snapshot.state.character;
    judge.window.ordered
        && judge.window.has_room(character.largest)
        && clean_arrivals(character) >= ROOM_LEAST.max(character.came_swapping)
}

/// Arrivals for which nothing went, or items at the end alone.
fn clean_arrivals(character: &Character) -> u32 {
    character.came_alone.saturating_add(character.came_sliding)
}

/// Swaps are rare where so many times as many came without one.
const RARE: u32 = 4;
/// So many swaps show that a feed pushes items out of its middle.
const SWAPS_LEAST: u32 = 4;

/// Whether what comes to a feed mostly pushes out what stands in its middle, as in one merged from
/// sources that have a window each.
fn pushes_out_of_its_middle(character: &Character) -> bool {
    let swaps = character.came_swapping;
    swaps >= SWAPS_LEAST && swaps > clean_arrivals(character)
}

/// Whether new items come in this document for which others left at the end, if any did, and that is
/// what the feed does. A window that is full may have pushed the item out, where the feed swaps now and
/// then: but never the newest that it had.
fn loses_at_its_end(judge: &Judge<'_>, known: &LedgerEntry) -> bool {
    let window = judge.window;
    let character = &judge.scene.snapshot.state.character;
    let came = !judge.scene.matching.fresh.is_empty() && window.came_at_head(judge.scene);
    let clean = clean_arrivals(character).saturating_add(1);
    let swaps = character.came_swapping;
    let found = u32::try_from(judge.scene.document.entries.len()).unwrap_or(u32::MAX);
    let is_full = found >= character.largest && window.backfill == 0;
    let since = known.absence.as_ref().map(|absence| absence.since);
    let mut others = judge.scene.snapshot.known.iter();
    let was_newest = !others.any(|k| k.came > known.came && Some(k.came) < since);
    let is_clear = !is_full || was_newest || clean >= swaps.saturating_mul(RARE);
    came && window.only_slid() && clean > swaps && is_clear
}

/// So many transitions with a loss from the middle may be deletions, in any feed.
const HABIT_LEAST: u32 = 4;
/// Beyond that, one document in so many that brings something new and loses from the middle …
const SWAPS_PART: u32 = 3;
/// … or in so many that lose from there at all.
const LOSSES_PART: u32 = 2;

fn habit(judge: &Judge<'_>, _: usize, _: &LedgerEntry) -> Option<Objection> {
    let why = "items of this feed often go from the middle";
    is_habit(judge).then(|| Objection::Settled(why.to_owned()))
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
