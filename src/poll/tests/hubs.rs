//! When the hub of a feed is asked.

use super::*;
use crate::testing::idle::{CALLBACKS, IdlePolling};
use bytes::Bytes;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::{BodyPrints, SubscriptionStanding};
use tidegate_core::websub::{HubLinks, Intent, Secret};
use tidegate_net::fetch::{Call, CallRequest, Called, Fetched, LeadScope, Services};
use tokio::time::sleep;

/// Starts polling whose hub is due after `seconds`. Returns it with its clock and the scopes of requests to the hub.
async fn asking_after(seconds: u64) -> (IdlePolling, ManualClock, Arc<Mutex<Vec<LeadScope>>>) {
    let (store, clock) = (store_of(&["a"]), ManualClock::at(NOW));
    let (mut state, _) = ownership::subscribed("a");
    let subscription = state.subscription.as_mut().unwrap();
    subscription.callbacks = CALLBACKS.to_owned();
    (subscription.standing, subscription.next) = (SubscriptionStanding::Waiting, later(seconds));
    store.set_poll(&state);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let call = Call::new(tower::service_fn(move |request: CallRequest| {
        seen.lock().unwrap().push(request.leads);
        std::future::ready(Ok(Called { status: 202, ..Called::default() }))
    }));
    // The feed's poll never ends, so that it reports nothing about hubs.
    let services = Services { call, ..Publisher::gated("one").services() };
    let known: Arc<dyn Clock> = Arc::new(clock.clone());
    let polling = IdlePolling::new(&store.real(), &known, services);
    polling.start().await;
    (polling, clock, asked)
}

/// A task that sleeps for hours wakes when the clock leaps ahead to its time.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_soon_after_the_clock_leapt_to_its_time() {
    let (_polling, clock, asked) = asking_after(3 * 3600).await;
    for (at, times) in [(0, 0), (3 * 3600 - 1, 0), (3 * 3600 + 1, 1)] {
        clock.set(later(at));
        sleep(Duration::from_secs(5)).await;
        assert_eq!(asked.lock().unwrap().len(), times, "{at}");
    }
    let scope = LeadScope::Places(vec![record("a").url.parse().unwrap()]);
    assert_eq!(*asked.lock().unwrap(), [scope]);
}

/// A lease follows the wall clock, which may run faster than a sleep in steps too small for a leap.
#[tokio::test(start_paused = true)]
async fn a_hub_is_asked_in_time_though_the_clock_runs_fast() {
    let (_polling, clock, asked) = asking_after(3600).await;
    for second in 1..=3600 {
        assert_eq!(asked.lock().unwrap().len(), 0);
        sleep(Duration::from_millis(800)).await;
        clock.set(later(second));
    }
    sleep(Duration::from_secs(600)).await;
    assert_eq!(asked.lock().unwrap().len(), 1);
}

/// A feed whose publisher names a hub or none, and the hub, which has confirmed its subscription.
struct Subscribed {
    store: Arc<ScriptedStore>,
    clock: ManualClock,
    polling: IdlePolling,
    services: Services,
    names_hub: Arc<Mutex<bool>>,
    polls: Arc<AtomicUsize>,
    /// The bodies of the requests to the hub.
    asked: Arc<Mutex<Vec<String>>>,
    token: String,
    secret: Secret,
}

impl Subscribed {
    async fn new() -> Self {
        let (store, clock) = (store_of(&["a"]), ManualClock::at(NOW));
        let (names_hub, polls) = (Arc::new(Mutex::new(true)), Arc::<AtomicUsize>::default());
        let (is_named, counted) = (Arc::clone(&names_hub), Arc::clone(&polls));
        let services = Publisher::new("").services_by(move |_, request| {
            counted.fetch_add(1, Ordering::Relaxed);
            let is_named = *is_named.lock().unwrap();
            let text = format!("<rss><channel><title>{is_named}</title></channel></rss>");
            let print = xxhash_rust::xxh3::xxh3_128(text.as_bytes());
            let document = whole_document(text, BodyPrints { wire: print, body: print });
            let hubs = if is_named { vec!["https://hub.example/".to_owned()] } else { Vec::new() };
            let links = HubLinks { hubs, own: Some(request.url.clone()) };
            Ok(Fetched { links, ..fetched(&request.url, document) })
        });
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        let call = Call::new(tower::service_fn(move |request: CallRequest| {
            seen.lock().unwrap().push(String::from_utf8(request.sent.body.to_vec()).unwrap());
            std::future::ready(Ok(Called { status: 202, ..Called::default() }))
        }));
        let services = Services { call, ..services };
        let polling = Self::start(&store, &clock, &services).await;
        eventually(|| asked.lock().unwrap().len() == 1).await;
        let keys = {
            let cell = polling.poller.context.table.get(&name("a")).unwrap();
            let feed = cell.lock();
            feed.memory.state.subscription.as_ref().unwrap().keys.clone()
        };
        let secret = Secret::new(&keys.secret).unwrap();
        let token = keys.token;
        let this = Self { store, clock, polling, services, names_hub, polls, asked, token, secret };
        assert!(this.is_confirmed(Intent::Subscribe).await);
        this
    }

    async fn start(
        store: &Arc<ScriptedStore>,
        clock: &ManualClock,
        services: &Services,
    ) -> IdlePolling {
        let known: Arc<dyn Clock> = Arc::new(clock.clone());
        let polling = IdlePolling::new(&store.real(), &known, services.clone());
        polling.start().await;
        polling
    }

    /// Whether what the hub verifies was meant.
    async fn is_confirmed(&self, intent: Intent) -> bool {
        let said = ownership::verification(intent, "a");
        let answer = self.polling.poller.called(&self.token, said).await.unwrap();
        answer.as_deref() == Some("meant")
    }

    async fn push(&self) -> PushResult {
        let (body, signature) = (Bytes::from_static(b"news"), self.secret.sign(b"news"));
        self.polling.poller.pushed(&self.token, Some(signature), body).await
    }

    fn requests(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_not_named_any_more_is_left() {
    let hub = Subscribed::new().await;
    *hub.names_hub.lock().unwrap() = false;
    hub.polling.poller.poll_now(&name("a")).await.unwrap();
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
    let before = hub.polls.load(Ordering::Relaxed);
    for second in 1..=600 {
        hub.clock.set(later(second));
        assert_eq!(hub.push().await, PushResult::Taken);
        sleep(Duration::from_secs(1)).await;
    }
    let polls = hub.polls.load(Ordering::Relaxed) - before;
    assert!((2..=8).contains(&polls), "{polls}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_subscription() {
    let mut hub = Subscribed::new().await;
    let is_held = || hub.store.poll_state("a").and_then(|it| it.subscription);
    eventually(|| is_held().is_some_and(|it| it.is_held(NOW))).await;
    hub.polling.poller.context.cancel.cancel();
    sleep(Duration::from_secs(60)).await;
    hub.clock.set(later(60));
    hub.polling = Subscribed::start(&hub.store, &hub.clock, &hub.services).await;
    let before = hub.polls.load(Ordering::Relaxed);
    assert_eq!(hub.push().await, PushResult::Taken);
    eventually(|| hub.polls.load(Ordering::Relaxed) > before).await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(hub.requests().len(), 1, "it was not asked again");
}
