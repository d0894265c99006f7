//! Reads a body within its limits, still compressed, and decompresses it if it is a new one.

use super::FetchLimits;
use super::decode::decoded;
use super::error::{FetchError, broken};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use std::time::Duration;
use tokio::time::timeout;
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
    let too_large = || FetchError::too_large(limit);
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| broken(e, limits))? {
        if chunk.len() > limit.saturating_sub(body.len()) {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    let bytes = body.freeze();
    let print = xxh3_128(&bytes);
    Ok(Wire { bytes, print })
}

/// How long is waited for the beginning of a body that is no document.
const BEGINNING_TIME: Duration = Duration::from_secs(5);
/// The most bytes that the beginning of a body may decompress to.
const BEGINNING_DECODED: usize = 1024 * 1024;

/// The beginning of a body that says why there is no document, at most `limit` bytes; nothing where it
/// cannot be read in time.
pub(super) async fn beginning(
    mut response: reqwest::Response,
    headers: &HeaderMap,
    limit: usize,
) -> Bytes {
    let mut wire = BytesMut::new();
    let reading = async {
        while wire.len() < limit {
            let Ok(Some(chunk)) = response.chunk().await else { return };
            let room = limit.saturating_sub(wire.len());
            wire.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        }
    };
    // What came until then may be enough.
    let _ = timeout(BEGINNING_TIME, reading).await;
    decoded(headers, wire.freeze(), BEGINNING_DECODED).unwrap_or_default()
}

/// Decompresses a body, away from the tasks that serve, and fingerprints it.
pub(super) async fn open(
    wire: Bytes,
    headers: HeaderMap,
    limit: usize,
) -> Result<(Bytes, u128), FetchError> {
    let work = move || {
        let opened = decoded(&headers, wire, limit);
        opened.map(|body| (body.clone(), xxh3_128(&body)))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(opened) => opened.map_err(|error| FetchError::upstream(error.to_string())),
        Err(error) => Err(FetchError::Client { what: "decompress", why: error.to_string() }),
    }
}
