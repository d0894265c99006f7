//! `[store]`: where the gateway keeps what it knows.

use super::keys::{Preset::Value as Preset, section};
use super::kinds::{OneOf, Parsed};
use std::path::PathBuf;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StoreKind {
    /// On disk.
    #[default]
    Sled,
    /// In memory: everything is forgotten at the end.
    Memory,
}

section! {
    /// Where the gateway keeps what it knows.
    pub struct StoreSettings {
        /// `"sled"`: on disk; `"memory"`: everything is forgotten at the end.
        kind: StoreKind =
            OneOf(&[("sled", StoreKind::Sled), ("memory", StoreKind::Memory)]), Preset("\"sled\"");
        /// The data folder.
        ///
        /// One process at a time uses it.
        path: PathBuf = Parsed("a path", path), Preset("\"tidegate-data\"");
    }
}

fn path(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("is empty; name a folder"),
        _ => Ok(PathBuf::from(text)),
    }
}
