//! Gateways in this process, each in front of a publisher or of the next.

use super::name;
use super::process::TOKEN;
use super::publisher::{Answer, Publisher};
use crate::support::prelude::*;
use http::HeaderMap;
use tidegate::app::{Gateway, Outside};
use tidegate_config::{self as config, Config};
use tidegate_core::clock::{Clock as _, ManualClock};

/// What tests have in a table where they do not say otherwise. Nothing is polled by itself but at the start.
const DEFAULTS: [(&str, &str); 7] = [
    ("server", "listen = \"127.0.0.1:0\""),
    ("server", "admin_token = \"TOKEN\""),
    ("store", "kind = \"memory\""),
    ("polling", "allow_private = true"),
    ("polling", "host_spacing = \"0s\""),
    ("polling", "max_interval = \"365d\""),
    ("polling", "min_interval = \"365d\""),
];

/// What `text` says, and the rest.
pub fn complete(text: &str) -> String {
    let mut text = text.to_owned();
    for (table, line) in DEFAULTS {
        let head = format!("[{table}]\n");
        if !text.contains(&head) {
            text.insert_str(0, &head);
        }
        let at = text.find(&head).unwrap() + head.len();
        let own = text[at..].split("\n[").next().unwrap();
        let has = |key: &str| own.lines().any(|line| line.starts_with(&format!("{key} =")));
        let is_said = match line.split_once(" =").unwrap().0 {
            "kind" => has("kind") || has("path"),
            "max_interval" => has("max_interval") || has("min_interval"),
            key => has(key),
        };
        if !is_said {
            text.insert_str(at, &format!("{}\n", line.replace("TOKEN", TOKEN)));
        }
    }
    text
}

/// A configuration of tests.
pub fn configuration(text: &str) -> Config {
    let text = complete(text);
    let checked = config::check("t.toml", &text);
    let mut config = checked.unwrap_or_else(|faults| panic!("{faults}\n{text}")).config;
    // The clocks of tests stand still.
    config.polling.walk_pause = Duration::ZERO;
    config
}

/// 2026-06-01T00:00:00Z: when gateways start whose clock is set.
pub const START: Time = Time::from_unix(1_780_272_000);
pub const FORM: &str = "application/x-www-form-urlencoded";

pub fn form(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// A client that follows nothing. Certificates of tests are their own authority.
pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true);
    client.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// A gateway that is asked over HTTP.
pub trait Asked {
    fn client(&self) -> &reqwest::Client;

    /// The whole address of a path.
    fn url(&self, path: &str) -> String;

    async fn get(&self, path: &str) -> (u16, HeaderMap, String) {
        let answer = self.client().get(self.url(path)).send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.text().await.unwrap())
    }

    async fn text(&self, path: &str) -> String {
        let (status, _, text) = self.get(path).await;
        assert_eq!(status, 200, "{path}: {text}");
        text
    }

    /// A call of the administration with a body, unless that is null: the status, and what is answered.
    async fn admin(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/v1{path}");
        let verb = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut call = self.client().request(verb, self.url(&path));
        if !body.is_null() {
            call = call.header("content-type", "application/json").body(body.to_string());
        }
        let answer = call.bearer_auth(TOKEN).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    /// The same of what is done: what is answered.
    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, said) = self.admin(method, path, body).await;
        assert!(status < 300, "{path}: {status} {said}");
        said
    }
}

pub struct Running {
    pub config: Config,
    /// The clock that it goes by, where it is not that of the system.
    clock: Option<ManualClock>,
    gateway: Option<Gateway>,
    client: reqwest::Client,
}

impl std::ops::Deref for Running {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }
}

impl Asked for Running {
    fn client(&self) -> &reqwest::Client {
        &self.client
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }
}

impl Running {
    pub async fn start(text: &str) -> Self {
        Self::of(configuration(text), None).await
    }

    pub async fn start_at(now: Time, text: &str) -> Self {
        Self::of(configuration(text), Some(now)).await
    }

    pub async fn of(config: Config, now: Option<Time>) -> Self {
        let clock = now.map(ManualClock::at);
        let mut running = Self { config, clock, gateway: None, client: client() };
        running.open().await;
        running
    }

    /// Starts it, again with the same data.
    pub async fn open(&mut self) {
        let mut outside = Outside::default();
        if let Some(clock) = &self.clock {
            outside.clock = Arc::new(clock.clone());
        }
        self.gateway = Some(Gateway::start(&self.config, outside).await.unwrap());
    }

    pub async fn close(&mut self) {
        self.gateway.take().unwrap().stop().await.unwrap();
    }

    /// Has it take the configuration as it is now.
    pub async fn reload(&mut self) {
        self.gateway.as_mut().unwrap().reload(&self.config).await.unwrap();
    }

    pub async fn stop(mut self) {
        self.close().await;
    }

    fn clock(&self) -> &ManualClock {
        self.clock.as_ref().unwrap()
    }

    pub fn later(&mut self, time: Duration) {
        self.clock().set(self.clock().now().plus(time));
    }

    pub fn pass(&mut self, seconds: u64) {
        self.later(Duration::from_secs(seconds));
    }

    /// Sets the wall clock ahead, while no time passes.
    pub fn leap(&mut self, time: Duration) {
        self.clock().leap(self.clock().now().plus(time));
    }

    pub fn turn_back(&mut self, time: Duration) {
        self.clock().set(self.clock().now().minus(time));
    }

    pub async fn poll(&self, feed: &str) {
        let report = self.operator().poll_now(&name(feed)).await.unwrap();
        assert_eq!(report.error, None, "{report:?}");
    }
}

/// Waits for what must come, a minute at most.
pub async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    for _ in 0..3000 {
        if is().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never came that {what}");
}

/// A publisher of one document, which can be changed.
pub struct Paper {
    publisher: Publisher,
    media_type: &'static str,
    pub url: String,
}

impl Paper {
    pub async fn start(media_type: &'static str, text: &str) -> Self {
        let publisher = Publisher::start().await;
        let paper = Self { url: publisher.address("/"), publisher, media_type };
        paper.print(text);
        paper
    }

    /// What it answers from now on, whatever it is asked for.
    pub fn print(&self, text: &str) {
        self.publisher.set_all(Answer::document(self.media_type, text));
    }
}

/// A gateway of one feed, whose clock is set; `more`: what its configuration says of it beside the address.
pub async fn gateway(endpoint: &str, url: &str, more: &str) -> Running {
    let text = format!(
        "[publish]\nendpoint = \"{endpoint}\"\n[websub]\nhub = false\nsubscribe = false\n[[feed]]\n\
         name = \"news\"\nurl = \"{url}\"\n{more}"
    );
    Running::start_at(START, &text).await
}

/// What the items of the feed are to those who share them, by their ids: updates, whether deleted, history, published id
/// and title.
pub async fn items(gateway: &Running) -> BTreeMap<String, (Count, bool, History, String, String)> {
    let view = gateway.store().view(&name("news"), Select::All).await.unwrap();
    let items = view.map(|view| view.items).unwrap_or_default().into_iter().map(|item| {
        let Version { id, updates, deleted, history, data, .. } = item.shared.winner;
        (id.to_string(), (updates, deleted, history, item.published_id, data.card.title))
    });
    items.collect()
}
