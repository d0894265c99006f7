//! A scripted publisher, a gateway without a network, and several on one store.

use super::double::*;
use crate::*;
use bytes::Bytes;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::{BodyPrints, Time};
use tidegate_net::fetch::{
    Call, CallRequest, Fetch, FetchAnswer, FetchError, FetchRequest, Fetched, FetchedDocument,
    Passing, Services, Validators,
};
pub use tidegate_net::testing::fetched;
use tidegate_status::{PollResponse, PollStatus};
use tidegate_store::{GatewayId, Gateways, KnownGateway};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_128;

pub fn no_calls() -> Call {
    Call::new(tower::service_fn(|request: CallRequest| async move {
        panic!("nobody is to call {}", request.url)
    }))
}

/// A publisher with a scripted answer, optionally behind a gate.
pub struct Publisher {
    /// A text of [`document_of`] and its ETag.
    pub answer: Mutex<Result<(String, &'static str), FetchError>>,
    pub asked: Mutex<Vec<FetchRequest>>,
    /// Each permit releases one answer.
    pub gate: Semaphore,
}

impl Publisher {
    pub fn new(text: impl Into<String>) -> Arc<Self> {
        Self::behind(text, Semaphore::MAX_PERMITS / 2)
    }

    pub fn gated(text: impl Into<String>) -> Arc<Self> {
        Self::behind(text, 0)
    }

    fn behind(text: impl Into<String>, answers: usize) -> Arc<Self> {
        let (answer, gate) = (Mutex::new(Ok((text.into(), "1"))), Semaphore::new(answers));
        Arc::new(Self { answer, asked: Mutex::default(), gate })
    }

    pub fn release(&self, answers: usize) {
        self.gate.add_permits(answers);
    }

    pub fn says(&self, text: impl Into<String>, etag: &'static str) {
        *self.answer.lock().unwrap() = Ok((text.into(), etag));
    }

    pub fn fails(&self, error: FetchError) {
        *self.answer.lock().unwrap() = Err(error);
    }

    pub fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub fn services(self: &Arc<Self>) -> Services {
        let publisher = Arc::clone(self);
        let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
            let publisher = Arc::clone(&publisher);
            async move {
                publisher.asked.lock().unwrap().push(request.clone());
                publisher.gate.acquire().await.unwrap().forget();
                publisher.reply(&request)
            }
        }));
        Services { fetch, call: no_calls(), passing: Passing::default() }
    }

    /// Returns services that fetch by `answer` instead.
    pub fn services_by(
        self: &Arc<Self>,
        answer: impl Fn(&Self, &FetchRequest) -> Result<Fetched, FetchError> + Send + Sync + 'static,
    ) -> Services {
        let (publisher, answer) = (Arc::clone(self), Arc::new(answer));
        let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
            std::future::ready(answer(&publisher, &request))
        }));
        Services { fetch, ..self.services() }
    }

    pub fn note_and_reply(&self, request: &FetchRequest) -> Result<Fetched, FetchError> {
        self.asked.lock().unwrap().push(request.clone());
        self.reply(request)
    }

    /// Answers like a server and the client in front of it. White space at the ends counts as transferred but not as
    /// decompressed bytes.
    pub fn reply(&self, request: &FetchRequest) -> Result<Fetched, FetchError> {
        let (text, etag) = self.answer.lock().unwrap().clone()?;
        let print = xxh3_128(text.as_bytes());
        let known = request.validators.etag.as_deref() == Some(etag);
        let answer = if known {
            FetchAnswer::NotModified
        } else if request.known_wire == Some(print) && !text.contains("delta") {
            FetchAnswer::Same
        } else {
            let prints = BodyPrints { wire: print, body: xxh3_128(text.trim().as_bytes()) };
            let delta = text.contains("delta");
            FetchAnswer::Document(FetchedDocument { delta, ..document(document_of(&text), prints) })
        };
        Ok(Fetched {
            status: if known { 304 } else { 200 },
            validators: Validators {
                etag: Some(etag.to_owned()),
                last_modified: None,
                answered_by: Some(request.url.clone()),
                credentials_id: 0,
            },
            moved_to: text.contains("moved").then(|| "http://new.example/".to_owned()),
            freshness: text.contains("fresh").then_some(Duration::from_secs(3600)),
            wire_bytes: if known { 0 } else { text.len() as u64 },
            ..fetched(&request.url, answer)
        })
    }
}

