//! Documents that are too large for memory: each is written once to a file in the data folder, hashed and
//! compressed on the way, and sent from there.
//!
//! The files have no names, so that the system frees their space when the last reader is done with them,
//! however this program ends. What all of them have together is bounded, and none is written where the
//! disk has too little space.

use super::conditional::ETag;
use super::rendition::{EncodedBody, GZIP_LEVEL_LARGE};
use super::{BodyContent, DeltaToken, Problem};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_format::render::TextSink;
use tidegate_store::Store;
use xxhash_rust::xxh3::Xxh3;

/// Larger documents go to files, in bytes. In memory a document takes up to three times its size (plain, gzip, zstd).
const LARGE: usize = if cfg!(test) { 4 << 10 } else { 16 << 20 };
/// Bytes of all files together, those that are still sent though nobody asks for them any more among them.
const ALL: u64 = if cfg!(test) { 256 << 10 } else { 4 << 30 };

/// Where large documents are written.
pub(super) struct Spool {
    /// `None`: nowhere, all documents stay in memory.
    folder: Option<PathBuf>,
    store: Arc<Store>,
    used: Arc<AtomicU64>,
}

impl Spool {
    /// In this folder; in memory where there is none.
    pub(super) fn new(folder: Option<PathBuf>, store: Arc<Store>) -> Self {
        Self { folder, store, used: Arc::default() }
    }

    /// The bytes of all files.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    /// A file for a document.
    fn create(&self, folder: &Path) -> io::Result<FileWriter> {
        let (file, used) = (tempfile::tempfile_in(folder)?, Arc::clone(&self.used));
        Ok(FileWriter { file, hash: Xxh3::new(), size: FileSize { bytes: 0, used } })
    }

    /// An error where the disk has too little space for documents.
    fn check_space(&self) -> Result<(), Problem> {
        let condition = self.store.condition();
        if condition.space.free.is_some_and(|space| space.is_short) {
            let detail = "the document is too large for memory, and the gateway's disk has too little \
                        space for it";
            return Err(Problem::later(detail));
        }
        Ok(())
    }
}

/// What a file takes of the space that there is for all of them, until this is dropped.
#[derive(Debug)]
struct FileSize {
    bytes: u64,
    used: Arc<AtomicU64>,
}

impl FileSize {
    fn grow(&mut self, more: u64) -> io::Result<()> {
        let before = self.used.fetch_add(more, Ordering::SeqCst);
        self.bytes = self.bytes.saturating_add(more);
        if before.saturating_add(more) > ALL {
            let detail =
                format!("documents that are too large for memory have {before} bytes already");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, detail));
        }
        Ok(())
    }
}

impl Drop for FileSize {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// A document, or an encoding of it, in a file.
#[derive(Debug)]
pub(super) struct SpooledFile {
    file: File,
    size: FileSize,
}

impl SpooledFile {
    /// Its bytes.
    pub(super) const fn len(&self) -> u64 {
        self.size.bytes
    }

    /// At most `most` bytes from `offset` on; at least one, unless that is the end. Blocks.
    pub(super) fn read(&self, offset: u64, most: usize) -> io::Result<Bytes> {
        let left = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; most.min(left)];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }
}

/// Writes a file and hashes what it writes.
struct FileWriter {
    file: File,
    hash: Xxh3,
    size: FileSize,
}

impl FileWriter {
    fn finish(self, token: Option<DeltaToken>) -> EncodedBody {
        let etag = ETag::from_hash(self.hash.digest128(), token);
        let file = SpooledFile { file: self.file, size: self.size };
        EncodedBody { content: BodyContent::File(Arc::new(file)), etag }
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.size.grow(u64::try_from(written).unwrap_or(u64::MAX))?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A document that is being written: in memory, and from some size on in files.
pub(super) struct SpoolingText {
    spool: Arc<Spool>,
    text: String,
    files: Option<(FileWriter, GzEncoder<FileWriter>)>,
}

/// A document that was written.
pub(super) enum WrittenDocument {
    InMemory(String),
    /// In files, as it is and packed.
    InFiles {
        identity: EncodedBody,
        gzip: EncodedBody,
    },
}

impl SpoolingText {
    /// Nothing is written yet.
    pub(super) fn new(spool: &Arc<Spool>) -> Self {
        Self { spool: Arc::clone(spool), text: String::new(), files: None }
    }

    /// What was written; `token` names the state that it shows.
    pub(super) fn finish(mut self, token: Option<DeltaToken>) -> Result<WrittenDocument, Problem> {
        self.flush()?;
        let Some((identity, gzip)) = self.files else {
            return Ok(WrittenDocument::InMemory(self.text));
        };
        let gzip = gzip.finish().map_err(|error| unwritten(&error))?.finish(token);
        Ok(WrittenDocument::InFiles { identity: identity.finish(token), gzip })
    }

    /// Writes what there is to the files.
    fn write_to_files(&mut self, folder: &Path) -> io::Result<()> {
        if self.files.is_none() {
            let packing = Compression::new(GZIP_LEVEL_LARGE);
            let gzip = GzEncoder::new(self.spool.create(folder)?, packing);
            self.files = Some((self.spool.create(folder)?, gzip));
        }
        if let Some((identity, gzip)) = &mut self.files {
            identity.write_all(self.text.as_bytes())?;
            gzip.write_all(self.text.as_bytes())?;
        }
        self.text.clear();
        Ok(())
    }
}

impl TextSink<Problem> for SpoolingText {
    fn text(&mut self) -> &mut String {
        &mut self.text
    }

    fn flush(&mut self) -> Result<(), Problem> {
        let is_large = self.files.is_some() || self.text.len() > LARGE;
        let Some(folder) = self.spool.folder.clone().filter(|_| is_large) else { return Ok(()) };
        self.spool.check_space()?;
        self.write_to_files(&folder).map_err(|error| unwritten(&error))
    }
}

/// The problem of a document that could not be written to a file.
fn unwritten(error: &io::Error) -> Problem {
    // Do not fall back to the previous document: a newer revision of the feed may have been announced.
    tracing::error!(%error, "a document could not be written to a file of the data folder");
    let detail = format!("the document is too large for memory, and no file took it: {error}");
    Problem::later(detail)
}
