//! The gateway's core in front of the publisher, polled as the gateway polls.

use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    BodyPrints, Change, Completeness, EndpointId, FeedDocument, FeedName, FeedOptions, FeedState,
    IndexUpdate, Item, LedgerEntry, ReindexedItem, Snapshot, Tick, Time, VERSIONS_PER_DAY, Without,
};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Observation, Verdict};
use tidegate_judge::same_item;
use tidegate_store::{Select, Store};
use xxhash_rust::xxh3::xxh3_128;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A verdict over a part of the ledger is made no more often.
const LOOKS_MOST: usize = 5;

/// One feed in a store in memory.
pub struct Gate {
    store: Store,
    feed: FeedName,
    options: FeedOptions,
    same: u32,
    /// The document that was taken in last and is not held; whether it was full.
    last: Option<(u128, bool)>,
}

/// What came of one poll.
pub struct Seen {
    pub change: Option<Change>,
    pub held: Option<String>,
    /// Whether a document was taken in whole or in part; `None` where it could not be read.
    pub taken: Option<Completeness>,
}

/// Nothing in memory has to be waited for.
fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

/// The rule that is switched off, by its name.
fn without() -> Without {
    Without(std::env::var("TIDEGATE_PUBLISHERS_WITHOUT").into_iter().collect())
}

impl Gate {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_unix(0)));
        let store =
            Store::in_memory(Some(EndpointId::own("gate.example").unwrap()), clock).unwrap();
        Self {
            store,
            feed: FeedName::new("news").unwrap(),
            options: FeedOptions { without: without(), ..FeedOptions::default() },
            same: 0,
            last: None,
        }
    }

    pub fn snapshot(&self) -> Option<Snapshot> {
        ready(self.store.snapshot(&self.feed)).unwrap()
    }

    pub fn state(&self) -> Option<FeedState> {
        ready(self.store.state(&self.feed)).unwrap()
    }

    /// The items of the reader view.
    pub fn reader(&self) -> Vec<Item> {
        let view = ready(self.store.view(&self.feed, Select::Current)).unwrap();
        view.map(|view| view.items).unwrap_or_default()
    }

    fn round<'a>(&'a self, snapshot: Option<&'a Snapshot>, now: Time) -> Observation<'a> {
        Observation {
            feed: &self.feed,
            url: "",
            endpoint: self.store.endpoint(),
            options: &self.options,
            snapshot,
            now,
            aged: now,
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            window: 30 * DAY,
            versions_per_day: VERSIONS_PER_DAY,
            items: tidegate_judge::record::ITEMS_KEPT,
            archives: tidegate_judge::archive::Policy::default(),
        }
    }

    /// What is decided over the items that are not settled, and those that the document asks for. Of the
    /// whole ledger the same must be decided.
    fn decided(
        &self,
        now: Time,
        document: Option<&FeedDocument<'_>>,
        decide: impl Fn(&Observation<'_>) -> Verdict,
    ) -> Verdict {
        let whole = self.snapshot();
        let mut verdict = decide(&self.round(whole.as_ref(), now));
        let Some(reader) = ready(self.store.pin(&self.feed)).unwrap() else {
            // All items have keys from the beginning, however few there are.
            if let Some(change) = &mut verdict.change {
                let keys = |known: &LedgerEntry| ReindexedItem {
                    id: known.id.clone(),
                    added: same_item::item_keys(known),
                    removed: Vec::new(),
                };
                let items = change.known.iter().map(keys).collect();
                let shown: &[_] = change.order.as_deref().unwrap_or_default();
                let ids = change.known.iter().map(|known| known.id.clone());
                let unsettled = ids.filter(|id| !shown.contains(id)).collect();
                change.index = IndexUpdate { unsettled: Some(unsettled), items };
            }
            return verdict;
        };
        let cutoff = Tick::at(now.minus(30 * DAY));
        let mut snapshot = ready(reader.unsettled(cutoff)).unwrap().unwrap();
        let read = |snapshot: &Snapshot, wanted| ready(reader.read_more(snapshot, wanted)).unwrap();
        if let Some(document) = document {
            let wanted = record::ledger_query(&self.round(Some(&snapshot), now), &[document]);
            snapshot = read(&snapshot, wanted).unwrap_or(snapshot);
        }
        for looks in 1..=LOOKS_MOST {
            let round = self.round(Some(&snapshot), now);
            let of_part = decide(&round);
            let wanted = record::wanted_after(&round, &of_part, looks);
            if let Some(more) = read(&snapshot, wanted) {
                snapshot = more;
                continue;
            }
            assert_eq!(of_part, verdict, "over {} items", snapshot.known.len());
            return of_part;
        }
        panic!("a verdict over a part of the ledger never ends");
    }

    fn decide(
        &mut self,
        now: Time,
        document: Option<&FeedDocument<'_>>,
        decide: impl Fn(&Observation<'_>) -> Verdict,
    ) -> Seen {
        let mut verdict = self.decided(now, document, decide);
        let change = verdict.change.take();
        if let Some(change) = change.clone() {
            ready(self.store.commit(change)).unwrap();
            self.same = 0;
        }
        Seen { change, held: verdict.held, taken: None }
    }

    /// A poll that finds these bytes.
    pub fn poll(&mut self, bytes: &[u8], now: Time) -> Option<Seen> {
        let body = xxh3_128(bytes);
        if let Some((_, full)) = self.last.filter(|(last, _)| *last == body) {
            return full.then(|| self.again(now)).flatten();
        }
        let limits = Limits::default();
        let unread = Seen { change: None, held: None, taken: None };
        let Ok(decoded) = parse::decode(bytes, None, &limits) else { return Some(unread) };
        let Ok(document) = parse::document(&decoded.text, None, &limits) else {
            return Some(unread);
        };
        let completeness = document.completeness.clone();
        let prints = BodyPrints { wire: body, body };
        let take_in = |round: &Observation<'_>| record::take_in(round, &document, prints).unwrap();
        let seen = self.decide(now, Some(&document), take_in);
        let full = completeness == Completeness::Full;
        self.last = seen.held.is_none().then_some((body, full));
        Some(Seen { taken: Some(completeness), ..seen })
    }

    /// A poll that finds the document unchanged; as in the gateway only what is ripe is looked at.
    fn again(&mut self, now: Time) -> Option<Seen> {
        self.same += 1;
        let ripe = self.state()?.next_decision_at.is_some_and(|at| at <= now);
        let same = self.same;
        ripe.then(|| self.decide(now, None, |round| record::look_again(round, same).unwrap()))
    }
}
