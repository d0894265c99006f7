//! Reads a body within its limits, still compressed, and decodes its content codings (RFC 9110 section 8.4) if it is new.

use super::FetchLimits;
use super::error::{FetchError, broken};
use bytes::{Bytes, BytesMut};
use flate2::{Decompress, FlushDecompress, Status};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::io::{self, Read};
use std::time::Duration;
use tokio::time::timeout;
use xxhash_rust::xxh3::xxh3_128;

/// Reads at most `limit` bytes of a body; returns whether that is all of it. A body that ends prematurely is an error,
/// never a document.
pub(super) async fn read_some(
    response: &mut reqwest::Response,
    limit: usize,
    body: &mut BytesMut,
) -> Result<bool, reqwest::Error> {
    while let Some(chunk) = response.chunk().await? {
        let room = limit.saturating_sub(body.len());
        body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        if chunk.len() > room {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a whole body of at most `limit` bytes.
pub(super) async fn read_whole(
    mut response: reqwest::Response,
    limit: usize,
    limits: &FetchLimits,
) -> Result<Bytes, FetchError> {
    let (mut body, length) = (BytesMut::new(), response.content_length());
    let is_whole = length.is_none_or(|length| length <= limit as u64)
        && read_some(&mut response, limit, &mut body).await.map_err(|e| broken(e, limits))?;
    if is_whole { Ok(body.freeze()) } else { Err(FetchError::too_large(limit)) }
}

/// Runs slow work on a blocking thread.
pub(super) async fn apart<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| FetchError::Client { what, why: error.to_string() })?
}

/// Reads the beginning of an error page, at most `limit` compressed bytes; empty if decoding fails.
pub(super) async fn beginning(
    mut response: reqwest::Response,
    headers: &HeaderMap,
    limit: usize,
) -> Bytes {
    let mut wire = BytesMut::new();
    // On a timeout, the part read so far may suffice.
    let _ = timeout(Duration::from_secs(5), read_some(&mut response, limit, &mut wire)).await;
    decoded(headers, wire.freeze(), 1024 * 1024).unwrap_or_default()
}

/// Decompresses a body on a blocking thread and computes its fingerprint.
pub(super) async fn open(
    wire: Bytes,
    headers: HeaderMap,
    limit: usize,
) -> Result<(Bytes, u128), FetchError> {
    let work = move || {
        let opened = decoded(&headers, wire, limit);
        let opened = opened.map_err(|error| FetchError::upstream(error.to_string()));
        opened.map(|body| (body.clone(), xxh3_128(&body)))
    };
    apart("decompress", work).await
}

/// The most content codings on one body.
pub const MAX_CODINGS: usize = 3;
/// The largest zstd window, as a power of two: 8 MiB (RFC 9659 section 3).
const ZSTD_WINDOW_LOG: u32 = 23;
/// The buffer size for deflate and brotli, in bytes.
const CHUNK: usize = 16 * 1024;

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate`: with the zlib wrapper as RFC 9110 says, or raw as some servers send it.
    Deflate,
    /// `br`.
    Brotli,
    Zstd,
}

impl Coding {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the coding by a body's magic number; deflate and brotli have none.
    fn from_magic_number(body: &[u8]) -> Option<Self> {
        match body {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Why a body could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// An unsupported coding.
    #[error("the publisher sent the content coding {coding:?}, which was not asked for")]
    Unknown { coding: String },
    /// Too many nested codings.
    #[error("the publisher applied more than {MAX_CODINGS} content codings")]
    TooMany,
    #[error("the document has more than {limit} bytes once decompressed, which is the limit")]
    TooLarge { limit: usize },
    /// The data is damaged or truncated.
    #[error("the {coding} data of the publisher is damaged or cut off")]
    Damaged {
        coding: &'static str,
        #[source]
        source: io::Error,
    },
}

/// Parses `Content-Encoding` into codings in the order of application, without `identity`. Also returns the first
/// unknown token: many servers send `none`, `utf-8` or `aws-chunked`.
fn codings(headers: &HeaderMap) -> Result<(Vec<Coding>, Option<String>), DecodeError> {
    let (mut known, mut unknown) = (Vec::new(), None);
    let values = headers.get_all(CONTENT_ENCODING).into_iter();
    let values = values.map(|value| value.to_str().unwrap_or("an unreadable one"));
    for token in values.flat_map(|value| value.split(',')) {
        let token = token.trim().to_ascii_lowercase();
        let coding = match token.as_str() {
            "" | "identity" => continue,
            "gzip" | "x-gzip" => Coding::Gzip,
            "deflate" => Coding::Deflate,
            "br" => Coding::Brotli,
            "zstd" => Coding::Zstd,
            _ => {
                unknown.get_or_insert_with(|| token.chars().take(64).collect());
                continue;
            }
        };
        if known.len() == MAX_CODINGS {
            return Err(DecodeError::TooMany);
        }
        known.push(coding);
    }
    Ok((known, unknown))
}

/// Decodes a body, last coding first; each step yields at most `limit` bytes. The body overrules the headers: plain
/// text is not decoded, whatever they say. A body with the magic number of gzip or zstd is decoded even without a
/// header.
pub fn decoded(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, DecodeError> {
    let (known, unknown) = codings(headers)?;
    let (mut body, mut undone) = (body, 0);
    for coding in known.into_iter().rev() {
        body = match decode_one(&body, coding, limit) {
            Ok(inner) => inner.into(),
            Err(DecodeError::Damaged { .. }) if is_plain(&body) => continue,
            Err(error) => return Err(error),
        };
        undone += 1;
    }
    while let Some(coding) = Coding::from_magic_number(&body) {
        if undone == MAX_CODINGS {
            return Err(DecodeError::TooMany);
        }
        body = decode_one(&body, coding, limit)?.into();
        undone += 1;
    }
    match unknown {
        _ if body.len() > limit => Err(DecodeError::TooLarge { limit }),
        Some(coding) if !is_plain(&body) => Err(DecodeError::Unknown { coding }),
        _ => Ok(body),
    }
}

/// Whether a body starts like XML, HTML or a JSON object, after a byte order mark or blanks. No brotli stream starts
/// so.
fn is_plain(body: &[u8]) -> bool {
    let marks: [&[u8]; 3] = [b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"];
    let unmarked = marks.iter().find_map(|mark| body.strip_prefix(*mark)).unwrap_or(body);
    let first = unmarked.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != 0);
    first.is_some_and(|first| b"<{".contains(first))
}

fn decode_one(body: &[u8], coding: Coding, limit: usize) -> Result<Vec<u8>, DecodeError> {
    match coding {
        Coding::Gzip => gzip(body, limit),
        Coding::Deflate => match inflate(body, true, limit) {
            Err(DecodeError::Damaged { .. }) => inflate(body, false, limit),
            answer => answer,
        },
        Coding::Brotli => read(
            brotli_decompressor::Decompressor::new(body, CHUNK),
            Coding::Brotli,
            limit,
            Vec::new(),
        ),
        Coding::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(body).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Ok(decoder)
            });
            let decoder = decoder.map_err(|source| damaged(Coding::Zstd, source))?;
            read(decoder, Coding::Zstd, limit, Vec::new())
        }
    }
}

/// Decodes all members of a gzip body; ignores trailing garbage, like browsers.
fn gzip(mut body: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    loop {
        let mut decoder = flate2::bufread::GzDecoder::new(body);
        out = read(&mut decoder, Coding::Gzip, limit, out)?;
        // Ends, because each iteration consumes a member's header.
        body = decoder.into_inner();
        if !body.starts_with(&[0x1f, 0x8b]) {
            return Ok(out);
        }
    }
}

fn read(
    reader: impl Read,
    coding: Coding,
    limit: usize,
    mut out: Vec<u8>,
) -> Result<Vec<u8>, DecodeError> {
    let room = limit.saturating_sub(out.len()).saturating_add(1);
    let room = u64::try_from(room).unwrap_or(u64::MAX);
    reader.take(room).read_to_end(&mut out).map_err(|source| damaged(coding, source))?;
    if out.len() > limit { Err(DecodeError::TooLarge { limit }) } else { Ok(out) }
}

/// Inflates to the end of the stream. The readers of `flate2` accept a truncated stream without a trailer, so this
/// checks for the end itself.
fn inflate(body: &[u8], zlib: bool, limit: usize) -> Result<Vec<u8>, DecodeError> {
    let wrong = |what: &str| {
        damaged(Coding::Deflate, io::Error::new(io::ErrorKind::InvalidData, what.to_owned()))
    };
    let mut stream = Decompress::new(zlib);
    let mut out = Vec::new();
    loop {
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = usize::try_from(read).ok().and_then(|at| body.get(at..)).unwrap_or_default();
        out.reserve(CHUNK);
        let status = stream
            .decompress_vec(rest, &mut out, FlushDecompress::None)
            .map_err(|error| wrong(&error.to_string()))?;
        if out.len() > limit {
            return Err(DecodeError::TooLarge { limit });
        }
        if status == Status::StreamEnd {
            return Ok(out);
        }
        if stream.total_in() == read && stream.total_out() == written {
            return Err(wrong("the stream has no end"));
        }
    }
}

fn damaged(coding: Coding, source: io::Error) -> DecodeError {
    DecodeError::Damaged { coding: coding.name(), source }
}

#[cfg(test)]
mod tests;
