//! The first request for an address of an origin: one looks whether a feed is there, the others wait for it.

use super::super::cache::Cache;
use super::super::client::Client;
use super::super::pace::{Paces, Rate};
use super::super::problem::Problem;
use super::super::shares::{FairShares, Share};
use super::FIRST_AGAIN;
use http::StatusCode;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// Requests of ours at the same time, to see what is there: to one site, and those of one client, to all sites.
const SITE_LOOKS: u32 = 8;
const CLIENT_LOOKS: u32 = 2;
/// How fast addresses are looked at of which nothing is known: those of one site, and those that one client asks for.
/// What was found and became a feed does not count.
const SITE_PACE: Rate = Rate { burst: 30, each: Duration::from_millis(333) };
const CLIENT_PACE: Rate = Rate { burst: 20, each: Duration::from_secs(6) };
/// What of a site's burst is for clients that asked for nothing lately.
const RESERVED: u32 = 10;
/// Documents that may become feeds and are held in memory at the same time: of all sites, of one site, and those that
/// one client asked for.
const DOCUMENTS_AT_ONCE: usize = 16;
const SITE_DOCUMENTS: u32 = 12;
const CLIENT_DOCUMENTS: u32 = 8;
/// For how many addresses it is remembered that no feed is there, or one whose ids stay, and for how long.
const NO_FEEDS: u64 = 100_000;
const NO_FEED_AGE: Duration = Duration::from_secs(600);
/// For how long it is where a document was read: a site that is being worked on answers another one for a moment.
const NO_FEED_DOCUMENT_AGE: Duration = Duration::from_secs(60);

/// How often it is looked whether polls of a feed fail that is asked for.
const POLLS_SEEN_EVERY: Duration = Duration::from_secs(60);

/// Leave to ask a site something, or to hold a document of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct LookPermit {
    _own: Share<Client>,
    _site: Share<Url>,
    _all: Option<OwnedSemaphorePermit>,
}

/// What there is of such leave: a share for each client and each site, so that neither takes it from others.
pub(super) struct LookTurns {
    clients: FairShares<Client>,
    sites: FairShares<Url>,
    /// `None`: as much as all sites have.
    all: Option<Arc<Semaphore>>,
}

impl LookTurns {
    pub(super) fn new(client: u32, site: u32, all: Option<usize>) -> Self {
        Self {
            clients: FairShares::new(client),
            sites: FairShares::new(site),
            all: all.map(|all| Arc::new(Semaphore::new(all))),
        }
    }

    /// Waits for leave, at most so long.
    pub(super) async fn acquire(
        &self,
        (site, client): (&Url, Client),
        wait: Duration,
    ) -> Result<LookPermit, Problem> {
        let (until, client) = (Instant::now() + wait, client.site());
        let busy = || Problem::later("too many new addresses are asked for at once", FIRST_AGAIN);
        // One that is over its own share takes nothing of the site's from others.
        let own = self.clients.acquire_by(&client, 1, until).await.ok_or_else(|| {
            let said = "too many new addresses are looked at for this client";
            Problem::later(said, FIRST_AGAIN)
        })?;
        let of_site = self.sites.acquire_by(site, 1, until).await.ok_or_else(busy)?;
        let all = match &self.all {
            Some(all) => match timeout_at(until, Arc::clone(all).acquire_owned()).await {
                Ok(Ok(turn)) => Some(turn),
                _ => return Err(busy()),
            },
            None => None,
        };
        Ok(LookPermit { _own: own, _site: of_site, _all: all })
    }
}

/// How it is known that an address has no feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoFeedKind {
    /// Its answer is of a kind that no feed has, which each answer tells anew.
    Headers,
    /// Its document was read.
    Document,
}

impl NoFeedKind {
    /// For how long it is remembered.
    const fn age(self) -> Duration {
        match self {
            Self::Headers => NO_FEED_AGE,
            Self::Document => NO_FEED_DOCUMENT_AGE,
        }
    }
}

/// Addresses where no feed is, and since when that is known.
type NoFeeds = Cache<u64, (NoFeedKind, Instant)>;

