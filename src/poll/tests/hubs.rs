use super::*;
use crate::testing::idle::CALLBACKS;
use bytes::Bytes;
use std::sync::Mutex;
use tidegate_core::model::SubscriptionStanding;
use tidegate_core::websub::{HubLinks, Intent, Secret};
use tidegate_net::fetch::{Call, CallRequest, Called, Fetched, LeadScope, Services};
use tokio::time::sleep;

type Asked = Arc<Mutex<Vec<CallRequest>>>;

/// Returns services by which a document that speaks of a hub names it, and the hub takes every request.
fn with_hub(publisher: &Arc<Publisher>) -> (Services, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let call = Call::new(tower::service_fn(move |request| {
        seen.lock().unwrap().push(request);
        std::future::ready(Ok(Called { status: 202, ..Called::default() }))
    }));
    let services = publisher.services_by(|publisher, request| {
        let is_named = publisher.answer.lock().unwrap().as_ref().is_ok_and(|it| it.0 == "hub");
        let hubs = Vec::from_iter(is_named.then(|| "https://hub.example/".to_owned()));
        let links = HubLinks { hubs, own: Some(request.url.clone()) };
        Ok(Fetched { links, ..publisher.note_and_reply(request)? })
    });
    (Services { call, ..services }, asked)
}

/// Starts a gateway, which hubs can reach, `seconds` after [`NOW`].
async fn start(
    store: &Arc<ScriptedStore>,
    publisher: &Arc<Publisher>,
    services: Services,
    seconds: u64,
) -> Gateway {
    let callbacks = CALLBACKS.to_owned();
    let reach = Some(Reach { callbacks, own_hosts: false, http_secrets: false });
    let reached = |config: &mut PollerConfig| config.settings.reach = reach;
    Gateway::with_parts(store, publisher, services, later(seconds), reached).await
}

async fn asking_after(seconds: u64) -> (Gateway, Asked) {
    let store = store_of(&["news"]);
    let (mut state, _) = ownership::subscribed("news");
    let subscription = state.subscription.as_mut().unwrap();
    (subscription.standing, subscription.next) = (SubscriptionStanding::Waiting, later(seconds));
    store.set_poll(&state);
    // The feed's poll never ends, so that it reports nothing about hubs.
    let publisher = Publisher::gated("one");
    let (Services { call, .. }, asked) = with_hub(&publisher);
    let services = Services { call, ..publisher.services() };
    (start(&store, &publisher, services, 0).await, asked)
}

/// A task that sleeps for hours wakes when the clock leaps ahead to its time.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_soon_after_the_clock_leapt_to_its_time() {
    let (gateway, asked) = asking_after(3 * 3600).await;
    for (at, times) in [(0, 0), (3 * 3600 - 1, 0), (3 * 3600 + 1, 1)] {
        gateway.clock.set(later(at));
        sleep(Duration::from_secs(5)).await;
        assert_eq!(asked.lock().unwrap().len(), times, "{at}");
    }
    let scope = LeadScope::Places(vec![record("news").url.parse().unwrap()]);
    assert_eq!(asked.lock().unwrap()[0].leads, scope);
}

/// A lease follows the wall clock, which may run faster than a sleep in steps too small for a leap.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_in_time_though_the_clock_runs_fast() {
    let (gateway, asked) = asking_after(3600).await;
    for second in 1..=3600 {
        assert_eq!(asked.lock().unwrap().len(), 0);
        sleep(Duration::from_millis(800)).await;
        gateway.clock.set(later(second));
    }
    sleep(Duration::from_secs(600)).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}

/// A gateway whose feed names a hub, and the hub, which has confirmed its subscription.
struct Subscribed {
    gateway: Gateway,
    services: Services,
    asked: Asked,
    token: String,
    secret: Secret,
}

impl Subscribed {
    async fn new() -> Self {
        let publisher = Publisher::new("hub");
        let (services, asked) = with_hub(&publisher);
        let gateway = start(&store_of(&["news"]), &publisher, services.clone(), 0).await;
        eventually(|| asked.lock().unwrap().len() == 1).await;
        let keys = gateway.status().hub.unwrap().subscription.keys;
        let (token, secret) = (keys.token, Secret::new(&keys.secret).unwrap());
        let this = Self { gateway, services, asked, token, secret };
        assert!(this.is_confirmed(Intent::Subscribe).await);
        this
    }

