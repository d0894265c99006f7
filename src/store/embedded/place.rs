//! Where a store's database is, and what is kept there beside it.

use crate::Epoch;

/// The place that a database has, which keeps notes beside it.
pub(crate) trait StorePlace: Send + Sync + 'static {
    /// Whether reading and writing wait for a disk.
    fn blocks(&self) -> bool;

    /// Notes an epoch that became durable, without waiting for the disk.
    fn note(&self, epoch: Epoch) -> std::io::Result<()>;

    /// Notes what the store had reached when it was closed.
    fn closed(&self, epoch: Epoch);
}

/// What is in memory leaves no note.
pub(super) struct Nowhere;

impl StorePlace for Nowhere {
    fn blocks(&self) -> bool {
        false
    }

    fn note(&self, _epoch: Epoch) -> std::io::Result<()> {
        Ok(())
    }

    fn closed(&self, _epoch: Epoch) {}
}
