//! Writes of a gateway that does not write the store itself: each is planned here, over what this gateway sees, and
//! carried out by the gateway that writes, which checks that it still applies. Its answer comes once the write is
//! durable, and this gateway shows the write before it says so.

use super::committer::{CommitGroup, Committer};
use super::follow::Following;
use super::overtaken::verified;
use super::plan::PlannedCommit;
use super::request::Touches;
use super::{StoreInner, plan, read};
use crate::engine::{Class, Writes};
use crate::limits::VALUE_LIMIT;
use crate::record::{Record, StateRecord, decode, encode_plain};
use crate::{
    Claim, CommitError, Committed, Epoch, FeedList, GatewayAnswer, StoreError, as_list, in_words,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::{Attempt, Change, FeedName, FeedStanding, PollState, Revision, Tick};
use tokio::sync::OwnedSemaphorePermit;

/// How long the answer to a change is waited for: longer than another gateway takes to become the one that writes.
const COMMIT_TIME: Duration = Duration::from_secs(30);
/// How long the answer to what is tried again is waited for: longer than it takes over a slow way to the database.
/// Whoever polls goes on meanwhile, and a stop waits for it once or twice.
const NOTE_TIME: Duration = Duration::from_secs(10);
/// What could not be done, in errors.
const FORWARD: &str = "pass a write on to the gateway that writes";

/// What came of a request to the gateway that writes.
pub(crate) enum WriterAnswer {
    Answered(Vec<u8>),
    /// Nothing came in time: it may have been carried out.
    Unknown,
    /// Others took this gateway for dead, and the request was not sent.
    Forgotten,
}

/// Asks the gateway that writes.
#[async_trait]
pub(crate) trait AskWriter: Send + Sync {
    /// Sends a request, and waits for at most `limit` until it is answered.
    async fn ask(
        &self,
        body: Vec<u8>,
        is_question: bool,
        limit: Duration,
    ) -> Result<WriterAnswer, StoreError>;
}

/// Carries out requests of other gateways.
#[async_trait]
pub(crate) trait AnswerRequests: Send + Sync {
    /// Carries out a request; its answer.
    async fn answer(&self, body: Vec<u8>) -> GatewayAnswer;
}

/// The version of what gateways ask each other: the first byte of a request. A gateway of another version answers
/// nothing to it, and is asked again once both are of one.
const REQUEST_VERSION: u8 = 1;

/// A write that another gateway planned. Records are as they are stored, so that each says its own version.
#[derive(Serialize, Deserialize)]
enum ForwardedWrite {
    Commit(Box<ForwardedCommit>),
    /// Poll states.
    Checkpoint {
        fence: u64,
        states: Vec<Vec<u8>>,
    },
    Attempt(Vec<u8>),
    Question(Vec<u8>),
}

/// A [`PlannedCommit`] under the claim of the opening that it was planned over.
#[derive(Serialize, Deserialize)]
struct ForwardedCommit {
    fence: u64,
    feed: FeedName,
    /// The address that the feed has in the list of the gateway that planned it.
    url: Option<String>,
    /// Class, key and value of each entry.
    writes: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>,
    base: (Revision, u64),
    /// A [`StateRecord`].
    head: Vec<u8>,
    tick: Option<Tick>,
    versions: u32,
}

/// What became of it.
#[derive(Serialize, Deserialize)]
enum ForwardedAnswer {
    Committed(Revision, Option<Epoch>),
    Noted,
    Conflict(Revision),
    Fenced,
    /// It is unknown whether it was stored.
    Ambiguous(String),
    Failed(String),
    Answer(Vec<u8>),
    /// Nobody answers questions.
    Unanswered,
    NotPolled,
}

/// A record as it is sent.
fn record<T: Record>(record: &T) -> Result<Vec<u8>, StoreError> {
    encode_plain(record, VALUE_LIMIT).map_err(failed)
}

fn failed(said: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Io { doing: FORWARD, source: io::Error::other(said) }
}

/// What comes of a write whose sending failed. One that is too large was not sent.
fn unsent(error: StoreError) -> CommitError {
    match error {
        StoreError::TooLarge { .. } => CommitError::Store(error),
        error => CommitError::Ambiguous(error),
    }
}

impl From<CommitError> for ForwardedAnswer {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Fenced => Self::Fenced,
            CommitError::Conflict(revision) => Self::Conflict(revision),
            CommitError::NotPolled => Self::NotPolled,
            CommitError::Ambiguous(error) => Self::Ambiguous(in_words(&error)),
            CommitError::Store(error) => Self::Failed(in_words(&error)),
        }
    }
}

