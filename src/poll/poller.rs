//! The handle to polling: add, change and remove feeds, poll now, ask how things stand.

use super::attempts::Attempts;
use super::callbacks::{Callback, EndingCallbacks};
use super::decide::DecisionContext;
use super::decision::age_feed;
use super::domains::{is_polled, ownership_key};
use super::error::PollError;
use super::feeds::{FeedCell, FeedTable};
use super::host_queue::HostQueue;
use super::judge::DocumentJudge;
use super::polling::PollContext;
use super::probe::MAX_PAGES_AT_ONCE;
use super::scheduler::PollScheduler;
use super::scheduler::ownership::StoredFeed;
use super::silence::SilenceWatch;
use super::subscribe::feed_of_token;
use super::sup::READS_AT_ONCE;
use super::turns::Turns;
use super::{PollSettings, RoundError};
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_core::websub::Verification;
use tidegate_core::websub::subscriber;
use tidegate_net::fetch::Services;
use tidegate_status::{
    FeedSummary, PollResponse, PollStatus, PollTotals, PushResult, RejectedPush, WalkOrder,
};
use tidegate_store::{ChangedFeeds, Store};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many commands may wait for the polling task.
pub const MAX_COMMANDS: usize = 256;

/// What polling is made of.
pub struct PollerConfig {
    /// How feeds are polled.
    pub settings: PollSettings,
    pub store: Arc<Store>,
    pub clock: Arc<dyn Clock>,
    /// By which everything that is kept ages.
    pub running: Arc<dyn Clock>,
    /// The client.
    pub services: Services,
    /// The judge: [`super::ParseAndRecord`] but in tests.
    pub judge: Arc<dyn DocumentJudge>,
    /// The lines of hosts, which the hub shares; they go by the settings from now on.
    pub hosts: Arc<HostQueue>,
    /// Stops polling.
    pub cancel: CancellationToken,
}

/// What the polling task is told to do.
pub(super) type PollCommand = Box<dyn FnOnce(&mut PollScheduler) + Send>;

/// The handle to polling.
#[derive(Clone)]
pub struct Poller {
    commands: mpsc::Sender<PollCommand>,
    pub(super) context: Arc<PollContext>,
}

/// The first poll of a feed, which goes on whether somebody waits for it or not.
pub struct FirstPoll(oneshot::Receiver<Result<PollResponse, PollError>>);

impl FirstPoll {
    /// Answers when what came of it is durable.
    pub async fn finish(self) -> Result<PollResponse, PollError> {
        self.0.await.map_err(|_| PollError::Stopped)?
    }
}

impl Poller {
    /// Reads what the store knows and begins to poll every active feed, or those that it owns where several gateways share the store.
    /// The task ends some time after `cancel`, when the rounds in flight are over and what is to be remembered is stored.
    pub async fn start(parts: PollerConfig) -> Result<(Self, JoinHandle<()>), RoundError> {
        let (poller, mut scheduler, inbox) = Self::prepare(parts);
        scheduler.load().await?;
        Ok((poller, tokio::spawn(scheduler.run(inbox))))
    }

    /// Polling whose task has still to run.
    pub(super) fn prepare(
        parts: PollerConfig,
    ) -> (Self, PollScheduler, mpsc::Receiver<PollCommand>) {
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let context = Arc::new(Self::context(parts));
        let scheduler = PollScheduler::new(Arc::clone(&context));
        (Self { commands, context }, scheduler, inbox)
    }

    fn context(parts: PollerConfig) -> PollContext {
        let PollerConfig { settings, store, clock, running, services, judge, hosts, cancel } =
            parts;
        hosts.reconfigure(settings.at_once, settings.host_rules());
        let live = Arc::new(ArcSwap::from_pointee(settings));
        PollContext {
            clock,
            judge,
            table: FeedTable::default(),
            ending: EndingCallbacks::default(),
            turns: Turns::default(),
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
            cancel,
            silence: SilenceWatch::default(),
            tasks: TaskTracker::new(),
            abandon: CancellationToken::new(),
            settings: live,
            services: ArcSwap::from_pointee(services),
            store,
        }
    }

    /// Whether polling has stopped, or is about to.
    pub fn is_stopping(&self) -> bool {
        self.context.cancel.is_cancelled()
    }

