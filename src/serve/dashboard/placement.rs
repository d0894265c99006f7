//! Where the reader's own list has each feed.

use super::list::OverviewFeed;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tidegate_core::model::{FeedName, FeedRecord, ListPlace, listed, shown_text};

/// Where the reader's list has a feed.
struct ListPlacement {
    /// Its number in the order of the list.
    at: usize,
    /// What it is called there, where the reader calls it anything.
    label: Option<String>,
    /// The folder that it is in first, and the others.
    folder: String,
    also: Vec<String>,
}

/// Puts feeds into the order of the reader's list, and says where each is in it.
pub(super) fn place<'a>(feeds: &mut [OverviewFeed], records: impl Iterator<Item = &'a FeedRecord>) {
    let mut places: HashMap<&FeedName, ListPlacement> = HashMap::new();
    for (at, (record, place)) in listed(records).into_iter().enumerate() {
        let folder = place.map(folder_path).unwrap_or_default();
        match places.entry(&record.name) {
            Entry::Vacant(first) => {
                let label = place.filter(|place| place.label.name().is_some());
                let label = label.and_then(|place| record.shown_label(Some(place)).text);
                first.insert(ListPlacement { at, label, folder, also: Vec::new() });
            }
            Entry::Occupied(mut known) => known.get_mut().also.push(folder),
        }
    }
    let mut order = HashMap::with_capacity(feeds.len());
    for feed in feeds.iter_mut() {
        let Some(place) = places.remove(&feed.name) else { continue };
        order.insert(feed.name.clone(), place.at);
        feed.title = place.label.unwrap_or_else(|| std::mem::take(&mut feed.title));
        (feed.folder, feed.also) = (place.folder, place.also);
    }
    // What the list does not know yet comes last.
    feeds.sort_by_key(|feed| order.get(&feed.name).copied().unwrap_or(usize::MAX));
}

/// The folders around a place, as a page shows them.
fn folder_path(place: &ListPlace) -> String {
    let names = place.folders.iter().map(|folder| {
        let name = folder.label.heading().map(|name| shown_text(name, None));
        name.unwrap_or_else(|| "(no name)".to_owned())
    });
    names.collect::<Vec<_>>().join(" / ")
}
