//! Passes a request on to an origin and its answer back, both as streams (RFC 9110 section 7.6). It makes one request
//! without following redirects; the caller selects the headers.
//!
//! It uses the same guard as fetches, with clients of its own. They add only a missing `Host`, and keep more connections
//! per host than those for documents. They use hyper directly, because reqwest would double the cost per request.

use super::client::{Core, RequestWay};
use super::clients::{ClientMaker, HttpVersions, KEPT_IDLE, MAX_HEADER_BYTES, MAX_HEADERS};
use super::error::{ANSWERING, FetchError, is_cut_off, unpassed};
use super::guard::Openness;
use crate::origin::{BodyError, PassAnswer, PassRequest, PassedBody};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Either, Empty};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{HttpConnector, dns};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};
use url::{Position, Url};

impl Core {
    pub(super) async fn pass(
        self: Arc<Self>,
        request: PassRequest,
    ) -> Result<PassAnswer, FetchError> {
        let PassRequest { method, url, target, headers, body } = request;
        let limit = self.limits.pass_idle;
        let may_repeat = body.is_none() && matches!(method, Method::GET | Method::HEAD);
        let uri = named_address(&url, target)?;
        let head = PassedHead { method, url, uri, headers };
        let late = FetchError::Timeout { what: ANSWERING, limit };
        let answer = match body {
            None => {
                let sending = pin!(self.send(head, empty_body(), may_repeat));
                timeout(limit, sending).await.unwrap_or(Err(late))?
            }
            Some(body) => {
                let progress = UploadProgress::new();
                let body = NotedBody { body, progress: progress.clone() };
                tokio::select! {
                    sent = self.send(head, UploadBody::Right(body), may_repeat) => match sent {
                        Err(_) if progress.is_broken() => return Err(FetchError::Unsent),
                        sent => sent?,
                    },
                    () = progress.stall(limit, self.limits.pass_upload) => return Err(late),
                }
            }
        };
        let (head, body) = answer.into_parts();
        if head.status.is_informational() {
            // The client did not request an upgrade.
            let why = format!("the origin answered {}", head.status.as_u16());
            return Err(FetchError::CutOff { why });
        }
        let body = TimedBody::new(body, limit).boxed_unsync();
        Ok(PassAnswer { status: head.status, headers: head.headers, body })
    }

    /// Sends a request. `may_repeat`: it may be sent a second time.
    async fn send(
        &self,
        head: PassedHead,
        body: UploadBody,
        may_repeat: bool,
    ) -> Result<Response<AnsweredBody>, FetchError> {
        let versions = HttpVersions::of_request(&head.headers);
        let Some(passers) = self.passers(&head.url, versions)? else {
            // Boxed, so that requests without a proxy do not carry this large future.
            let sent = Box::pin(self.send_by_proxy(&head, body, !may_repeat)).await;
            return match sent {
                Err(FetchError::CutOff { .. }) if may_repeat => {
                    Box::pin(self.send_by_proxy(&head, empty_body(), true)).await
                }
                sent => sent,
            };
        };
        let first = if may_repeat { &passers.keeping } else { &passers.closing };
        let sent = match first.request(head.with_body(body)).await {
            // A kept connection may be closed just when a request is sent, and so may the next; repeat on a new one.
            Err(error) if may_repeat && is_cut_off(&error) => {
                passers.closing.request(head.with_body(empty_body())).await
            }
            sent => sent,
        };
        let answer = sent.map_err(|error| unpassed(&error, &head.url, &self.limits))?;
        Ok(answer.map(Either::Left))
    }

    /// Sends a request through the proxy. `once`: over a new connection.
    async fn send_by_proxy(
        &self,
        head: &PassedHead,
        body: UploadBody,
        once: bool,
    ) -> Result<Response<AnsweredBody>, FetchError> {
        let (method, url, mut headers) = (head.method.clone(), &head.url, head.headers.clone());
        let versions = HttpVersions::of_request(&headers);
        let way = RequestWay { route: None, versions, is_public: false };
        let by = self.client_for(url, 0, !once, way).await?;
        // Otherwise the client would add its own.
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let mut call = by.client.request(method, url.clone()).headers(headers);
        if let UploadBody::Right(body) = body {
            call = call.body(reqwest::Body::wrap_stream(body.into_data_stream()));
        }
        let answer =
            call.send().await.map_err(|error| by.unreached(error, url, 0, &self.limits))?;
        Ok(Response::<reqwest::Body>::from(answer).map(Either::Right))
    }
}

fn empty_body() -> UploadBody {
    UploadBody::Left(Empty::new())
}

/// A request without its body.
struct PassedHead {
    method: Method,
    /// The address that the guard checks.
    url: Url,
    /// The same address, as it is sent.
    uri: Uri,
    headers: HeaderMap,
}

