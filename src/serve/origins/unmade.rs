//! Answers that seem to be feeds and make none: because of a header of the request, or since its client had its share
//! of new feeds.

use super::super::SharedState;
use super::super::client::Client;
use super::super::pace::{Paces, Rate};
use super::OriginRequest;
use http::{HeaderMap, HeaderName, Method};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{PassMode, is_definite, may_make_feed, unusual};

/// The most new feeds that the requests of one client make within [`HOUR`] as time goes on, and so many in any case.
const NEW_FEEDS: u32 = 500;
const FEW: u32 = 20;
/// They make one of so many of these at once, and [`FEW`] at least.
const AT_ONCE: u32 = 10;
const HOUR: Duration = Duration::from_secs(3600);
/// What is told once an hour.
const TOLD: Rate = Rate { burst: 1, each: HOUR };
/// How much of the name of a header is told.
const NAME_LIMIT: usize = 64;

/// What keeps the answer to a request from making a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// The request or its address is none that makes feeds.
    Request,
    /// A header alone, which may choose another answer than everybody's.
    Header(HeaderName),
    /// The client has had its share of new feeds.
    Share,
}

/// How fast clients make feeds, and what the log has told.
#[derive(Default)]
pub(super) struct UnmadeFeeds {
    made: Paces<Client>,
    told_of_clients: Paces<Client>,
    told_of_sites: Paces<FeedName>,
}

impl UnmadeFeeds {
    /// Whether the requests of a client may make a feed now, at a site that may have so many `feeds`.
    pub(super) fn has_share(&self, client: Client, feeds: u32) -> bool {
        client == Client::Own || self.made.wait(&client.site(), share(feeds)).is_zero()
    }

    /// Takes one feed of a client's share; or how long it has to wait for one.
    pub(super) fn take_share(&self, client: Client, feeds: u32) -> Result<(), Duration> {
        let client = client.site();
        let Client::At(address) = client else { return Ok(()) };
        let taken = self.made.take(&client, share(feeds));
        if taken.is_ok()
            && !self.has_share(client, feeds)
            && self.told_of_clients.take(&client, TOLD).is_ok()
        {
            tracing::info!(
                client = %address,
                "the requests of a client made as many feeds as they may at once, and make more slowly"
            );
        }
        taken
    }

    /// Tells the operator of a header that kept an answer of a site from becoming a feed; whether it did: once an hour
    /// for each site.
    pub(super) fn tell(&self, site: &FeedName, header: &HeaderName) -> bool {
        if self.told_of_sites.take(site, TOLD).is_err() {
            return false;
        }
        let header: String = header.as_str().chars().take(NAME_LIMIT).collect();
        tracing::warn!(
            origin = %site,
            header,
            "what seems to be a feed was passed on and made none, since the answer to a request with this header may be \
             for its client alone; if a proxy of yours adds it to every request, let it leave the header out"
        );
        true
    }
}

/// The share of one client in the new feeds of a site that may have so many: others find room as well.
fn share(feeds: u32) -> Rate {
    let an_hour = (feeds / 2).clamp(FEW, NEW_FEEDS);
    Rate { burst: FEW.max(an_hour / AT_ONCE), each: HOUR / an_hour }
}

/// What keeps the answer to a request from making a feed, as far as the request says; `None`: nothing.
pub(super) fn hindrance(
    room: &SharedState,
    asked: &OriginRequest,
    (method, headers): (&Method, &HeaderMap),
    client: Client,
) -> Option<Hindrance> {
    // One that is known and has no document yet is polled already.
    let is_known = room.site.places.load().feed_of(&asked.url).is_some();
    if !may_make_feed(method, headers)
        || is_known
        || !(is_definite(&asked.url) || room.origins.pages.is_announced(&asked.url))
        // Who has such an address has the document, and a feed is everybody's.
        || asked.site.shows_key(&asked.url)
    {
        return Some(Hindrance::Request);
    }
    // Where nothing is passed on, the gateway asks by itself.
    let header = match asked.site.config().passes {
        PassMode::Redirect => None,
        PassMode::Through => unusual(headers),
    };
    match header {
        Some(header) => Some(Hindrance::Header(header.clone())),
        None if room.origins.unmade.has_share(client, asked.site.config().feeds) => None,
        None => Some(Hindrance::Share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_makes_a_few_feeds_and_then_slowly_half_of_a_sites() {
        let (unmade, client) =
            (UnmadeFeeds::default(), |last: u8| Client::at([192, 0, 2, last].into()));
        for (feeds, at_once, an_hour) in [(1, 20, 20), (1_000, 50, 500), (1_000_000, 50, 500)] {
            let unmade = UnmadeFeeds::default();
            let make = || {
                let all = std::iter::from_fn(|| unmade.take_share(client(1), feeds).ok());
                all.take(2 * 500).count()
            };
            assert_eq!(make(), at_once, "{feeds}");
            let mut later = 0;
            for _ in 0..60 {
                tokio::time::advance(HOUR / 60).await;
                later += make();
            }
            assert!(later.abs_diff(an_hour) <= 1, "{feeds}: {later}");
        }
        assert!((0..20).all(|_| unmade.take_share(client(1), 100).is_ok()));
        assert!(!unmade.has_share(client(1), 100) && unmade.take_share(client(1), 100).is_err());
        assert!(unmade.has_share(client(2), 100) && unmade.take_share(client(2), 100).is_ok());
        // What the gateway does by itself is nobody's share.
        assert!((0..=NEW_FEEDS).all(|_| unmade.take_share(Client::Own, 100).is_ok()));
        assert!(unmade.has_share(Client::Own, 100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_is_told_of_once_an_hour_for_each_site() {
        let (unmade, name) = (UnmadeFeeds::default(), |text: &str| FeedName::new(text).unwrap());
        let header = HeaderName::from_static("x-strange");
        assert!(unmade.tell(&name("a"), &header) && unmade.tell(&name("b"), &header));
        assert!(!unmade.tell(&name("a"), &HeaderName::from_static("x-other")));
        tokio::time::advance(HOUR).await;
        assert!(unmade.tell(&name("a"), &header));
    }
}
