//! Work that is done once for all who ask for it at the same time. It runs in a task of its own, so that
//! it keeps what it was admitted with until it is really over, whoever leaves meanwhile.

use super::admission::{Admission, Admitted, Overloaded, Work};
use super::client::Client;
use crate::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_store::{FeedList, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

/// Who asks, for what, and what that may take.
pub(super) struct WorkRequest {
    /// Who asks.
    pub(super) client: Client,
    /// What is made.
    pub(super) work: Work,
    /// The bytes in memory that it takes.
    pub(super) cost: u64,
    /// Whether what it weighs says what work of the kind takes.
    pub(super) tells: bool,
}

/// What came of work: all who waited share it.
type SharedResult<V, E> = Result<Arc<V>, Arc<E>>;

/// How far work is.
enum WorkStage<V, E> {
    /// Those who want it wait for leave to begin.
    Waiting,
    /// Somebody was admitted, and it is being done.
    Begun,
    /// It is over.
    Done(SharedResult<V, E>),
}

type Progress<V, E> = watch::Sender<WorkStage<V, E>>;
/// Each with how many take part in it.
type Flights<K, V, E> = Arc<Mutex<HashMap<K, (Arc<Progress<V, E>>, usize)>>>;

/// A part in work that several wait for.
struct JoinedWork<K: Eq + Hash, V, E> {
    key: K,
    progress: Arc<Progress<V, E>>,
    all: Flights<K, V, E>,
}

impl<K: Clone + Eq + Hash, V, E> JoinedWork<K, V, E> {
    fn join(all: &Flights<K, V, E>, key: &K) -> Self {
        let mut flights = locked(all);
        let new = || (Arc::new(watch::channel(WorkStage::Waiting).0), 0);
        let (progress, parts) = flights.entry(key.clone()).or_insert_with(new);
        *parts += 1;
        Self { key: key.clone(), progress: Arc::clone(progress), all: Arc::clone(all) }
    }
}

impl<K: Eq + Hash, V, E> JoinedWork<K, V, E> {
    /// Takes out what is over, so that another may begin under the same key, and tells those who wait.
    fn end(&self, outcome: SharedResult<V, E>) {
        self.leave(|_| 0);
        self.progress.send_replace(WorkStage::Done(outcome));
    }

    /// Changes how many take part, unless it is over.
    fn leave(&self, left: impl FnOnce(usize) -> usize) {
        let mut flights = locked(&self.all);
        let Some((progress, parts)) = flights.get_mut(&self.key) else { return };
        if Arc::ptr_eq(progress, &self.progress) {
            *parts = left(*parts);
            if *parts == 0 {
                flights.remove(&self.key);
            }
        }
    }
}

impl<K: Eq + Hash, V, E> Drop for JoinedWork<K, V, E> {
    fn drop(&mut self) {
        self.leave(|parts| parts.saturating_sub(1));
    }
}

/// Work by key, each done once at a time.
pub(super) struct SingleFlight<K, V, E> {
    flights: Flights<K, V, E>,
    admission: Arc<Admission>,
}

impl<K, V, E> SingleFlight<K, V, E>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: From<StoreError> + From<Overloaded> + Send + Sync + 'static,
{
    /// Nothing is being done.
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self { flights: Flights::default(), admission }
    }

    /// How much work may be done.
    pub(super) const fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// What the work `begin` answers, or that of somebody else who asked for the same.
    ///
    /// Who is admitted first does it for all who wait, so that nobody waits for the turn of a client
    /// that asks for too much. Who comes while it is being done needs no leave.
    pub(super) async fn get<F>(
        &self,
        key: &K,
        ask: WorkRequest,
        begin: impl FnOnce() -> F,
    ) -> SharedResult<V, E>
    where
        F: Future<Output = SharedResult<V, E>> + Send + 'static,
    {
        let part = JoinedWork::join(&self.flights, key);
        let mut progress = part.progress.subscribe();
        // The sender is in `part`, so that waiting ends with what is waited for.
        tokio::select! {
            biased;
            _ = progress.wait_for(|stage| !matches!(stage, WorkStage::Waiting)) => {}
            admitted = self.admission.admit(ask.client, &ask.work, ask.cost) => {
                let admitted = admitted.map_err(|error| Arc::new(error.into()))?;
                self.start(&part, admitted, begin);
            }
        }
        let done = progress.wait_for(|stage| matches!(stage, WorkStage::Done(_))).await;
        match done.as_deref() {
            Ok(WorkStage::Done(outcome)) => outcome.clone(),
            _ => Err(Arc::new(StoreError::Closed.into())),
        }
    }

    /// Begins, unless somebody else did so while this one was being admitted.
    fn start<F>(&self, part: &JoinedWork<K, V, E>, admitted: Admitted, begin: impl FnOnce() -> F)
    where
        F: Future<Output = SharedResult<V, E>> + Send + 'static,
    {
        let is_first = part.progress.send_if_modified(|stage| {
            let is_first = matches!(stage, WorkStage::Waiting);
            if is_first {
                *stage = WorkStage::Begun;
            }
            is_first
        });
        if !is_first {
            return;
        }
        let part = JoinedWork::join(&self.flights, &part.key);
        let work = admitted.spawn(begin());
        // Where it breaks off without a result, those who wait are told.
        tokio::spawn(async move {
            part.end(work.await.unwrap_or_else(|_| Err(Arc::new(StoreError::Closed.into()))));
        });
    }
}

