//! A gateway in process: what a publisher says goes in, the site answers.

use crate::support::prelude::*;
use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use tidegate_config::{Config, DeltaViews};
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_poll::testing::gateway::Publisher;
use tidegate_poll::testing::idle::IdlePolling;
use tidegate_serve::{self, ActiveConfig, AdminToken, Operator, ServeSettings};
use tower::ServiceExt as _;

const PUBLIC: &str = "https://gate.example";
pub const READER: &str = "https://gate.example/feeds/news";
pub const SYNC: &str = "https://gate.example/feeds/news/sync";

/// What the gateway holds of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub published_id: String,
    pub title: String,
    pub text: String,
    pub updates: u32,
    pub deleted: bool,
}

pub struct Site {
    pub gate: Gate,
    clock: ManualClock,
    router: Router,
}

impl Site {
    pub async fn new(gate: Gate) -> Self {
        let record = FeedRecord {
            options: gate.options.clone(),
            ..FeedRecord::new(gate.feed.clone(), "http://publisher.example/feed", FeedSource::Api)
        };
        gate.store.put_feed(&record).await.unwrap();
        let clock = ManualClock::at(gate.now);
        let router = router(&gate, &clock);
        Self { gate, clock, router }
    }

    pub fn forget(&mut self) {
        self.router = router(&self.gate, &self.clock);
    }

    pub async fn ask(&self, address: &str) -> (u16, HeaderMap, String) {
        self.ask_with(address, &[]).await
    }

    pub async fn ask_with(
        &self,
        address: &str,
        headers: &[(&str, &str)],
    ) -> (u16, HeaderMap, String) {
        self.clock.set(self.gate.now);
        let path = address.strip_prefix(PUBLIC).unwrap_or_else(|| panic!("{address} is foreign"));
        let request = Request::builder().uri(path);
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
        let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap());
        let answer = answer.await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, headers, String::from_utf8(body.to_vec()).unwrap())
    }

    /// What a client of deltas is answered that has the document of a tag, and whether it is a delta; `None` where it
    /// has all. The tag is that of the answer then.
    pub async fn delta(&self, address: &str, tag: &mut Option<String>) -> Option<(bool, String)> {
        let mut asked = vec![("a-im", "feed")];
        asked.extend(tag.as_deref().map(|tag| ("if-none-match", tag)));
        let (status, headers, text) = self.ask_with(address, &asked).await;
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let is_delta = match status {
            304 => return None,
            226 => true,
            _ => false,
        };
        assert!(is_delta || status == 200, "{address}: {status} {text}");
        assert_eq!(header("im").as_deref(), is_delta.then_some("feed"));
        assert!(!is_delta || header("delta-base") == *tag, "the delta begins elsewhere");
        assert_ne!(header("etag"), *tag, "it is told though it was the same");
        *tag = header("etag");
        Some((is_delta, text))
    }

    pub async fn text(&self, address: &str) -> String {
        let (status, _, text) = self.ask(address).await;
        assert_eq!(status, 200, "{address}: {text}");
        text
    }

    pub async fn held(&self) -> BTreeMap<String, Held> {
        let view = self.gate.store.view(&self.gate.feed, Select::All).await.unwrap();
        let items = view.map(|view| view.items).unwrap_or_default();
        let held = items.into_iter().map(|item| {
            let winner = item.shared.winner;
            // As the publisher of these tests writes it; nothing is left of what was redacted.
            let text = winner.data.xml.split_once("&lt;p&gt;").map_or("", |(_, text)| text);
            let text = text.split_once("&lt;/p&gt;").map_or("", |(text, _)| text);
            let held = Held {
                published_id: item.published_id,
                title: winner.data.card.title,
                text: format!("<p>{text}</p>"),
                updates: winner.updates.value(),
                deleted: winner.deleted,
            };
            (winner.id.to_string(), held)
        });
        held.collect()
    }
}

fn router(gate: &Gate, clock: &ManualClock) -> Router {
    let (store, clock) = (Arc::clone(&gate.store), Arc::new(clock.clone()) as Arc<dyn Clock>);
    let services = Publisher::new("").services();
    let polling = IdlePolling::new(&store, &clock, services.clone());
    let active_config = ActiveConfig::new(&Config::default(), PUBLIC, services, None);
    let operator = Operator::new(store, clock, polling.poller, active_config);
    let mut config = Config::default();
    (config.publish.window, config.publish.deltas) = (gate.window, DeltaViews::All);
    (config.sup.periods, config.websub.hub) = (Vec::new(), false);
    let access = (AdminToken::new("correct-horse").unwrap(), Vec::new());
    let settings = ServeSettings::new(&config, PUBLIC.to_owned(), 1024, access);
    tidegate_serve::router(tidegate_serve::ServerConfig {
        operator: Arc::new(operator),
        settings,
        folder: None,
        origins: Default::default(),
        tls: None,
        before: None,
    })
}
