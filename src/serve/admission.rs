//! Who may make what takes much to make: whatever public address is asked, what it will take is
//! admitted before anything is read.
//!
//! The cost is bytes in memory, and a turn: so much is made at a time as there are processors for it.
//! Each client and each feed has a share of both, so that one client that walks through the forms of a
//! large feed, or many that ask for it, hold up neither the readers of other feeds nor each other. What is
//! small has a budget and turns of its own and never waits for what is large. What was admitted runs to
//! its end, in a task of its own, and keeps what it was admitted with for so long.

use super::shares::Share;
use super::{Cache, Client, FairShares, Problem, WorkRequest};
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState, SyncId};
use tidegate_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// One client or feed gets one part in this many of the memory for large work. Work that costs more than that runs when
/// its client and feed have nothing else running.
const LARGE_SHARE_DIVISOR: u64 = 2;
/// Small work never waits for large work: it has further memory, one part in this many of that for large work.
const SMALL_BUDGET_DIVISOR: u64 = 2;
/// One client or feed gets one part in this many of the memory for small work.
const SMALL_SHARE_DIVISOR: u64 = 4;
/// The highest cost of small work, in bytes.
const SMALL_COST_LIMIT: u64 = 4 * MIB;
/// Permits for small work per processor: it waits for the disk as often as it computes.
const SMALL_PERMITS_PER_CPU: u32 = 2;
/// Processors that large work leaves free for everything else.
const SPARED_CPUS: u32 = 1;
/// One client or feed gets one part in this many of the permits.
const PERMITS_SHARE_DIVISOR: u32 = 2;
/// How long a request waits for its turn.
const WAIT: Duration = Duration::from_secs(15);
/// How many requests of one client wait.
const WAITING_EACH: u32 = 64;
/// How much of the budget is counted as one.
const UNIT: u64 = 4 * 1024;
/// What is remembered of what things took.
const REMEMBERED: u64 = 16 * 1024;
const MIB: u64 = 1024 * 1024;

/// What an item takes that was never read: its page, and two versions compared.
const UNKNOWN_ITEM: u64 = SMALL_COST_LIMIT;
/// What an item in conflict takes that was never read: its versions, and what differs between them.
const UNKNOWN_CONTEST: u64 = MIB;
/// What an edit takes that was never compared.
const UNKNOWN_CHANGE: u64 = 64 * 1024;
/// What an item of a feed takes that was never rendered.
const UNKNOWN_EACH: u64 = 2 * 1024;

/// What takes something to make.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Work {
    /// Of which feed; `None`: of all of them.
    feed: Option<FeedName>,
    /// What it is: of things of the same kind and feed the same cost is expected.
    what: WorkKind,
}

impl Work {
    pub(super) fn new(feed: &FeedName, what: WorkKind) -> Self {
        Self { feed: Some(feed.clone()), what }
    }

    /// Work that is not of one feed.
    pub(super) const fn of_all(what: WorkKind) -> Self {
        Self { feed: None, what }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum WorkKind {
    /// A view of the feed as it is or as it was, or a delta.
    View(tidegate_format::render::ViewKind),
    /// The same with everything that there ever was.
    Past(tidegate_format::render::ViewKind),
    Archive,
    /// The feed's ledger.
    Ledger,
    Item(SyncId),
    /// Items in conflict.
    Conflicts,
    /// Edits and deletions, with what differs.
    Changes,
    /// How feeds stand.
    Standing,
    /// The list of subscriptions.
    Subscriptions,
    /// An answer that is compressed for one request.
    Compression,
}

/// How much work there may be at a time.
#[derive(Debug)]
pub(super) struct Admission {
    large: AdmissionBudget,
    small: AdmissionBudget,
    waiting: FairShares<Client>,
    /// What things took when they were last made, in bytes.
    costs: Cache<Work, u64>,
}

/// Who has a share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ShareHolder {
    Client(Client),
    Feed(FeedName),
}

/// Bytes of memory and permits to run, each in all and in shares by client and by feed.
#[derive(Debug)]
struct AdmissionBudget {
    bytes: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    byte_shares: FairShares<ShareHolder>,
    permit_shares: FairShares<ShareHolder>,
}

impl AdmissionBudget {
    fn new((all, each): (u64, u64), permits: u32) -> Self {
        let permits = permits.max(1);
        Self {
            bytes: semaphore(units(all)),
            permits: semaphore(permits),
            byte_shares: FairShares::new(units(each)),
            permit_shares: FairShares::new((permits / PERMITS_SHARE_DIVISOR).max(1)),
        }
    }

