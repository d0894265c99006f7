//! Hashes as text that ids are made of.

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

/// The bytes of a hash that tell an id from every other (READINGS 1, row 22).
pub const ID_BYTES: usize = 20;

/// The first bytes of a hash in base 32 (RFC 4648 section 6), in lower case and without padding.
pub fn base32(hash: Sha256, bytes: usize) -> String {
    let digest = hash.finalize();
    let digest: &[u8] = digest.as_ref();
    BASE32_NOPAD.encode(digest.get(..bytes).unwrap_or(digest)).to_ascii_lowercase()
}
