//! How documents are packed.

use crate::negotiate::Encoding;
use std::io::{self, Write};

/// The gzip level of documents that are too large for memory: twice as fast as that of others, and hardly larger.
pub(crate) const GZIP_LEVEL_LARGE: u32 = 3;
/// How much is put into packing a document: a level for each encoding.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackingEffort {
    pub(super) gzip: u32,
    pub(super) zstd: i32,
}

impl PackingEffort {
    /// Both at about the knee of their curves; zstd is then the smaller and by far the faster one.
    pub(super) const LASTING: Self = Self { gzip: 6, zstd: 3 };
    /// For what is made anew all the time and is mostly chance: more makes it no smaller.
    pub(super) const QUICK: Self = Self { gzip: 1, zstd: 1 };
}

/// Packs an answer that is made for one request.
pub(crate) fn quickly(bytes: &[u8], encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => gzip(bytes, PackingEffort::QUICK.gzip),
        Encoding::Zstd => zstd::bulk::compress(bytes, PackingEffort::QUICK.zstd),
    }
}

/// Packs with gzip.
pub(super) fn gzip(bytes: &[u8], level: u32) -> io::Result<Vec<u8>> {
    // No name and no time in its header: equal bytes give equal tags.
    let level = flate2::Compression::new(level);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}
