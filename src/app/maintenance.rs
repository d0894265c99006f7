//! The hourly maintenance of feeds: changes leave the sync views, items and archives that are too old go, and so does
//! what the operator does not want kept of the past.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Publish;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, Revision, Time};
use tidegate_poll::{RoundError, owns_feed};
use tidegate_serve::Operator;
use tidegate_store::{CommitError, FeedList, LOG_AGE, Retention, Store, StoreError, in_words};
use tokio::task::{JoinError, JoinSet, yield_now};

/// What is kept for a time may stay longer by this part of the shortest such time, within [`LATE`]: as long a feed is
/// not read that stays as it is.
const LATE_PART: u32 = 24;
/// How long that is at least and at most: an hour and a day.
const LATE: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(86_400));

/// The maintenance of the feeds that this gateway owns, with what is known from the last time.
pub(super) struct FeedMaintenance {
    store: Arc<Store>,
    desk: Arc<Operator>,
    visits: FeedVisits,
    /// By what was decided what is kept.
    rules: Option<Publish>,
}

impl FeedMaintenance {
    /// Nothing is known of any feed.
    pub(super) fn new(store: Arc<Store>, desk: Arc<Operator>) -> Self {
        Self { store, desk, visits: FeedVisits::default(), rules: None }
    }

    /// The next pass visits every feed.
    pub(super) fn visit_all(&mut self) {
        self.visits = FeedVisits::default();
    }

    /// Lets go what the time has come for at the running time `now`, of feeds of which that may be anything, and of
    /// the change log.
    pub(super) async fn run_pass(&mut self, now: Time) -> Result<(), CommitError> {
        let feeds = self.store.feed_list().await?;
        let rules = self.desk.active_config().config.publish.clone();
        let (pause, retention) = (pause(&rules), rules.past);
        if self.rules.replace(rules.clone()) != Some(rules) {
            self.visit_all();
        }
        self.visits.keep_only(&feeds);
        let (store, desk) = (&self.store, &self.desk);
        let owned = feeds.values().filter(|record| owns_feed(store.as_ref(), record));
        let records: Vec<Arc<FeedRecord>> = owned.cloned().collect();
        drop(feeds);
        let visit = |record: Arc<FeedRecord>| {
            let (store, desk) = (Arc::clone(store), Arc::clone(desk));
            async move { maintain_feed(store.as_ref(), &desk, &record, (retention, now)).await }
        };
        self.visits.visit_due(store.as_ref(), &records, (now, pause), visit).await?;
        trim_log(store.as_ref()).await
    }
}

/// For how long a feed need not be read that stays as it is.
fn pause(rules: &Publish) -> Duration {
    let kept = rules.window.min(rules.tombstones).min(rules.past.age);
    let shortest = rules.archives.age.map_or(kept, |age| age.min(kept));
    (shortest / LATE_PART).clamp(LATE.0, LATE.1)
}

/// Lets go of a feed what the time has come for. Answers whether that was done to its end.
async fn maintain_feed(
    store: &Store,
    desk: &Operator,
    feed: &Arc<FeedRecord>,
    (retention, now): (Retention, Time),
) -> bool {
    // First what waits for no turn: large feeds age one after the other, and near the size limit the space is needed.
    // What ages changes the feed, which is visited again for what can be pruned then.
    let is_pruned = prune_feed(store, &feed.name, &retention, now).await;
    age_feed(desk, feed).await && is_pruned
}

/// Lets changes of a feed leave its sync view, and what is too old its ledger. Answers whether that was done.
async fn age_feed(desk: &Operator, feed: &Arc<FeedRecord>) -> bool {
    match desk.poller.age(feed).await {
        // Whoever changed the feed meanwhile has looked at its window as well.
        Ok(()) | Err(RoundError::Contended) => true,
        // One feed that cannot be aged must not keep the others from it.
        Err(error) => {
            let error = error.report();
            tracing::warn!(feed = %feed.name, error, "changes could not leave the window");
            false
        }
    }
}

/// How often a feed, or the log, is pruned again in one look because there was more than one call takes out.
const PRUNES: usize = 100;

/// Where the running time stood last; before it was ever noted, that of the last change of a feed.
pub(super) async fn last_running(store: &Store, wall: &dyn Clock) -> Option<Time> {
    let noted = store.running_time().await.ok().flatten();
    let mut last = noted;
    if noted.is_none() {
        let feeds = store.feed_list().await.unwrap_or_default();
        for feed in feeds.keys() {
            let state = store.state(feed).await.ok().flatten();
            last = last.max(state.map(|state| state.updated_at));
        }
    }
    last.map(|last| if noted.is_none() { last.min(wall.now()) } else { last })
}

