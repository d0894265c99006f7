//! Answers that seem to be feeds and make none: because of a header of the request, or since its client had its share
//! of new feeds.

use super::super::SharedState;
use super::super::client::Client;
use super::OriginRequest;
use http::{HeaderMap, HeaderName, Method};
use moka::sync::Cache;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidegate_config::PassMode;
use tidegate_core::model::FeedName;
use tidegate_net::origin::{is_definite, may_make_feed, unusual};
use tokio::time::Instant;

/// The most new feeds that the requests of one client make within [`HOUR`].
const NEW_FEEDS: u32 = 500;
/// So many they make in any case, where the site has room.
const FEW: u32 = 20;
const HOUR: Duration = Duration::from_secs(3600);
/// How many such feeds are remembered.
const REMEMBERED: u64 = 100_000;
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

/// The shares of clients, and what the log has told.
pub(super) struct UnmadeFeeds {
    /// Each new feed by its client and its number among those of the client.
    made: Cache<u64, ()>,
    /// What the keys are made with, so that nobody can choose them.
    keys: RandomState,
    told: Mutex<HashMap<FeedName, Instant>>,
}

impl Default for UnmadeFeeds {
    fn default() -> Self {
        let made = Cache::builder().max_capacity(REMEMBERED).time_to_live(HOUR).build();
        Self { made, keys: RandomState::new(), told: Mutex::default() }
    }
}

impl UnmadeFeeds {
    /// Whether a client has something left of its share of new feeds, at a site that may have so many `feeds`.
    pub(super) fn has_share(&self, client: Client, feeds: u32) -> bool {
        self.free(client, feeds).is_some()
    }

    /// Takes one feed of a client's share; whether there was one left.
    pub(super) fn take_share(&self, client: Client, feeds: u32) -> bool {
        let Client::At(address) = client else { return true };
        let Some((number, key)) = self.free(client, feeds) else { return false };
        self.made.insert(key, ());
        if number + 1 == share(feeds) {
            tracing::info!(
                client = %address,
                limit = share(feeds),
                "the requests of a client made as many feeds as they may within an hour"
            );
        }
        true
    }

    /// The first number of its share that no feed of a client has, and what it is remembered by.
    fn free(&self, client: Client, feeds: u32) -> Option<(u32, u64)> {
        let keys = (0..share(feeds)).map(|number| (number, self.keys.hash_one((client, number))));
        keys.into_iter().find(|(_, key)| !self.made.contains_key(key))
    }

    /// Tells the operator of a header that kept an answer of a site from becoming a feed; whether it did: once an hour
    /// for each site.
    pub(super) fn tell(&self, site: &FeedName, header: &HeaderName) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.get(site).is_some_and(|at| at.elapsed() < HOUR) {
            return false;
        }
        told.insert(site.clone(), Instant::now());
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
fn share(feeds: u32) -> u32 {
    (feeds / 2).clamp(FEW, NEW_FEEDS)
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

    #[test]
    fn a_client_makes_half_of_a_sites_feeds_and_another_one_as_many() {
        let (unmade, client) =
            (UnmadeFeeds::default(), |last: u8| Client::at([192, 0, 2, last].into()));
        for _ in 0..50 {
            assert!(unmade.has_share(client(1), 100) && unmade.take_share(client(1), 100));
        }
        assert!(!unmade.has_share(client(1), 100) && !unmade.take_share(client(1), 100));
        assert!(unmade.has_share(client(2), 100) && unmade.take_share(client(2), 100));
        // What the gateway does by itself is nobody's share.
        assert!((0..=NEW_FEEDS).all(|_| unmade.take_share(Client::Own, 100)));
        assert!(unmade.has_share(Client::Own, 100));
        assert_eq!([1, 2, 100, 1000, 1_000_000].map(share), [FEW, FEW, 50, 500, NEW_FEEDS]);
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
