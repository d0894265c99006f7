//! The egress guard: decides which addresses this gateway may connect to. Pure.
//!
//! It checks each URL before each hop, because an address written as a number never reaches a resolver. Names are
//! checked again when resolved ([`super::resolver`]), and the checked address is the one connected to.
//!
//! The tables of addresses follow the IANA special-purpose address registries (RFC 6890 and its updates). Everything
//! that is not clearly public is refused.

use ipnet::{Ipv4Net, Ipv6Net};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_core::model::ShownAddress;
use url::{Host, Url};

/// The most hosts that can be listed in [`AllowPrivate::Only`].
pub const MAX_ALLOWED_HOSTS: usize = 1024;
/// The longest URL that is fetched, in bytes.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// Which upstreams may have loopback or private addresses (`polling.allow_private`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowPrivate {
    #[default]
    No,
    /// All; link-local, reserved and multicast addresses stay refused.
    All,
    /// Only these hosts, each with its port. They may have any address except multicast.
    Only(BTreeSet<(String, u16)>),
}

/// Which addresses one URL's host may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Openness {
    Public,
    /// Public, loopback and private addresses.
    Private,
    /// All except multicast: the operator named this host and port.
    Named,
}

impl Openness {
    /// Whether `address` may be connected to.
    pub fn admits(self, address: IpAddr) -> bool {
        match (self, kind(address)) {
            (_, None) => true,
            (Self::Public, Some(_)) => false,
            (Self::Private, Some(kind)) => {
                matches!(kind, NonPublicKind::Loopback | NonPublicKind::Private)
            }
            (Self::Named, Some(kind)) => kind != NonPublicKind::Multicast,
        }
    }
}

/// Why the guard refuses a URL or an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The text is not a URL that can be fetched.
    #[error("{0}")]
    Malformed(String),
    #[error(
        "{host} has {what}{}; list it in polling.allow_private as host:port if that is meant",
        shown_address(host, *address)
    )]
    Address {
        /// The host as written.
        host: String,
        address: IpAddr,
        /// The kind of address, in words.
        what: &'static str,
    },
    /// The answer or document that led to the address may not do so.
    #[error("{0}")]
    Led(String),
}

fn shown_address(host: &str, address: IpAddr) -> String {
    if host == address.to_string() { String::new() } else { format!(" ({address})") }
}

impl Refusal {
    fn no_url(text: &str) -> Self {
        let text: String = text.chars().take(200).collect();
        Self::Malformed(format!("{text:?} is not an absolute http or https URL"))
    }

    fn too_long(length: usize) -> Self {
        Self::Malformed(format!("the URL is {length} bytes long, the limit is {MAX_URL_BYTES}"))
    }

    /// Creates the refusal of an address of `host`.
    pub fn address(host: &str, address: IpAddr) -> Self {
        let what = kind(address).map_or("an address", NonPublicKind::name);
        Self::Address { host: host.to_owned(), address, what }
    }
}

impl AllowPrivate {
    /// Allows only the host of `url`, which a person named.
    pub fn host_of(url: &Url) -> Self {
        let given = url.host_str().map(plain).zip(url.port_or_known_default());
        Self::Only(given.into_iter().collect())
    }

    /// Allows the hosts of a list of `host:port`.
    pub fn only<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        entries.into_iter().map(host_and_port).collect::<Result<_, _>>().map(Self::Only)
    }

    /// Returns which addresses the URL's host may have.
    pub fn openness(&self, url: &Url) -> Openness {
        match self {
            Self::No => Openness::Public,
            Self::All => Openness::Private,
            Self::Only(hosts) => {
                let port = url.port_or_known_default().unwrap_or(0);
                let key = url.host_str().map(|host| (plain(host), port));
                match key {
                    Some(key) if hosts.contains(&key) => Openness::Named,
                    _ => Openness::Public,
                }
            }
        }
    }

    /// Whether the operator meant a host of their own: one that is listed, or, if all are allowed, a private address or
    /// `localhost`. Such a host needs no pause between requests.
    pub fn is_own_host(&self, url: &Url) -> bool {
        match self.openness(url) {
            Openness::Public => false,
            Openness::Named => true,
            Openness::Private => match url.host() {
                Some(Host::Ipv4(address)) => kind(address.into()).is_some(),
                Some(Host::Ipv6(address)) => kind(address.into()).is_some(),
                Some(Host::Domain(name)) => {
                    let name = plain(name);
                    name == "localhost" || name.ends_with(".localhost")
                }
                None => false,
            },
        }
    }
}

