//! The export file: a heading, then one zstd stream of frames: the head, the records in their order, and the end with
//! a fingerprint of all before it. Each frame is its length and a record.

use super::ExportRecord;
use crate::limits::VALUE_LIMIT;
use crate::record::{RecordError, decode_plain, encode_plain};
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader, Read, Write};
use tidegate_core::model::{EndpointId, SupIdBasis};
use xxhash_rust::xxh3::Xxh3Default;

/// The first bytes of the file.
pub const MAGIC: &[u8] = b"tidegate export\n";
/// The format number, before the first frame.
pub(super) const FORMAT: u32 = 1;
/// The longest frame, in bytes: an item with its newest bytes and its conflicts.
pub(super) const FRAME_LIMIT: usize = 2 * VALUE_LIMIT + 64 * 1024;
/// The most bytes of numbers and lengths in a frame: lists of empty values take many times their bytes in memory.
pub(super) const NUMBERS_LIMIT: usize = if cfg!(test) { 64 << 10 } else { 4 << 20 };
/// The largest zstd window that is read, as the power of two: four times the one that is written.
const WINDOW_LOG: u32 = 24;
/// The zstd level: written once, and read seldom.
const LEVEL: i32 = 9;

/// The head of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportHead {
    /// The endpoint of the gateway.
    pub endpoint: EndpointId,
    /// The basis of the SUP ids of its feeds.
    pub sup_ids: SupIdBasis,
}

/// A frame. The order of the variants is part of the format.
#[derive(Debug, Serialize, Deserialize)]
enum Frame {
    /// The head.
    Head(ExportHead),
    Piece(ExportRecord),
    /// How many frames there were, and their fingerprint.
    End {
        frames: u64,
        digest: u128,
    },
}

/// The reason why a file is not, or cannot be, the state of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum PortableError {
    /// It is another file.
    #[error("it is no state of a gateway")]
    Other,
    /// It has another format than the one that this program writes.
    #[error(
        "it has format {found}, this program reads format {known} alone; use the program that wrote it"
    )]
    Format {
        /// The format found.
        found: u32,
        /// The format of this program.
        known: u32,
    },
    /// It is damaged or truncated.
    #[error("it is damaged or cut off: {0}; nothing of it was taken")]
    Damaged(String),
    /// Reading or writing failed.
    #[error("reading or writing failed: {0}")]
    Io(#[from] io::Error),
    /// A record cannot be written.
    #[error("a record cannot be written: {0}")]
    Unwritable(String),
}

fn damaged(what: &str) -> PortableError {
    PortableError::Damaged(what.to_owned())
}

/// A file that ends too early is damaged, and so is one that zstd cannot open.
fn unread(error: &io::Error) -> PortableError {
    damaged(&error.to_string())
}

/// Counts of records that were written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportTotals {
    /// Records of feeds.
    pub feeds: u64,
    /// Items, tombstones included.
    pub items: u64,
}

impl ExportTotals {
    fn note(&mut self, piece: &ExportRecord) {
        self.feeds += u64::from(matches!(piece, ExportRecord::Feed(_)));
        self.items += u64::from(matches!(piece, ExportRecord::Item(..)));
    }
}

/// Writes the state of a gateway.
pub struct ExportWriter<W: Write> {
    to: zstd::stream::write::Encoder<'static, W>,
    digest: Xxh3Default,
    frames: u64,
    totals: ExportTotals,
}

impl<W: Write> ExportWriter<W> {
    /// Begins a file.
    pub fn new(mut to: W, head: ExportHead) -> Result<Self, PortableError> {
        to.write_all(MAGIC)?;
        let mut to = zstd::stream::write::Encoder::new(to, LEVEL)?;
        to.write_all(&FORMAT.to_le_bytes())?;
        let (digest, totals) = (Xxh3Default::new(), ExportTotals::default());
        let mut writer = Self { to, digest, frames: 0, totals };
        writer.frame(&Frame::Head(head))?;
        Ok(writer)
    }

    fn frame(&mut self, frame: &Frame) -> Result<(), PortableError> {
        let unwritable = |what: String| PortableError::Unwritable(what);
        let record = encode_plain(frame, FRAME_LIMIT).map_err(|e| unwritable(e.to_string()))?;
        let length = u32::try_from(record.len()).map_err(|e| unwritable(e.to_string()))?;
        for bytes in [length.to_le_bytes().as_slice(), &record] {
            self.digest.update(bytes);
            self.to.write_all(bytes)?;
        }
        self.frames += 1;
        Ok(())
    }

