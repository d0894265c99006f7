//! sled 0.34 as the engine of a store on disk. sled is named in this folder only.

mod barrier;
#[cfg(test)]
mod damage;
mod engine;
#[cfg(test)]
mod leaks;
mod watchdog;

use super::StoreError;
use super::disk::DiskEngine;
use super::engine::Engine;
use std::path::Path;
use std::sync::Arc;

/// sled in a data folder.
pub(super) struct SledFiles;

impl DiskEngine for SledFiles {
    fn name(&self) -> &'static str {
        "sled"
    }

    fn owns(&self, name: &str) -> bool {
        matches!(name, "db" | "conf" | "blobs")
            || name.starts_with(engine::SNAPSHOT) && !engine::is_unfinished_snapshot(name)
    }

    fn is_written_once(&self, _path: &Path) -> bool {
        false
    }

    fn open(&self, path: &Path, shown: &Path) -> Result<Arc<dyn Engine>, StoreError> {
        Ok(Arc::new(engine::open(path, shown)?))
    }
}
