//! fjall 3 as the engine of a store on disk. fjall is named in this folder only.

#[cfg(test)]
mod damage;
mod engine;
mod journal;
mod keyspaces;
mod manifest;

use super::StoreError;
use super::disk::DiskEngine;
use super::engine::Engine;
use std::path::Path;
use std::sync::Arc;

/// The engine's folder within the data folder.
const FOLDER: &str = "fjall";
/// The last write that is durable, for certain.
const PASSED: &str = "fjall.passed";
/// The folders of the sorted tables.
const TABLES: &str = "tables";

/// fjall in a data folder.
pub(super) struct FjallFiles;

impl DiskEngine for FjallFiles {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn owns(&self, name: &str) -> bool {
        matches!(name, FOLDER | PASSED)
    }

    fn is_written_once(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| parent.ends_with(TABLES))
    }

    fn open(&self, path: &Path, shown: &Path) -> Result<Arc<dyn Engine>, StoreError> {
        Ok(Arc::new(engine::open(path, shown, engine::Workers::Run)?))
    }

    fn open_copy(&self, path: &Path, shown: &Path) -> Result<Arc<dyn Engine>, StoreError> {
        Ok(Arc::new(engine::open(path, shown, engine::Workers::Rest)?))
    }
}