    async fn is_confirmed(&self, intent: Intent) -> bool {
        let said = ownership::verification(intent, "news");
        let answer = self.gateway.poller.called(&self.token, said).await.unwrap();
        answer.as_deref() == Some("meant")
    }

    async fn push(&self) -> PushResult {
        let (body, signature) = (Bytes::from_static(b"news"), self.secret.sign(b"news"));
        self.gateway.poller.pushed(&self.token, Some(signature), body).await
    }

    fn requests(&self) -> Vec<String> {
        let text = |it: &CallRequest| String::from_utf8(it.sent.body.to_vec()).unwrap();
        self.asked.lock().unwrap().iter().map(text).collect()
    }
}

fn failures(gateway: &Gateway) -> Option<u32> {
    gateway.status().hub.map(|hub| hub.subscription.failures)
}

/// Starts a gateway whose feed names this hub at its own host, which has failed once.
async fn failing(call: Call) -> Gateway {
    let (store, publisher) = (store_of(&["news"]), Publisher::new("hub"));
    store.edit_record("news", |it| it.url = "https://hub.example/feed".to_owned());
    let services = Services { call, ..with_hub(&publisher).0 };
    let gateway = start(&store, &publisher, services, 0).await;
    eventually(|| failures(&gateway) == Some(1)).await;
    gateway
}

#[tokio::test(start_paused = true)]
async fn a_hub_speaks_for_its_host() {
    let gateway = failing(Call::new(tower::service_fn(|_: CallRequest| async {
        let retry_after = Some(Duration::from_secs(5000));
        Ok(Called { status: 503, whole: true, retry_after, ..Called::default() })
    })))
    .await;
    gateway.clock.set(gateway.status().next.unwrap().at);
    eventually(|| pauses::is_put_off(&gateway, "news", 5000)).await;
    assert_eq!(gateway.publisher.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_hub_that_panics_is_made_again() {
    let gateway = failing(no_calls()).await;
    gateway.clock.set(gateway.status().hub.unwrap().subscription.next);
    eventually(|| failures(&gateway) == Some(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_not_named_any_more_is_left() {
    let hub = Subscribed::new().await;
    hub.gateway.publisher.says("none", "2");
    hub.gateway.poll().await;
    eventually(|| hub.requests().len() == 2).await;
    let end = &hub.requests()[1];
    assert!(end.contains("hub.mode=unsubscribe") && end.contains(&hub.token), "{end}");
    assert!(hub.is_confirmed(Intent::Unsubscribe).await);
    assert_eq!(hub.push().await, PushResult::Unknown);
}

/// A hub that pushes every second and tells of nothing new brings about fewer and fewer polls.
#[tokio::test(start_paused = true)]
async fn pushes_in_a_row_make_few_polls() {
    let hub = Subscribed::new().await;
    let before = hub.gateway.publisher.requests();
    for second in 1..=600 {
        hub.gateway.clock.set(later(second));
        assert_eq!(hub.push().await, PushResult::Taken);
        sleep(Duration::from_secs(1)).await;
    }
    let polls = hub.gateway.publisher.requests() - before;
    assert!((2..=8).contains(&polls), "{polls}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_subscription_and_a_push_without_its_poll() {
    let mut hub = Subscribed::new().await;
    let (store, publisher) = (Arc::clone(&hub.gateway.store), Arc::clone(&hub.gateway.publisher));
    let stored = || store.poll_state("news").and_then(|it| it.subscription);
    eventually(|| stored().is_some_and(|it| it.is_held(NOW))).await;
    hub.gateway.clock.set(later(1));
    let mut before = publisher.requests();
    assert_eq!(hub.push().await, PushResult::Taken);
    eventually(|| stored().is_some_and(|it| it.last_push == Some(later(1)))).await;
    hub.gateway.stop().await;
    assert_eq!(publisher.requests(), before);
    hub.gateway = start(&store, &publisher, hub.services.clone(), 60).await;
    eventually(|| publisher.requests() > before).await;
    before = publisher.requests();
    hub.gateway.clock.set(later(120));
    assert_eq!(hub.push().await, PushResult::Taken);
    eventually(|| publisher.requests() > before).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(hub.requests().len(), 1, "it was not asked again");
}
