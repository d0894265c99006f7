//! A publisher, a whole gateway in front of it, and witnesses of all that it publishes.
//!
//! After every poll a feed reader and two subscribers read the gateway, and both subscribers must
//! know exactly what the gateway knows. A third sleeps until the end, and a fourth comes then.

use super::net::{Net, PUBLIC, header};
use super::subscriber::{Sync, sync};
use super::{Answer, Followers, Format, Post, Publisher, Reader, Subscriber, described};
use crate::support::gateways;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate::app::{Gateway, Outside};
use tidegate_config::Config;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{FeedName, Time};
use tidegate_store::Select;

/// The feed's name.
pub const FEED: &str = "news";
pub use crate::support::process::TOKEN;
/// 2026-06-01T00:00:00Z: when the gateway starts.
const START: i64 = 1_780_272_000;
/// The kinds of events, in the order in which a step tells them.
const KINDS: [&str; 7] =
    ["created", "updated", "deleted", "undeleted", "retired", "returned", "rekeyed"];

/// What a poll led to.
#[derive(Debug)]
pub struct Step {
    /// The outcome, in the contract's word.
    pub outcome: String,
    /// What happened, like `created 1, retired 1`; nothing where nothing did.
    pub events: String,
    /// Why a document is held.
    pub held: Option<String>,
    /// The feed's tick.
    pub until: String,
    /// What the feed reader found then.
    pub reader: String,
}

/// Everything a scenario needs.
pub struct Stage {
    pub publisher: Publisher,
    pub net: Net,
    pub reader: Reader,
    pub subscriber: Subscriber,
    pub precise: Subscriber,
    pub sleeper: Subscriber,
    /// Asks for deltas.
    pub thrifty: Subscriber,
    /// Readers that keep all they read, with and without deltas.
    pub followers: Followers,
    /// Whether the subscribers must know the payloads byte for byte. Bytes that changed without a
    /// version, such as counters, are shown but are no change to tell subscribers of.
    pub compares_payloads: bool,
    format: Format,
    clock: ManualClock,
    now: Time,
    /// When the last poll was made.
    polled: Time,
    config: Config,
    gateway: Option<Gateway>,
}

impl Stage {
    /// A gateway that keeps everything in memory, with one feed.
    pub async fn new(format: Format) -> Self {
        Self::with(format, "", "").await
    }

    /// The same with more lines in the feed's table and more tables; `{port}` is the publisher's.
    pub async fn with(format: Format, feed: &str, tables: &str) -> Self {
        let publisher = Publisher::start().await;
        let upstream = publisher.address("/feed");
        let has_url = feed.lines().any(|line| line.starts_with("url ="));
        let url = if has_url { String::new() } else { format!("url = \"{upstream}\"\n") };
        let text = format!("[[feed]]\nname = \"{FEED}\"\n{url}{feed}\n{tables}");
        let config = configuration(&text.replace("{port}", &publisher.port().to_string()));
        let net = Net::new();
        let mut stage = Self {
            reader: Reader::new(&net, FEED),
            subscriber: Subscriber::new(&net, FEED, false),
            precise: Subscriber::new(&net, FEED, true),
            sleeper: Subscriber::new(&net, FEED, true),
            thrifty: Subscriber::with_deltas(&net, FEED),
            followers: Followers::new(&net, FEED),
            compares_payloads: true,
            publisher,
            net,
            format,
            clock: ManualClock::at(Time::from_unix(START)),
            now: Time::from_unix(START),
            polled: Time::MIN,
            config,
            gateway: None,
        };
        stage.start().await;
        stage
    }

    async fn start(&mut self) {
        let outside = Outside { clock: Arc::new(self.clock.clone()), ..Outside::default() };
        let gateway = Gateway::start(&self.config, outside).await.unwrap();
        self.net.lead_to(gateway.address());
        self.gateway = Some(gateway);
    }

    /// Stops the gateway and starts it again over the same data.
    pub async fn restart(&mut self) {
        self.restart_after(|| {}).await;
    }

