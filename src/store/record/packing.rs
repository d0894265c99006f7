//! How the payloads of records are packed: as they are, compressed, or as what makes them out of another record: the same
//! item one version later, the order that came after this one.
//!
//! The base is always the newer of the two. So the newest is there whole, the oldest can go without a look at the others,
//! and a chain is as long as the operator's patience with old versions.

use super::RecordError;
use crate::limits::VALUE_LIMIT;
use std::borrow::Cow;
use std::io;
use std::sync::{Mutex, PoisonError};
use tidegate_core::model::Time;
use zstd::bulk::{Compressor, Decompressor};

/// Payloads below this many bytes are not worth compressing.
const PACK_FROM: usize = 256;
/// The zstd level: fast, and good enough for markup.
const PACK_LEVEL: i32 = 3;

pub(super) const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// The layout of records: the first byte of each.
pub(super) const LAYOUT: u8 = 1;
/// The way of packing: the base's key as seconds, the payload's size, and zstd with the base's
/// payload as its dictionary.
const DELTA: u8 = 2;
/// Its zstd level: of entries that publishers edited a higher one makes no smaller differences, and takes eight times
/// as long.
const DELTA_LEVEL: i32 = 8;

/// Splits a record into its way of packing and what is packed; an error where its layout is another one.
pub(super) fn envelope(bytes: &[u8]) -> Result<(u8, &[u8]), RecordError> {
    match bytes.split_first_chunk().ok_or(RecordError::Short)? {
        ([LAYOUT, packing], packed) => Ok((*packing, packed)),
        ([found, _], _) => Err(RecordError::Layout { found: *found, known: LAYOUT }),
    }
}

/// Writes a payload, compressed where that saves something.
pub(super) fn pack(payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    if payload.len() >= PACK_FROM {
        let make = || Compressor::new(PACK_LEVEL);
        let packed = COMPRESSORS.with(make, payload.len(), |context| context.compress(payload));
        let packed = packed.map_err(RecordError::Zstd)?;
        if packed.len() + size_of::<u32>() < payload.len() {
            let size = u32::try_from(payload.len())?.to_le_bytes();
            return Ok([&[LAYOUT, ZSTD][..], &size, &packed].concat());
        }
    }
    Ok([&[LAYOUT, PLAIN][..], payload].concat())
}

/// What a stored record is packed in.
enum Packed<'a> {
    Plain(&'a [u8]),
    Zstd(usize, &'a [u8]),
    Delta(Time, usize, &'a [u8]),
}

/// How a record is packed.
fn open(bytes: &[u8]) -> Result<Packed<'_>, RecordError> {
    let (packing, packed) = envelope(bytes)?;
    Ok(match packing {
        PLAIN => Packed::Plain(packed),
        ZSTD => {
            let (size, packed) = sized(packed)?;
            Packed::Zstd(size, packed)
        }
        DELTA => {
            let (base, packed) = packed.split_first_chunk().ok_or(RecordError::Short)?;
            let (size, packed) = sized(packed)?;
            Packed::Delta(Time::from_unix(i64::from_le_bytes(*base)), size, packed)
        }
        other => return Err(RecordError::Packing(other)),
    })
}

/// The size that a payload has once it is opened, checked before anything is made of it.
fn sized(packed: &[u8]) -> Result<(usize, &[u8]), RecordError> {
    let (size, packed) = packed.split_first_chunk().ok_or(RecordError::Short)?;
    let size = usize::try_from(u32::from_le_bytes(*size))?;
    if size > VALUE_LIMIT {
        return Err(RecordError::TooLarge { size, limit: VALUE_LIMIT });
    }
    Ok((size, packed))
}

/// The time in the key of what a record is a difference to; `None` where it is whole.
pub(crate) fn base(bytes: &[u8]) -> Result<Option<Time>, RecordError> {
    match open(bytes)? {
        Packed::Delta(base, ..) => Ok(Some(base)),
        Packed::Plain(_) | Packed::Zstd(..) => Ok(None),
    }
}

/// The payload of a record, given that of its base where it has one.
pub(crate) fn payload<'a>(
    bytes: &'a [u8],
    base: Option<&[u8]>,
) -> Result<Cow<'a, [u8]>, RecordError> {
    let opened = match open(bytes)? {
        Packed::Plain(payload) => return Ok(Cow::Borrowed(payload)),
        Packed::Zstd(size, packed) => {
            DECOMPRESSORS.with(Decompressor::new, size, |context| context.decompress(packed, size))
        }
        Packed::Delta(_, size, packed) => {
            let base = base.ok_or(RecordError::NoBase)?;
            Decompressor::with_dictionary(base).and_then(|mut open| open.decompress(packed, size))
        }
    };
    opened.map(Cow::Owned).map_err(RecordError::Zstd)
}

