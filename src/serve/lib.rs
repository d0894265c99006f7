//! Everything that answers: feed views, item pages, the dashboard, administration. It reads the store and renders;
//! it never polls. [`Operator`] has the `Poller`: administration asks it, and so do callbacks of hubs (`hub.rs`), the index
//! of feeds, probes, the dashboard and `origins/making.rs`. `hub.rs` and `webhook.rs` ask the hub. Addresses and headers are those of
//! CONTRACT, Addresses.

mod about;
mod actions;
mod add;
mod address;
mod admin;
mod admission;
mod answers;
mod audience;
mod auth;
mod budget;
mod cache;
mod change_feed;
mod client;
mod conditional;
mod conflicts;
mod connections;
mod dashboard;
mod delta;
mod directory;
mod documents;
mod edit;
mod event_streams;
mod explain;
mod extract;
mod feed_list;
mod feeds;
mod forms;
mod holdings;
mod html;
mod hub;
mod index;
mod item_list;
mod items;
mod life;
mod listen;
mod log;
mod metrics;
mod negotiate;
mod observe;
mod openapi;
mod operator;
mod opml;
mod origins;
mod paging;
mod past;
mod probes;
mod problem;
mod put;
mod query;
mod readers;
mod reading;
mod ready;
mod rendition;
mod router;
mod routes;
mod session;
mod settings;
mod shared_work;
mod shares;
mod shown_pages;
mod site_service;
mod spool;
mod subscribe;
mod sup;
#[cfg(test)]
mod tests;
mod tls;
mod views;
mod webhook;

pub use address::item_page;
pub use auth::{AdminToken, TokenError};
pub use cache::Cache;
pub use connections::connections_within_files;
pub use listen::{ServeError, SiteHandle};
pub use openapi::api_description;
pub use operator::{
    ActiveConfig, ExistingFeeds, Gathered, ImportPlan, ImportedList, LIST_LIMIT,
    LeftOutCredentials, ListLine, Operator, OperatorError, PutMode, SeenList, WrittenState, decide,
    read_list, write_state,
};
pub use origins::OriginSettings;
pub use readers::{ReaderAccess, ReaderKey};
pub use settings::ServeSettings;
pub use tls::{TlsError, TlsIdentity, TlsKeys};

use address::{DocumentForm, Site, followable, shown};
use admission::{Admission, Work, WorkKind, kept_items};
use audience::{Audience, AudienceKey, ServedFeed, TOKEN_PATH};
use auth::Guesses;
use axum::Router;
use axum::response::Response;
use budget::{Budget, BudgetEnd, BudgetShares, HeldBudget};
use bytes::Bytes;
use client::{Client, Peer, Proxies, UnnamedProxies};
use conditional::{LastModified, unkept};
use connections::Connection;
use delta::DeltaToken;
use directory::{Directory, Listing};
use documents::{DocumentKey, DocumentKind, Documents, ServedDocument};
use event_streams::EventStreams;
use extract::{
    FeedCall, ItemCall, JsonFields, JsonObject, ReadQuery, ServedItem, TypedQuery, Viewer,
    WholeBody, unknown_item,
};
use forms::SentForm;
use holdings::CountedHoldings;
use index::{FeedIndex, IndexUpkeep, IndexedFeed};
use log::ChangeLog;
use metrics::Metrics;
use negotiate::{Encoding, prefers_html};
use openapi::{BadRequest, Conflict, Gone, Later, NotFound, Stale, Unchanged, Unprocessable};
use origins::{FeedDemand, Origins, PlaceRules};
use problem::{Problem, ProblemCause};
use query::{Query, ReadPlan, ViewQuery};
use readers::{KnownReader, KnownReaders, PrivateReaders};
use rendition::{BodyContent, Renderer, Rendition, UnwrittenDocument};
use router::ListenerSite;
use session::{Sessions, sign_in_address};
use shared_work::{SingleFlight, WorkRequest, make_on_thread};
use shares::{FairShares, Rate, RateLimiter};
use spool::{Spool, SpooledFile};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use sup::SupDocuments;
use tidegate_core::clock::Clock;
use tidegate_poll::hub::Hub;
use tidegate_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use views::{RequestedView, ViewRequest};

