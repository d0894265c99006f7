//! `[store]`: where the gateway keeps what it knows.

use super::section::Section;
use std::path::PathBuf;

pub(super) const KEYS: &[&str] = &["kind", "path"];

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StoreKind {
    /// On disk.
    #[default]
    Sled,
    /// In memory: everything is forgotten at the end.
    Memory,
}

/// Where the gateway keeps what it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// Which store.
    pub kind: StoreKind,
    /// The data folder; a relative one is taken from the working folder of the process.
    pub path: PathBuf,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { kind: StoreKind::Sled, path: PathBuf::from("tidegate-data") }
    }
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> StoreSettings {
    let default = StoreSettings::default();
    let kind = section.choice("kind", &[("sled", StoreKind::Sled), ("memory", StoreKind::Memory)]);
    let path = section.text("path", |text| match text {
        "" => Err("is empty; name a folder"),
        _ => Ok(PathBuf::from(text)),
    });
    StoreSettings { kind: kind.unwrap_or(default.kind), path: path.unwrap_or(default.path) }
}
