//! The first request for an address of an origin: one looks whether a feed is there, the others wait for it.

use super::super::problem::Problem;
use super::FIRST_AGAIN;
use crate::model::FeedName;
use crate::origin::OriginSite;
use moka::sync::Cache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, timeout};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// Requests of ours to one site at the same time, to see what is there.
const LOOKS_AT_ONCE: usize = 8;
/// Documents that may become feeds and are held in memory at the same time, of all sites.
const DOCUMENTS_AT_ONCE: usize = 16;
/// For how many addresses it is remembered that no feed is there, or one whose ids stay, and for how long.
const NO_FEEDS: u64 = 100_000;
const NO_FEED_AGE: Duration = Duration::from_secs(600);
/// For how long it is where a document was read: a site that is being worked on answers another one for a moment.
const NO_FEED_DOCUMENT_AGE: Duration = Duration::from_secs(60);

/// Leave to ask a site something.
pub(in crate::serve) type LookPermit = OwnedSemaphorePermit;

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
pub(super) struct FirstLooks {
    running: Results,
    no_feeds: NoFeeds,
    /// Feeds whose publisher's document has the ids that it is published with, and that were waited for in vain.
    kept_ids: Cache<u64, ()>,
    turns: Mutex<HashMap<String, Arc<Semaphore>>>,
    documents: Arc<Semaphore>,
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

pub(super) fn key(url: &Url) -> u64 {
    xxh3_64(url.as_str().as_bytes())
}

impl FirstLooks {
    pub(super) fn new(sites: &[Arc<OriginSite>]) -> Self {
        let turns = sites.iter().map(|site| {
            let url = site.config().url.to_string();
            (url, Arc::new(Semaphore::new(LOOKS_AT_ONCE)))
        });
        Self {
            running: Results::default(),
            no_feeds: Cache::builder().max_capacity(NO_FEEDS).time_to_live(NO_FEED_AGE).build(),
            kept_ids: Cache::builder().max_capacity(NO_FEEDS).time_to_live(NO_FEED_AGE).build(),
            turns: Mutex::new(turns.collect()),
            documents: Arc::new(Semaphore::new(DOCUMENTS_AT_ONCE)),
        }
    }

    /// What is remembered of an address where no feed is.
    pub(super) fn no_feed(&self, url: &Url) -> Option<NoFeedKind> {
        let (kind, since) = self.no_feeds.get(&key(url))?;
        (since.elapsed() < kind.age()).then_some(kind)
    }

    /// Notes that what the site has at an address of a feed was passed on, since its ids stay.
    pub(super) fn note_kept_ids(&self, url: &Url) {
        self.kept_ids.insert(key(url), ());
    }

    /// Whether that was noted, so that the next request for it need not wait.
    pub(super) fn keeps_ids(&self, url: &Url) -> bool {
        self.kept_ids.contains_key(&key(url))
    }

    /// The look at an address that somebody makes.
    pub(super) fn running(&self, url: &Url) -> Option<OtherLook> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&key(url)).map(|result| OtherLook(result.clone()))
    }

    /// Begins to look at an address, or waits for who does.
    pub(super) fn begin(&self, url: &Url) -> Look {
        let key = key(url);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = running.get(&key) {
            return Look::Another(OtherLook(result.clone()));
        }
        let (result, others) = watch::channel(None);
        running.insert(key, others);
        let (running, no_feeds) = (Arc::clone(&self.running), self.no_feeds.clone());
        Look::First(FirstLook { key, running, result, no_feeds })
    }

    /// Waits for leave to ask a site, at most so long.
    pub(super) async fn turn(&self, site: &str, wait: Duration) -> Result<LookPermit, Problem> {
        let turns = {
            let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // As many as the configuration has sites.
            let new = || Arc::new(Semaphore::new(LOOKS_AT_ONCE));
            Arc::clone(all.entry(site.to_owned()).or_insert_with(new))
        };
        acquire(turns, wait).await
    }

    /// Waits for leave to hold a document that may become a feed, at most so long.
    pub(super) async fn document(&self, wait: Duration) -> Result<LookPermit, Problem> {
        acquire(Arc::clone(&self.documents), wait).await
    }
}

async fn acquire(turns: Arc<Semaphore>, wait: Duration) -> Result<LookPermit, Problem> {
    match timeout(wait, turns.acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        _ => {
            let said = "too many new addresses are asked for at once";
            Err(Problem::later(said, FIRST_AGAIN))
        }
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
        let looks = FirstLooks::new(&[]);
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
        let looks = FirstLooks::new(&[]);
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

    #[tokio::test(start_paused = true)]
    async fn a_site_is_asked_a_few_things_at_once() {
        let looks = FirstLooks::new(&[]);
        let mut turns = Vec::new();
        for _ in 0..LOOKS_AT_ONCE {
            turns.push(looks.turn("http://a/", WAIT).await.unwrap());
        }
        assert!(looks.turn("http://a/", WAIT).await.is_err());
        assert!(looks.turn("http://b/", WAIT).await.is_ok());
        turns.pop();
        assert!(looks.turn("http://a/", WAIT).await.is_ok());
    }
}
