//! Reads a body within its limits, still compressed, and decompresses it if it is new.

use super::FetchLimits;
use super::decode::decoded;
use super::error::{FetchError, broken};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
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
