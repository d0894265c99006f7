//! Follows the SUP documents of publishers: one request tells which of their feeds changed.
//!
//! A feed is *covered* if it was polled after its SUP document was read, the document is read in time, and it is
//! trusted ([`PushTrust`]). A covered feed is polled less often. Each document has a task that reads it ([`follow`]),
//! at the head of its host's line.

use super::politeness::HostRank;
use super::polling::{BROKE_OFF, BackgroundTask, PollContext, catch_panic};
use super::schedule::{FLOOR, whole_seconds};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::{
    FAIR_TIME, FeedName, PushTrust, PushedPoll, SupId, Time, ToldChange, shown_text,
};
use tidegate_core::pause::GrowingPause;
use tidegate_core::sup::{
    Follower, FollowerStatus, SupAnnouncement, SupDocument, UpdateMember, read_of,
};
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchError, FetchLimits, FetchRequest, LeadScope, Retry,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower::ServiceExt as _;
use tracing::warn_span;

/// The longest time for reading a document, including those of longer periods.
const READ_TIME: Duration = FetchLimits::STANDARD.total;

/// Reads the SUP documents of one publisher.
pub struct SupReader {
    /// The request for the first document, conditional on the last answer.
    request: FetchRequest,
    /// The ids whose updates matter; `None`: all.
    only: Option<Arc<BTreeSet<SupId>>>,
    /// How long the period of the document should be at least, if its publisher offers several.
    least: Option<Duration>,
    follower: Follower,
}

/// The news in SUP documents since the last reading.
#[derive(Debug, Default)]
pub struct SupNews {
    /// The updates, each with the end of its document's time span.
    pub updates: Vec<(UpdateMember, Time)>,
    /// A gap: no document reaches back to the last reading. The time up to which everything is known, and the time from
    /// which it is known again.
    pub missed: Option<(Time, Time)>,
    /// Why a document of a longer period could not be read, if so.
    pub unread: Option<FetchError>,
    /// The period of the document that is read next, in seconds.
    pub period: u32,
}

/// Builds an unconditional request for a document that was named within `leads`.
fn request(address: &str, leads: LeadScope) -> FetchRequest {
    FetchRequest { leads, soon: true, ..FetchRequest::whole(address.to_owned(), Time::MIN) }
}

impl SupReader {
    /// Creates a reader without a history. `leads`: the scope within which `address` was named.
    pub fn new(address: &str, leads: LeadScope) -> Self {
        let (request, follower) = (request(address, leads), Follower::default());
        Self { request, only: None, least: None, follower }
    }

    /// Restricts the reader to these ids. If they changed, the last answer is forgotten, because the document matters
    /// again even if unchanged.
    fn keep_only(&mut self, ids: BTreeSet<SupId>) {
        if self.only.as_deref() != Some(&ids) {
            self.request = request(&self.request.url, self.request.leads.clone());
            self.follower.keep_only(&ids);
            self.only = Some(Arc::new(ids));
        }
    }

