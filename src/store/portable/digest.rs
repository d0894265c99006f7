//! The fingerprint of everything that a store keeps.

use super::ExportRecord;
use crate::StoreError;
use xxhash_rust::xxh3::Xxh3Default;

/// The fingerprint of the pieces of a store, in the order in which each store hands them over. What the store had reached
/// does not count: each opening changes it.
#[derive(Clone, Default)]
pub struct ExportDigest(Xxh3Default);

impl ExportDigest {
    /// Adds the next piece.
    pub fn put(&mut self, piece: &ExportRecord) -> Result<(), StoreError> {
        if !matches!(piece, ExportRecord::Origin(_)) {
            let bytes = postcard::to_stdvec(piece);
            let bytes = bytes.map_err(|error| StoreError::failed("encode a record", error))?;
            self.0.update(&(bytes.len() as u64).to_le_bytes());
            self.0.update(&bytes);
        }
        Ok(())
    }

    /// The fingerprint.
    pub fn value(&self) -> u128 {
        self.0.digest128()
    }
}