    /// Polls a feed right away and answers when what came of it is durable. The request begins
    /// after this call, whatever the schedule, backoff and spacing say; one that is in flight
    /// already is waited for and does not answer this call. Where another gateway owns the feed, this one polls it.
    pub async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, PollError> {
        // It may come or go meanwhile.
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

    /// What the store knows of a feed that another gateway polls; `None`: none does.
    async fn read_of_others(&self, feed: &FeedName) -> Option<StoredFeed> {
        let store = &self.context.store;
        store.gateways()?;
        let record = store.feed_list().await.ok()?.get(feed).filter(|it| is_polled(it)).cloned()?;
        let state = store.poll_states_of(std::slice::from_ref(feed)).await.ok()?.pop();
        StoredFeed::read(store.as_ref(), record, state).await.ok()
    }

    /// Begins, goes on with or stops the walk through a publisher's older documents. Answers when
    /// that is noted.
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

    /// Which gateway polls a feed, where that is not this one and is known.
    pub fn polled_elsewhere(&self, record: &FeedRecord) -> Option<String> {
        let gateways = self.context.store.gateways().filter(|_| is_polled(record))?;
        let owner = gateways.owner(&ownership_key(record))?;
        (!owner.is_this).then_some(owner.name)
    }

    /// Whether a hub was given this token with the address of its callback, by this gateway or by another one.
    pub async fn is_callback(&self, token: &str) -> bool {
        self.callback(token).is_some()
            || self.context.ending.is_known(token)
            || self.callback_of_others(token).await.is_some()
    }

    /// The callback of a token, and what is known of its feed, where this gateway polls that now.
    fn callback(&self, token: &str) -> Option<(Callback, Arc<FeedCell>)> {
        let cell = self.context.table.get(&feed_of_token(token)?)?;
        let polling = cell.lock();
        let state = Some(&polling.memory.state).filter(|_| !polling.is_paused())?;
        let keys = state.subscription.as_ref().map(|subscription| &subscription.keys);
        let keys = keys.filter(|keys| keys.token == token)?;
        let callback = Callback::new(&state.feed, keys)?;
        drop(polling);
        Some((callback, cell))
    }

    /// The callback of a feed that another gateway owns, and what the store knows of that feed.
    async fn callback_of_others(&self, token: &str) -> Option<(Callback, StoredFeed)> {
        self.context.store.gateways()?;
        let stored = self.read_of_others(&feed_of_token(token)?).await?;
        let subscription = stored.state.as_ref()?.subscription.as_ref()?;
        let keys = Some(&subscription.keys).filter(|keys| keys.token == token)?;
        Some((Callback::new(&stored.record.name, keys)?, stored))
    }

    /// Answers a hub that asks about the subscription of a feed that another gateway owns. What it says is stored: the
    /// owner finds it there before it asks the hub again.
    async fn called_for_others(
        &self,
        token: &str,
        said: &Verification,
    ) -> Result<Option<String>, PollError> {
        let Some((_, StoredFeed { state: Some(mut state), .. })) =
            self.callback_of_others(token).await
        else {
            return Ok(None);
        };
        let Some(subscription) = &mut state.subscription else { return Ok(None) };
        let answer = subscriber::called(subscription, said, self.context.clock.now());
        let Some(answer) = answer else { return Ok(None) };
        let stored = self.context.store.checkpoint(&[state]).await;
        stored.map(|()| Some(answer)).map_err(|_| PollError::Stopped)
    }

    /// Takes in what a hub says at a callback (WebSub sections 5.2 and 5.3). Answers the challenge
    /// that confirms what was asked, nothing where a denial was noted, and `None` where nothing of
    /// the kind was asked.
    pub async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, PollError> {
        if self.context.ending.is_known(token) {
            return Ok(self.context.ending.confirm_end(token, &said));
        }
        if self.callback(token).is_none() {
            return self.called_for_others(token, &said).await;
        }
        let token = token.to_owned();
        self.ask(move |it| it.called(&token, &said)).await
    }

    /// Takes in a push. One that is signed with our secret has its feed polled, whatever it says: at
    /// most one such poll of a feed waits, however many pushes there are. Where `MAX_COMMANDS` wait
    /// already it is turned away, not lost.
    pub async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult {
        let (callback, cell, stored) = match self.callback(token) {
            Some((callback, cell)) => (callback, Some(cell), None),
            None => match self.callback_of_others(token).await {
                Some((callback, stored)) => (callback, None, Some(stored)),
                None => return PushResult::Unknown,
            },
        };
        // The signature of a long body is checked where that may take its time.
        let (feed, is_long) = (callback.feed.clone(), body.len() > 64 * 1024);
        let check = move || callback.check(signature.as_deref(), &body).map_err(|e| e.to_string());
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
        // The place is taken before the feed is marked, so that no other push takes the mark of
        // one that is turned away for the promise of a poll.
        let is_marked = || cell.as_ref().is_some_and(|cell| cell.lock().waits_for_push);
        match self.commands.try_reserve() {
            Ok(_) if is_marked() => PushResult::Taken,
            Ok(place) => {
                if let Some(cell) = &cell {
                    let mut polling = cell.lock();
                    // It may have been paused since: nobody would take the mark away.
                    polling.waits_for_push = !polling.is_paused();
                }
                let token = token.to_owned();
                place.send(Box::new(move |it| match stored {
                    Some(stored) => it.poll_once(stored, None),
                    None => it.pushed(&token),
                }));
                PushResult::Taken
            }
            Err(_) if is_marked() => PushResult::Taken,
            Err(_) => PushResult::Busy,
        }
    }

    /// Begins to poll a feed, or goes on with a changed record. A record that is not active stops
    /// the feed. Answers when no round of the earlier record is in flight any more.
    pub async fn put(&self, record: FeedRecord) -> Result<(), PollError> {
        self.wait_for(move |it, reply| it.put(Arc::new(record), reply)).await
    }

    /// Begins to poll a new feed right away; what is answered can be waited for.
    pub async fn put_and_poll(&self, record: FeedRecord) -> Result<FirstPoll, PollError> {
        let (reply, answer) = oneshot::channel();
        self.send(move |it| it.put_and_poll(Arc::new(record), reply)).await?;
        Ok(FirstPoll(answer))
    }

    /// Goes on with records that differ in nothing that polling follows, so that it keeps no older ones in
    /// memory beside those of the store.
    pub async fn share(&self, records: Vec<Arc<FeedRecord>>) -> Result<(), PollError> {
        self.send(move |it| it.share_records(records)).await
    }

    /// Stops polling a feed. Answers when no round of it is in flight any more, so that its data
    /// can be removed.
    pub async fn remove(&self, feed: &FeedName) -> Result<(), PollError> {
        let feed = feed.clone();
        self.wait_for(move |it, reply| it.remove(&feed, reply)).await
    }

    /// Goes on with other settings and another client.
    pub async fn reconfigure(
        &self,
        settings: PollSettings,
        services: Services,
    ) -> Result<(), PollError> {
        self.context.settings.store(Arc::new(settings));
        self.context.services.store(Arc::new(services));
        self.send(PollScheduler::reconfigure).await
    }

    /// What polling decides with: its limits.
    pub fn decisions(&self) -> &DecisionContext {
        &self.context.decisions
    }

    /// Lets changes leave the window of a feed, and what is too old its ledger and archives, as a poll of it would.
    pub async fn age(&self, feed: &Arc<FeedRecord>) -> Result<(), RoundError> {
        age_feed(&self.context, feed, self.context.clock.now()).await.map(drop)
    }

    /// How a feed's polling stands.
    pub fn status(&self, feed: &FeedName) -> Option<PollStatus> {
        self.context.table.get(feed).map(|cell| cell.lock().describe())
    }

    /// How a feed's polling stands, in short.
    pub fn summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        self.context.table.get(feed).map(|cell| cell.lock().summarize())
    }

    /// The feeds whose polling stands otherwise, or which are polled no more.
    pub fn changed(&self) -> &ChangedFeeds {
        &self.context.table.changed
    }

    /// How all feeds' polling stands, in short.
    #[cfg(test)]
    pub(crate) fn summaries(&self) -> std::collections::BTreeMap<FeedName, FeedSummary> {
        let all = self.context.table.all().into_iter();
        all.map(|(feed, cell)| (feed, cell.lock().summarize())).collect()
    }

    /// Sums over all polls since the start.
    pub fn totals(&self) -> PollTotals {
        *self.context.table.totals.lock()
    }

    /// Has the polling task do something, and waits for what it answers.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut PollScheduler) -> T + Send + 'static,
    ) -> Result<T, PollError> {
        // Who asked may have gone away.
        self.wait_for(move |it, reply| drop(reply.send(command(it)))).await
    }

    /// The same where the answer may come later.
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
