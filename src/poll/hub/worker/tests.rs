use super::super::testing::{NOW, memory, open, topics_of_size};
use super::super::{Hub, HubDocument};
use super::*;
use crate::testing::gateway::eventually;
use bytes::Bytes;
use std::sync::Mutex;
use tidegate_core::model::Tick;
use tidegate_core::websub::{HubRequest, Intent};
use tidegate_net::fetch::{Call, CallRequest, Called};
use tokio_util::sync::DropGuard;
use url::Url;

const TOPIC: &str = "https://gate.example/feeds/news";
const KNOWN: &str = "https://reader.example/known";

fn run_hub(hub: &Hub) -> DropGuard {
    let cancel = CancellationToken::new();
    tokio::spawn(hub.clone().run(topics_of_size(|| 4), cancel.clone()));
    cancel.drop_guard()
}

/// Deliveries to the known callback, and requests to all others.
type Seen = Arc<Mutex<(usize, usize)>>;

/// A reader that accepts the known callback; requests about others hang or are refused.
fn reader(seen: &Seen, answers_strangers: bool) -> Call {
    let seen = Arc::clone(seen);
    Call::new(tower::service_fn(move |request: CallRequest| {
        let (is_known, is_sent) =
            (request.url.path() == "/known", request.method == http::Method::POST);
        let mut counts = seen.lock().unwrap();
        counts.0 += usize::from(is_known && is_sent);
        counts.1 += usize::from(!is_known);
        let challenge = request.url.query_pairs().find(|(key, _)| key == "hub.challenge");
        let body = Bytes::from(challenge.map(|(_, it)| it.into_owned()).unwrap_or_default());
        async move {
            if !is_known && !answers_strangers {
                std::future::pending::<()>().await;
            }
            let status = if is_known { 200 } else { 404 };
            Ok(Called { status, body, whole: true, ..Called::default() })
        }
    }))
}

fn subscription_request(callback: &str) -> HubRequest {
    let (topic, callback) = (TOPIC.to_owned(), Url::parse(callback).unwrap());
    HubRequest { intent: Intent::Subscribe, topic, callback, lease: None, secret: None }
}

async fn subscribe(hub: &Hub, client: Option<&str>, callback: &str) {
    let (news, client) = (FeedName::new("news").unwrap(), client.map(|it| it.parse().unwrap()));
    hub.ask(&news, Manner::WebSub, subscription_request(callback), client).await.unwrap();
}

/// Strangers name a subscriber's host: its deliveries still arrive, and the host gets no more calls than its limits
/// allow.
#[tokio::test(start_paused = true)]
async fn strangers_do_not_use_up_the_calls_of_a_callbacks_host() {
    for (answers_strangers, asked) in [(true, 1..=25), (false, 1..=4)] {
        let seen = Seen::default();
        let hub = open(memory(), reader(&seen, answers_strangers)).await;
        let _running = run_hub(&hub);
        subscribe(&hub, None, KNOWN).await;
        eventually(|| hub.count().active == 1).await;
        for number in 0..190 {
            subscribe(&hub, None, &format!("https://n{number}.reader.example/")).await;
        }
        sleep(Duration::from_secs(4)).await;
        let feed = FeedName::new("news").unwrap();
        hub.0.subscriptions.lock().note_tick(&feed, Some(Tick::at(NOW)), NOW);
        hub.0.wake.notify_one();
        let begun = Instant::now();
        eventually(|| seen.lock().unwrap().0 > 0).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        let strangers = seen.lock().unwrap().1;
        assert!(asked.contains(&strangers), "{strangers}");
    }
    // Nor do silent callbacks delay others: one client's, each at another host, never answer.
    // Requests from the same address wait until each of these has timed out once.
    for (client, within) in [("192.0.2.2", 1), ("192.0.2.1", 6)] {
        let hub = open(memory(), reader(&Seen::default(), false)).await;
        let _running = run_hub(&hub);
        for number in 0..100 {
            let silent = format!("https://silent{number}.example/");
            subscribe(&hub, Some("192.0.2.1"), &silent).await;
        }
        subscribe(&hub, Some(client), KNOWN).await;
        let begun = Instant::now();
        eventually(|| hub.count().active == 1).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(within), "{client}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_too_large_ends_its_subscriptions_with_the_reason() {
    let made = Arc::new(Mutex::new(0));
    let count = Arc::clone(&made);
    let topics: Topics = Arc::new(move |request| {
        let is_document = matches!(request, TopicRequest::Document(_));
        *count.lock().unwrap() += usize::from(is_document);
        let too_large = is_document.then_some(NoHubDocument::TooLarge(17 << 20));
        Box::pin(std::future::ready(too_large.map_or_else(|| Ok(HubDocument::default()), Err)))
    });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let call = Call::new(tower::service_fn(move |request: CallRequest| {
        let pairs = request.url.query_pairs().into_owned().collect::<HashMap<_, _>>();
        let names = ["hub.challenge", "challenge"];
        let challenge = names.iter().find_map(|name| pairs.get(*name)).cloned();
        seen.lock().unwrap().push((request.method == http::Method::POST, pairs));
        let body = Bytes::from(challenge.unwrap_or_default());
        std::future::ready(Ok(Called { status: 200, body, whole: true, ..Called::default() }))
    }));
    let hub = open(memory(), call).await;
    let cancel = CancellationToken::new();
    let task = tokio::spawn(hub.clone().run(topics, cancel.clone()));
    for number in 0..20 {
        subscribe(&hub, None, &format!("https://reader{number}.example/")).await;
    }
    let feed = FeedName::new("news").unwrap();
    let cloud = subscription_request("https://cloud.example/");
    hub.ask(&feed, Manner::RssCloud, cloud, None).await.unwrap();
    eventually(|| hub.count().active == 21).await;
    asked.lock().unwrap().clear();
    hub.0.subscriptions.lock().note_tick(&feed, Some(Tick::at(NOW)), NOW);
    hub.0.wake.notify_one();
    sleep(Duration::from_secs(600)).await;
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    let (announced, told): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(is_sent, _)| *is_sent);
    for (_, pairs) in &told {
        assert_eq!(pairs["hub.mode"], "denied");
        assert!(pairs["hub.reason"].contains("17825792 bytes"), "{pairs:?}");
    }
    // Each was told once. rssCloud only announces the change, and continues.
    assert!(told.len() == 20 && !announced.is_empty(), "{}", told.len());
    assert_eq!((hub.count().active, hub.count().pending), (1, 0));
    assert!(*made.lock().unwrap() <= 20, "at most one document for each");
    cancel.cancel();
    task.await.unwrap();
}
