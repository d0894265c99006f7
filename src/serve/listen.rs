//! The sockets: HTTP/1.1 and cleartext HTTP/2 with limits on everything, and an orderly end.

use super::client::HAS_ITS_SHARE;
use super::connections::{ConnectionLimits, ConnectionSlot, Connections, WatchedStream, shares};
use super::site_service::SiteService;
use super::tls::Handshakes;
use super::{
    AppState, BudgetShares, Client, Listener, ListenerSite, Peer, Rate, RateLimiter, ServerConfig,
    SharedState, TlsKeys,
};
use arc_swap::ArcSwap;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_poll::hub::Topics;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes of the head of an HTTP/1.1 request.
const HEAD_BYTES: usize = 32 * 1024;
/// Bytes of the header list of an HTTP/2 request.
const HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 64;
/// How many bytes of a stream of HTTP/2 are handed over before it takes them.
const STREAM_BUFFER: usize = 64 * 1024;
/// How many bytes the system takes of an answer before its client does. Left to itself it takes 4 MB and
/// more, and says that it has room again when a third of that is free: who reads slowly all the while would
/// be seen to take nothing for minutes.
const SEND_BUFFER: usize = 256 * 1024;
/// How often an HTTP/2 connection that is silent is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take to answer that.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait when the system has no file descriptor for a new connection, and how often that is told.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
const PAUSE_TOLD: Rate = Rate { burst: 1, each: Duration::from_secs(60) };

/// Why serving ended other than by shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket is of no use any more.
    #[error("the listening socket failed")]
    Listen(#[source] io::Error),
}

/// A site, as each listener answers it. That for operators may be open though the site in force has none.
struct ListenerSites {
    public: ListenerSite,
    operators: ListenerSite,
}

impl ListenerSites {
    fn new(app: &SharedState) -> Self {
        let site = |listener| ListenerSite::new(Arc::clone(app), listener);
        let public = match app.config.operators_apart() {
            true => Listener::Readers,
            false => Listener::Everybody,
        };
        Self { public: site(public), operators: site(Listener::Operators) }
    }
}

/// The site in force, as connections ask it.
#[derive(Clone)]
pub struct SiteHandle(Arc<ArcSwap<ListenerSites>>);

impl SiteHandle {
    /// A site of these parts that is in force until `closing`, in the place of the one before: connections, event streams and
    /// long polls go on and ask this one.
    pub fn put_in_force(parts: ServerConfig, closing: CancellationToken) -> Self {
        let before = parts.before.clone();
        let app = AppState::new(parts, tidegate_format::render::write, closing);
        let following = Arc::clone(&app);
        tokio::spawn(async move { following.keep_following().await });
        let Some(handle) = before else { return Self::new(&app) };
        let last = handle.0.swap(Arc::new(ListenerSites::new(&app)));
        last.public.app.hand_over(&app);
        handle
    }

    pub(super) fn new(app: &SharedState) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(ListenerSites::new(app))))
    }

    pub(super) fn app(&self) -> SharedState {
        Arc::clone(&self.0.load().public.app)
    }

    /// The site as a listener answers it.
    pub(super) fn site(&self, listener: Listener) -> ListenerSite {
        let sites = self.0.load();
        let site = match listener {
            Listener::Operators => &sites.operators,
            Listener::Everybody | Listener::Readers => &sites.public,
        };
        site.clone()
    }

    /// Its documents, for the hub that delivers them.
    pub fn topics(&self) -> Topics {
        let site = self.clone();
        Arc::new(move |request| {
            let app = site.app();
            Box::pin(async move { app.hub_document(request).await })
        })
    }

    /// Serves who connects to a socket until `shutdown`, whatever site is in force; answers in flight finish.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let limits = (ConnectionLimits::USUAL, shares_of_readers as SharesInForce);
        serve((listener, Listener::Everybody), self, limits, shutdown).await
    }

    /// The same at the socket that administration has of its own (`server.admin_listen`), which speaks no TLS.
    pub async fn serve_operators(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let limits = (ConnectionLimits::USUAL, shares_of_operators as SharesInForce);
        serve((listener, Listener::Operators), self, limits, shutdown).await
    }
}