/// Whether two URLs have the same host and port.
pub(super) fn is_same_place(a: &Url, b: &Url) -> bool {
    a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// Parses a URL within the length limit; its scheme is checked by [`check`].
pub fn read_url(text: &str) -> Result<Url, Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal::too_long(text.len()));
    }
    Url::parse(text.trim()).map_err(|_| Refusal::no_url(text))
}

/// Checks a URL before it is requested. Returns which addresses its host may have.
pub fn check(url: &Url, allow: &AllowPrivate) -> Result<Openness, Refusal> {
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(Refusal::too_long(url.as_str().len()));
    }
    if !matches!(url.scheme(), "http" | "https") {
        let (url, scheme) = (shown(url), url.scheme());
        let why = format!("{url} has the scheme {scheme:?}; only http and https are fetched");
        return Err(Refusal::Malformed(why));
    }
    let openness = allow.openness(url);
    // `url` has normalized every spelling of an address: decimal, octal, hexadecimal, short.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) => return Ok(openness),
        None => return Err(Refusal::no_url(&shown(url))),
    };
    let refusal = || Refusal::address(&address.to_string(), address);
    if openness.admits(address) { Ok(openness) } else { Err(refusal()) }
}

/// Whether a proxy that no configuration names may be used: one at an admitted address, or at an allowed name and port.
/// Any other name could resolve to anything.
pub fn admits_proxy(address: &str, allow: &AllowPrivate) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let usual = match url.scheme() {
        "http" => 80,
        "https" => 443,
        _ => 1080,
    };
    let (host, port) = (url.host_str().unwrap_or_default(), url.port().unwrap_or(usual));
    // `Url` normalizes addresses only for web schemes.
    let Ok(url) = Url::parse(&format!("http://{host}:{port}/")) else { return false };
    match url.host() {
        Some(Host::Domain(_)) => allow.openness(&url) != Openness::Public,
        _ => check(&url, allow).is_ok(),
    }
}

/// Formats the URL for display and logs: without credentials, keys and fragment.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    ShownAddress::new(url.as_str(), None).text().to_owned()
}

/// Returns the URL that identifies a document: without credentials and fragment. It may contain keys, so it must not be
/// shown.
pub fn bare(url: &Url) -> String {
    let mut url = url.clone();
    strip_credentials(&mut url);
    url.set_fragment(None);
    url.into()
}

/// Returns a link without its fragment, with the credentials of `given` if it has the same origin. A document must not
/// choose the identity we present.
pub fn with_credentials(link: &Url, given: &Url) -> Url {
    let mut url = link.clone();
    strip_credentials(&mut url);
    url.set_fragment(None);
    if url.origin() == given.origin() {
        // Both fail only for URLs that cannot have credentials; those have another origin.
        let _ = url.set_username(given.username());
        let _ = url.set_password(given.password());
    }
    url
}

/// Removes user name and password from a URL.
pub fn strip_credentials(url: &mut Url) {
    // Both fail only for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

/// Returns a host name without the trailing dot of the root.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_owned()
}

/// Parses an entry `host:port` of [`AllowPrivate::Only`].
pub fn host_and_port(entry: &str) -> Result<(String, u16), Refusal> {
    let wrong = || {
        let entry: String = entry.chars().take(200).collect();
        Refusal::Malformed(format!(
            "{entry:?} is not a host with a port; write like \"127.0.0.1:8000\", \"[::1]:8000\" or \
             \"intranet.example:80\""
        ))
    };
    let (host, digits) = entry.rsplit_once(':').ok_or_else(wrong)?;
    let port = digits.parse().ok().filter(|port| *port != 0 && !digits.starts_with('+'));
    let port: u16 = port.ok_or_else(wrong)?;
    // Parsed as the host of a URL, to be normalized like the URLs it is compared with.
    let url = Url::parse(&format!("http://{host}/")).map_err(|_| wrong())?;
    let bare = url.port().is_none() && url.path() == "/" && url.username().is_empty();
    match url.host_str() {
        Some(host) if bare && url.query().is_none() => Ok((plain(host), port)),
        _ => Err(wrong()),
    }
}