impl ForwardedCommit {
    fn new(claim: &Claim, planned: PlannedCommit, url: Option<String>) -> Result<Self, StoreError> {
        let PlannedCommit { feed, writes, is_begun: _, base, head, tick, versions } = planned;
        let writes = writes.into_iter().map(|((class, key), value)| (class as u8, key, value));
        let (writes, head) = (writes.collect(), record(&head)?);
        Ok(Self { fence: claim.fence, feed, url, writes, base, head, tick, versions })
    }

    /// The same as it was planned; an error where it has classes that this program does not know.
    fn planned(self) -> Result<(Claim, PlannedCommit), CommitError> {
        let Self { fence, feed, url: _, writes, base, head, tick, versions } = self;
        let unknown = || failed("it comes from another program than this one");
        let entry = |(class, key, value)| {
            Class::numbered(class).map(|class| ((class, key), value)).ok_or_else(unknown)
        };
        let writes = writes.into_iter().map(entry).collect::<Result<Writes, StoreError>>()?;
        let head: StateRecord = decode(&head).map_err(failed)?;
        let planned = PlannedCommit { feed, writes, is_begun: false, base, head, tick, versions };
        Ok((Claim { fence }, planned))
    }
}

impl StoreInner {
    /// Has a change committed by the gateway that writes.
    pub(super) async fn forward_commit(
        self: Arc<Self>,
        following: Arc<Following>,
        claim: Claim,
        change: Change,
    ) -> Result<Committed, CommitError> {
        self.shared.health()?;
        self.shared.claimed(&claim)?;
        let feed = change.feed.clone();
        // One change of a feed at a time, here as there.
        let lock = self.shared.lock(&feed).await;
        let planned = self
            .read(move |records, shared| {
                let before = shared.published(&change.feed).map(|it| it.head()).transpose()?;
                let (feed, mark) = (change.feed.clone(), Some(shared.mark()));
                let whole = |records: &_| {
                    let mut nothing = |_| Err(CommitError::Fenced);
                    Ok(plan::plan(records, before.as_ref(), mark, change, true, &mut nothing))
                };
                match &before {
                    Some(head) => verified(records, &feed, head, whole)?,
                    None => whole(&records.at(0))?,
                }
            })
            .await;
        let planned = match planned {
            Ok(planned) => planned,
            // It was decided over what is not there any more.
            Err(CommitError::Store(StoreError::Outdated)) => {
                self.catch_up().await?;
                let now = self.shared.published(&feed).map(|now| now.watch.revision());
                return Err(CommitError::Conflict(now.unwrap_or_default()));
            }
            Err(error) => return Err(error),
        };
        let listed = self.feed_list().await?;
        let url = listed.get(&planned.feed).map(|record| record.url.clone());
        let commit = ForwardedCommit::new(&claim, planned, url)?;
        let body = ForwardedWrite::Commit(Box::new(commit));
        let answer = self.forward(&following, &body, COMMIT_TIME).await;
        // Whatever came of it, what this gateway has seen of the feed may be old.
        let seen = self.catch_up().await;
        drop(lock);
        match answer? {
            ForwardedAnswer::Committed(revision, epoch) => {
                seen.map_err(CommitError::Ambiguous)?;
                Ok(Committed { revision, epoch })
            }
            other => Err(other.into_error()),
        }
    }

