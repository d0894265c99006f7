//! What the committer is asked, and how it answers.

use super::committer::{CommitGroup, Committer};
use crate::{CommitError, StoreError};
use tokio::sync::oneshot;

/// What of what is read over all feeds a request may change, so that nobody reads that meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touches {
    /// Nothing.
    Feed,
    /// Records of feeds, poll states, subscriptions.
    Lists,
    /// The same, by way of what is read of the store itself before: one such request at a time.
    Identity,
}

/// Whether the store works, as far as is known.
type Health<'a> = &'a dyn Fn() -> Result<(), StoreError>;
/// An answer that is held back until the barrier was passed.
pub(super) type PendingAnswer = Box<dyn FnOnce(Health<'_>) + Send>;
type GroupWork = dyn FnOnce(&mut Committer, &mut CommitGroup, Health<'_>) -> PendingAnswer + Send;

/// Something to be made durable.
pub(super) struct CommitRequest {
    pub(super) touches: Touches,
    work: Box<GroupWork>,
}

impl CommitRequest {
    /// A request for `work`, whose answer goes to `reply`. Whoever no longer waits misses it; what was
    /// stored stands.
    pub(super) fn new<T: Send + 'static, E: WriteError>(
        touches: Touches,
        work: impl FnOnce(&mut Committer, &mut CommitGroup) -> Result<T, E> + Send + 'static,
        reply: oneshot::Sender<Result<T, E>>,
    ) -> Self {
        let work = Box::new(
            move |committer: &mut Committer, group: &mut CommitGroup, health: Health<'_>| {
                let done = health().map_err(E::from).and_then(|()| work(committer, group));
                let answer: PendingAnswer = Box::new(move |health: Health<'_>| {
                    let durable = match health() {
                        Ok(()) => done,
                        // Nothing can be said of what was applied.
                        Err(error) => Err(E::undurable(done.err(), error)),
                    };
                    drop(reply.send(durable));
                });
                answer
            },
        );
        Self { touches, work }
    }

    /// Does the work; the answer is to be sent once it is known whether that is durable.
    pub(super) fn apply(
        self,
        committer: &mut Committer,
        group: &mut CommitGroup,
        health: Health<'_>,
    ) -> PendingAnswer {
        (self.work)(committer, group, health)
    }
}

/// The committer broke off with a request in hand.
pub(super) struct Unanswered(pub(super) StoreError);

/// Why a write was not made, or may not have been.
pub(super) trait WriteError: From<StoreError> + From<Unanswered> + Send + 'static {
    /// What is answered where a barrier failed with `error` behind what was done, or refused.
    fn undurable(refused: Option<Self>, error: StoreError) -> Self;
}

impl WriteError for StoreError {
    fn undurable(refused: Option<Self>, error: StoreError) -> Self {
        refused.unwrap_or(error)
    }
}

impl WriteError for CommitError {
    fn undurable(refused: Option<Self>, error: StoreError) -> Self {
        match refused {
            None => Self::Ambiguous(error),
            // The revision that it names may not be durable.
            Some(Self::Conflict(_)) => Self::Store(error),
            Some(refused) => refused,
        }
    }
}

impl From<Unanswered> for StoreError {
    fn from(Unanswered(error): Unanswered) -> Self {
        error
    }
}

impl From<Unanswered> for CommitError {
    fn from(Unanswered(error): Unanswered) -> Self {
        Self::Ambiguous(error)
    }
}
