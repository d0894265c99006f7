//! Test doubles shared by several crates: a publisher on a local port that sends scripted bytes, and a site behind the
//! gateway.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

use crate::fetch::{
    AllowPrivate, CallRequest, FetchAnswer, FetchError, FetchRequest, FetchSettings, Fetched,
    FetchedDocument, LeadScope, RequestAccess, Validators, services,
};
use crate::origin::{OriginConfig, OriginPlace, OriginSite, PassMode, PassRequest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::{FeedAccess, FeedName, SecretSource, SecretText, Time};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// Computes a publisher's raw response from the head of a request.
type Script = dyn Fn(&str) -> Vec<u8> + Send + Sync;

/// A publisher in this process that records the heads of all requests.
#[derive(Clone)]
pub struct Publisher {
    pub port: u16,
    heads: Arc<Mutex<Vec<String>>>,
    script: Arc<Script>,
}

impl Publisher {
    /// Starts a publisher that answers each request with the raw bytes of `script`.
    pub async fn start(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::listen(script, |publisher, socket| publisher.answer(socket)).await
    }

    /// Starts one that speaks TLS and offers these ALPN protocols; it is to be reached as `localhost`.
    #[cfg(test)]
    pub async fn start_tls(
        protocols: &[&[u8]],
        script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let acceptor = tokio_rustls::TlsAcceptor::from(tls(protocols));
        Self::listen(script, move |publisher, socket| {
            let accepting = acceptor.accept(socket);
            async move {
                if let Ok(stream) = accepting.await {
                    publisher.answer(stream).await;
                }
            }
        })
        .await
    }

    async fn listen<F: Future<Output = ()> + Send + 'static>(
        script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
        serve: impl Fn(Self, TcpStream) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let publisher = Self { port, heads: Arc::default(), script: Arc::new(script) };
        let serving = publisher.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(serving.clone(), socket));
            }
        });
        publisher
    }

    async fn answer(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let head = String::from_utf8(head).unwrap();
        self.heads.lock().unwrap().push(head.clone());
        let answer = (self.script)(&head);
        let _ = stream.write_all(&answer).await;
        // An empty answer means a publisher that never answers.
        if answer.is_empty() || answer.ends_with(b"STALL") {
            std::future::pending::<()>().await;
        }
        let _ = stream.shutdown().await;
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The heads of all requests, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.to_lowercase()).collect()
    }
}

/// Builds a TLS server for these ALPN protocols, with a certificate for `localhost` from the tests' own authority.
pub fn tls(protocols: &[&[u8]]) -> Arc<rustls::ServerConfig> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_slice_iter(include_bytes!("fetch/clients/test-server.pem"));
    let key =
        PrivateKeyDer::from_pem_slice(include_bytes!("fetch/clients/test-server.key")).unwrap();
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().unwrap(), key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

pub fn our_ca() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/fetch/clients/test-ca.pem").into()
}

pub fn all_private() -> FetchSettings {
    FetchSettings { allow_private: AllowPrivate::All, ..FetchSettings::default() }
}

pub fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}");
    let mut out = format!("{head}connection: close\r\n\r\n").into_bytes();
    out.extend(body);
    out
}

pub fn redirect(status: &str, to: &str) -> Vec<u8> {
    response(status, &format!("location: {to}\r\n"), b"")
}

pub fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

pub fn headers(pairs: &[(&str, &str)]) -> http::HeaderMap {
    let header = |(name, value): &(&str, &str)| -> (http::HeaderName, http::HeaderValue) {
        (name.parse().unwrap(), value.parse().unwrap())
    };
    pairs.iter().map(header).collect()
}

pub fn page(text: &str) -> CallRequest {
    CallRequest::page(url(text), LeadScope::default(), Time::from_unix(0))
}

/// A request to pass on, with no headers and no body.
pub fn passed(text: &str) -> PassRequest {
    let (method, headers) = (http::Method::GET, http::HeaderMap::new());
    PassRequest { method, url: url(text), target: None, headers, body: None }
}

/// A successful answer of `url` without any metadata.
pub fn fetched(url: &str, mut answer: FetchAnswer) -> Fetched {
    if let FetchAnswer::Document(document) = &mut answer {
        url.clone_into(&mut document.url);
    }
    let headers = (200, &http::HeaderMap::new());
    let (validators, leads) = (Validators::default(), LeadScope::Allowed);
    let plain = Fetched::from_headers(headers, url.to_owned(), &whole(url), 0);
    Fetched { answer, validators, leads, wire_bytes: 1, ..plain }
}

pub fn whole(url: &str) -> FetchRequest {
    FetchRequest::whole(url.to_owned(), Time::from_unix(0))
}

/// The same with the access of the feed at this address.
pub fn with_access(url: &str, access: &FeedAccess) -> FetchRequest {
    FetchRequest { access: Some(RequestAccess::new(url, access)), ..whole(url) }
}

/// Makes one request with clients of its own.
pub async fn fetch(settings: FetchSettings, request: FetchRequest) -> Result<Fetched, FetchError> {
    tower::ServiceExt::oneshot(services(settings).unwrap().fetch, request).await
}

pub fn document(fetched: &Fetched) -> &FetchedDocument {
    match &fetched.answer {
        FetchAnswer::Document(document) => document,
        other => panic!("no document: {other:?}"),
    }
}

pub fn literal(text: &str) -> SecretSource {
    SecretSource::Literal(SecretText::new(text).unwrap())
}

/// Builds a site to which requests are passed on. `sends_host`: see [`OriginConfig::sends_host`].
pub fn site_of_config(url: &str, place: OriginPlace, public: &str, sends_host: bool) -> OriginSite {
    let config = OriginConfig {
        name: FeedName::new("blog").unwrap(),
        url: Url::parse(url).unwrap(),
        place,
        passes: PassMode::Through,
        sends_host,
        first_wait: Duration::from_secs(5),
        idle: Duration::from_secs(86_400),
        feeds: 10,
        requests: 256,
    };
    OriginSite::new(config, &Url::parse(public).unwrap())
}