/// Locks a mutex even if it is poisoned: no panic leaves what it guards half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest body of a request, in bytes.
const REQUEST_BODY_LIMIT: usize = 64 * 1024;

/// For whom a listener is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    /// For everybody: there is one.
    Everybody,
    /// For readers; operators have their own.
    Readers,
    Operators,
}

/// What serving needs.
#[derive(Clone)]
pub struct ServerConfig {
    /// Acts for administration, over the store that everything is read from.
    pub operator: Arc<Operator>,
    /// How this gateway shows itself.
    pub settings: ServeSettings,
    /// The folder for documents that are too large for memory; `None`: all stay there.
    pub folder: Option<PathBuf>,
    /// The sites that it stands in front of.
    pub origins: OriginSettings,
    /// What handshakes of the listener for readers are made with; `None`: it speaks no TLS.
    pub tls: Option<Arc<TlsKeys>>,
    /// The site that it replaces on a reload: hands over its counters, and its cached documents if this one writes the
    /// same.
    pub before: Option<SiteHandle>,
}

/// What every handler shares.
struct AppState {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    operator: Arc<Operator>,
    hub: Option<Hub>,
    site: Arc<Site>,
    readers: KnownReaders,
    /// The configuration. A reload makes another `AppState`.
    config: Arc<ServeSettings>,
    proxies: Proxies,
    unnamed_proxies: UnnamedProxies,
    guesses: Guesses,
    sessions: Sessions,
    directory: Directory,
    origins: Origins,
    admission: Arc<Admission>,
    /// The description of the API, once somebody has asked for it.
    description: OnceLock<Bytes>,
    documents: Arc<Documents>,
    /// What documents are written with.
    renderer: Renderer,
    sup: Arc<SupDocuments>,
    event_streams: EventStreams,
    bodies: Arc<Budget>,
    tls: Option<Arc<TlsKeys>>,
    /// Ends what goes on for this state alone.
    closing: CancellationToken,
    lasting: Arc<LastingState>,
}

/// What goes on with the next configuration.
struct LastingState {
    metrics: Metrics,
    log: ChangeLog,
    /// Where documents are written to that are too large for memory.
    spool: Arc<Spool>,
    index: IndexUpkeep,
    holdings: CountedHoldings,
    comparisons: Arc<Semaphore>,
    pushes: Semaphore,
    /// Callbacks at which a push is being read, by token: the hub of one feed cannot fill the gateway.
    pushing: Arc<FairShares<String>>,
    file_bodies: Arc<Budget>,
    /// The current state, set before the one that it replaced is closed. Weak: an old state keeps no later one alive.
    latest: Mutex<Weak<AppState>>,
}

impl LastingState {
    fn new(store: &Arc<Store>, folder: Option<PathBuf>) -> Self {
        Self {
            metrics: Metrics::new(),
            log: ChangeLog::new(Arc::clone(store)),
            spool: Arc::new(Spool::new(folder, Arc::clone(store))),
            index: IndexUpkeep::default(),
            holdings: Cache::with_ttl(holdings::COUNTED_FEEDS, holdings::COUNTED_FRESH),
            comparisons: Arc::new(Semaphore::new(items::COMPARED_AT_ONCE)),
            pushes: Semaphore::new(hub::PUSHES_AT_ONCE),
            pushing: Arc::new(FairShares::new(1)),
            file_bodies: observe::file_budget(),
            latest: Mutex::default(),
        }
    }
}

impl Deref for AppState {
    type Target = LastingState;

    fn deref(&self) -> &LastingState {
        &self.lasting
    }
}

type SharedState = Arc<AppState>;

/// Reuses a part of the state before a reload, or makes it if there was none.
fn reuse_or_new<T: Clone>(before: Option<&T>, new: impl FnOnce() -> T) -> T {
    before.cloned().unwrap_or_else(new)
}

/// What a handler answers.
type Reply = Result<Response, Problem>;

