//! Which feeds are announced in which SUP document, what each document has told, and whether it is
//! believed. Decisions only: the clock and the network are for the desk.
//!
//! A feed is *covered* once it was read after its document was: from then on every change of it must
//! be listed, and it is looked at only when it is, or now and then to see whether that is true. That
//! ends when the document is not read in time. Documents take turns by host, so that slow ones of one
//! publisher keep no other from being read.

mod look;

pub use look::{Begun, LOOK_TIME, Looked};

use super::sup::{Question, SupError};
use look::{SupRequest, Told};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, ShownAddress, SupId, Time};
use tidegate_core::sup::{Follower, SupAnnouncement};
use tidegate_net::fetch::{LeadScope, Retry};
use tokio::time::Instant;

/// The most SUP documents that are followed; feeds of further ones are polled each for itself.
pub const MAX_DOCUMENTS: usize = 256;
/// The most documents that are asked for at once, each of another host.
pub const MAX_LOOKS_AT_ONCE: usize = 8;
/// Of them, those that were not read quickly when they were last asked for, or never yet.
const MAX_SLOW_LOOKS_AT_ONCE: usize = MAX_LOOKS_AT_ONCE / 2;
/// A look that takes longer is slow.
const QUICK: Duration = Duration::from_secs(5);
/// After so many failures in a row a document covers nothing any more. They follow each other
/// quickly: an outage must not blind for longer than about a period.
pub const FAILURES_BORNE: u32 = 3;
/// How long after a first failure a document is asked for again; after the second, twice as long.
const QUICK_TRY: Duration = Duration::from_secs(5);
/// How many looks in a row may find that `updated_time` has not gone on. A publisher whose document
/// stands still for longer, and for [`STANDSTILL_LEAST`], may have stopped to write it, whatever it
/// answers.
pub const STANDSTILLS_BORNE: u32 = 1;
/// A document whose `updated_time` went on so lately does not stand still: times are whole seconds,
/// and caches may hold it for some.
pub const STANDSTILL_LEAST: Duration = Duration::from_secs(10);
/// How many documents may leave out what a poll has found before that is held against them: the
/// change may have come just before the poll.
const DOCUMENTS_GIVEN: u32 = 2;
/// How many feeds a document may leave changes out of before none is left to it.
const LIES_BORNE: u32 = 3;
/// How long a document is not believed.
pub const DISTRUST: Duration = Duration::from_secs(24 * 3600);
/// The longest pause after failures.
const PAUSE_LIMIT: Duration = Duration::from_secs(3600);
/// The shortest pause between two looks.
const PAUSE_LEAST: Duration = Duration::from_secs(1);

/// A feed that is to be polled because of what a document told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFeed {
    pub feed: FeedName,
    /// Whether the document lists it; otherwise it is merely not covered any more.
    pub listed: bool,
    /// Why.
    pub reason: &'static str,
}

#[derive(Debug)]
struct SupSource {
    /// `None` while a look has it.
    look: Option<SupRequest>,
    /// The host of the address that is asked for; `None` until a look needs it.
    host: Option<Arc<str>>,
    /// Whether the last look was not slow.
    is_quick: bool,
    /// On whose word it is asked for: that of the feed that named it first.
    leads: LeadScope,
    feeds: BTreeMap<SupId, BTreeSet<FeedName>>,
    due: Instant,
    period: Duration,
    /// Since when everything that changes is known to be listed.
    good_since: Option<Instant>,
    /// When that was confirmed last.
    confirmed: Instant,
    failures: u32,
    /// The newest `updated_time`, and how many looks in a row found none that is newer.
    updated: Option<Time>,
    /// When a newer one was found last.
    went_on: Instant,
    standstills: u32,
    /// Feeds that were found changed without being listed, and how many documents came since.
    suspects: BTreeMap<FeedName, u32>,
    lies: u32,
}

impl SupSource {
    fn new(address: &str, leads: LeadScope, now: Instant) -> Self {
        let question = Question::new(address, leads.clone());
        Self {
            look: Some(SupRequest { question, follower: Follower::new() }),
            host: None,
            is_quick: false,
            leads,
            feeds: BTreeMap::new(),
            due: now,
            period: Duration::from_secs(60),
            good_since: None,
            confirmed: now,
            failures: 0,
            updated: None,
            went_on: now,
            standstills: 0,
            suspects: BTreeMap::new(),
            lies: 0,
        }
    }

