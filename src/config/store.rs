//! `[store]`: where the gateway keeps what it knows.

use super::keys::{
    Preset::{Value as Preset, Words},
    section,
};
use super::kinds::{Maybe, OneOf, Parsed, Size};
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

impl StoreKind {
    /// The kinds, by their names.
    const NAMES: &'static [(&'static str, Self)] =
        &[("sled", Self::Sled), ("fjall", Self::Fjall), ("memory", Self::Memory)];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
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
            OneOf(StoreKind::NAMES), Preset("\"sled\""), at restart;
        /// The data folder.
        ///
        /// One process at a time uses it.
        path: PathBuf = Parsed("a path", path), Preset("\"tidegate-data\""), at restart;
        /// How much must stay free on the file system of the data folder; of a small one 2 %, where
        /// that is less. Below it nothing new is taken in, and reading goes on.
        ///
        /// Feeds are not polled then, and new items, feeds and subscriptions are refused. It goes on
        /// by itself once a quarter more than that is free. "0MiB": never.
        min_free: u64 = Size, Preset("\"256MiB\"");
        /// The most that the data folder may take on disk. From there on nothing new is taken in, and
        /// reading goes on.
        ///
        /// It is about that much: the files are counted every few seconds. At nine tenths of it the past is
        /// pruned at once, as far as publish.versions and its like let it. It goes on by itself below 95 % of
        /// the limit; files that have grown shrink by "tidegate compact".
        max_size: Option<u64> = Maybe(Size), Words("none", "\"20GiB\"");
    }
}

fn path(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("is empty; name a folder"),
        _ => Ok(PathBuf::from(text)),
    }
}
