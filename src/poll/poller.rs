//! The handle to polling: adds, changes and removes feeds, polls on demand, and reports status.

use super::decide::{DecisionContext, age_feed};
use super::domains::{is_polled, ownership_key};
use super::error::PollError;
use super::feeds::{FeedCell, FeedTable};
use super::host_queue::HostQueue;
use super::permits::{Attempts, JudgePermits};
use super::polling::PollContext;
use super::probe::MAX_PAGES_AT_ONCE;
use super::scheduler::PollScheduler;
use super::scheduler::feed::Departure;
use super::scheduler::ownership::StoredFeed;
use super::silence::SilenceWatch;
use super::subscribe::{EndingCallbacks, feed_of_token, find_secret};
use super::sup::READS_AT_ONCE;
use super::{PollSettings, RoundError};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_core::websub::{Secret, SignatureError, Verification, subscriber};
use tidegate_net::fetch::Services;
use tidegate_status::{
    FeedSummary, PollResponse, PollStatus, PollTotals, PushResult, RejectedPush, WalkOrder,
};
use tidegate_store::{ChangedFeeds, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The most commands that may wait for the polling task.
pub const MAX_COMMANDS: usize = 256;

/// The parts that polling is built from.
pub struct PollerConfig {
    pub settings: PollSettings,
    pub store: Arc<Store>,
    pub clock: Arc<dyn Clock>,
    /// The running clock, by which retained data ages.
    pub running: Arc<dyn Clock>,
    pub services: Services,
    /// The host lines, shared with the hub; from now on they follow `settings`.
    pub hosts: Arc<HostQueue>,
    /// Cancelled to stop polling.
    pub cancel: CancellationToken,
}

pub(super) type PollCommand = Box<dyn FnOnce(&mut PollScheduler) + Send>;

/// The handle to polling.
#[derive(Clone)]
pub struct Poller {
    commands: mpsc::Sender<PollCommand>,
    pub(super) context: Arc<PollContext>,
}

/// A feed that this gateway polls, or what the store holds of one that another gateway polls.
type CallbackFeed = Result<Arc<FeedCell>, StoredFeed>;

/// The first poll of a feed, which continues even if this is dropped.
pub struct FirstPoll(oneshot::Receiver<Result<PollResponse, PollError>>);

impl FirstPoll {
    /// Waits until the result is durable.
    pub async fn finish(self) -> Result<PollResponse, PollError> {
        self.0.await.map_err(|_| PollError::Stopped)?
    }
}

impl Poller {
    /// Loads the feeds from the store and begins to poll those that this gateway owns. After `cancel` the task ends
    /// once the rounds in flight are over and unsaved poll states are written.
    pub async fn start(config: PollerConfig) -> Result<(Self, JoinHandle<()>), RoundError> {
        let (poller, mut scheduler, inbox) = Self::prepare(config);
        scheduler.load().await?;
        Ok((poller, tokio::spawn(scheduler.run(inbox))))
    }

    /// Creates the handle and the scheduler without starting the task.
    pub(super) fn prepare(
        config: PollerConfig,
    ) -> (Self, PollScheduler, mpsc::Receiver<PollCommand>) {
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let context = Arc::new(Self::context(config, commands.downgrade()));
        let scheduler = PollScheduler::new(Arc::clone(&context));
        (Self { commands, context }, scheduler, inbox)
    }

    fn context(config: PollerConfig, commands: mpsc::WeakSender<PollCommand>) -> PollContext {
        let PollerConfig { settings, store, clock, running, services, hosts, cancel } = config;
        hosts.reconfigure(settings.hosts.clone());
        let live = Arc::new(ArcSwap::from_pointee(settings));
        PollContext {
            clock,
            table: FeedTable::default(),
            ending: EndingCallbacks::default(),
            judge_permits: JudgePermits::default(),
            hosts,
            documents: Semaphore::new(READS_AT_ONCE),
            pages: Semaphore::new(MAX_PAGES_AT_ONCE),
            allowances: Default::default(),
            attempts: Attempts::new(Arc::clone(&store)),
            decisions: DecisionContext {
                store: Arc::clone(&store),
                changing: Arc::default(),
                running,
                settings: Arc::clone(&live),
            },
            commands,
            cancel,
            silence: SilenceWatch::default(),
            tasks: TaskTracker::new(),
            abandon: CancellationToken::new(),
            settings: live,
            services: ArcSwap::from_pointee(services),
            store,
        }
    }

    /// Whether polling has stopped or was told to.
    pub fn is_stopping(&self) -> bool {
        self.context.cancel.is_cancelled()
    }

    /// Polls a feed now and returns once the result is durable. The request begins after this call, regardless of
    /// schedule, backoff and spacing; a poll already in flight is awaited but does not answer the call. If another
    /// gateway owns the feed, this one polls it all the same.
    pub async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, PollError> {
        // The feed may be added here or leave in between.
        for _ in 0..3 {
            let name = feed.clone();
            match self.wait_for(move |it, reply| it.poll_now(&name, reply)).await? {
                Err(PollError::Unknown) => {}
                polled => return polled,
            }
            let Some(stored) = self.read_of_others(feed).await else { break };
            match self.wait_for(move |it, reply| it.poll_once(stored, Some(reply))).await? {
                Err(PollError::Unknown) => {}
                polled => return polled,
            }
        }
        Err(PollError::Unknown)
    }

    /// Reads a feed that another gateway owns from the store; `None` if there is no such polled feed.
    async fn read_of_others(&self, feed: &FeedName) -> Option<StoredFeed> {
        let store = &self.context.store;
        store.gateways()?;
        let record = store.feed_list().await.ok()?.get(feed).filter(|it| is_polled(it)).cloned()?;
        let state = store.poll_states_of(std::slice::from_ref(feed)).await.ok()?.pop();
        StoredFeed::read(store.as_ref(), record, state).await.ok()
    }

    /// Starts or stops the walk through a publisher's older documents. Returns once the order is noted.
    pub async fn walk(&self, feed: &FeedName, order: WalkOrder) -> Result<(), PollError> {
        let name = feed.clone();
        let ordered = self.ask(move |it| it.order_walk(&name, order)).await?;
        if !matches!(ordered, Err(PollError::Unknown)) {
            return ordered;
        }
        let list = self.context.store.feed_list().await.map_err(|_| PollError::Unknown)?;
        let owner = list.get(feed).and_then(|record| self.polled_elsewhere(record));
        Err(owner.map_or(PollError::Unknown, |owner| PollError::OwnedElsewhere { owner }))
    }

    /// Returns the gateway that polls a feed; `None` if it is this one or unknown.
    pub fn polled_elsewhere(&self, record: &FeedRecord) -> Option<String> {
        let gateways = self.context.store.gateways().filter(|_| is_polled(record))?;
        let owner = gateways.owner(&ownership_key(record))?;
        (!owner.is_this).then_some(owner.name)
    }

    /// Whether `token` belongs to the callback of a subscription, of this gateway or another one.
    pub async fn is_callback(&self, token: &str) -> bool {
        self.context.ending.is_known(token) || self.callback(token).await.is_some()
    }

    /// Returns the feed of the callback of `token` with the secret of its pushes: its cell if this gateway polls it, or
    /// what the store holds of it if another gateway does.
    async fn callback(&self, token: &str) -> Option<(FeedName, Option<Secret>, CallbackFeed)> {
        let feed = feed_of_token(token)?;
        if let Some(cell) = self.context.table.live(&feed) {
            let secret = find_secret(&cell.lock().memory.state, token)?;
            return Some((feed, secret, Ok(cell)));
        }
        let stored = self.read_of_others(&feed).await?;
        Some((feed, find_secret(stored.state.as_ref()?, token)?, Err(stored)))
    }

    /// Handles a hub's call of a callback (WebSub sections 5.2 and 5.3). Returns the challenge to confirm, an empty
    /// text for a denial, or `None` if the subscription was not requested.
    pub async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, PollError> {
        if self.context.ending.is_known(token) {
            return Ok(self.context.ending.confirm_end(token, &said));
        }
        match self.callback(token).await {
            Some((feed, _, Ok(_))) => {
                let token = token.to_owned();
                self.ask(move |it| it.called(&feed, &token, &said)).await
            }
            Some((_, _, Err(StoredFeed { state: Some(mut state), .. }))) => {
                let now = self.context.clock.now();
                let answer = state.subscription.as_mut();
                let answer = answer.and_then(|it| subscriber::called(it, &said, now));
                if answer.is_some() {
                    // The owner of the feed adopts it before its next request to the hub.
                    let stored = self.context.store.checkpoint(&[state]).await;
                    stored.map_err(|_| PollError::Stopped)?;
                }
                Ok(answer)
            }
            _ => Ok(None),
        }
    }

    /// Handles a push. One with a valid signature (section 7.1) causes a poll, whatever its body; at most one per feed
    /// waits. If the queue of commands is full, the hub is told to try again.
    pub async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult {
        let Some((feed, secret, found)) = self.callback(token).await else {
            return PushResult::Unknown;
        };
        let (cell, stored) = match found {
            Ok(cell) => (Some(cell), None),
            Err(stored) => (None, Some(stored)),
        };
        // Hash long bodies on a blocking thread.
        let is_long = body.len() > 64 * 1024;
        let check = move || match (secret, signature) {
            // A hub without a secret signs nothing: knowing the address suffices, since a push only causes a poll.
            (None, _) => Ok(()),
            (Some(_), None) => Err(SignatureError::Form.to_string()),
            (Some(secret), Some(signature)) => {
                secret.verify(&signature, &body).map_err(|error| error.to_string())
            }
        };
        let checked = match is_long {
            true => tokio::task::spawn_blocking(check).await.unwrap_or_else(|e| Err(e.to_string())),
            false => check(),
        };
        if let Err(why) = checked {
            let at = self.context.clock.now();
            tracing::debug!(%feed, why, "a push is not believed");
            if let Some(cell) = cell {
                let mut polling = cell.lock();
                let disbelieved = polling.disbelieved.get_or_insert_default();
                disbelieved.count += 1;
                disbelieved.last = Some(RejectedPush { at, why });
            }
            return PushResult::Disbelieved;
        }
        // Reserve the place before marking the feed. Otherwise another push could see the mark of one that is then
        // refused, and be reported as taken.
        let is_marked = || cell.as_ref().is_some_and(|cell| cell.lock().live.waits_for_push);
        match self.commands.try_reserve() {
            Ok(_) if is_marked() => PushResult::Taken,
            Ok(reserved) => {
                if let Some(cell) = &cell {
                    let mut polling = cell.lock();
                    // If the feed was paused meanwhile, nothing would clear the mark.
                    polling.live.waits_for_push = !polling.is_paused();
                }
                let token = token.to_owned();
                reserved.send(Box::new(move |it| match stored {
                    Some(stored) => it.poll_once(stored, None),
                    None => it.pushed(&feed, &token),
                }));
                PushResult::Taken
            }
            Err(_) if is_marked() => PushResult::Taken,
            Err(_) => PushResult::Busy,
        }
    }

    /// Begins to poll a feed, or applies a changed record; a record that is not active stops polling. Returns once no
    /// round of the earlier record is in flight.
    pub async fn put(&self, record: FeedRecord) -> Result<(), PollError> {
        self.wait_for(move |it, reply| it.put(Arc::new(record), reply)).await
    }

    /// Begins to poll a new feed at once; returns a handle to that poll.
    pub async fn put_and_poll(&self, record: FeedRecord) -> Result<FirstPoll, PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(move |it| it.put_and_poll(Arc::new(record), reply)).await?;
        Ok(FirstPoll(answer))
    }

    /// Replaces records by equal ones of the store's list, so that memory holds each only once.
    pub async fn share(&self, records: Vec<Arc<FeedRecord>>) -> Result<(), PollError> {
        self.send(move |it| it.share_records(records)).await
    }

    /// Stops polling a feed. Returns once no round of it is in flight, so that its data can be removed.
    pub async fn remove(&self, feed: &FeedName) -> Result<(), PollError> {
        let feed = feed.clone();
        self.wait_for(move |it, reply| it.depart(&feed, Departure::Removed, reply)).await
    }

    /// Applies other settings and services.
    pub async fn reconfigure(
        &self,
        settings: PollSettings,
        services: Services,
    ) -> Result<(), PollError> {
        self.context.settings.store(Arc::new(settings));
        self.context.services.store(Arc::new(services));
        self.send(PollScheduler::reconfigure).await
    }

    /// Returns the store, locks, clock and settings that decisions need.
    pub fn decisions(&self) -> &DecisionContext {
        &self.context.decisions
    }

    /// Drops changes that left the feed's window, and items that are too old from its ledger and archives, as a poll
    /// would.
    pub async fn age(&self, feed: &Arc<FeedRecord>) -> Result<(), RoundError> {
        age_feed(&self.context, feed, self.context.clock.now()).await.map(drop)
    }

    /// Returns the status of a feed; `None` if polling does not know it.
    pub fn status(&self, feed: &FeedName) -> Option<PollStatus> {
        self.context.table.get(feed).map(|cell| cell.lock().describe())
    }

    /// Returns a summary of a feed's status; `None` if polling does not know it.
    pub fn summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        self.context.table.get(feed).map(|cell| cell.lock().summarize())
    }

    /// Returns the feeds whose status changed, removed ones included.
    pub fn changed(&self) -> &ChangedFeeds {
        &self.context.table.changed
    }

    /// Returns totals over all polls since the start.
    pub fn totals(&self) -> PollTotals {
        *self.context.table.totals.lock()
    }

    /// Executes a command in the polling task and returns its result.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut PollScheduler) -> T + Send + 'static,
    ) -> Result<T, PollError> {
        // The receiver is gone if the caller gave up.
        self.wait_for(move |it, reply| drop(reply.send(command(it)))).await
    }

    /// Like [`Self::ask`], for a command that replies later.
    async fn wait_for<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut PollScheduler, oneshot::Sender<T>) + Send + 'static,
    ) -> Result<T, PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(move |it| command(it, reply)).await?;
        answer.await.map_err(|_| PollError::Stopped)
    }

    async fn send(
        &self,
        command: impl FnOnce(&mut PollScheduler) + Send + 'static,
    ) -> Result<(), PollError> {
        self.commands.send(Box::new(command)).await.map_err(|_| PollError::Stopped)
    }
}

#[cfg(test)]
mod tests;
