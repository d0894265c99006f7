//! What zstd works with, kept for the next record: it takes as long to make as a small record takes to pack.

use std::io;
use std::sync::{Mutex, PoisonError};
use zstd::bulk::{Compressor, Decompressor};

/// So many of either kind are kept, each of them about 200 KB.
const KEPT: usize = 4;
/// What packed a larger record takes more memory than is kept.
const SMALL: usize = 64 << 10;

/// Contexts that nobody uses now.
struct ContextPool<T>(Mutex<Vec<T>>);

static COMPRESSORS: ContextPool<Compressor<'static>> = ContextPool::new();
static DECOMPRESSORS: ContextPool<Decompressor<'static>> = ContextPool::new();

impl<T> ContextPool<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn with<R>(
        &self,
        make: impl FnOnce() -> io::Result<T>,
        size: usize,
        work: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut context = kept.map_or_else(make, Ok)?;
        let done = work(&mut context)?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if size <= SMALL && kept.len() < KEPT {
            kept.push(context);
        }
        Ok(done)
    }
}

/// Packs a payload at the level [`PACK_LEVEL`](super::PACK_LEVEL).
pub(super) fn compress(payload: &[u8]) -> io::Result<Vec<u8>> {
    let make = || Compressor::new(super::PACK_LEVEL);
    COMPRESSORS.with(make, payload.len(), |context| context.compress(payload))
}

/// Opens a payload of `size` bytes.
pub(super) fn decompress(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSORS.with(Decompressor::new, size, |context| context.decompress(packed, size))
}
