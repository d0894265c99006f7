//! What was noted of feeds since the start, for operators.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use tidegate_core::model::FeedName;

/// A note for each of some feeds.
#[derive(Debug, Default)]
pub struct NoteBoard<N>(RwLock<HashMap<FeedName, N>>);

impl<N: Clone + Default> NoteBoard<N> {
    /// Changes the note of a feed.
    pub(super) fn change<T>(&self, name: &FeedName, how: impl FnOnce(&mut N) -> T) -> T {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        how(all.entry(name.clone()).or_default())
    }

    /// The note of a feed.
    pub(super) fn get(&self, name: &FeedName) -> Option<N> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Forgets the notes of other feeds than these.
    pub fn retain(&self, is_kept: impl Fn(&FeedName) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| is_kept(name));
    }
}