/// Makes the document of a text: a channel whose one item is named by the text up to a comma. A text that begins with
/// `<` is a document already.
pub fn document_of(text: &str) -> String {
    if text.starts_with('<') {
        return text.to_owned();
    }
    let item = text.split(',').next().unwrap_or_default().trim();
    format!(
        "<rss version=\"2.0\"><channel><title>News</title><ttl>20</ttl>\
         <lastBuildDate>Fri, 20 Nov 2026 12:00:01 GMT</lastBuildDate><item><title>{item}</title>\
         <guid isPermaLink=\"false\">{item}</guid>\
         <pubDate>Fri, 20 Nov 2026 12:00:00 GMT</pubDate></item></channel></rss>"
    )
}

pub const fn status_error(code: u16, retry_after: Option<Duration>) -> FetchError {
    FetchError::Status { code, retry_after, redirected_to: None, says: None }
}

pub fn document(bytes: impl Into<Bytes>, prints: BodyPrints) -> FetchedDocument {
    let (bytes, content_type, url) = (bytes.into(), None, String::new());
    FetchedDocument { bytes, content_type, url, prints, delta: false }
}

pub fn whole_document(text: String) -> FetchAnswer {
    let print = xxh3_128(text.as_bytes());
    FetchAnswer::Document(document(text, BodyPrints { wire: print, body: print }))
}

pub struct Gateway {
    pub store: Arc<ScriptedStore>,
    pub publisher: Arc<Publisher>,
    pub clock: ManualClock,
    pub poller: Poller,
    pub cancel: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Gateway {
    pub async fn start(store: &Arc<ScriptedStore>, publisher: &Arc<Publisher>) -> Self {
        Self::with_client(store, publisher, publisher.services()).await
    }

    pub async fn start_later(
        store: &Arc<ScriptedStore>,
        publisher: &Arc<Publisher>,
        seconds: u64,
    ) -> Self {
        let now = NOW.plus(Duration::from_secs(seconds));
        Self::with_parts(store, publisher, publisher.services(), now, |_| ()).await
    }

    /// Starts a gateway with other services, for example for a publisher outside.
    pub async fn with_client(
        store: &Arc<ScriptedStore>,
        publisher: &Arc<Publisher>,
        services: Services,
    ) -> Self {
        Self::with_parts(store, publisher, services, NOW, |_| ()).await
    }

    pub async fn with_parts(
        store: &Arc<ScriptedStore>,
        publisher: &Arc<Publisher>,
        services: Services,
        now: Time,
        edit: impl FnOnce(&mut PollerConfig),
    ) -> Self {
        let clock = ManualClock::at(now);
        let known: Arc<dyn Clock> = Arc::new(clock.clone());
        let mut config = poller_config(store.real(), &known, services);
        edit(&mut config);
        let cancel = config.cancel.clone();
        let (poller, task) = Poller::start(config).await.unwrap();
        let (store, publisher) = (Arc::clone(store), Arc::clone(publisher));
        Self { store, publisher, clock, poller, cancel, task }
    }

    /// Starts a gateway whose feed `news` has been polled once.
    pub async fn with_news(text: impl Into<String>) -> Self {
        let gateway = Self::start(&store_of(&["news"]), &Publisher::new(text)).await;
        gateway.polls("news", 1).await;
        gateway
    }

    pub async fn poll(&self) -> PollResponse {
        self.poller.poll_now(&name("news")).await.unwrap()
    }

    pub fn status(&self) -> PollStatus {
        self.poller.status(&name("news")).unwrap()
    }

    pub async fn polls(&self, feed: &str, polls: usize) {
        let feed = name(feed);
        eventually(|| self.poller.status(&feed).is_some_and(|s| s.polls.len() >= polls)).await;
    }

    pub async fn stop(self) -> Arc<ScriptedStore> {
        self.cancel.cancel();
        self.task.await.unwrap();
        self.store
    }
}

pub async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came about");
}

/// Creates one gateway's view of all; once confirmed, its liveness lasts as long as any test.
pub fn gateway(id: i64) -> Arc<Gateways> {
    Arc::new(Gateways::new(GatewayId(id), Duration::from_secs(10)))
}

/// Confirms to these gateways that they, and no others, are live.
pub fn live(all: &[&Arc<Gateways>]) {
    for this in all {
        let known = all.iter().map(|it| KnownGateway {
            id: it.id(),
            name: format!("gateway {}", it.id().0),
            is_this: it.id() == this.id(),
            polls: true,
            ..KnownGateway::default()
        });
        this.confirm(Duration::MAX, known.collect());
    }
}
