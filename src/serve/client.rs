//! Who asks: what counts as one client wherever something is shared out.
//!
//! That is the peer of the connection, unless the peer is a trusted proxy (`server.trusted_proxies`):
//! then it is the last address in `Forwarded` (RFC 7239) or `X-Forwarded-For` that is no trusted proxy. Addresses
//! before that one were written by an untrusted peer and do not count.
//!
//! The log tells of peers that seem to be proxies and are not named there: whatever is shared out by client, all who come
//! through such a proxy have one share of.

use super::{AppState, locked};
use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, header};
use ipnet::IpNet;
use std::collections::HashSet;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use tidegate_net::origin::X_FORWARDED_FOR;

/// How many addresses are looked at, from the last one: as many proxies may stand in a row.
const HOPS: usize = 32;
/// The bits of an IPv6 address that tell clients apart: one has a whole network of the rest.
const V6_BITS: u32 = 64;
/// The bits that tell end sites apart (RFC 6177), which have as many /64 as they like.
const V6_NETWORK_BITS: u32 = 48;

/// A client, as shares go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Client {
    /// This gateway itself, which delivers its own documents.
    Own,
    /// An IPv4 address, or the first address of a /64 of IPv6.
    At(IpAddr),
}

impl Client {
    /// The client at an address.
    pub(super) fn at(address: IpAddr) -> Self {
        Self::At(cut(address.to_canonical(), V6_BITS))
    }

    /// That of a request with these extensions.
    pub(super) fn of(request: &Extensions) -> Self {
        request.get().copied().unwrap_or(Self::Own)
    }

    /// The network of a client: an IPv4 address, or the first address of a /48 of IPv6.
    pub(super) fn network(self) -> Self {
        match self {
            Self::Own => Self::Own,
            Self::At(address) => Self::At(cut(address, V6_NETWORK_BITS)),
        }
    }

    /// The address that it is told apart by.
    pub(super) const fn address(self) -> Option<IpAddr> {
        match self {
            Self::Own => None,
            Self::At(address) => Some(address),
        }
    }
}

/// The first address of a network of so many bits, where it is one of IPv6.
fn cut(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = u128::MAX << (u128::BITS - bits);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & network))
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Whose request it is that a peer sent with these headers.
pub(super) fn asking(app: &AppState, Peer(peer): Peer, headers: &HeaderMap) -> Client {
    // A peer that seems to be a proxy and is not named as one.
    if headers.keys().any(says_for_whom) && !app.proxies.are_trusted(peer) {
        app.unnamed_proxies.tell(Client::at(peer), SAYS_FOR_WHOM);
    }
    app.proxies.client(peer, headers)
}

/// Whether a header says for whom a request was sent on.
fn says_for_whom(name: &HeaderName) -> bool {
    *name == header::FORWARDED || *name == X_FORWARDED_FOR
}

/// The proxies whose word is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Proxies(Vec<IpNet>);

impl Proxies {
    pub(super) const fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether the word of this address is taken.
    pub(super) fn are_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whose request it is that `peer` sent with these headers.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Client {
        if !self.are_trusted(peer) {
            return Client::at(peer);
        }
        let of = |addresses: Option<Vec<Option<IpAddr>>>| {
            addresses.map(|addresses| self.last_untrusted(peer, &addresses))
        };
        match (of(forwarded(headers)), of(x_forwarded_for(headers))) {
            (Some(one), Some(other)) if one != other => {
                // The proxy sets one of the two and lets the other through, and which cannot be told.
                Client::at(peer)
            }
            (Some(client), _) | (None, Some(client)) => client,
            (None, None) => Client::at(peer),
        }
    }

    /// The client that a row of addresses tells, the nearest one last. Where a trusted proxy names no
    /// address, it is that proxy.
    fn last_untrusted(&self, peer: IpAddr, addresses: &[Option<IpAddr>]) -> Client {
        let mut last = peer;
        for address in addresses.iter().rev().take(HOPS) {
            match address {
                Some(address) if self.are_trusted(*address) => last = *address,
                Some(address) => return Client::at(*address),
                None => break,
            }
        }
        Client::at(last)
    }
}

