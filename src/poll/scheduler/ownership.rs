//! Divides the polling of feeds among the gateways that share one store: each polls the feeds whose domains it owns.
//! The scheduler compares its feeds with the list in the store and with the live gateways. A gained feed is read from
//! the store; a lost one is dropped, and its round in flight cancelled.

use super::feed::{Departure, ResumeBasis};
use super::rounds::poll_for_others;
use super::{CommandReply, MAX_WAITING, PollScheduler, SLICE, answer};
use crate::domains::{is_polled, ownership_key};
use crate::error::PollError;
use crate::schedule::PlannedPoll;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Attempt, FeedName, FeedRecord, FeedStanding, PollState, Time};
use tidegate_store::{FeedList, Gateways, Store, StoreError, in_words};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

/// Spreads the due polls of feeds taken over: the time per feed and the most in all. It is short, because they have
/// waited long already.
pub(super) const TAKEOVER_SPREAD: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_secs(10));

/// What the store holds of a feed whose polling begins.
pub(crate) struct StoredFeed {
    pub(crate) record: Arc<FeedRecord>,
    /// Its poll state; `None` if there is none for the feed's current address.
    pub(crate) state: Option<PollState>,
    /// When a pending decision is due, by the running clock.
    pub(crate) pending: Option<Time>,
}

impl StoredFeed {
    /// Reads the time of the feed's next pending decision.
    pub(crate) async fn read(
        store: &Store,
        record: Arc<FeedRecord>,
        state: Option<PollState>,
    ) -> Result<Self, StoreError> {
        let state = state.filter(|state| state.url == record.url);
        let pending = match is_polled(&record) {
            true => store.state(&record.name).await?.and_then(|state| state.next_decision_at),
            false => None,
        };
        Ok(Self { record, state, pending })
    }
}

/// Indexes poll states by feed.
pub(super) fn by_feed(states: Vec<PollState>) -> HashMap<FeedName, PollState> {
    states.into_iter().map(|state| (state.feed.clone(), state)).collect()
}

/// Polls in flight of feeds that other gateways own; each with the poll to make next and the callers waiting for it.
type ForeignPolls = Mutex<BTreeMap<FeedName, Option<(StoredFeed, Vec<CommandReply>)>>>;

/// The feeds that this gateway owns among several.
pub(super) struct OwnedFeeds {
    pub(super) gateways: Arc<Gateways>,
    changes: watch::Receiver<u64>,
    /// The list of feeds at the last comparison.
    pub(super) list: Arc<FeedList>,
    /// Whether ownership may have changed, so that every feed is compared.
    compares_all: bool,
    compare_at: Instant,
    comparing: JoinSet<Result<ListComparison, StoreError>>,
    /// When pushes last caused a poll here of feeds that other gateways own.
    pushed: BTreeMap<FeedName, Instant>,
    foreign: Arc<ForeignPolls>,
}

/// The differences between the list of feeds and the scheduler's feeds.
pub(super) struct ListComparison {
    list: Arc<FeedList>,
    is_of_all: bool,
    /// Feeds owned here but not polled yet, ordered by name.
    gained: Vec<StoredFeed>,
    /// The attempt marks (unfinished large documents) of the gained feeds.
    marks: Vec<Attempt>,
    /// Changed records of feeds that are polled here.
    changed: Vec<Arc<FeedRecord>>,
    /// Feeds polled here that another gateway owns now, or that are no longer in the list.
    departed: Vec<(FeedName, Departure)>,
}

impl OwnedFeeds {
    pub(super) fn new(gateways: Arc<Gateways>) -> Self {
        let (changes, now) = (gateways.changes(), Instant::now());
        gateways.set_polls(true);
        Self {
            gateways,
            changes,
            list: Arc::default(),
            compares_all: false,
            compare_at: now,
            comparing: JoinSet::new(),
            pushed: BTreeMap::new(),
            foreign: Arc::default(),
        }
    }

    /// Waits for the result of a comparison; for ever if this gateway polls alone.
    pub(super) async fn next_event(
        owned: &mut Option<Box<Self>>,
    ) -> Option<Result<ListComparison, String>> {
        let Some(owned) = owned else { return std::future::pending().await };
        tokio::select! {
            Some(compared) = owned.comparing.join_next() => Some(match compared {
                Ok(compared) => compared.map_err(|error| in_words(&error)),
                Err(error) => Err(error.to_string()),
            }),
            Ok(()) = owned.changes.changed() => {
                owned.compares_all = true;
                // Leave time for the losing gateway to write its poll states first.
                owned.compare_at = Instant::now() + Duration::from_secs(2);
                None
            }
            else => std::future::pending().await,
        }
    }
}

