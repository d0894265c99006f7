//! A publisher, a whole gateway with its hub in front of it, and what subscribers do.

use super::callback::Callback;
use crate::support::gateways::{FORM, Running, START, configuration, form, until};
use crate::support::prelude::*;
use crate::support::publisher::{Answer, Publisher};
use crate::support::sharing;
use http::StatusCode;
use std::ops::{Deref, DerefMut};

pub const PUBLIC: &str = "https://gate.example";

pub struct Stage {
    gateway: Running,
    publisher: Publisher,
    _folder: tempfile::TempDir,
}

impl Deref for Stage {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.gateway
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut Running {
        &mut self.gateway
    }
}

/// The publisher's document with these entries, newest first.
pub fn document(entries: &[&str]) -> String {
    let entry = |name: &&str| {
        format!(
            "<entry><id>urn:e:{name}</id><title>{name}</title>\
             <updated>2026-06-01T00:00:00Z</updated><content>{name}</content></entry>"
        )
    };
    sharing::document("", &entries.iter().map(entry).collect::<Vec<_>>())
}

impl Stage {
    pub async fn new() -> Self {
        Self::of_document(&document(&["one"]), "").await
    }

    /// A gateway with one feed, `news`, of which this document has been taken in, and with more of a configuration.
    pub async fn of_document(text: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let mut config = configuration(&format!(
            "[server]\npublic_url = \"{PUBLIC}\"\n[store]\nkind = \"sled\"\npath = \"{path}\"\n{more}"
        ));
        // It calls private addresses for strangers.
        config.websub.private_callbacks = config.polling.allow_private.clone();
        let gateway = Running::of(config, Some(START)).await;
        let mut stage = Self { gateway, publisher: Publisher::start().await, _folder: folder };
        stage.says_text(text);
        stage.add("news").await;
        stage
    }

    /// What the publisher says from now on.
    pub fn says_text(&self, text: &str) {
        self.publisher.set("/feed", Answer::document("application/atom+xml", text));
    }

    /// Adds a feed of this publisher, and polls it.
    pub async fn add(&mut self, name: &str) {
        let url = self.publisher.address(&format!("/feed?of={name}"));
        let put = self.admin("PUT", &format!("/feeds/{name}"), json!({ "url": url })).await;
        assert_eq!(put.0, 201);
        self.poll(name).await;
    }

    /// Polls a feed now; a later second than before, so that its tick is a later one. The gateway may have polled it by
    /// itself already.
    pub async fn poll(&mut self, name: &str) {
        self.pass(1);
        let (_, report) = self.admin("POST", &format!("/feeds/{name}/poll"), Value::Null).await;
        assert_ne!(report["outcome"], "failed", "{report}");
    }

    /// The publisher says these, and the gateway takes it in.
    pub async fn changes_to(&mut self, entries: &[&str]) {
        self.says_text(&document(entries));
        self.poll("news").await;
    }

    pub async fn delete(&self, name: &str) {
        assert_eq!(self.admin("DELETE", &format!("/feeds/{name}"), Value::Null).await.0, 204);
    }

    pub async fn post(
        &self,
        mode: &str,
        topic: &str,
        callback: &str,
        more: &[(&str, &str)],
    ) -> (StatusCode, String) {
        let pairs = [("hub.mode", mode), ("hub.topic", topic), ("hub.callback", callback)];
        self.post_form("/websub", form(&[&pairs[..], more].concat())).await
    }

    pub async fn post_form(&self, path: &str, body: String) -> (StatusCode, String) {
        let call = self.client().post(self.url(path)).header("content-type", FORM);
        let answer = call.body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    }

    /// Subscribes a callback to a topic, with more parameters, and waits until it is in force.
    pub async fn subscribes(&self, topic: &str, callback: &str, more: &[(&str, &str)]) {
        let before = self.active().await;
        let (status, said) = self.post("subscribe", topic, callback, more).await;
        assert_eq!((status.as_u16(), said.as_str()), (202, ""));
        until("a subscription is in force", async || self.active().await > before).await;
    }

    /// What administration sees of the hub.
    pub async fn subscriptions(&self) -> Value {
        self.admin("GET", "/subscriptions", Value::Null).await.1
    }

    pub async fn active(&self) -> u64 {
        self.subscriptions().await["active"].as_u64().unwrap()
    }

    /// Waits until a callback has had so many deliveries.
    pub async fn delivers(&self, callback: &Callback, count: usize) {
        until("a delivery", async || callback.deliveries().len() >= count).await;
        assert_eq!(callback.deliveries().len(), count);
    }
}
