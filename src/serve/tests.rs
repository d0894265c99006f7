//! The site as its visitors see it, over a store in memory and polling without a network.

mod admin;
mod apart;
mod archives;
mod callback;
mod conflicts;
mod deltas;
mod doors;
mod doubles;
mod edit;
mod feeds;
mod freshness;
mod golden;
mod handover;
mod headers;
mod index;
mod large;
mod metrics;
mod openapi;
mod origins;
mod pages;
mod people;
mod private;
mod ready;
mod shares;
mod sockets;
mod stopped_store;
mod subscribe;
mod sup;

use super::client::Client;
use super::problem::Problem;
use super::{
    ActiveConfig, AppState, Listener, Operator, OriginSettings, ServeSettings, ServerConfig,
    SharedState, SiteHandle, site_router,
};
use axum::Router;
use axum::body::Body;
use doubles::*;
pub(super) use doubles::{name, record};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
pub(super) use private::access;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::{Clock, ManualClock};
pub(super) use tidegate_core::model::testing::at;
use tidegate_core::model::*;
use tidegate_format::parse;
use tidegate_format::render::{ItemPortions, Page, TextSink};
use tidegate_net::fetch::Services;
use tidegate_poll::testing::gateway::{eventually, no_calls};
use tidegate_poll::testing::idle::IdlePolling;
use tidegate_status::PollStatus;
use tidegate_store::testing::StoreFault;
use tidegate_store::{KnownGateway, Store, StoreStop};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(super) const DAY: i64 = 86_400;
const TOKEN: &str = "correct-horse";
const PUBLIC_URL: &str = "https://feeds.example.org";

/// Says everything that a page holds, a line each, so that tests can read it.
fn spell(
    page: &Page<'_>,
    rest: ItemPortions<'_, Problem>,
    out: &mut dyn TextSink<Problem>,
) -> Result<(), Problem> {
    let rest: Vec<Vec<Item>> = rest.collect::<Result<_, _>>()?;
    assert_eq!(rest, Vec::<Vec<Item>>::new(), "the test store reads all items at once");
    let ids: Vec<&str> = page.items.iter().map(|item| item.shared.winner.id.as_str()).collect();
    let deleted: Vec<&str> = page.deleted.iter().map(|deletion| deletion.id.as_str()).collect();
    let said = format!(
        "{:?} {:?} render {}\nsince {:?}\nuntil {:?}\nexpires {:?}\nitems {}\ndeleted {}\n\
         complete {}\nupstream {}\nsup {:?}\n{}",
        page.kind,
        page.dialect,
        page.state.render_revision,
        page.since,
        page.until,
        page.expires,
        ids.join(" "),
        deleted.join(" "),
        page.addresses.complete,
        page.addresses.upstream,
        page.addresses.sup,
        "filling ".repeat(40),
    );
    out.text().push_str(&said);
    out.flush()
}

/// The operator of a gateway without a network, and the polling that it asks.
fn operator_over(
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    services: Services,
) -> (Arc<Operator>, IdlePolling) {
    let polling = IdlePolling::new(&store, &clock, services.clone());
    let active_config = ActiveConfig::new(&Config::default(), PUBLIC_URL, services, None);
    let operator = Operator::new(store, clock, polling.poller.clone(), active_config);
    (Arc::new(operator), polling)
}

struct Site {
    store: Arc<TestStore>,
    polling: Arc<IdlePolling>,
    clock: ManualClock,
    app: SharedState,
    router: Router,
    closing: CancellationToken,
}

impl Site {
    /// A site with one Atom feed, `news`; see [`TestStore::with_news`].
    fn new() -> Self {
        Self::with(TestStore::with_news(), settings())
    }

    /// The same, with SUP documents.
    fn announcing() -> Self {
        Self::announcing_over(TestStore::with_news())
    }

    fn announcing_over(store: TestStore) -> Self {
        Self::with(store, with_sup())
    }

    /// The same as one of several gateways.
    fn sharing() -> Self {
        Self::announcing_over(TestStore::with_news().shared())
    }

    fn with(store: TestStore, settings: ServeSettings) -> Self {
        Self::before(store, settings, OriginSettings::default(), doubles::services())
    }

    /// The same in front of sites.
    fn before(
        store: TestStore,
        settings: ServeSettings,
        origins: OriginSettings,
        services: Services,
    ) -> Self {
        let (store, clock) = (Arc::new(store), ManualClock::at(at(0)));
        let (operator, polling) = operator_over(store.real(), Arc::new(clock.clone()), services);
        doubles::tell_of_feeds(&polling, &store);
        let parts = ServerConfig { origins, ..parts(operator, settings) };
        Self::of(parts, (store, Arc::new(polling), clock))
    }

    fn followed_by(&self, settings: ServeSettings) -> Self {
        let parts = parts(Arc::clone(&self.app.operator), settings);
        let parts = ServerConfig { before: Some(SiteHandle::new(&self.app)), ..parts };
        let behind = (Arc::clone(&self.store), Arc::clone(&self.polling), self.clock.clone());
        let next = Self::of(parts, behind);
        self.app.hand_over(&next.app);
        next
    }

    /// The same with a hub, which calls nobody.
    async fn with_hub(self) -> Self {
        let (operator, store) = (&self.app.operator, self.store.real());
        let hub = tidegate_poll::hub::testing::open(store, no_calls()).await;
        let services = operator.active_config().services.clone();
        let config = Config::default();
        operator.replace_config(ActiveConfig::new(&config, PUBLIC_URL, services, Some(hub)));
        self.followed_by(with(with_sup(), |it| it.websub.hub = true))
    }