    /// Takes the client's share first, so that a client that asks for too much blocks nobody else; then the feed's
    /// share, then the permits of all. Fixed order, so no deadlock.
    async fn acquire(&self, client: Client, feed: Option<&FeedName>, bytes: u64) -> Admitted {
        let much = units(bytes).min(self.byte_shares.each);
        let feed = feed.cloned().map(ShareHolder::Feed);
        let mut shares = Vec::new();
        for holder in [Some(ShareHolder::Client(client)), feed].iter().flatten() {
            shares.push(self.byte_shares.acquire(holder, much).await);
            shares.push(self.permit_shares.acquire(holder, 1).await);
        }
        // Never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let held_bytes = Arc::clone(&self.bytes).acquire_many_owned(much).await.ok();
        Admitted { _permits: [permit, held_bytes], _shares: shares }
    }
}

/// A permit for admitted work, returned when dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    _shares: Vec<Share<ShareHolder>>,
}

impl Admitted {
    /// Does the work that was admitted, to its end: a client that leaves stops neither what is read nor
    /// what is rendered, so it is given back by nobody but the work.
    pub(super) fn spawn<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(async move {
            let done = work.await;
            drop(self);
            done
        })
    }
}

impl Admission {
    /// Creates the admission with nothing running; `memory` is how many bytes large work may take at a time.
    pub(super) fn new(memory: u64) -> Self {
        Self::on(available_parallelism().map_or(1, NonZero::get), memory)
    }

    /// The same on a machine with so many processors.
    fn on(processors: usize, memory: u64) -> Self {
        let small = memory / SMALL_BUDGET_DIVISOR;
        let processors = u32::try_from(processors).unwrap_or(u32::MAX).max(1);
        Self {
            large: AdmissionBudget::new(
                (memory, memory / LARGE_SHARE_DIVISOR),
                processors.saturating_sub(SPARED_CPUS),
            ),
            small: AdmissionBudget::new(
                (small, small / SMALL_SHARE_DIVISOR),
                processors.saturating_mul(SMALL_PERMITS_PER_CPU),
            ),
            waiting: FairShares::new(WAITING_EACH),
            costs: Cache::with_capacity(REMEMBERED),
        }
    }

    /// One of a test, on so many processors.
    #[cfg(test)]
    pub(super) fn of(processors: usize) -> Self {
        Self::on(processors, 128 * MIB)
    }

    /// The expected cost of work, in bytes: what it took last time, else an estimate by its kind and number of items.
    pub(super) fn cost_of(&self, work: &Work, items: u64) -> u64 {
        let unknown = || match &work.what {
            WorkKind::Item(_) => UNKNOWN_ITEM,
            WorkKind::Conflicts => items.saturating_mul(UNKNOWN_CONTEST),
            WorkKind::Changes => items.saturating_mul(UNKNOWN_CHANGE),
            _ => items.saturating_mul(UNKNOWN_EACH),
        };
        self.costs.get(work).map_or_else(unknown, |cost| *cost)
    }

    /// A request for work on so many items.
    pub(super) fn request(&self, client: Client, work: Work, items: u64) -> WorkRequest {
        WorkRequest { client, cost: self.cost_of(&work, items), work, records_cost: false }
    }

    /// Records what work took, in bytes, as the expected cost of the same work.
    pub(super) fn record_cost(&self, work: Work, bytes: u64) {
        self.costs.insert(work, bytes);
    }

    /// Waits for leave to make something that takes so many bytes.
    pub(super) async fn admit(
        &self,
        client: Client,
        work: &Work,
        bytes: u64,
    ) -> Result<Admitted, Problem> {
        let waits = self.waiting.try_take(&client, 1).ok_or_else(|| {
            let detail = format!(
                "{WAITING_EACH} requests from your address wait already; ask again when they are answered"
            );
            Problem::later(detail)
        })?;
        let budget = if bytes > SMALL_COST_LIMIT { &self.large } else { &self.small };
        let admitted = timeout(WAIT, budget.acquire(client, work.feed.as_ref(), bytes)).await;
        drop(waits);
        let detail = "the gateway has too much to do just now; ask again soon";
        admitted.map_err(|_| Problem::later(detail))
    }

