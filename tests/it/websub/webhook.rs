//! Webhooks: changes of a feed as JSON, signed, until they arrive.

use super::*;
use crate::support::prelude::*;
use crate::support::publisher::SeenRequest;
use tidegate_core::websub::webhook::sign;

const PATH: &str = "/feeds/news/webhook";
/// Longer than the longest pause between two tries, in seconds.
const PAUSE: u64 = 6 * 3600 + 1;

fn told(delivery: &SeenRequest) -> Value {
    serde_json::from_str(&delivery.text()).unwrap()
}

fn changes(message: &Value) -> Vec<String> {
    let all = message["changes"].as_array().unwrap().iter();
    let words = all.map(|change| {
        format!("{} {}", change["kind"].as_str().unwrap(), change["title"].as_str().unwrap())
    });
    words.collect()
}

/// How many deliveries failed in a row.
async fn failures(stage: &Stage) -> u64 {
    stage.subscriptions().await["subscriptions"][0]["failures"].as_u64().unwrap()
}

fn assert_signed(delivery: &SeenRequest, secret: &str) {
    let id = delivery.header("webhook-id");
    let at = Time::from_unix(delivery.header("webhook-timestamp").parse().unwrap());
    let wanted = sign(&Secret::new(secret).unwrap(), &id, at, &delivery.body);
    assert_eq!(delivery.header("webhook-signature"), wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_told_each_change_until_it_arrives() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let hook = callback.address("/hook?k=1");
    let (status, made) = stage.admin("PUT", PATH, json!({ "url": hook })).await;
    assert_eq!(status, 200, "{made}");
    // The secret is told once, the address never.
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let (_, shown) = stage.admin("GET", PATH, Value::Null).await;
    assert_eq!(shown["webhook"]["manner"], "webhook");
    for hidden in [secret.as_str(), "k=1"] {
        assert!(!shown.to_string().contains(hidden), "{shown}");
        assert!(!stage.subscriptions().await.to_string().contains(hidden));
    }
    assert!(callback.seen().is_empty(), "nobody is asked whether it is meant");

    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    let first = &callback.deliveries()[0];
    assert_signed(first, &secret);
    assert_eq!((first.path.as_str(), first.query.as_str()), ("/hook", "k=1"));
    assert_eq!(first.header("content-type"), "application/json");
    let message = told(first);
    assert_eq!(changes(&message), ["created two"], "what there was before is not told: {message}");
    assert_eq!((&message["feed"], &message["more"]), (&json!("news"), &json!(false)));
    assert_eq!(message["url"], topic("/feeds/news"));

    // Whatever it answers, it is told again, over a restart as well, and with what came meanwhile.
    callback.takes(Takes::With(410));
    stage.changes_to(&["three", "two", "one"]).await;
    for tries in 1..4 {
        // What came of it is noted before time goes on.
        until("it is tried again", async || failures(&stage).await >= tries).await;
        stage.pass(PAUSE);
    }
    stage.close().await;
    callback.takes(Takes::With(204));
    let next = async |before: usize| {
        until("it arrives", async || callback.deliveries().len() > before).await;
        callback.deliveries().pop().unwrap()
    };
    let before = callback.deliveries().len();
    stage.pass(PAUSE);
    stage.open().await;
    let last = next(before).await;
    assert_signed(&last, &secret);
    let again = told(&last);
    assert_eq!(changes(&again), ["created three"]);
    assert_eq!(again["since"], message["until"], "nothing lies between two that arrived");

    // Another secret takes its place, and nothing is told twice.
    let put = json!({ "url": hook, "secret": "another one" });
    assert_eq!(stage.admin("PUT", PATH, put).await.0, 200);
    let before = callback.deliveries().len();
    stage.changes_to(&["four", "three", "two", "one"]).await;
    let last = next(before).await;
    assert_signed(&last, "another one");
    assert_eq!(changes(&told(&last)), ["created four"]);

    // It ends when administration says so, and with its feed.
    let (_, gone) = stage.admin("DELETE", PATH, Value::Null).await;
    assert_eq!(gone["webhook"], Value::Null);
    assert_eq!(stage.admin("PUT", PATH, json!({ "url": hook })).await.0, 200);
    stage.delete("news").await;
    until("nothing is left of it", async || {
        stage.subscriptions().await["subscriptions"] == json!([])
    })
    .await;
    assert_eq!(callback.deliveries().len(), before + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_changes_are_told_in_portions() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let hook = callback.address("/hook");
    callback.takes(Takes::With(500));
    let put = json!({ "url": hook, "secret": "s" });
    assert_eq!(stage.admin("PUT", PATH, put).await.0, 200);
    let names: Vec<String> = (0..130).map(|number| format!("post {number:03}")).collect();
    for end in [60, 120, 130] {
        let mut said: Vec<&str> = names[..end].iter().rev().map(String::as_str).collect();
        said.push("one");
        stage.changes_to(&said).await;
    }
    until("the first try is noted", async || failures(&stage).await > 0).await;
    callback.takes(Takes::With(200));
    let before = callback.deliveries().len();
    stage.pass(PAUSE);
    until("both portions arrive", async || callback.deliveries().len() >= before + 2).await;
    let arrived = callback.deliveries().split_off(before);
    let messages: Vec<Value> = arrived.iter().map(told).collect();
    assert_eq!(messages[0]["more"], true);
    assert_eq!(messages[1]["since"], messages[0]["until"]);
    assert_ne!(arrived[0].header("webhook-id"), arrived[1].header("webhook-id"));
    let all: Vec<&Value> =
        messages.iter().flat_map(|message| message["changes"].as_array().unwrap()).collect();
    let ids: BTreeSet<&str> = all.iter().map(|change| change["id"].as_str().unwrap()).collect();
    assert_eq!((all.len(), ids.len()), (130, 130), "each once");
}