    /// Until when its feeds are covered, if it is not read again.
    fn covers_until(&self) -> Option<Instant> {
        self.good_since.map(|_| self.confirmed + self.period + LOOK_TIME)
    }

    fn all(&self, reason: &'static str) -> Vec<AnnouncedFeed> {
        let feeds = self.feeds.values().flatten();
        feeds.map(|feed| AnnouncedFeed { feed: feed.clone(), listed: false, reason }).collect()
    }
}

/// The SUP documents that feeds are announced in.
#[derive(Debug, Default)]
pub struct SupPolls {
    sources: BTreeMap<String, SupSource>,
    places: HashMap<FeedName, SupAnnouncement>,
    /// What is not believed, and until when: documents, and single feeds of them.
    documents: HashMap<String, Instant>,
    feeds: HashMap<FeedName, Instant>,
    /// The looks that have begun, by the address of the document.
    looking: HashMap<String, LookInFlight>,
}

#[derive(Debug)]
struct LookInFlight {
    host: Arc<str>,
    is_quick: bool,
    since: Instant,
}

impl SupPolls {
    /// Takes in where an answer of the feed says that it is announced, and on whose word that is asked for; `None`:
    /// nowhere.
    pub fn attach(
        &mut self,
        feed: &FeedName,
        place: Option<(SupAnnouncement, LeadScope)>,
        now: Instant,
    ) {
        let place = place.filter(|(place, _)| {
            let document = self.documents.get(&place.document);
            !document.into_iter().chain(self.feeds.get(feed)).any(|until| *until > now)
        });
        if self.places.get(feed) == place.as_ref().map(|(place, _)| place) {
            return;
        }
        self.detach(feed);
        let Some((place, leads)) = place else { return };
        if self.sources.len() >= MAX_DOCUMENTS && !self.sources.contains_key(&place.document) {
            return;
        }
        let source = self.sources.entry(place.document.clone());
        let source = source.or_insert_with_key(|address| SupSource::new(address, leads, now));
        source.feeds.entry(place.id.clone()).or_default().insert(feed.clone());
        self.places.insert(feed.clone(), place);
    }

    /// Forgets a feed; and its document, where no other feed is in it.
    pub fn detach(&mut self, feed: &FeedName) {
        let Some(place) = self.places.remove(feed) else { return };
        let Some(source) = self.sources.get_mut(&place.document) else { return };
        source.suspects.remove(feed);
        if let Some(feeds) = source.feeds.get_mut(&place.id) {
            feeds.remove(feed);
            if feeds.is_empty() {
                source.feeds.remove(&place.id);
            }
        }
        if source.feeds.is_empty() {
            self.sources.remove(&place.document);
        }
    }

    /// Whether every change since a poll that began at `begun` will be listed.
    pub fn covers(&self, feed: &FeedName, begun: Instant) -> bool {
        let source = self.places.get(feed).and_then(|place| self.sources.get(&place.document));
        source.and_then(|source| source.good_since).is_some_and(|since| begun >= since)
    }

    /// Takes in that a covered feed was found changed though no document had listed it.
    pub fn suspect(&mut self, feed: &FeedName) {
        let Some(place) = self.places.get(feed) else { return };
        if let Some(source) = self.sources.get_mut(&place.document) {
            source.suspects.entry(feed.clone()).or_insert(0);
        }
    }

    /// When something is to be asked, or a document covers nothing any more.
    pub fn wake_at(&self) -> Option<Instant> {
        let asked = self.sources.values().filter(|source| self.may_look(source));
        let lapses = self.sources.values().filter_map(SupSource::covers_until);
        asked.map(|source| source.due).chain(lapses).min()
    }

    /// Whether there is room for a look at a document.
    fn may_look(&self, source: &SupSource) -> bool {
        let slow = self.looking.values().filter(|look| !look.is_quick).count();
        source.look.is_some()
            && self.looking.len() < MAX_LOOKS_AT_ONCE
            && (source.is_quick || slow < MAX_SLOW_LOOKS_AT_ONCE)
            && !self.looking.values().any(|look| Some(&look.host) == source.host.as_ref())
    }

