use super::file::{FORMAT, FRAME_LIMIT, NUMBERS_LIMIT};
use super::*;
use crate::record::specimen::specimen;
use tidegate_core::model::{EndpointId, SupIdBasis};

fn head() -> ExportHead {
    let endpoint = EndpointId::own("gate.example").unwrap();
    ExportHead { endpoint, sup_ids: SupIdBasis::Name }
}

fn count(pieces: &[ExportRecord]) -> ExportTotals {
    let count = |is_kind: fn(&&ExportRecord) -> bool| pieces.iter().filter(is_kind).count() as u64;
    let feeds = count(|piece| matches!(piece, ExportRecord::Feed(_)));
    ExportTotals { feeds, items: count(|piece| matches!(piece, ExportRecord::Item(..))) }
}

pub(crate) fn written(pieces: &[ExportRecord]) -> Vec<u8> {
    let mut writer = ExportWriter::new(Vec::new(), head()).unwrap();
    for piece in pieces {
        writer.put(piece.clone()).unwrap();
    }
    let (totals, bytes) = writer.finish().unwrap();
    assert_eq!(totals, count(pieces));
    bytes
}

pub(crate) fn read(bytes: &[u8]) -> Result<Vec<ExportRecord>, PortableError> {
    let mut reader = ExportReader::open(bytes)?;
    let mut pieces = Vec::new();
    while let Some(piece) = reader.next_piece()? {
        pieces.push(piece);
    }
    assert_eq!(reader.totals(), count(&pieces));
    assert!(reader.next_piece()?.is_none());
    Ok(pieces)
}

#[test]
fn every_bit_and_every_byte_counts() {
    let pieces = [
        ExportRecord::Sites(specimen(1)),
        ExportRecord::PurgeMark(specimen(2), specimen(3)),
        ExportRecord::Log(specimen(4)),
        ExportRecord::Log(specimen(5)),
    ];
    let whole = written(&pieces);
    assert_eq!(read(&whole).unwrap(), pieces);
    assert_eq!(ExportReader::open(&whole[..]).unwrap().head(), &head());
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..whole.len() {
        for bit in [1, 16, 128] {
            let mut bytes = whole.clone();
            bytes[at] ^= bit;
            // A bit of zstd's own heading may mean nothing; what is read is the same then.
            if let Ok(read) = read(&bytes) {
                assert_eq!(read, pieces, "byte {at}");
            }
        }
    }
    assert!(read(&[whole.as_slice(), b"x"].concat()).is_err(), "something stands behind it");
    assert!(read(&[whole.as_slice(), whole.as_slice()].concat()).is_err());
}

/// A file of frames, whatever they are.
fn framed(format: u32, frames: &[&[u8]]) -> Vec<u8> {
    let mut inner = format.to_le_bytes().to_vec();
    for record in frames {
        inner.extend_from_slice(&u32::try_from(record.len()).unwrap().to_le_bytes());
        inner.extend_from_slice(record);
    }
    [MAGIC, zstd::bulk::compress(&inner, 1).unwrap().as_slice()].concat()
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(read(b""), Err(PortableError::Other)));
    assert!(matches!(read(b"<opml/>"), Err(PortableError::Other)));
    assert!(matches!(read(MAGIC), Err(PortableError::Damaged(_))));
    // The layout, no packing, the kind of frame; then an endpoint and what ids are made of.
    let head = b"\x01\x00\x00\x04gate\x00".as_slice();
    for other in [0, FORMAT + 1] {
        let said = read(&framed(other, &[head]));
        assert!(matches!(said, Err(PortableError::Format { found, .. }) if found == other));
    }
    for frames in [
        vec![],
        vec![b"\x01\x00\x01\x00".as_slice()],
        vec![b"x"],
        vec![head],
        vec![head, head],
        vec![head, b"\x01\x00\x09"],
        // An end of another layout, and one with another fingerprint.
        vec![head, b"\x02\x00\x02\x01\x00"],
        vec![head, b"\x01\x00\x02\x01\x00"],
        // An endpoint that no gateway can have.
        vec![b"\x01\x00\x00\x03a b\x00"],
    ] {
        let file = framed(FORMAT, &frames);
        assert!(matches!(read(&file), Err(PortableError::Damaged(_))), "{frames:?}");
    }
    let long = u32::try_from(FRAME_LIMIT + 1).unwrap().to_le_bytes();
    let long = [FORMAT.to_le_bytes().as_slice(), &long].concat();
    let long = [MAGIC, zstd::bulk::compress(&long, 1).unwrap().as_slice()].concat();
    assert!(matches!(read(&long), Err(PortableError::Damaged(_))));
}

fn encoded(record: &impl serde::Serialize, kind: u8) -> Vec<u8> {
    [vec![1, 0, kind], postcard::to_stdvec(record).unwrap()].concat()
}

/// Whatever a small file unpacks to.
#[test]
fn a_file_takes_the_memory_of_one_piece_at_a_time() {
    let feed = FeedName::new("a").unwrap();
    let is_refused = |frame: Vec<u8>| {
        let file = framed(FORMAT, &[&encoded(&head(), 0), &frame]);
        let mut reader = ExportReader::open(file.as_slice()).unwrap();
        matches!(reader.next_piece(), Err(PortableError::Damaged(_)))
    };
    let text = |length: usize| {
        let text = TextRecord { note: Some(specimen(3)), body: Some(vec![0; length].into()) };
        encoded(&ExportRecord::Text(feed.clone(), None, Box::new(text)), 1)
    };
    // No record of a file is packed once more.
    let plain = text(100);
    let size = u32::try_from(plain.len() - 2).unwrap().to_le_bytes();
    let packed = zstd::bulk::compress(&plain[2..], 1).unwrap();
    assert!(is_refused([&[1, 1], size.as_slice(), &packed].concat()));
    // Nor does one have millions of almost nothing; text counts as what it is.
    assert!(!is_refused(text(2 * NUMBERS_LIMIT)));
    let none = FrameRecord { since: Time::from_unix(7), run: 0, order: Vec::new(), skeleton: None };
    let none = encoded(&ExportRecord::Frame(feed.clone(), Box::new(none)), 1);
    let order = |count: usize| {
        let number = postcard::to_stdvec(&count).unwrap();
        [&none[..none.len() - 2], &number, &b"\x01a".repeat(count), &[0]].concat()
    };
    assert!(!is_refused(order(NUMBERS_LIMIT / 4)) && is_refused(order(NUMBERS_LIMIT)));
}

#[test]
fn a_fingerprint_tells_pieces_and_their_order_apart() {
    let digest = |pieces: [u64; 2]| {
        let mut digest = ExportDigest::default();
        let pieces = pieces.map(|seed| ExportRecord::PurgeMark(specimen(seed), specimen(seed)));
        pieces.iter().for_each(|piece| digest.put(piece).unwrap());
        digest.value()
    };
    assert_eq!(digest([1, 2]), digest([1, 2]));
    assert!([[2, 1], [1, 1], [1, 3]].into_iter().all(|other| digest(other) != digest([1, 2])));
}
