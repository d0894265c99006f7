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
/// If more than one in this many outlines changed places at once, the list was sorted, and no outline counts as moved.
const SORTED: usize = 3;
/// Up to this many outlines always count as moved.
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

    /// What is left stands in its old order, nothing more could have been left, and of what could it ends lowest.
    #[test]
    fn the_rest_kept_its_order() {
        for (places, moved) in [
            (&[0, 1, 2, 3][..], &[][..]),
            (&[3, 0, 1, 2], &[3]),
            (&[1, 2, 3, 0], &[0]),
            (&[0, 3, 1, 2], &[3]),
            (&[1, 0], &[1]),
            (&[2, 3, 0, 1], &[2, 3]),
            (&[5, 1, 4, 2, 3, 0], &[0, 4, 5]),
        ] {
            let those: Vec<(usize, usize)> = places.iter().map(|place| (*place, *place)).collect();
            let mut found = out_of_order(&those);
            found.sort_unstable();
            assert_eq!(found, moved, "{places:?}");
        }
    }
}