/// The addresses of `X-Forwarded-For`; `None` where there is no such header.
fn x_forwarded_for(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let nodes = |text: &str| text.split(',').map(|node| address(node.trim())).collect();
    addresses(headers, &X_FORWARDED_FOR, nodes)
}

/// The addresses of `for` of each element of `Forwarded` (RFC 7239 section 4); `None` where there is
/// no such header.
fn forwarded(headers: &HeaderMap) -> Option<Vec<Option<IpAddr>>> {
    let nodes = |text: &str| split_unquoted(text, ',').into_iter().map(named_for).collect();
    addresses(headers, &header::FORWARDED, nodes)
}

/// The addresses of all lines of a header, of each as `nodes` reads it.
fn addresses(
    headers: &HeaderMap,
    name: &HeaderName,
    nodes: fn(&str) -> Vec<Option<IpAddr>>,
) -> Option<Vec<Option<IpAddr>>> {
    let lines = headers.get_all(name).iter();
    let all: Vec<_> = lines.flat_map(|line| nodes(line.to_str().unwrap_or_default())).collect();
    (!all.is_empty()).then_some(all)
}

/// The parts of a text between separators; one in quotes separates nothing.
fn split_unquoted(text: &str, separator: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(|c| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        match c {
            '"' if !was_escaped => is_quoted = !is_quoted,
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            _ => {}
        }
        c == separator && !is_quoted
    });
    let parts = parts.collect();
    // Within quotes that do not end nothing can be told apart.
    if is_quoted { vec![""] } else { parts }
}

fn named_for(element: &str) -> Option<IpAddr> {
    let mut named = split_unquoted(element, ';').into_iter().filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let (node, None) = (named.next()?, named.next()) else { return None };
    let quoted = node.strip_prefix('"').and_then(|node| node.strip_suffix('"'));
    address(&quoted.map_or(node.to_owned(), |quoted| quoted.replace('\\', "")))
}

/// The address of a node: with or without a port, which may be obfuscated (section 6.2), IPv6 with or without brackets.
fn address(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse() {
        return Some(address);
    }
    let (host, port) = match node.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => node.split_at_checked(node.rfind(':')?)?,
    };
    let is_port = |port: &str| port.starts_with('_') || port.parse::<u16>().is_ok();
    let has_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    host.parse().ok().filter(|_| has_port)
}

/// How many peers the log tells of. Anybody can send the headers of a proxy.
const PEERS_TOLD: usize = 64;

/// Why a peer seems to be a proxy.
const SAYS_FOR_WHOM: &str =
    "sends requests that say for whom they are (Forwarded, X-Forwarded-For)";
pub(super) const HAS_ITS_SHARE: &str = "has as many connections as one client may have";

/// The peers that the log has told of, each once.
#[derive(Debug, Default)]
pub(super) struct UnnamedProxies(Mutex<HashSet<Client>>);

