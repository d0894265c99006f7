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
pub struct ForwardedFor {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// Whether that is a proxy whose word is taken.
    pub is_trusted: bool,
    /// The host that was asked for, with its port.
    pub host: Option<String>,
    pub proto: Proto,
}

impl ForwardedFor {
    /// Writes it into the headers of a request. What a trusted proxy says stays before it; what anybody else
    /// says is replaced.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let peer = self.peer.to_canonical();
        if !self.is_trusted {
            let is_of_proxy = |name: &&HeaderName| {
                // Programs behind CGI cannot tell the two characters apart.
                let name = name.as_str().replace('_', "-");
                name.starts_with("x-forwarded-") || name == "x-real-ip" || name == "forwarded"
            };
            let told: Vec<_> = headers.keys().filter(is_of_proxy).cloned().collect();
            for name in told {
                headers.remove(name);
            }
        }
        self.append(headers, X_FORWARDED_FOR, peer.to_string());
        self.append(headers, header::FORWARDED, self.element(peer));
        let host = self.host.clone().unwrap_or_default();
        for (name, value) in
            [(X_FORWARDED_HOST, host), (X_FORWARDED_PROTO, self.proto.name().to_owned())]
        {
            if self.is_trusted && headers.contains_key(&name) {
                continue;
            }
            headers.remove(&name);
            if let Some(value) = HeaderValue::from_str(&value).ok().filter(|_| !value.is_empty()) {
                headers.insert(name, value);
            }
        }
    }

    fn append(&self, headers: &mut HeaderMap, name: HeaderName, value: String) {
        let before: Vec<&str> =
            headers.get_all(&name).iter().filter_map(|value| value.to_str().ok()).collect();
        let all = match (self.is_trusted, before.is_empty()) {
            (true, false) => format!("{}, {value}", before.join(", ")),
            _ => value,
        };
        if let Ok(value) = HeaderValue::from_str(&all) {
            headers.insert(name, value);
        }
    }

    fn element(&self, peer: IpAddr) -> String {
        let node = match peer {
            IpAddr::V4(peer) => peer.to_string(),
            IpAddr::V6(peer) => format!("\"[{peer}]\""),
        };
        let is_token =
            |text: &str| text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'.' || c == b'-');
        let is_quotable =
            |text: &str| text.bytes().all(|c| c.is_ascii_graphic() && c != b'"' && c != b'\\');
        let host = match self.host.as_deref() {
            Some(host) if is_token(host) => format!(";host={host}"),
            Some(host) if is_quotable(host) => format!(";host=\"{host}\""),
            _ => String::new(),
        };
        format!("for={node}{host};proto={}", self.proto.name())
    }
}
