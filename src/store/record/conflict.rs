//! The versions that are in conflict with an item's current one, on disk.

use super::archive::SealedVersion;
use super::{Record, RecordError};
use crate::model::{Markup, SyncId, Version};
use serde::{Deserialize, Serialize};

/// What is in conflict with one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct ConflictsRecord(Vec<SealedVersion>);

impl Record for ConflictsRecord {}

impl ConflictsRecord {
    /// The versions as they are written.
    pub(in crate::store) fn new(versions: &[Version<Markup>]) -> Self {
        Self(versions.iter().map(SealedVersion::from).collect())
    }

    /// The versions; `id` is the item's.
    pub(in crate::store) fn read(self, id: &SyncId) -> Result<Vec<Version<Markup>>, RecordError> {
        self.0.into_iter().map(|version| version.read(id.clone())).collect()
    }
}
