//! What the committer is asked, and how it answers.

use super::committer::Committer;
use crate::{CommitError, StoreError};
use tidegate_core::model::FeedName;
use tokio::sync::oneshot;

/// What a request may change. On disk nobody reads what is read over all feeds while that is changed. In a database that
/// others write to as well, one transaction at a time has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteScope {
    /// A feed and its content.
    Feed(FeedName),
    /// What each gateway notes of feeds by itself.
    Notes,
    /// The records of feeds.
    Feeds,
    /// The subscriptions of the hub.
    Subscriptions,
    /// What the store says of itself.
    Identity,
}

/// Whether the store works, as far as is known.
type Health<'a> = &'a dyn Fn() -> Result<(), StoreError>;

/// An answer that is held back until the barrier was passed.
pub(super) type PendingAnswer = Box<dyn FnOnce(Health<'_>) + Send>;

type GroupWork = dyn FnOnce(&mut Committer, Health<'_>) -> PendingAnswer + Send;

/// Something to be made durable.
pub(super) struct CommitRequest {
    /// Whether it changes the content of a feed alone.
    pub(super) is_of_feed: bool,
    work: Box<GroupWork>,
}

impl CommitRequest {
    /// A request for `work`, whose answer goes to `reply`. Whoever no longer waits misses it; what was
    /// stored stands.
    pub(super) fn new<T: Send + 'static>(
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
                    // Nothing can be said of what was applied.
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

    /// Does the work; the answer is to be sent once it is known whether that is durable.
    pub(super) fn apply(self, committer: &mut Committer, health: Health<'_>) -> PendingAnswer {
        (self.work)(committer, health)
    }
}