/// A whole record as a difference to the record `newer`, which stands under the time `at`; `None`
/// where that saves nothing.
pub(crate) fn against(
    whole: &[u8],
    at: Time,
    newer: &[u8],
) -> Result<Option<Vec<u8>>, RecordError> {
    if matches!(open(whole)?, Packed::Delta(..)) {
        return Ok(None);
    }
    let (old, new) = (payload(whole, None)?, payload(newer, None)?);
    let size = u32::try_from(old.len())?;
    let packed = Compressor::with_dictionary(DELTA_LEVEL, &new)
        .and_then(|mut packing| packing.compress(&old))
        .map_err(RecordError::Zstd)?;
    let mut bytes = vec![LAYOUT, DELTA];
    bytes.extend_from_slice(&at.unix().to_le_bytes());
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(&packed);
    Ok((bytes.len() < whole.len()).then_some(bytes))
}

/// So many of either kind are kept, each of them about 200 KB.
const KEPT: usize = 4;
/// What packed a larger record takes more memory than is kept.
const SMALL: usize = 64 << 10;

/// What zstd works with, kept for the next record: it takes as long to make as a small record takes to pack.
///
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

#[cfg(test)]
mod tests {
    use super::super::specimen::any_specimen;
    use super::super::{decode, encode, read_fields};
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::{Card, Markup};

    proptest! {
        #[test]
        fn what_is_packed_as_a_difference_is_read_back(
            old in any_specimen::<Markup>(), new in any_specimen::<Markup>(),
            at in any_specimen::<Time>(), same in ".{300,600}",
        ) {
            let mut old = old;
            old.xml.push_str(&same);
            let new = Markup { xml: format!("{same}{}", new.xml), ..new };
            let whole = encode(&old).unwrap();
            let newer = encode(&new).unwrap();
            let packed = against(&whole, at, &newer).unwrap().expect("most of it is the same");
            prop_assert!(packed.len() < whole.len());
            prop_assert_eq!(base(&packed).unwrap(), Some(at));
            let dictionary = payload(&newer, None).unwrap();
            let found = payload(&packed, Some(&dictionary)).unwrap();
            prop_assert_eq!(read_fields::<Markup>(&found).unwrap(), old);
            prop_assert!(matches!(payload(&packed, None), Err(RecordError::NoBase)));
            prop_assert!(decode::<Markup>(&packed).is_err());
        }
    }

    #[test]
    fn what_saves_nothing_stays_whole() {
        let text = |text: &str| {
            let plain = crate::conformance::make::markup("");
            encode(&Markup { xml: text.to_owned(), card: Card::default(), ..plain }).unwrap()
        };
        assert_eq!(against(&text("a"), Time::from_unix(7), &text("b")).unwrap(), None);
        let bomb = [&[1, DELTA], [0; 8].as_slice(), &[255; 4], &[0; 40]].concat();
        assert!(matches!(payload(&bomb, Some(b"x")), Err(RecordError::TooLarge { .. })));
    }
}
