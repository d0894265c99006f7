//! What lies on disk: values of the model, each in an envelope.
//!
//! A record is `version, packing, payload`: the version of its own layout, whether the payload is
//! compressed, and the fields in postcard's encoding, in the order in which the model has them.
//! `tests/golden/store` keeps a specimen of each layout.

mod archive;
pub(super) mod delta;
#[cfg(test)]
mod golden;
mod history;
mod identity;
mod log_ages;
#[cfg(test)]
pub(super) mod specimen;
mod state;
mod stored;
mod version;
mod zstd_contexts;

pub use self::archive::SegmentRecord;
pub(super) use self::archive::{ArchiveNumber, ArchiveRecord};
pub(super) use self::history::HistoryRecord;
pub(super) use self::identity::IdentityRecord;
pub(super) use self::log_ages::LogAges;
pub(super) use self::state::{FloorRecord, StateRecord};
pub(super) use self::version::HeadRecord;

use super::limits::VALUE_LIMIT;
use postcard::Deserializer;
use postcard::de_flavors::{Flavor, Slice};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Payloads below this many bytes are not worth compressing.
const PACK_FROM: usize = 256;
/// The zstd level: fast, and good enough for markup.
const PACK_LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Something that is written to disk.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// The version of its layout.
    const VERSION: u8 = 1;
    /// What each version lacks at its end that the next one has, encoded, from the oldest one on that can be
    /// read to the one before this.
    const ADDED: &[&[u8]] = &[];
}

/// Reads the fields of a layout to the last byte.
fn fields<T: Record>(version: u8, payload: &[u8]) -> Result<T, RecordError> {
    let unknown = || RecordError::Version { found: version, known: T::VERSION };
    let behind = usize::from(T::VERSION.checked_sub(version).ok_or_else(unknown)?);
    let first = T::ADDED.len().checked_sub(behind).ok_or_else(unknown)?;
    let payload = match T::ADDED.get(first..) {
        Some(added) if !added.is_empty() => Cow::Owned([payload, &added.concat()].concat()),
        _ => Cow::Borrowed(payload),
    };
    let (record, rest) = postcard::take_from_bytes(&payload)?;
    if rest.is_empty() { Ok(record) } else { Err(RecordError::Trailing(rest.len())) }
}

/// Why bytes are no record.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Fewer bytes than any record has.
    #[error("it ends before its content")]
    Short,
    /// A layout that this program does not know.
    #[error("its layout has version {found}, this program knows {known}")]
    Version { found: u8, known: u8 },
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
    let mut packing = PLAIN;
    let mut packed = Cow::Borrowed(payload.as_slice());
    if payload.len() >= PACK_FROM {
        let smaller = zstd_contexts::compress(&payload).map_err(RecordError::Zstd)?;
        if smaller.len() + size_of::<u32>() < payload.len() {
            let mut with_size = u32::try_from(payload.len())?.to_le_bytes().to_vec();
            with_size.extend_from_slice(&smaller);
            packing = ZSTD;
            packed = Cow::Owned(with_size);
        }
    }
    let mut bytes = Vec::with_capacity(packed.len() + 2);
    bytes.extend_from_slice(&[T::VERSION, packing]);
    bytes.extend_from_slice(&packed);
    Ok(bytes)
}

/// Writes a record of at most `limit` bytes without compressing it.
pub(super) fn encode_plain<T: Record>(record: &T, limit: usize) -> Result<Vec<u8>, RecordError> {
    let bytes = postcard::to_extend(record, vec![T::VERSION, PLAIN])?;
    // The envelope does not count.
    let size = bytes.len().saturating_sub(2);
    if size > limit { Err(RecordError::TooLarge { size, limit }) } else { Ok(bytes) }
}

/// Reads a record that is not compressed, and that has at most so many bytes of numbers and lengths.
pub(super) fn decode_plain<T: Record>(bytes: &[u8], numbers: usize) -> Result<T, RecordError> {
    let ([version, packing], payload) = bytes.split_first_chunk().ok_or(RecordError::Short)?;
    if *packing != PLAIN {
        return Err(RecordError::Packing(*packing));
    }
    if *version != T::VERSION {
        return Err(RecordError::Version { found: *version, known: T::VERSION });
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
    let ([version, packing], packed) = bytes.split_first_chunk().ok_or(RecordError::Short)?;
    let payload = match *packing {
        PLAIN => Cow::Borrowed(packed),
        ZSTD => {
            let (size, packed) = packed.split_first_chunk().ok_or(RecordError::Short)?;
            let size = usize::try_from(u32::from_le_bytes(*size))?;
            if size > VALUE_LIMIT {
                return Err(RecordError::TooLarge { size, limit: VALUE_LIMIT });
            }
            Cow::Owned(zstd_contexts::decompress(packed, size).map_err(RecordError::Zstd)?)
        }
        other => return Err(RecordError::Packing(other)),
    };
    fields(*version, &payload)
}