    /// Reads the document, and those of longer periods if it does not reach back to the last reading. `None`: it is
    /// unchanged.
    pub async fn read(&mut self, fetch: &Fetch, now: Time) -> Result<Option<SupNews>, FetchError> {
        let end = Instant::now() + READ_TIME;
        let asked = FetchRequest { now, ..self.request.clone() };
        let Some((mut document, next, leads)) = self.ask(fetch, asked, end).await? else {
            return Ok(None);
        };
        self.request = next;
        let SupDocument { period, available, .. } = &document;
        let mut news = SupNews { period: *period, ..SupNews::default() };
        // The shortest period that is long enough is read from now on, or else the longest.
        let longer = self.least.and_then(|least| available.range(whole_seconds(least)..).next());
        let better = longer.or(available.last_key_value().filter(|_| self.least.is_some()));
        if let Some((other, address)) = better.filter(|(other, _)| *other != period) {
            (self.request, news.period) = (request(address, leads.clone()), *other);
        }
        let known = self.follower.known().unwrap_or(document.updated);
        // Each document has a longer period than the one before.
        for _ in 0..16 {
            let (found, updated) = (self.follower.apply_document(&document), document.updated);
            news.updates.extend(found.updates.into_iter().map(|update| (update, updated)));
            let address = match found.standing {
                FollowerStatus::Complete => return Ok(Some(news)),
                FollowerStatus::Missed => break,
                FollowerStatus::Ask { address, .. } => address,
            };
            let asked = FetchRequest { now, ..request(&address, leads.clone()) };
            match self.ask(fetch, asked, end).await {
                Ok(Some((longer, ..))) => document = longer,
                unread => {
                    news.unread = unread.err();
                    break;
                }
            }
        }
        // Report a gap only once.
        self.follower.go_on_from(document.updated);
        news.missed = Some((known, document.updated));
        Ok(Some(news))
    }

    /// Fetches a document until `end`. Also returns the next request for it, and the scope of what it names. `None`: it
    /// is unchanged.
    async fn ask(
        &self,
        fetch: &Fetch,
        request: FetchRequest,
        end: Instant,
    ) -> Result<Option<(SupDocument, FetchRequest, LeadScope)>, FetchError> {
        let only = self.only.clone();
        let reading = async {
            let fetched = fetch.clone().oneshot(request.clone()).await?;
            let FetchAnswer::Document(document) = fetched.answer else { return Ok(None) };
            let (validators, known_wire) = (fetched.validators, Some(document.prints.wire));
            // Blocking: the document may list a million feeds.
            let read = move || read_of(&document.bytes, only.as_deref());
            let read = tokio::task::spawn_blocking(read).await;
            let read = read.map_err(|error| broke_off(error.to_string()))?;
            let read = read.map_err(|error| FetchError::upstream(error.to_string()))?;
            Ok(Some((read, FetchRequest { validators, known_wire, ..request }, fetched.leads)))
        };
        let reading = catch_panic(reading, || Err(broke_off(BROKE_OFF.to_owned())));
        let late = FetchError::Timeout { what: "send its SUP documents", limit: READ_TIME };
        timeout_at(end, reading).await.unwrap_or(Err(late))
    }
}

const fn broke_off(why: String) -> FetchError {
    FetchError::Client { what: "read its SUP documents", why }
}

/// The most SUP documents followed; feeds of further ones are polled individually.
const MAX_DOCUMENTS: usize = 256;
/// The most SUP documents read at the same time.
pub const READS_AT_ONCE: usize = 8;
/// How long a reader waits for its host before it lets readers of idle hosts go first.
const HOST_WAIT: Duration = Duration::from_secs(10);
/// After this many consecutive failures a document covers no feed any more. Until then retries follow quickly, so that
/// the failure is known after about one period.
const MAX_FAILURES: u32 = 3;
const RETRY: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(5), Duration::from_secs(3600));

/// The feeds to poll because of a SUP document.
pub struct AnnouncedFeeds {
    pub feeds: Vec<FeedName>,
    /// Why the document covers them no more; `None`: it lists a change of each.
    pub lost: Option<&'static str>,
}

/// The state of a SUP document that feeds name.
#[derive(Default)]
pub struct SupSource {
    /// The feeds by their ids in it.
    feeds: BTreeMap<SupId, BTreeSet<FeedName>>,
    /// Since when all changes are known to be listed, and when it was last read.
    read: Option<(Instant, Instant)>,
    /// Its period, in seconds.
    period: Option<u32>,
    failures: u32,
}

/// The state of a document, shared by its task and its feeds.
pub type SharedSource = Arc<Mutex<SupSource>>;

