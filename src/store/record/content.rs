//! The content of a feed on disk.

use crate::VersionNote;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{
    Item, LedgerEntry, Markup, Shared, Skeleton, SyncId, Tick, Time, Version,
};

/// The order of a feed's reader view and the document around its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRecord {
    /// Since when it is in force.
    pub(crate) since: Time,
    /// How many before it were stored as differences in a row.
    pub(crate) run: u32,
    pub(crate) order: Vec<SyncId>,
    pub(crate) skeleton: Option<Skeleton>,
}

/// What the ledger has of an item, and where its newest bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRecord {
    pub(crate) known: LedgerEntry,
    /// The tick of the newest version that brought bytes.
    pub(crate) body: Tick,
    /// Whether there are newer bytes than those of any version.
    pub(crate) has_latest: bool,
    /// Versions kept.
    pub(crate) kept: u32,
    /// What is in conflict with its current version.
    pub(crate) conflicts: Vec<Version<Markup>>,
}

impl ItemRecord {
    /// An item of which no version is kept yet.
    pub(crate) const fn new(known: LedgerEntry) -> Self {
        let body = known.tick;
        Self { known, body, has_latest: false, kept: 0, conflicts: Vec::new() }
    }
}

/// The item of a ledger entry, its newest bytes and what is in conflict with it.
pub(crate) fn assemble(
    known: LedgerEntry,
    newest: Markup,
    conflicts: Vec<Version<Markup>>,
) -> Item {
    let deleted = known.is_tombstone();
    let winner = Version {
        id: known.id,
        updates: known.updates,
        deleted,
        noconflicts: known.noconflicts,
        history: known.history,
        data: newest,
    };
    Item {
        shared: Shared { winner, conflicts },
        published_id: known.published_id,
        tick: known.tick,
        standing: known.standing,
        sse091: known.sse091,
        extras: known.extras,
        touched: known.touched,
    }
}

/// A version of an item with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextRecord {
    /// What is noted of the version; none where it is not kept any more, and of bytes that made no version.
    pub(crate) note: Option<VersionNote>,
    /// Its bytes: a record of their own, which may be a difference to those of a later version.
    #[serde(with = "carried_bytes")]
    pub(crate) body: Option<Bytes>,
}

/// Bytes that are taken as a whole where they are read.
pub(crate) mod carried_bytes {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Bytes>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        bytes.as_deref().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let bytes = Option::<&'de [u8]>::deserialize(from)?;
        Ok(bytes.map(Bytes::copy_from_slice))
    }
}
