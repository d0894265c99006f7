use super::{HoleCase, HoleRule, Objection};
use crate::rules::Rule;
use crate::window::keeps_everything;
use tidegate_core::model::{Character, Deletions, Doubt, LedgerEntry};

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "pushed-out",
        sentence: "new items came that nothing which left at the old end made room for",
    },
    objects,
};

/// A hole above fewer items than this is too close to the old end, which is irregular in a scraped list.
const LEAST_BELOW_HOLE: usize = 3;
/// The fewest [clean arrivals](clean_arrivals) that show that a window below its largest size pushes nothing out.
const ROOM_LEAST: u32 = 4;
/// The fewest clean arrivals that show that a feed loses items only at its end.
const SLIDES_LEAST: u32 = 3;
/// To show that, clean arrivals must be this many times as frequent as swaps (new items while others left the middle).
const CLEAR: u32 = 2;
/// Swaps are rare if clean arrivals are this many times as frequent.
const RARE: u32 = 4;
/// The fewest swaps that show that a feed pushes items out of its middle.
const SWAPS_LEAST: u32 = 4;
/// Where nothing ever left the middle unless something came, one swap in so many documents shows that one may.
const SWAPS_PART: u32 = 16;

/// What comes may push out what goes, wherever that stood, where nothing that left at the end made
/// room for it.
fn objects(case: &HoleCase<'_>, place: usize, known: &LedgerEntry) -> Option<Objection> {
    let (window, character) = (case.window, case.character());
    let new = window.incoming.len().saturating_sub(window.backfill);
    // Who is in a hurry takes a single one for deleted.
    let is_hurried = window.input.options.deletions == Deletions::Eager && case.holes == 1;
    // What comes below the newest item pushes that over the new end, as a nearer event does in a calendar.
    let over = window.stood_at_head(place) && !window.came_at_head();
    let slides = is_known_to_slide(character) && !swaps_alone(character);
    let is_known = case.holes == 1 && !over && slides && is_above_others(case, place, known);
    if new == 0 || is_hurried || is_known || keeps_everything(character) || has_room(case) {
        return None;
    }
    let is_paid_for = window.crowding() == 0;
    let at_head = !over && (window.dated || window.came_at_head());
    // One that never slid cleanly may push out a few at its end and others elsewhere.
    if is_paid_for && at_head && clean_arrivals(character) > 0 {
        return None;
    }
    let why = match (new, case.holes) {
        (1, _) => "a new item came that may have pushed it out".to_owned(),
        (_, holes) => format!("{new} new items came while {holes} went from there"),
    };
    Some(Objection::Open(Doubt::PushedOut, why))
}

/// Whether enough items stay that are older: by their dates where the document runs by them, else by
/// their places in the last one.
fn is_above_others(case: &HoleCase<'_>, place: usize, known: &LedgerEntry) -> bool {
    let older = match case.window.date_of(known).filter(|_| case.window.dated) {
        Some(date) => case.dates().filter(|other| *other < date).count(),
        None => case.window.older_that_stay(place).count(),
    };
    older >= LEAST_BELOW_HOLE
}

/// Whether what came to the feed has clearly pushed out nothing but what stood at its end.
fn is_known_to_slide(character: &Character) -> bool {
    let clean = clean_arrivals(character);
    clean >= SLIDES_LEAST && clean >= character.came_swapping.saturating_mul(CLEAR)
}

/// Whether the window had more items before than would be in it with all that came: it is not full,
/// and has no need to push any out.
fn has_room(case: &HoleCase<'_>) -> bool {
    let character = case.character();
    case.window.ordered
        && case.window.has_room(character.largest)
        && clean_arrivals(character) >= ROOM_LEAST.max(character.came_swapping)
}

/// Arrivals for which nothing went, or items at the end alone.
const fn clean_arrivals(character: &Character) -> u32 {
    character.came_alone.saturating_add(character.came_sliding)
}

/// Whether what comes to a feed mostly pushes out what stands in its middle, as in one merged from
/// sources that have a window each.
pub(super) const fn pushes_out_of_its_middle(character: &Character) -> bool {
    let swaps = character.came_swapping;
    swaps >= SWAPS_LEAST && swaps > clean_arrivals(character)
}

/// Whether a feed loses items of its middle now and then, and never but as others come: one of its sources is small.
const fn swaps_alone(character: &Character) -> bool {
    let swaps = character.came_swapping;
    let often = swaps.saturating_mul(SWAPS_PART) > character.documents;
    swaps >= SWAPS_LEAST && character.left_middle == swaps && often
}

/// Whether new items come in this document for which others left at the end, if any did, and that is
/// what the feed does. A window that is full may have pushed the item out, where the feed swaps now and
/// then: but never the newest that it had.
pub(super) fn loses_at_its_end(case: &HoleCase<'_>, known: &LedgerEntry) -> bool {
    let (window, character) = (case.window, case.character());
    let input = &window.input;
    let came = !input.matching.fresh.is_empty() && window.came_at_head();
    let clean = clean_arrivals(character).saturating_add(1);
    let swaps = character.came_swapping;
    let found = u32::try_from(input.document.entries.len()).unwrap_or(u32::MAX);
    let is_full = found >= character.largest && window.backfill == 0;
    let since = known.absence.as_ref().map(|absence| absence.since);
    let mut others = input.snapshot.known.iter();
    let was_newest = !others.any(|k| k.came > known.came && Some(k.came) < since);
    let is_rare = clean >= swaps.saturating_mul(RARE) && !swaps_alone(character);
    let is_clear = !is_full || was_newest || is_rare;
    came && window.only_slid() && clean > swaps && is_clear
}
