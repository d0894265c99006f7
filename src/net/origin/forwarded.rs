//! Tells a site who asks and under which public name: `X-Forwarded-…` and `Forwarded` (RFC 7239).
//!
//! The client's address comes from the connection and from trusted proxies. The public name comes from the
//! configuration only: a site may write it into answers for everybody, so neither clients nor proxies may influence it.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

/// The chain of addresses through which a request came.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The public name of a site, in the forms that the site receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName {
    /// Host and port.
    host: HeaderValue,
    scheme: HeaderValue,
    /// Both, as an element of `Forwarded`.
    element: HeaderValue,
    /// Whether it is also sent as `Host`.
    is_sent_as_host: bool,
}

impl PublicName {
    /// Creates a name; `None` if it fits into no header. `authority`: host and port.
    pub(super) fn new(scheme: &str, authority: &str, is_sent_as_host: bool) -> Option<Self> {
        let is_token = |c: u8| c.is_ascii_alphanumeric() || c == b'.' || c == b'-';
        let quote = if authority.bytes().all(is_token) { "" } else { "\"" };
        let element = ["host=", quote, authority, quote, ";proto=", scheme].concat();
        Some(Self {
            host: HeaderValue::from_str(authority).ok()?,
            scheme: HeaderValue::from_str(scheme).ok()?,
            element: HeaderValue::try_from(element).ok()?,
            is_sent_as_host,
        })
    }

    /// Whether `authority` is its host and port.
    pub(super) fn has_authority(&self, authority: &str) -> bool {
        self.host.as_bytes() == authority.as_bytes()
    }

    /// Writes the name into the headers of the gateway's own request, replacing what is there.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(header::FORWARDED, self.element.clone());
        self.write_name(headers);
    }

    /// Writes all but `Forwarded`.
    fn write_name(&self, headers: &mut HeaderMap) {
        headers.insert(X_FORWARDED_HOST, self.host.clone());
        headers.insert(X_FORWARDED_PROTO, self.scheme.clone());
        if self.is_sent_as_host {
            headers.insert(header::HOST, self.host.clone());
        }
    }
}

/// The sender of a passed request, and the name of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardedFor<'n> {
    /// The peer of the connection.
    pub peer: IpAddr,
    /// Whether the peer is a proxy trusted to tell the client's address.
    pub is_trusted: bool,
    pub name: &'n PublicName,
}

/// Whether a header tells where a request came from, including spellings that CGI programs cannot distinguish (`_` for
/// `-`).
pub(super) fn is_of_proxy(name: &HeaderName) -> bool {
    let is = |text: &[u8], known: &[u8]| {
        let mut pairs = text.iter().zip(known);
        pairs.all(|(byte, wanted)| byte == wanted || (*byte, *wanted) == (b'_', b'-'))
    };
    let name = name.as_str().as_bytes();
    name.get(..TOLD.len()).is_some_and(|start| is(start, TOLD))
        || [b"x-real-ip".as_slice(), b"forwarded"]
            .iter()
            .any(|known| name.len() == known.len() && is(name, known))
}

/// The prefix of the older headers that `Forwarded` replaces.
const TOLD: &[u8] = b"x-forwarded-";

impl ForwardedFor<'_> {
    /// Writes the sender into `headers`, which contain no such header yet. `asked`: the request's own headers; a
    /// trusted proxy's addresses are retained in front.
    pub(super) fn write(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        let (mut row, mut elements) = (String::new(), String::new());
        if self.is_trusted {
            let before = |name: &HeaderName| {
                let values = asked.get_all(name).iter().filter_map(|value| value.to_str().ok());
                values.collect::<Vec<&str>>().join(", ")
            };
            (row, elements) = (before(&X_FORWARDED_FOR), addresses(&before(&header::FORWARDED)));
            if let Some(real) = asked.get(X_REAL_IP) {
                headers.insert(X_REAL_IP, real.clone());
            }
        }
        let peer = self.peer.to_canonical();
        let (open, close) = if peer.is_ipv6() { ("\"[", "]\"") } else { ("", "") };
        let address = peer.to_string();
        self.name.write_name(headers);
        let name = self.name.element.to_str().unwrap_or_default();
        let element = ["for=", open, address.as_str(), close, ";", name].concat();
        for (name, before, own) in
            [(X_FORWARDED_FOR, row, address), (header::FORWARDED, elements, element)]
        {
            let all = if before.is_empty() { own } else { [before, own].join(", ") };
            if let Ok(value) = HeaderValue::try_from(all) {
                headers.insert(name, value);
            }
        }
    }
}

/// Extracts the addresses from elements of `Forwarded`, dropping names (RFC 7239 section 4).
fn addresses(elements: &str) -> String {
    let told = split_unquoted(elements, ',').filter_map(|element| {
        let pairs = split_unquoted(element, ';').map(str::trim);
        let pairs: Vec<&str> = pairs.filter(|pair| is_of_address(pair)).collect();
        (!pairs.is_empty()).then(|| pairs.join(";"))
    });
    told.collect::<Vec<String>>().join(", ")
}

/// Whether a pair is `for` or `by` with a value that cannot end a quoted string.
fn is_of_address(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=') else { return false };
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let value = quoted.unwrap_or(value);
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b".:-_[]".contains(&c);
    ["for", "by"].iter().any(|known| name.eq_ignore_ascii_case(known))
        && !value.is_empty()
        && value.bytes().all(is_plain)
}

/// Splits a text at a character outside of quotes.
fn split_unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        c == at && !is_quoted
    })
}
