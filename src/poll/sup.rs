//! The SUP documents of publishers: one request that asks for all their feeds, and what is polled because of it.
//!
//! A feed is *covered* once it was polled after its document was read, while that is read in time and is relied on
//! ([`PushTrust`]): its polls are fewer then. Each document has a task that asks for it ([`follow`]), at the head of its
//! host's line.

use super::politeness::HostRank;
use super::polling::{BROKE_OFF, PollContext, TaskAside, catch_panic};
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

/// How long reading may take, with all documents that are asked for in it.
const READ_TIME: Duration = FetchLimits::STANDARD.total;

/// Reads the documents of one publisher, one after the other.
pub struct SupReader {
    /// Asks for the first document, unless that is the same as before.
    request: FetchRequest,
    /// Which addresses its documents may name.
    leads: LeadScope,
    /// The ids whose updates matter; `None`: all.
    only: Option<Arc<BTreeSet<SupId>>>,
    follower: Follower,
}

/// What the documents tell that was not known before.
#[derive(Debug, Default)]
pub struct SupNews {
    /// Updates, and up to when the document that lists each goes.
    pub updates: Vec<(UpdateMember, Time)>,
    /// Where no document reaches back to the last one that was read: up to when everything is known, and up to when
    /// what follows the gap is.
    pub missed: Option<(Time, Time)>,
    /// Why, where a document of a longer period could not be read.
    pub unread: Option<FetchError>,
    /// The period of the first document, in seconds.
    pub period: u32,
    /// Where documents of other periods are.
    available: BTreeMap<u32, String>,
}

impl SupReader {
    /// Knows nothing yet. `leads`: the scope within which the address is named.
    pub fn new(address: &str, leads: LeadScope) -> Self {
        let request = FetchRequest::whole(address.to_owned(), Time::MIN);
        Self {
            request: FetchRequest { leads, soon: true, ..request },
            leads: LeadScope::Public,
            only: None,
            follower: Follower::default(),
        }
    }

    /// Follows these ids alone. Where they are others than before, what was answered before is no reason not to read it.
    fn keep_only(&mut self, ids: BTreeSet<SupId>) {
        if self.only.as_deref() != Some(&ids) {
            self.forget_answer();
            self.follower.keep_only(&ids);
            self.only = Some(Arc::new(ids));
        }
    }

    /// Has the next document be asked for whole.
    fn forget_answer(&mut self) {
        (self.request.validators, self.request.known_wire) = (Validators::default(), None);
    }

    /// Asks for the document, and for those of longer periods where it does not reach back to the last one that was
    /// read. `None`: it is the same as before.
    pub async fn read(&mut self, fetch: &Fetch, now: Time) -> Result<Option<SupNews>, FetchError> {
        let before = self.follower.clone();
        let late = FetchError::Timeout { what: "send its SUP documents", limit: READ_TIME };
        let read = catch_panic(self.read_all(fetch, now), || Err(defect(BROKE_OFF)));
        let read = timeout(READ_TIME, read).await.unwrap_or(Err(late));
        if read.is_err() {
            // Half of what was to be read is nothing: the same is asked for again.
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
        // Each is of a longer period than the one before.
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
        // It is told once.
        self.follower.go_on_from(document.updated);
        news.missed = Some((known, document.updated));
        Ok(Some(news))
    }

    /// A document, and how to ask whether it is the same and what it may lead to.
    async fn ask(
        &self,
        fetch: &Fetch,
        request: FetchRequest,
    ) -> Result<Option<(SupDocument, (Validators, Option<u128>, LeadScope))>, FetchError> {
        let fetched = fetch.clone().oneshot(request).await?;
        let FetchAnswer::Document(document) = fetched.answer else { return Ok(None) };
        let (bytes, only) = (document.bytes, self.only.clone());
        // One of a million feeds takes a while.
        let read = tokio::task::spawn_blocking(move || read_of(&bytes, only.as_deref())).await;
        let read = read.map_err(|error| defect(&error.to_string()))?;
        let unreadable = |error: ReadError| FetchError::Unusable {
            blame: FetchBlame::Upstream,
            why: error.to_string(),
        };
        let wire = Some(document.prints.wire);
        Ok(Some((read.map_err(unreadable)?, (fetched.validators, wire, fetched.leads))))
    }

    /// Chooses the document to ask for from now on, and answers its period: the shortest one that is not shorter than
    /// feeds are polled, or else the longest there is. `None`: as before.
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

/// The most SUP documents that are followed; feeds of further ones are polled each for itself.
const MAX_DOCUMENTS: usize = 256;
/// The most that are asked for at once.
pub const READS_AT_ONCE: usize = 8;
/// How long one of these waits for its host before others have its place, whose hosts are free.
const HOST_WAIT: Duration = Duration::from_secs(10);
/// After so many failures in a row a document covers nothing any more. They follow each other
/// quickly: an outage must not blind for longer than about a period.
const FAILURES_BORNE: u32 = 3;
/// The pause after failures.
const RETRY: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(5), Duration::from_secs(3600));

/// A feed that is to be polled because of what a document told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFeed {
    pub feed: FeedName,
    /// What the document lists of it; where nothing, it is merely not covered any more.
    pub told: ToldChange,
    pub reason: &'static str,
}