    /// The same, doing something with the data while nobody uses them.
    pub async fn restart_after(&mut self, act: impl FnOnce()) {
        self.gateway.take().unwrap().stop().await.unwrap();
        act();
        self.later(Duration::from_secs(60));
        self.start().await;
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    pub fn gateway_mut(&mut self) -> &mut Gateway {
        self.gateway.as_mut().unwrap()
    }

    /// The clock that the gateway goes by.
    pub fn clock(&self) -> ManualClock {
        self.clock.clone()
    }

    /// The configuration that the gateway runs with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Takes another format from now on.
    pub fn writes(&mut self, format: Format) {
        self.format = format;
    }

    /// Lets time pass.
    pub fn later(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.clock.set(self.now);
    }

    /// Lets hours pass.
    pub fn hours(&mut self, hours: u64) {
        self.later(Duration::from_secs(hours * 3600));
    }

    /// The time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Sets what the publisher answers.
    pub fn answers(&self, answer: Answer) {
        self.publisher.set("/feed", answer);
    }

    /// Sets the publisher's posts.
    pub fn publishes(&self, posts: &[Post]) {
        self.publishes_text(&self.format.document(posts));
    }

    /// Sets the publisher's document.
    pub fn publishes_text(&self, text: &str) {
        self.answers(Answer::document(self.format.media_type(), text));
    }

    /// Publishes posts and polls, a minute later.
    pub async fn posts(&mut self, posts: &[Post]) -> Step {
        self.publishes(posts);
        self.poll().await
    }

    /// Polls so many times, so many hours apart, and tells the last.
    pub async fn polls(&mut self, times: u32, hours: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..times {
            self.hours(hours);
            steps.push(self.poll().await);
        }
        steps
    }

    /// A minute later, polls the feed, and lets everybody read what came of it.
    pub async fn poll(&mut self) -> Step {
        let mut step = self.poll_alone().await;
        if self.state().await.is_some() {
            self.subscriber.consume().await;
            self.precise.consume().await;
            self.thrifty.consume().await;
            self.compare(&self.thrifty, "the subscriber that asks for deltas").await;
            let deleted = self.deleted_titles().await;
            self.followers.visit(|title| deleted.contains(title)).await;
            self.compare(&self.subscriber, "the subscriber").await;
            self.compare(&self.precise, "the subscriber that asks with since").await;
            step.reader = self.reader.visit().await.to_string();
            if self.sleeper.until().is_empty() {
                self.sleeper.consume().await;
            }
        }
        step
    }

    /// A minute later, polls the feed; nobody reads it.
    pub async fn poll_alone(&mut self) -> Step {
        self.later(Duration::from_secs(60));
        let report = self.admin("POST", &format!("/feeds/{FEED}/poll"), None).await.1;
        // The gateway polls by itself as well, so the events of all polls since the last count.
        let status = self.probed().await;
        let mut counts = BTreeMap::new();
        let mut changed = false;
        let polls = status["last_polls"].as_array().unwrap();
        for poll in polls.iter().chain(status["last_probes"].as_array().unwrap()) {
            if Time::parse_rfc3339(poll["at"].as_str().unwrap()).unwrap() <= self.polled {
                continue;
            }
            changed |= poll["outcome"] == "changed";
            for kind in KINDS {
                let count = poll[kind].as_u64().unwrap_or(0);
                changed |= count > 0;
                *counts.entry(kind).or_insert(0) += count;
            }
        }
        self.polled = self.now;
        let events = KINDS.iter().filter(|kind| counts.get(*kind).is_some_and(|n| *n > 0));
        let events: Vec<_> = events.map(|kind| format!("{kind} {}", counts[kind])).collect();
        let text = |key: &str| report[key].as_str().map(str::to_owned);
        let outcome = text("outcome").unwrap_or_else(|| panic!("{report}"));
        Step {
            outcome: if changed && outcome != "failed" { "changed".into() } else { outcome },
            events: events.join(", "),
            held: text("held"),
            until: text("until").unwrap_or_default(),
            reader: String::new(),
        }
    }

    /// What the gateway says of the feed.
    pub async fn status(&self) -> Value {
        self.admin("GET", &format!("/feeds/{FEED}"), None).await.1
    }

    /// The same once nobody is asked for missing items any more.
    pub async fn probed(&self) -> Value {
        for _ in 0..1000 {
            let status = self.status().await;
            if status["probing"] != true {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("asking for missing items does not end");
    }

    /// Calls the administration API, whose answer must be as it is described.
    pub async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let verb = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.net.request(verb, &format!("{PUBLIC}/api/v1{path}"));
        request = request.bearer_auth(TOKEN);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let kind = header(&answer, "content-type").unwrap_or_default();
        let text = answer.text().await.unwrap();
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        described::check_answer(method, &format!("/api/v1{path}"), (status, &kind), &value);
        (status, value)
    }

    /// What the gateway knows of each item; nothing before the first document.
    pub async fn state(&self) -> Option<BTreeMap<String, Sync>> {
        let name = FeedName::new(FEED).unwrap();
        let view = self.gateway().store().view(&name, Select::All).await.unwrap()?;
        let pair = |item: &tidegate_core::model::Item| {
            (item.shared.winner.id.to_string(), sync(&item.shared))
        };
        Some(view.items.iter().map(pair).collect())
    }

    /// The titles of the items that their publisher took away.
    pub async fn deleted_titles(&self) -> BTreeSet<String> {
        let name = FeedName::new(FEED).unwrap();
        let view = self.gateway().store().view(&name, Select::All).await.unwrap().unwrap();
        let deleted = view.items.into_iter().filter(|item| item.shared.winner.deleted);
        deleted.map(|item| item.shared.winner.data.card.title).collect()
    }

    /// What a subscriber knows, but for tombstones that are too old for the gateway; and the ids of these.
    pub async fn known_to(
        &self,
        subscriber: &Subscriber,
    ) -> (Option<BTreeMap<String, Sync>>, Vec<String>) {
        let held = self.state().await;
        let is_there = |id: &str| held.as_ref().is_none_or(|held| held.contains_key(id));
        let known = subscriber.known().into_iter();
        let (gone, known): (BTreeMap<_, _>, BTreeMap<_, _>) =
            known.partition(|(id, (_, deleted, _))| *deleted && !is_there(id));
        let gone: Vec<String> = gone.into_keys().collect();
        let name = FeedName::new(FEED).unwrap();
        let left = self.gateway().store().stubs(&name, &gone).await.unwrap();
        assert!(
            left.iter().all(|stub| !stub.standing.left_alive()) && left.len() == gone.len(),
            "{gone:?}"
        );
        (Some(known), gone)
    }

    async fn compare(&self, subscriber: &Subscriber, who: &str) {
        let (known, gone) = self.known_to(subscriber).await;
        assert_eq!(known, self.state().await, "what {who} knows and the gateway");
        if self.compares_payloads {
            let mut newcomer = Subscriber::new(&self.net, FEED, false);
            newcomer.consume().await;
            let mut payloads = subscriber.payloads();
            payloads.retain(|id, _| !gone.contains(id));
            assert_eq!(payloads, newcomer.payloads(), "what {who} reads and a newcomer");
        }
    }

    /// Sets the wall clock ahead, while no time passes.
    pub fn leap(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.clock.leap(self.now);
    }

    /// Turns the clock back.
    pub fn turn_back(&mut self, seconds: u64) {
        self.now = self.now.minus(Duration::from_secs(seconds));
        self.clock.set(self.now);
        self.polled = self.polled.min(self.now);
    }

    /// Ends it: who was there all along never was out of sync, and who sleeps long or comes late
    /// knows the same.
    pub async fn end(mut self) {
        assert_eq!(self.subscriber.resets, 0, "the subscriber was never away");
        assert_eq!(self.precise.resets, 0, "the subscriber that asks with since was never away");
        assert_eq!(self.thrifty.resets, 0, "the subscriber that asks for deltas was never away");
        self.sleeper.consume().await;
        assert_eq!(self.sleeper.resets, 0, "the sleeper");
        self.compare(&self.sleeper, "the sleeper").await;
        self.stop().await;
    }

    /// Stops the gateway.
    pub async fn stop(mut self) {
        self.gateway.take().unwrap().stop().await.unwrap();
    }
}

/// Tables of a gateway that keeps its data in a folder.
pub fn on_disk(folder: &std::path::Path) -> String {
    format!("[store]\nkind = \"sled\"\npath = \"{}\"\n", folder.join("data").display())
}

/// A configuration for tests: everything beside what `text` says.
pub fn configuration(text: &str) -> Config {
    // The reader that merges deltas is there in every scenario.
    let publish = "[publish]\ndeltas = \"all\"\n";
    let text = match text.contains("[publish]\n") {
        true => text.replace("[publish]\n", publish),
        false => format!("{text}\n{publish}"),
    };
    gateways::configuration(&format!("[server]\npublic_url = \"{PUBLIC}\"\n{text}"))
}
