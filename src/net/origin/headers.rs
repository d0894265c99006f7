//! Selects the headers that are passed on (RFC 9110 section 7.6).

use super::forwarded::{ForwardedFor, is_of_proxy};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY: HeaderName = HeaderName::from_static("proxy");
/// The HTTP/2 settings in an upgrade from HTTP/1.1.
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// The gateway's element in `Via` (RFC 9110 section 7.6.3).
#[derive(Debug, Clone)]
pub struct Via(HeaderValue);

impl Via {
    /// Creates the element from the gateway's unique name, reduced to at most 32 letters and digits.
    pub fn new(name: &str) -> Self {
        let token: String = name.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let value = HeaderValue::from_str(&format!("1.1 tidegate-{token}"));
        Self(value.unwrap_or(HeaderValue::from_static("1.1 tidegate")))
    }

    fn add(&self, headers: &mut HeaderMap) {
        headers.append(header::VIA, self.0.clone());
    }

    /// Whether a request has already passed through this gateway.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::VIA).into_iter();
        let own = self.0.as_bytes();
        let mut elements = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        elements.any(|element| element.trim_ascii() == own)
    }
}

/// The name of the gateway's own cookie, which is passed on in neither direction.
#[derive(Debug, Clone, Copy)]
pub struct OwnCookie(pub &'static str);

impl OwnCookie {
    fn is_set_by(self, value: &HeaderValue) -> bool {
        let mut parts = value.as_bytes().splitn(3, |byte| matches!(byte, b'=' | b';'));
        let name = parts.next().unwrap_or_default().trim_ascii();
        // Browsers send a nameless cookie as if its value were a name and value.
        let name =
            if name.is_empty() { parts.next().unwrap_or_default().trim_ascii() } else { name };
        name == self.0.as_bytes()
    }

    /// Removes this cookie from a request's cookies and joins the rest into one header (RFC 9113 section 8.2.3); `None`
    /// if none is left.
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

/// Returns the request headers for the origin. `Host` is set if `host` is known or the site is told our own; otherwise
/// the client adds it, like the body's length. `forwarded`: `None` if the origin is told neither sender nor public
/// name.
pub fn to_origin(
    asked: &HeaderMap,
    host: Option<&HeaderValue>,
    cookie: OwnCookie,
    forwarded: Option<&ForwardedFor<'_>>,
    via: &Via,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(2 * asked.len());
    let is_coded = asked.contains_key(header::TRANSFER_ENCODING);
    let is_replaced = |name: &HeaderName| forwarded.is_some() && is_of_proxy(name);
    for (name, value) in asked {
        if !(is_for_gateway(name) || is_hop_by_hop(name, is_coded) || is_replaced(name)) {
            headers.append(name, value.clone());
        }
    }
    for name in named_options(asked) {
        headers.remove(name);
    }
    if headers.contains_key(header::COOKIE) {
        let cookies = cookie.removed_from(headers.get_all(header::COOKIE).iter());
        match cookies {
            Some(left) => drop(headers.insert(header::COOKIE, left)),
            None => drop(headers.remove(header::COOKIE)),
        }
    }
    if let Some(host) = host {
        headers.insert(header::HOST, host.clone());
    }
    if let Some(forwarded) = forwarded {
        forwarded.write(asked, &mut headers);
    }
    via.add(&mut headers);
    headers
}

/// Whether a request header ends at the gateway. CGI programs mistake `Proxy` for the setting of their own proxy.
fn is_for_gateway(name: &HeaderName) -> bool {
    matches!(*name, header::HOST | header::EXPECT) || *name == HTTP2_SETTINGS || *name == PROXY
}

/// Returns the response headers for the client, except those that contain addresses.
pub fn to_client(answered: HeaderMap, cookie: OwnCookie, via: &Via) -> HeaderMap {
    let mut headers = answered;
    let is_coded = headers.contains_key(header::TRANSFER_ENCODING);
    let named = named_options(&headers);
    // `Alt-Svc` advertises servers for the origin's host, not for this one.
    let ends = |name: &HeaderName| is_hop_by_hop(name, is_coded) || *name == header::ALT_SVC;
    let ending: Vec<_> = headers.keys().filter(|name| ends(name)).cloned().collect();
    for name in ending.into_iter().chain(named) {
        headers.remove(name);
    }
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

/// Whether a header applies to one connection only, even if `Connection` does not name it (RFC 9110 section 7.6.1).
/// `is_coded`: a transfer coding delimits the body, so `Content-Length` is void (RFC 9112 section 6.3).
fn is_hop_by_hop(name: &HeaderName, is_coded: bool) -> bool {
    match *name {
        header::CONNECTION
        | header::PROXY_AUTHENTICATE
        | header::PROXY_AUTHORIZATION
        | header::TE
        | header::TRAILER
        | header::TRANSFER_ENCODING
        | header::UPGRADE => true,
        header::CONTENT_LENGTH => is_coded,
        _ => *name == KEEP_ALIVE || *name == PROXY_CONNECTION,
    }
}

/// Whether a message has a transfer coding other than plain `chunked`, which this gateway does not decode (RFC 9112
/// section 6.1).
pub fn has_other_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(first) = codings.next() else { return false };
    let is_chunked = first.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    !is_chunked || codings.next().is_some()
}

/// Returns the headers that `Connection` declares to be for one connection.
fn named_options(headers: &HeaderMap) -> Vec<HeaderName> {
    let options = headers.get_all(header::CONNECTION).iter();
    let options = options.filter_map(|value| value.to_str().ok());
    let options = options.flat_map(|value| value.split(',')).take(64).map(str::trim);
    // `Keep-Alive` is dropped anyway.
    let options = options.filter(|option| !option.eq_ignore_ascii_case(KEEP_ALIVE.as_str()));
    options.filter_map(|option| HeaderName::from_bytes(option.as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests;
