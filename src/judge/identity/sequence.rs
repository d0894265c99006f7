//! Documents in which ids, links and dates change at once, and the titles and their order stay; of entries
//! without titles, the texts.

use super::evidence::Sides;
use super::features::{Feature, note_texts, plain_title};
use super::group::pair_group;
use super::signs::Basis;
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{Entry, LedgerEntry};

/// Two equal titles happen; so many in the same order are the same posts …
const LEAST_ANCHORS: usize = 3;
/// … where they are one in so many, or more, of what is unmatched on the side that has less of it.
const ANCHORS_PART: usize = 2;

/// Entries and items that bear a title, or a text where they have none: those of one native id on each side.
type Anchor = (Vec<usize>, Vec<usize>);

/// Pairs the longest run of titles that stand in the same order on both sides, whatever ids, links
/// and dates say.
pub(super) fn same_sequence(sides: &mut Sides<'_>) {
    let anchors = anchors(sides);
    let places: Vec<Option<usize>> =
        anchors.iter().map(|(_, items)| sides.place(*items.first()?)).collect();
    let run = longest_run(&places);
    let free = (0..sides.names.len()).filter(|at| sides.is_entry_free(*at));
    let entries: HashSet<&str> =
        free.filter_map(|at| sides.names.get(at)).map(|native| native.shown.as_str()).collect();
    let missing = sides.listed().iter().filter(|at| sides.is_known_free(**at));
    let items: HashSet<&str> = missing
        .filter_map(|at| sides.snapshot.known.get(*at))
        .map(|known| known.native_shown.as_str())
        .collect();
    if run.len() < LEAST_ANCHORS || run.len() * ANCHORS_PART < entries.len().min(items.len()) {
        return;
    }
    for (entries, items) in run.into_iter().filter_map(|at| anchors.get(at)) {
        pair_group(sides, entries, items, Basis::Sequence);
    }
}

/// The unmatched entries and items whose title, or text, stands once in each document and is that of no
/// series, in the order of the entries. What shares a native id stands once.
fn anchors(sides: &Sides<'_>) -> Vec<Anchor> {
    let mut entries: HashMap<Feature, Vec<usize>> = HashMap::new();
    for (at, entry) in sides.document.entries.iter().enumerate() {
        if let Some(feature) = name_of_entry(entry).filter(|_| !sides.is_copy(at)) {
            entries.entry(feature).or_default().push(at);
        }
    }
    let mut items: HashMap<Feature, (HashSet<&str>, Vec<usize>)> = HashMap::new();
    for (at, known) in sides.snapshot.known.iter().enumerate() {
        let Some(feature) = name_of_item(known, &entries) else { continue };
        let (names, listed) = items.entry(feature).or_default();
        names.insert(&known.native_shown);
        if sides.place(at).is_some() {
            listed.push(at);
        }
    }
    let mut anchors: Vec<Anchor> = Vec::new();
    for (feature, entries) in entries {
        let Some((names, listed)) = items.remove(&feature) else { continue };
        let shown = |at: &usize| sides.names.get(*at).map(|native| native.shown.as_str());
        let first = entries.first().and_then(shown);
        let is_one = entries.iter().all(|at| shown(at) == first) && names.len() == 1;
        let are_free = entries.iter().all(|at| sides.is_entry_free(*at))
            && listed.iter().all(|at| sides.is_known_free(*at));
        let is_renamed = first.is_some_and(|first| !names.contains(first));
        if is_one && are_free && is_renamed && !listed.is_empty() {
            anchors.push((entries, listed));
        }
    }
    anchors.sort_unstable();
    anchors
}

/// What an entry is called in a row of others: by its title, or by its text where it has none.
fn name_of_entry(entry: &Entry<'_>) -> Option<Feature> {
    match entry.title.as_deref().unwrap_or_default().trim() {
        "" => note_texts(entry).into_iter().next().map(Feature::Text),
        title => plain_title(title).map(Feature::Title),
    }
}

/// The same of an item, where an entry is called so.
fn name_of_item(known: &LedgerEntry, entries: &HashMap<Feature, Vec<usize>>) -> Option<Feature> {
    let mut texts = known.prints.iter().filter(|_| known.title.trim().is_empty());
    let is_borne = |feature: &Feature| entries.contains_key(feature);
    let text = || texts.find_map(|print| Some(Feature::Text(*print)).filter(is_borne));
    plain_title(&known.title).map(Feature::Title).filter(is_borne).or_else(text)
}

/// The longest row of indices whose values rise; of several the one that ends lowest.
pub(crate) fn longest_run<T: PartialOrd>(places: &[T]) -> Vec<usize> {
    // `ends[n]` is where a run of n + 1 ends that ends lowest.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        let length = ends.partition_point(|end| places.get(*end) < Some(place));
        before.push(length.checked_sub(1).and_then(|last| ends.get(last).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    // Each step leads to an earlier index.
    while let Some(at) = next {
        run.push(at);
        next = before.get(at).copied().flatten();
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_rises() {
        let run = |places: &[usize]| -> Vec<usize> {
            let places: Vec<Option<usize>> = places.iter().copied().map(Some).collect();
            longest_run(&places).into_iter().filter_map(|at| places[at]).collect()
        };
        assert!(run(&[]).is_empty());
        assert_eq!(run(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(run(&[9, 1, 2, 8, 3]), [1, 2, 3]);
        assert_eq!(run(&[3, 2, 1]).len(), 1);
    }
}