/// How long what was made of all feeds is given again, at least, and as many times as long as it took: whoever asks,
/// and however often, takes a twentieth of a processor. What took long may have waited for the store.
const LEAST_AGE: Duration = Duration::from_secs(1);
const MOST_AGE: Duration = Duration::from_secs(30);
const AGE: u32 = 20;

/// What was made of all feeds for everybody, until it is old or the list of feeds is another one.
pub(super) struct LastMade<T>(Mutex<Option<Made<T>>>);

/// The list that something was made of, until when it may be given again, and what was made.
type Made<T> = (Arc<FeedList>, Instant, Arc<T>);

impl<T> Default for LastMade<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> LastMade<T> {
    /// What was made of this list, where it may be given again.
    pub(super) fn get(&self, feeds: &Arc<FeedList>) -> Option<Arc<T>> {
        let last = locked(&self.0);
        let (of, until, made) = last.as_ref()?;
        (Arc::ptr_eq(of, feeds) && Instant::now() < *until).then(|| Arc::clone(made))
    }

    /// Keeps what was made of this list, since `begun`.
    pub(super) fn keep(&self, feeds: &Arc<FeedList>, begun: Instant, made: &Arc<T>) {
        let age = begun.elapsed().saturating_mul(AGE).clamp(LEAST_AGE, MOST_AGE);
        let until = Instant::now() + age;
        *locked(&self.0) = Some((Arc::clone(feeds), until, Arc::clone(made)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_made_of_all_feeds_takes_a_part_of_the_time_and_ends_with_the_list() {
        let (last, feeds) = (LastMade::default(), Arc::new(FeedList::default()));
        let other = Arc::new(FeedList::default());
        for (took, lasts) in [
            (Duration::ZERO, LEAST_AGE),
            (LEAST_AGE / 2, LEAST_AGE / 2 * AGE),
            (60 * LEAST_AGE, MOST_AGE),
        ] {
            let begun = Instant::now();
            tokio::time::advance(took).await;
            last.keep(&feeds, begun, &Arc::new(took));
            assert!(last.get(&other).is_none());
            tokio::time::advance(lasts - Duration::from_millis(1)).await;
            assert_eq!(last.get(&feeds).as_deref(), Some(&took));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(last.get(&feeds).is_none());
        }
    }

    /// A key that lets go of another part in the same flight while its own is let go of.
    #[derive(Clone)]
    struct Last(Arc<Mutex<Option<JoinedWork<Last, u32, StoreError>>>>);

    impl PartialEq for Last {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }

    impl Eq for Last {}

    impl Hash for Last {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }

    impl Drop for Last {
        fn drop(&mut self) {
            let other = self.0.lock().unwrap().take();
            drop(other);
        }
    }

    #[test]
    fn a_flight_that_two_leave_at_once_is_not_kept() {
        let (flights, key) = (Flights::default(), Last(Arc::default()));
        let one = JoinedWork::join(&flights, &key);
        *key.0.lock().unwrap() = Some(JoinedWork::join(&flights, &key));
        drop(one);
        assert!(flights.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_work_breaks_off() {
        let flights: SingleFlight<u8, u32, crate::problem::Problem> =
            SingleFlight::new(Arc::new(Admission::of(4)));
        let work = Work::of_all(crate::admission::WorkKind::Ledger);
        let ask = WorkRequest { client: Client::Own, work, cost: 1, tells: false };
        let broken = async { panic!("it breaks off") };
        assert!(flights.get(&1, ask, || broken).await.is_err());
        assert!(flights.flights.lock().unwrap().is_empty());
    }
}
