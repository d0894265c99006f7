//! Visits to feeds: work on each feed that changed since its last visit or had none for a while, a few at once. A visit
//! reads much of a feed, and there may be a million.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, Revision, Time};
use tidegate_store::{FeedList, Store, StoreError};
use tokio::task::{JoinError, JoinSet, yield_now};

/// The most feeds that are visited at once: half of what a store reads at a time, so that the rest is for polls.
const FEEDS_AT_ONCE: usize = 8;
/// After this number of feeds a pass over all lets others have their turn.
pub(super) const PASSED_OVER: usize = 1000;
/// The moments in the second half of the pause over which the next visits to feeds that stay as they are are spread.
const MOMENTS: u32 = 12;

/// A feed as it was when it was visited, and when it is visited again if it stays so.
struct FeedVisit {
    record: Arc<FeedRecord>,
    revision: Revision,
    again: Time,
}

/// The last visit to each feed.
#[derive(Default)]
pub(super) struct FeedVisits(HashMap<FeedName, FeedVisit>);

impl FeedVisits {
    /// Forgets those of feeds that are not there any more.
    pub(super) fn keep_only(&mut self, feeds: &FeedList) {
        self.0.retain(|name, _| feeds.contains_key(name));
    }

    /// Visits those of these feeds that have changed since their last visit, or had it about a `pause` ago. A visit says
    /// whether its work is done; it is tried again otherwise.
    pub(super) async fn visit_due<F>(
        &mut self,
        store: &dyn Store,
        feeds: &[Arc<FeedRecord>],
        (now, pause): (Time, Duration),
        visit: impl Fn(Arc<FeedRecord>) -> F,
    ) -> Result<(), StoreError>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut running = JoinSet::new();
        for (place, record) in feeds.iter().enumerate() {
            if place % PASSED_OVER == 0 {
                yield_now().await;
            }
            let state = store.state(&record.name).await?;
            let revision = state.map(|state| state.revision).unwrap_or_default();
            if !self.is_due(record, revision, now) {
                continue;
            }
            if running.len() >= FEEDS_AT_ONCE
                && let Some(ended) = running.join_next().await
            {
                self.note(ended);
            }
            let (half, moment) = (pause / 2, u32::try_from(place).unwrap_or_default() % MOMENTS);
            let again = now.plus(half + half / MOMENTS * moment);
            let begun = FeedVisit { record: Arc::clone(record), revision, again };
            let work = visit(Arc::clone(record));
            running.spawn(async move { (begun, work.await) });
        }
        while let Some(ended) = running.join_next().await {
            self.note(ended);
        }
        Ok(())
    }

    fn is_due(&self, record: &Arc<FeedRecord>, revision: Revision, now: Time) -> bool {
        self.0.get(&record.name).is_none_or(|last| {
            now >= last.again || last.revision != revision || last.record != *record
        })
    }

    fn note(&mut self, ended: Result<(FeedVisit, bool), JoinError>) {
        match ended {
            Ok((visit, true)) => drop(self.0.insert(visit.record.name.clone(), visit)),
            Ok((_, false)) => {}
            Err(error) => tracing::warn!(%error, "work on a feed broke off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidegate_core::model::{Format, Snapshot};
    use tidegate_poll::testing::double::{NOW, StoreDouble, name};

    const PAUSE: Duration = Duration::from_secs(86_400);

    /// The feeds that are visited at a time; `outcome`: the result of each visit.
    async fn visited(
        visits: &mut FeedVisits,
        store: &StoreDouble,
        now: Time,
        outcome: fn(&str) -> bool,
    ) -> Vec<String> {
        let feeds = store.feed_list().await.unwrap();
        let records: Vec<Arc<FeedRecord>> = feeds.values().cloned().collect();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let visit = |record: Arc<FeedRecord>| {
            let seen = Arc::clone(&seen);
            async move {
                seen.lock().unwrap().push(record.name.to_string());
                outcome(record.name.as_str())
            }
        };
        visits.visit_due(store, &records, (now, PAUSE), visit).await.unwrap();
        visits.keep_only(&feeds);
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort();
        seen
    }

    fn is_done(_: &str) -> bool {
        true
    }

    #[tokio::test]
    async fn a_feed_is_visited_again_once_it_has_changed_or_after_the_pause() {
        let (store, mut visits) = (StoreDouble::new(&["a", "b", "c"]), FeedVisits::default());
        assert_eq!(visited(&mut visits, &store, NOW, is_done).await, ["a", "b", "c"]);
        let early = NOW.plus(PAUSE / 2 - Duration::from_secs(1));
        assert!(visited(&mut visits, &store, early, is_done).await.is_empty());
        let mut snapshot = Snapshot::untouched(Format::Atom10, NOW);
        snapshot.state.revision = Revision(1);
        store.shelf.lock().unwrap().snapshots.insert(name("b"), snapshot);
        assert_eq!(visited(&mut visits, &store, early, is_done).await, ["b"]);
        store.shelf.lock().unwrap().feeds[2].options.items = Some(2000);
        assert_eq!(visited(&mut visits, &store, early, is_done).await, ["c"]);
        // The first has its turn at the beginning of the second half.
        let half = NOW.plus(PAUSE / 2);
        assert_eq!(visited(&mut visits, &store, half, is_done).await, ["a"]);
        let late = half.plus(PAUSE);
        assert_eq!(visited(&mut visits, &store, late, is_done).await, ["a", "b", "c"]);
        // What left is new when it comes back.
        let gone = store.shelf.lock().unwrap().feeds.remove(0);
        assert!(visited(&mut visits, &store, late, is_done).await.is_empty());
        store.shelf.lock().unwrap().feeds.push(gone);
        assert_eq!(visited(&mut visits, &store, late, is_done).await, ["a"]);
    }

    #[tokio::test]
    async fn work_that_is_not_done_is_tried_again() {
        let (store, mut visits) = (StoreDouble::new(&["a", "b"]), FeedVisits::default());
        let all_but_a = |feed: &str| feed != "a";
        assert_eq!(visited(&mut visits, &store, NOW, all_but_a).await, ["a", "b"]);
        assert_eq!(visited(&mut visits, &store, NOW, is_done).await, ["a"]);
        assert!(visited(&mut visits, &store, NOW, is_done).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_feeds_are_visited_at_once_and_each_once() {
        let names: Vec<String> = (0..50).map(|number| format!("feed-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let store = StoreDouble::new(&names);
        let feeds = store.feed_list().await.unwrap();
        let records: Vec<Arc<FeedRecord>> = feeds.values().cloned().collect();
        let counts: Arc<[AtomicUsize; 3]> = Arc::default();
        let visit = |_: Arc<FeedRecord>| {
            let counts = Arc::clone(&counts);
            async move {
                let [now, most, all] = &*counts;
                most.fetch_max(1 + now.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                all.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                true
            }
        };
        let mut visits = FeedVisits::default();
        visits.visit_due(&*store, &records, (NOW, PAUSE), visit).await.unwrap();
        assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [0, 8, 50]);
    }
}