/// Reads a SUP document periodically and has the feeds polled that need it.
pub async fn follow(context: Arc<PollContext>, mut reader: SupReader, source: SharedSource) {
    loop {
        context.until_open().await;
        // Limited, so that polls keep enough slots.
        let Ok(reading) = context.documents.acquire().await else { return };
        let slot = context.hosts.slot(&reader.request.url, HostRank::Announcement);
        let slot = timeout(HOST_WAIT, slot).await.unwrap_or(Err(Duration::ZERO));
        if let Err(left) = slot {
            drop(reading);
            sleep(left.max(FLOOR)).await;
            continue;
        }
        reader.keep_only(source.lock().feeds.keys().cloned().collect());
        reader.least = Some(context.settings.load().bounds.min());
        let begun = Instant::now();
        let (fetch, now) = (context.fetch(), context.clock.now());
        let read = catch_panic(reader.read(&fetch, now), || Err(broke_off(BROKE_OFF.to_owned())));
        let read = read.await;
        drop((slot, reading));
        let unread = read.as_ref().map_or_else(Some, |news| news.as_ref()?.unread.as_ref());
        if let Some(pause) = unread.and_then(|error| error.pause(&reader.request.url)) {
            context.hosts.pause(&pause);
        }
        // Pause at least four times as long as the reading took.
        let rest = begun.elapsed() * 4;
        let document = warn_span!("sup", document = shown_text(&reader.request.url, None));
        let (wanted, wait) = document.in_scope(|| source.lock().apply_reading(read));
        if !wanted.feeds.is_empty() {
            context.command(move |it| it.poll_announced(&wanted)).await;
        }
        sleep(wait.max(rest)).await;
    }
}

/// The SUP documents that feeds name, by address.
#[derive(Default)]
pub struct FollowedDocuments(HashMap<String, Weak<FollowedDocument>>);

struct FollowedDocument {
    source: SharedSource,
    _task: BackgroundTask,
}

/// A feed and the SUP document that it names. Dropping it removes the feed from the document, and ends the task of a
/// document without feeds.
pub struct FollowedFeed {
    feed: FeedName,
    announcement: SupAnnouncement,
    document: Arc<FollowedDocument>,
    /// The trust in the document to list the feed's changes.
    trust: PushTrust,
}

impl FollowedDocuments {
    /// Has a feed follow the SUP document that it names, unless it does `before`. `begin` starts the task of a new
    /// document.
    pub fn follow(
        &mut self,
        feed: &FeedName,
        before: Option<Box<FollowedFeed>>,
        (announcement, leads): (SupAnnouncement, LeadScope),
        begin: impl FnOnce(SupReader, SharedSource) -> BackgroundTask,
    ) -> Option<Box<FollowedFeed>> {
        if before.as_ref().is_some_and(|before| before.announcement == announcement) {
            return before;
        }
        drop(before);
        self.0.retain(|_, document| document.strong_count() > 0);
        let SupAnnouncement { document: address, id } = &announcement;
        let known = self.0.get(address).and_then(Weak::upgrade);
        if known.is_none() && self.0.len() >= MAX_DOCUMENTS {
            return None;
        }
        let document = known.unwrap_or_else(|| {
            let source = SharedSource::default();
            let task = begin(SupReader::new(address, leads), Arc::clone(&source));
            let document = Arc::new(FollowedDocument { source, _task: task });
            self.0.insert(address.clone(), Arc::downgrade(&document));
            document
        });
        document.source.lock().feeds.entry(id.clone()).or_default().insert(feed.clone());
        let (feed, trust) = (feed.clone(), PushTrust::default());
        Some(Box::new(FollowedFeed { feed, announcement, document, trust }))
    }
}

impl FollowedFeed {
    /// Records a successful poll of the feed that began at `begun`. Returns whether the document is expected to list
    /// every further change.
    pub fn polled(&mut self, poll: PushedPoll, begun: Instant, time: Time) -> bool {
        let source = self.document.source.lock();
        self.trust.polled(poll, source.announcement_delay(), time);
        let in_time = source.period() * 2 + READ_TIME;
        let is_read =
            |(since, last): (Instant, Instant)| begun >= since && last.elapsed() < in_time;
        source.read.is_some_and(is_read) && self.trust.is_relied_on(time)
    }

