//! The egress guard: where this gateway may connect to. Pure.
//!
//! A URL is checked here before every hop, because the client never asks a resolver about an
//! address that is written as such. Names are checked once more when they are resolved
//! ([`super::resolver`]), and the address that was checked is the one connected to.

use super::address::{NonPublicKind, kind};
use std::collections::BTreeSet;
use std::net::IpAddr;
use tidegate_core::model::ShownAddress;
use url::{Host, Url};

/// The most hosts that can be listed in [`AllowPrivate::Only`].
pub const MAX_ALLOWED_HOSTS: usize = 1024;
/// The longest URL that is asked for, in bytes.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// Whether upstreams may be loopback or private addresses (`polling.allow_private`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowPrivate {
    /// None may.
    #[default]
    No,
    /// All may; link-local, reserved and multicast addresses stay refused.
    All,
    /// Only these hosts, each with its port; they may have any address but a multicast one.
    Only(BTreeSet<(String, u16)>),
}

/// Which addresses may be connected to for one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Openness {
    /// Public ones.
    Public,
    /// Public, loopback and private ones.
    Private,
    /// All but multicast: the operator named this host and port.
    Named,
}

impl Openness {
    /// Whether an address may be connected to.
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
    /// The text is none of an address that is asked for.
    #[error("{0}")]
    Malformed(String),
    /// The address is not public.
    #[error(
        "{host} has {what}{}; list it in polling.allow_private as host:port if that is meant",
        shown_address(host, *address)
    )]
    Address {
        /// The host as written.
        host: String,
        address: IpAddr,
        /// What kind of address it is.
        what: &'static str,
    },
    /// Who leads to the address may not.
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

    /// The refusal of an address.
    pub fn address(host: &str, address: IpAddr) -> Self {
        let what = kind(address).map_or("an address", NonPublicKind::name);
        Self::Address { host: host.to_owned(), address, what }
    }
}

impl AllowPrivate {
    /// Allows the host of an address that a person gave.
    pub fn host_of(url: &Url) -> Self {
        let given = url.host_str().map(plain).zip(url.port_or_known_default());
        Self::Only(given.into_iter().collect())
    }

    /// Allows the hosts of a list of `host:port`.
    pub fn only<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        entries.into_iter().map(host_and_port).collect::<Result<_, _>>().map(Self::Only)
    }

    /// Which addresses a URL's host may have.
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

    /// Whether the operator plainly meant a host of his own: one that he listed, or, where all are
    /// allowed, a private address or `localhost`. Such a host is spared the spacing that strangers
    /// are owed.
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

/// Whether two URLs are of one host and port.
pub(super) fn is_same_place(a: &Url, b: &Url) -> bool {
    a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// Reads a URL that may be fetched: absolute, http or https, not too long.
pub fn read_url(text: &str) -> Result<Url, Refusal> {
    if text.len() > MAX_URL_BYTES {
        return Err(Refusal::too_long(text.len()));
    }
    Url::parse(text.trim()).map_err(|_| Refusal::no_url(text))
}

/// Checks a URL before it is asked for, and says which addresses its host may have.
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
    // `url` has normalised every spelling of an address: decimal, octal, hexadecimal, short.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) => return Ok(openness),
        None => return Err(Refusal::no_url(&shown(url))),
    };
    let refusal = || Refusal::address(&address.to_string(), address);
    if openness.admits(address) { Ok(openness) } else { Err(refusal()) }
}

/// Whether a proxy may be asked that no configuration names: at an address that may be connected to, or
/// under a name and a port that are allowed, since any other name may lead to anything.
pub fn admits_proxy(address: &str, allow: &AllowPrivate) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let usual = match url.scheme() {
        "http" => 80,
        "https" => 443,
        _ => 1080,
    };
    let (host, port) = (url.host_str().unwrap_or_default(), url.port().unwrap_or(usual));
    // Addresses are normalised in URLs of the web alone.
    let Ok(url) = Url::parse(&format!("http://{host}:{port}/")) else { return false };
    match url.host() {
        Some(Host::Domain(_)) => allow.openness(&url) != Openness::Public,
        _ => check(&url, allow).is_ok(),
    }
}

/// The URL as it may be shown and logged: without credentials, keys and fragment.
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    ShownAddress::new(url.as_str(), None).text().to_owned()
}

/// The URL that tells a document from others: without credentials and fragment. It may contain keys, so
/// it is not for showing.
pub fn bare(url: &Url) -> String {
    let mut url = url.clone();
    strip_credentials(&mut url);
    url.set_fragment(None);
    url.into()
}

/// A link without a fragment, with the credentials that were given for its origin and no others: what a
/// document says must not choose whom we claim to be.
pub fn with_credentials(link: &Url, given: &Url) -> Url {
    let mut url = link.clone();
    strip_credentials(&mut url);
    url.set_fragment(None);
    if url.origin() == given.origin() {
        // Both fail only for URLs that cannot have credentials; those have no such origin.
        let _ = url.set_username(given.username());
        let _ = url.set_password(given.password());
    }
    url
}

/// Takes user name and password out of a URL.
pub fn strip_credentials(url: &mut Url) {
    // Both fail only for URLs that cannot have credentials.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

/// A host name without the final dot of a fully qualified one.
fn plain(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_owned()
}

/// Reads an entry of [`AllowPrivate::Only`], `host:port`.
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
    // Read as the host of a URL, so that it is normalised as the URLs that it is compared with.
    let url = Url::parse(&format!("http://{host}/")).map_err(|_| wrong())?;
    let bare = url.port().is_none() && url.path() == "/" && url.username().is_empty();
    match url.host_str() {
        Some(host) if bare && url.query().is_none() => Ok((plain(host), port)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