/// Takes out of the past of a feed what need not be kept at the running time `now`. Answers whether that was done to
/// its end.
pub(super) async fn prune_feed(
    store: &Store,
    feed: &FeedName,
    retention: &Retention,
    now: Time,
) -> bool {
    for _ in 0..PRUNES {
        match store.prune(feed, retention, now).await {
            Ok(pruned) => {
                let (versions, documents) = (pruned.versions, pruned.documents);
                if versions + documents > 0 {
                    tracing::info!(%feed, versions, documents, "taken out of the past");
                }
                if !pruned.more {
                    return true;
                }
            }
            // One feed that cannot be pruned must not keep the others from it.
            Err(error) => {
                tracing::warn!(%feed, error = in_words(&error), "the past could not be pruned");
                break;
            }
        }
    }
    false
}

/// Takes the old end out of the change log.
pub(super) async fn trim_log(store: &Store) -> Result<(), CommitError> {
    for _ in 0..PRUNES {
        if store.trim_log(LOG_AGE).await? == 0 {
            break;
        }
    }
    Ok(())
}

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
        store: &Store,
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
pub(super) mod tests {
    use super::*;
    use crate::app::gateway::tests::operator_of;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tidegate_config::Config;
    use tidegate_core::clock::ManualClock;
    use tidegate_core::model::{Format, Snapshot, Tick};
    use tidegate_judge::archive::Policy;
    use tidegate_judge::record::local::{Act, CheckedEntry, EntryFields};
    use tidegate_poll::PollSettings;
    use tidegate_poll::testing::double::{NOW, ScriptedStore, StoreFault, name, store_of};
    use tidegate_poll::testing::gateway::{Gateway, Publisher};
    use tokio::time::timeout;

