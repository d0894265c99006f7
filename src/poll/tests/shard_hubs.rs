//! Subscriptions to hubs where several gateways poll: the one that writes the store has them.

use super::shards::{a_while, asks};
use super::*;
use crate::testing::shards::{follower, give, held, shard, writer};
use std::sync::Mutex;
use tidegate_core::model::Lease;
use tidegate_core::websub::HubLinks;
use tidegate_net::fetch::{Call, CallRequest, Called, Fetch, FetchRequest, Fetched, Services};
use tower::ServiceExt as _;

/// Settings with which hubs are subscribed to, a client whose feeds name one, and how often it was asked.
fn hub_services(publisher: &Arc<Publisher>) -> (PollSettings, Services, Arc<Mutex<u32>>) {
    let inner = publisher.fetch();
    let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
        let inner = inner.clone();
        async move {
            let own = format!("<{}>; rel=self", request.url);
            let links = ["<http://hub.example/>; rel=hub", own.as_str()];
            let links = HubLinks::in_headers(links, &request.url);
            inner.oneshot(request).await.map(|fetched| Fetched { links, ..fetched })
        }
    }));
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let call = Call::new(tower::service_fn(move |_: CallRequest| {
        *counted.lock().unwrap() += 1;
        async {
            let (body, whole, location) = (bytes::Bytes::new(), true, None);
            Ok(Called { status: 202, body, whole, retry_after: None, location })
        }
    }));
    let reach = Reach {
        callbacks: "https://gate.example/websub/callback".to_owned(),
        own_hosts: false,
        http_secrets: true,
    };
    let settings = PollSettings { reach: Some(reach), ..PollSettings::default() };
    (settings, Services { fetch, call, ..publisher.services() }, calls)
}

#[tokio::test(start_paused = true)]
async fn a_hub_is_left_to_the_gateway_that_writes() {
    let store = StoreDouble::new(&["a"]);
    let publisher = Publisher::new("one");
    let (settings, services, calls) = hub_services(&publisher);
    let shards = follower();
    let gateway =
        Gateway::with_client(&store.shared_by(&shards), &publisher, publisher.services()).await;
    gateway.poller.reconfigure(settings.clone(), services.clone()).await.unwrap();
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 1).await;
    asks(&shards, |asked| asked.of_writer.contains(&shard("a"))).await;
    // And again, until it is gone.
    asks(&shards, |asked| asked.of_writer.contains(&shard("a"))).await;
    shards.give_back([shard("a")]);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    assert_eq!(*calls.lock().unwrap(), 0);
    gateway.stop().await;

    let shards = writer();
    let gateway =
        Gateway::with_client(&store.shared_by(&shards), &publisher, services.clone()).await;
    gateway.poller.reconfigure(settings.clone(), services.clone()).await.unwrap();
    give(&shards, held(&["a"], 2));
    eventually(|| *calls.lock().unwrap() == 1).await;
    eventually(|| shards.kept().contains(&shard("a"))).await;
    assert!(shards.take_requests().of_writer.contains(&shard("a")), "not to a follower after it");
    let subscribed = || store.shelf.lock().unwrap().poll_states[&name("a")].subscription.clone();
    eventually(|| subscribed().is_some_and(|it| it.attempts == 1)).await;
    let token = subscribed().unwrap().keys.token;
    assert!(gateway.poller.is_callback(&token));
    // Where it leaves, the subscription goes on and is no longer taken care of here.
    shards.give_back([shard("a")]);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    assert!(!gateway.poller.is_callback(&token) && subscribed().is_some());
    assert_eq!(*calls.lock().unwrap(), 1);
    gateway.stop().await;

    // A follower that comes by it neither goes on with it nor ends it, and polls as if there were no hub.
    let mut state = store.shelf.lock().unwrap().poll_states[&name("a")].clone();
    let hub = state.subscription.as_mut().unwrap();
    hub.lease =
        Some(Lease { since: NOW.minus(Duration::from_secs(60)), until: later(10 * 86_400) });
    store.shelf.lock().unwrap().poll_states.insert(name("a"), state);
    let shards = follower();
    let gateway =
        Gateway::with_client(&store.shared_by(&shards), &publisher, services.clone()).await;
    give(&shards, held(&["a"], 3));
    asks(&shards, |asked| asked.of_writer.contains(&shard("a"))).await;
    gateway.poller.reconfigure(settings, services).await.unwrap();
    gateway.clock.set(later(86_400));
    gateway.polls("a", 1).await;
    a_while().await;
    assert_eq!((*calls.lock().unwrap(), gateway.poller.is_callback(&token)), (1, false));
    let next = gateway.poller.status(&name("a")).unwrap().next.unwrap();
    assert!(next.at <= later(86_400 + 8 * 3600) && !next.reason.contains("hub"), "{next:?}");
    eventually(|| subscribed().is_some_and(|it| it.lease.is_none())).await;
    gateway.stop().await;
    assert_eq!(subscribed().unwrap().keys.token, token);
}
