//! The SUP documents that feeds are announced in: when each is asked for, and what it lists. Decisions only: the clock
//! and the network are the scheduler's.
//!
//! A feed is *covered* once it was polled after its document was read, while that is read in time and is relied on
//! ([`PushTrust`]): its polls are fewer then. Documents take turns, one at a time of each host and the one first that
//! is due for longest, so that slow ones of one publisher keep no other from being read.

use super::sup::{LOOK_TIME, Looked, SupError, SupLook, Told};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FAIR_TIME, FeedName, PushTrust, PushedPoll, SupId, Time, ToldChange};
use tidegate_core::pause::GrowingPause;
use tidegate_core::sup::SupAnnouncement;
use tidegate_net::fetch::{LeadScope, Retry};
use tokio::time::Instant;

/// The most SUP documents that are followed; feeds of further ones are polled each for itself.
pub const MAX_DOCUMENTS: usize = 256;
/// The most documents that are asked for at once, each of another host.
pub const MAX_LOOKS_AT_ONCE: usize = 8;
/// After so many failures in a row a document covers nothing any more. They follow each other
/// quickly: an outage must not blind for longer than about a period.
pub const FAILURES_BORNE: u32 = 3;
/// The pause after failures.
const RETRY: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(5), Duration::from_secs(3600));
/// The shortest pause between two looks.
const PERIOD_LEAST: Duration = Duration::from_secs(1);
/// The period of a document that was not read yet.
const PERIOD_USUAL: Duration = Duration::from_secs(60);

/// A feed that is to be polled because of what a document told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedFeed {
    pub feed: FeedName,
    /// What the document lists of it; where nothing, it is merely not covered any more.
    pub told: ToldChange,
    /// Why.
    pub reason: &'static str,
}

#[derive(Debug)]
struct SupSource {
    /// `None` while it is asked for.
    look: Option<SupLook>,
    /// The host of the address that is asked for; `None` until it is due.
    host: Option<Arc<str>>,
    /// On whose word it is asked for: that of the feed that named it first.
    leads: LeadScope,
    feeds: BTreeMap<SupId, BTreeSet<FeedName>>,
    due: Instant,
    period: Duration,
    /// Since when everything that changes is known to be listed, and when that was confirmed last.
    read: Option<(Instant, Instant)>,
    failures: u32,
}

/// The SUP documents that feeds are announced in.
#[derive(Debug, Default)]
pub struct SupPolls {
    sources: BTreeMap<String, SupSource>,
    places: HashMap<FeedName, (SupAnnouncement, PushTrust)>,
    /// The hosts that are asked, by the address of the document as it was announced.
    looking: HashMap<String, Arc<str>>,
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
        let before = self.places.get(feed).map(|(place, _)| place);
        if before == place.as_ref().map(|(place, _)| place) {
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
        self.places.insert(feed.clone(), (place, PushTrust::default()));
    }

