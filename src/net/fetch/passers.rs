//! The clients that pass requests on. They add only a missing `Host`, and keep more connections per host than those for
//! documents. They use hyper directly, because reqwest would double the cost per request.

use super::clients::{ClientMaker, HttpVersions, MAX_HEADER_BYTES, MAX_HEADERS};
use super::guard::Openness;
use super::kept_hosts::KEPT_IDLE;
use super::pass::UploadBody;
use super::resolver::GuardedResolver;
use http::Uri;
use hyper_rustls::{HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{HttpConnector, dns};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

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
        let tls = self.trust().config.clone();
        let resolver = GuardedResolver::new(openness);
        let resolve = tower::service_fn(move |name: dns::Name| {
            resolver.clone().find(name.as_str().to_owned())
        });
        let mut http = HttpConnector::new_with_resolver(resolve);
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.limits().connect));
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
        let connector = ServiceBuilder::new().timeout(self.limits().connect).service(https);
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
