//! Outlines that were moved within a list (SSE 0.91 section 3.2): where an outline stands is a part of
//! what it says, so that its publisher has to update it.
//!
//! What comes and goes shifts the places of those behind it, and moves none of them. Of those that
//! stood together before and still do, as few as can be have moved: all but a longest run that kept
//! its order.

use super::compare::ChangedEntry;
use crate::same_item::{MatchedEntry, longest_run};
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use tidegate_core::model::{Entry, FeedDocument, Format, Snapshot};

/// The field that names what an outline stands in.
pub(super) const PARENT: &str = "outline:parent@ref";
/// A list in which more than one of so many moved at once was sorted: that is its new order, and
/// nobody moved anything.
const SORTED: usize = 3;
/// How many may have moved whatever the list is.
const FEW: usize = 3;

/// Whether the entries of a document are outlines of a list, whatever its container.
pub(super) fn is_list(document: &FeedDocument<'_>) -> bool {
    document.format == Format::Opml || document.entries.iter().any(|entry| parent(entry).is_some())
}

/// The entries that were moved among those that they stand with. `pairs`: with what differs of each.
pub(super) fn moved(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    pairs: &[(MatchedEntry, Option<ChangedEntry<'_>>)],
) -> HashSet<usize> {
    if document.format != Format::Opml || snapshot.state.format != Format::Opml {
        return HashSet::new();
    }
    let places: HashMap<_, usize> = snapshot.order.iter().zip(0..).collect();
    let mut pairs: Vec<&(MatchedEntry, Option<ChangedEntry<'_>>)> = pairs.iter().collect();
    pairs.sort_by_key(|(pair, _)| pair.entry);
    // By what they stand in, in the order of the document: the entry and its old place.
    let mut together: HashMap<Option<&str>, Vec<(usize, usize)>> = HashMap::new();
    let mut found = 0;
    for (pair, compared) in pairs {
        let entry = document.entries.get(pair.entry);
        let known = snapshot.known.get(pair.known);
        let Some((entry, known)) = entry.zip(known) else { continue };
        let Some(place) = places.get(&known.id) else { continue };
        let parent = parent(entry);
        if !compared.as_ref().is_some_and(ChangedEntry::is_elsewhere) {
            found += 1;
            together.entry(parent).or_default().push((pair.entry, *place));
        }
    }
    let moved: HashSet<usize> = together.values().flat_map(|those| out_of_order(those)).collect();
    if moved.len() > FEW && moved.len() * SORTED > found { HashSet::new() } else { moved }
}

fn parent<'e>(entry: &'e Entry<'_>) -> Option<&'e str> {
    let field = entry.fields().iter().find(|field| field.path == PARENT);
    field.map(|field| field.value.as_ref())
}

/// Of entries with their old places, in their new order, those that are not in a longest run of rising
/// places.
fn out_of_order(those: &[(usize, usize)]) -> Vec<usize> {
    let places: Vec<usize> = those.iter().map(|(_, place)| *place).collect();
    let kept: HashSet<usize> = longest_run(&places).into_iter().collect();
    let moved = those.iter().enumerate().filter(|(at, _)| !kept.contains(at));
    moved.map(|(_, (entry, _))| *entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    fn of(places: &[usize]) -> Vec<usize> {
        let those: Vec<(usize, usize)> = places.iter().copied().enumerate().collect();
        let mut moved: Vec<usize> =
            out_of_order(&those).iter().filter_map(|at| places.get(*at)).copied().collect();
        moved.sort_unstable();
        moved
    }

    proptest! {
        /// What is left stands in its old order, nothing more could have been left, and of what could it ends lowest.
        #[test]
        fn the_rest_kept_its_order(
            places in (0..10_usize).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle()),
        ) {
            let moved = of(&places);
            let kept: Vec<usize> = places.iter().filter(|p| !moved.contains(p)).copied().collect();
            prop_assert!(kept.is_sorted());
            let best = (0..1_usize << places.len())
                .filter_map(|chosen| {
                    let run: Vec<usize> = places
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| chosen >> at & 1 == 1)
                        .map(|(_, place)| *place)
                        .collect();
                    run.is_sorted().then(|| (run.len(), Reverse(run.last().copied())))
                })
                .max();
            prop_assert_eq!(Some((kept.len(), Reverse(kept.last().copied()))), best);
            prop_assert!(longest_run(&places).is_sorted());
        }
    }
}
