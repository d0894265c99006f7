//! Whether what was read from the store is still so, without asking it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_core::model::Revision;

/// Whether a feed's state is still what it was when this was handed out.
#[derive(Debug, Clone)]
pub struct StateWatch {
    revision: Revision,
    is_outdated: Arc<AtomicBool>,
}

impl StateWatch {
    /// Of a state of this revision, until [`StateWatch::outdate`].
    pub fn new(revision: Revision) -> Self {
        Self { revision, is_outdated: Arc::default() }
    }

    /// The revision of that state.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether it is the feed's state still.
    pub fn is_current(&self) -> bool {
        !self.is_outdated.load(Ordering::Acquire)
    }

    /// Tells everybody who has this watch that the state is another one.
    pub fn outdate(&self) {
        self.is_outdated.store(true, Ordering::Release);
    }
}
