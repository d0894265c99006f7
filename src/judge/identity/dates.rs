//! Documents that keep their dates and nothing else.

use super::evidence::Sides;
use super::signs::Basis;
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{ItemStatus, Time};
use tidegate_core::xml::plain_address::day;

/// So many that keep their dates at once are believed on that alone.
const MANY_AT_ONCE: usize = 3;

/// A whole document translated or written anew keeps its dates and nothing else. Of a single item
/// that says nothing.
pub(super) fn same_dates(sides: &mut Sides<'_>) {
    let found = candidates(sides);
    if found.len() < MANY_AT_ONCE {
        return;
    }
    for (entry, known) in found {
        let date = sides.document.entries.get(entry).and_then(|entry| entry.published);
        let is_telling = date.is_none_or(|date| !sides.is_day(date));
        // What was just paired is a neighbour to what comes next.
        if is_telling && sides.same_slot(entry, known) {
            sides.pair(entry, known, Basis::Dates);
        }
    }
}

fn date_or_day(published: Option<Time>, shown: &str) -> Option<String> {
    published.map(|date| date.to_string()).or_else(|| day(shown))
}

/// The unmatched entries and items whose date no matched one bears, where both sides have equally
/// many of it, in document order.
fn candidates(sides: &Sides<'_>) -> Vec<(usize, usize)> {
    let mut found: HashMap<String, (Vec<usize>, Vec<usize>)> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (at, (entry, native)) in sides.document.entries.iter().zip(sides.names).enumerate() {
        if sides.is_copy(at) {
            continue;
        }
        let Some(date) = date_or_day(entry.published, &native.shown) else { continue };
        if sides.is_entry_free(at) {
            found.entry(date).or_default().0.push(at);
        } else {
            taken.insert(date);
        }
    }
    for (at, known) in sides.snapshot.known.iter().enumerate() {
        let is_free = sides.is_known_free(at);
        let reachable = is_free && known.standing == ItemStatus::Current;
        if !reachable && sides.place(at).is_none() {
            continue;
        }
        let Some(date) = date_or_day(known.published, &known.native_shown) else { continue };
        if !is_free {
            taken.insert(date);
        } else if let Some(both) = found.get_mut(&date) {
            both.1.push(at);
        }
    }
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (date, (entries, mut items)) in found {
        if entries.len() == items.len() && !taken.contains(&date) {
            items.sort_by_key(|at| sides.place(*at));
            pairs.extend(entries.into_iter().zip(items));
        }
    }
    pairs.sort_unstable();
    pairs
}
