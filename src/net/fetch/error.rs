//! Why a fetch failed, who must act, and what errors of the HTTP library mean.

use super::FetchLimits;
use super::clients::MAX_HEADERS;
use super::guard::{Refusal, shown};
use super::resolver::LookupError;
use hyper_util::client::legacy;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use tidegate_core::model::ShownAddress;
use tower::timeout::error::Elapsed;
use url::Url;

/// What a publisher did not do in time, if it sent nothing.
pub(super) const ACCEPTING: &str = "accept a connection";
pub(super) const ANSWERING: &str = "answer";

/// Who is to blame for a failure, and so must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FetchBlame {
    /// The network between the gateway and the publisher.
    Network,
    /// The publisher.
    Upstream,
    /// The operator of this gateway: a setting must change.
    Operator,
    /// The gateway itself: a defect.
    Gateway,
}

impl FetchBlame {
    /// Returns the word for it in the API and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Upstream => "upstream",
            Self::Operator => "operator",
            Self::Gateway => "gateway",
        }
    }
}

impl fmt::Display for FetchBlame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When another attempt makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// After a pause that grows with each failure.
    Backoff,
    /// After a longer pause: the publisher is overloaded or limits us (429, 503).
    Busy,
    /// After this time, which the publisher named.
    After(Duration),
    /// As rarely as the schedule allows: success is unlikely (410, a refused address).
    Seldom,
}

/// The pause after a 429 without `Retry-After`.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// A host's request for a pause (429, or 503 with `Retry-After`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRequest {
    /// The address that answered.
    pub address: String,
    /// The length of the pause.
    pub wait: Duration,
}

impl PauseRequest {
    /// Returns the pause that an answer of `address` asks for, if any.
    pub fn from_status(status: u16, retry_after: Option<Duration>, address: &str) -> Option<Self> {
        let wait = match status {
            429 => retry_after.unwrap_or(REFUSED_PAUSE),
            503 => retry_after?,
            _ => return None,
        };
        Some(Self { address: address.to_owned(), wait })
    }
}

/// Why a fetch failed. The text never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The guard refused an address; `hop`: 0 for the requested one, otherwise the number of the redirect.
    #[error("{}{refusal}", if *.hop > 0 { "a redirect was not followed: " } else { "" })]
    Refused { hop: usize, refusal: Refusal },
    /// No connection could be established.
    #[error("could not connect to {host}: {why}")]
    Connect { host: String, why: String },
    /// The host's name has no address.
    #[error("the name {host} leads to no address: {why}")]
    Name { host: String, why: String },
    /// This machine has no root certificates.
    #[error(
        "no https address can be fetched, because this machine has no root certificates; install them (the package is often called ca-certificates) and start again"
    )]
    NoRoots,
    /// A time limit was exceeded.
    #[error("the publisher did not {what} within {} s, which is the limit", limit.as_secs_f32())]
    Timeout { what: &'static str, limit: Duration },
    #[error("the connection ended before the whole answer had arrived: {why}")]
    CutOff { why: String },
    /// The client broke off the body of a passed request.
    #[error("who sent the request broke it off")]
    Unsent,
    /// The status brings no document. `redirected_to`: the address that answered after redirects. `says`: blame and
    /// explanation, if the answer tells more than its status.
    #[error("{}", describe_status(*code, redirected_to.as_deref(), says.as_ref()))]
    Status {
        code: u16,
        retry_after: Option<Duration>,
        redirected_to: Option<String>,
        says: Option<(FetchBlame, String)>,
    },
    /// 304 to a request without validators.
    #[error("the publisher answered 304 to a request without validators")]
    Unasked304,
    /// The request could not be made, or the answer is unusable.
    #[error("{why}")]
    Unusable { blame: FetchBlame, why: String },
    /// The client could not be created, or failed.
    #[error("the client could not {what}: {why}")]
    Client { what: &'static str, why: String },
}

impl FetchError {
    /// Creates the error for an unusable answer.
    pub fn upstream(why: impl Into<String>) -> Self {
        Self::Unusable { blame: FetchBlame::Upstream, why: why.into() }
    }

    /// Creates the error for an unusable setting.
    pub(super) fn operator(why: impl Into<String>) -> Self {
        Self::Unusable { blame: FetchBlame::Operator, why: why.into() }
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::upstream(format!("the document has more than {limit} bytes, which is the limit"))
    }

    /// Creates the error for too many or too large header fields: `limit` in the unit `what`.
    pub(super) fn headers(limit: usize, what: &str) -> Self {
        let said = "the publisher sent header fields beyond the limit of";
        Self::upstream(format!("{said} {limit} {what}"))
    }

    /// Returns who must act.
    pub const fn blame(&self) -> FetchBlame {
        match self {
            Self::Status { says: Some((blame, _)), .. } | Self::Unusable { blame, .. } => *blame,
            Self::Refused { hop: 0, refusal } if !matches!(refusal, Refusal::Led(_)) => {
                FetchBlame::Operator
            }
            Self::NoRoots | Self::Status { code: 407, .. } => FetchBlame::Operator,
            Self::Connect { .. }
            | Self::Name { .. }
            | Self::Timeout { .. }
            | Self::CutOff { .. } => FetchBlame::Network,
            Self::Client { .. } => FetchBlame::Gateway,
            _ => FetchBlame::Upstream,
        }
    }

    /// Returns when another attempt makes sense.
    pub const fn retry(&self) -> Retry {
        match self {
            Self::Status { retry_after: Some(wait), .. } => Retry::After(*wait),
            Self::Status { code: 429 | 503, .. } => Retry::Busy,
            Self::Status { code: 410, .. } | Self::Refused { .. } => Retry::Seldom,
            _ => Retry::Backoff,
        }
    }

    /// Returns the pause that a host asks for. `asked`: the requested address.
    pub fn pause(&self, asked: &str) -> Option<PauseRequest> {
        match self {
            Self::Status { code, retry_after, redirected_to, .. } => {
                let address = redirected_to.as_deref().unwrap_or(asked);
                PauseRequest::from_status(*code, *retry_after, address)
            }
            _ => None,
        }
    }

    /// Returns the HTTP status that came instead of a document.
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Unasked304 => Some(304),
            _ => None,
        }
    }
}

