//! For whom a request is passed on: `X-Forwarded-…` and `Forwarded` (RFC 7239).

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;

/// The row of addresses that a request came by.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// How the client reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proto {
    Http,
    Https,
}

impl Proto {
    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Who sent a request, and to which host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardedFor<'h> {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// Whether that is a proxy whose word is taken.
    pub is_trusted: bool,
    /// The host that was asked for, with its port.
    pub host: Option<&'h str>,
    pub proto: Proto,
}

/// Whether a header says where a request came from, also with the characters that programs behind CGI cannot tell
/// apart.
fn is_of_proxy(name: &HeaderName) -> bool {
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

/// What the headers begin with that were there before `Forwarded`.
const TOLD: &[u8] = b"x-forwarded-";

/// An address as text. What the standard library writes takes several times as long, for each request.
fn shown(address: IpAddr) -> String {
    let IpAddr::V4(address) = address else { return address.to_string() };
    let mut text = String::with_capacity(MAX_V4);
    for octet in address.octets() {
        if !text.is_empty() {
            text.push('.');
        }
        for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
            if octet >= least {
                text.push(char::from(b'0' + octet / unit % 10));
            }
        }
    }
    text
}

/// The most characters of an IPv4 address.
const MAX_V4: usize = 15;

impl ForwardedFor<'_> {
    /// Whether a header of a request says the same, and its sender is not believed.
    pub(super) fn replaces(&self, name: &HeaderName) -> bool {
        !self.is_trusted && is_of_proxy(name)
    }

    /// Writes it into the headers of a request, behind what a trusted proxy says. What it [replaces](Self::replaces)
    /// is left out before.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let peer = self.peer.to_canonical();
        let address = shown(peer);
        self.append(headers, header::FORWARDED, self.element(peer, &address));
        self.append(headers, X_FORWARDED_FOR, address);
        let is_told = |headers: &HeaderMap, name| self.is_trusted && headers.contains_key(name);
        if !is_told(headers, X_FORWARDED_HOST) {
            let host = self.host.filter(|host| !host.is_empty());
            match host.and_then(|host| HeaderValue::from_str(host).ok()) {
                Some(host) => drop(headers.insert(X_FORWARDED_HOST, host)),
                None => drop(headers.remove(X_FORWARDED_HOST)),
            }
        }
        if !is_told(headers, X_FORWARDED_PROTO) {
            headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(self.proto.name()));
        }
    }

    fn append(&self, headers: &mut HeaderMap, name: HeaderName, value: String) {
        let mut all = String::new();
        if self.is_trusted {
            for before in headers.get_all(&name).iter().filter_map(|value| value.to_str().ok()) {
                all.push_str(before);
                all.push_str(", ");
            }
        }
        let all = if all.is_empty() { value } else { all + &value };
        if let Ok(value) = HeaderValue::try_from(all) {
            headers.insert(name, value);
        }
    }

    fn element(&self, peer: IpAddr, address: &str) -> String {
        let is_token =
            |text: &str| text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'.' || c == b'-');
        let is_quotable =
            |text: &str| text.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\');
        let (open, close) = if peer.is_ipv6() { ("\"[", "]\"") } else { ("", "") };
        let [named, begin, host, end] = match self.host {
            Some(host) if is_token(host) => [";host=", "", host, ""],
            Some(host) if is_quotable(host) => [";host=", "\"", host, "\""],
            _ => [""; 4],
        };
        let proto = self.proto.name();
        ["for=", open, address, close, named, begin, host, end, ";proto=", proto].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_as_usual() {
        for text in ["0.0.0.0", "127.0.0.1", "10.20.99.100", "255.109.200.9", "2001:db8::1"] {
            assert_eq!(shown(text.parse().unwrap()), text);
        }
    }
}
