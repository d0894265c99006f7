//! Subscriptions to the hubs of upstream feeds: requests to hubs, which wait in host lines like polls; verification;
//! and polls caused by pushes.

use super::{HOST_PAUSED, PollScheduler, SLICE};
use crate::feeds::{FeedCell, FeedPolling};
use crate::politeness::HostRank;
use crate::polling::{BROKE_OFF, BackgroundTask, PollContext, PollResult, catch_panic};
use crate::schedule::phase;
use crate::subscribe;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, HubSubscription, PushedPoll, ShownAddress, Time};
use tidegate_core::pause::GrowingPause;
use tidegate_core::websub::subscriber;
use tidegate_core::websub::{Discovery, HubRequest, Verification};
use tidegate_net::fetch::{FetchError, Retry};
use tidegate_store::{StoreError, in_words};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The shortest time between a poll and a further poll caused by a push. It doubles with each such poll that finds
/// nothing new, up to this limit or the feed's shortest interval.
pub const PUSH_PAUSE: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(5), Duration::from_secs(5120));

/// The longest sleep of a hub task; jitter of up to the same time is added.
const MAX_SLEEP: Duration = Duration::from_secs(5 * 60);

/// The task that sends the subscription requests of a feed to its hub.
pub(crate) struct HubTask {
    task: BackgroundTask,
    /// Wakes the task: the time of the next request may have changed.
    changed: Arc<Notify>,
}

impl FeedPolling {
    /// Wakes the hub task, because the time of its next request may have changed.
    pub(super) fn wake_hub(&self) {
        self.live.subscribing.iter().for_each(|asking| asking.changed.notify_one());
    }

    fn with_hub<T>(&mut self, change: impl FnOnce(&mut HubSubscription) -> T) -> Option<T> {
        self.memory.state.subscription.as_deref_mut().map(change)
    }
}

impl PollScheduler {
    /// Reads or changes the hub subscription of a feed; `None` if there is none.
    fn with_hub<T>(
        &self,
        name: &FeedName,
        change: impl FnOnce(&mut HubSubscription) -> T,
    ) -> Option<T> {
        self.with_feed(name, |feed| feed.with_hub(change)).flatten()
    }

    /// Continues a stored subscription when polling of the feed begins or the settings change.
    pub(super) fn resume_hub(&mut self, name: &FeedName) {
        let Some(subscription) = self.with_hub(name, |it| it.clone()) else { return };
        let settings = self.context.settings.load();
        // Drop a subscription whose hub can no longer reach this gateway, or that is no longer wanted.
        if !settings.is_reached_by(subscription.address()) {
            self.leave_hub(name);
            self.save_soon(name);
            return;
        }
        let reached = settings.reach.as_ref().map(|reach| reach.callbacks.as_str());
        let is_named = subscribe::feed_of_token(&subscription.keys.token).as_ref() == Some(name);
        if reached != Some(&subscription.callbacks) || !is_named {
            // The hub calls an outdated callback address: subscribe again.
            let found = Discovery { hubs: subscription.hubs, topic: subscription.topic };
            self.begin_anew(name, &found);
            return self.hub_changed(name);
        }
        self.ask_hub(name);
    }

    /// Replaces the feed's subscription by a new one to the hub of `found`.
    fn begin_anew(&mut self, name: &FeedName, found: &Discovery) {
        let now = self.context.clock.now();
        self.leave_hub(name);
        let settings = self.context.settings.load();
        let (Some(keys), Some(reach)) = (subscribe::mint(name), &settings.reach) else {
            return;
        };
        self.with_feed(name, |feed| {
            let spent = feed.live.hub_spent;
            let subscription = subscriber::begin(found, keys, &reach.callbacks, spent, now);
            feed.memory.state.subscription = Some(Box::new(subscription));
        });
    }

    /// Applies the hub discovered by a poll: begins, continues or ends the subscription.
    pub(super) fn discovered(&mut self, name: &FeedName, found: &Option<Discovery>) {
        let mut found = found.clone();
        // Ignore hubs that cannot reach this gateway.
        if let Some(found) = &mut found {
            let settings = self.context.settings.load();
            found.hubs.retain(|hub| settings.is_reached_by(hub));
        }
        let Some(found) = found.filter(|found| !found.hubs.is_empty()) else {
            if self.with_hub(name, |_| ()).is_some() {
                self.leave_hub(name);
                self.save_soon(name);
            }
            return;
        };
        match self.with_hub(name, |it| subscriber::goes_on(it, &found)).flatten() {
            Some(false) => return,
            Some(true) => {}
            None => self.begin_anew(name, &found),
        }
        self.hub_changed(name);
    }

    /// Follows up a changed subscription: plans its next request and has it written.
    fn hub_changed(&mut self, name: &FeedName) {
        self.ask_hub(name);
        self.save_soon(name);
        self.watch_hub(name);
    }