    /// The next document to ask for, by its address as it was announced: the one that is due for longest of those whose
    /// host is not asked for another one. `host_of`: the host of an address.
    pub fn take_due(
        &mut self,
        now: Instant,
        host_of: impl Fn(&str) -> Arc<str>,
    ) -> Option<(String, Begun)> {
        for source in self.sources.values_mut().filter(|source| source.due <= now) {
            if let (Some(look), None) = (&source.look, &source.host) {
                source.host = Some(host_of(&look.question.address));
            }
        }
        let due = |source: &SupSource| source.due <= now && self.may_look(source);
        let due = self.sources.iter().filter(|(_, source)| due(source));
        let address = due.min_by_key(|(_, source)| source.due)?.0.clone();
        let source = self.sources.get_mut(&address)?;
        let mut look = source.look.take()?;
        // What else it lists is nothing to remember.
        let ids: Arc<BTreeSet<SupId>> = Arc::new(source.feeds.keys().cloned().collect());
        look.question.only(&ids);
        look.follower.keep_only(&ids);
        let (host, is_quick) = (source.host.clone()?, source.is_quick);
        self.looking.insert(address.clone(), LookInFlight { host, is_quick, since: now });
        Some((address, Begun(look)))
    }

    /// Ends the cover of what was not confirmed in time; the feeds that are to be polled.
    pub fn lapse(&mut self, now: Instant) -> Vec<AnnouncedFeed> {
        let is_late = |source: &&mut SupSource| source.covers_until().is_some_and(|end| end <= now);
        let late = self.sources.values_mut().filter(is_late).flat_map(|source| {
            source.good_since = None;
            source.all("its SUP document was not read in time")
        });
        late.collect()
    }

    /// Takes in that a look must wait, for its host wants to be left alone for so long; the feeds that
    /// are to be polled, for nobody tells of their changes meanwhile.
    pub fn put_off(
        &mut self,
        address: &str,
        begun: Begun,
        left: Duration,
        now: Instant,
    ) -> Vec<AnnouncedFeed> {
        self.looking.remove(address);
        let Some(source) = self.sources.get_mut(address) else { return Vec::new() };
        source.look = Some(begun.0);
        source.due = now + left;
        if left > source.period && source.good_since.take().is_some() {
            return source.all("the host of its SUP document asked for a pause (Retry-After)");
        }
        Vec::new()
    }

    /// Takes in what came of a look at a document; the feeds that are to be polled now. `least`:
    /// the shortest interval at which feeds are polled.
    pub fn looked(
        &mut self,
        address: &str,
        looked: Option<Looked>,
        least: Duration,
        now: Instant,
    ) -> Vec<AnnouncedFeed> {
        let begun = self.looking.remove(address).map_or(now, |look| look.since);
        // Its last feed may have left meanwhile.
        let Some(source) = self.sources.get_mut(address) else { return Vec::new() };
        source.is_quick = now - begun < QUICK;
        let Some(Looked { look, result }) = looked else {
            *source = SupSource {
                feeds: std::mem::take(&mut source.feeds),
                ..SupSource::new(address, source.leads.clone(), now)
            };
            source.due = now + PAUSE_LIMIT;
            return source.all("reading its SUP document failed");
        };
        source.look = Some(look);
        let told = match result {
            Ok(told) => told,
            Err(error) => return source.failed(&error, now),
        };
        source.failures = 0;
        if source.stands_still(told.as_ref(), now) {
            source.due = now + source.period;
            if source.good_since.take().is_some() {
                tracing::warn!(
                    address = ShownAddress::new(address, None).text(),
                    "a SUP document stands still: its updated_time is not newer"
                );
                return source.all("its SUP document stands still");
            }
            return Vec::new();
        }
        // A document that is the same as before tells nothing, and leaves nothing out.
        let told = told.unwrap_or_else(|| Told {
            updated: source.updated.unwrap_or(Time::from_unix(0)),
            listed: BTreeSet::new(),
            missed: false,
            period: u32::try_from(source.period.as_secs()).unwrap_or(u32::MAX),
            available: BTreeMap::new(),
        });
        source.settle_on(&told, least);
        source.due = now + source.period;
        source.confirmed = now;
        let first = source.good_since.is_none();
        if first || told.missed {
            source.good_since = Some(now);
        }
        if told.missed {
            return source
                .all("its SUP document does not reach back to the last one that was read");
        }
        let listed = told.listed.iter().filter_map(|id| source.feeds.get(id)).flatten();
        let reason = "its SUP document lists a change";
        // The first document lists what was read already, and each feed is read once more anyway.
        let listed: Vec<_> = listed
            .filter(|_| !first)
            .map(|feed| AnnouncedFeed { feed: feed.clone(), listed: true, reason })
            .collect();
        for wanted in &listed {
            source.suspects.remove(&wanted.feed);
        }
        let mut all = listed;
        all.extend(self.judge(address, now));
        all
    }

