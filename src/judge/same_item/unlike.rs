//! Entries that are no known item by any sign: posts that nobody takes for an old one.

use super::features::{Feature, of_item, without_texts};
use super::{Matching, is_made_up};
use foldhash::{HashSet, HashSetExt as _};
use tidegate_core::model::{FeedDocument, LedgerEntry, Snapshot};

/// The new entries of a matching that have an id of their own, which no item ever bore, a title that
/// none bears, and nothing in common with an item that the document does not have. An address or text
/// that an item of the document bears as well tells of none.
pub(crate) fn unlike(
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    matching: &Matching,
) -> Vec<usize> {
    let fresh = matching.fresh.iter().copied();
    let fresh = fresh.filter_map(|at| {
        let (entry, native) = (document.entries.get(at)?, matching.names.get(at)?);
        let texts = matching.texts.get(&at).into_iter().flatten();
        let mut features = without_texts(entry, native);
        features.extend(texts.map(|text| Feature::Text(text.print)));
        Some((at, native, features))
    });
    let fresh: Vec<(usize, &String, Vec<Feature>)> = fresh.collect();
    if fresh.is_empty() {
        return Vec::new();
    }
    // Collect only features that some new entry has. Unlike in a matching, a feature counts however many items have it.
    let asked: HashSet<&Feature> = fresh.iter().flat_map(|(_, _, features)| features).collect();
    let there: HashSet<usize> = matching.pairs.iter().map(|pair| pair.known).collect();
    let (mut borne, mut common) = (HashSet::new(), HashSet::new());
    for (at, known) in snapshot.known.iter().enumerate() {
        let is_free = !there.contains(&at);
        let is_current = known.standing.is_listed();
        for feature in of_item(known).into_iter().filter(|feature| asked.contains(feature)) {
            let tells = match &feature {
                Feature::Title(_) => true,
                Feature::Published(_) | Feature::Updated(_) | Feature::Day(_) => {
                    is_free && is_current
                }
                _ => is_free,
            };
            if tells {
                borne.insert(feature);
            } else if is_shareable(&feature) {
                common.insert(feature);
            }
        }
    }
    let names: HashSet<&str> = snapshot.known.iter().flat_map(LedgerEntry::names).collect();
    let tells = |feature: &Feature| borne.contains(feature) && !common.contains(feature);
    let is_unlike = |(_, native, features): &(usize, &String, Vec<Feature>)| {
        !is_made_up(native) && !names.contains(native.as_str()) && !features.iter().any(tells)
    };
    fresh.iter().filter(|one| is_unlike(one)).map(|one| one.0).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::news;
    use crate::same_item::matching;
    use crate::testing::{read, rss};
    use tidegate_core::model::{FeedOptions, Format, ItemStatus, SyncId, Time};

    /// A document of posts: an id, a title, a link and a text each.
    fn document(posts: &[[&str; 4]]) -> String {
        let post = |[id, title, link, text]: &[&str; 4]| {
            format!(
                "<item><guid isPermaLink='false'>{id}</guid><title>{title}</title>\
                 <link>{link}</link><description>{text}</description></item>"
            )
        };
        rss(&posts.iter().map(post).collect::<String>())
    }

    const TEXT: &str =
        "A text that says so much that nobody ever writes the very same words a second time.";

    /// Which of new posts are unlike the items that old posts became, standing so. All of them stay
    /// new.
    fn unlike_old(old: &[[&str; 4]], standing: &ItemStatus, new: &[[&str; 4]]) -> Vec<usize> {
        let (old, new) = (document(old), document(new));
        let (old, new) = (read(&old), read(&new));
        let known = old.entries.iter().enumerate().map(|(at, entry)| LedgerEntry {
            id: SyncId::new(&format!("gate.{at}")).unwrap(),
            standing: standing.clone(),
            title: entry.title.as_deref().unwrap_or_default().to_owned(),
            link: entry.link.as_deref().map(str::to_owned),
            prints: news::fingerprint(entry, &[]).prints,
            ..LedgerEntry::left(entry.native_id.as_deref().unwrap())
        });
        let snapshot =
            Snapshot::untouched(Format::Rss20, Time::from_unix(1_767_300_000)).with_stubs(known);
        let matching = matching(&snapshot, &new, &FeedOptions::default());
        assert_eq!(matching.fresh.len(), new.entries.len(), "{matching:?}");
        unlike(&snapshot, &new, &matching)
    }

    #[test]
    fn the_text_of_what_is_listed_no_more_tells_however_many_bear_it() {
        let since = Time::from_unix(1_767_225_600);
        let ids: Vec<String> = (0..12).map(|id| format!("urn:old:{id}")).collect();
        let old: Vec<[&str; 4]> =
            ids.iter().map(|id| [id.as_str(), "Tides", "https://a.example/x/", TEXT]).collect();
        let again = ["urn:b", "Moons", "https://b.example/y/", TEXT];
        let other = ["urn:c", "Stars", "https://b.example/z/", "Something else altogether."];
        for standing in [ItemStatus::Retired { since }, ItemStatus::Deleted { since }] {
            for old in [&old[..1], &old] {
                assert_eq!(unlike_old(old, &standing, &[again, other]), [1], "{standing:?}");
            }
        }
    }
}
