//! Subscriptions to upstreams' hubs: when hubs are asked, in their host's line like polls, what they
//! may ask back, and what is polled because of what they push.

use super::{Errand, Finished, HOST_PAUSED, PAUSE_MARGIN, PollScheduler, ScheduledFeed};
use crate::domains::behind_list;
use crate::polling::{BROKE_OFF, PollContext, PollResult};
use crate::subscribe::{self, Failed};
use crate::sup::AnnouncedFeed;
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    FeedName, FeedRecord, HubSubscription, PushedPoll, ShownAddress, Time, ToldChange,
};
use tidegate_core::pause::GrowingPause;
use tidegate_core::websub::subscriber::{self, Requests};
use tidegate_core::websub::{Discovery, HubRequest, Verification};
use tidegate_net::fetch::LeadScope;
use tidegate_store::in_words;

/// What became of a request to a hub.
pub(super) enum HubAsked {
    /// The hub has taken it, or nobody waits for it any more.
    Done,
    Failed(Failed),
    /// Its host asked to be left alone, for so long still.
    PutOff(Duration),
}

impl ScheduledFeed {
    /// Moves what is to be asked along with a clock that was set back.
    pub(super) fn set_hub_back(&mut self, by: Duration) {
        if let Some(requests) = &mut self.hub_requests {
            **requests = requests.set_back(by);
        }
        self.with_hub(|it| subscriber::set_back(it, by));
    }

    /// Looks at the subscription to its hub, or changes it; `None` where there is none.
    fn with_hub<T>(&self, change: impl FnOnce(&mut HubSubscription) -> T) -> Option<T> {
        self.cell.lock().memory.state.subscription.as_deref_mut().map(change)
    }
}

