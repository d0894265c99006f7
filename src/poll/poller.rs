//! The handle to polling: add, change and remove feeds, poll now, ask how things stand.

use super::attempts::Attempts;
use super::board::FeedBoard;
use super::callbacks::Callbacks;
use super::decide::{self, DecisionContext, DecisionLimits};
use super::error::PollError;
use super::evict::age_feed;
use super::judge::DocumentJudge;
use super::permit::CommitPermit;
use super::places::PollPlace;
use super::polling::PollContext;
use super::scheduler::PollScheduler;
use super::shards::{is_polled, shard_of};
use super::{PollSettings, RoundError};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_core::websub::Verification;
use tidegate_net::fetch::Services;
use tidegate_status::{
    FeedSummary, PollResponse, PollStatus, PollTotals, PushResult, RejectedPush, WalkOrder,
};
use tidegate_store::{Claim, PollShards, SHARDS, Shard, Store};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How many commands may wait for the polling task.
pub const MAX_COMMANDS: usize = 256;

/// What polling is made of.
pub struct PollerConfig {
    /// How feeds are polled.
    pub settings: PollSettings,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// By which everything that is kept ages.
    pub running: Arc<dyn Clock>,
    /// The client.
    pub services: Services,
    /// The judge: [`super::ParseAndRecord`] but in tests.
    pub judge: Arc<dyn DocumentJudge>,
    /// Stops polling.
    pub cancel: CancellationToken,
}

/// What the polling task is told.
pub(super) enum PollCommand {
    Put(Arc<FeedRecord>, oneshot::Sender<()>),
    PutAndPoll(Arc<FeedRecord>, oneshot::Sender<Result<PollResponse, PollError>>),
    Share(Vec<Arc<FeedRecord>>),
    Remove(FeedName, oneshot::Sender<()>),
    /// With the shard that is waited for, where another gateway may poll the feed.
    Walk(FeedName, WalkOrder, Option<Shard>, oneshot::Sender<Result<(), PollError>>),
    PollNow(FeedName, Option<Shard>, oneshot::Sender<Result<PollResponse, PollError>>),
    Called(String, Verification, oneshot::Sender<Option<String>>),
    Pushed(String),
    Reconfigure(Box<(PollSettings, Services)>),
}

/// The handle to polling.
#[derive(Clone)]
pub struct Poller {
    commands: mpsc::Sender<PollCommand>,
    board: Arc<FeedBoard>,
    /// As it was at the start: its clients are not those of polls once the configuration was read again.
    bench: Arc<PollContext>,
    callbacks: Arc<Callbacks>,
    /// Which feeds this gateway polls; `None`: all.
    shards: Option<Arc<PollShards>>,
    cancel: CancellationToken,
}

/// The first poll of a feed, which goes on whether somebody waits for it or not.
pub struct FirstPoll(oneshot::Receiver<Result<PollResponse, PollError>>);

impl FirstPoll {
    /// Answers when what came of it is durable.
    pub async fn finish(self) -> Result<PollResponse, PollError> {
        self.0.await.map_err(|_| PollError::Stopped)?
    }
}

/// The longest body whose signature is checked in passing, in bytes; a longer one is checked where
/// that may take its time.
const CHECKED_IN_PASSING: usize = 64 * 1024;

/// A claim that no store gives out.
const NO_CLAIM: Claim = Claim { shard: 0, fence: 0 };

impl Poller {
    /// Reads what the store knows and begins to poll every active feed, or those of the shards that this gateway has.
    /// The task ends some time after `cancel`, when the rounds in flight are over and what is to be remembered is stored.
    pub async fn start(parts: PollerConfig) -> Result<(Self, JoinHandle<()>), RoundError> {
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let board = Arc::new(FeedBoard::default());
        let shards = parts.store.poll_shards().await?;
        let claim = match decide::claim(parts.store.as_ref(), parts.settings.node).await {
            // It is asked for again.
            Err(_) if shards.is_some() => NO_CLAIM,
            claim => claim?,
        };
        let bench = Self::context(&parts, claim);
        let callbacks = Arc::new(Callbacks::default());
        let cancel = parts.cancel.clone();
        let (board_there, callbacks_there) = (Arc::clone(&board), Arc::clone(&callbacks));
        let mut desk = PollScheduler::new(
            parts.settings,
            bench.clone(),
            parts.clock,
            parts.cancel,
            board_there,
            callbacks_there,
            shards.clone(),
        );
        desk.load().await?;
        let task = tokio::spawn(desk.run(inbox));
        Ok((Self { commands, board, bench: Arc::new(bench), callbacks, shards, cancel }, task))
    }

