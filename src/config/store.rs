//! `[store]`: where the gateway keeps what it knows.

use super::keys::{Preset::Value as Preset, section};
use super::kinds::{OneOf, Parsed, Size};
use std::path::PathBuf;

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StoreKind {
    /// On disk, in sled.
    #[default]
    Sled,
    /// On disk, in fjall.
    Fjall,
    /// In memory: everything is forgotten at the end.
    Memory,
}

section! {
    /// Where the gateway keeps what it knows.
    pub struct StoreSettings {
        /// `"sled"`: on disk; `"fjall"`: on disk, writes less and takes less space for small feeds;
        /// `"memory"`: everything is forgotten at the end.
        ///
        /// sled is what was chosen for Tidegate and stays the default. A data folder stays with the engine
        /// that it was made with; `tidegate export` and `tidegate import` carry a store over to the other.
        kind: StoreKind =
            OneOf(&[
                ("sled", StoreKind::Sled),
                ("fjall", StoreKind::Fjall),
                ("memory", StoreKind::Memory),
            ]), Preset("\"sled\"");
        /// The data folder.
        ///
        /// One process at a time uses it.
        path: PathBuf = Parsed("a path", path), Preset("\"tidegate-data\"");
        /// How much must stay free on the file system of the data folder; of a small one 2 %, where
        /// that is less. Below it nothing new is taken in, and reading goes on.
        ///
        /// Feeds are not polled then, and new items, feeds and subscriptions are refused. It goes on
        /// by itself once a quarter more than that is free. "0MiB": never.
        min_free: u64 = Size, Preset("\"256MiB\"");
    }
}

fn path(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("is empty; name a folder"),
        _ => Ok(PathBuf::from(text)),
    }
}
