//! The fingerprint of everything that a store keeps.

use super::ExportRecord;
use crate::StoreError;
use tidegate_core::model::FeedName;
use xxhash_rust::xxh3::Xxh3Default;

/// The fingerprint of the pieces of a store, in whatever order its feeds come. What the store had reached
/// does not count: each opening changes it.
#[derive(Debug, Clone, Default)]
pub struct ExportDigest {
    sum: u128,
    items: u64,
    /// The feed whose pieces come, and how many came.
    place: (Option<FeedName>, u64),
}

impl PartialEq for ExportDigest {
    fn eq(&self, other: &Self) -> bool {
        (self.sum, self.items) == (other.sum, other.items)
    }
}

impl Eq for ExportDigest {}

impl ExportDigest {
    /// Adds the next piece.
    pub fn put(&mut self, piece: &ExportRecord) -> Result<(), StoreError> {
        if matches!(piece, ExportRecord::Origin(_)) {
            return Ok(());
        }
        if self.place.0.as_ref() != piece.feed() {
            self.place = (piece.feed().cloned(), 0);
        }
        let mut hash = Xxh3Default::new();
        // What stands by itself has a name of its own, and comes in any order.
        if self.place.0.is_some() {
            hash.update(&self.place.1.to_le_bytes());
            self.place.1 += 1;
        }
        let bytes = postcard::to_stdvec(piece).map_err(|error| {
            let source = std::io::Error::other(error);
            StoreError::Io { doing: "encode a record", source }
        });
        hash.update(&bytes?);
        self.items += u64::from(matches!(piece, ExportRecord::Item(..)));
        self.sum = self.sum.wrapping_add(hash.digest128());
        Ok(())
    }

    /// How many items came.
    pub const fn items(&self) -> u64 {
        self.items
    }
}