impl PollScheduler {
    /// Goes on with the subscription of a feed that polling begins with, or after the settings have changed.
    pub(super) fn resume_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        let Some(subscription) = feed.with_hub(|it| it.clone()) else { return };
        // What has become unreachable, or unwanted, is given up.
        if !self.settings.is_reached_by(subscription.address()) {
            self.leave_hub(name);
            self.save_aside(name);
            return;
        }
        let reached = self.settings.reach.as_ref().map(|reach| reach.callbacks.as_str());
        let is_named = subscribe::feed_of_token(&subscription.keys.token).as_ref() == Some(name);
        if reached != Some(&subscription.callbacks) || !is_named {
            // It calls an address at which nobody answers any more.
            let found = Discovery { hubs: subscription.hubs, topic: subscription.topic };
            self.begin_anew(name, &found);
            return self.hub_changed(name);
        }
        self.plan_hub(name);
    }

    /// What was found, without the hubs that cannot reach this gateway; `None` where no other is named.
    fn reached(&self, found: &Option<Discovery>) -> Option<Discovery> {
        let mut found = found.clone()?;
        found.hubs.retain(|hub| self.settings.is_reached_by(hub));
        (!found.hubs.is_empty()).then_some(found)
    }

    /// Subscribes to what was found, instead of what is subscribed to.
    fn begin_anew(&mut self, name: &FeedName, found: &Discovery) {
        let now = self.clock.now();
        self.leave_hub(name);
        let (Some(keys), Some(reach)) = (subscribe::mint(name), &self.settings.reach) else {
            return;
        };
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let (base, before) = (&reach.callbacks, feed.hub_requests.as_deref().copied());
        let subscription = subscriber::begin(found, keys, base, before, now);
        feed.cell.lock().memory.state.subscription = Some(Box::new(subscription));
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
    pub(super) fn watch_hub(&mut self, name: &FeedName) {
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

    /// Has its hub be asked when that is due, unless it is being asked.
    fn plan_hub(&mut self, name: &FeedName) {
        let is_idle = |feed: &&mut Box<ScheduledFeed>| feed.asking_hub.is_none();
        let Some(feed) = self.feeds.get_mut(name).filter(is_idle) else { return };
        let next = feed.with_hub(|it| it.next);
        let old = std::mem::replace(&mut feed.hub_due, next);
        if let Some(old) = old {
            self.due.remove(&(old, Errand::Hub(name.clone())));
        }
        self.due.extend(next.map(|at| (at, Errand::Hub(name.clone()))));
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

    /// Asks a hub, where that is due still.
    pub(super) fn begin_hub(&mut self, name: &FeedName, now: Time) {
        let is_idle = |feed: &&mut Box<ScheduledFeed>| feed.asking_hub.is_none();
        let Some(feed) = self.feeds.get_mut(name).filter(is_idle) else { return };
        feed.hub_due = None;
        if feed.with_hub(|it| it.next <= now) != Some(true) {
            return self.plan_hub(name);
        }
        let request = feed.with_hub(|it| {
            if !subscriber::due(it, now) {
                return None;
            }
            if !it.keys.secret.is_empty() && !self.settings.may_share_secret(it.address()) {
                it.keys.secret.clear();
            }
            let token = it.keys.token.clone();
            Some((token, it.address().to_owned(), subscribe::request(it, true)?))
        });
        if let Some((token, hub, request)) = request.flatten() {
            let (record, cell) = (Arc::clone(&feed.record), Arc::clone(&feed.cell));
            let (bench, cancel) = (Arc::clone(&self.bench), self.cancel.child_token());
            let asking = async move {
                let _slot = match bench.hosts.slot(&hub, false).await {
                    Ok(slot) => slot,
                    Err(left) => return HubAsked::PutOff(left),
                };
                let now = bench.clock.now();
                if let Some(it) = cell.lock().memory.state.subscription.as_deref_mut() {
                    subscriber::sent(it, now);
                }
                ask(&bench, &record, (hub, request), now).await
            };
            let (feed_name, given_up) = (name.clone(), cancel.clone());
            feed.asking_hub = Some(cancel.drop_guard());
            self.running.spawn(async move {
                let asked = AssertUnwindSafe(given_up.run_until_cancelled(asking)).catch_unwind();
                let asked = asked.await.unwrap_or_else(|_| {
                    tracing::error!(feed = %feed_name, error = BROKE_OFF, "a hub could not be asked");
                    Some(HubAsked::Failed(Failed::new(BROKE_OFF.to_owned())))
                });
                Finished::Hub(feed_name, token, asked.unwrap_or(HubAsked::Done))
            });
        }
        self.hub_changed(name);
    }

    pub(super) fn finish_hub(&mut self, name: &FeedName, token: &str, asked: HubAsked) {
        let now = self.clock.now();
        // The feed of that name may be another one by now, or its subscription.
        let is_it = |feed: &&mut Box<ScheduledFeed>| {
            feed.with_hub(|it| it.keys.token == token) == Some(true)
        };
        let Some(feed) = self.feeds.get_mut(name).filter(is_it) else { return };
        feed.asking_hub = None;
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
    pub(crate) fn called(&mut self, token: &str, said: &Verification) -> Option<String> {
        let now = self.clock.now();
        let name = subscribe::feed_of_token(token)?;
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
    pub(crate) fn pushed(&mut self, token: &str) {
        let Some(name) = subscribe::feed_of_token(token) else { return };
        if let Some(cell) = self.bench.table.get(&name) {
            cell.lock().waits_for_push = false;
        }
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

    /// Ends the subscription of a feed, where there is one: the hub is asked to, once. Where that
    /// fails its lease runs out, and what it still pushes is answered with 410.
    pub(super) fn leave_hub(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.asking_hub = None;
        let mut polling = feed.cell.lock();
        let Some(left) = polling.memory.state.subscription.take() else { return };
        polling.disbelieved = None;
        drop(polling);
        let record = Arc::clone(&feed.record);
        feed.hub_requests = Some(Box::new(Requests::from_subscription(&left)));
        self.plan_hub(name);
        let is_asked = left.is_held(self.clock.now()) && self.bench.may_poll();
        let request = subscribe::request(&left, false).filter(|_| is_asked);
        let Some(request) = request else { return };
        let hub = left.address().to_owned();
        if !self.bench.ending.leave(&left.keys.token, &left.topic) {
            return;
        }
        let (bench, cancel) = (Arc::clone(&self.bench), self.cancel.child_token());
        self.bench.spawn(async move {
            let asking = async {
                if let Ok(_slot) = bench.hosts.slot(&hub, false).await {
                    ask(&bench, &record, (hub, request), bench.clock.now()).await;
                }
            };
            cancel.run_until_cancelled(asking).await;
        });
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
        Ok(leads) => subscribe::ask(bench.services.load().call.clone(), (hub, leads), request, now).await,
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

/// How soon after a poll a feed may be polled again because of a push: it grows with each push after which nothing was
/// new, up to this limit or the shortest interval of its schedule.
pub const PUSH_PAUSE: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(5), Duration::from_secs(5120));

impl ScheduledFeed {
    pub(super) fn push_pause(&self, least: Duration) -> Duration {
        PUSH_PAUSE.after(self.hearing.futile.saturating_add(1)).min(least)
    }
}

/// The address of a hub as the log may tell it.
fn shown(hub: &str) -> ShownAddress {
    ShownAddress::new(hub, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::double::{NOW, name};
    use crate::testing::gateway::Gateway;
    use tidegate_core::model::SubscriptionKeys;

    /// As each push does, and each answer of the hub.
    #[tokio::test(start_paused = true)]
    async fn a_hub_is_due_once_however_often_that_is_planned() {
        let gateway = Gateway::with_news("one").await;
        let plan = |it: &mut PollScheduler| {
            let hubs = vec!["http://h.example/".into()];
            let found = Discovery { hubs, topic: "t".to_owned() };
            let keys = SubscriptionKeys { token: "a.news".to_owned(), secret: String::new() };
            let subscription = subscriber::begin(&found, keys, "http://g.example", None, NOW);
            let cell = Arc::clone(&it.feeds[&name("news")].cell);
            cell.lock().memory.state.subscription = Some(Box::new(subscription));
            for seconds in [600, 300, 900] {
                let next = NOW.plus(Duration::from_secs(seconds));
                it.feeds[&name("news")].with_hub(|it| it.next = next);
                it.plan_hub(&name("news"));
            }
            let due = it.due.iter().filter(|(_, errand)| matches!(errand, Errand::Hub(_)));
            due.map(|(at, _)| at.since(NOW).as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(gateway.poller.ask(plan).await.unwrap(), [900]);
    }
}