    /// The records of all feeds, shared by all who ask while none changes: from memory, whatever others read.
    pub(super) async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        self.check_seen()?;
        drop(self.opened()?);
        if let Some(listed) = self.shared.listed() {
            return Ok(listed);
        }
        self.read(|records, shared| shared.list_feeds(|| Ok(as_list(read::feeds(records)?)))).await
    }

    async fn forward(
        &self,
        following: &Following,
        body: &ForwardedWrite,
        limit: Duration,
    ) -> Result<ForwardedAnswer, CommitError> {
        let is_question = matches!(body, ForwardedWrite::Question(_));
        let body = postcard::to_extend(body, vec![REQUEST_VERSION]).map_err(failed)?;
        let answer = match following.writer.ask(body, is_question, limit).await {
            Ok(WriterAnswer::Answered(answer)) => answer,
            Ok(WriterAnswer::Forgotten) => return Err(CommitError::Fenced),
            Ok(WriterAnswer::Unknown) => {
                let said = format!("the gateway {} did not answer in time", following.owner().name);
                return Err(CommitError::Ambiguous(failed(said)));
            }
            Err(error) => return Err(unsent(error)),
        };
        postcard::from_bytes(&answer).map_err(|error| CommitError::Ambiguous(failed(error)))
    }

    /// Has poll states stored by the gateway that writes.
    pub(super) async fn forward_checkpoint(
        &self,
        following: &Following,
        claim: &Claim,
        states: &[PollState],
    ) -> Result<(), CommitError> {
        let states = states.iter().map(record).collect::<Result<_, _>>()?;
        let body = ForwardedWrite::Checkpoint { fence: claim.fence, states };
        match self.forward(following, &body, NOTE_TIME).await? {
            ForwardedAnswer::Noted => Ok(()),
            other => Err(other.into_error()),
        }
    }

    /// Has the gateway that writes note that a large document is begun or over.
    pub(super) async fn forward_attempt(
        &self,
        following: &Following,
        attempt: &Attempt,
    ) -> Result<(), StoreError> {
        let body = ForwardedWrite::Attempt(record(attempt)?);
        match self.forward(following, &body, NOTE_TIME).await {
            Ok(ForwardedAnswer::Noted) => Ok(()),
            Ok(other) => Err(failed(other.into_error())),
            Err(error) => Err(failed(error)),
        }
    }

    /// Asks the gateway that writes something that is not of the store.
    pub(super) async fn forward_question(
        &self,
        following: &Following,
        question: Vec<u8>,
        limit: Duration,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self.forward(following, &ForwardedWrite::Question(question), limit).await {
            Ok(ForwardedAnswer::Answer(answer)) => Ok(Some(answer)),
            Ok(ForwardedAnswer::Unanswered) => Ok(None),
            Ok(other) => Err(failed(other.into_error())),
            Err(error) => Err(failed(error)),
        }
    }
}

impl ForwardedAnswer {
    fn into_error(self) -> CommitError {
        match self {
            Self::Conflict(revision) => CommitError::Conflict(revision),
            Self::Fenced => CommitError::Fenced,
            Self::NotPolled => CommitError::NotPolled,
            Self::Ambiguous(said) => CommitError::Ambiguous(failed(said)),
            Self::Failed(said) => CommitError::Store(failed(said)),
            Self::Committed(..) | Self::Noted | Self::Answer(_) | Self::Unanswered => {
                CommitError::Store(failed("its answer is none to what it was asked"))
            }
        }
    }
}

/// Carries out the writes of other gateways in the store of the one that writes.
pub(super) struct ForwardedWrites {
    within: Weak<StoreInner>,
}

impl ForwardedWrites {
    pub(super) const fn new(within: Weak<StoreInner>) -> Self {
        Self { within }
    }
}

#[async_trait]
impl AnswerRequests for ForwardedWrites {
    async fn answer(&self, body: Vec<u8>) -> GatewayAnswer {
        let mut permits = Vec::new();
        let answer = match self.within.upgrade() {
            Some(inner) => match read_request(&body) {
                Ok(write) => {
                    let done = inner.carry_out(write, &mut permits).await;
                    done.unwrap_or_else(ForwardedAnswer::from)
                }
                Err(error) => CommitError::Store(error).into(),
            },
            None => ForwardedAnswer::Failed("it was closed".to_owned()),
        };
        // What cannot be written is no answer, which is an error for whoever asked.
        GatewayAnswer { bytes: postcard::to_stdvec(&answer).unwrap_or_default(), permits }
    }
}