    /// Does what takes so many bytes when it is admitted, to its end.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        client: Client,
        work: &Work,
        bytes: u64,
        doing: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<T, Problem> {
        let admitted = self.admit(client, work, bytes).await?;
        admitted.spawn(doing).await.map_err(|_| StoreError::Closed)?
    }
}

/// How many items of a feed are kept, deleted ones included.
pub(super) fn kept_items(state: &FeedState) -> u64 {
    u64::from(state.living) + u64::from(state.tombstones)
}

fn semaphore(permits: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(permits).unwrap_or(usize::MAX)))
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::client;

    fn work(feed: &str) -> Work {
        Work::new(&FeedName::new(feed).unwrap(), WorkKind::Ledger)
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_and_one_feed_hold_up_no_other() {
        let admission = Admission::of(3);
        let (huge, large) = (10_000 * MIB, SMALL_COST_LIMIT + 1);
        let first = admission.admit(client(1), &work("large"), huge).await.unwrap();
        // The same client of another feed, and another client of the same feed.
        assert!(admission.admit(client(1), &work("other"), large).await.is_err());
        assert!(admission.admit(client(2), &work("large"), large).await.is_err());
        let second = admission.admit(client(2), &work("other"), huge).await.unwrap();
        assert!(admission.admit(client(3), &work("third"), large).await.is_err());
        for number in 1..4 {
            let small = admission.admit(client(number), &work("large"), SMALL_COST_LIMIT).await;
            assert!(small.is_ok(), "what is small does not wait for what is large");
        }
        drop((first, second));
        assert!(admission.admit(client(3), &work("third"), huge).await.is_ok());
        for budget in [&admission.large, &admission.small] {
            for part in [&budget.byte_shares, &budget.permit_shares] {
                assert_eq!(part.keys(), 0);
            }
        }
        // A client waits a bounded number of times.
        let admission = Arc::new(Admission::of(4));
        let held = admission.admit(client(1), &work("a"), u64::MAX).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_EACH {
            let admission = Arc::clone(&admission);
            waiting.push(tokio::spawn(async move {
                admission.admit(client(1), &work("a"), SMALL_COST_LIMIT + 1).await.map(drop)
            }));
        }
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let more = admission.admit(client(1), &work("a"), SMALL_COST_LIMIT + 1).await.map(drop);
        assert!(more.unwrap_err().detail.starts_with("64 requests from your address wait"));
        drop(held);
        for waited in waiting {
            assert_eq!(waited.await.unwrap(), Ok(()));
        }
    }

    /// However little it takes in memory, and whoever asks.
    #[tokio::test(start_paused = true)]
    async fn what_is_small_has_turns_and_what_is_large_leaves_a_processor() {
        for processors in [1, 2, 3, 8] {
            let admission = Admission::of(processors);
            let mut permits = [0, 0];
            for (permits, cost) in permits.iter_mut().zip([1, SMALL_COST_LIMIT + 1]) {
                let mut held = Vec::new();
                for number in 0..64 {
                    // Clients and feeds of their own: what bounds them is the turns alone.
                    let work = work(&format!("feed-{number}"));
                    if let Ok(admitted) = admission.admit(client(number), &work, cost).await {
                        held.push(admitted);
                    }
                }
                *permits = held.len();
            }
            assert_eq!(permits, [2 * processors, (processors - 1).max(1)], "{processors}");
        }
        let admission = Admission::of(2);
        let mut held = Vec::new();
        for feed in ["a", "b"] {
            held.push(admission.admit(client(1), &work(feed), 1).await.unwrap());
        }
        assert!(admission.admit(client(1), &work("c"), 1).await.is_err(), "a half is one client's");
        assert!(admission.admit(client(2), &work("c"), 1).await.is_ok());
        // Work that was begun is not stopped by who leaves, and counts until it is over.
        let admission = Admission::of(2);
        let (end, ended) = tokio::sync::oneshot::channel();
        let doing = async { ended.await.map_err(|_| Problem::unread_feed()) };
        let large = work("a");
        let left = timeout(Duration::ZERO, admission.run(client(1), &large, u64::MAX, doing)).await;
        assert!(left.is_err(), "it waits for its end");
        assert!(admission.admit(client(2), &work("b"), u64::MAX).await.is_err(), "it goes on");
        end.send(()).unwrap();
        assert!(admission.admit(client(2), &work("b"), u64::MAX).await.is_ok());
    }
}
