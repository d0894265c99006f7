//! Subscriptions to upstreams' hubs: when hubs are asked, in their host's line like polls, what they
//! may ask back, and what is polled because of what they push.

use super::errands::{Errand, ErrandState, FinishedErrand};
use super::{HOST_PAUSED, PAUSE_MARGIN, PollScheduler, ScheduledFeed};
use crate::PollSettings;
use crate::announced::AnnouncedFeed;
use crate::callbacks::Reach;
use crate::polling::{PollContext, PollResult};
use crate::subscribe::{self, Failed};
use crate::word::behind_list;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, FeedRecord, HubSubscription, PushedPoll, ShownAddress, Time, ToldChange,
};
use tidegate_core::websub::subscriber::{self, Requests};
use tidegate_core::websub::{Discovery, HubRequest, Intent, Verification};
use tidegate_net::fetch::{LeadScope, read_url};
use tidegate_store::in_words;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most subscriptions that are being ended at the same time; what is beyond is not asked for:
/// the lease runs out.
pub const MAX_LEAVING: usize = 64;
/// How long a hub may take to ask whether the end of a subscription was meant.
const LEAVING_TIME: Duration = Duration::from_secs(10 * 60);

/// A subscription that is being ended.
pub(super) struct Leaving {
    topic: String,
    since: Instant,
}

/// What became of a request to a hub.
pub(super) enum HubAsked {
    /// The hub has taken it, or nobody waits for it any more.
    Done,
    Failed(Failed),
    /// Its host asked to be left alone, for so long still.
    PutOff(Duration),
}

impl ScheduledFeed {
    /// Looks at the subscription to its hub, or changes it; `None` where there is none.
    fn with_hub<T>(&self, change: impl FnOnce(&mut HubSubscription) -> T) -> Option<T> {
        self.cell.lock().memory.state.subscription.as_deref_mut().map(change)
    }
}

