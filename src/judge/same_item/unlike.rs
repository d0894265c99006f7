//! Entries that are no known item by any sign: posts that nobody takes for an old one.

use super::features::{Bearers, Feature, FeatureIndex, of_entry};
use super::{Matching, is_made_up};
use std::collections::HashSet;
use tidegate_core::model::{Entry, FeedDocument, Ignore, LedgerEntry, Snapshot};

/// The new entries of a matching that have an id of their own, which no item ever bore, a title that
/// none bears, and nothing in common with an item that the document does not have. An address or text
/// that an item of the document bears as well tells of none.
pub(crate) fn unlike(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    matching: &Matching,
    ignore: &[Ignore],
) -> Vec<usize> {
    let fresh = matching.fresh.iter().copied();
    let fresh =
        fresh.filter_map(|at| Some((at, document.entries.get(at)?, matching.names.get(at)?)));
    let fresh: Vec<_> = fresh.collect();
    let mut index = FeatureIndex::default();
    for (at, entry, native) in &fresh {
        index.add_entry(*at, of_entry(entry, native, ignore), true);
    }
    let there: HashSet<usize> = matching.pairs.iter().map(|pair| pair.known).collect();
    for (at, known) in snapshot.known.iter().enumerate() {
        index.add_item(at, known, !there.contains(&at));
    }
    let tells = |feature: &Feature, bearers: &Bearers| {
        let mut items = bearers.items.iter().chain(&bearers.deleted);
        match feature {
            Feature::Title(_) => items.next().is_some(),
            _ if is_shareable(feature) && items.clone().any(|at| there.contains(at)) => false,
            _ => items.any(|at| !there.contains(at)),
        }
    };
    let names: HashSet<&str> = snapshot.known.iter().flat_map(LedgerEntry::names).collect();
    let is_unlike = |(_, entry, native): &(usize, &Entry<'_>, &String)| {
        let features = of_entry(entry, native, ignore);
        let bearers = |feature| index.bearers.get(feature).is_some_and(|all| tells(feature, all));
        !is_made_up(native) && !names.contains(native.as_str()) && !features.iter().any(bearers)
    };
    fresh.into_iter().filter(is_unlike).map(|(at, ..)| at).collect()
}

/// Whether several posts of a feed may bear it.
const fn is_shareable(feature: &Feature) -> bool {
    matches!(
        feature,
        Feature::Text(_)
            | Feature::Link(_)
            | Feature::Path(_)
            | Feature::Name(_)
            | Feature::Number(_)
    )
}
