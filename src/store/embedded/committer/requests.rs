//! Requests to the committer, and their answers. Requests that wait are carried out as a group, with one barrier.

use super::{CommitGroup, Committer};
use crate::{CommitError, StoreError};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The most requests behind one barrier; also bounds an epoch.
const GROUP_LIMIT: usize = 256;
/// How far apart groups begin while more than one request comes at a time.
const GROUP_EVERY: Duration = Duration::from_millis(20);

/// The records that a request may change. On disk, readers over all feeds are locked out while it changes more than a
/// feed. In a database that other gateways write to, it is an advisory lock of the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteScope {
    /// A feed and its content.
    Feed(FeedName),
    /// Poll states and other notes of one gateway.
    Notes,
    /// The records of feeds.
    Feeds,
    /// The subscriptions of the hub.
    Subscriptions,
    /// The identity of the store, its change log, and imports.
    Identity,
}

/// The health of the store after the barrier.
type Health<'a> = &'a dyn Fn() -> Result<(), StoreError>;

/// Sends an answer; called after the barrier.
pub(in crate::embedded) type PendingAnswer = Box<dyn FnOnce(Health<'_>) + Send>;

type GroupWork = dyn FnOnce(&mut Committer, Health<'_>) -> PendingAnswer + Send;

/// Something to be made durable.
pub(in crate::embedded) struct CommitRequest {
    /// Whether it changes the content of a feed alone.
    pub(in crate::embedded) is_of_feed: bool,
    work: Box<GroupWork>,
}

impl CommitRequest {
    /// A request for `work`, whose answer goes to `reply`. If the caller no longer waits, the stored change stays.
    pub(in crate::embedded) fn new<T: Send + 'static>(
        scope: &WriteScope,
        work: impl FnOnce(&mut Committer) -> Result<T, CommitError> + Send + 'static,
        reply: oneshot::Sender<Result<T, CommitError>>,
    ) -> Self {
        let work = Box::new(move |committer: &mut Committer, health: Health<'_>| {
            let done = match health() {
                Ok(()) => work(committer),
                Err(error) => Err(error.into()),
            };
            let answer: PendingAnswer = Box::new(move |health: Health<'_>| {
                let durable = match (health(), done) {
                    (Ok(()), done) => done,
                    // Unknown whether what was applied is durable.
                    (Err(error), Ok(_)) => Err(CommitError::Ambiguous(error)),
                    // The revision that it names may not be durable.
                    (Err(error), Err(CommitError::Conflict(_))) => Err(error.into()),
                    (Err(_), refused) => refused,
                };
                drop(reply.send(durable));
            });
            answer
        });
        Self { is_of_feed: matches!(scope, WriteScope::Feed(_)), work }
    }
}

impl Committer {
    /// Serves requests until the store fails or all senders are dropped; then passes a last barrier.
    pub(in crate::embedded) fn run(&mut self, requests: &mut mpsc::Receiver<CommitRequest>) {
        let mut last: Option<(Instant, usize)> = None;
        let mut group = Vec::new();
        while requests.blocking_recv_many(&mut group, GROUP_LIMIT) > 0 {
            // An isolated request goes at once. Where requests come together, waiting for the next
            // beat lets one barrier serve more of them.
            if let Some((begun, size)) = last
                && size.max(group.len()) > 1
                && group.len() < GROUP_LIMIT
            {
                std::thread::sleep(GROUP_EVERY.saturating_sub(begun.elapsed()));
                while group.len() < GROUP_LIMIT
                    && let Ok(next) = requests.try_recv()
                {
                    group.push(next);
                }
            }
            last = Some((Instant::now(), group.len()));
            self.serve(std::mem::take(&mut group));
            if self.shared.health().is_err() {
                return;
            }
        }
        self.pass();
    }

    /// Carries out the requests, passes one barrier for all of them, and answers.
    pub(in crate::embedded) fn serve(&mut self, requests: Vec<CommitRequest>) {
        let is_listed = requests.iter().any(|request| !request.is_of_feed);
        let lock = Arc::clone(&self.shared.list_lock);
        // The lock is poisoned only by a panic of the committer, which ends it.
        let locked = is_listed.then(|| lock.write().unwrap_or_else(PoisonError::into_inner));
        self.group = CommitGroup::behind(self.newest, self.shared.clock.now());
        let shared = Arc::clone(&self.shared);
        let health = || shared.health();
        let apply = |request: CommitRequest| (request.work)(self, &health);
        let answers: Vec<PendingAnswer> = requests.into_iter().map(apply).collect();
        let is_shown = self.group.wrote && health().is_ok() && self.pass();
        if is_shown {
            self.publish();
        }
        drop(locked);
        // What is durable and shown is acknowledged, whatever failed since.
        let acknowledge = || if is_shown { Ok(()) } else { health() };
        for answer in answers {
            answer(&acknowledge);
        }
    }
}
