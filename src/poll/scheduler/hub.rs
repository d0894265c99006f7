//! Subscriptions to upstreams' hubs: when hubs are asked, in their host's line like polls, what they
//! may ask back, and what is polled because of what they push.

use super::errands::{ErrandState, FinishedErrand};
use super::{PollScheduler, ScheduledFeed};
use crate::PollSettings;
use crate::announced::AnnouncedFeed;
use crate::callbacks::Reach;
use crate::politeness::Errand;
use crate::polling::{PollContext, PollResult};
use crate::subscribe::{self, Failed};
use crate::word::behind_list;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, FeedRecord, HubSubscription, PushedPoll, ShownAddress, Time, ToldChange,
};
use tidegate_core::websub::subscriber::{self, CallbackReply, Requests};
use tidegate_core::websub::{Discovery, HubRequest, Intent, Verification};
use tidegate_net::fetch::{LeadScope, read_url};
use tidegate_status::HubReport;
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

/// What became of a request to a hub; `None`: nobody waits for that.
pub(super) type HubAsked = Option<Result<(), Failed>>;

impl PollScheduler {
    /// Takes over the subscription of a feed that polling begins with.
    pub(super) fn resume_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        let Some(subscription) = &feed.subscription else { return };
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
            let found =
                Discovery { hubs: subscription.hubs.clone(), topic: subscription.topic.clone() };
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
        let subscription = self.feeds.get(name).and_then(|feed| feed.subscription.as_ref());
        if let Some(subscription) = subscription {
            self.callbacks.shut(&subscription.keys.token);
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
        feed.subscription = Some(Box::new(subscriber::begin(found, keys, base, before, now)));
    }

    /// Moves what is to be asked along with a clock that was set back.
    pub(super) fn set_hubs_back(&mut self, by: Duration) {
        let names: Vec<_> = self.feeds.keys().cloned().collect();
        for name in &names {
            let Some(feed) = self.feeds.get_mut(name) else { continue };
            if let Some(requests) = &mut feed.hub_requests {
                **requests = requests.set_back(by);
            }
            let Some(subscription) = &mut feed.subscription else { continue };
            subscriber::set_back(subscription, by);
            self.plan_hub(name);
        }
    }

    /// Takes in what a poll says of the feed's hub.
    pub(super) fn discovered(&mut self, name: &FeedName, found: &Option<Discovery>) {
        let found = self.reached(found);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(found) = found else {
            if feed.subscription.is_some() {
                self.leave_hub(name);
                self.save_aside(name);
            }
            return;
        };
        match feed.subscription.as_mut().and_then(|it| subscriber::goes_on(it, &found)) {
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
        let covers = |it: &HubSubscription| subscriber::covers(it, begun, now);
        if feed.hearing.by_hub && !feed.subscription.as_deref().is_some_and(covers) {
            feed.hearing.by_hub = false;
            let reason = "its hub is not relied on any more";
            self.want(&AnnouncedFeed { feed: name.clone(), told: ToldChange::None, reason });
        }
    }

    fn plan_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let note = feed.subscription.clone();
        let next = feed.subscription.as_ref().map(|subscription| subscription.next);
        let is_planned = matches!(feed.subscribing, ErrandState::None | ErrandState::Due(_));
        if let Some(next) = next.filter(|_| is_planned) {
            self.plan_errand(Errand::Hub(name.clone()), next);
        }
        self.board.change(name, |status| {
            status.rare.change(|rare| {
                let before = rare.hub.take().map(|hub| *hub);
                rare.hub = note.map(|subscription| Box::new(HubReport::new(*subscription, before)));
            });
        });
    }

    /// Takes over the lease of a hub that asked another gateway back, which has stored it.
    pub(super) fn adopt_lease(&mut self, name: &FeedName, stored: &HubSubscription) {
        let Some(own) = self.feeds.get_mut(name).and_then(|feed| feed.subscription.as_deref_mut())
        else {
            return;
        };
        let until = |it: &HubSubscription| it.lease.map(|lease| lease.until);
        if own.keys == stored.keys && until(stored) > until(own) && self.owned.is_some() {
            own.clone_from(stored);
            self.hub_changed(name);
        }
    }