/// Compares the list of feeds with the names in `here`, the feeds that the scheduler knows.
async fn compare(
    store: Arc<Store>,
    gateways: Arc<Gateways>,
    (old, is_of_all): (Arc<FeedList>, bool),
    here: HashSet<FeedName>,
) -> Result<ListComparison, StoreError> {
    store.catch_up().await?;
    let list = store.feed_list().await?;
    // Blocking, because there may be a million feeds.
    let compared = spawn_blocking(move || {
        let (mut gained, mut changed) = (Vec::new(), Vec::new());
        let removed = here.iter().filter(|name| !list.contains_key(*name));
        let mut departed: Vec<_> = removed.map(|name| (name.clone(), Departure::Removed)).collect();
        for (name, record) in list.iter() {
            let is_same = || old.get(name).is_some_and(|known| Arc::ptr_eq(known, record));
            if !is_of_all && is_same() {
                continue;
            }
            let is_owned = gateways.owns(&ownership_key(record));
            match (is_owned, here.contains(name)) {
                (true, true) if is_same() => {}
                (true, true) => changed.push(Arc::clone(record)),
                (true, false) if record.has_upstream() && record.standing != FeedStanding::Gone => {
                    gained.push(Arc::clone(record));
                }
                (false, true) => departed.push((name.clone(), Departure::Moved)),
                (_, false) => {}
            }
        }
        (list, gained, changed, departed)
    });
    let (list, records, changed, departed) = compared.await.map_err(|_| StoreError::Closed)?;
    let (mut gained, mut marks) = (Vec::with_capacity(records.len()), Vec::new());
    if !records.is_empty() {
        let names: Vec<FeedName> = records.iter().map(|record| record.name.clone()).collect();
        let mut states = by_feed(store.poll_states_of(&names).await?);
        marks = store.attempts().await?;
        marks.retain(|mark| names.binary_search(&mark.feed).is_ok());
        for record in records {
            let state = states.remove(&record.name);
            gained.push(StoredFeed::read(store.as_ref(), record, state).await?);
        }
    }
    Ok(ListComparison { list, is_of_all, gained, marks, changed, departed })
}

impl PollScheduler {
    /// Whether this gateway owns the feed of `record`.
    pub(super) fn owns(&self, record: &FeedRecord) -> bool {
        self.owned.as_ref().is_none_or(|owned| owned.gateways.owns(&ownership_key(record)))
    }

    /// Checks whether gateways joined or left and whether the list of feeds changed; starts a comparison if so.
    pub(super) fn follow_gateways(&mut self) {
        let now = Instant::now();
        let Some(owned) = &mut self.owned else { return };
        let Some(is_outdated) = self.context.check_silence(now) else { return };
        if is_outdated {
            tracing::warn!(
                "this gateway was silent, and others may have polled its feeds: they are read again"
            );
            owned.compares_all = true;
            owned.compare_at = now;
            owned.comparing.abort_all();
            for name in self.known_here() {
                self.depart(&name, Departure::Lost, oneshot::channel().0);
            }
            self.context.table.unsaved.lock().feeds.clear();
            self.context.silence.end_silence();
        }
        let store = Arc::clone(&self.context.store);
        let Some(owned) = &mut self.owned else { return };
        if owned.compare_at > now || !owned.comparing.is_empty() {
            return;
        }
        owned.compare_at = now + SLICE;
        let is_of_all = std::mem::take(&mut owned.compares_all);
        if !is_of_all && store.listed().is_some_and(|list| Arc::ptr_eq(&list, &owned.list)) {
            return;
        }
        let (gateways, old) = (Arc::clone(&owned.gateways), Arc::clone(&owned.list));
        let comparing = compare(store, gateways, (old, is_of_all), self.known_here());
        if let Some(owned) = &mut self.owned {
            owned.comparing.spawn(comparing);
        }
    }

    /// Returns the names of all feeds in the table, paused ones included.
    fn known_here(&self) -> HashSet<FeedName> {
        self.context.table.all().into_iter().map(|(name, _)| name).collect()
    }

