//! How documents are packed: gzip with the document, Brotli for those who ask again.

use super::EncodedBody;
use crate::load::{Deferrable, Load};
use crate::serve::delta::DeltaToken;
use crate::serve::negotiate::Encoding;
use bytes::Bytes;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The gzip level of documents that are too large for memory: twice as fast as that of others, and hardly larger.
pub(in crate::serve) const GZIP_LEVEL_LARGE: u32 = 3;
/// Brotli window, as a power of two: 4 MiB.
const BROTLI_WINDOW: i32 = 22;
/// The buffer that Brotli reads through, in bytes.
const BROTLI_BUFFER: usize = 16 * 1024;
/// How many clients have to ask for Brotli before it is made: most documents change before a second one does.
const ASKED_LEAST: u32 = 2;
/// How many documents are packed with Brotli at the same time.
const BROTLI_AT_ONCE: usize = 1;

static BROTLI_TURNS: Semaphore = Semaphore::const_new(BROTLI_AT_ONCE);

/// How much is put into packing a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackingEffort {
    /// The level.
    pub(super) gzip: u32,
    /// The quality.
    pub(super) brotli: i32,
}

impl PackingEffort {
    /// gzip at about the knee of its curve, Brotli smaller than gzip at about its speed.
    pub(super) const LASTING: Self = Self { gzip: 6, brotli: 5 };
    /// For what is made anew all the time and is mostly chance: more makes it no smaller.
    pub(super) const QUICK: Self = Self { gzip: 1, brotli: 1 };
}

/// A document in Brotli, made once it has been asked for more than once.
#[derive(Debug)]
pub(super) struct BrotliWhenAsked {
    document: Bytes,
    quality: i32,
    token: Option<DeltaToken>,
    asked: AtomicU32,
    is_begun: AtomicBool,
    made: OnceLock<EncodedBody>,
}

impl BrotliWhenAsked {
    /// Of this document, which was not asked for yet.
    pub(super) fn new(document: Bytes, quality: i32, token: Option<DeltaToken>) -> Self {
        Self {
            document,
            quality,
            token,
            asked: AtomicU32::new(0),
            is_begun: AtomicBool::new(false),
            made: OnceLock::new(),
        }
    }

    /// The body, where it is there.
    pub(super) fn made(&self) -> Option<&EncodedBody> {
        self.made.get()
    }

    /// The body for a client that would rather have it. Where it is not there, this counts, and where it was asked
    /// for often enough it is made meanwhile. While others are made, or that is left for
    /// later, who asks next begins.
    pub(super) fn ask(self: &Arc<Self>, load: &Load) -> Option<&EncodedBody> {
        if let Some(made) = self.made.get() {
            return Some(made);
        }
        let asked = self.asked.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if asked >= ASKED_LEAST
            && !load.defers(Deferrable::Brotli)
            && let Ok(turn) = BROTLI_TURNS.try_acquire()
            && let Ok(runtime) = Handle::try_current()
            && !self.is_begun.swap(true, Ordering::AcqRel)
        {
            let this = Arc::clone(self);
            drop(runtime.spawn_blocking(move || {
                this.make();
                drop(turn);
            }));
        }
        None
    }

    /// Makes it. Slow: call it where blocking is allowed.
    pub(super) fn make(&self) {
        match brotli(&self.document, self.quality) {
            Ok(packed) => drop(self.made.set(EncodedBody::new(packed, self.token))),
            // Others get gzip.
            Err(error) => tracing::error!(%error, "a document could not be packed with Brotli"),
        }
    }
}

/// Packs an answer that is made for one request.
pub(in crate::serve) fn quickly(bytes: &[u8], encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Identity => Ok(bytes.to_vec()),
        Encoding::Gzip => gzip(bytes, PackingEffort::QUICK.gzip),
        Encoding::Brotli => brotli(bytes, PackingEffort::QUICK.brotli),
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

fn brotli(bytes: &[u8], quality: i32) -> io::Result<Vec<u8>> {
    let parameters =
        brotli::enc::BrotliEncoderParams { quality, lgwin: BROTLI_WINDOW, ..Default::default() };
    let mut compressed = Vec::new();
    let mut input = bytes;
    // The buffer size is BROTLI_BUFFER whatever the input, so that memory stays bounded.
    let mut writer =
        brotli::CompressorWriter::with_params(&mut compressed, BROTLI_BUFFER, &parameters);
    io::copy(&mut input, &mut writer)?;
    writer.flush()?;
    drop(writer);
    Ok(compressed)
}
