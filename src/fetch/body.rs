//! Reads a body within its limits, still compressed, and decompresses it if it is a new one.

use super::decode::{Coding, DecodeError, decode};
use super::error::FetchError;
use super::{FetchLimits, client};
use bytes::{Bytes, BytesMut};
use xxhash_rust::xxh3::xxh3_128;

/// A body as it came over the wire, with its fingerprint.
pub(super) struct Wire {
    pub(super) bytes: Bytes,
    pub(super) print: u128,
}

/// Reads the whole body. One that ends early is an error, never a document.
pub(super) async fn read(
    mut response: reqwest::Response,
    limits: &FetchLimits,
) -> Result<Wire, FetchError> {
    let limit = limits.wire_bytes;
    let too_large = || FetchError::TooLarge { limit };
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| client::broken(e, limits))? {
        if chunk.len() > limit.saturating_sub(body.len()) {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    let bytes = body.freeze();
    let print = xxh3_128(&bytes);
    Ok(Wire { bytes, print })
}

/// Decompresses a body, away from the tasks that serve, and fingerprints it.
pub(super) async fn open(
    wire: Bytes,
    codings: Vec<Coding>,
    limit: usize,
) -> Result<(Bytes, u128), FetchError> {
    let work = move || {
        let body = decode(wire, &codings, limit)?;
        let print = xxh3_128(&body);
        Ok((body, print))
    };
    let done = tokio::task::spawn_blocking(work).await;
    match done {
        Ok(answer) => {
            answer.map_err(|error: DecodeError| FetchError::Decode { why: error.to_string() })
        }
        Err(error) => Err(FetchError::Client { what: "decompress", why: error.to_string() }),
    }
}