fn describe_status(
    code: u16,
    redirected_to: Option<&str>,
    says: Option<&(FetchBlame, String)>,
) -> String {
    if let Some((_, why)) = says {
        return why.clone();
    }
    let shown = redirected_to.map(|to| ShownAddress::new(to, None).text().to_owned());
    let led = shown.map(|shown| format!("; its redirects led to {shown}")).unwrap_or_default();
    format!("the publisher answered {code}{}{led}", meaning(code))
}

fn meaning(code: u16) -> &'static str {
    match code {
        204 | 205 => ", which carries no document",
        401 => ": it wants credentials",
        407 => ": the proxy wants credentials, or others",
        403 => ": it forbids this gateway to read the feed",
        404 => ": there is no such feed at present",
        410 => ": the feed is gone for good",
        429 => ": this gateway asks too often",
        500..=599 => ": it has trouble of its own",
        _ => "",
    }
}

/// Explains why no response came from reqwest.
pub(super) fn unreached(
    error: reqwest::Error,
    url: &Url,
    hop: usize,
    limits: &FetchLimits,
) -> FetchError {
    let error = error.without_url();
    let (is_connect, is_timeout) = (error.is_connect(), error.is_timeout());
    translate_cause(&error, url, hop).unwrap_or_else(|| match (is_connect, is_timeout) {
        (true, _) => not_connected(url, &error, is_timeout, limits),
        (false, true) => FetchError::Timeout { what: ANSWERING, limit: limits.idle },
        (false, false) => broken(error, limits),
    })
}

/// Explains why a passed request got no response from hyper.
pub(super) fn unpassed(error: &legacy::Error, url: &Url, limits: &FetchLimits) -> FetchError {
    translate_cause(error, url, 0).unwrap_or_else(|| {
        let is_timeout = cause::<Elapsed>(error).is_some()
            || cause::<io::Error>(error).is_some_and(|e| e.kind() == io::ErrorKind::TimedOut);
        match error.is_connect() {
            true => not_connected(url, error, is_timeout, limits),
            false => FetchError::CutOff { why: root_cause(error) },
        }
    })
}

/// Whether the connection ended before a response.
pub(super) fn is_cut_off(error: &legacy::Error) -> bool {
    !error.is_connect() && cause::<hyper::Error>(error).is_none_or(|error| !error.is_parse())
}