    /// Whether polling has stopped, or is about to.
    pub fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn context(parts: &PollerConfig, claim: Claim) -> PollContext {
        let Services { fetch, ask, call, .. } = parts.services.clone();
        PollContext {
            store: Arc::clone(&parts.store),
            clock: Arc::clone(&parts.clock),
            fetch,
            ask,
            call,
            judge: Arc::clone(&parts.judge),
            turns: Arc::default(),
            pauses: Arc::default(),
            allow_private: parts.settings.allow_private.clone(),
            attempts: Arc::new(Attempts::new(Arc::clone(&parts.store))),
            decisions: Self::deciding(parts, claim),
            permit: CommitPermit::default(),
            place: PollPlace::default(),
        }
    }

    fn deciding(parts: &PollerConfig, claim: Claim) -> DecisionContext {
        DecisionContext {
            store: Arc::clone(&parts.store),
            node: parts.settings.node,
            claim: Arc::new(RwLock::new(claim)),
            changing: Arc::default(),
            window: parts.settings.window,
            tombstones: parts.settings.tombstones,
            running: Arc::clone(&parts.running),
            limits: Arc::new(ArcSwap::from_pointee(DecisionLimits::from_settings(&parts.settings))),
        }
    }

    /// Polls a feed right away and answers when what came of it is durable. The request begins
    /// after this call, whatever the schedule, backoff and spacing say; one that is in flight
    /// already is waited for and does not answer this call.
    pub async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, PollError> {
        let (reply, answer) = oneshot::channel();
        let shard = self.shard_of_feed(feed).await;
        self.send(PollCommand::PollNow(feed.clone(), shard, reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)?
    }

    /// Begins, goes on with or stops the walk through a publisher's older documents. Answers when
    /// that is noted.
    pub async fn walk(&self, feed: &FeedName, order: WalkOrder) -> Result<(), PollError> {
        let (reply, answer) = oneshot::channel();
        let shard = self.shard_of_feed(feed).await;
        self.send(PollCommand::Walk(feed.clone(), order, shard, reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)?
    }

    /// The shard of a feed that is polled by some gateway, where several poll the feeds of the store.
    async fn shard_of_feed(&self, feed: &FeedName) -> Option<Shard> {
        self.shards.as_ref()?;
        let list = self.bench.store.feed_list().await.ok()?;
        list.get(feed).filter(|record| is_polled(record)).map(|record| shard_of(&record.url))
    }

    /// Whether other gateways may poll a part of the feeds.
    pub const fn is_one_of_several(&self) -> bool {
        self.shards.is_some()
    }

    /// Which gateway polls a feed, where that is not this one and is known.
    pub fn polled_elsewhere(&self, record: &FeedRecord) -> Option<Arc<str>> {
        let shards = self.shards.as_ref().filter(|_| is_polled(record))?;
        let shard = shard_of(&record.url);
        if shards.held().contains_key(&shard) { None } else { shards.owner(shard) }
    }

    /// Whether a hub was given this token with the address of its callback.
    pub fn is_callback(&self, token: &str) -> bool {
        self.callbacks.is_known(token)
    }

    /// Takes in what a hub says at a callback (WebSub sections 5.2 and 5.3). Answers the challenge
    /// that confirms what was asked, nothing where a denial was noted, and `None` where nothing of
    /// the kind was asked.
    pub async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(PollCommand::Called(token.to_owned(), said, reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)
    }

    /// Takes in a push. One that is signed with our secret has its feed polled, whatever it says: at
    /// most one such poll of a feed waits, however many pushes there are. Where [`MAX_COMMANDS`] wait
    /// already it is turned away, not lost.
    pub async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult {
        let Some(callback) = self.callbacks.by_token(token) else { return PushResult::Unknown };
        let (checked, long) = (Arc::clone(&callback), body.len() > CHECKED_IN_PASSING);
        let check = move || checked.check(signature.as_deref(), &body).map_err(|e| e.to_string());
        let checked = match long {
            true => tokio::task::spawn_blocking(check).await.unwrap_or_else(|e| Err(e.to_string())),
            false => check(),
        };
        if let Err(why) = checked {
            let at = self.bench.clock.now();
            tracing::debug!(feed = %callback.feed, why, "a push is not believed");
            self.board.note(&callback.feed, |status| {
                status.rare.change(|rare| {
                    if let Some(hub) = &mut rare.hub {
                        hub.disbelieved.count += 1;
                        hub.disbelieved.last = Some(RejectedPush { at, why });
                    }
                });
            });
            return PushResult::Disbelieved;
        }
        // The place is taken before the callback is marked, so that no other push takes the mark of
        // one that is turned away for the promise of a poll.
        match self.commands.try_reserve() {
            Ok(place) => {
                if callback.tell() {
                    place.send(PollCommand::Pushed(token.to_owned()));
                }
                PushResult::Taken
            }
            Err(_) if callback.is_to_be_told() => PushResult::Taken,
            Err(_) => PushResult::Busy,
        }
    }

    /// Begins to poll a feed, or goes on with a changed record. A record that is not active stops
    /// the feed. Answers when no round of the earlier record is in flight any more.
    pub async fn put(&self, record: FeedRecord) -> Result<(), PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(PollCommand::Put(Arc::new(record), reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)
    }

    /// Begins to poll a new feed right away; what is answered can be waited for.
    pub async fn put_and_poll(&self, record: FeedRecord) -> Result<FirstPoll, PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(PollCommand::PutAndPoll(Arc::new(record), reply)).await?;
        Ok(FirstPoll(answer))
    }

    /// Goes on with records that differ in nothing that polling follows, so that it keeps no older ones in
    /// memory beside those of the store.
    pub async fn share(&self, records: Vec<Arc<FeedRecord>>) -> Result<(), PollError> {
        self.send(PollCommand::Share(records)).await
    }

    /// Stops polling a feed. Answers when no round of it is in flight any more, so that its data
    /// can be removed.
    pub async fn remove(&self, feed: &FeedName) -> Result<(), PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(PollCommand::Remove(feed.clone(), reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)
    }

    /// Goes on with other settings and another client.
    pub async fn reconfigure(
        &self,
        settings: PollSettings,
        services: Services,
    ) -> Result<(), PollError> {
        self.bench.decisions.limits.store(Arc::new(DecisionLimits::from_settings(&settings)));
        self.send(PollCommand::Reconfigure(Box::new((settings, services)))).await
    }

    /// What polling decides with: its right to commit, and what is kept.
    pub fn decisions(&self) -> &DecisionContext {
        &self.bench.decisions
    }

    /// Lets changes leave the window of a feed, and what is too old its ledger and archives, as a poll of it would.
    pub async fn age(&self, feed: &Arc<FeedRecord>) -> Result<(), RoundError> {
        age_feed(&self.bench, feed, self.bench.clock.now()).await.map(drop)
    }

    /// How a feed's polling stands.
    pub fn status(&self, feed: &FeedName) -> Option<PollStatus> {
        self.board.status(feed)
    }

    /// How a feed's polling stands, in short.
    pub fn summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        self.board.summary(feed)
    }

    /// How all feeds' polling stands, in short.
    pub fn summaries(&self) -> BTreeMap<FeedName, FeedSummary> {
        self.board.summaries()
    }

    /// How all feeds' polling stands.
    pub fn statuses(&self) -> BTreeMap<FeedName, PollStatus> {
        self.board.statuses()
    }

    /// Sums over all polls since the start.
    pub fn totals(&self) -> PollTotals {
        // Without a word of the store nothing is polled.
        let polled = |shards: &Arc<PollShards>| match shards.may_begin() {
            true => shards.polled().len(),
            false => 0,
        };
        let shards = self.shards.as_ref().map_or(usize::from(SHARDS), polled);
        PollTotals { shards: u64::try_from(shards).unwrap_or(u64::MAX), ..self.board.totals() }
    }

    async fn send(&self, command: PollCommand) -> Result<(), PollError> {
        self.commands.send(command).await.map_err(|_| PollError::Stopped)
    }
}

#[cfg(test)]
mod tests;