fn read_request(body: &[u8]) -> Result<ForwardedWrite, StoreError> {
    match body.split_first() {
        Some((&REQUEST_VERSION, body)) => postcard::from_bytes(body).map_err(failed),
        _ => Err(failed("the two gateways are of different versions; upgrade both")),
    }
}

impl StoreInner {
    /// `permits`: what the answer takes up.
    async fn carry_out(
        self: Arc<Self>,
        write: ForwardedWrite,
        permits: &mut Vec<OwnedSemaphorePermit>,
    ) -> Result<ForwardedAnswer, CommitError> {
        match write {
            ForwardedWrite::Commit(commit) => {
                let done = self.carry_out_commit(*commit).await?;
                return Ok(ForwardedAnswer::Committed(done.revision, done.epoch));
            }
            ForwardedWrite::Checkpoint { fence, states } => {
                let claim = Claim { fence };
                let states =
                    states.iter().map(|state| decode(state)).collect::<Result<Vec<_>, _>>();
                let mut states: Vec<PollState> = states.map_err(failed)?;
                // What another gateway remembers of a feed that is gone would stay for ever.
                let listed = self.feed_list().await?;
                states.retain(|state| {
                    let record = listed.get(&state.feed);
                    record
                        .is_some_and(|it| it.standing != FeedStanding::Gone && it.url == state.url)
                });
                let noted = move |committer: &mut Committer, group: &mut CommitGroup| {
                    committer.checkpoint(&claim, &states, group)
                };
                self.ask(Touches::Lists, noted).await?;
            }
            ForwardedWrite::Attempt(attempt) => {
                let attempt: Attempt = decode(&attempt).map_err(failed)?;
                let is_gone = !self.feed_list().await?.contains_key(&attempt.feed);
                if is_gone && !attempt.is_over() {
                    return Ok(ForwardedAnswer::Noted);
                }
                let noted = move |committer: &mut Committer, group: &mut CommitGroup| {
                    committer.note_attempt(&attempt, group).map_err(CommitError::Store)
                };
                self.ask(Touches::Lists, noted).await?;
            }
            ForwardedWrite::Question(question) => {
                let Some(answers) = self.shared.answers() else {
                    return Ok(ForwardedAnswer::Unanswered);
                };
                let answer = answers.answer_question(question).await;
                *permits = answer.permits;
                return Ok(ForwardedAnswer::Answer(answer.bytes));
            }
        }
        Ok(ForwardedAnswer::Noted)
    }

    async fn carry_out_commit(
        self: Arc<Self>,
        commit: ForwardedCommit,
    ) -> Result<Committed, CommitError> {
        let url = commit.url.clone();
        let (claim, planned) = commit.planned()?;
        self.shared.claimed(&claim)?;
        let feed = planned.feed.clone();
        let lock = self.shared.lock(&feed).await;
        self.end_unfinished_of(&feed).await?;
        let listed = self.feed_list().await?;
        let record = listed.get(&feed).filter(|it| it.standing == FeedStanding::Active);
        match record {
            // What was read from another address is not decided anew over what is there now.
            Some(record) if url.as_ref() != Some(&record.url) => return Err(CommitError::Fenced),
            Some(_) => {}
            // It was paused or purged while the other gateway polled it.
            None => return Err(CommitError::NotPolled),
        }
        let done = self
            .ask(Touches::Feed, move |committer, group| committer.commit(&claim, planned, group))
            .await;
        drop(lock);
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is not judged anew, and whoever reads of it learns the limit.
    #[test]
    fn a_write_that_is_too_large_to_send_was_not_stored() {
        let what = "a request to the gateway that writes".to_owned();
        let refused = unsent(StoreError::TooLarge { what, size: 9, limit: 8 });
        assert!(matches!(refused, CommitError::Store(StoreError::TooLarge { .. })), "{refused:?}");
        assert!(refused.to_string().contains("is 9 bytes, the limit is 8"), "{refused}");
        assert!(matches!(unsent(StoreError::Closed), CommitError::Ambiguous(_)));
    }
}