impl PollScheduler {
    /// Takes over the subscription of a feed that polling begins with.
    pub(super) fn resume_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        let Some(subscription) = feed.with_hub(|it| it.clone()) else { return };
        // What has become unreachable, or unwanted, is given up.
        if !is_reached(self.settings.reach.as_ref(), &self.settings, subscription.address()) {
            self.leave_hub(name);
            self.save_aside(name);
            return;
        }
        let reached = self.settings.reach.as_ref().map(|reach| reach.callbacks.as_str());
        let is_named = subscribe::feed_of_token(&subscription.keys.token).as_ref() == Some(name);
        if reached != Some(&subscription.callbacks) || (self.owned.is_some() && !is_named) {
            // It calls an address at which nobody answers any more, or that not every gateway knows.
            let found = Discovery { hubs: subscription.hubs, topic: subscription.topic };
            self.begin_anew(name, &found);
            return self.hub_changed(name);
        }
        self.callbacks.open(name, &subscription.keys);
        self.plan_hub(name);
    }

    /// What was found, without the hubs that cannot reach this gateway; `None` where no other is named.
    fn reached(&self, found: &Option<Discovery>) -> Option<Discovery> {
        let mut found = found.clone()?;
        let reach = self.settings.reach.as_ref();
        found.hubs.retain(|hub| is_reached(reach, &self.settings, hub));
        (!found.hubs.is_empty()).then_some(found)
    }

    /// Shuts the callback of a feed that another gateway is to poll, which goes on with its subscription.
    pub(super) fn close_callback(&mut self, name: &FeedName) {
        self.forget(&Errand::Hub(name.clone()));
        if let Some(feed) = self.feeds.get(name) {
            feed.with_hub(|it| self.callbacks.shut(&it.keys.token));
        }
    }

    /// Subscribes to what was found, instead of what is subscribed to.
    fn begin_anew(&mut self, name: &FeedName, found: &Discovery) {
        let now = self.clock.now();
        self.leave_hub(name);
        let (Some(keys), Some(reach)) = (subscribe::mint(name), &self.settings.reach) else {
            return;
        };
        let Some(feed) = self.feeds.get_mut(name) else { return };
        self.callbacks.open(name, &keys);
        let (base, before) = (&reach.callbacks, feed.hub_requests.as_deref().copied());
        let subscription = subscriber::begin(found, keys, base, before, now);
        feed.cell.lock().memory.state.subscription = Some(Box::new(subscription));
    }

    /// Moves what is to be asked along with a clock that was set back.
    pub(super) fn set_hubs_back(&mut self, by: Duration) {
        let names: Vec<_> = self.feeds.keys().cloned().collect();
        for name in &names {
            let Some(feed) = self.feeds.get_mut(name) else { continue };
            if let Some(requests) = &mut feed.hub_requests {
                **requests = requests.set_back(by);
            }
            if feed.with_hub(|it| subscriber::set_back(it, by)).is_some() {
                self.plan_hub(name);
            }
        }
    }

    /// Takes in what a poll says of the feed's hub.
    pub(super) fn discovered(&mut self, name: &FeedName, found: &Option<Discovery>) {
        let found = self.reached(found);
        let Some(feed) = self.feeds.get(name) else { return };
        let Some(found) = found else {
            if feed.with_hub(|_| ()).is_some() {
                self.leave_hub(name);
                self.save_aside(name);
            }
            return;
        };
        match feed.with_hub(|it| subscriber::goes_on(it, &found)).flatten() {
            Some(false) => return,
            Some(true) => {}
            None => self.begin_anew(name, &found),
        }
        self.hub_changed(name);
    }

    /// Notes that a subscription is another one than before: it is shown, written down, and its next
    /// request is planned.
    pub(super) fn hub_changed(&mut self, name: &FeedName) {
        self.plan_hub(name);
        self.save_aside(name);
        self.watch_hub(name);
    }

    /// Polls a feed as without a hub again, where it was left to one that is not believed any more.
    fn watch_hub(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let begun = feed.hearing.polled.unwrap_or(now);
        let covers = feed.with_hub(|it| subscriber::covers(it, begun, now));
        if feed.hearing.by_hub && covers != Some(true) {
            feed.hearing.by_hub = false;
            let reason = "its hub is not relied on any more";
            self.want(&AnnouncedFeed { feed: name.clone(), told: ToldChange::None, reason });
        }
    }

    fn plan_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        let is_planned = matches!(feed.subscribing, ErrandState::None | ErrandState::Due(_));
        if let Some(next) = feed.with_hub(|it| it.next).filter(|_| is_planned) {
            self.plan_errand(Errand::Hub(name.clone()), next);
        }
    }

    /// Takes over the lease of a hub that asked another gateway back, which has stored it.
    pub(super) fn adopt_lease(&mut self, name: &FeedName, stored: &HubSubscription) {
        let Some(feed) = self.feeds.get(name).filter(|_| self.owned.is_some()) else { return };
        let until = |it: &HubSubscription| it.lease.map(|lease| lease.until);
        let adopts = feed.with_hub(|own| {
            let adopts = own.keys == stored.keys && until(stored) > until(own);
            if adopts {
                own.clone_from(stored);
            }
            adopts
        });
        if adopts == Some(true) {
            self.hub_changed(name);
        }
    }

    /// Asks a hub, where that is due.
    pub(super) fn begin_hub(&mut self, name: &FeedName, now: Time) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.subscribing = ErrandState::None;
        let request = feed.with_hub(|it| {
            if !subscriber::due(it, now) {
                return None;
            }
            if !it.keys.secret.is_empty() && !self.settings.may_share_secret(it.address()) {
                it.keys.secret.clear();
                self.callbacks.open(name, &it.keys);
            }
            Some((it.address().to_owned(), subscribe::request(it, true)?))
        });
        if let Some((hub, request)) = request.flatten() {
            let (record, cell) = (Arc::clone(&feed.record), Arc::clone(&feed.cell));
            let (bench, cancel) = (Arc::clone(&self.bench), self.cancel.child_token());
            let asking = async move {
                let _slot = match bench.hosts.slot(&hub).await {
                    Ok(slot) => slot,
                    Err(left) => return HubAsked::PutOff(left),
                };
                let now = bench.clock.now();
                if let Some(it) = cell.lock().memory.state.subscription.as_deref_mut() {
                    subscriber::sent(it, now);
                }
                ask(&bench, &record, (hub, request), now).await
            };
            let task = given_up(cancel.clone(), asking);
            self.run_errand(Errand::Hub(name.clone()), task, cancel);
        }
        self.hub_changed(name);
    }

    pub(super) fn finish_hub(&mut self, name: &FeedName, asked: HubAsked) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get(name) else { return };
        feed.with_hub(|it| match asked {
            HubAsked::Done => {}
            HubAsked::PutOff(left) => {
                subscriber::put_off(it, HOST_PAUSED, now.plus(left).plus(PAUSE_MARGIN));
            }
            HubAsked::Failed(failed) => {
                let hub = shown(it.address());
                tracing::info!(feed = %name, hub = hub.text(), why = failed.why, "a hub was not subscribed to");
                subscriber::failed(it, &failed.why, failed.wait, now);
            }
        });
        self.hub_changed(name);
    }

    /// What a hub that calls is answered: the challenge, or nothing where what it asks was not
    /// asked for.
    pub(super) fn called(&mut self, token: &str, said: &Verification) -> Option<String> {
        let now = self.clock.now();
        if let Some(leaving) = self.leaving.get(token) {
            return match said {
                Verification::Intent { intent: Intent::Unsubscribe, topic, challenge, .. }
                    if *topic == leaving.topic =>
                {
                    Some(challenge.clone())
                }
                _ => None,
            };
        }
        let name = self.callbacks.by_token(token)?.feed.clone();
        let reply = self.feeds.get(&name)?.with_hub(|it| {
            if it.keys.token != token {
                return None;
            }
            let answer = subscriber::called(it, said, now)?;
            let hub = shown(it.address());
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
        self.hub_changed(&name);
        Some(answer)
    }

    /// A hub has pushed something: the feed is polled now, whatever its schedule says, but no sooner
    /// after its last poll than [`ScheduledFeed::push_pause`].
    pub(super) fn pushed(&mut self, token: &str) {
        let Some(callback) = self.callbacks.by_token(token) else { return };
        callback.mark_reported();
        let name = callback.feed.clone();
        let now = self.clock.now();
        let least = self.feeds.get(&name).map(|feed| self.settings.bounds(&feed.record.options));
        let Some((feed, least)) = self.feeds.get_mut(&name).zip(least) else { return };
        let pushed = feed
            .with_hub(|it| (it.keys.token == token).then(|| subscriber::pushed(it, now)))
            .flatten();
        let Some(told) = pushed else { return };
        feed.hearing.told = feed.hearing.told.max(told);
        let pause = feed.push_pause(least.min());
        self.plan_hub(&name);
        self.bring_about(&name, pause, Duration::ZERO, "its hub told of a change");
    }

    /// Takes in a successful poll, for what the hub of its feed is worth; whether every change from
    /// now on will be told of.
    pub(super) fn heard_of_hub(
        &mut self,
        name: &FeedName,
        found: &PollResult,
        begun: Time,
        poll: PushedPoll,
    ) -> bool {
        // What is held back is not believed in this either.
        if let Some(hub) = found.hub.as_ref().filter(|_| found.held.is_none()) {
            self.discovered(name, hub);
        }
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return false };
        let heard = feed.with_hub(|it| {
            let was_relied_on = it.trust.is_relied_on(now);
            let is_material = subscriber::polled(it, poll, now);
            if was_relied_on && let Some(until) = it.trust.distrusted_until {
                let hub = shown(it.address());
                tracing::info!(feed = %name, hub = hub.text(), %until, "a hub told of no change, and is not relied on");
            }
            (is_material, subscriber::covers(it, begun, now) && found.held.is_none())
        });
        let (is_material, covers) = heard.unwrap_or_default();
        feed.hearing.by_hub = covers;
        if is_material {
            self.plan_hub(name);
            self.save_aside(name);
        }
        covers
    }

    /// Ends the subscriptions to hubs that other settings do not allow.
    pub(super) fn leave_hubs_beyond(&mut self, settings: &PollSettings) {
        let is_beyond = |feed: &ScheduledFeed| {
            let is_reached = |it: &mut HubSubscription| {
                is_reached(settings.reach.as_ref(), settings, it.address())
            };
            feed.with_hub(is_reached) == Some(false)
        };
        let beyond = self.feeds.iter().filter(|(_, feed)| is_beyond(feed));
        let beyond: Vec<_> = beyond.map(|(name, _)| name.clone()).collect();
        for name in &beyond {
            self.leave_hub(name);
            self.save_aside(name);
            self.watch_hub(name);
        }
    }

    /// Ends the subscription of a feed, where there is one: the hub is asked to, once. Where that
    /// fails its lease runs out, and what it still pushes is answered with 410.
    pub(super) fn leave_hub(&mut self, name: &FeedName) {
        self.forget(&Errand::Hub(name.clone()));
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let mut polling = feed.cell.lock();
        let Some(left) = polling.memory.state.subscription.take() else { return };
        polling.disbelieved = None;
        drop(polling);
        let record = Arc::clone(&feed.record);
        feed.hub_requests = Some(Box::new(Requests::from_subscription(&left)));
        self.callbacks.shut(&left.keys.token);
        let now = Instant::now();
        let callbacks = &self.callbacks;
        self.leaving.retain(|token, leaving| {
            let waits = now.duration_since(leaving.since) < LEAVING_TIME;
            if !waits {
                callbacks.shut(token);
            }
            waits
        });
        let was_held = left.is_held(self.clock.now());
        let room = was_held && self.leaving.len() < MAX_LEAVING && self.may_begin();
        let request = subscribe::request(&left, false).filter(|_| room);
        let Some(request) = request else { return };
        let hub = left.address().to_owned();
        // It is one more request to that host.
        if self.bench.hosts.ask_out_of_turn(&hub).is_err() {
            return;
        }
        let leaving = Leaving { topic: left.topic, since: now };
        self.callbacks.leave(&left.keys.token);
        self.leaving.insert(left.keys.token, leaving);
        let (bench, at) = (Arc::clone(&self.bench), self.clock.now());
        let asking = async move { ask(&bench, &record, (hub, request), at).await };
        self.running.spawn(given_up(self.cancel.child_token(), asking));
    }
}