    /// Records that the document lists a change. Returns which one.
    pub fn listed(&mut self, time: Time) -> ToldChange {
        self.trust.pushed(self.document.source.lock().announcement_delay(), time)
    }
}

impl Drop for FollowedFeed {
    fn drop(&mut self) {
        let mut source = self.document.source.lock();
        source.feeds.get_mut(&self.announcement.id).map(|feeds| feeds.remove(&self.feed));
        source.feeds.retain(|_, feeds| !feeds.is_empty());
    }
}

impl SupSource {
    fn period(&self) -> Duration {
        Duration::from_secs(u64::from(self.period.unwrap_or(60)))
    }

    /// Returns how long after a poll found a change the document may still list it.
    fn announcement_delay(&self) -> Duration {
        FAIR_TIME.max(self.period() * 2)
    }

    /// Applies the result of a reading. Returns the feeds to poll now and the pause before the next reading.
    fn apply_reading(
        &mut self,
        read: Result<Option<SupNews>, FetchError>,
    ) -> (AnnouncedFeeds, Duration) {
        let news = match read {
            // An unchanged document has no news.
            Ok(news) => news.unwrap_or_default(),
            Err(error) => return self.apply_failure(&error),
        };
        if let Some(error) = &news.unread {
            tracing::warn!(%error, "a SUP document of a longer period was not read");
        }
        self.period = Some(news.period).filter(|period| *period > 0).or(self.period);
        self.failures = 0;
        let (since, now) = (self.read.map(|(since, _)| since), Instant::now());
        self.read = Some((since.filter(|_| news.missed.is_none()).unwrap_or(now), now));
        if news.missed.is_some() {
            let reason = "its SUP document does not reach back to the last one that was read";
            return (self.end_cover(reason), self.period());
        }
        // Changes in the first document may be older than the last polls, and each feed is polled once more anyway to
        // become covered.
        let updates = news.updates.iter().filter(|_| since.is_some());
        let ids: BTreeSet<&SupId> = updates.map(|(update, _)| &update.id).collect();
        let feeds = ids.into_iter().filter_map(|id| self.feeds.get(id)).flatten().cloned();
        (AnnouncedFeeds { feeds: feeds.collect(), lost: None }, self.period())
    }

    fn end_cover(&self, reason: &'static str) -> AnnouncedFeeds {
        let feeds = self.feeds.values().flatten().cloned().collect();
        AnnouncedFeeds { feeds, lost: Some(reason) }
    }

    /// Records a failed reading. If the publisher is busy or names a time, it is not retried quickly, and the document
    /// covers no feed meanwhile.
    fn apply_failure(&mut self, error: &FetchError) -> (AnnouncedFeeds, Duration) {
        let asked = error.retry();
        let least = if asked == Retry::Backoff { 0 } else { MAX_FAILURES };
        self.failures = self.failures.saturating_add(1).max(least);
        let is_blind = self.failures >= MAX_FAILURES;
        let asked = if let Retry::After(wait) = asked { wait } else { Duration::ZERO };
        let least = if is_blind { self.period() } else { FLOOR };
        let wait = RETRY.after(self.failures).max(asked).min(RETRY.most).max(least);
        // Log only the first failures.
        if self.failures <= MAX_FAILURES {
            tracing::warn!(%error, failures = self.failures, "a SUP document was not read");
        }
        if is_blind && self.read.take().is_some() {
            return (self.end_cover("its SUP document cannot be read"), wait);
        }
        (AnnouncedFeeds { feeds: Vec::new(), lost: None }, wait)
    }
}

#[cfg(test)]
mod tests;
