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

/// Opens the database in the folder `path`, or makes one; messages show the data folder. What was written but never
/// made durable may be gone, anything else that is missing is an error.
pub(super) fn open_database(
    data_folder: &Path,
    path: &Path,
) -> Result<Arc<dyn Engine>, StoreError> {
    Ok(Arc::new(engine::open(data_folder, path)?))
}
