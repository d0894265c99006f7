//! The sockets: HTTP/1.1 and cleartext HTTP/2 with limits on everything, and an orderly end.

use super::client::{Client, Peer};
use super::connections::{ConnectionShares, ConnectionSlot, Connections};
use super::stall::Unstalled;
use super::topics::SiteTopics;
use super::unnamed_proxies::Sign;
use super::{AppState, ServerConfig, SharedState, ready, routes};
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use socket2::SockRef;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

/// The limits of one connection; tests take shorter times.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// From the accept until the head of the first request is there.
    pub(super) first_request: Duration,
    /// Within which the head of a later request must come (HTTP/1.1).
    pub(super) head: Duration,
    /// How long a client may take nothing of an answer (HTTP/1.1, and whole HTTP/2 connections).
    pub(super) stall: Duration,
    /// How long a client may take nothing of one body (streams of HTTP/2 as well).
    pub(super) untaken: Duration,
    /// After which a connection is asked to end; a client opens a new one.
    pub(super) lifetime: Duration,
    /// How long a connection that was asked to end may take for the answers in flight.
    pub(super) drain: Duration,
}

impl ConnectionLimits {
    /// The limits of a running gateway.
    pub(super) const USUAL: Self = Self {
        first_request: Duration::from_secs(15),
        head: Duration::from_secs(30),
        stall: Duration::from_secs(30),
        untaken: Duration::from_secs(60),
        lifetime: Duration::from_secs(15 * 60),
        drain: Duration::from_secs(10),
    };
}

/// Header fields of one request.
const HEADERS: usize = 64;
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
/// How many times bodies are looked at within the time in which something of them must be taken.
const LOOKS: u32 = 4;
/// How often an HTTP/2 connection that is silent is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take to answer that.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait when the system has no file descriptor for a new connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Why serving ended other than by shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The socket is of no use any more.
    #[error("the listening socket failed")]
    Listen(#[source] io::Error),
}

/// A site that is about to be served.
pub struct SiteServer {
    room: SharedState,
    shutdown: CancellationToken,
}

impl SiteServer {
    /// A site of these parts, served until `shutdown`.
    pub fn new(parts: ServerConfig, shutdown: CancellationToken) -> Self {
        let room = AppState::new(parts, crate::render::write, shutdown.clone());
        Self { room, shutdown }
    }

    /// Its documents, for who delivers them.
    pub fn topics(&self) -> SiteTopics {
        SiteTopics::new(Arc::clone(&self.room))
    }

    /// Serves until it is told to stop, then lets the answers in flight finish.
    pub async fn run(self, listener: TcpListener) -> Result<(), ServeError> {
        serve(
            listener,
            self.room,
            (ConnectionLimits::USUAL, ConnectionShares::USUAL),
            self.shutdown,
        )
        .await
    }
}

/// [`SiteServer::run`] with its limits spelled out.
pub(super) async fn serve(
    listener: TcpListener,
    room: SharedState,
    (limits, shares): (ConnectionLimits, ConnectionShares),
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let router = routes(Arc::clone(&room));
    let open = Connections::new(shares);
    let connections = TaskTracker::new();
    let (following, ending) = (Arc::clone(&room), shutdown.clone());
    connections.spawn(async move { following.sup.keep(&ending).await });
    let (looking, ending) = (Arc::clone(&room), shutdown.clone());
    connections.spawn(async move {
        loop {
            tokio::select! {
                () = ending.cancelled() => return,
                () = tokio::time::sleep(limits.untaken / LOOKS) => {}
            }
            for bodies in [&looking.bodies, &looking.file_bodies] {
                bodies.cut_untaken(limits.untaken);
            }
        }
    });
    let ended = loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break Ok(()),
            accepted = accept(&listener, &room, &open) => accepted,
        };
        match accepted {
            // Closed without a word: a stream of events would take a refusal for the end.
            Ok(None) => tracing::debug!("a connection was closed; there are too many"),
            Ok(Some((stream, peer, place))) => {
                let (room, router) = (Arc::clone(&room), router.clone());
                let closing = shutdown.clone();
                connections.spawn(async move {
                    let counted = room.metrics.connection();
                    connection(stream, (peer, &place), (room, router), limits, closing).await;
                    drop((counted, place));
                });
            }
            Err(error) if passes(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                break Err(ServeError::Listen(error));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    };
    // The system refuses newcomers from here on.
    drop(listener);
    shutdown.cancel();
    connections.close();
    connections.wait().await;
    ended
}

