//! By what feeds are divided between the gateways over one store. Pure, and without regard to the configuration: all
//! gateways must find the same.

use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::model::{FeedRecord, FeedStanding};
use tidegate_net::fetch::{LeadScope, read_url};
use tidegate_store::{Store, StoreError};
use url::Url;

/// The registrable domain of a feed's configured address, so that one gateway is polite to all hosts of a publisher; the
/// name of a feed that has no publisher. An address that cannot be read is its own domain.
pub(super) fn ownership_key(record: &FeedRecord) -> Cow<'_, str> {
    if !record.has_upstream() {
        return record.name.as_str().into();
    }
    match read_url(&record.url) {
        Ok(url) => registrable_domain(&url).to_owned().into(),
        Err(_) => record.url.as_str().into(),
    }
}

/// Whether this gateway is the owner of a feed: it polls it, delivers its changes to subscribers of the hub, and does its
/// upkeep. A gateway that is alone over its store owns every feed.
pub fn owns_feed(store: &Store, record: &FeedRecord) -> bool {
    store.gateways().is_none_or(|gateways| gateways.owns(&ownership_key(record)))
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

/// The word of a feed behind that of the list that added it: a list at a public address must not choose what is read
/// behind the walls, by whatever name. It is that of the feed alone where there is no such list, where the operator took
/// the feed over, and where a request made it, so that it leads to its site alone.
pub(super) async fn behind_list(
    store: &Arc<Store>,
    feed: &FeedRecord,
    word: LeadScope,
) -> Result<LeadScope, StoreError> {
    let Some(list) = feed.deciding_list().filter(|_| feed.on_demand.is_none()) else {
        return Ok(word);
    };
    let feeds = store.feed_list().await?;
    Ok(match feeds.get(list).filter(|list| list.has_upstream()) {
        Some(list) => word.added_by(list),
        None => word,
    })
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
    fn private_suffixes_and_bare_hosts_are_told_apart() {
        assert_eq!(key("https://one.github.io/feed"), "one.github.io");
        assert_eq!(key("http://192.0.2.7:81/feed"), "192.0.2.7");
        assert_eq!(key("http://localhost:81/feed"), "localhost");
        assert_eq!(key("not an address"), "not an address");
    }
}
