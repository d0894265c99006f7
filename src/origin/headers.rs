//! Which headers are passed on (RFC 9110 section 7.6).

use super::forwarded::ForwardedFor;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What this gateway calls itself in `Via` (RFC 9110 section 7.6.3).
const VIA: &str = "1.1 tidegate";
/// The most options of `Connection` that are read.
const OPTIONS_READ: usize = 64;

/// Headers that are for one connection, whatever `Connection` says.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// The settings of HTTP/2 in an upgrade from HTTP/1.1.
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// The name of a cookie of our own, which passes in neither direction.
#[derive(Debug, Clone, Copy)]
pub struct OwnCookie(pub &'static str);

impl OwnCookie {
    fn is_set_by(self, value: &HeaderValue) -> bool {
        let name = value.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii() == self.0.as_bytes()
    }

    /// A header `Cookie` without it; `None` where nothing is left.
    fn removed_from(self, value: &HeaderValue) -> Option<HeaderValue> {
        let pairs = value.as_bytes().split(|byte| *byte == b';');
        let kept: Vec<&[u8]> = pairs
            .map(<[u8]>::trim_ascii)
            .filter(|pair| {
                let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                !pair.is_empty() && name.trim_ascii() != self.0.as_bytes()
            })
            .collect();
        (!kept.is_empty()).then(|| HeaderValue::from_bytes(&kept.join(b"; ".as_slice())).ok())?
    }
}

/// The headers of a request as the origin gets them. `Host` and the length of the body are left to who sends it.
pub fn to_origin(asked: &HeaderMap, cookie: OwnCookie, forwarded: &ForwardedFor) -> HeaderMap {
    let mut headers = end_to_end(asked);
    for name in [header::HOST, header::EXPECT, HTTP2_SETTINGS] {
        headers.remove(name);
    }
    if let header::Entry::Occupied(cookies) = headers.entry(header::COOKIE) {
        let (_, values) = cookies.remove_entry_mult();
        let left: Vec<_> = values.filter_map(|value| cookie.removed_from(&value)).collect();
        for value in left {
            headers.append(header::COOKIE, value);
        }
    }
    forwarded.write(&mut headers);
    headers.append(header::VIA, HeaderValue::from_static(VIA));
    headers
}

/// The headers of an answer as the client gets them, but for those that name addresses.
pub fn to_client(answered: &HeaderMap, cookie: OwnCookie) -> HeaderMap {
    let mut headers = end_to_end(answered);
    // It names other servers for the origin's host, which this is not.
    headers.remove(header::ALT_SVC);
    if let header::Entry::Occupied(cookies) = headers.entry(header::SET_COOKIE) {
        let (_, values) = cookies.remove_entry_mult();
        let left: Vec<_> = values.filter(|value| !cookie.is_set_by(value)).collect();
        for value in left {
            headers.append(header::SET_COOKIE, value);
        }
    }
    headers.append(header::VIA, HeaderValue::from_static(VIA));
    headers
}

/// Headers without those that are for one connection (RFC 9110 section 7.6.1).
fn end_to_end(all: &HeaderMap) -> HeaderMap {
    let mut headers = all.clone();
    // The coding says where the body ends (RFC 9112 section 6.3).
    if all.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let options = all.get_all(header::CONNECTION).into_iter();
    let options = options.filter_map(|value| value.to_str().ok());
    for option in options.flat_map(|value| value.split(',')).take(OPTIONS_READ) {
        if let Ok(name) = HeaderName::from_bytes(option.trim().as_bytes()) {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers
}

#[cfg(test)]
mod tests;
