use super::*;
use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use std::io::Write as _;

const LIMIT: usize = 1 << 20;

fn encode(data: &[u8], coding: Coding) -> Vec<u8> {
    let mut out = Vec::new();
    let read = match coding {
        Coding::Gzip => GzEncoder::new(data, Compression::best()).read_to_end(&mut out),
        Coding::Deflate => ZlibEncoder::new(data, Compression::best()).read_to_end(&mut out),
        Coding::Brotli => brotli::CompressorReader::new(data, 4096, 5, 22).read_to_end(&mut out),
        Coding::Zstd => zstd::stream::read::Encoder::new(data, 3).unwrap().read_to_end(&mut out),
    };
    read.unwrap();
    out
}

fn raw_deflate(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    DeflateEncoder::new(data, Compression::best()).read_to_end(&mut out).unwrap();
    out
}

const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn headers(values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (CONTENT_ENCODING, value.parse().unwrap())).collect()
}

fn decode(body: Bytes, codings: &[Coding], limit: usize) -> Result<Bytes, DecodeError> {
    let names: Vec<&str> = codings.iter().map(|coding| coding.name()).collect();
    decoded(&headers(&[&names.join(", ")]), body, limit)
}

#[test]
fn what_is_plain_is_taken_whatever_it_is_called_and_marks_count_without_a_name() {
    let feed = b"\xEF\xBB\xBF\n<feed/>".as_slice();
    let zipped = |data: &[u8]| encode(data, Coding::Gzip);
    let read = |values: &[&str], body: &[u8]| {
        decoded(&headers(values), Bytes::copy_from_slice(body), LIMIT).map_err(|e| e.to_string())
    };
    for label in ["utf-8", "none", "aws-chunked", "gzip", "br", "zstd", "deflate", "compress"] {
        assert_eq!(read(&[label], feed).unwrap(), feed, "{label}");
    }
    assert_eq!(read(&["gzip"], b"{\"version\":1}").unwrap(), b"{\"version\":1}".as_slice());
    assert_eq!(read(&[], &zipped(feed)).unwrap(), feed);
    assert_eq!(read(&[], &encode(feed, Coding::Zstd)).unwrap(), feed);
    assert_eq!(read(&["gzip"], &zipped(&zipped(feed))).unwrap(), feed);
    assert_eq!(read(&["aws-chunked,gzip"], &zipped(feed)).unwrap(), feed);
    for coding in ALL {
        assert_eq!(read(&[coding.name()], &encode(feed, coding)).unwrap(), feed);
    }
    assert_eq!(read(&["deflate"], &raw_deflate(feed)).unwrap(), feed);
    let chained = encode(&encode(feed, Coding::Zstd), Coding::Deflate);
    assert_eq!(read(&["zstd, deflate"], &chained).unwrap(), feed);
    // Several gzip members are one body, and padding is none.
    let members = [zipped(feed), zipped(b"more"), vec![0; 16]].concat();
    assert_eq!(read(&["gzip"], &members).unwrap(), [feed, b"more"].concat());
    assert_eq!(read(&["br, gzip"], &zipped(feed)).unwrap(), feed);
    assert!(read(&["compress"], b"\x1f\x9d\x90").unwrap_err().contains("\"compress\""));
    assert!(read(&["gzip"], b"no gzip").unwrap_err().contains("gzip"));
    let bomb = (0..=MAX_CODINGS).fold(feed.to_vec(), |inner, _| zipped(&inner));
    assert!(read(&[], &bomb).is_err());
    let cut = zipped(feed);
    assert!(read(&[], &cut[..cut.len() - 9]).is_err());
    // The header is read in the order of application.
    let read = |values: &[&str]| codings(&headers(values)).unwrap().0;
    assert_eq!(read(&[]), []);
    assert_eq!(read(&["identity", ""]), []);
    assert_eq!(read(&[" GZIP , br", "zstd"]), [Coding::Gzip, Coding::Brotli, Coding::Zstd]);
    assert!(codings(&headers(&["gzip,gzip,gzip,gzip"])).is_err());
}

#[test]
fn a_bomb_is_refused_by_its_limit() {
    let zeros = vec![0; LIMIT + 1];
    for coding in ALL {
        let body = Bytes::from(encode(&zeros, coding));
        assert!(body.len() < LIMIT / 100, "{coding:?}");
        let refused = decode(body, &[coding], LIMIT);
        assert!(matches!(refused, Err(DecodeError::TooLarge { limit: LIMIT })), "{coding:?}");
        let body = Bytes::from(encode(&zeros[..LIMIT], coding));
        assert_eq!(decode(body, &[coding], LIMIT).unwrap().len(), LIMIT, "{coding:?}");
    }
    assert!(decode(zeros.clone().into(), &[], LIMIT).is_err());
    let raw = Bytes::from(raw_deflate(&zeros));
    assert!(matches!(decode(raw, &[Coding::Deflate], LIMIT), Err(DecodeError::TooLarge { .. })));
    let members = encode(&zeros[..LIMIT / 2], Coding::Gzip).repeat(3);
    let refused = decode(members.into(), &[Coding::Gzip], LIMIT);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })));
    // One inside another coding is refused at its own layer.
    let nested = encode(&encode(&vec![0; LIMIT * 2], Coding::Gzip), Coding::Brotli);
    let refused = decode(nested.into(), &[Coding::Gzip, Coding::Brotli], LIMIT);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })));
    // So is a window of zstd that nobody should ask for.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(b"<feed/>").unwrap();
    let body = encoder.finish().unwrap();
    assert!(decode(body.into(), &[Coding::Zstd], LIMIT).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A truncated body is an error in every coding, wherever it ends.
    #[test]
    fn a_cut_body_is_never_a_document(
        data in proptest::collection::vec(any::<u8>(), 1..2000),
        cut in 0.0f64..1.0,
    ) {
        for coding in ALL {
            let whole = encode(&data, coding);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at = ((whole.len() as f64) * cut) as usize;
            // Brotli data may be complete before its last byte.
            if let Ok(decoded) = decode(Bytes::copy_from_slice(&whole[..at]), &[coding], LIMIT) {
                prop_assert_eq!(coding, Coding::Brotli);
                prop_assert_eq!(&decoded, &data);
            }
        }
        let raw = raw_deflate(&data);
        let cut = Bytes::copy_from_slice(&raw[..raw.len() - 1]);
        // Bytes that begin like a document are taken for a plain one.
        let decoded = decode(cut.clone(), &[Coding::Deflate], LIMIT);
        prop_assert!(decoded.is_err() || decoded.is_ok_and(|decoded| decoded == cut));
    }

    #[test]
    fn noise_never_panics(data in proptest::collection::vec(any::<u8>(), 0..512)) {
        for coding in ALL {
            let _ = decode(Bytes::copy_from_slice(&data), &[coding], LIMIT);
        }
    }
}