    /// Schedules a poll if the feed relied on its hub and the hub is no longer trusted.
    pub(super) fn watch_hub(&mut self, name: &FeedName) {
        let now = self.context.clock.now();
        let is_revoked = self.with_feed(name, |feed| {
            let begun = feed.live.polled.unwrap_or(now);
            let covers = feed.with_hub(|it| subscriber::covers(it, begun, now));
            let is_revoked = feed.live.by_hub && covers != Some(true);
            feed.live.by_hub &= !is_revoked;
            is_revoked
        });
        if is_revoked == Some(true) {
            self.poll_uncovered(name, "its hub is not relied on any more");
        }
    }

    /// Starts the feed's hub task, or wakes it if it runs.
    fn ask_hub(&self, name: &FeedName) {
        let Some(cell) = self.context.table.live(name) else { return };
        let mut feed = cell.lock();
        let Some(token) = feed.with_hub(|it| it.keys.token.clone()) else { return };
        if feed.live.subscribing.as_ref().is_some_and(|asking| !asking.task.task.is_finished()) {
            return feed.wake_hub();
        }
        let (context, cell) = (Arc::clone(&self.context), Arc::clone(&cell));
        let changed = Arc::<Notify>::default();
        let subscriber = Subscriber { context, cell, token, changed: Arc::clone(&changed) };
        let task = self.context.spawn_background(|cancel| subscriber.run(cancel));
        feed.live.subscribing = Some(Box::new(HubTask { task, changed }));
    }

    /// Answers a hub that calls the callback of `token`: the challenge, an empty text for a denial, or `None` if the
    /// subscription was not requested.
    pub(crate) fn called(
        &mut self,
        name: &FeedName,
        token: &str,
        said: &Verification,
    ) -> Option<String> {
        let now = self.context.clock.now();
        let reply = self.with_hub(name, |it| {
            if it.keys.token != token {
                return None;
            }
            let answer = subscriber::called(it, said, now)?;
            let hub = ShownAddress::new(it.address(), None);
            match said {
                Verification::Denied { .. } => {
                    tracing::info!(feed = %name, note = it.note, "a hub said no");
                }
                Verification::Intent { .. } => {
                    tracing::debug!(feed = %name, hub = hub.text(), "a hub delivers");
                }
            }
            Some(answer)
        });
        let answer = reply??;
        self.hub_changed(name);
        Some(answer)
    }

    /// Polls a feed because its hub pushed an update, whatever its schedule says; no sooner after its last poll than
    /// [`PUSH_PAUSE`] allows.
    pub(crate) fn pushed(&mut self, name: &FeedName, token: &str) {
        let now = self.context.clock.now();
        let told = self.with_feed(name, |feed| {
            feed.live.waits_for_push = false;
            let was_told = feed.memory.is_told();
            let is_own = |it: &mut HubSubscription| it.keys.token == token;
            let pushed = |it: &mut HubSubscription| is_own(it).then(|| subscriber::pushed(it, now));
            let told = feed.with_hub(pushed).flatten()?;
            feed.live.told = feed.live.told.max(told);
            Some((feed.live.push_pause(self.bounds(&feed.record).min()), was_told))
        });
        if let Some((pause, was_told)) = told.flatten() {
            if !was_told {
                // The hub does not tell again if this gateway stops before it polls.
                self.save_soon(name);
            }
            self.poll_soon(name, pause, Duration::ZERO, "its hub told of a change");
        }
    }

    /// Updates the trust in the feed's hub after a successful poll. Returns whether the hub is expected to announce
    /// every further change.
    pub(super) fn update_hub_trust(
        &mut self,
        (name, cell): (&FeedName, &FeedCell),
        found: &PollResult,
        begun: Time,
        poll: PushedPoll,
    ) -> bool {
        // A document that is held back is not trusted for its hub either.
        if let Some(hub) = found.hub.as_ref().filter(|_| found.held.is_none()) {
            self.discovered(name, hub);
        }
        let now = self.context.clock.now();
        let mut feed = cell.lock();
        let heard = feed.with_hub(|it| {
            let was_relied_on = it.trust.is_relied_on(now);
            let is_material = subscriber::polled(it, poll, now);
            if was_relied_on && let Some(until) = it.trust.distrusted_until {
                let hub = ShownAddress::new(it.address(), None);
                tracing::info!(feed = %name, hub = hub.text(), %until, "a hub told of no change, and is not relied on");
            }
            (is_material, subscriber::covers(it, begun, now) && found.held.is_none())
        });
        let (is_material, covers) = heard.unwrap_or_default();
        feed.live.by_hub = covers;
        drop(feed);
        if is_material {
            self.save_soon(name);
        }
        covers
    }