    /// Puts a request to a hub that is due into its host's line.
    pub(super) fn line_up_hub(&mut self, name: &FeedName, now: Time) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.subscribing = ErrandState::None;
        let Some(subscription) = &mut feed.subscription else { return };
        if subscriber::due(subscription, now) {
            let host = self.settings.host(subscription.address());
            self.enqueue(&Errand::Hub(name.clone()), host);
        }
        self.hub_changed(name);
    }

    pub(super) fn begin_hub(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(host) = feed.subscribing.leave_line() else { return };
        let record = Arc::clone(&feed.record);
        let request = feed.subscription.as_mut().and_then(|it| {
            subscriber::sent(it, now);
            if !it.keys.secret.is_empty() && !self.settings.may_share_secret(it.address()) {
                it.keys.secret.clear();
                self.callbacks.open(name, &it.keys);
            }
            Some((it.address().to_owned(), subscribe::request(it, true)?))
        });
        let Some((hub, request)) = request else {
            self.polite.finish(&host, Instant::now());
            return self.plan_hub(name);
        };
        let cancel = self.cancel.child_token();
        let bench = Arc::clone(&self.bench);
        let task = ask(bench, record, (hub, request), now, cancel.clone());
        self.run_errand(Errand::Hub(name.clone()), host, task, cancel);
    }

    /// `is_current`: the subscription is the one that the hub was asked for.
    pub(super) fn finish_hub(&mut self, name: &FeedName, is_current: bool, asked: HubAsked) {
        if let Some(Err(Failed { pause: Some(pause), .. })) = &asked {
            self.pause(pause);
        }
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name).filter(|_| is_current) else { return };
        if let (Some(it), Some(Err(failed))) = (&mut feed.subscription, asked) {
            let hub = shown(it.address());
            tracing::info!(feed = %name, hub = hub.text(), why = failed.why, "a hub was not subscribed to");
            subscriber::failed(it, &failed.why, failed.wait, now);
        }
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
        let subscription = self.feeds.get_mut(&name)?.subscription.as_mut()?;
        if subscription.keys.token != token {
            return None;
        }
        let reply = subscriber::called(subscription, said, now);
        match reply {
            CallbackReply::Unasked => None,
            CallbackReply::Noted => {
                tracing::info!(feed = %name, note = subscription.note, "a hub said no");
                self.hub_changed(&name);
                Some(String::new())
            }
            CallbackReply::Confirmed(challenge) => {
                let hub = shown(subscription.address());
                tracing::debug!(feed = %name, hub = hub.text(), "a hub delivers");
                self.hub_changed(&name);
                Some(challenge)
            }
        }
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
        let Some(it) = feed.subscription.as_mut().filter(|it| it.keys.token == token) else {
            return;
        };
        feed.hearing.told = feed.hearing.told.max(subscriber::pushed(it, now));
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
        let Some(it) = feed.subscription.as_mut() else {
            feed.hearing.by_hub = false;
            return false;
        };
        let was_relied_on = it.trust.is_relied_on(now);
        let is_material = subscriber::polled(it, poll, now);
        if was_relied_on && let Some(until) = it.trust.distrusted_until {
            let hub = shown(it.address());
            tracing::info!(feed = %name, hub = hub.text(), %until, "a hub told of no change, and is not relied on");
        }
        let covers = subscriber::covers(it, begun, now) && found.held.is_none();
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
            let hub = feed.subscription.as_ref().map(|it| it.address());
            hub.is_some_and(|hub| !is_reached(settings.reach.as_ref(), settings, hub))
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
        let Some(left) = feed.subscription.take() else { return };
        let record = Arc::clone(&feed.record);
        feed.hub_requests = Some(Box::new(Requests::from_subscription(&left)));
        self.callbacks.shut(&left.keys.token);
        self.board.change(name, |status| status.rare.change(|rare| rare.hub = None));
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
        if self.polite.ask_out_of_turn(&self.settings.host(&hub), now).is_err() {
            return;
        }
        let leaving = Leaving { topic: left.topic, since: now };
        self.callbacks.leave(&left.keys.token);
        self.leaving.insert(left.keys.token, leaving);
        let (bench, at) = (Arc::clone(&self.bench), self.clock.now());
        self.running.spawn(ask(bench, record, (hub, request), at, self.cancel.child_token()));
    }
}

/// Asks a hub for a feed, unless that is given up.
async fn ask(
    bench: Arc<PollContext>,
    feed: Arc<FeedRecord>,
    (hub, request): (String, HubRequest),
    now: Time,
    cancel: CancellationToken,
) -> FinishedErrand {
    let asking = async {
        let leads = behind_list(&bench.store, &feed, LeadScope::of_feed(&feed)).await;
        let leads =
            leads.map_err(|error| Failed { why: in_words(&error), wait: None, pause: None })?;
        subscribe::ask(bench.call.clone(), (hub, leads), request, now).await
    };
    FinishedErrand::Hub(tokio::select! {
        () = cancel.cancelled() => None,
        asked = asking => Some(asked),
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
