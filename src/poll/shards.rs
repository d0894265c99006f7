//! Which shard a feed belongs to, where several gateways poll the feeds of one store. Pure, and without regard to
//! the configuration: all gateways must find the same.

use tidegate_core::model::{FeedRecord, FeedStanding};
use tidegate_net::fetch::read_url;
use tidegate_store::Shard;
use url::Url;

/// The shard of the feeds of an address: that of its registrable domain, so that one gateway is polite to all hosts
/// of a publisher. An address that cannot be read has the shard of its text.
pub fn shard_of(url: &str) -> Shard {
    match read_url(url) {
        Ok(read) => Shard::of_domain(registrable_domain(&read)),
        Err(_) => Shard::of_domain(url),
    }
}

/// The registrable domain of an address; private suffixes (`github.io`) count as those of a registry. The host
/// itself, where it has none.
pub(super) fn registrable_domain(url: &Url) -> &str {
    let full = whole_host(url);
    let is_name = matches!(url.host(), Some(url::Host::Domain(_)));
    psl::domain_str(full).filter(|_| is_name).unwrap_or(full)
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

    #[test]
    fn feeds_of_one_registrable_domain_are_in_one_shard() {
        let of_example = Shard::of_domain("example.co.uk");
        for url in [
            "http://example.co.uk/feed",
            "https://blog.example.co.uk:8443/other",
            "https://a.b.EXAMPLE.co.uk./feed?x=1",
            "https://user:secret@example.co.uk/feed",
        ] {
            assert_eq!(shard_of(url), of_example, "{url}");
        }
    }

    #[test]
    fn private_suffixes_and_bare_hosts_are_told_apart() {
        assert_eq!(shard_of("https://one.github.io/feed"), Shard::of_domain("one.github.io"));
        assert_eq!(shard_of("http://192.0.2.7:81/feed"), Shard::of_domain("192.0.2.7"));
        assert_eq!(shard_of("http://localhost:81/feed"), Shard::of_domain("localhost"));
        assert_eq!(shard_of("not an address"), Shard::of_domain("not an address"));
    }
}
