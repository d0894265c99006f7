//! The gateway's core in front of the publisher, polled as the gateway polls.

use crate::support;
use futures_util::FutureExt;
use std::time::Duration;
use tidegate_core::model::{
    BodyPrints, Change, Completeness, FeedDocument, IndexUpdate, Item, LedgerEntry, ReindexedItem,
    Snapshot, Tick, Time, Without,
};
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record::{self, Observation, Verdict};
use tidegate_judge::same_item;
use tidegate_store::Select;
use xxhash_rust::xxh3::xxh3_128;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A verdict over a part of the ledger is made no more often.
const LOOKS_MOST: usize = 5;

pub struct Gate {
    inner: support::Gate,
    same: u32,
    /// The document that was taken in last and is not held; whether it was full.
    last: Option<(u128, bool)>,
}

pub struct Seen {
    pub change: Option<Change>,
    pub held: Option<String>,
    /// Whether a document was taken in whole or in part; `None` where it could not be read.
    pub taken: Option<Completeness>,
}

fn ready<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

fn without() -> Without {
    Without(std::env::var("TIDEGATE_PUBLISHERS_WITHOUT").into_iter().collect())
}

impl Gate {
    pub fn new() -> Self {
        let mut inner = ready(support::Gate::new());
        inner.options.without = without();
        inner.url.clear();
        Self { inner, same: 0, last: None }
    }

    pub fn snapshot(&self) -> Option<Snapshot> {
        ready(self.inner.store.snapshot(&self.inner.feed)).unwrap()
    }

    pub fn reader(&self) -> Vec<Item> {
        let view = ready(self.inner.store.view(&self.inner.feed, Select::Current)).unwrap();
        view.map(|view| view.items).unwrap_or_default()
    }

    /// What is decided over the items that are not settled, and those that the document asks for. Of the
    /// whole ledger the same must be decided.
    fn decided(
        &self,
        document: Option<&FeedDocument<'_>>,
        decide: impl Fn(&Observation<'_>) -> Verdict,
    ) -> Verdict {
        let whole = self.snapshot();
        let gate = &self.inner;
        let mut verdict = decide(&gate.observation(whole.as_ref()));
        let Some(reader) = ready(gate.store.pin(&gate.feed)).unwrap() else {
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
        let cutoff = Tick::at(gate.now.minus(30 * DAY));
        let mut snapshot = ready(reader.unsettled(cutoff)).unwrap().unwrap();
        let read = |snapshot: &Snapshot, wanted| ready(reader.read_more(snapshot, wanted)).unwrap();
        if let Some(document) = document {
            let wanted = record::ledger_query(&gate.observation(Some(&snapshot)), &[document]);
            snapshot = read(&snapshot, wanted).unwrap_or(snapshot);
        }
        for looks in 1..=LOOKS_MOST {
            let observation = gate.observation(Some(&snapshot));
            let of_part = decide(&observation);
            let wanted = record::wanted_after(&observation, &of_part, looks);
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
        document: Option<&FeedDocument<'_>>,
        decide: impl Fn(&Observation<'_>) -> Verdict,
    ) -> Seen {
        let verdict = self.decided(document, decide);
        ready(self.inner.commit(&verdict));
        if verdict.change.is_some() {
            self.same = 0;
        }
        Seen { change: verdict.change, held: verdict.held, taken: None }
    }

    pub fn poll(&mut self, bytes: &[u8], now: Time) -> Option<Seen> {
        self.inner.now = now;
        let body = xxh3_128(bytes);
        if let Some((_, full)) = self.last.filter(|(last, _)| *last == body) {
            return full.then(|| self.again()).flatten();
        }
        let limits = Limits::default();
        let unread = Seen { change: None, held: None, taken: None };
        let Ok(decoded) = parse::decode(bytes, None, &limits) else { return Some(unread) };
        let Ok(document) = parse::document(&decoded.text, None, &limits) else {
            return Some(unread);
        };
        let completeness = document.completeness.clone();
        let prints = BodyPrints { wire: body, body };
        let take_in = |observation: &Observation<'_>| {
            record::take_in(observation, &document, prints).unwrap()
        };
        let seen = self.decide(Some(&document), take_in);
        let full = completeness == Completeness::Full;
        self.last = seen.held.is_none().then_some((body, full));
        Some(Seen { taken: Some(completeness), ..seen })
    }

    /// A poll that finds the document unchanged; as in the gateway only what is ripe is looked at.
    fn again(&mut self) -> Option<Seen> {
        self.same += 1;
        let (now, same) = (self.inner.now, self.same);
        let state = ready(self.inner.store.state(&self.inner.feed)).unwrap()?;
        let ripe = state.next_decision_at.is_some_and(|at| at <= now);
        ripe.then(|| self.decide(None, |observation| record::decide_pending(observation, same)))
    }
}
