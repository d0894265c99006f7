//! Who may make what takes much to make: whatever public address is asked, what it will take is
//! admitted before anything is read.
//!
//! The cost is bytes in memory. Each client and each feed has a share of them at a time, so that one
//! client that walks through the forms of a large feed, or many that ask for it, hold up neither the
//! readers of other feeds nor each other. What is small has a budget of its own and never waits for what
//! is large.

use super::client::Client;
use super::problem::{Problem, RETRY_SOON};
use super::shares::{Share, Shares};
use crate::model::{FeedName, SyncId};
use moka::sync::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes in memory of what is large and made at a time, and of these those of one client or one feed;
/// what costs more is made when it has nothing else.
const LARGE: (u64, u64) = (128 * MIB, 64 * MIB);
/// The same of what is small, which never waits for what is large.
const SMALL: (u64, u64) = (64 * MIB, 16 * MIB);
/// What costs more is large.
const SMALL_MOST: u64 = 4 * MIB;
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
const UNKNOWN_ITEM: u64 = SMALL_MOST;
/// What an item of a feed takes that was never rendered.
const UNKNOWN_EACH: u64 = 2 * 1024;

/// What takes something to make.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Work {
    /// Of which feed.
    pub(super) feed: FeedName,
    /// What it is: of things of the same kind and feed the same cost is expected.
    pub(super) what: What,
}

/// A kind of work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A view of the feed as it is or as it was, or a delta.
    View(crate::render::ViewKind),
    /// The same with everything that there ever was.
    Past(crate::render::ViewKind),
    /// An archive.
    Archive,
    /// The feed's ledger.
    Ledger,
    /// An item.
    Item(SyncId),
}

/// How much work there may be at a time.
#[derive(Debug)]
pub(super) struct Admission {
    large: Budget,
    small: Budget,
    waiting: Shares<Client>,
    /// What things took when they were last made, in bytes.
    costs: Cache<Work, u64>,
}

/// Bytes that are shared out.
#[derive(Debug)]
struct Budget {
    all: Arc<Semaphore>,
    clients: Shares<Client>,
    feeds: Shares<FeedName>,
    each: u64,
}

impl Budget {
    fn new((all, each): (u64, u64)) -> Self {
        Self {
            all: Arc::new(Semaphore::new(usize::try_from(all / UNIT).unwrap_or(1))),
            clients: Shares::new(units(each)),
            feeds: Shares::new(units(each)),
            each,
        }
    }

    async fn enter(&self, client: Client, feed: &FeedName, bytes: u64) -> Admitted {
        let much = units(bytes.min(self.each));
        // First the client's own share, so that what it asks for too much stands in nobody's way.
        let its = self.clients.take(&client, much).await;
        let of_feed = self.feeds.take(feed, much).await;
        // Never closed.
        let permit = Arc::clone(&self.all).acquire_many_owned(much).await.ok();
        Admitted { _permit: permit, _client: its, _feed: of_feed }
    }
}

/// Leave to make something, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    _permit: Option<OwnedSemaphorePermit>,
    _client: Share<Client>,
    _feed: Share<FeedName>,
}

impl Admission {
    /// Nobody makes anything.
    pub(super) fn new() -> Self {
        Self {
            large: Budget::new(LARGE),
            small: Budget::new(SMALL),
            waiting: Shares::new(WAITING_EACH),
            costs: Cache::new(REMEMBERED),
        }
    }

    /// What something took when it was last made, or else what so many items, or one of any size, may
    /// take.
    pub(super) fn cost_of(&self, work: &Work, items: u64) -> u64 {
        let unknown = || match &work.what {
            What::Item(_) => UNKNOWN_ITEM,
            _ => items.saturating_mul(UNKNOWN_EACH),
        };
        self.costs.get(work).unwrap_or_else(unknown)
    }

    /// Remembers what something took, in bytes.
    pub(super) fn took(&self, work: Work, bytes: u64) {
        self.costs.insert(work, bytes);
    }

    /// Waits for leave to make something that takes so many bytes.
    pub(super) async fn admit(
        &self,
        client: Client,
        work: &Work,
        bytes: u64,
    ) -> Result<Admitted, Overloaded> {
        let waits = self.waiting.try_take(&client, 1).ok_or(Overloaded::Client)?;
        let budget = if bytes > SMALL_MOST { &self.large } else { &self.small };
        let admitted = timeout(WAIT, budget.enter(client, &work.feed, bytes)).await;
        drop(waits);
        admitted.map_err(|_| Overloaded::All)
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}

/// Why something is not made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Overloaded {
    /// The client wants too much at once.
    #[error(
        "{WAITING_EACH} requests from your address wait already; ask again when they are answered"
    )]
    Client,
    /// There was no room within the time.
    #[error("the gateway has too much to do just now; ask again soon")]
    All,
}

impl From<Overloaded> for Problem {
    fn from(why: Overloaded) -> Self {
        Self::later(why.to_string(), RETRY_SOON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(feed: &str) -> Work {
        Work { feed: FeedName::new(feed).unwrap(), what: What::Ledger }
    }

    fn client(last: u8) -> Client {
        Client::at([192, 0, 2, last].into())
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_and_one_feed_hold_up_no_other() {
        let admission = Admission::new();
        let (huge, large) = (10_000 * MIB, SMALL_MOST + 1);
        let first = admission.admit(client(1), &work("large"), huge).await.unwrap();
        // The same client of another feed, and another client of the same feed.
        assert!(admission.admit(client(1), &work("other"), large).await.is_err());
        assert!(admission.admit(client(2), &work("large"), large).await.is_err());
        let second = admission.admit(client(2), &work("other"), huge).await.unwrap();
        assert!(admission.admit(client(3), &work("third"), large).await.is_err());
        for number in 1..4 {
            let small = admission.admit(client(number), &work("large"), SMALL_MOST).await;
            assert!(small.is_ok(), "what is small does not wait for what is large");
        }
        drop((first, second));
        assert!(admission.admit(client(3), &work("third"), huge).await.is_ok());
        for budget in [&admission.large, &admission.small] {
            assert_eq!((budget.clients.keys(), budget.feeds.keys()), (0, 0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_a_bounded_number_of_times() {
        let admission = Arc::new(Admission::new());
        let held = admission.admit(client(1), &work("a"), u64::MAX).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_EACH {
            let admission = Arc::clone(&admission);
            waiting.push(tokio::spawn(async move {
                admission.admit(client(1), &work("a"), SMALL_MOST + 1).await.map(drop)
            }));
        }
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let more = admission.admit(client(1), &work("a"), SMALL_MOST + 1).await.map(drop);
        assert_eq!(more, Err(Overloaded::Client));
        drop(held);
        for waited in waiting {
            assert_eq!(waited.await.unwrap(), Ok(()));
        }
    }

    #[test]
    fn what_was_made_once_is_known() {
        let admission = Admission::new();
        assert_eq!(admission.cost_of(&work("a"), 10), 10 * UNKNOWN_EACH);
        admission.took(work("a"), 5);
        assert_eq!(admission.cost_of(&work("a"), 10), 5);
    }
}