/// What is known of a document that feeds are announced in.
#[derive(Default)]
pub struct SupSource {
    /// The feeds by their ids in it, and how far it is relied on for each.
    feeds: BTreeMap<SupId, BTreeMap<FeedName, PushTrust>>,
    /// Since when everything that changes is known to be listed, and when that was confirmed last.
    read: Option<(Instant, Instant)>,
    period: Option<Duration>,
    failures: u32,
}

/// A document, as its task and the scheduler share it.
pub type SharedSource = Arc<Mutex<SupSource>>;

/// Asks for a document again and again, and says which feeds are to be polled because of that.
pub async fn follow(
    context: Arc<PollContext>,
    mut reader: SupReader,
    source: SharedSource,
    told: mpsc::Sender<Vec<AnnouncedFeed>>,
) {
    loop {
        context.until_open().await;
        // So many at once, so that polls keep their places.
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
        // A document that takes long to read rests for four times as long.
        let (least, rest) = (context.settings.load().min_interval, begun.elapsed() * 4);
        let now = (Instant::now(), context.clock.now());
        let (wanted, wait) = source.lock().take_in(&mut reader, read, least, now);
        if !wanted.is_empty() && told.send(wanted).await.is_err() {
            return;
        }
        sleep(wait.max(rest)).await;
    }
}

/// The SUP documents that feeds are announced in.
#[derive(Default)]
pub struct FollowedDocuments {
    /// Each with its task.
    sources: HashMap<String, (SharedSource, TaskAside)>,
    places: HashMap<FeedName, SupAnnouncement>,
}

impl FollowedDocuments {
    /// Takes in where an answer of the feed says that it is announced, within which scope; `None`: nowhere. `follow`
    /// begins to ask for a document that is new.
    pub fn attach(
        &mut self,
        feed: &FeedName,
        place: Option<(SupAnnouncement, LeadScope)>,
        follow: impl FnOnce(SupReader, SharedSource) -> TaskAside,
    ) {
        if self.places.get(feed) == place.as_ref().map(|(place, _)| place) {
            return;
        }
        self.detach(feed);
        let Some((place, leads)) = place else { return };
        let is_known = self.sources.contains_key(&place.document);
        if !is_known && self.sources.len() >= MAX_DOCUMENTS {
            return;
        }
        let (source, _) = self.sources.entry(place.document.clone()).or_insert_with(|| {
            let source = SharedSource::default();
            let task = follow(SupReader::new(&place.document, leads), Arc::clone(&source));
            (source, task)
        });
        let mut source = source.lock();
        source.feeds.entry(place.id.clone()).or_default().entry(feed.clone()).or_default();
        self.places.insert(feed.clone(), place);
    }