/// Asks a hub for a feed.
async fn ask(
    bench: &PollContext,
    feed: &FeedRecord,
    (hub, request): (String, HubRequest),
    now: Time,
) -> HubAsked {
    let asked = match behind_list(&bench.store, feed, LeadScope::of_feed(feed)).await {
        Ok(leads) => subscribe::ask(bench.call.clone(), (hub, leads), request, now).await,
        Err(error) => Err(Failed::new(in_words(&error))),
    };
    match asked {
        Ok(()) => HubAsked::Done,
        Err(failed) => {
            failed.pause.iter().for_each(|pause| bench.hosts.pause(pause));
            HubAsked::Failed(failed)
        }
    }
}

/// Asks a hub, unless that is given up.
async fn given_up(
    cancel: CancellationToken,
    asking: impl Future<Output = HubAsked>,
) -> FinishedErrand {
    FinishedErrand::Hub(tokio::select! {
        () = cancel.cancelled() => HubAsked::Done,
        asked = asking => asked,
    })
}

/// How soon after a poll a feed may be polled again because of a push.
pub const PUSH_PAUSE: Duration = Duration::from_secs(5);

impl ScheduledFeed {
    /// How soon after its last poll it may be polled because of a push: it doubles with each push
    /// after which nothing was new, up to the shortest interval of its schedule.
    pub(super) fn push_pause(&self, least: Duration) -> Duration {
        PUSH_PAUSE.saturating_mul(1 << self.hearing.futile.min(10)).min(least)
    }
}

/// The address of a hub as the log may tell it.
fn shown(hub: &str) -> ShownAddress {
    ShownAddress::new(hub, None)
}

/// Whether a hub can reach this gateway.
fn is_reached(reach: Option<&Reach>, settings: &PollSettings, hub: &str) -> bool {
    reach.is_some_and(|reach| {
        let own = || read_url(hub).is_ok_and(|url| settings.allow_private.is_own_host(&url));
        !reach.own_hosts || own()
    })
}

/// The subscriptions that are being ended, by token.
pub(super) type AllLeaving = HashMap<String, Leaving>;
