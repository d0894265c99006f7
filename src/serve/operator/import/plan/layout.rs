//! Where the feeds of a list come to stand in the list of subscriptions: the outlines that are there, and
//! those that join them.
//!
//! Whoever has a place keeps it: an import adds, and what the reader arranged here is not undone by a list
//! from elsewhere. A folder joins the one of the same name in the same folder, the second of a name the
//! second, and everything that is new comes behind what is there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, ListFolder, ListPlace, OutlineLabel, listed};

/// An outline, by its number in the layout; `None` is the body.
pub(super) type LayoutIndex = Option<usize>;

/// The outlines of the list of subscriptions.
#[derive(Debug, Default)]
pub(super) struct Layout {
    nodes: Vec<LayoutNode>,
    /// The next position in each outline.
    next: HashMap<LayoutIndex, u32>,
    /// Outlines by what they stand in and their position there.
    at: HashMap<(LayoutIndex, u32), usize>,
    /// Folders that were there before and that the list was not found to have yet, by what they stand in and their names.
    named: HashMap<(LayoutIndex, String), VecDeque<usize>>,
}

#[derive(Debug)]
struct LayoutNode {
    parent: LayoutIndex,
    position: u32,
    /// How many outlines are around what stands in it.
    depth: usize,
    label: OutlineLabel,
    is_folder: bool,
}

impl Layout {
    /// The outlines in which these feeds stand.
    pub(super) fn from_records(records: &[Arc<FeedRecord>]) -> Self {
        let mut layout = Self::default();
        for (_, place) in listed(records.iter().map(Arc::as_ref)) {
            let Some(place) = place else { continue };
            let mut parent = None;
            for folder in &place.folders {
                let node = layout.node(parent, folder.position, &folder.label);
                layout.make_folder(node);
                parent = Some(node);
            }
            layout.node(parent, place.position, &place.label);
        }
        layout
    }

    /// Lets folders from now on join those that were made so far.
    pub(super) fn begin_another_list(&mut self) {
        self.named.clear();
        for number in 0..self.nodes.len() {
            if self.nodes.get(number).is_some_and(|node| node.is_folder) {
                self.name(number);
            }
        }
    }

    fn node(&mut self, parent: LayoutIndex, position: u32, label: &OutlineLabel) -> usize {
        let number = self.nodes.len();
        let found = *self.at.entry((parent, position)).or_insert(number);
        if found == number {
            let depth = self.depth(parent).saturating_add(1);
            let (label, is_folder) = (label.clone(), false);
            self.nodes.push(LayoutNode { parent, position, depth, label, is_folder });
            let next = self.next.entry(parent).or_default();
            *next = (*next).max(position.saturating_add(1));
        }
        found
    }

    fn make_folder(&mut self, number: usize) {
        let Some(node) = self.nodes.get_mut(number) else { return };
        if !std::mem::replace(&mut node.is_folder, true) {
            self.name(number);
        }
    }

    fn name(&mut self, number: usize) {
        let Some(node) = self.nodes.get(number) else { return };
        let key = (node.parent, node.label.name().unwrap_or_default().to_owned());
        self.named.entry(key).or_default().push_back(number);
    }

    fn depth(&self, place: LayoutIndex) -> usize {
        place.and_then(|number| self.nodes.get(number)).map_or(0, |node| node.depth)
    }

    fn append(&mut self, parent: LayoutIndex, label: &OutlineLabel) -> usize {
        let position = self.next.get(&parent).copied().unwrap_or_default();
        self.node(parent, position, label)
    }

    /// What stands in an outline stands in this one: itself, but where that would be too deep the one
    /// around it.
    pub(super) fn around(&self, number: usize) -> LayoutIndex {
        let node = self.nodes.get(number)?;
        if node.depth > ListPlace::DEPTH { node.parent } else { Some(number) }
    }

    /// A folder of the list that is taken in.
    pub(super) fn folder(&mut self, parent: LayoutIndex, label: &OutlineLabel) -> LayoutIndex {
        if self.depth(parent) >= ListPlace::DEPTH {
            return parent;
        }
        let key = (parent, label.name().unwrap_or_default().to_owned());
        let known = self.named.get_mut(&key).and_then(VecDeque::pop_front);
        let number = known.unwrap_or_else(|| self.append(parent, label));
        if let Some(node) = self.nodes.get_mut(number) {
            node.is_folder = true;
        }
        Some(number)
    }

    /// The outline of a feed that has a place in this one.
    pub(super) fn own(&self, parent: LayoutIndex, places: &[ListPlace]) -> Option<usize> {
        places.iter().find_map(|place| {
            let mut around = None;
            for folder in &place.folders {
                around = Some(*self.at.get(&(around, folder.position))?);
            }
            (around == parent).then(|| self.at.get(&(parent, place.position)).copied()).flatten()
        })
    }

    /// A new place for a feed, behind all that stands there, and its outline.
    pub(super) fn place(
        &mut self,
        parent: LayoutIndex,
        label: OutlineLabel,
        site: Option<String>,
    ) -> (ListPlace, usize) {
        let number = self.append(parent, &label);
        let position = self.nodes.get(number).map_or(0, |node| node.position);
        let mut folders = Vec::new();
        let mut next = parent;
        // Each stands behind the one around it, so this ends.
        while let Some(node) = next.and_then(|number| self.nodes.get(number)) {
            folders.push(ListFolder { position: node.position, label: node.label.clone() });
            next = node.parent;
        }
        folders.reverse();
        (ListPlace { number: 0, folders, position, label, site }, number)
    }
}
