//! What a document adds to what has been learned of its feed.

use crate::window::WindowShift;
use tidegate_core::model::{Character, Evidence};

/// Learns from a full document.
pub(super) fn learn(character: &mut Character, window: &WindowShift<'_>) {
    let input = &window.input;
    let found = u32::try_from(input.document.entries.len()).unwrap_or(u32::MAX);
    character.documents = character.documents.saturating_add(1);
    character.largest = character.largest.max(found);
    let add = |count: &mut u32, so: bool| *count = count.saturating_add(u32::from(so));
    let places = window.places_now(input.matching.pairs.iter());
    if places.len() > 1 {
        let in_order = places.is_sorted();
        let count = if in_order { &mut character.kept_order } else { &mut character.reordered };
        *count = count.saturating_add(1);
    }
    let date = |at: usize| window.date_in(input.document.entries.get(at)?);
    let old = || input.matching.pairs.iter().map(|pair| pair.entry);
    if let (Some(first), Some(last), false) =
        (old().min(), old().max(), input.matching.fresh.is_empty())
    {
        // What comes between old ones, or is older than all of them, says nothing of the new end.
        let oldest = old().filter_map(date).min();
        let is_older = |at: &usize| matches!((date(*at), oldest), (Some(a), Some(b)) if a < b);
        let fresh =
            || input.matching.fresh.iter().filter(|at| !is_older(at) && !window.is_older(**at));
        add(&mut character.grew_above, fresh().any(|at| *at < last));
        add(&mut character.grew_below, fresh().any(|at| *at > first));
    }
    let holes = crate::hole::holes(window);
    add(&mut character.left_middle, holes > 0);
    add(&mut character.left_end, window.outgoing > holes || !window.below_gone.is_empty());
    let came = !window.incoming.is_empty();
    let at_head = came && window.came_at_head();
    // What was lost and found is no arrival, and neither is a first document.
    let is_new = at_head && !input.matching.fresh.is_empty() && !window.old.is_empty();
    add(&mut character.came_alone, is_new && window.outgoing == 0);
    add(&mut character.came_sliding, at_head && window.outgoing > 0 && window.only_slid());
    add(&mut character.came_swapping, came && holes > 0);
    let returned = input.matching.pairs.iter().filter(|pair| {
        let absence = input.snapshot.known.get(pair.known).and_then(|k| k.absence.as_ref());
        absence.is_some_and(|a| a.evidence == Evidence::Hole)
    });
    let returned = u32::try_from(returned.count()).unwrap_or(u32::MAX);
    character.holes_returned = character.holes_returned.saturating_add(returned);
}