impl AppState {
    fn new(parts: ServerConfig, renderer: Renderer, closing: CancellationToken) -> SharedState {
        let ServerConfig { operator, settings, folder, origins, tls, before } = parts;
        let before = before.map(|before| before.app());
        let before = before.as_deref();
        let (store, clock) = (Arc::clone(&operator.store), Arc::clone(&operator.clock));
        let (hub, config) = (operator.active_config().hub.clone(), Arc::new(settings));
        let lasting = before.map(|before| &before.lasting);
        let lasting = reuse_or_new(lasting, || Arc::new(LastingState::new(&store, folder)));
        let (endpoint, sup_ids) = (store.endpoint().clone(), store.sup_ids());
        let site = Arc::new(Site::new(Arc::clone(&config), endpoint, sup_ids));
        let rules = PlaceRules {
            sites: origins.sites.clone(),
            paths: origins.paths.clone(),
            base: site.at(""),
        };
        let directory = Directory::new(Arc::clone(&store), rules, Arc::clone(&site.places));
        let has_as_much = |before: &&Self| before.config.server.memory == config.server.memory;
        let admission = before.filter(has_as_much).map(|before| &before.admission);
        let admission = reuse_or_new(admission, || Arc::new(Admission::new(config.server.memory)));
        let writes_alike =
            |it: &&Self| config.writes_like(&it.config) && directory.rules == it.directory.rules;
        let documents = before.filter(writes_alike).map(|before| &before.documents);
        let documents = reuse_or_new(documents, || {
            Documents::new(config.server.memory, Arc::clone(&admission), lasting.metrics.clone())
        });
        let announces_alike = |it: &&Self| {
            (&it.config.sup, &it.config.public_url) == (&config.sup, &config.public_url)
        };
        let sup = before.filter(announces_alike).map(|before| &before.sup);
        let event_streams = before.map(|before| &before.event_streams);
        Arc::new(Self {
            sup: reuse_or_new(sup, || Arc::new(SupDocuments::new(&config.sup.periods))),
            event_streams: EventStreams::new(config.connections, event_streams),
            bodies: observe::body_budget(config.server.memory, before.map(|before| &before.bodies)),
            directory,
            origins: Origins::new(&origins, site.endpoint.as_str(), before.map(|it| &it.origins)),
            readers: KnownReaders::new(config.readers.clone(), before.map(|it| &it.readers)),
            sessions: Sessions::new(Arc::clone(&clock), &config.admin_token),
            store,
            clock,
            operator,
            hub,
            description: OnceLock::new(),
            site,
            proxies: Proxies::new(config.server.trusted_proxies.clone()),
            unnamed_proxies: UnnamedProxies::default(),
            guesses: Guesses::new(),
            admission,
            documents,
            renderer,
            config,
            tls,
            closing,
            lasting,
        })
    }

    /// Closes this state on a reload: its event streams and long polls move to `next`.
    fn hand_over(&self, next: &SharedState) {
        *locked(&self.latest) = Arc::downgrade(next);
        self.closing.cancel();
    }

    /// The state in force, where another took the place of this one.
    fn successor(&self) -> Option<SharedState> {
        locked(&self.latest).upgrade().filter(|latest| !std::ptr::eq(self, Arc::as_ptr(latest)))
    }

    /// Whether it ends, and no other state takes its place.
    fn is_ending(&self) -> bool {
        self.closing.is_cancelled() && self.successor().is_none()
    }

    /// Comes when the last state ends.
    async fn ended(mut self: Arc<Self>) {
        loop {
            self.closing.cancelled().await;
            match self.successor() {
                Some(next) => self = next,
                None => return,
            }
        }
    }
}

/// The whole site, to be asked without a socket.
pub fn router(parts: ServerConfig) -> Router {
    let app = AppState::new(parts, tidegate_format::render::write, CancellationToken::new());
    site_router(app, Listener::Everybody)
}

/// All that a listener answers, to be asked without a socket.
fn site_router(app: SharedState, listener: Listener) -> Router {
    ListenerSite::new(app, listener).into_router()
}

/// Where administration is.
const API: &str = "/api/v1";
