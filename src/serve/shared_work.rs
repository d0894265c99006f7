//! Work that is done once for all who ask for it at the same time. It runs in a task of its own, so that
//! it keeps what it was admitted with until it is really over, whoever leaves meanwhile.

use super::{Admission, Client, Problem, Work, locked};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};
use tidegate_store::StoreError;
use tokio::sync::watch;

/// Who asks, for what, and what that may take.
pub(super) struct WorkRequest {
    pub(super) client: Client,
    pub(super) work: Work,
    /// The bytes in memory that it takes.
    pub(super) cost: u64,
    /// Whether the size of the result is recorded as the expected cost of work of this kind.
    pub(super) records_cost: bool,
}

/// What came of work: all who waited share it.
type SharedResult<V> = Result<Arc<V>, Problem>;

/// How far work is.
enum WorkStage<V> {
    /// Those who want it wait for leave to begin.
    Waiting,
    /// Somebody was admitted, and it is being done.
    Begun,
    /// It is over.
    Done(SharedResult<V>),
}

/// Work that is not over, for as long as somebody takes part in it.
struct Flight<K: Eq + Hash, V> {
    key: K,
    progress: watch::Sender<WorkStage<V>>,
    all: Flights<K, V>,
}

type Flights<K, V> = Arc<Mutex<HashMap<K, Weak<Flight<K, V>>>>>;

impl<K: Eq + Hash, V> Flight<K, V> {
    /// Takes it out, so that another may begin under the same key.
    fn leave(&self) {
        let mut flights = locked(&self.all);
        if flights.get(&self.key).is_some_and(|it| std::ptr::eq(it.as_ptr(), self)) {
            flights.remove(&self.key);
        }
    }

    /// Tells those who wait what came of it.
    fn end(&self, outcome: SharedResult<V>) {
        self.leave();
        self.progress.send_replace(WorkStage::Done(outcome));
    }
}

impl<K: Eq + Hash, V> Drop for Flight<K, V> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Work by key, each done once at a time.
pub(super) struct SingleFlight<K: Eq + Hash, V> {
    flights: Flights<K, V>,
    /// How much work may be done.
    pub(super) admission: Arc<Admission>,
}

impl<K, V> SingleFlight<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Nothing is being done.
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self { flights: Flights::default(), admission }
    }

    fn join(&self, key: &K) -> Arc<Flight<K, V>> {
        let mut flights = locked(&self.flights);
        if let Some(flight) = flights.get(key).and_then(Weak::upgrade) {
            return flight;
        }
        let (key, progress) = (key.clone(), watch::channel(WorkStage::Waiting).0);
        let flight = Arc::new(Flight { key, progress, all: Arc::clone(&self.flights) });
        flights.insert(flight.key.clone(), Arc::downgrade(&flight));
        flight
    }

    /// What the work `begin` answers, or that of somebody else who asked for the same.
    ///
    /// Who is admitted first does it for all who wait, so that nobody waits for the turn of a client
    /// that asks for too much. Who comes while it is being done needs no leave.
    pub(super) async fn get<F>(
        &self,
        key: &K,
        request: WorkRequest,
        begin: impl FnOnce() -> F,
    ) -> SharedResult<V>
    where
        F: Future<Output = SharedResult<V>> + Send + 'static,
    {
        let closed = || Err(StoreError::Closed.into());
        let flight = self.join(key);
        let mut progress = flight.progress.subscribe();
        tokio::select! {
            biased;
            _ = progress.wait_for(|stage| !matches!(stage, WorkStage::Waiting)) => {}
            admitted = self.admission.admit(request.client, &request.work, request.cost) => {
                let admitted = admitted?;
                // Unless somebody else was admitted meanwhile.
                let is_first = flight.progress.send_if_modified(|stage| {
                    let is_first = matches!(stage, WorkStage::Waiting);
                    if is_first {
                        *stage = WorkStage::Begun;
                    }
                    is_first
                });
                if is_first {
                    let (flight, work) = (Arc::clone(&flight), admitted.spawn(begin()));
                    // Where it breaks off without a result, those who wait are told.
                    tokio::spawn(async move {
                        flight.end(work.await.unwrap_or_else(|_| closed()));
                    });
                }
            }
        }
        let done = progress.wait_for(|stage| matches!(stage, WorkStage::Done(_))).await;
        match done.as_deref() {
            Ok(WorkStage::Done(outcome)) => outcome.clone(),
            _ => closed(),
        }
    }
}

/// Does what blocks or computes for long on a thread of its own. `what`: what is not made where that breaks off.
pub(super) async fn make_on_thread<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let made = tokio::task::spawn_blocking(work).await;
    made.unwrap_or_else(|error| Err(Problem::not_made(what, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_that_all_have_left_is_not_kept() {
        let flights: SingleFlight<u8, u32> = SingleFlight::new(Arc::new(Admission::of(4)));
        let [one, other] = [1, 1].map(|key| flights.join(&key));
        assert!(Arc::ptr_eq(&one, &other));
        drop(one);
        assert_eq!(flights.flights.lock().unwrap().len(), 1);
        drop(other);
        assert!(flights.flights.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_work_breaks_off() {
        let flights: SingleFlight<u8, u32> = SingleFlight::new(Arc::new(Admission::of(4)));
        let work = Work::of_all(crate::admission::WorkKind::Ledger);
        let request = WorkRequest { client: Client::Own, work, cost: 1, records_cost: false };
        let broken = async { panic!("it breaks off") };
        assert!(flights.get(&1, request, || broken).await.is_err());
        assert!(flights.flights.lock().unwrap().is_empty());
    }
}
