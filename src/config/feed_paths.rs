//! The key `path` of `[[feed]]`: a further address of a feed's reader view.

use super::feed_config::FeedConfig;
use super::origins::free_path;
use super::section::Section;
use std::collections::HashMap;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{OriginConfig, OriginPlace};

/// The key, as one that needs a restart.
pub(super) const PATHS: &str = "feed.path";

/// The paths of the feeds that were read so far.
pub(super) struct FeedPaths<'o> {
    /// The paths of origins, each with its name.
    origins: HashMap<&'o str, &'o FeedName>,
    /// The paths of feeds, each with its line.
    taken: HashMap<String, usize>,
    /// The place of the first one; all of them need a restart.
    pub(super) first: Option<usize>,
}

impl<'o> FeedPaths<'o> {
    pub(super) fn new(origins: &'o [OriginConfig]) -> Self {
        let path = |site: &'o OriginConfig| match &site.place {
            OriginPlace::At(path) => Some((path.as_str(), &site.name)),
            OriginPlace::Host(_) => None,
        };
        let origins = origins.iter().filter_map(path).collect();
        Self { origins, taken: HashMap::new(), first: None }
    }

    /// Checks the path of a feed against those of other feeds and of origins.
    pub(super) fn check(&mut self, section: &mut Section<'_, '_, '_>, path: Option<&str>) {
        let Some(path) = path else { return };
        self.first = self.first.or(Some(section.offset("path")));
        let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
        if let Some(name) = folders.find_map(|folder| self.origins.get(folder)) {
            let message =
                format!("{path:?} is below the origin {:?}; write another", name.as_str());
            section.fault("path", message);
        }
        if let Some(line) = self.taken.get(path) {
            let message = format!("{path:?} is taken by line {line}; each needs its own");
            return section.fault("path", message);
        }
        self.taken.insert(path.to_owned(), section.line());
    }
}

/// Puts back the paths in force; whether any differed.
pub(super) fn keep_paths(in_force: &[FeedConfig], read: &mut [FeedConfig]) -> bool {
    let paths: HashMap<&FeedName, &String> =
        in_force.iter().filter_map(|feed| Some((&feed.name, feed.path.as_ref()?))).collect();
    let mut differed = false;
    for feed in read {
        let path = paths.get(&feed.name).copied();
        if feed.path.as_ref() != path {
            feed.path = path.cloned();
            differed = true;
        }
    }
    differed
}

/// Checks the path that a feed gets beside `/feeds/NAME`.
pub(super) fn feed_path(text: &str) -> Result<String, String> {
    if text == "/" {
        return Err("\"/\" is the gateway's own; write one like \"/atom.xml\"".to_owned());
    }
    free_path(text)
}
