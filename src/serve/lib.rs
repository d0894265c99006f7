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
mod html;
mod hub;
mod index;
mod item_list;
mod items;
mod keeping;
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
pub use keeping::Keeping;
pub use listen::{ServeError, SiteServer};
pub use openapi::api_description;
pub use operator::{
    ExistingFeeds, Gathered, ImportedList, LIST_LIMIT, LeftOutCredentials, ListLine, Operator,
    OperatorError, PutMode, SeenList, WrittenState, decide, read_list, write_state,
};
pub use origins::{
    AdmittedSite, AskedFeeds, FeedThere, FeedTraits, FoundAddress, HeaderRule, NotMade,
    OriginService, OriginSettings, PassError, document_or_page,
};
pub use readers::{ReaderAccess, ReaderKey};
pub use settings::{ReloadableSettings, ServeSettings, SiteControl};
pub use tls::{TlsError, TlsIdentity, TlsKeys};

use address::{DocumentForm, Site, shown};
use admission::{Admission, Work, WorkKind};
use arc_swap::ArcSwap;
use audience::{Audience, AudienceKey, ServedFeed};
use auth::Guesses;
use axum::Router;
use axum::response::Response;
use budget::{Budget, BudgetShares, HeldBudget};
use bytes::Bytes;
use client::{Client, Peer, UnnamedProxies};
use conditional::{LastModified, unkept};
use connections::Connection;
use directory::{Directory, Listing};
use documents::{DocumentKey, DocumentKind, Documents};
use event_streams::EventStreams;
use extract::{
    FeedCall, ItemCall, JsonFields, JsonObject, ReadQuery, ServedItem, TypedQuery, Viewer,
    WholeBody, unknown_item,
};
use forms::SentForm;
use index::{FeedIndex, IndexUpkeep, IndexedFeed};
use log::ChangeLog;
use metrics::Metrics;
use openapi::{BadRequest, Conflict, Gone, Later, NotFound, Stale, Unchanged, Unprocessable};
use origins::{Origins, PlaceRules};
use problem::{Problem, ProblemCause, RETRY_SOON};
use query::{Query, ReadPlan, ViewQuery};
use readers::KnownReaders;
use rendition::{Renderer, Rendition};
use router::ListenerSite;
use session::{Sessions, sign_in_address};
use settings::SiteSettings;
use shared_work::{SingleFlight, WorkRequest, make_on_thread};
use shares::{FairShares, Paces, Rate};
use spool::Spool;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use sup::SupDocuments;
use tidegate_core::clock::Clock;
use tidegate_poll::hub::Hub;
use tidegate_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use views::ViewRequest;

/// What a mutex guards: whoever panicked while it was locked left it whole.
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
}

/// What every handler shares.
struct AppState {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    operator: Arc<Operator>,
    hub: Option<Hub>,
    site: Arc<Site>,
    readers: KnownReaders,
    /// What the configuration says that does not change while the site is served.
    config: Arc<ServeSettings>,
    /// What changes when the configuration is read again.
    settings: ArcSwap<SiteSettings>,
    unnamed_proxies: UnnamedProxies,
    guesses: Guesses,
    sessions: Sessions,
    directory: Arc<Directory>,
    origins: Origins,
    asked: Arc<AskedFeeds>,
    admission: Arc<Admission>,
    /// The description of the API, once somebody has asked for it.
    description: OnceLock<Bytes>,
    documents: Arc<Documents>,
    /// What documents are written with, and where to.
    writing: (Renderer, Arc<Spool>),
    holdings: keeping::CountedHoldings,
    index: IndexUpkeep,
    comparisons: Arc<Semaphore>,
    pushes: Semaphore,
    /// Callbacks at which a push is being read, by token: the hub of one feed cannot fill the gateway.
    pushing: FairShares<String>,
    log: Arc<ChangeLog>,
    sup: SupDocuments,
    event_streams: EventStreams,
    bodies: Arc<Budget>,
    file_bodies: Arc<Budget>,
    metrics: Metrics,
    closing: CancellationToken,
}

type SharedState = Arc<AppState>;

/// What a handler answers.
type Reply = Result<Response, Problem>;

impl AppState {
    fn new(parts: ServerConfig, renderer: Renderer, closing: CancellationToken) -> SharedState {
        let ServerConfig { operator, settings: config, folder, origins } = parts;
        let (store, clock) = (Arc::clone(&operator.store), Arc::clone(&operator.clock));
        let hub = operator.hub.clone();
        let reloadable = SiteSettings::new(&config);
        let spool = Arc::new(Spool::new(folder, Arc::clone(&store)));
        let metrics = Metrics::new();
        let config = Arc::new(config);
        let (endpoint, sup_ids) = (store.endpoint().clone(), store.sup_ids());
        let site = Arc::new(Site::new(Arc::clone(&config), endpoint, sup_ids));
        let rules = PlaceRules {
            sites: origins.sites.clone(),
            paths: origins.paths.clone(),
            base: site.at(""),
        };
        let asked = Arc::clone(&origins.asked);
        let directory = Arc::new(Directory::new(
            Arc::clone(&store),
            (rules, Arc::clone(&site.places)),
            (Arc::clone(&asked), Arc::clone(&clock)),
        ));
        let admission = Arc::new(Admission::new(config.memory));
        let documents = Documents::new(config.memory, Arc::clone(&admission), metrics.clone());
        let log = Arc::new(ChangeLog::new(Arc::clone(&store)));
        Arc::new(Self {
            sup: SupDocuments::new(&config.periods),
            event_streams: EventStreams::new(config.connections),
            bodies: observe::body_budget(config.memory),
            file_bodies: observe::file_budget(),
            directory,
            asked,
            origins: Origins::new(&origins, site.endpoint.as_str()),
            readers: KnownReaders::new(config.readers.clone()),
            sessions: Sessions::new(Arc::clone(&clock), &reloadable.admin_token),
            store,
            clock,
            operator,
            hub,
            description: OnceLock::new(),
            site,
            settings: ArcSwap::from_pointee(reloadable),
            unnamed_proxies: UnnamedProxies::default(),
            guesses: Guesses::new(),
            index: IndexUpkeep::default(),
            admission,
            documents,
            writing: (renderer, spool),
            holdings: keeping::nothing_counted(),
            comparisons: Arc::new(Semaphore::new(items::COMPARISONS_KIB)),
            pushes: Semaphore::new(hub::PUSHES_AT_ONCE),
            pushing: FairShares::new(1),
            log,
            config,
            metrics,
            closing,
        })
    }
}

/// The whole site, to be asked without a socket.
pub fn router(parts: ServerConfig) -> Router {
    let room = AppState::new(parts, tidegate_format::render::write, CancellationToken::new());
    site_router(room, Listener::Everybody)
}

/// All that a listener answers, to be asked without a socket.
fn site_router(room: SharedState, listener: Listener) -> Router {
    ListenerSite::new(room, listener).into_router()
}

/// Where administration is.
const API: &str = "/api/v1";