/// [`SiteHandle::serve`] with its limits spelled out.
pub(super) async fn serve(
    (listener, of): (TcpListener, Listener),
    site: SiteHandle,
    (limits, shares): (ConnectionLimits, SharesInForce),
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let open = Arc::new(Connections::new(shares(&site.app())));
    let (builder, handshakes) = (Arc::new(builder()), Arc::new(Handshakes::new()));
    let connections = TaskTracker::new();
    let watching = watch_limits(Arc::clone(&open), limits, shutdown.clone());
    let (watching, log_limiter) = (tokio::spawn(watching), RateLimiter::default());
    let ended = loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break Ok(()),
            accepted = accept(&listener, &site, (&open, shares)) => accepted,
        };
        match accepted {
            // Closed without a word: a stream of events would take a refusal for the end.
            Ok(None) => tracing::debug!("a connection was closed; there are too many"),
            Ok(Some((stream, peer, slot))) => {
                let app = site.app();
                let (builder, counted) = (Arc::clone(&builder), app.metrics.connection());
                let keys = app.tls.clone().filter(|_| of != Listener::Operators);
                let tls = keys.map(|keys| (keys, Arc::clone(&handshakes)));
                let (site, connection) = (site.clone(), Arc::clone(&slot.connection));
                let service = SiteService { site, listener: of, peer, connection };
                connections.spawn(async move {
                    serve_connection((stream, tls), (&builder, service)).await;
                    drop((counted, slot));
                });
            }
            Err(error) if passes(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                break Err(ServeError::Listen(error));
            }
            Err(error) => {
                if log_limiter.take(&(), PAUSE_TOLD).is_ok() {
                    tracing::warn!(%error, "connections cannot be accepted just now");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    };
    // The system refuses newcomers from here on.
    drop(listener);
    if ended.is_err() {
        shutdown.cancel();
    }
    connections.close();
    connections.wait().await;
    watching.abort();
    ended
}

/// How many connections there may be at a listener, by the state in force.
type SharesInForce = fn(&AppState) -> BudgetShares;

fn shares_of_readers(app: &AppState) -> BudgetShares {
    shares(u64::try_from(app.config.connections).unwrap_or(u64::MAX))
}

/// Operators have as many as one client.
fn shares_of_operators(app: &AppState) -> BudgetShares {
    let BudgetShares { each, .. } = shares_of_readers(app);
    BudgetShares { all: each, each, network: each }
}

/// Ends what comes to a limit, for as long as it runs.
async fn watch_limits(
    open: Arc<Connections>,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
) {
    loop {
        let is_closing = shutdown.is_cancelled();
        tokio::select! {
            () = shutdown.cancelled(), if !is_closing => {}
            () = tokio::time::sleep(limits.sweep_interval()) => {}
        }
        open.sweep(&limits, shutdown.is_cancelled());
    }
}

/// Accepts a connection; `None` if there is no slot for it.
async fn accept(
    listener: &TcpListener,
    site: &SiteHandle,
    (open, shares): (&Connections, SharesInForce),
) -> io::Result<Option<(TcpStream, Peer, ConnectionSlot)>> {
    let (stream, from) = listener.accept().await?;
    let app = site.app();
    let peer = from.ip();
    open.set_shares(shares(&app));
    let is_proxy = app.proxies.are_trusted(peer);
    let slot = open.acquire_slot(Client::at(peer), is_proxy);
    if open.has_its_share(Client::at(peer)) {
        app.unnamed_proxies.tell(Client::at(peer), HAS_ITS_SHARE);
    }
    Ok(slot.map(|slot| (stream, Peer(peer), slot)))
}

/// Whether an error of accept is about that one connection only.
fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// What TLS is spoken with; `None` where it is not.
type Speaking = Option<(Arc<TlsKeys>, Arc<Handshakes>)>;

async fn serve_connection(
    (stream, tls): (TcpStream, Speaking),
    (builder, service): (&Builder<TokioExecutor>, SiteService),
) {
    // Answers are small and whole; waiting to fill packets would only delay them.
    let set = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
    if let Err(error) = set.and_then(|()| stream.set_nodelay(true)) {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let stream = WatchedStream::new(stream, Arc::clone(&service.connection));
    let Some((keys, handshakes)) = tls else { return answer(stream, builder, service).await };
    let Peer(peer) = service.peer;
    let is_proxy = service.site.app().proxies.are_trusted(peer);
    let client = (!is_proxy).then(|| Client::at(peer));
    let shaking = handshakes.accept(&keys, stream, client, &service.connection);
    if let Some(stream) = shaking.await {
        answer(stream, builder, service).await;
    }
}

/// Answers what is asked on a connection, until it ends.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    builder: &Builder<TokioExecutor>,
    service: SiteService,
) {
    let connection = Arc::clone(&service.connection);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        () = connection.was_cut() => {
            tracing::debug!("a connection came to a limit or gave way to another, and was cut");
            return;
        }
        ended = async {
            tokio::select! {
                biased;
                () = connection.ended() => serving.as_mut().graceful_shutdown(),
                ended = serving.as_mut() => return ended,
            }
            serving.as_mut().await
        } => ended,
    };
    if let Err(error) = ended {
        // Clients go away in mid-answer all the time; this is for whoever looks for one of them.
        tracing::debug!(%error, "a connection failed");
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // A limit of ours ([`ConnectionLimits::head`]): hyper's takes a timer for each request.
        .header_read_timeout(None)
        // The fields of a head are 100 at most: another number is held in memory that is moved about.
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_concurrent_streams(STREAMS)
        .max_send_buf_size(STREAM_BUFFER)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}
