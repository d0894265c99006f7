//! Which feeds this gateway polls, where several gateways poll those of one store: the ones whose domains it owns. The
//! scheduler compares what it has with the list of feeds and with the gateways that live; a feed that it gains is read
//! from the store, one that it loses is dropped after the round in flight.

use super::feed::{Departure, ResumeBasis};
use super::rounds::poll_for_others;
use super::{CommandReply, MAX_WAITING, PollScheduler, SLICE, answer};
use crate::domains::{is_polled, ownership_key};
use crate::error::PollError;
use crate::reason::PlannedPoll;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Attempt, FeedName, FeedRecord, FeedStanding, PollState, Time};
use tidegate_store::{FeedList, Gateways, Store, StoreError, in_words};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;

/// Over what time polls are spread that are due where others have polled, for each feed and at most: they have waited for
/// long already.
pub(super) const TAKEOVER_SPREAD: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_secs(10));

/// What the store knows of a feed that polling begins with.
pub(crate) struct StoredFeed {
    pub(crate) record: Arc<FeedRecord>,
    /// What polling remembers of it; what was learned of another address says nothing of this one.
    pub(crate) state: Option<PollState>,
    /// When something that is pending can be decided, by the running time.
    pub(crate) pending: Option<Time>,
}

impl StoredFeed {
    /// Reads what is pending in a feed.
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

/// Poll states by their feeds.
pub(super) fn by_feed(states: Vec<PollState>) -> HashMap<FeedName, PollState> {
    states.into_iter().map(|state| (state.feed.clone(), state)).collect()
}

/// The polls in flight of feeds that other gateways own, each with the poll to make after it, and who waits for that.
type ForeignPolls = Mutex<BTreeMap<FeedName, Option<(StoredFeed, Vec<CommandReply>)>>>;

/// The feeds that this gateway owns.
pub(super) struct OwnedFeeds {
    pub(super) gateways: Arc<Gateways>,
    changes: watch::Receiver<u64>,
    /// The feeds as they were when they were last compared.
    pub(super) list: Arc<FeedList>,
    /// Whether other gateways may own feeds since, so that every feed is compared.
    compares_all: bool,
    compare_at: Instant,
    comparing: JoinSet<Result<ListComparison, StoreError>>,
    /// The feeds that were polled here because of pushes, though others own them, and when.
    pushed: BTreeMap<FeedName, Instant>,
    foreign: Arc<ForeignPolls>,
}

/// What the list of feeds has that the scheduler has not, or has otherwise.
pub(super) struct ListComparison {
    list: Arc<FeedList>,
    is_of_all: bool,
    /// Feeds of this gateway that are not here, by name.
    gained: Vec<StoredFeed>,
    /// The marks of large documents of these.
    marks: Vec<Attempt>,
    /// Records of feeds that are here.
    changed: Vec<Arc<FeedRecord>>,
    /// Feeds that are here, and that another gateway owns, or that are not in the list.
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

    /// Waits for what a comparison has found; for ever, where several gateways poll not.
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
                // A gateway that loses feeds writes down what it remembers of them first.
                owned.compare_at = Instant::now() + Duration::from_secs(2);
                None
            }
            else => std::future::pending().await,
        }
    }
}

/// Compares the list of feeds with the names that are `here`.
async fn compare(
    store: Arc<Store>,
    gateways: Arc<Gateways>,
    (old, is_of_all): (Arc<FeedList>, bool),
    here: HashSet<FeedName>,
) -> Result<ListComparison, StoreError> {
    store.catch_up().await?;
    let list = store.feed_list().await?;
    // There may be a million.
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
    /// Whether this gateway is the owner of a feed.
    pub(super) fn owns(&self, record: &FeedRecord) -> bool {
        self.owned.as_ref().is_none_or(|owned| owned.gateways.owns(&ownership_key(record)))
    }

    /// Follows which gateways live, and the list of feeds.
    pub(super) fn follow_gateways(&mut self) {
        let now = Instant::now();
        let Some(owned) = &mut self.owned else { return };
        let Some(is_outdated) = self.context.look(now) else { return };
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
            self.context.table.unsaved().clear();
            self.context.silence.deal();
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

    /// The feeds of which polling knows.
    fn known_here(&self) -> HashSet<FeedName> {
        self.context.table.all().into_iter().map(|(name, _)| name).collect()
    }

    /// Takes in what a comparison has found.
    pub(super) fn take_in(&mut self, compared: Result<ListComparison, String>) {
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

    /// Polls feeds that were gained. `is_moved`: because other gateways own feeds since, not because they are new.
    fn take_over(&mut self, feeds: Vec<StoredFeed>, marks: Vec<Attempt>, is_moved: bool) {
        let now = self.context.clock.now();
        self.context.attempts.take_over(marks);
        let reason = "it was due when this gateway took it over";
        let (step, most) = TAKEOVER_SPREAD;
        let spread = step.saturating_mul(u32::try_from(feeds.len()).unwrap_or(u32::MAX)).min(most);
        let basis = ResumeBasis { now, back: Duration::ZERO, reason, spread };
        for stored in feeds {
            // What ends here first is taken over with the next comparison; what came by a command is here.
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

    /// Polls a feed once that another gateway owns, which sees in the store what came of it. `reply`: who waits for that;
    /// `None`: a push tells of a change.
    pub(crate) fn poll_once(&mut self, stored: StoredFeed, reply: Option<CommandReply>) {
        let (name, at) = (stored.record.name.clone(), Instant::now());
        let is_push = reply.is_none();
        let mut callers = Vec::from_iter(reply);
        let Some(owned) = &mut self.owned else { return answer(callers, &Err(PollError::Unknown)) };
        if is_push {
            // One poll follows another at such intervals, however often it is pushed.
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
            // Its request has begun: one more poll, after it, answers all who come meanwhile.
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

/// The next poll of a foreign feed; `None`: nothing asks for one, and none is in flight any more.
fn next_foreign(polls: &ForeignPolls, name: &FeedName) -> Option<(StoredFeed, Vec<CommandReply>)> {
    let mut polls = polls.lock();
    let next = polls.get_mut(name).and_then(Option::take);
    if next.is_none() {
        polls.remove(name);
    }
    next
}