    /// Writes a record.
    pub fn put(&mut self, piece: ExportRecord) -> Result<(), PortableError> {
        self.totals.note(&piece);
        self.frame(&Frame::Piece(piece))
    }

    /// Ends the file; answers the counts and the writer.
    pub fn finish(mut self) -> Result<(ExportTotals, W), PortableError> {
        self.frame(&Frame::End { frames: self.frames, digest: self.digest.digest128() })?;
        let mut to = self.to.finish()?;
        to.flush()?;
        Ok((self.totals, to))
    }
}

/// Reads the state of a gateway. Safe for any bytes, and needs the memory of one record.
pub struct ExportReader<R: Read> {
    from: zstd::stream::read::Decoder<'static, BufReader<R>>,
    head: ExportHead,
    digest: Xxh3Default,
    frames: u64,
    totals: ExportTotals,
    ended: bool,
}

impl<R: Read> ExportReader<R> {
    /// Reads the beginning of a file.
    pub fn open(mut from: R) -> Result<Self, PortableError> {
        let mut magic = Vec::new();
        from.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic)?;
        if magic != MAGIC {
            return Err(PortableError::Other);
        }
        let mut from = zstd::stream::read::Decoder::new(from)?.single_frame();
        from.window_log_max(WINDOW_LOG)?;
        let mut format = [0; 4];
        from.read_exact(&mut format).map_err(|error| unread(&error))?;
        let found = u32::from_le_bytes(format);
        if found != FORMAT {
            return Err(PortableError::Format { found, known: FORMAT });
        }
        let endpoint = EndpointId::own("unknown").map_err(|error| damaged(&error.to_string()))?;
        let mut reader = Self {
            from,
            head: ExportHead { endpoint, sup_ids: SupIdBasis::Endpoint },
            digest: Xxh3Default::new(),
            frames: 0,
            totals: ExportTotals::default(),
            ended: false,
        };
        let Frame::Head(head) = reader.frame()? else {
            return Err(damaged("it does not begin with its head"));
        };
        let own = EndpointId::own(head.endpoint.as_str());
        let endpoint = own.map_err(|error| damaged(&error.to_string()))?;
        reader.head = ExportHead { endpoint, ..head };
        Ok(reader)
    }

    /// The head.
    pub const fn head(&self) -> &ExportHead {
        &self.head
    }

    /// The counts so far.
    pub const fn totals(&self) -> ExportTotals {
        self.totals
    }

    /// The next record; `None` once all were read and the fingerprint is right.
    pub fn next_piece(&mut self) -> Result<Option<ExportRecord>, PortableError> {
        if self.ended {
            return Ok(None);
        }
        let piece = match self.frame()? {
            Frame::Piece(piece) => piece,
            Frame::End { .. } => return Ok(None),
            Frame::Head(_) => return Err(damaged("it has two heads")),
        };
        self.totals.note(&piece);
        Ok(Some(piece))
    }

    /// The next frame. At the end frame, the fingerprint is right.
    fn frame(&mut self) -> Result<Frame, PortableError> {
        let mut head = [0; 4];
        self.from.read_exact(&mut head).map_err(|error| unread(&error))?;
        let length = usize::try_from(u32::from_le_bytes(head)).unwrap_or(usize::MAX);
        if length > FRAME_LIMIT {
            return Err(damaged("a record is longer than any that is written"));
        }
        // Allocated while reading, so that a false length costs nothing.
        let mut record = Vec::new();
        let most = u64::try_from(length).unwrap_or(u64::MAX);
        let read = self.from.by_ref().take(most).read_to_end(&mut record);
        if read.map_err(|error| unread(&error))? != length {
            return Err(damaged("it ends within a record"));
        }
        let decoded = decode_plain(&record, NUMBERS_LIMIT);
        let frame = decoded.map_err(|error: RecordError| damaged(&error.to_string()))?;
        if let Frame::End { frames, digest } = frame {
            self.end((frames, digest) == (self.frames, self.digest.digest128()))?;
        }
        self.digest.update(&head);
        self.digest.update(&record);
        self.frames += 1;
        Ok(frame)
    }

    fn end(&mut self, is_whole: bool) -> Result<(), PortableError> {
        if !is_whole {
            return Err(damaged("its fingerprint is another"));
        }
        // Reading on makes zstd check its own end; nothing may follow.
        let behind = self.from.read(&mut [0]).map_err(|error| unread(&error))?;
        if behind > 0 || self.from.get_mut().read(&mut [0])? > 0 {
            return Err(damaged("something stands behind its end"));
        }
        self.ended = true;
        Ok(())
    }
}
