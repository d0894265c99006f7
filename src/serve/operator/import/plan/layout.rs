//! Where the feeds of a list come to stand in the list of subscriptions: the outlines that are there, and
//! those that join them.
//!
//! Whoever has a place keeps it: an import adds, and what the reader arranged here is not undone by a list
//! from elsewhere. A folder joins the one of the same name in the same folder, the second of a name the
//! second, and everything that is new comes behind what is there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, ListFolder, ListPlace, OutlineLabel, listed};

/// The outlines around others, the outermost first; none for what is in the body.
pub(super) type FolderPath = Arc<[ListFolder]>;

/// The positions of outlines, each in the one before it.
pub(super) type Positions = Vec<u32>;

pub(super) fn positions(path: &[ListFolder]) -> Positions {
    path.iter().map(|folder| folder.position).collect()
}

/// The folder path of what is in an outline: its own path, or at the greatest depth that of its parent.
fn path_within(parent: &FolderPath, outline: ListFolder) -> FolderPath {
    match parent.len() < ListPlace::DEPTH {
        true => parent.iter().cloned().chain([outline]).collect(),
        false => Arc::clone(parent),
    }
}

/// The folder path of what is in a feed's outline; `None` if the feed has no place in `parent`.
pub(super) fn own_path(parent: &FolderPath, places: &[ListPlace]) -> Option<FolderPath> {
    let around = positions(parent);
    let place = places.iter().find(|place| positions(&place.folders) == around)?;
    let outline = ListFolder { position: place.position, label: place.label.clone() };
    Some(path_within(parent, outline))
}

/// The outlines of the list of subscriptions.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The next position in each outline.
    next: HashMap<Positions, u32>,
    /// Existing folders that no folder of the list has joined yet, by parent and name.
    named: HashMap<(Positions, String), VecDeque<ListFolder>>,
    /// Folders that the list created, each with its parent.
    made: Vec<(Positions, ListFolder)>,
}

impl Layout {
    /// The outlines in which these feeds are.
    pub(super) fn from_records(records: &[Arc<FeedRecord>]) -> Self {
        let (mut layout, mut seen) = (Self::default(), HashSet::new());
        let feeds = listed(records.iter().map(Arc::as_ref));
        for place in feeds.into_iter().filter_map(|(_, place)| place) {
            let mut around = Positions::new();
            for folder in &place.folders {
                layout.occupy(&around, folder.position);
                let parent = around.clone();
                around.push(folder.position);
                if seen.insert(around.clone()) {
                    layout.name(parent, folder.clone());
                }
            }
            layout.occupy(&around, place.position);
        }
        layout
    }

    /// Lets folders from now on join those that were made so far.
    pub(super) fn begin_another_list(&mut self) {
        self.named.clear();
        for (parent, folder) in std::mem::take(&mut self.made) {
            self.name(parent, folder);
        }
    }

    fn name(&mut self, parent: Positions, folder: ListFolder) {
        let key = (parent, folder.label.name().unwrap_or_default().to_owned());
        self.named.entry(key).or_default().push_back(folder);
    }

    fn occupy(&mut self, parent: &[u32], position: u32) {
        let next = self.next.entry(parent.to_vec()).or_default();
        *next = (*next).max(position.saturating_add(1));
    }

    /// A position behind all that is in an outline.
    fn append(&mut self, parent: &[u32]) -> u32 {
        let position = self.next.get(parent).copied().unwrap_or_default();
        self.occupy(parent, position);
        position
    }

    /// A folder of the list that is taken in.
    pub(super) fn folder(&mut self, parent: &FolderPath, label: &OutlineLabel) -> FolderPath {
        if parent.len() >= ListPlace::DEPTH {
            return Arc::clone(parent);
        }
        let key = (positions(parent), label.name().unwrap_or_default().to_owned());
        let known = self.named.get_mut(&key).and_then(VecDeque::pop_front);
        let folder = known.unwrap_or_else(|| {
            let (around, _) = key;
            let folder = ListFolder { position: self.append(&around), label: label.clone() };
            self.made.push((around, folder.clone()));
            folder
        });
        path_within(parent, folder)
    }

    /// Adds a place for a feed behind all others in `parent`; also returns the folder path of what is in its outline.
    pub(super) fn place(
        &mut self,
        parent: &FolderPath,
        label: OutlineLabel,
        site: Option<String>,
    ) -> (ListPlace, FolderPath) {
        let position = self.append(&positions(parent));
        let within = path_within(parent, ListFolder { position, label: label.clone() });
        (ListPlace { number: 0, folders: parent.to_vec(), position, label, site }, within)
    }
}
