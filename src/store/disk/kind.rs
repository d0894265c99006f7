//! Which engine a store on disk has.

use crate::engine::Engine;
use crate::{StoreError, disk_engine};
use std::path::Path;
use std::sync::Arc;

/// The engines of stores on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DiskKind {
    /// A log-structured tree that writes leaves of sixteen entries anew.
    #[default]
    Sled,
    /// A journal, and sorted tables that are merged.
    Fjall,
}

impl DiskKind {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Sled, Self::Fjall];

    /// Its name, as in `store.kind`.
    pub fn name(self) -> &'static str {
        self.engine().name()
    }

    /// The kind with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Its engine.
    pub(super) fn engine(self) -> &'static dyn DiskEngine {
        disk_engine(self)
    }
}

/// What the folder of a store needs of an engine.
pub(crate) trait DiskEngine: Send + Sync {
    /// The engine's name, as in `store.kind`.
    fn name(&self) -> &'static str;

    /// Whether an entry of the data folder, a file or a folder, is the engine's.
    fn owns(&self, name: &str) -> bool;

    /// Whether the engine writes a file of its own once, with checksums that are verified as it is read, and
    /// only ever removes it. `path` is below the data folder.
    fn is_written_once(&self, path: &Path) -> bool;

    /// Opens the database in the data folder `path`, or makes one; messages speak of the folder `shown`. What
    /// was written but never made durable may be gone, anything else that is missing is an error.
    fn open(&self, path: &Path, shown: &Path) -> Result<Arc<dyn Engine>, StoreError>;

    /// The same of a copy of the engine's files, to see what it has: nothing but what an opening changes
    /// is written.
    fn open_copy(&self, path: &Path, shown: &Path) -> Result<Arc<dyn Engine>, StoreError> {
        self.open(path, shown)
    }
}