    /// Holds against a document what it has left out.
    fn judge(&mut self, address: &str, now: Instant) -> Vec<AnnouncedFeed> {
        let Some(source) = self.sources.get_mut(address) else { return Vec::new() };
        for documents in source.suspects.values_mut() {
            *documents = documents.saturating_add(1);
        }
        let proven = source.suspects.iter().filter(|(_, documents)| **documents > DOCUMENTS_GIVEN);
        let proven: Vec<FeedName> = proven.map(|(feed, _)| feed.clone()).collect();
        source.lies = source.lies.saturating_add(u32::try_from(proven.len()).unwrap_or(u32::MAX));
        let reason = "its SUP document left out a change, and is not believed for a day";
        let gone = source.lies >= LIES_BORNE;
        let wanted = if gone {
            source.all(reason)
        } else {
            let feeds = proven.iter();
            feeds.map(|feed| AnnouncedFeed { feed: feed.clone(), listed: false, reason }).collect()
        };
        let shown = ShownAddress::new(address, None);
        for feed in proven {
            tracing::warn!(%feed, address = shown.text(), "a SUP document left out a change of a feed");
            self.feeds.insert(feed, now + DISTRUST);
        }
        if gone {
            self.documents.insert(address.to_owned(), now + DISTRUST);
        }
        for wanted in &wanted {
            self.detach(&wanted.feed);
        }
        self.documents.retain(|_, until| *until > now);
        self.feeds.retain(|_, until| *until > now);
        wanted
    }
}

impl SupSource {
    /// Takes in that the document was not read. A publisher that is busy, or says when to come back,
    /// is not tried quickly; nothing is left to its document then.
    fn failed(&mut self, error: &SupError, now: Instant) -> Vec<AnnouncedFeed> {
        self.failures = self.failures.saturating_add(1);
        let asked = match error {
            SupError::Fetch(error) => error.retry(),
            SupError::Read(_) | SupError::Defect(_) => Retry::Backoff,
        };
        if asked != Retry::Backoff {
            self.failures = self.failures.max(FAILURES_BORNE);
        }
        let blind = self.failures >= FAILURES_BORNE;
        let pause = if blind {
            let doubled = 1 << self.failures.saturating_sub(FAILURES_BORNE).min(6);
            let asked = if let Retry::After(wait) = asked { wait } else { Duration::ZERO };
            self.period.saturating_mul(doubled).max(asked)
        } else {
            (QUICK_TRY * self.failures).min(self.period)
        };
        self.due = now + pause.clamp(PAUSE_LEAST, PAUSE_LIMIT.max(self.period));
        // Once it is known that it fails, it needs not be told each time.
        if self.failures <= FAILURES_BORNE {
            tracing::warn!(%error, failures = self.failures, "a SUP document was not read");
        } else {
            tracing::debug!(%error, failures = self.failures, "a SUP document was not read");
        }
        if blind && self.good_since.take().is_some() {
            return self.all("its SUP document cannot be read");
        }
        Vec::new()
    }

    /// Takes in `updated_time`; whether it has not gone on for too long. `None`: the same document as
    /// before.
    fn stands_still(&mut self, told: Option<&Told>, now: Instant) -> bool {
        let updated = told.map(|told| told.updated);
        // One that went back is another document, and told of as a gap.
        let goes_on = updated.is_some_and(|updated| self.updated != Some(updated));
        if goes_on {
            (self.updated, self.went_on, self.standstills) = (updated, now, 0);
        } else {
            self.standstills = self.standstills.saturating_add(1);
        }
        self.standstills > STANDSTILLS_BORNE && now - self.went_on >= STANDSTILL_LEAST
    }

    /// Chooses the document to ask for: of the shortest period that is not shorter than feeds are
    /// polled, or else of the longest there is.
    fn settle_on(&mut self, told: &Told, least: Duration) {
        let wanted = u32::try_from(least.as_secs()).unwrap_or(u32::MAX);
        let better = told.available.range(wanted..).next().or(told.available.last_key_value());
        let period = match better {
            Some((period, address)) => {
                if let Some(look) = self.look.as_mut().filter(|_| *period != told.period) {
                    look.question = look.question.of_another(address.as_str());
                    self.host = None;
                }
                *period
            }
            None => told.period,
        };
        self.period = Duration::from_secs(u64::from(period)).max(PAUSE_LEAST);
    }
}

#[cfg(test)]
mod tests;
