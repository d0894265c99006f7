//! Everything that answers: feed views, item pages, the dashboard, administration. It reads the store and renders;
//! it never polls. What administration asks of the polling side goes through [`Operator`]. Addresses and headers are
//! those of CONTRACT, Addresses.

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
mod ready;
mod rendition;
mod rendition_cache;
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
mod webhook;

pub use address::item_page;
pub use auth::{AdminToken, TokenError};
pub use cache::Cache;
pub use connections::connections_within_files;
pub use hub::{PUSH_LIMIT, PUSH_TIME, PUSHES_AT_ONCE, SHORT_PUSH};
pub use keeping::Keeping;
pub use listen::{ServeError, SiteServer};
pub use openapi::api_description;
pub use operator::{
    AddressPreview, ExportStream, FeedPreview, FoundFeed, ImportedList, LIST_LIMIT, ListLine,
    Operator, OperatorError, PreviewedEntry, Put, PutFeed, Redacted,
};
pub use origins::{
    AdmittedSite, AskedFeeds, FeedThere, FeedTraits, FoundAddress, HeaderRule, NotMade,
    OriginService, OriginSettings, PassError, document_or_page,
};
pub use readers::{ReaderAccess, ReaderKey};
pub use settings::{ReloadableSettings, ServeSettings, SiteControl};
pub use tls::{TlsError, TlsIdentity, TlsKeys};

use address::Site;
use admission::Admission;
use arc_swap::ArcSwap;
use auth::Guesses;
use axum::Router;
use budget::Budget;
use bytes::Bytes;
use client::UnnamedProxies;
use conflicts::Contested;
use directory::Directory;
use documents::Documents;
use event_streams::EventStreams;
use log::ChangeLog;
use metrics::Metrics;
use origins::{Origins, PlaceRules};
use readers::KnownReaders;
use ready::ReadyAnswers;
use rendition::Renderer;
use rendition_cache::RenditionCache;
use router::ListenerSite;
use session::Sessions;
use settings::SiteSettings;
use shares::FairShares;
use spool::Spool;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use sup::SupDocuments;
use tidegate_core::clock::Clock;
use tidegate_poll::hub::Hub;
use tidegate_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What a mutex guards: whoever panicked while it was locked left it whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest body of a request, in bytes.
pub const REQUEST_BODY_LIMIT: usize = 64 * 1024;

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
    /// Where everything is read from.
    pub store: Arc<Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Acts for administration.
    pub operator: Arc<dyn Operator>,
    /// Keeps the subscriptions of the WebSub hub, where there is one.
    pub hub: Option<Hub>,
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
    operator: Arc<dyn Operator>,
    hub: Option<Hub>,
    site: Arc<Site>,
    readers: KnownReaders,
    challenge: bool,
    pages_are_closed: bool,
    is_indexed: bool,
    operators_apart: bool,
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
    shelf: Arc<RenditionCache>,
    contested: Contested,
    holdings: keeping::CountedHoldings,
    overview: dashboard::Overview,
    comparisons: Arc<Semaphore>,
    pushes: Semaphore,
    /// Callbacks at which a push is being read, by token: the hub of one feed cannot fill the gateway.
    pushing: FairShares<String>,
    log: Arc<ChangeLog>,
    sup: SupDocuments,
    lists: opml::Lists,
    doors: EventStreams,
    bodies: Arc<Budget>,
    /// Bodies on their way out of files.
    file_bodies: Arc<Budget>,
    metrics: Metrics,
    ready: ReadyAnswers,
    closing: CancellationToken,
}

type SharedState = Arc<AppState>;

impl AppState {
    fn new(parts: ServerConfig, renderer: Renderer, closing: CancellationToken) -> SharedState {
        let ServerConfig { store, clock, operator, hub, settings, folder, origins } = parts;
        let reloadable = SiteSettings::new(&settings);
        let spool = Arc::new(Spool::new(folder, Arc::clone(&store)));
        let metrics = Metrics::new();
        let site = Arc::new(Site {
            sup_ids: store.sup_ids(),
            history: settings.history,
            sup: !settings.periods.is_empty(),
            hub: settings.hub,
            cloud: settings.cloud,
            absolute: settings.absolute_urls,
            ..Site::new(&settings.public_url, store.endpoint().clone(), settings.dialect)
        });
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
        let admission = Arc::new(Admission::new(settings.memory));
        let documents = Documents::new(settings.memory, Arc::clone(&admission), metrics.clone());
        let shelf = Arc::new(RenditionCache {
            store: Arc::clone(&store),
            window: settings.window,
            views_with_deltas: settings.deltas,
            writing: (renderer, spool),
            admission: Arc::clone(&admission),
            documents: Arc::clone(&documents),
            last: Cache::of(rendition_cache::LAST_KEYS),
            forgotten: AtomicU64::new(0),
        });
        let lists = opml::Lists::new(Arc::clone(&admission));
        let contested = Contested::new(Arc::clone(&store));
        let log = Arc::new(ChangeLog::new(Arc::clone(&store)));
        let sup = SupDocuments::new(
            settings.periods,
            Arc::clone(&log),
            Arc::clone(&clock),
            (Arc::clone(&site), Arc::clone(&directory)),
        );
        Arc::new(Self {
            directory,
            asked,
            origins: Origins::new(&origins, site.endpoint.as_str()),
            readers: KnownReaders::new(settings.readers),
            challenge: settings.challenge,
            pages_are_closed: settings.pages_are_closed,
            is_indexed: settings.is_indexed,
            operators_apart: settings.operators_apart,
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
            overview: dashboard::Overview::new(Arc::clone(&admission)),
            admission,
            documents,
            shelf,
            contested,
            holdings: keeping::nothing_counted(),
            comparisons: Arc::new(Semaphore::new(items::COMPARISONS_KIB)),
            pushes: Semaphore::new(hub::PUSHES_AT_ONCE),
            pushing: FairShares::new(1),
            log,
            sup,
            lists,
            doors: EventStreams::new(settings.connections),
            bodies: observe::body_budget(settings.memory),
            file_bodies: observe::file_budget(),
            metrics,
            ready: ReadyAnswers::new(),
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