/// What a look found.
#[derive(Debug, Clone)]
pub(super) enum LookResult {
    Feed(FeedName),
    NoFeed(NoFeedKind),
    /// What is there could not be read, or failed, which says nothing of other times: it is not remembered.
    Unread,
    /// A feed cannot be made of it yet, or has no document yet; why.
    Later(String),
    /// Who looked left.
    Left,
    /// Who looks has not said in time.
    Slow,
}

type Results = Arc<Mutex<HashMap<u64, watch::Receiver<Option<LookResult>>>>>;

/// Looks that are being made, and what is known of those that were.
pub(crate) struct FirstLooks {
    running: Results,
    no_feeds: NoFeeds,
    /// Feeds whose publisher's document has the ids that it is published with, and that were waited for in vain.
    kept_ids: Cache<u64, ()>,
    /// Feeds of which it was seen lately whether their polls fail.
    polls_seen: Cache<u64, ()>,
    /// Leave to ask a site, and how fast sites are asked and clients ask.
    turns: LookTurns,
    sites: Paces<Url>,
    clients: Paces<Client>,
    /// Where no feed was found for who would subscribe to one.
    missing: Cache<u64, ()>,
    /// Leave to hold a document that may become a feed.
    pub(super) documents: LookTurns,
}

/// Somebody's part in a look.
pub(super) enum Look {
    First(FirstLook),
    Another(OtherLook),
}

/// The look of who asked first. Where it is dropped, the others are told that he left.
pub(super) struct FirstLook {
    key: u64,
    running: Results,
    result: watch::Sender<Option<LookResult>>,
    no_feeds: NoFeeds,
}

/// The look that somebody else makes.
pub(super) struct OtherLook(watch::Receiver<Option<LookResult>>);

pub(super) fn key(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl FirstLooks {
    pub(super) fn new() -> Self {
        Self {
            running: Results::default(),
            no_feeds: Cache::lasting(NO_FEEDS, NO_FEED_AGE),
            kept_ids: Cache::lasting(NO_FEEDS, NO_FEED_AGE),
            polls_seen: Cache::lasting(NO_FEEDS, POLLS_SEEN_EVERY),
            turns: LookTurns::new(CLIENT_LOOKS, SITE_LOOKS, None),
            sites: Paces::default(),
            clients: Paces::default(),
            missing: Cache::lasting(NO_FEEDS, NO_FEED_DOCUMENT_AGE),
            documents: LookTurns::new(CLIENT_DOCUMENTS, SITE_DOCUMENTS, Some(DOCUMENTS_AT_ONCE)),
        }
    }

    /// Leave for a client to look at an address of a site of which nothing is known; at most `wait` later.
    pub(super) async fn leave(
        &self,
        (site, client): (&Url, Client),
        wait: Duration,
    ) -> Result<LookPermit, Problem> {
        if client != Client::Own {
            self.keep_pace(site, client).map_err(|wait| {
                let said = "more addresses are asked for of which nothing is known than the site is asked for";
                Problem::new(StatusCode::TOO_MANY_REQUESTS, said).after(wait)
            })?;
        }
        self.turns.acquire((site, client), wait).await
    }

    fn keep_pace(&self, site: &Url, client: Client) -> Result<(), Duration> {
        let client = client.site();
        let wait = self.clients.wait(&client, CLIENT_PACE);
        if !wait.is_zero() {
            return Err(wait);
        }
        let burst = match self.clients.is_unused(&client) {
            true => SITE_PACE.burst,
            false => SITE_PACE.burst - RESERVED,
        };
        self.sites.take(site, Rate { burst, ..SITE_PACE })?;
        self.clients.take(&client, CLIENT_PACE)
    }

    /// Notes that a look found a feed, which is looked for no more.
    pub(crate) fn note_found(&self, site: &Url, client: Client) {
        self.sites.give_back(site, SITE_PACE);
        self.clients.give_back(&client.site(), CLIENT_PACE);
    }

    /// Notes that nobody finds a feed at an address who would subscribe to it.
    pub(crate) fn note_missing(&self, url: &Url) {
        self.missing.insert(key(url.as_str()), ());
    }

    /// Whether that was noted a moment ago.
    pub(crate) fn is_missing(&self, url: &Url) -> bool {
        self.missing.get(&key(url.as_str())).is_some()
    }

    /// What is remembered of an address where no feed is.
    pub(super) fn no_feed(&self, url: &Url) -> Option<NoFeedKind> {
        let (kind, since) = *self.no_feeds.get(&key(url.as_str()))?;
        (since.elapsed() < kind.age()).then_some(kind)
    }

    /// Notes that what the site has at an address of a feed was passed on, since its ids stay.
    pub(super) fn note_kept_ids(&self, url: &Url) {
        self.kept_ids.insert(key(url.as_str()), ());
    }

    /// Whether that was noted, so that the next request for it need not wait.
    pub(super) fn keeps_ids(&self, url: &Url) -> bool {
        self.kept_ids.get(&key(url.as_str())).is_some()
    }

    /// Whether it is time to see whether polls of a feed fail; once in a while it is.
    pub(super) fn sees_polls(&self, url: &Url) -> bool {
        self.polls_seen.get_or_insert(key(url.as_str()), ()).1
    }

    /// The look at an address that somebody makes.
    pub(super) fn running(&self, url: &Url) -> Option<OtherLook> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&key(url.as_str())).map(|result| OtherLook(result.clone()))
    }

    /// Begins to look at an address, or waits for who does.
    pub(super) fn begin(&self, url: &Url) -> Look {
        let key = key(url.as_str());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = running.get(&key) {
            return Look::Another(OtherLook(result.clone()));
        }
        let (result, others) = watch::channel(None);
        running.insert(key, others);
        let (running, no_feeds) = (Arc::clone(&self.running), self.no_feeds.clone());
        Look::First(FirstLook { key, running, result, no_feeds })
    }
}

