//! By what feeds are divided between the gateways over one store. Pure, and without regard to the configuration: all
//! gateways must find the same.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use tidegate_core::model::{FeedRecord, FeedStanding};
use tidegate_net::fetch::{self, AllowPrivate, read_url};
use tidegate_store::Store;
use url::{Host, Url};

/// The registrable domain of a feed's configured address, so that one gateway is polite to all hosts of a publisher; the
/// name of a feed that has no publisher. An address that cannot be read is its own domain.
pub(super) fn ownership_key(record: &FeedRecord) -> Cow<'_, str> {
    if !record.has_upstream() {
        return record.name.as_str().into();
    }
    match read_url(&record.url) {
        Ok(url) => host_name(&url).into(),
        Err(_) => record.url.as_str().into(),
    }
}

/// Whether this gateway is the owner of a feed: it polls it, delivers its changes to subscribers of the hub, and does its
/// upkeep. A gateway that is alone over its store owns every feed.
pub fn owns_feed(store: &Store, record: &FeedRecord) -> bool {
    store.gateways().is_none_or(|gateways| gateways.owns(&ownership_key(record)))
}

/// Whom the host of an address belongs to: its registrable domain, so that all machines of a publisher are one; private
/// suffixes (`github.io`) count as those of a registry. An IP address is its own, of IPv6 the network of 64 bits that
/// one subscriber has. One that is not public has its port with it: behind it may be many.
pub(super) fn host_name(url: &Url) -> String {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical(),
        Some(Host::Domain(_)) | None => {
            let full = whole_host(url);
            return psl::domain_str(full).unwrap_or(full).to_owned();
        }
    };
    match address {
        _ if !is_public(url) => host_with_port(url),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{}]/64", Ipv6Addr::from(address.to_bits() >> 64 << 64)),
    }
}

/// Whether an address is public, as far as it says so itself.
fn is_public(url: &Url) -> bool {
    fetch::check(url, &AllowPrivate::No).is_ok()
}

pub(super) fn host_with_port(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// The host of an address, without the dot of the root.
pub(super) fn whole_host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether a feed is polled at all.
pub(super) fn is_polled(record: &FeedRecord) -> bool {
    record.standing == FeedStanding::Active && record.has_upstream()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedName, FeedSource};

    fn key(url: &str) -> String {
        let record = FeedRecord::new(FeedName::new("a").unwrap(), url, FeedSource::Api);
        ownership_key(&record).into_owned()
    }

    #[test]
    fn feeds_of_one_registrable_domain_have_one_owner() {
        for url in [
            "http://example.co.uk/feed",
            "https://blog.example.co.uk:8443/other",
            "https://a.b.EXAMPLE.co.uk./feed?x=1",
            "https://user:secret@example.co.uk/feed",
        ] {
            assert_eq!(key(url), "example.co.uk", "{url}");
        }
    }

    #[test]
    fn private_suffixes_and_addresses_are_told_apart() {
        let network = "[2606:4700:4700::]/64";
        for (url, expected) in [
            ("https://one.github.io/feed", "one.github.io"),
            ("http://localhost:81/feed", "localhost"),
            ("not an address", "not an address"),
            ("http://93.184.216.34:81/", "93.184.216.34"),
            ("http://[::ffff:5db8:d822]/", "93.184.216.34"),
            ("http://[2606:4700:4700::1111]/", network),
            ("http://[2606:4700:4700:0:ffff:1:2:3]:8080/", network),
            // Whom the operator allows may be many on one machine.
            ("http://10.1.2.3:81/", "10.1.2.3:81"),
            ("http://[::1]/", "[::1]:80"),
        ] {
            assert_eq!(key(url), expected, "{url}");
        }
    }
}
