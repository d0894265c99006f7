//! Entries that are no known item by any sign: posts that nobody takes for an old one.

use super::features::{Feature, of_entry, of_item};
use super::{Matching, is_made_up};
use std::collections::HashSet;
use tidegate_core::model::{FeedDocument, Snapshot};

/// The new entries of a matching that have an id of their own, which no item ever bore, a title that
/// none bears, and nothing in common with an item that the document does not have. An address or text
/// that an item of the document bears as well tells of none.
pub(crate) fn unlike(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    matching: &Matching,
) -> Vec<usize> {
    if matching.fresh.is_empty() {
        return Vec::new();
    }
    let there: HashSet<usize> = matching.pairs.iter().map(|pair| pair.known).collect();
    let mut ids: HashSet<&str> = HashSet::new();
    let features_of = |at: &usize| {
        let (entry, native) = (document.entries.get(*at)?, matching.names.get(*at)?);
        Some(of_entry(entry, native, true))
    };
    // What no new entry bears is not kept.
    let asked: HashSet<Feature> = matching.fresh.iter().filter_map(features_of).flatten().collect();
    let (mut borne, mut common) = (HashSet::new(), HashSet::new());
    for (at, known) in snapshot.known.iter().enumerate() {
        ids.extend([known.native_shown.as_str(), known.published_id.as_str()]);
        ids.extend(known.aliases.iter().map(String::as_str));
        let is_free = !there.contains(&at);
        let is_current = known.standing.is_listed();
        for feature in of_item(known).into_iter().filter(|feature| asked.contains(feature)) {
            let counts = match &feature {
                Feature::Title(_) => true,
                Feature::Published(_) | Feature::Updated(_) | Feature::Day(_) => {
                    is_free && is_current
                }
                _ => is_free,
            };
            if counts {
                borne.insert(feature);
            } else if is_shareable(&feature) {
                common.insert(feature);
            }
        }
    }
    let is_unlike = |at: &usize| {
        let (Some(native), Some(features)) = (matching.names.get(*at), features_of(at)) else {
            return false;
        };
        let mut features = features.into_iter();
        let tells = |feature: Feature| borne.contains(&feature) && !common.contains(&feature);
        let is_named = !is_made_up(native) && !ids.contains(native.as_str());
        is_named && !features.any(tells)
    };
    matching.fresh.iter().copied().filter(is_unlike).collect()
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