impl FirstLook {
    /// Says what was found.
    pub(super) fn tell(&self, result: LookResult) {
        if let LookResult::NoFeed(kind) = result {
            self.no_feeds.insert(self.key, (kind, Instant::now()));
        }
        self.result.send_replace(Some(result));
    }
}

impl Drop for FirstLook {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

impl OtherLook {
    /// What is found, where that is known in time.
    pub(super) async fn result(mut self, wait: Duration) -> LookResult {
        match timeout(wait, self.0.wait_for(Option::is_some)).await {
            Ok(Ok(result)) => result.clone().unwrap_or(LookResult::Left),
            Ok(Err(_)) => LookResult::Left,
            Err(_) => LookResult::Slow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    const WAIT: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn one_looks_and_the_others_learn_what_it_found() {
        let looks = FirstLooks::new();
        let at = url("http://a/feed");
        let Look::First(first) = looks.begin(&at) else { panic!("nobody was first") };
        let Look::Another(other) = looks.begin(&at) else { panic!("two were first") };
        let waiting = tokio::spawn(other.result(WAIT));
        let name = FeedName::new("a").unwrap();
        first.tell(LookResult::Feed(name.clone()));
        drop(first);
        assert!(matches!(waiting.await.unwrap(), LookResult::Feed(found) if found == name));
        assert_eq!(looks.no_feed(&at), None);

        let Look::First(first) = looks.begin(&at) else { panic!("nobody was first") };
        let Look::Another(other) = looks.begin(&at) else { panic!("two were first") };
        // Whoever was first went away.
        drop(first);
        assert!(matches!(other.result(WAIT).await, LookResult::Left));
        assert!(looks.running(&at).is_none());

        let Look::First(first) = looks.begin(&at) else { panic!("nobody was first") };
        let Look::Another(other) = looks.begin(&at) else { panic!("two were first") };
        assert!(matches!(other.result(WAIT).await, LookResult::Slow), "it waited for ever");
        first.tell(LookResult::Unread);
        let other = looks.running(&at).unwrap();
        assert!(matches!(other.result(WAIT).await, LookResult::Unread));
        assert_eq!(looks.no_feed(&at), None);
        first.tell(LookResult::NoFeed(NoFeedKind::Document));
        assert_eq!(looks.no_feed(&at), Some(NoFeedKind::Document));
        assert_eq!(looks.no_feed(&url("http://a/other")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_document_said_is_forgotten_before_what_headers_said() {
        let looks = FirstLooks::new();
        for (kind, seconds) in [(NoFeedKind::Document, 60), (NoFeedKind::Headers, 600)] {
            let at = url(&format!("http://a/{kind:?}"));
            let Look::First(first) = looks.begin(&at) else { panic!("nobody was first") };
            first.tell(LookResult::NoFeed(kind));
            advance(Duration::from_secs(seconds - 1)).await;
            assert_eq!(looks.no_feed(&at), Some(kind));
            advance(Duration::from_secs(1)).await;
            assert_eq!(looks.no_feed(&at), None, "{kind:?}");
        }
    }

    fn client(last: u8) -> Client {
        Client::at([192, 0, 2, last].into())
    }

    /// How much leave there is at a site for each of these clients in turn.
    async fn taken(turns: &LookTurns, site: &str, clients: &[u8]) -> (Vec<usize>, Vec<LookPermit>) {
        let (site, mut counts, mut held) = (url(site), Vec::new(), Vec::new());
        for last in clients {
            let before = held.len();
            while let Ok(turn) = turns.acquire((&site, client(*last)), WAIT).await {
                held.push(turn);
            }
            counts.push(held.len() - before);
        }
        (counts, held)
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_takes_no_looks_from_another() {
        let looks = FirstLooks::new();
        let (counts, mut held) = taken(&looks.turns, "http://a/", &[1, 2, 3, 4, 5]).await;
        assert_eq!(counts, [2, 2, 2, 2, 0], "a site is asked eight things at once");
        let (counts, others) = taken(&looks.turns, "http://b/", &[1, 5]).await;
        assert_eq!(counts, [0, 2]);
        held.pop();
        assert!(looks.turns.acquire((&url("http://a/"), client(4)), WAIT).await.is_ok());
        drop((held, others));
        assert_eq!((looks.turns.clients.keys(), looks.turns.sites.keys()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_site_is_asked_at_a_pace_that_no_client_takes_from_another() {
        let (looks, site) = (FirstLooks::new(), url("http://a/"));
        let look = async |last: u8| looks.leave((&site, client(last)), WAIT).await.map(drop);
        let mut asked = 0;
        // Two clients ask as fast as they are answered, for a minute.
        for second in 0..60 {
            for _ in 0..100 {
                for last in [1, 2] {
                    match look(last).await {
                        Ok(()) => asked += 1,
                        Err(no) => assert_eq!(no.status(), StatusCode::TOO_MANY_REQUESTS),
                    }
                }
            }
            if second % 20 == 19 {
                assert_eq!(look(10 + second).await, Ok(()), "another one waited for them");
            }
            advance(Duration::from_secs(1)).await;
        }
        assert!((40..=60).contains(&asked), "{asked}");
        // However many clients there are, the site has its pace.
        let mut asked = 0;
        for last in 20..220 {
            asked += u32::from(look(last).await.is_ok());
        }
        assert!(asked <= SITE_PACE.burst, "{asked}");
        // What became feeds costs nothing.
        advance(Duration::from_secs(600)).await;
        for _ in 0..200 {
            look(1).await.unwrap();
            looks.note_found(&site, client(1));
        }
        assert_eq!(looks.leave((&site, Client::Own), WAIT).await.map(drop), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn neither_a_client_nor_a_site_takes_all_the_room_for_documents() {
        let looks = FirstLooks::new();
        let (counts, held) = taken(&looks.documents, "http://a/", &[1, 2, 3]).await;
        assert_eq!(counts, [8, 4, 0]);
        let (counts, others) = taken(&looks.documents, "http://b/", &[1, 3, 4]).await;
        assert_eq!(counts, [0, 4, 0], "sixteen are held in all");
        drop(held);
        assert!(looks.documents.acquire((&url("http://b/"), client(4)), WAIT).await.is_ok());
        drop(others);
        assert_eq!((looks.documents.clients.keys(), looks.documents.sites.keys()), (0, 0));
    }
}