/// Takes a connection; `None` where there is no place for it.
async fn accept(
    listener: &TcpListener,
    room: &AppState,
    open: &Arc<Connections>,
) -> io::Result<Option<(TcpStream, Peer, ConnectionSlot)>> {
    let (stream, from) = listener.accept().await?;
    let peer = from.ip();
    let place = open.place(Client::at(peer), room.proxies.are_trusted(peer)).await;
    if open.has_its_share(Client::at(peer)) {
        room.unnamed_proxies.tell(Client::at(peer), Sign::Connections);
    }
    Ok(place.map(|place| (stream, Peer(peer), place)))
}

/// Whether an error of accept is about that one connection only.
fn passes(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn connection(
    stream: TcpStream,
    (peer, place): (Peer, &ConnectionSlot),
    (room, router): (SharedState, Router),
    limits: ConnectionLimits,
    closing: CancellationToken,
) {
    // Answers are small and whole; waiting to fill packets would only delay them.
    let set = SockRef::from(&stream).set_send_buffer_size(SEND_BUFFER);
    if let Err(error) = set.and_then(|()| stream.set_nodelay(true)) {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let asked = Arc::new(AtomicBool::new(false));
    let (seen, activity) = (Arc::clone(&asked), Arc::clone(&place.activity));
    let own = place.connection();
    let service =
        hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            seen.store(true, Ordering::Release);
            let busy = activity.begin();
            let answer = match ready::answer(&room, peer, &request) {
                Some(answer) => Ok(answer.map(|body| busy.until_whole_sent(body))),
                None => {
                    request.extensions_mut().insert(peer);
                    request.extensions_mut().insert(own.clone());
                    let (room, router) = (Arc::clone(&room), router.clone());
                    // In a box, so that an answer that is ready has not to be moved with the room of this.
                    Err(Box::pin(async move {
                        let mut answer = router.oneshot(request).await?;
                        room.ready.keep(&mut answer);
                        Ok::<_, Infallible>(answer.map(|body| busy.until_sent(body)))
                    }))
                }
            };
            async move {
                match answer {
                    Ok(answer) => Ok(answer),
                    Err(asking) => asking.await,
                }
            }
        });
    let builder = builder(limits);
    let stream = Unstalled::new(stream, limits.stall).telling(Arc::clone(&place.activity));
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));

    // hyper's own limit on heads begins when it knows the protocol: a client that sends nothing,
    // or the beginning of the HTTP/2 preface, must be cut off here.
    let first = tokio::time::sleep(limits.first_request);
    let lifetime = tokio::time::sleep(limits.lifetime);
    let (mut first, mut lifetime) = (std::pin::pin!(first), std::pin::pin!(lifetime));
    let mut waiting = true;
    loop {
        tokio::select! {
            ended = serving.as_mut() => return log(ended),
            () = first.as_mut(), if waiting => {
                waiting = false;
                if !asked.load(Ordering::Acquire) {
                    tracing::debug!("a connection without a request was cut");
                    return;
                }
            }
            () = place.cut.cancelled() => {
                tracing::debug!("a connection gave way to another");
                return;
            }
            () = closing.cancelled() => break,
            () = lifetime.as_mut() => break,
        }
    }
    serving.as_mut().graceful_shutdown();
    match tokio::time::timeout(limits.drain, serving.as_mut()).await {
        Ok(ended) => log(ended),
        Err(_) => tracing::debug!("a connection that did not end was cut"),
    }
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        // Clients go away in mid-answer all the time; this is for whoever looks for one of them.
        tracing::debug!(%error, "a connection failed");
    }
}

fn builder(limits: ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(HEADERS)
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