/// The kind of an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NonPublicKind {
    /// This machine, or "this network": `127.0.0.0/8`, `::1`, `0.0.0.0`, `::`.
    Loopback,
    /// Private networks: RFC 1918, RFC 6598 (carrier-grade NAT), RFC 4193.
    Private,
    /// A single link; metadata services of cloud machines are here.
    LinkLocal,
    /// Documentation, benchmarking, protocol assignments, transition mechanisms, unassigned.
    Reserved,
    Multicast,
}

impl NonPublicKind {
    /// Returns the words for it in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Reserved => "a reserved address",
            Self::Multicast => "a multicast address",
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

const V4: [(Ipv4Net, NonPublicKind); 17] = [
    // Linux connects 0.0.0.0 to this machine.
    (v4(0, 0, 0, 0, 32), NonPublicKind::Loopback),
    (v4(0, 0, 0, 0, 8), NonPublicKind::Reserved),
    (v4(10, 0, 0, 0, 8), NonPublicKind::Private),
    (v4(100, 64, 0, 0, 10), NonPublicKind::Private),
    (v4(127, 0, 0, 0, 8), NonPublicKind::Loopback),
    (v4(169, 254, 0, 0, 16), NonPublicKind::LinkLocal),
    (v4(172, 16, 0, 0, 12), NonPublicKind::Private),
    (v4(192, 0, 0, 0, 24), NonPublicKind::Reserved),
    (v4(192, 0, 2, 0, 24), NonPublicKind::Reserved),
    (v4(192, 88, 99, 0, 24), NonPublicKind::Reserved),
    (v4(192, 168, 0, 0, 16), NonPublicKind::Private),
    (v4(198, 18, 0, 0, 15), NonPublicKind::Reserved),
    (v4(198, 51, 100, 0, 24), NonPublicKind::Reserved),
    (v4(203, 0, 113, 0, 24), NonPublicKind::Reserved),
    (v4(224, 0, 0, 0, 4), NonPublicKind::Multicast),
    (v4(255, 255, 255, 255, 32), NonPublicKind::Multicast),
    (v4(240, 0, 0, 0, 4), NonPublicKind::Reserved),
];

const V6: [(Ipv6Net, NonPublicKind); 7] = [
    (v6(0xfc00, 0, 0, 7), NonPublicKind::Private),
    (v6(0xfe80, 0, 0, 10), NonPublicKind::LinkLocal),
    (v6(0xff00, 0, 0, 8), NonPublicKind::Multicast),
    // Teredo, benchmarking, ORCHID and other protocol assignments.
    (v6(0x2001, 0, 0, 23), NonPublicKind::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), NonPublicKind::Reserved),
    // 6to4: an embedded IPv4 address behind a relay that is out of service.
    (v6(0x2002, 0, 0, 16), NonPublicKind::Reserved),
    (v6(0x3fff, 0, 0, 20), NonPublicKind::Reserved),
];

/// The IPv6 range assigned as public unicast.
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);
/// NAT64 (RFC 6052): networks without IPv4 reach every IPv4 host through it, so the embedded address decides.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

/// Returns the kind of an address; `None` if it is public.
pub fn kind(address: IpAddr) -> Option<NonPublicKind> {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<NonPublicKind> {
    V4.iter().find(|(net, _)| net.contains(&address)).map(|(_, kind)| *kind)
}

fn kind_v6(address: Ipv6Addr) -> Option<NonPublicKind> {
    if address.is_unspecified() || address.is_loopback() {
        return Some(NonPublicKind::Loopback);
    }
    if let Some(inner) = address.to_ipv4_mapped() {
        return kind_v4(inner);
    }
    if NAT64.contains(&address) {
        let [.., a, b, c, d] = address.octets();
        return kind_v4(Ipv4Addr::new(a, b, c, d));
    }
    let listed = V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, kind)| *kind);
    // IPv4-compatible addresses (`::a.b.c.d`), local NAT64 and the discard prefix are outside.
    listed.or_else(|| (!GLOBAL_UNICAST.contains(&address)).then_some(NonPublicKind::Reserved))
}

#[cfg(test)]
mod tests;
