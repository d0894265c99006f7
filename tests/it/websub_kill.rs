//! Subscribers in another process than the gateway, which is killed at each moment that matters:
//! while a callback is asked, and while a document is being delivered. What was taken is not lost.

use crate::support::gateways::{Asked as _, FORM, Paper, form, until};
use crate::support::process::Process;
use crate::support::{SITE, atom, days};
use crate::websub::callback::{Agrees, Callback, Takes};
use serde_json::Value;
use tidegate_core::websub::Secret;

fn document(posts: u32) -> String {
    atom(SITE, &days(1..=posts))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_is_verified_and_delivered_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let paper = Paper::start("application/atom+xml", &document(1)).await;
    let config = format!(
        "[server]\npublic_url = \"https://gate.example\"\n[store]\npath = \"data\"\n\
         [websub]\nprivate_callbacks = true\n[[feed]]\nname = \"news\"\nurl = \"{}\"\n",
        paper.url
    );
    let callback = Callback::start().await;
    callback.agrees(Agrees::Hangs);

    let gateway = Process::configured(folder.path(), &config).await;
    gateway.poll("news").await;
    let subscription = form(&[
        ("hub.mode", "subscribe"),
        ("hub.topic", "https://gate.example/feeds/news"),
        ("hub.callback", &callback.address("/push?id=1")),
        ("hub.secret", "hush"),
    ]);
    let call = gateway.client().post(gateway.url("/websub"));
    let call = call.header("content-type", FORM).body(subscription);
    assert_eq!(call.send().await.unwrap().status(), 202);
    until("it was asked", async || callback.verifications().len() == 1).await;
    gateway.kill().await;

    callback.agrees(Agrees::Yes);
    callback.takes(Takes::Hangs);
    let gateway = Process::configured(folder.path(), &config).await;
    until("it was asked again", async || callback.verifications().len() == 2).await;
    paper.print(&document(2));
    gateway.poll("news").await;
    until("a delivery is under way", async || callback.deliveries().len() == 1).await;
    gateway.kill().await;

    callback.takes(Takes::With(204));
    let gateway = Process::configured(folder.path(), &config).await;
    until("it was delivered again", async || callback.deliveries().len() == 2).await;
    for pushed in callback.deliveries() {
        assert!(pushed.text().contains("The story of day 2"), "{}", pushed.text());
        let signature = pushed.header("x-hub-signature");
        Secret::new("hush").unwrap().verify(&signature, &pushed.body).unwrap();
    }
    // Once it has arrived and that is stored, the next thing to come is the next change.
    let stored = async || gateway.call("GET", "/subscriptions", Value::Null).await;
    until("it is stored", async || stored().await["subscriptions"][0]["deliveries"] == 1).await;
    gateway.kill().await;
    let gateway = Process::configured(folder.path(), &config).await;
    paper.print(&document(3));
    gateway.poll("news").await;
    until("the next change has come", async || callback.deliveries().len() == 3).await;
    assert!(callback.deliveries()[2].text().contains("The story of day 3"));
    assert_eq!(callback.verifications().len(), 2);
    gateway.kill().await;
}