    /// Forgets a feed; and its document, where no other feed is in it.
    pub fn detach(&mut self, feed: &FeedName) {
        let Some(SupAnnouncement { document, id }) = self.places.remove(feed) else { return };
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

    /// Takes in a successful poll of a feed that began at `begun`; whether every change since will be listed.
    pub fn polled(
        &mut self,
        feed: &FeedName,
        poll: PushedPoll,
        begun: Instant,
        now: (Instant, Time),
    ) -> bool {
        let Some(SupAnnouncement { document, id }) = self.places.get(feed) else { return false };
        let Some((source, _)) = self.sources.get(document) else { return false };
        source.lock().polled((id, feed), poll, begun, now)
    }
}

impl SupSource {
    fn period(&self) -> Duration {
        self.period.unwrap_or(Duration::from_secs(60))
    }

    /// How long after a poll found a change the document may still list it.
    fn fair_time(&self) -> Duration {
        FAIR_TIME.max(self.period() * 2)
    }

    fn polled(
        &mut self,
        (id, feed): (&SupId, &FeedName),
        poll: PushedPoll,
        begun: Instant,
        (now, time): (Instant, Time),
    ) -> bool {
        let (fair, in_time) = (self.fair_time(), self.period() * 2 + READ_TIME);
        let trust = self.feeds.get_mut(id).and_then(|feeds| feeds.get_mut(feed));
        let Some(trust) = trust else { return false };
        trust.polled(poll, fair, time);
        let is_read = |(since, last)| begun >= since && now < last + in_time;
        self.read.is_some_and(is_read) && trust.is_relied_on(time)
    }

    /// Takes in what came of a reading: the feeds that are to be polled now, and the pause before the next one. `least`:
    /// the shortest interval at which feeds are polled.
    fn take_in(
        &mut self,
        reader: &mut SupReader,
        read: Result<Option<SupNews>, FetchError>,
        least: Duration,
        (now, time): (Instant, Time),
    ) -> (Vec<AnnouncedFeed>, Duration) {
        let news = match read {
            // A document that is the same as before tells nothing.
            Ok(news) => news.unwrap_or_default(),
            Err(error) => return self.take_failure(&error),
        };
        if let Some(error) = &news.unread {
            tracing::warn!(%error, "a SUP document of a longer period was not read");
        }
        self.failures = 0;
        self.period = reader.choose_period(&news, least).or(self.period);
        let since = self.read.map(|(since, _)| since);
        self.read = Some((since.filter(|_| news.missed.is_none()).unwrap_or(now), now));
        let (fair, period) = (self.fair_time(), self.period());
        if news.missed.is_some() {
            let reason = "its SUP document does not reach back to the last one that was read";
            return (self.all(reason), period);
        }
        let mut wanted = Vec::new();
        let ids: BTreeSet<&SupId> = news.updates.iter().map(|(update, _)| &update.id).collect();
        // The first document lists what was read already, and each feed is read once more anyway.
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

    /// Takes in that the document was not read. A publisher that is busy, or says when to come back, is not tried
    /// quickly; nothing is left to its document then.
    fn take_failure(&mut self, error: &FetchError) -> (Vec<AnnouncedFeed>, Duration) {
        let asked = error.retry();
        let least = if asked == Retry::Backoff { 0 } else { FAILURES_BORNE };
        self.failures = self.failures.saturating_add(1).max(least);
        let is_blind = self.failures >= FAILURES_BORNE;
        let asked = if let Retry::After(wait) = asked { wait } else { Duration::ZERO };
        let least = if is_blind { self.period() } else { FLOOR };
        let wait = RETRY.after(self.failures).max(asked).min(RETRY.most).max(least);
        // Once it is known that it fails, it needs not be told each time.
        if self.failures <= FAILURES_BORNE {
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