    fn of(
        parts: ServerConfig,
        (store, polling, clock): (Arc<TestStore>, Arc<IdlePolling>, ManualClock),
    ) -> Self {
        let closing = CancellationToken::new();
        let app = AppState::new(parts, spell, closing.clone());
        let router = site_router(app.clone(), Listener::Everybody);
        Self { store, polling, clock, app, router, closing }
    }

    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> Response<Body> {
        self.get_with(path, &[]).await
    }

    async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        self.ask(request("GET", path, headers, "")).await
    }

    async fn text(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        text(answer).await
    }

    async fn text_for_operator(&self, path: &str) -> String {
        text(self.get_with(path, &[BEARER, ("accept", "text/html")]).await).await
    }

    async fn told(&self, path: &str) -> serde_json::Value {
        json(self.call("GET", path, "").await).await
    }

    async fn metrics_with(&self, lines: &[impl AsRef<str>]) -> String {
        let metrics = self.text("/metrics").await;
        for line in lines.iter().map(AsRef::as_ref) {
            assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
        }
        metrics
    }

    /// How many writes there were of the content of feeds, and of their records.
    fn writes(&self) -> [usize; 2] {
        ["states", "feeds"].map(|class| self.store.writes_of(class))
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> Response<Body> {
        self.call_with(method, path, &[], body).await
    }

    async fn call_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Body> {
        let headers = [&[BEARER], headers].concat();
        self.ask(request(method, &format!("/api/v1{path}"), &headers, body)).await
    }
}

/// A gateway without sites, certificates or a folder, which takes nobody's place.
fn parts(operator: Arc<Operator>, settings: ServeSettings) -> ServerConfig {
    let (folder, origins, tls, before) = (None, OriginSettings::default(), None, None);
    ServerConfig { operator, settings, folder, origins, tls, before }
}

fn with_sup() -> ServeSettings {
    with(settings(), |it| it.sup.periods = vec![300, 60, 3600])
}

pub(super) fn settings() -> ServeSettings {
    let mut config = Config::default();
    (config.sup.periods, config.websub.hub) = (Vec::new(), false);
    let access = (super::AdminToken::new(TOKEN).unwrap(), Vec::new());
    ServeSettings::new(&config, "https://feeds.example.org/".to_owned(), 1024, access)
}

pub(super) fn first_entry(document: &str) -> Markup {
    let document = parse::document(document, None, &Default::default()).unwrap();
    parse::own(&document, &document.entries[0])
}

pub(super) fn client(last: u8) -> Client {
    Client::at([192, 0, 2, last].into())
}

/// One of the many networks of IPv6 that a site has.
pub(super) fn network_of_site(number: u16) -> Client {
    Client::at([0x2001, 0xdb8, 7, number, 0, 0, 0, 1].into())
}

/// A request that bears what a layer before the site says of it, as from whom it is.
fn with_extension(
    mut request: Request<Body>,
    said: impl Clone + Send + Sync + 'static,
) -> Request<Body> {
    request.extensions_mut().insert(said);
    request
}

fn with(settings: ServeSettings, change: impl FnOnce(&mut ServeSettings)) -> ServeSettings {
    let mut settings = settings;
    change(&mut settings);
    settings
}

/// A store that is closed for this cause, and tried again.
fn stopped(cause: &str) -> Option<StoreStop> {
    let (since, next_try) = (at(-60), Some(at(5)));
    Some(StoreStop { cause: cause.to_owned(), since, next_try, failed_tries: 3 })
}

pub(super) fn endpoint() -> EndpointId {
    EndpointId::own("gate").unwrap()
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn bytes(response: Response<Body>) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

pub(super) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
    plain
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(bytes(response).await).unwrap()
}

async fn json(response: Response<Body>) -> serde_json::Value {
    serde_json::from_slice(&bytes(response).await).unwrap()
}

/// The line of the metrics that counts these requests.
fn counted(method: &str, route: &str, status: u16, number: u32) -> String {
    let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
    format!("tidegate_http_requests_total{{{labels}}} {number}")
}

/// Checks that an answer is a problem document (RFC 9457) of this status, and gives it.
async fn problem(response: Response<Body>, status: u16) -> serde_json::Value {
    let answered = response.status().as_u16();
    let kind = ["content-type", "cache-control"].map(|name| header(&response, name).to_owned());
    let said = text(response).await;
    assert_eq!(answered, status, "{said}");
    assert_eq!(kind, ["application/problem+json", "no-store"]);
    let problem: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(problem["status"], status);
    for part in ["title", "detail"] {
        assert!(!problem[part].as_str().unwrap().is_empty());
    }
    problem
}

/// Checks that an answer is to be asked for again in half a minute, and gives the problem that it says.
async fn is_retried(response: Response<Body>) -> serde_json::Value {
    assert_eq!(header(&response, "retry-after"), "30");
    problem(response, 503).await
}
fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub(super) trait PageText: AsRef<str> {
    #[track_caller]
    fn assert_shows(&self, all: &[&str]) {
        let text = self.as_ref();
        all.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in {text}"));
    }

    #[track_caller]
    fn assert_lacks(&self, all: &[&str]) {
        let text = self.as_ref();
        all.iter().for_each(|part| assert!(!text.contains(part), "{part:?} in {text}"));
    }
}

impl PageText for str {}

const BEARER: (&str, &str) = ("authorization", "Bearer correct-horse");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// A form that is sent from a page of ours.
const OURS: (&str, &str) = ("sec-fetch-site", "same-origin");