    /// Ends the feed's subscription, if any, with one unsubscribe request. If that fails, the lease expires; until then
    /// pushes are answered with 410.
    pub(super) fn leave_hub(&mut self, name: &FeedName) {
        let left = self.with_feed(name, |feed| {
            let left = feed.memory.state.subscription.take()?;
            (feed.live.subscribing, feed.disbelieved) = (None, None);
            feed.live.hub_spent = left.spent;
            Some((left, Arc::clone(&feed.record)))
        });
        let Some((left, record)) = left.flatten() else { return };
        let is_asked = left.is_held(self.context.clock.now()) && self.context.may_poll();
        let request = subscribe::request(&left, false).filter(|_| is_asked);
        let Some(request) = request else { return };
        let hub = left.address().to_owned();
        self.context.ending.leave(&left.keys.token, &left.topic);
        let (context, cancel) = (Arc::clone(&self.context), self.context.cancel.clone());
        self.context.spawn(async move {
            let asking = async {
                if let Ok(_slot) = context.hosts.slot(&hub, HostRank::Usual).await {
                    // Sent once; its result changes nothing.
                    let _ = ask(&context, &record, hub, request, context.clock.now()).await;
                }
            };
            cancel.run_until_cancelled(asking).await;
        });
    }
}

/// The state of a hub task: its feed, and the token by which it recognizes its subscription.
struct Subscriber {
    context: Arc<PollContext>,
    cell: Arc<FeedCell>,
    token: String,
    changed: Arc<Notify>,
}

impl Subscriber {
    /// Reads or changes the subscription; `None` if another one has replaced it.
    fn with<T>(&self, change: impl FnOnce(&mut HubSubscription) -> T) -> Option<T> {
        let mut feed = self.cell.lock();
        let subscription = feed.memory.state.subscription.as_deref_mut();
        subscription.filter(|it| it.keys.token == self.token).map(change)
    }

    /// Sends each request that is due, as long as the feed has this subscription.
    async fn run(self, cancel: CancellationToken) {
        let spread = phase(&self.name()) % MAX_SLEEP.as_secs();
        let longest = MAX_SLEEP + Duration::from_secs(spread);
        let asking = async {
            while let Some(next) = self.with(|it| it.next) {
                let left = next.since(self.context.clock.now());
                if left.is_zero() && self.context.is_open() {
                    // Boxed, so that a sleeping task takes little memory.
                    Box::pin(self.ask_now(&cancel)).await;
                    continue;
                }
                // Wake early: the wall clock may leap ahead of this sleep, or the hub may call.
                let _ = timeout(left.clamp(SLICE, longest), self.changed.notified()).await;
            }
        };
        cancel.run_until_cancelled(asking).await;
    }

    async fn ask_now(&self, cancel: &CancellationToken) {
        let (now, settings) = (self.context.clock.now(), self.context.settings.load_full());
        let request = self.with(|it| {
            if !subscriber::due(it, now) {
                return None;
            }
            if !it.keys.secret.is_empty() && !settings.may_share_secret(it.address()) {
                it.keys.secret.clear();
            }
            Some((it.address().to_owned(), subscribe::request(it, true)?))
        });
        self.note_change(cancel).await;
        let Some((hub, request)) = request.flatten() else { return };
        let asking = async {
            let _slot = match self.context.hosts.slot(&hub, HostRank::Usual).await {
                Ok(slot) => slot,
                Err(left) => {
                    let at = self.context.clock.now().plus(left).plus(SLICE);
                    self.with(|it| subscriber::put_off(it, HOST_PAUSED, at));
                    return Ok(());
                }
            };
            let now = self.context.clock.now();
            self.with(|it| subscriber::sent(it, now));
            let record = Arc::clone(&self.cell.lock().record);
            ask(&self.context, &record, hub.clone(), request, now).await
        };
        let broke_off = || FetchError::Client { what: "ask a hub", why: BROKE_OFF.to_owned() };
        if let Err(error) = catch_panic(asking, || Err(broke_off())).await {
            let why = error.to_string().replace("the publisher", "the hub");
            let wait = if let Retry::After(wait) = error.retry() { Some(wait) } else { None };
            let now = self.context.clock.now();
            let hub = ShownAddress::new(&hub, None);
            tracing::info!(feed = %self.name(), hub = hub.text(), why, "a hub was not subscribed to");
            self.with(|it| subscriber::failed(it, &why, wait, now));
        }
        self.note_change(cancel).await;
    }

    fn name(&self) -> FeedName {
        self.cell.lock().record.name.clone()
    }

    /// Has the subscription written unless it was cancelled, and the feed polled if it relied on a hub no longer
    /// trusted.
    async fn note_change(&self, cancel: &CancellationToken) {
        let (name, is_given_up) = (self.name(), || cancel.is_cancelled());
        self.context.table.remember_unless(&name, &self.cell, Duration::ZERO, is_given_up);
        self.context.command(move |it| it.watch_hub(&name)).await;
    }
}

/// Sends `request` to the hub on behalf of `feed`.
async fn ask(
    context: &PollContext,
    feed: &FeedRecord,
    hub: String,
    request: HubRequest,
    now: Time,
) -> Result<(), FetchError> {
    let unread =
        |error: StoreError| FetchError::Client { what: "read the list", why: in_words(&error) };
    let leads = context.lead_scope(feed).await.map_err(unread)?;
    let call = context.services.load().call.clone();
    let asked = subscribe::ask(call, (hub.clone(), leads), request, now).await;
    let pause = asked.as_ref().err().and_then(|error| error.pause(&hub));
    pause.iter().for_each(|pause| context.hosts.pause(pause));
    asked
}
