//! What a failure of the client's library means.

use super::FetchLimits;
use super::clients::MAX_HEADERS;
use super::error::{FetchError, root_cause};
use super::guard::{Refusal, shown};
use super::resolver::Unresolved;
use std::error::Error;
use url::Url;

/// Why no response came.
pub(super) fn unreached(
    error: reqwest::Error,
    url: &Url,
    hop: usize,
    limits: &FetchLimits,
) -> FetchError {
    let error = error.without_url();
    if let Some(refusal) = cause::<Refusal>(&error) {
        return FetchError::Refused { hop, refusal: refusal.clone() };
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    if let Some(unresolved) = cause::<Unresolved>(&error) {
        return FetchError::Name { host, why: unresolved.why.clone() };
    }
    if let Some(tls) = cause::<rustls::Error>(&error) {
        return match tls {
            rustls::Error::InvalidCertificate(_) => {
                FetchError::Certificate { host, why: tls.to_string() }
            }
            _ => FetchError::Connect { host, why: tls.to_string() },
        };
    }
    match cause::<hyper::Error>(&error) {
        Some(error) if error.is_parse_too_large() => {
            return FetchError::Headers { what: "fields", limit: MAX_HEADERS };
        }
        Some(error) if error.is_parse() => {
            let why = format!("{} does not speak HTTP: {}", shown(url), root_cause(error));
            return FetchError::CutOff { why };
        }
        _ => {}
    }
    if error.is_connect() && error.is_timeout() {
        return FetchError::Timeout { what: "accept a connection", limit: limits.connect };
    }
    if error.is_connect() {
        return FetchError::Connect { host, why: root_cause(&error) };
    }
    broken(error, limits)
}

/// Why a response ended before its time.
pub(super) fn broken(error: reqwest::Error, limits: &FetchLimits) -> FetchError {
    let error = error.without_url();
    if error.is_timeout() {
        FetchError::Timeout { what: "send anything", limit: limits.idle }
    } else {
        FetchError::CutOff { why: root_cause(&error) }
    }
}

/// The first cause of type `E` below an error. I/O errors hide theirs from `source()`.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    /// How deep causes are looked for.
    const MAX_DEPTH: usize = 16;
    let mut at = Some(error);
    for _ in 0..MAX_DEPTH {
        let here = at?;
        if let Some(found) = here.downcast_ref::<E>() {
            return Some(found);
        }
        at = match here.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => here.source(),
        };
    }
    None
}
