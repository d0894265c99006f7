//! What was noted of feeds since the start, for operators.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use tidegate_core::model::FeedName;

/// A note for each of some feeds.
#[derive(Debug, Default)]
pub struct NoteBoard<N>(RwLock<Notes<N>>);

#[derive(Debug, Default)]
struct Notes<N> {
    all: HashMap<FeedName, N>,
    /// Rises whenever a note changes.
    revision: u64,
}

impl<N: Clone + Default + PartialEq> NoteBoard<N> {
    /// Changes the note of a feed.
    pub(super) fn change<T>(&self, name: &FeedName, how: impl FnOnce(&mut N) -> T) -> T {
        let mut notes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let note = notes.all.entry(name.clone()).or_default();
        let before = note.clone();
        let told = how(note);
        if *note != before {
            notes.revision += 1;
        }
        told
    }

    pub(crate) fn get(&self, name: &FeedName) -> Option<N> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).all.get(name).cloned()
    }

    /// A number that rises whenever a note changes.
    pub(crate) fn revision(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Forgets the notes of other feeds than these.
    pub fn retain(&self, is_kept: impl Fn(&FeedName) -> bool) {
        let mut notes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = notes.all.len();
        notes.all.retain(|name, _| is_kept(name));
        if notes.all.len() != before {
            notes.revision += 1;
        }
    }
}