    /// Applies the result of a comparison.
    pub(super) fn apply_comparison(&mut self, compared: Result<ListComparison, String>) {
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                tracing::warn!(error, "the list of feeds could not be compared; it is tried again");
                if let Some(owned) = &mut self.owned {
                    owned.compares_all = true;
                }
                return;
            }
        };
        let ListComparison { list, is_of_all, gained, marks, changed, departed } = compared;
        for (name, departure) in departed {
            self.depart(&name, departure, oneshot::channel().0);
        }
        for record in changed {
            let is_alike = self.with_feed(&record.name, |feed| feed.follows_alike(&record));
            match is_polled(&record) && is_alike == Some(true) {
                true => self.share_records(vec![record]),
                false => self.put(record, oneshot::channel().0),
            }
        }
        self.take_over(gained, marks, is_of_all);
        if let Some(owned) = &mut self.owned {
            owned.list = list;
        }
    }

    /// Begins to poll the gained feeds. `is_moved`: ownership changed, so that a feed without a state is not new.
    fn take_over(&mut self, feeds: Vec<StoredFeed>, marks: Vec<Attempt>, is_moved: bool) {
        let now = self.context.clock.now();
        self.context.attempts.take_over(marks);
        let reason = "it was due when this gateway took it over";
        let (step, most) = TAKEOVER_SPREAD;
        let spread = step.saturating_mul(u32::try_from(feeds.len()).unwrap_or(u32::MAX)).min(most);
        let basis = ResumeBasis { now, back: Duration::ZERO, reason, spread };
        for stored in feeds {
            // Compare again: the feed's departure may still be in progress, or a command added it meanwhile.
            if self.context.table.live(&stored.record.name).is_some() {
                if let Some(owned) = &mut self.owned {
                    owned.compares_all = true;
                }
                continue;
            }
            let is_new = !is_moved && stored.state.is_none();
            let reason = "the gateway that added it polls it for the first time";
            let elsewhere = now.plus(Duration::from_secs(20));
            let first = is_new.then(|| PlannedPoll::new(elsewhere, reason));
            self.resume_feed(stored, first, &basis);
        }
    }

    /// Polls a feed once on behalf of its owner, which finds the result in the store. `reply`: the caller that waits;
    /// `None` if a push caused the poll.
    pub(crate) fn poll_once(&mut self, stored: StoredFeed, reply: Option<CommandReply>) {
        let (name, at) = (stored.record.name.clone(), Instant::now());
        let is_push = reply.is_none();
        let mut callers = Vec::from_iter(reply);
        let Some(owned) = &mut self.owned else { return answer(callers, &Err(PollError::Unknown)) };
        if is_push {
            // Limits polls caused by pushes, however many arrive.
            let again = Duration::from_secs(5);
            owned.pushed.retain(|_, pushed| at.duration_since(*pushed) < again);
            if owned.pushed.contains_key(&name) {
                return;
            }
            owned.pushed.insert(name.clone(), at);
        }
        let too_many = Err(PollError::TooMany { limit: MAX_WAITING });
        let mut polls = owned.foreign.lock();
        if let Some(next) = polls.get_mut(&name) {
            // Its request has begun; one further poll after it answers all callers that arrive meanwhile.
            if next.as_ref().is_some_and(|(_, waiting)| waiting.len() >= MAX_WAITING) {
                return answer(callers, &too_many);
            }
            callers.extend(next.take().into_iter().flat_map(|(_, waiting)| waiting));
            *next = Some((stored, callers));
            return;
        }
        let Ok(permit) = Arc::clone(&self.asked_for).try_acquire_owned() else {
            return answer(callers, &too_many);
        };
        polls.insert(name.clone(), Some((stored, callers)));
        let (context, polls) = (Arc::clone(&self.context), Arc::clone(&owned.foreign));
        self.context.spawn(async move {
            let _permit = permit;
            while let Some((stored, callers)) = next_foreign(&polls, &name) {
                let polled = poll_for_others(&context, stored).await;
                answer(callers, &polled);
            }
        });
    }
}

/// Takes the next poll of a feed owned elsewhere. `None`: none is requested, and the entry is removed.
fn next_foreign(polls: &ForeignPolls, name: &FeedName) -> Option<(StoredFeed, Vec<CommandReply>)> {
    let mut polls = polls.lock();
    let next = polls.get_mut(name).and_then(Option::take);
    if next.is_none() {
        polls.remove(name);
    }
    next
}
