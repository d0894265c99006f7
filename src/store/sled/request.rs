//! What the committer is asked, and how it answers.

use super::plan::Prepared;
use super::prune::PruneRequest;
use crate::model::{Attempt, FeedName, FeedRecord, PollState, Time};
use crate::store::portable::ExportRecord;
use crate::store::{Claim, CommitError, Committed, StoreError};
use crate::websub::Subscription;
use tokio::sync::oneshot;

/// Something to be made durable.
pub(super) enum CommitRequest {
    /// A change to one feed.
    Commit { claim: Claim, prepared: Box<Prepared>, reply: AnswerSender<Committed, CommitError> },
    /// Poll states of many feeds.
    Checkpoint { claim: Claim, states: Vec<PollState>, reply: AnswerSender<(), CommitError> },
    /// A feed's record.
    PutFeed { record: Box<FeedRecord>, reply: AnswerSender<(), StoreError> },
    /// A large document of a feed that is begun or over.
    NoteAttempt { attempt: Attempt, reply: AnswerSender<(), StoreError> },
    /// Subscriptions of the hub.
    PutSubscriptions { subscriptions: Vec<Subscription>, reply: AnswerSender<(), StoreError> },
    /// A part of a feed's past to be taken out.
    Prune { claim: Claim, feed: FeedName, gone: PruneRequest, reply: AnswerSender<(), CommitError> },
    /// Epochs closed before a time to be taken out of the log.
    Trim { claim: Claim, before: Time, reply: AnswerSender<usize, CommitError> },
    /// Pieces of another store's content, in their order; `end`: there are no more.
    Bring {
        claim: Claim,
        pieces: Vec<ExportRecord>,
        end: bool,
        reply: AnswerSender<(), CommitError>,
    },
    /// A feed to be forgotten.
    Purge { feed: FeedName, reply: AnswerSender<(), StoreError> },
}

/// Where an answer is waited for.
pub(super) type AnswerSender<T, E> = oneshot::Sender<Result<T, E>>;

/// An answer that is held back until the barrier was passed.
pub(super) enum PendingAnswer {
    /// To a change.
    Commit(AnswerSender<Committed, CommitError>, Result<Committed, CommitError>),
    /// To poll states, and to what is taken out of a feed's past.
    Checkpoint(AnswerSender<(), CommitError>, Result<(), CommitError>),
    /// To what is taken out of the log.
    Trim(AnswerSender<usize, CommitError>, Result<usize, CommitError>),
    /// To everything else.
    Plain(AnswerSender<(), StoreError>, Result<(), StoreError>),
}

impl PendingAnswer {
    /// Sends the answer. `health`: an error where the barrier was not passed, so that nothing can
    /// be said of what was applied. Whoever no longer waits misses it; what was stored stands.
    pub(super) fn send(self, health: impl Fn() -> Result<(), StoreError>) {
        match self {
            Self::Commit(reply, result) => drop(reply.send(settle(result, health()))),
            Self::Checkpoint(reply, result) => drop(reply.send(settle(result, health()))),
            Self::Trim(reply, result) => drop(reply.send(settle(result, health()))),
            Self::Plain(reply, result) => drop(reply.send(result.and_then(|()| health()))),
        }
    }
}

fn settle<T>(
    result: Result<T, CommitError>,
    health: Result<(), StoreError>,
) -> Result<T, CommitError> {
    match (result, health) {
        (Ok(_), Err(error)) => Err(CommitError::Ambiguous(error)),
        // The revision that it names may not be durable.
        (Err(CommitError::Conflict(_)), Err(error)) => Err(CommitError::Store(error)),
        (result, _) => result,
    }
}
