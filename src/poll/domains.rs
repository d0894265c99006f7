//! How feeds are divided among the gateways of one store. Pure and independent of the configuration, because all
//! gateways must compute the same.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};
use tidegate_core::model::{FeedRecord, FeedStanding};
use tidegate_net::fetch::{self, AllowPrivate, read_url};
use tidegate_store::Store;
use url::{Host, Url};

/// Returns the key that decides a feed's owner: the registrable domain of its configured address, so that one gateway
/// is polite to all hosts of a publisher. Without an upstream it is the feed's name; an unreadable address is its own
/// key.
pub(super) fn ownership_key(record: &FeedRecord) -> Cow<'_, str> {
    if !record.has_upstream() {
        return record.name.as_str().into();
    }
    match read_url(&record.url) {
        Ok(url) => host_group(&url).into(),
        Err(_) => record.url.as_str().into(),
    }
}

/// Whether this gateway owns the feed of `record`: polls it, delivers its changes to subscribers and does its upkeep. A
/// single gateway owns every feed.
pub fn owns_feed(store: &Store, record: &FeedRecord) -> bool {
    store.gateways().is_none_or(|gateways| gateways.owns(&ownership_key(record)))
}

/// Returns the name under which a host is grouped: its registrable domain, with private suffixes (`github.io`) counted
/// as public ones. An IPv4 address is its own group; an IPv6 address belongs to its /64 network. A host that is not
/// public includes the port: many services may share it.
pub(super) fn host_group(url: &Url) -> String {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical(),
        Some(Host::Domain(_)) | None => {
            let full = full_host_name(url);
            return psl::domain_str(full).unwrap_or(full).to_owned();
        }
    };
    match address {
        _ if fetch::check(url, &AllowPrivate::No).is_err() => host_with_port(url),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{}]/64", Ipv6Addr::from(address.to_bits() >> 64 << 64)),
    }
}

pub(super) fn host_with_port(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

/// Returns the host name without the trailing dot of the root.
pub(super) fn full_host_name(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether the feed is active and has an upstream.
pub(super) fn is_polled(record: &FeedRecord) -> bool {
    record.standing == FeedStanding::Active && record.has_upstream()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::testing::record;

    #[test]
    fn feeds_of_one_registrable_domain_or_address_have_one_owner() {
        let network = "[2606:4700:4700::]/64";
        for (url, expected) in [
            ("http://example.co.uk/feed", "example.co.uk"),
            ("https://blog.example.co.uk:8443/other", "example.co.uk"),
            ("https://a.b.EXAMPLE.co.uk./feed?x=1", "example.co.uk"),
            ("https://user:secret@example.co.uk/feed", "example.co.uk"),
            ("https://one.github.io/feed", "one.github.io"),
            ("http://localhost:81/feed", "localhost"),
            ("not an address", "not an address"),
            ("http://93.184.216.34:81/", "93.184.216.34"),
            ("http://[::ffff:5db8:d822]/", "93.184.216.34"),
            ("http://[2606:4700:4700::1111]/", network),
            ("http://[2606:4700:4700:0:ffff:1:2:3]:8080/", network),
            // Private addresses may serve many publishers on one machine.
            ("http://10.1.2.3:81/", "10.1.2.3:81"),
            ("http://[::1]/", "[::1]:80"),
        ] {
            let record = FeedRecord { url: url.to_owned(), ..record("a") };
            assert_eq!(ownership_key(&record), expected, "{url}");
        }
    }
}
