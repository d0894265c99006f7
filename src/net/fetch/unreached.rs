//! What a failure of the client's library means.

use super::FetchLimits;
use super::clients::MAX_HEADERS;
use super::error::{ACCEPTING, ANSWERING, FetchError, root_cause};
use super::guard::{Refusal, shown};
use super::resolver::Unresolved;
use hyper_util::client::legacy;
use std::error::Error;
use std::io;
use tower::timeout::error::Elapsed;
use url::Url;

/// Why no response came.
pub(super) fn unreached(
    error: reqwest::Error,
    url: &Url,
    hop: usize,
    limits: &FetchLimits,
) -> FetchError {
    let error = error.without_url();
    let (is_connect, is_timeout) = (error.is_connect(), error.is_timeout());
    told(&error, url, hop).unwrap_or_else(|| match (is_connect, is_timeout) {
        (true, true) => not_accepted(limits),
        (true, false) => not_connected(url, &error),
        (false, true) => FetchError::Timeout { what: ANSWERING, limit: limits.idle },
        (false, false) => broken(error, limits),
    })
}

/// Why a request that is passed on has no answer.
pub(super) fn unpassed(error: &legacy::Error, url: &Url, limits: &FetchLimits) -> FetchError {
    told(error, url, 0).unwrap_or_else(|| {
        let is_timeout = cause::<Elapsed>(error).is_some()
            || cause::<io::Error>(error).is_some_and(|e| e.kind() == io::ErrorKind::TimedOut);
        match (error.is_connect(), is_timeout) {
            (true, true) => not_accepted(limits),
            (true, false) => not_connected(url, error),
            _ => FetchError::CutOff { why: root_cause(error) },
        }
    })
}

/// Whether a connection ended before there was an answer.
pub(super) fn is_cut_off(error: &legacy::Error) -> bool {
    !error.is_connect() && cause::<hyper::Error>(error).is_none_or(|error| !error.is_parse())
}

fn not_accepted(limits: &FetchLimits) -> FetchError {
    FetchError::Timeout { what: ACCEPTING, limit: limits.connect }
}

fn not_connected(url: &Url, error: &(dyn Error + 'static)) -> FetchError {
    let host = url.host_str().unwrap_or_default().to_owned();
    FetchError::Connect { host, why: root_cause(error) }
}

/// What the causes of an error tell, where they do.
fn told(error: &(dyn Error + 'static), url: &Url, hop: usize) -> Option<FetchError> {
    if let Some(refusal) = cause::<Refusal>(error) {
        return Some(FetchError::Refused { hop, refusal: refusal.clone() });
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    if let Some(unresolved) = cause::<Unresolved>(error) {
        return Some(FetchError::Name { host, why: unresolved.why.clone() });
    }
    if let Some(tls) = cause::<rustls::Error>(error) {
        return Some(match tls {
            rustls::Error::InvalidCertificate(_) => {
                FetchError::Certificate { host, why: tls.to_string() }
            }
            _ => FetchError::Connect { host, why: tls.to_string() },
        });
    }
    match cause::<hyper::Error>(error)? {
        error if error.is_parse_too_large() => {
            Some(FetchError::Headers { what: "fields", limit: MAX_HEADERS })
        }
        error if error.is_parse() => {
            let why = format!("{} does not speak HTTP: {}", shown(url), root_cause(error));
            Some(FetchError::CutOff { why })
        }
        _ => None,
    }
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