    #[test]
    fn what_is_kept_for_long_may_stay_a_day_longer_and_what_is_not_less() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let usual = Config::default().publish;
        assert_eq!(pause(&usual), hours(24));
        let past = Retention { age: hours(48), ..usual.past };
        assert_eq!(pause(&Publish { past, ..usual.clone() }), hours(2));
        let archives = Policy { age: Some(hours(240)), ..usual.archives };
        assert_eq!(pause(&Publish { archives, ..usual.clone() }), hours(10));
        assert_eq!(pause(&Publish { window: Duration::from_secs(60), ..usual }), hours(1));
    }

    /// Two feeds that have nothing.
    pub(in crate::app) async fn gateway() -> (Gateway, FeedMaintenance) {
        let store = store_of(&["a", "b"]);
        for feed in ["a", "b"] {
            let state = Snapshot::untouched(Format::Atom10, NOW).state;
            store.set_state(&name(feed), state, None);
        }
        let gateway = Gateway::start(&store, &Publisher::gated("")).await;
        let desk = Arc::new(operator_of(&gateway, &Config::default()));
        (gateway, FeedMaintenance::new(store.real(), desk))
    }

    async fn pruned(
        gateway: &Gateway,
        maintenance: &mut FeedMaintenance,
        now: Time,
    ) -> Vec<String> {
        gateway.clock.set(now);
        maintenance.run_pass(now).await.unwrap();
        gateway.store.take_reads("texts")
    }

    fn hours(hours: u64) -> Time {
        NOW.plus(Duration::from_secs(hours * 3600))
    }

    /// Gives the feed `a` a change that is in the window for two more hours.
    async fn change_a(gateway: &Gateway) -> Tick {
        let last = hours(2).minus(Config::default().publish.window);
        gateway.clock.set(last);
        gateway.store.edit_record("a", |it| it.options.sharing.local = true);
        let fields = EntryFields { title: "One".to_owned(), ..EntryFields::default() };
        let entry = CheckedEntry::fields(&fields).unwrap();
        let desk = operator_of(gateway, &Config::default());
        let act = Act::Create { entry, noconflicts: None };
        desk.item(&name("a"), act).await.unwrap();
        let mut state = gateway.store.state_of("a");
        let early = Tick::at(last.minus(Duration::from_secs(60)));
        state.window_start = Some(early);
        let last = state.tick.unwrap();
        gateway.store.set_state(&name("a"), state, None);
        gateway.store.take_reads("texts");
        last
    }

    #[tokio::test]
    async fn a_feed_that_stays_as_it_is_is_aged_and_pruned_after_the_pause() {
        let (gateway, mut maintenance) = gateway().await;
        let last = change_a(&gateway).await;
        let before = gateway.store.writes().0;
        let commits = || gateway.store.writes().0 - before;
        assert_eq!(pruned(&gateway, &mut maintenance, hours(0)).await, ["a", "b"]);
        assert!(pruned(&gateway, &mut maintenance, hours(11)).await.is_empty());
        assert_eq!(commits(), 0);
        assert_eq!(pruned(&gateway, &mut maintenance, hours(12)).await, ["a"]);
        assert_eq!(commits(), 1);
        assert_eq!(gateway.store.state_of("a").window_start, Some(last));
        // A shorter window goes from a reload on.
        let (gateway, mut maintenance) = self::gateway().await;
        let last = change_a(&gateway).await;
        let settings =
            PollSettings { window: Duration::from_secs(3600), ..PollSettings::default() };
        let services = gateway.publisher.services();
        gateway.poller.reconfigure(settings, services).await.unwrap();
        pruned(&gateway, &mut maintenance, hours(0)).await;
        assert_eq!(gateway.store.state_of("a").window_start, Some(last));
    }

    #[tokio::test(start_paused = true)]
    async fn a_feed_is_pruned_before_it_waits_to_be_aged() {
        let (gateway, mut maintenance) = gateway().await;
        change_a(&gateway).await;
        let _held = gateway.store.hold_commits();
        gateway.clock.set(hours(12));
        let pass = timeout(Duration::from_secs(1), maintenance.run_pass(hours(12))).await;
        assert!(pass.is_err(), "it waits for its commit");
        assert!(gateway.store.take_reads("texts").contains(&"a".to_owned()));
    }

    #[tokio::test]
    async fn rules_that_changed_go_for_every_feed_at_once() {
        let (gateway, mut maintenance) = gateway().await;
        assert_eq!(pruned(&gateway, &mut maintenance, NOW).await, ["a", "b"]);
        assert!(pruned(&gateway, &mut maintenance, NOW).await.is_empty());
        let mut config = Config::default();
        config.publish.past.versions += 1;
        maintenance.desk = Arc::new(operator_of(&gateway, &config));
        assert_eq!(pruned(&gateway, &mut maintenance, NOW).await, ["a", "b"]);
        assert!(pruned(&gateway, &mut maintenance, NOW).await.is_empty());
        // A feed that cannot be pruned is tried again, and keeps no other from it.
        let (gateway, mut maintenance) = self::gateway().await;
        gateway.store.fault(StoreFault::ReadOf("texts"));
        let mut all = pruned(&gateway, &mut maintenance, NOW).await;
        assert_eq!(all.len(), 1);
        all.extend(pruned(&gateway, &mut maintenance, NOW).await);
        all.sort();
        assert_eq!(all, ["a", "b"]);
        assert!(pruned(&gateway, &mut maintenance, NOW).await.is_empty());
    }

    #[tokio::test]
    async fn a_store_without_feeds_is_kept_as_it_is() {
        let clock = ManualClock::at(NOW);
        let store = Store::in_memory(None, Arc::new(clock.clone())).unwrap();
        assert_eq!(last_running(&store, &clock).await, None);
        let early = NOW.minus(Duration::from_secs(9000));
        store.note_running_time(early).await.unwrap();
        let store = store.reopen().unwrap();
        assert_eq!(last_running(&store, &clock).await, Some(early));
        assert!(prune_feed(&store, &name("nothing"), &Retention::default(), NOW).await);
        trim_log(&store).await.unwrap();
    }

    const PAUSE: Duration = Duration::from_secs(86_400);

    /// The feeds that are visited at a time.
    async fn visited(visits: &mut FeedVisits, store: &ScriptedStore, now: Time) -> Vec<String> {
        let feeds = store.feed_list().await.unwrap();
        let records: Vec<Arc<FeedRecord>> = feeds.values().cloned().collect();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let visit = |record: Arc<FeedRecord>| {
            let seen = Arc::clone(&seen);
            async move {
                seen.lock().unwrap().push(record.name.to_string());
                true
            }
        };
        visits.visit_due(store, &records, (now, PAUSE), visit).await.unwrap();
        visits.keep_only(&feeds);
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort();
        seen
    }

    #[tokio::test]
    async fn a_feed_is_visited_again_once_it_has_changed_or_after_the_pause() {
        let (store, mut visits) = (store_of(&["a", "b", "c"]), FeedVisits::default());
        assert_eq!(visited(&mut visits, &store, NOW).await, ["a", "b", "c"]);
        let early = NOW.plus(PAUSE / 2 - Duration::from_secs(1));
        assert!(visited(&mut visits, &store, early).await.is_empty());
        let mut snapshot = Snapshot::untouched(Format::Atom10, NOW);
        snapshot.state.revision = Revision(1);
        store.set_state(&name("b"), snapshot.state, None);
        assert_eq!(visited(&mut visits, &store, early).await, ["b"]);
        store.edit_record("c", |it| it.options.items = Some(2000));
        assert_eq!(visited(&mut visits, &store, early).await, ["c"]);
        // The first has its turn at the beginning of the second half.
        let half = NOW.plus(PAUSE / 2);
        assert_eq!(visited(&mut visits, &store, half).await, ["a"]);
        let late = half.plus(PAUSE);
        assert_eq!(visited(&mut visits, &store, late).await, ["a", "b", "c"]);
        // What left is new when it comes back.
        let gone = store.remove_record(&name("a"));
        assert!(visited(&mut visits, &store, late).await.is_empty());
        store.set_record(&gone);
        assert_eq!(visited(&mut visits, &store, late).await, ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_feeds_are_visited_at_once_and_each_once() {
        let names: Vec<String> = (0..50).map(|number| format!("feed-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let store = store_of(&names);
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
        visits.visit_due(&store, &records, (NOW, PAUSE), visit).await.unwrap();
        assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [0, 8, 50]);
    }
}
