//! Which headers are passed on (RFC 9110 section 7.6).

use super::forwarded::ForwardedFor;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

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
const PROXY: HeaderName = HeaderName::from_static("proxy");
/// The settings of HTTP/2 in an upgrade from HTTP/1.1.
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// What a gateway calls itself in `Via` (RFC 9110 section 7.6.3).
#[derive(Debug, Clone)]
pub struct Via(HeaderValue);

impl Via {
    /// Of a gateway that this name tells from others; at most so much of it as is a token.
    pub fn new(name: &str) -> Self {
        let token: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let value = HeaderValue::from_str(&format!("1.1 tidegate-{token}"));
        Self(value.unwrap_or(HeaderValue::from_static("1.1 tidegate")))
    }

    fn add(&self, headers: &mut HeaderMap) {
        headers.append(header::VIA, self.0.clone());
    }

    /// Whether a request came through the same gateway before.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::VIA).into_iter();
        let own = self.0.as_bytes();
        let mut elements = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        elements.any(|element| element.trim_ascii() == own)
    }
}

/// The name of a cookie of our own, which passes in neither direction.
#[derive(Debug, Clone, Copy)]
pub struct OwnCookie(pub &'static str);

impl OwnCookie {
    fn is_set_by(self, value: &HeaderValue) -> bool {
        let mut parts = value.as_bytes().splitn(3, |byte| matches!(byte, b'=' | b';'));
        let name = parts.next().unwrap_or_default().trim_ascii();
        // Browsers send what has no name as if its value had one.
        let name =
            if name.is_empty() { parts.next().unwrap_or_default().trim_ascii() } else { name };
        name == self.0.as_bytes()
    }

    /// The cookies of a request without it, as one header (RFC 9113 section 8.2.3); `None` where nothing is left.
    fn removed_from<'v>(
        self,
        values: impl Iterator<Item = &'v HeaderValue>,
    ) -> Option<HeaderValue> {
        let pairs = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        let is_foreign = |pair: &&[u8]| {
            let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
            !pair.is_empty() && name.trim_ascii() != self.0.as_bytes()
        };
        let kept: Vec<&[u8]> = pairs.map(<[u8]>::trim_ascii).filter(is_foreign).collect();
        (!kept.is_empty()).then(|| HeaderValue::from_bytes(&kept.join(b"; ".as_slice())).ok())?
    }
}

/// The headers of a request as the origin gets them. The length of the body is left to who sends it, and so is `Host`
/// where the site is not told our own. `forwarded`: `None` where nothing is said of who asks, and of the site's name.
pub fn to_origin(
    asked: &HeaderMap,
    cookie: OwnCookie,
    forwarded: Option<&ForwardedFor<'_>>,
    via: &Via,
) -> HeaderMap {
    let mut headers = asked.clone();
    leave_end_to_end(&mut headers);
    // A program behind CGI takes the last one for its own proxy.
    for name in [header::HOST, header::EXPECT, HTTP2_SETTINGS, PROXY] {
        headers.remove(name);
    }
    let cookies = cookie.removed_from(headers.get_all(header::COOKIE).iter());
    match cookies {
        Some(left) => drop(headers.insert(header::COOKIE, left)),
        None => drop(headers.remove(header::COOKIE)),
    }
    if let Some(forwarded) = forwarded {
        forwarded.write(&mut headers);
    }
    via.add(&mut headers);
    headers
}

/// The headers of an answer as the client gets them, but for those that name addresses.
pub fn to_client(answered: HeaderMap, cookie: OwnCookie, via: &Via) -> HeaderMap {
    let mut headers = answered;
    leave_end_to_end(&mut headers);
    // It names other servers for the origin's host, which this is not.
    headers.remove(header::ALT_SVC);
    if let header::Entry::Occupied(cookies) = headers.entry(header::SET_COOKIE) {
        let (_, values) = cookies.remove_entry_mult();
        let left: Vec<_> = values.filter(|value| !cookie.is_set_by(value)).collect();
        for value in left {
            headers.append(header::SET_COOKIE, value);
        }
    }
    via.add(&mut headers);
    headers
}

/// Takes the headers out that are for one connection (RFC 9110 section 7.6.1).
fn leave_end_to_end(headers: &mut HeaderMap) {
    // The coding says where the body ends (RFC 9112 section 6.3).
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    let options: Vec<HeaderValue> = headers.get_all(header::CONNECTION).iter().cloned().collect();
    let options = options.iter().filter_map(|value| value.to_str().ok());
    for option in options.flat_map(|value| value.split(',')).take(OPTIONS_READ) {
        if let Ok(name) = HeaderName::from_bytes(option.trim().as_bytes()) {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
