//! The fingerprint of the content of a store.

use super::ExportRecord;
use crate::StoreError;
use xxhash_rust::xxh3::Xxh3Default;

/// The fingerprint of exported records, in the order of their export. The [`StoreOrigin`](super::StoreOrigin) is not
/// part of it: each opening changes that.
#[derive(Clone, Default)]
pub struct ExportDigest(Xxh3Default);

impl ExportDigest {
    /// Adds the next record.
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
