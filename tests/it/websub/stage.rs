//! A publisher, a whole gateway with its hub in front of it, and what subscribers do.

use super::callback::Callback;
use crate::support::gateways::{Running, configuration, until};
use crate::support::publisher::{Answer, Publisher};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_core::model::Time;

/// The public address of the gateway.
pub const PUBLIC: &str = "https://gate.example";
/// 2026-06-01T00:00:00Z: when the gateway starts.
const START: i64 = 1_780_272_000;

pub struct Stage {
    gateway: Running,
    publisher: Publisher,
    _folder: tempfile::TempDir,
}

/// The publisher's document with these entries, newest first.
pub fn document(entries: &[&str]) -> String {
    let entry = |name: &&str| {
        format!(
            "<entry><id>urn:e:{name}</id><title>{name}</title>\
             <updated>2026-06-01T00:00:00Z</updated><content>{name}</content></entry>"
        )
    };
    let entries: String = entries.iter().map(entry).collect();
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:f</id><title>News</title>\
         <updated>2026-06-01T00:00:00Z</updated>{entries}</feed>"
    )
}

impl Stage {
    /// A gateway with one feed, `news`, of which one document has been taken in.
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// The same with more of a configuration.
    pub async fn with(more: &str) -> Self {
        let mut stage = Self::without_feeds(more).await;
        stage.says(&["one"]);
        stage.add("news").await;
        // The gateway may have polled it by itself already.
        assert_ne!(stage.poll("news").await["outcome"], "failed");
        stage
    }

    /// A gateway without feeds, which calls private addresses for strangers.
    pub async fn without_feeds(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let mut config = configuration(&format!(
            "[server]\npublic_url = \"{PUBLIC}\"\n[store]\nkind = \"sled\"\npath = \"{path}\"\n{more}"
        ));
        config.websub.private_callbacks = config.polling.allow_private.clone();
        let gateway = Running::of(config, Some(Time::from_unix(START))).await;
        Self { gateway, publisher: Publisher::start().await, _folder: folder }
    }

    pub async fn start(&mut self) {
        self.gateway.open().await;
    }

    pub async fn stop(&mut self) {
        self.gateway.close().await;
    }

    pub fn at(&self, path: &str) -> String {
        self.gateway.url(path)
    }

    /// Under another public address from the next start on.
    pub fn moves_to(&mut self, public: &str) {
        self.gateway.config.server.public_url = Some(public.to_owned());
    }

    pub fn later(&mut self, seconds: u64) {
        self.gateway.later(Duration::from_secs(seconds));
    }

    /// What the publisher says from now on.
    pub fn says(&self, entries: &[&str]) {
        self.says_text(&document(entries));
    }

    pub fn says_text(&self, text: &str) {
        self.publisher.set("/feed", Answer::document("application/atom+xml", text));
    }

    /// Adds a feed of this publisher.
    pub async fn add(&self, name: &str) {
        let url = self.publisher.address(&format!("/feed?of={name}"));
        let put = self.admin("PUT", &format!("/feeds/{name}"), json!({ "url": url })).await;
        assert_eq!(put.0, 201);
    }

    /// Polls a feed now; a later second than before, so that its tick is a later one.
    pub async fn poll(&mut self, name: &str) -> Value {
        self.later(1);
        self.admin("POST", &format!("/feeds/{name}/poll"), Value::Null).await.1
    }

    /// The publisher says these, and the gateway takes it in.
    pub async fn changes_to(&mut self, entries: &[&str]) {
        self.says(entries);
        let polled = self.poll("news").await;
        // A gateway that has just been started may have polled by itself meanwhile.
        assert_ne!(polled["outcome"], "failed", "{polled}");
    }

    /// Makes a feed private.
    pub async fn hides(&self, name: &str) {
        let path = format!("/feeds/{name}");
        let shown = self.admin("GET", &path, Value::Null).await.1;
        let put = json!({ "url": shown["url"], "private": true });
        assert_eq!(self.admin("PUT", &path, put).await.0, 200);
    }

    /// Reads the configuration again, without its readers.
    pub async fn revokes(&mut self) {
        self.gateway.config.readers.clear();
        self.gateway.reload().await;
    }

    pub async fn delete(&self, name: &str) {
        assert_eq!(self.admin("DELETE", &format!("/feeds/{name}"), Value::Null).await.0, 204);
    }

    /// A call of the administration with a body, unless that is null: the status, and what is answered.
    pub async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.gateway.admin(method, path, body).await
    }

    /// A document as a reader gets it.
    pub async fn get(&self, path: &str) -> (u16, HeaderMap, String) {
        self.gateway.get(path).await
    }

    /// A request to the hub, and what it says.
    pub async fn post(&self, form: &[(&str, &str)]) -> (StatusCode, String) {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        self.post_as("application/x-www-form-urlencoded", body.finish()).await
    }

    pub async fn post_as(&self, media_type: &str, body: String) -> (StatusCode, String) {
        let call = self.gateway.client().post(self.at("/websub"));
        let call = call.header("content-type", media_type);
        let answer = call.body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    /// Asks the hub to subscribe a callback to a topic, with more parameters.
    pub async fn asks(&self, topic: &str, callback: &str, more: &[(&str, &str)]) {
        let mut form =
            vec![("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", callback)];
        form.extend_from_slice(more);
        let (status, said) = self.post(&form).await;
        assert_eq!((status.as_u16(), said.as_str()), (202, ""));
    }

    /// Subscribes a callback and waits until it is in force.
    pub async fn subscribes(&self, topic: &str, callback: &str, more: &[(&str, &str)]) {
        let before = self.active().await;
        self.asks(topic, callback, more).await;
        let before = before as u64;
        until("a subscription is in force", async || self.active().await as u64 > before).await;
    }

    /// What administration sees of the hub.
    pub async fn seen(&self) -> Value {
        self.admin("GET", "/subscriptions", Value::Null).await.1
    }

    pub async fn active(&self) -> u64 {
        self.seen().await["active"].as_u64().unwrap()
    }

    /// Waits until a callback has had so many deliveries.
    pub async fn delivers(&self, callback: &Callback, deliveries: usize) {
        until(&format!("{deliveries} deliveries"), async || {
            callback.deliveries().len() >= deliveries
        })
        .await;
        assert_eq!(callback.deliveries().len(), deliveries);
    }
}