impl UnnamedProxies {
    /// Logs a peer that seems to be a proxy, each once and at most [`PEERS_TOLD`] in all. Returns whether it did.
    pub(super) fn tell(&self, peer: Client, sign: &str) -> bool {
        let Client::At(address) = peer else { return false };
        let mut logged = locked(&self.0);
        let is_new = logged.len() < PEERS_TOLD && logged.insert(peer);
        if is_new {
            tracing::warn!(
                peer = %address,
                "a peer {sign} and is not named in server.trusted_proxies: everybody who comes through it \
                 counts as one client and has one share; name it there if it is a proxy of yours"
            );
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::client as peer;
    use tidegate_net::testing::headers as map;

    fn client(peer: &str, headers: &[(&str, &str)]) -> String {
        let networks = ["10.0.0.0/8", "::1/128", "2001:db8:1::/48"];
        let proxies = Proxies::new(networks.map(|text| text.parse().unwrap()).into());
        match proxies.client(peer.parse().unwrap(), &map(headers)) {
            Client::At(address) => address.to_string(),
            Client::Own => unreachable!("a peer is never this gateway"),
        }
    }

    #[test]
    fn of_a_request_the_last_address_that_is_no_trusted_proxys_counts() {
        for spoofed in ["forwarded", "x-forwarded-for"] {
            assert_eq!(client("192.0.2.1", &[(spoofed, "for=192.0.2.9")]), "192.0.2.1");
            assert_eq!(client("192.0.2.1", &[(spoofed, "192.0.2.9")]), "192.0.2.1");
        }
        // Of a trusted proxy's request, the last one that is none of theirs.
        let x = |value| client("10.0.0.1", &[("x-forwarded-for", value)]);
        let f = |value| client("10.0.0.1", &[("forwarded", value)]);
        for (value, expected) in [
            ("192.0.2.9", "192.0.2.9"),
            ("198.51.100.1, 192.0.2.9", "192.0.2.9"),
            ("198.51.100.1, 192.0.2.9, 10.3.2.1,10.9.9.9", "192.0.2.9"),
            ("10.3.2.1, 10.9.9.9", "10.3.2.1"),
            ("192.0.2.9:4711", "192.0.2.9"),
            ("::ffff:192.0.2.9", "192.0.2.9"),
            ("[2001:db8:7:8:9::1]:443", "2001:db8:7:8::"),
            ("2001:db8:7:8:9::1", "2001:db8:7:8::"),
            ("2001:db8:7:8::1, 2001:db8:1::5", "2001:db8:7:8::"),
            // What a proxy does not name is that proxy's.
            ("192.0.2.9, unknown", "10.0.0.1"),
            ("192.0.2.9, unknown, 10.3.2.1", "10.3.2.1"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(x(value), expected, "{value:?}");
        }
        for (value, expected) in [
            ("for=192.0.2.9", "192.0.2.9"),
            ("For=\"192.0.2.9:4711\";proto=https;by=10.0.0.1", "192.0.2.9"),
            ("proto=http; for=\"[2001:db8:7:8:9::1]:_port\", for=10.4.4.4", "2001:db8:7:8::"),
            ("for=198.51.100.1, for=192.0.2.9;host=\"a,for=203.0.113.1\"", "192.0.2.9"),
            ("for=\"_hidden\", for=10.4.4.4", "10.4.4.4"),
            ("for=192.0.2.9;for=192.0.2.8", "10.0.0.1"),
            ("for=\"192.0.2.9", "10.0.0.1"),
            // What the proxy appended stands in the quotes of its client.
            ("for=198.51.100.7;x=\", for=192.0.2.9", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            assert_eq!(f(value), expected, "{value:?}");
        }
        let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "192.0.2.9")];
        assert_eq!(client("::1", &lines), "192.0.2.9");
        // Where two headers disagree neither is believed: a client could write the one that the proxy lets through.
        let both =
            |forwarded, x| client("10.0.0.1", &[("forwarded", forwarded), ("x-forwarded-for", x)]);
        assert_eq!(both("for=192.0.2.9", "192.0.2.9"), "192.0.2.9");
        assert_eq!(both("for=203.0.113.1", "192.0.2.9"), "10.0.0.1");
        // A network of IPv6 is one client.
        let at = |text: &str| Client::at(text.parse().unwrap());
        assert_eq!(at("2001:db8:7:8::1"), at("2001:db8:7:8:ffff::2"));
        assert_ne!(at("2001:db8:7:8::1"), at("2001:db8:7:9::1"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_eq!(at("2001:db8:7:8::1").network(), at("2001:db8:7:ffff::2").network());
        assert_ne!(at("2001:db8:7:8::1").network(), at("2001:db8:8:8::1").network());
        assert_eq!(at("192.0.2.1").network(), at("192.0.2.1"));
    }

    #[test]
    fn a_peer_is_told_of_once_and_not_too_many_of_them() {
        let unnamed = UnnamedProxies::default();
        assert!(unnamed.tell(peer(0), SAYS_FOR_WHOM));
        assert!(!unnamed.tell(peer(0), SAYS_FOR_WHOM) && !unnamed.tell(peer(0), HAS_ITS_SHARE));
        assert!(!unnamed.tell(Client::Own, SAYS_FOR_WHOM));
        let told = (0..=255).filter(|n| unnamed.tell(peer(*n), HAS_ITS_SHARE)).count();
        assert_eq!(told + 1, PEERS_TOLD);
    }
}
