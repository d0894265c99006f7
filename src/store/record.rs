//! Records on disk: values of the model, each in an envelope.
//!
//! A record is `layout, packing, payload`: the number of the layout, whether the payload is
//! compressed, and the fields in postcard's encoding, in the order in which the model has them.
//! `tests/golden/store` keeps a specimen of each kind of record.

mod archive;
mod content;
#[cfg(test)]
mod golden;
mod identity;
mod log_ages;
pub(super) mod packing;
#[cfg(test)]
pub(super) mod specimen;
mod state;

pub use self::archive::{ArchiveRecord, SegmentRecord};
pub use self::content::{FrameRecord, ItemRecord, TextRecord};
pub(super) use self::content::{assemble, carried_bytes};
pub(super) use self::identity::IdentityRecord;
pub(super) use self::log_ages::LogAges;
pub(super) use self::state::PurgeRecord;
pub use self::state::StateRecord;

use self::packing::{LAYOUT, PLAIN, envelope};
use super::limits::VALUE_LIMIT;
use bytes::Bytes;
use postcard::Deserializer;
use postcard::de_flavors::{Flavor, Slice};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that is written to disk.
pub(super) trait Record: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Record for T {}

/// The reason why bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Fewer bytes than any record has.
    #[error("it ends before its content")]
    Short,
    /// A layout that this program does not know.
    #[error("it has layout {found}, this program knows {known} alone")]
    Layout { found: u8, known: u8 },
    /// A way of packing that this program does not know.
    #[error("it is packed in the way {0}, which is unknown")]
    Packing(u8),
    /// It is a difference to a record that is not at hand.
    #[error("it is stored as a difference, and what it differs from is not at hand")]
    NoBase,
    /// The compressed payload cannot be opened.
    #[error("it cannot be decompressed: {0}")]
    Zstd(std::io::Error),
    /// It is larger than anything that is written.
    #[error("it is {size} bytes, the limit is {limit}")]
    TooLarge { size: usize, limit: usize },
    /// The fields cannot be read.
    #[error("its fields cannot be read: {0}")]
    Fields(#[from] postcard::Error),
    /// Bytes follow the last field.
    #[error("{0} bytes follow its last field")]
    Trailing(usize),
    /// A number does not fit this machine.
    #[error("a number does not fit: {0}")]
    Number(#[from] std::num::TryFromIntError),
}

/// Writes a record.
pub(super) fn encode<T: Record>(record: &T) -> Result<Vec<u8>, RecordError> {
    let payload = postcard::to_stdvec(record)?;
    if payload.len() > VALUE_LIMIT {
        return Err(RecordError::TooLarge { size: payload.len(), limit: VALUE_LIMIT });
    }
    packing::pack(&payload)
}

/// Writes a record of at most `limit` bytes without compressing it.
pub(super) fn encode_plain<T: Record>(record: &T, limit: usize) -> Result<Vec<u8>, RecordError> {
    let bytes = postcard::to_extend(record, vec![LAYOUT, PLAIN])?;
    // The envelope does not count.
    let size = bytes.len().saturating_sub(2);
    if size > limit { Err(RecordError::TooLarge { size, limit }) } else { Ok(bytes) }
}

/// Reads a record that is not compressed, and that has at most so many bytes of numbers and lengths.
pub(super) fn decode_plain<T: Record>(bytes: &[u8], numbers: usize) -> Result<T, RecordError> {
    let (packing, payload) = envelope(bytes)?;
    if packing != PLAIN {
        return Err(RecordError::Packing(packing));
    }
    let bytes = Slice::new(payload);
    let mut reader = Deserializer::from_flavor(CountedNumbers { bytes, left: numbers });
    let record = T::deserialize(&mut reader)?;
    let rest = reader.finalize()?;
    if rest.is_empty() { Ok(record) } else { Err(RecordError::Trailing(rest.len())) }
}

/// Bytes of which so many may be taken one by one. Texts are taken as a whole.
struct CountedNumbers<'b> {
    bytes: Slice<'b>,
    left: usize,
}

impl<'b> Flavor<'b> for CountedNumbers<'b> {
    type Remainder = &'b [u8];
    type Source = &'b [u8];

    fn pop(&mut self) -> postcard::Result<u8> {
        self.left = self.left.checked_sub(1).ok_or(postcard::Error::DeserializeBadEncoding)?;
        self.bytes.pop()
    }

    fn size_hint(&self) -> Option<usize> {
        self.bytes.size_hint()
    }

    fn try_take_n(&mut self, count: usize) -> postcard::Result<&'b [u8]> {
        self.bytes.try_take_n(count)
    }

    fn finalize(self) -> postcard::Result<&'b [u8]> {
        self.bytes.finalize()
    }
}

/// Reads a record. Whatever the bytes are, it answers and takes bounded memory.
pub(super) fn decode<T: Record>(bytes: &[u8]) -> Result<T, RecordError> {
    read_fields(&packing::payload(bytes, None)?)
}

/// Reads the fields of a record to the last byte.
pub(super) fn read_fields<T: Record>(payload: &[u8]) -> Result<T, RecordError> {
    let (record, rest) = postcard::take_from_bytes(payload)?;
    if rest.is_empty() { Ok(record) } else { Err(RecordError::Trailing(rest.len())) }
}

impl TextRecord {
    /// Writes it: the body, which is packed by itself, follows the note.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, RecordError> {
        let mut bytes = encode_plain(&self.note, VALUE_LIMIT)?;
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        Ok(bytes)
    }

    /// Reads it.
    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, RecordError> {
        let (packing, payload) = envelope(bytes)?;
        if packing != PLAIN {
            return Err(RecordError::Packing(packing));
        }
        let (note, body) = postcard::take_from_bytes(payload)?;
        Ok(Self { note, body: (!body.is_empty()).then(|| bytes.slice_ref(body)) })
    }
}