    /// Forgets a feed; and its document, where no other feed is in it.
    pub fn detach(&mut self, feed: &FeedName) {
        let Some((place, _)) = self.places.remove(feed) else { return };
        let Some(source) = self.sources.get_mut(&place.document) else { return };
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

    /// Takes in a successful poll of a feed that began at `begun`; whether every change since will be listed.
    pub fn polled(
        &mut self,
        feed: &FeedName,
        poll: PushedPoll,
        begun: Instant,
        (now, time): (Instant, Time),
    ) -> bool {
        let Some((place, trust)) = self.places.get_mut(feed) else { return false };
        let Some(source) = self.sources.get(&place.document) else { return false };
        trust.polled(poll, source.fair_time(), time);
        let in_time = |last: Instant| now < last + source.period * 2 + LOOK_TIME;
        let is_read = source.read.is_some_and(|(since, last)| begun >= since && in_time(last));
        is_read && trust.is_relied_on(time)
    }

    /// When something is to be asked.
    pub fn wake_at(&self) -> Option<Instant> {
        let asked = self.sources.values().filter(|source| self.may_look(source));
        asked.map(|source| source.due).min()
    }

    /// Whether there is room for a look at a document.
    fn may_look(&self, source: &SupSource) -> bool {
        source.look.is_some()
            && self.looking.len() < MAX_LOOKS_AT_ONCE
            && !self.looking.values().any(|host| Some(host) == source.host.as_ref())
    }

    /// The next document to ask for, by its address as it was announced. `host_of`: the host of an address.
    pub fn take_due(
        &mut self,
        now: Instant,
        host_of: impl Fn(&str) -> Arc<str>,
    ) -> Option<(String, SupLook)> {
        for source in self.sources.values_mut().filter(|source| source.due <= now) {
            if let (Some(look), None) = (&source.look, &source.host) {
                source.host = Some(host_of(&look.question.address));
            }
        }
        let due = |source: &SupSource| source.due <= now && self.may_look(source);
        let due = self.sources.iter().filter(|(_, source)| due(source));
        let address = due.min_by_key(|(_, source)| source.due)?.0.clone();
        let source = self.sources.get_mut(&address)?;
        let host = source.host.clone()?;
        let mut look = source.look.take()?;
        look.only(source.feeds.keys().cloned().collect());
        self.looking.insert(address.clone(), host);
        Some((address, look))
    }

    /// Takes in that a look must wait, for its host wants to be left alone for so long.
    pub fn put_off(&mut self, address: &str, look: SupLook, left: Duration, now: Instant) {
        self.looking.remove(address);
        if let Some(source) = self.sources.get_mut(address) {
            (source.look, source.due) = (Some(look), now + left);
        }
    }

    /// Takes in what came of a look at a document; the feeds that are to be polled now. `least`:
    /// the shortest interval at which feeds are polled.
    pub fn looked(
        &mut self,
        address: &str,
        looked: Option<Looked>,
        least: Duration,
        (now, time): (Instant, Time),
    ) -> Vec<AnnouncedFeed> {
        self.looking.remove(address);
        // Its last feed may have left meanwhile.
        let Some(source) = self.sources.get_mut(address) else { return Vec::new() };
        let Some(Looked { look, result }) = looked else {
            let feeds = std::mem::take(&mut source.feeds);
            *source = SupSource::new(address, source.leads.clone(), now + RETRY.most);
            source.feeds = feeds;
            return source.all("reading its SUP document failed");
        };
        source.look = Some(look);
        // A document that is the same as before tells nothing.
        let told = match result {
            Ok(told) => told.unwrap_or_default(),
            Err(error) => return source.failed(&error, now),
        };
        source.failures = 0;
        source.settle_on(&told, least);
        source.due = now + source.period;
        let since = source.read.map(|(since, _)| since);
        source.read = Some((since.filter(|_| !told.missed).unwrap_or(now), now));
        if told.missed {
            return source
                .all("its SUP document does not reach back to the last one that was read");
        }
        // The first document lists what was read already, and each feed is read once more anyway.
        if since.is_none() {
            return Vec::new();
        }
        let fair = source.fair_time();
        let listed = told.listed.iter().filter_map(|id| source.feeds.get(id)).flatten();
        let listed = listed.filter_map(|feed| {
            let (_, trust) = self.places.get_mut(feed)?;
            let (told, reason) = (trust.pushed(fair, time), "its SUP document lists a change");
            Some(AnnouncedFeed { feed: feed.clone(), told, reason })
        });
        listed.collect()
    }
}

impl SupSource {
    fn new(address: &str, leads: LeadScope, due: Instant) -> Self {
        Self {
            look: Some(SupLook::new(address, leads.clone())),
            host: None,
            leads,
            feeds: BTreeMap::new(),
            due,
            period: PERIOD_USUAL,
            read: None,
            failures: 0,
        }
    }

    /// How long after a poll found a change the document may still list it.
    fn fair_time(&self) -> Duration {
        FAIR_TIME.max(self.period * 2)
    }

    fn all(&self, reason: &'static str) -> Vec<AnnouncedFeed> {
        let (feeds, told) = (self.feeds.values().flatten(), ToldChange::None);
        feeds.map(|feed| AnnouncedFeed { feed: feed.clone(), told, reason }).collect()
    }

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
        let is_blind = self.failures >= FAILURES_BORNE;
        let doubled = RETRY.after(self.failures);
        let wait = if let Retry::After(wait) = asked { wait } else { Duration::ZERO };
        let least = if is_blind { self.period } else { PERIOD_LEAST };
        self.due = now + doubled.max(wait).min(RETRY.most).max(least);
        // Once it is known that it fails, it needs not be told each time.
        if self.failures <= FAILURES_BORNE {
            tracing::warn!(%error, failures = self.failures, "a SUP document was not read");
        } else {
            tracing::debug!(%error, failures = self.failures, "a SUP document was not read");
        }
        if is_blind && self.read.take().is_some() {
            return self.all("its SUP document cannot be read");
        }
        Vec::new()
    }

    /// Chooses the document to ask for: of the shortest period that is not shorter than feeds are
    /// polled, or else of the longest there is.
    fn settle_on(&mut self, told: &Told, least: Duration) {
        let Some(own) = told.period else { return };
        let wanted = u32::try_from(least.as_secs()).unwrap_or(u32::MAX);
        let better = told.available.range(wanted..).next().or(told.available.last_key_value());
        let period = match better {
            Some((period, address)) => {
                if let Some(look) = self.look.as_mut().filter(|_| *period != own) {
                    look.question = look.question.of_another(address.as_str());
                    self.host = None;
                }
                *period
            }
            None => own,
        };
        self.period = Duration::from_secs(u64::from(period)).max(PERIOD_LEAST);
    }
}

#[cfg(test)]
mod tests;
