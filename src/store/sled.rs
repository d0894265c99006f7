//! sled 0.34 as the engine of a store on disk. sled is named in this folder only.

mod barrier;
#[cfg(test)]
mod damage;
mod engine;
#[cfg(test)]
mod leaks;
mod watchdog;

use super::StoreError;
use super::engine::Engine;
use std::path::Path;
use std::sync::Arc;

/// Whether an entry of the data folder, a file or a folder, is sled's.
pub(super) fn is_database_file(name: &str) -> bool {
    matches!(name, "db" | "conf" | "blobs")
        || name.starts_with(engine::SNAPSHOT) && !engine::is_unfinished_snapshot(name)
}

/// Opens the database in the data folder `path`, or makes one. What was written but never made durable may be gone,
/// anything else that is missing is an error.
pub(super) fn open_database(path: &Path) -> Result<Arc<dyn Engine>, StoreError> {
    Ok(Arc::new(engine::open(path)?))
}
