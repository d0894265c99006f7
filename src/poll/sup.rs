//! Follows the SUP documents of publishers: one request tells which of their feeds changed.
//!
//! A feed is *covered* if it was polled after its SUP document was read, the document is read in time, and it is
//! trusted ([`PushTrust`]). A covered feed is polled less often. Each document has a task that reads it ([`follow`]),
//! at the head of its host's line.

use super::politeness::HostRank;
use super::polling::{BROKE_OFF, BackgroundTask, PollContext, catch_panic};
use super::schedule::FLOOR;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FAIR_TIME, FeedName, PushTrust, PushedPoll, SupId, Time, ToldChange};
use tidegate_core::pause::GrowingPause;
use tidegate_core::sup::{
    Follower, FollowerStatus, ReadError, SupAnnouncement, SupDocument, UpdateMember, read_of,
};
use tidegate_net::fetch::{
    Fetch, FetchAnswer, FetchBlame, FetchError, FetchLimits, FetchRequest, LeadScope, Retry,
    Validators,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

/// The longest time for reading a document, including those of longer periods.
const READ_TIME: Duration = FetchLimits::STANDARD.total;

/// Reads the SUP documents of one publisher.
pub struct SupReader {
    /// The request for the first document, conditional on the last answer.
    request: FetchRequest,
    /// The scope of addresses that its documents may name.
    leads: LeadScope,
    /// The ids whose updates matter; `None`: all.
    only: Option<Arc<BTreeSet<SupId>>>,
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
    /// The period of the first document, in seconds.
    pub period: u32,
    /// The addresses of documents by period in seconds.
    available: BTreeMap<u32, String>,
}

impl SupReader {
    /// Creates a reader without a history. `leads`: the scope within which `address` was named.
    pub fn new(address: &str, leads: LeadScope) -> Self {
        let request = FetchRequest::whole(address.to_owned(), Time::MIN);
        Self {
            request: FetchRequest { leads, soon: true, ..request },
            leads: LeadScope::Public,
            only: None,
            follower: Follower::default(),
        }
    }

    /// Restricts the reader to these ids. If they changed, the last answer is forgotten, because the document matters
    /// again even if unchanged.
    fn keep_only(&mut self, ids: BTreeSet<SupId>) {
        if self.only.as_deref() != Some(&ids) {
            self.forget_answer();
            self.follower.keep_only(&ids);
            self.only = Some(Arc::new(ids));
        }
    }

    /// Makes the next request unconditional.
    fn forget_answer(&mut self) {
        (self.request.validators, self.request.known_wire) = (Validators::default(), None);
    }

    /// Reads the document, and those of longer periods if it does not reach back to the last reading. `None`: it is
    /// unchanged.
    pub async fn read(&mut self, fetch: &Fetch, now: Time) -> Result<Option<SupNews>, FetchError> {
        let before = self.follower.clone();
        let late = FetchError::Timeout { what: "send its SUP documents", limit: READ_TIME };
        let read = catch_panic(self.read_all(fetch, now), || Err(defect(BROKE_OFF)));
        let read = timeout(READ_TIME, read).await.unwrap_or(Err(late));
        if read.is_err() {
            // A partial reading does not count; everything is read again.
            self.follower = before;
            self.forget_answer();
        }
        read
    }

    async fn read_all(&mut self, fetch: &Fetch, now: Time) -> Result<Option<SupNews>, FetchError> {
        let request = FetchRequest { now, ..self.request.clone() };
        let Some((mut document, first)) = self.ask(fetch, request).await? else { return Ok(None) };
        (self.request.validators, self.request.known_wire, self.leads) = first;
        let SupDocument { period, ref available, .. } = document;
        let mut news = SupNews { period, available: available.clone(), ..SupNews::default() };
        let known = self.follower.known().unwrap_or(document.updated);
        // Each document has a longer period than the one before.
        for _ in 0..16 {
            let found = self.follower.apply_document(&document);
            let updated = document.updated;
            news.updates.extend(found.updates.into_iter().map(|update| (update, updated)));
            let url = match found.standing {
                FollowerStatus::Complete => return Ok(Some(news)),
                FollowerStatus::Missed { .. } => break,
                FollowerStatus::Ask { address, .. } => address,
            };
            let (leads, soon) = (self.leads.clone(), true);
            let request = FetchRequest { leads, soon, ..FetchRequest::whole(url, now) };
            match self.ask(fetch, request).await {
                Ok(Some((longer, _))) => document = longer,
                Ok(None) => break,
                Err(error) => {
                    news.unread = Some(error);
                    break;
                }
            }
        }
        // Report a gap only once.
        self.follower.go_on_from(document.updated);
        news.missed = Some((known, document.updated));
        Ok(Some(news))
    }

    /// Fetches a document; also returns its validators, fingerprint and scope for the next request.
    async fn ask(
        &self,
        fetch: &Fetch,
        request: FetchRequest,
    ) -> Result<Option<(SupDocument, (Validators, Option<u128>, LeadScope))>, FetchError> {
        let fetched = fetch.clone().oneshot(request).await?;
        let FetchAnswer::Document(document) = fetched.answer else { return Ok(None) };
        let (bytes, only) = (document.bytes, self.only.clone());
        // Blocking: the document may list a million feeds.
        let read = tokio::task::spawn_blocking(move || read_of(&bytes, only.as_deref())).await;
        let read = read.map_err(|error| defect(&error.to_string()))?;
        let unreadable = |error: ReadError| FetchError::Unusable {
            blame: FetchBlame::Upstream,
            why: error.to_string(),
        };
        let wire = Some(document.prints.wire);
        Ok(Some((read.map_err(unreadable)?, (fetched.validators, wire, fetched.leads))))
    }

    /// Chooses the document to read from now on and returns its period: the shortest one not below `least`, or else the
    /// longest. `None`: unknown.
    fn choose_period(&mut self, news: &SupNews, least: Duration) -> Option<Duration> {
        let wanted = u32::try_from(least.as_secs()).unwrap_or(u32::MAX);
        let better = news.available.range(wanted..).next().or(news.available.last_key_value());
        let mut period = news.period;
        if let Some((other, address)) = better.filter(|(other, _)| **other != period) {
            (self.request.url, self.request.leads) = (address.clone(), self.leads.clone());
            self.forget_answer();
            period = *other;
        }
        (period > 0).then(|| Duration::from_secs(u64::from(period)).max(FLOOR))
    }
}

fn defect(why: &str) -> FetchError {
    FetchError::Client { what: "read its SUP documents", why: why.to_owned() }
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

/// A feed to be polled because of a SUP document or a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFeed {
    pub feed: FeedName,
    /// The announced change; `None`: the feed is merely no longer covered.
    pub told: ToldChange,
    pub reason: &'static str,
}

/// The state of a SUP document that feeds name.
#[derive(Default)]
pub struct SupSource {
    /// The feeds by their ids in it, and the trust in the document for each.
    feeds: BTreeMap<SupId, BTreeMap<FeedName, PushTrust>>,
    /// Since when all changes are known to be listed, and when it was last read.
    read: Option<(Instant, Instant)>,
    period: Option<Duration>,
    failures: u32,
}

/// The state of a document, shared by its task and the scheduler.
pub type SharedSource = Arc<Mutex<SupSource>>;

/// Reads a SUP document periodically and sends the feeds to be polled because of it.
pub async fn follow(
    context: Arc<PollContext>,
    mut reader: SupReader,
    source: SharedSource,
    sender: mpsc::Sender<Vec<AnnouncedFeed>>,
) {
    loop {
        context.until_open().await;
        // Limited, so that polls keep enough slots.
        let Ok(reading) = context.documents.acquire().await else { return };
        let slot = context.hosts.slot(&reader.request.url, HostRank::Announcement);
        let slot = timeout(HOST_WAIT, slot).await;
        let slot = match slot.unwrap_or(Err(Duration::ZERO)) {
            Ok(slot) => slot,
            Err(left) => {
                drop(reading);
                sleep(left.max(FLOOR)).await;
                continue;
            }
        };
        reader.keep_only(source.lock().feeds.keys().cloned().collect());
        let begun = Instant::now();
        let read = reader.read(&context.fetch(), context.clock.now()).await;
        drop((slot, reading));
        let unread = read.as_ref().map_or_else(Some, |news| news.as_ref()?.unread.as_ref());
        if let Some(pause) = unread.and_then(|error| error.pause(&reader.request.url)) {
            context.hosts.pause(&pause);
        }
        // Pause at least four times as long as the reading took.
        let (least, rest) = (context.settings.load().min_interval, begun.elapsed() * 4);
        let now = (Instant::now(), context.clock.now());
        let (wanted, wait) = source.lock().apply_reading(&mut reader, read, least, now);
        if !wanted.is_empty() && sender.send(wanted).await.is_err() {
            return;
        }
        sleep(wait.max(rest)).await;
    }
}

/// The SUP documents that feeds name.
#[derive(Default)]
pub struct FollowedDocuments {
    /// The documents by address, each with its task.
    sources: HashMap<String, (SharedSource, BackgroundTask)>,
    announcements: HashMap<FeedName, SupAnnouncement>,
}

impl FollowedDocuments {
    /// Records the SUP document that a feed names, with its scope; `None`: the feed names none. `follow` starts the
    /// task of a new document.
    pub fn attach(
        &mut self,
        feed: &FeedName,
        announcement: Option<(SupAnnouncement, LeadScope)>,
        follow: impl FnOnce(SupReader, SharedSource) -> BackgroundTask,
    ) {
        if self.announcements.get(feed)
            == announcement.as_ref().map(|(announcement, _)| announcement)
        {
            return;
        }
        self.detach(feed);
        let Some((announcement, leads)) = announcement else { return };
        let is_known = self.sources.contains_key(&announcement.document);
        if !is_known && self.sources.len() >= MAX_DOCUMENTS {
            return;
        }
        let (source, _) = self.sources.entry(announcement.document.clone()).or_insert_with(|| {
            let source = SharedSource::default();
            let task = follow(SupReader::new(&announcement.document, leads), Arc::clone(&source));
            (source, task)
        });
        let mut source = source.lock();
        source.feeds.entry(announcement.id.clone()).or_default().entry(feed.clone()).or_default();
        self.announcements.insert(feed.clone(), announcement);
    }

    /// Forgets a feed, and its document if no other feed names it.
    pub fn detach(&mut self, feed: &FeedName) {
        let Some(SupAnnouncement { document, id }) = self.announcements.remove(feed) else {
            return;
        };
        let Some((source, _)) = self.sources.get(&document) else { return };
        let mut source = source.lock();
        source.feeds.get_mut(&id).map(|feeds| feeds.remove(feed));
        source.feeds.retain(|_, feeds| !feeds.is_empty());
        let is_empty = source.feeds.is_empty();
        drop(source);
        if is_empty {
            self.sources.remove(&document);
        }
    }

    /// Records a successful poll of a feed that began at `begun`. Returns whether the document is expected to list
    /// every further change.
    pub fn polled(
        &mut self,
        feed: &FeedName,
        poll: PushedPoll,
        begun: Instant,
        now: (Instant, Time),
    ) -> bool {
        let Some(SupAnnouncement { document, id }) = self.announcements.get(feed) else {
            return false;
        };
        let Some((source, _)) = self.sources.get(document) else { return false };
        source.lock().polled((id, feed), poll, begun, now)
    }
}

impl SupSource {
    fn period(&self) -> Duration {
        self.period.unwrap_or(Duration::from_secs(60))
    }

    /// Returns how long after a poll found a change the document may still list it.
    fn announcement_delay(&self) -> Duration {
        FAIR_TIME.max(self.period() * 2)
    }

    fn polled(
        &mut self,
        (id, feed): (&SupId, &FeedName),
        poll: PushedPoll,
        begun: Instant,
        (now, time): (Instant, Time),
    ) -> bool {
        let (fair, in_time) = (self.announcement_delay(), self.period() * 2 + READ_TIME);
        let trust = self.feeds.get_mut(id).and_then(|feeds| feeds.get_mut(feed));
        let Some(trust) = trust else { return false };
        trust.polled(poll, fair, time);
        let is_read = |(since, last)| begun >= since && now < last + in_time;
        self.read.is_some_and(is_read) && trust.is_relied_on(time)
    }

    /// Applies the result of a reading. Returns the feeds to poll now and the pause before the next reading. `least`:
    /// the shortest polling interval.
    fn apply_reading(
        &mut self,
        reader: &mut SupReader,
        read: Result<Option<SupNews>, FetchError>,
        least: Duration,
        (now, time): (Instant, Time),
    ) -> (Vec<AnnouncedFeed>, Duration) {
        let news = match read {
            // An unchanged document has no news.
            Ok(news) => news.unwrap_or_default(),
            Err(error) => return self.apply_failure(&error),
        };
        if let Some(error) = &news.unread {
            tracing::warn!(%error, "a SUP document of a longer period was not read");
        }
        self.failures = 0;
        self.period = reader.choose_period(&news, least).or(self.period);
        let since = self.read.map(|(since, _)| since);
        self.read = Some((since.filter(|_| news.missed.is_none()).unwrap_or(now), now));
        let (fair, period) = (self.announcement_delay(), self.period());
        if news.missed.is_some() {
            let reason = "its SUP document does not reach back to the last one that was read";
            return (self.all(reason), period);
        }
        let mut wanted = Vec::new();
        let ids: BTreeSet<&SupId> = news.updates.iter().map(|(update, _)| &update.id).collect();
        // Changes in the first document may be older than the last polls, and each feed is polled once more anyway to
        // become covered.
        for id in ids.into_iter().filter(|_| since.is_some()) {
            for (feed, trust) in self.feeds.get_mut(id).into_iter().flatten() {
                let (told, reason) = (trust.pushed(fair, time), "its SUP document lists a change");
                wanted.push(AnnouncedFeed { feed: feed.clone(), told, reason });
            }
        }
        (wanted, period)
    }

    fn all(&self, reason: &'static str) -> Vec<AnnouncedFeed> {
        let (all, told) = (self.feeds.values().flat_map(BTreeMap::keys), ToldChange::None);
        all.map(|feed| AnnouncedFeed { feed: feed.clone(), told, reason }).collect()
    }

    /// Records a failed reading. If the publisher is busy or names a time, it is not retried quickly, and the document
    /// covers no feed meanwhile.
    fn apply_failure(&mut self, error: &FetchError) -> (Vec<AnnouncedFeed>, Duration) {
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
            return (self.all("its SUP document cannot be read"), wait);
        }
        (Vec::new(), wait)
    }
}

#[cfg(test)]
mod tests;