impl PassedHead {
    fn with_body(&self, body: UploadBody) -> Request<UploadBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Returns the address to send: in the client's spelling if that names the same server.
fn named_address(url: &Url, target: Option<Uri>) -> Result<Uri, FetchError> {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let is_same = |target: &Uri| {
        target.scheme_str() == Some(url.scheme())
            && target.authority().is_some_and(|named| named.as_str() == host)
    };
    if let Some(target) = target.filter(is_same) {
        return Ok(target);
    }
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let uri = Uri::builder().scheme(url.scheme()).authority(host).path_and_query(path).build();
    uri.map_err(|error| FetchError::CutOff { why: error.to_string() })
}

/// The progress of a request's body.
#[derive(Clone)]
struct UploadProgress(Arc<Mutex<UploadState>>);

struct UploadState {
    /// When the origin last read a part of it.
    taken: Instant,
    /// Whether the client broke it off.
    is_broken: bool,
}

impl UploadProgress {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(UploadState { taken: Instant::now(), is_broken: false })))
    }

    fn state(&self) -> MutexGuard<'_, UploadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, is_broken: bool) {
        let mut state = self.state();
        state.taken = Instant::now();
        state.is_broken |= is_broken;
    }

    fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Returns when there was no progress for `limit`, or `all` has passed.
    async fn stall(&self, limit: Duration, all: Duration) {
        let end = Instant::now() + all;
        loop {
            let until = (self.state().taken + limit).min(end);
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// The body of a request to the origin, possibly empty.
pub(super) type UploadBody = Either<Empty<Bytes>, NotedBody>;

/// The body of an answer, from the origin or the proxy.
type AnsweredBody = Either<Incoming, reqwest::Body>;

/// A request body that reports its progress.
pub(super) struct NotedBody {
    body: PassedBody,
    progress: UploadProgress,
}

impl Body for NotedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
            self.progress.note(matches!(&frame, Some(Err(_))));
            if !are_trailers(&frame) {
                return Poll::Ready(frame);
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether a frame contains trailers. They are dropped in both directions, because they would bypass the rules for
/// headers (RFC 9110 section 6.5.1).
fn are_trailers<E>(frame: &Option<Result<Frame<Bytes>, E>>) -> bool {
    matches!(frame, Some(Ok(frame)) if frame.is_trailers())
}

/// An answer body that fails after a silence of `limit`.
struct TimedBody {
    body: AnsweredBody,
    limit: Duration,
    /// When waiting ends; `None` until the first wait.
    idle: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl TimedBody {
    fn new(body: AnsweredBody, limit: Duration) -> Self {
        Self { body, limit, idle: None, is_waiting: false }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        while let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.is_waiting = false;
            if !are_trailers(&frame) {
                return Poll::Ready(frame);
            }
        }
        // Count only the time in which the client waits: otherwise the client may have been the slow one.
        let until = Instant::now() + this.limit;
        let idle = this.idle.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if !this.is_waiting {
            this.is_waiting = true;
            idle.as_mut().reset(until);
        }
        ready!(idle.as_mut().poll(context));
        let limit = this.limit.as_secs();
        let why = format!("the origin sent nothing for {limit} s, which is the limit");
        Poll::Ready(Some(Err(why.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The most idle connections per host.
const IDLE: usize = 64;

/// The silence after which a TCP connection is probed, and the interval between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A connection to an origin.
type OriginStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections. Shared, because a client clones it several times per request.
#[derive(Clone)]
pub(super) struct OriginConnector(Arc<BoxCloneSyncService<Uri, OriginStream, BoxError>>);

impl Service<Uri> for OriginConnector {
    type Response = OriginStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<OriginStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connector = BoxCloneSyncService::clone(&self.0);
        Box::pin(connector.oneshot(server))
    }
}

pub(super) type Passer = Client<OriginConnector, UploadBody>;

/// Two clients with one resolver.
#[derive(Clone)]
pub(super) struct Passers {
    /// Keeps connections open for [`KEPT_IDLE`].
    pub(super) keeping: Passer,
    /// Opens a new connection for each request.
    pub(super) closing: Passer,
}

impl ClientMaker {
    /// Creates the clients that pass requests on to hosts admitted by `openness`.
    pub(super) fn passers(&self, openness: Openness, versions: HttpVersions) -> Passers {
        let tls = self.trust.config.clone();
        let resolver = self.resolver(openness).clone();
        let resolve = tower::service_fn(move |name: dns::Name| {
            resolver.clone().find(name.as_str().to_owned())
        });
        let mut http = HttpConnector::new_with_resolver(resolve);
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.limits.connect));
        // Detects an origin that has vanished silently.
        http.set_keepalive(Some(KEEPALIVE));
        http.set_keepalive_interval(Some(KEEPALIVE));
        http.set_keepalive_retries(Some(3));
        #[cfg(target_os = "linux")]
        http.set_tcp_user_timeout(Some(KEEPALIVE * 2));
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        let https = match versions {
            HttpVersions::All => builder.enable_all_versions().wrap_connector(http),
            HttpVersions::Http1 => builder.enable_http1().wrap_connector(http),
        };
        // Covers DNS, connecting and the TLS handshake.
        let connector = ServiceBuilder::new().timeout(self.limits.connect).service(https);
        let connector = OriginConnector(Arc::new(BoxCloneSyncService::new(connector)));
        let client = |idle| {
            Client::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(KEPT_IDLE)
                .pool_max_idle_per_host(idle)
                .http1_max_headers(MAX_HEADERS)
                .http2_max_header_list_size(u32::try_from(MAX_HEADER_BYTES).unwrap_or(u32::MAX))
                .build(connector.clone())
        };
        Passers { keeping: client(IDLE), closing: client(0) }
    }
}

#[cfg(test)]
mod tests;