fn not_connected(
    url: &Url,
    error: &(dyn Error + 'static),
    is_timeout: bool,
    limits: &FetchLimits,
) -> FetchError {
    if is_timeout {
        return FetchError::Timeout { what: ACCEPTING, limit: limits.connect };
    }
    FetchError::Connect { host: host_of(url), why: root_cause(error) }
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// Translates an error by a cause that tells more than the error itself; `None` if there is no such cause.
fn translate_cause(error: &(dyn Error + 'static), url: &Url, hop: usize) -> Option<FetchError> {
    let host = host_of(url);
    if let Some(why) = cause::<LookupError>(error) {
        return Some(match why.clone() {
            LookupError::Refused(refusal) => FetchError::Refused { hop, refusal },
            LookupError::Unresolved(why) => FetchError::Name { host, why },
        });
    }
    if let Some(tls) = cause::<rustls::Error>(error) {
        return Some(match tls {
            rustls::Error::InvalidCertificate(why) => {
                let is_unknown = *why == rustls::CertificateError::UnknownIssuer;
                let own = if is_unknown { "; polling.ca_file names further issuers" } else { "" };
                let why = format!("the certificate of {host} was not accepted: {tls}{own}");
                FetchError::upstream(why)
            }
            _ => FetchError::Connect { host, why: tls.to_string() },
        });
    }
    match cause::<hyper::Error>(error)? {
        error if error.is_parse_too_large() => Some(FetchError::headers(MAX_HEADERS, "fields")),
        error if error.is_parse() => {
            let why = format!("{} does not speak HTTP: {}", shown(url), root_cause(error));
            Some(FetchError::CutOff { why })
        }
        _ => None,
    }
}

/// Explains why a response ended prematurely.
pub(super) fn broken(error: reqwest::Error, limits: &FetchLimits) -> FetchError {
    let error = error.without_url();
    if error.is_timeout() {
        FetchError::Timeout { what: "send anything", limit: limits.idle }
    } else {
        FetchError::CutOff { why: root_cause(&error) }
    }
}

/// The most causes of an error that are examined.
const MAX_DEPTH: usize = 16;

/// Returns the message of the innermost cause; the outer layers only say that they failed.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    for _ in 0..MAX_DEPTH {
        let Some(below) = deepest.source() else { break };
        deepest = below;
    }
    deepest.to_string()
}

/// Returns the first cause of type `E`. I/O errors hide their inner error from `source()`.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut at = Some(error);
    for _ in 0..MAX_DEPTH {
        let here = at?;
        if let Some(found) = here.downcast_ref::<E>() {
            return Some(found);
        }
        at = match here.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => here.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_sentence_with_blame_and_advice() {
        let status = |code, retry_after, to: Option<&str>| {
            let redirected_to = to.map(str::to_owned);
            FetchError::Status { code, retry_after, redirected_to, says: None }
        };
        let wait = Duration::from_secs(7);
        let refusal = Refusal::address("10.0.0.1", [10, 0, 0, 1].into());
        let refused = |hop| FetchError::Refused { hop, refusal: refusal.clone() };
        let check = |error: FetchError, text: &str, blame, retry| {
            assert!(error.to_string().starts_with(text), "{error}");
            assert_eq!((error.blame(), error.retry()), (blame, retry), "{text}");
        };
        for (code, retry_after, why, retry) in [
            (503, Some(wait), "it has trouble of its own", Retry::After(wait)),
            (429, None, "this gateway asks too often", Retry::Busy),
            (410, None, "the feed is gone for good", Retry::Seldom),
            (401, None, "it wants credentials", Retry::Backoff),
        ] {
            let text = format!("the publisher answered {code}: {why}");
            check(status(code, retry_after, None), &text, FetchBlame::Upstream, retry);
        }
        let late = FetchError::Timeout { what: "answer", limit: Duration::from_secs(60) };
        let text = "the publisher did not answer within 60 s, which is the limit";
        check(late, text, FetchBlame::Network, Retry::Backoff);
        let text = "10.0.0.1 has a private address; ";
        check(refused(0), text, FetchBlame::Operator, Retry::Seldom);
        let text = format!("a redirect was not followed: {text}");
        check(refused(2), &text, FetchBlame::Upstream, Retry::Seldom);
        // Who answered may ask to be left alone.
        let of = |code, retry_after, to| {
            let pause = status(code, retry_after, to).pause("https://a.example/feed");
            pause.map(|pause| (pause.address, pause.wait))
        };
        let asked = |address: &str| Some((address.to_owned(), wait));
        assert_eq!(of(429, Some(wait), None), asked("https://a.example/feed"));
        let elsewhere = "https://b.example/x";
        assert_eq!(of(503, Some(wait), Some(elsewhere)), asked(elsewhere));
        assert_eq!(of(429, None, None).map(|(_, wait)| wait), Some(REFUSED_PAUSE));
        for (code, retry_after) in [(503, None), (500, Some(wait)), (404, Some(wait))] {
            assert_eq!(of(code, retry_after, None), None, "{code}");
        }
    }
}
