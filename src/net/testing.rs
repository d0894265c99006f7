//! Test doubles shared by several crates: a publisher on a local port that sends scripted bytes, and a site behind the
//! gateway.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::string_slice)]

use crate::origin::{OriginConfig, OriginPlace, OriginSite, PassMode};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

/// Computes a publisher's raw response from the head of a request.
type Script = dyn Fn(&str) -> Vec<u8> + Send + Sync;

/// A publisher in this process that records the heads of all requests.
pub struct Publisher {
    pub port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Publisher {
    /// Starts a publisher that answers each request with the raw bytes of `script`.
    pub async fn start(script: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&heads), Arc::new(script) as Arc<Script>);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match socket.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8(head).unwrap();
                    seen.lock().unwrap().push(head.clone());
                    let answer = script(&head);
                    let _ = socket.write_all(&answer).await;
                    // An empty answer means a publisher that never answers.
                    if answer.is_empty() || answer.ends_with(b"STALL") {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { port, heads }
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

/// Returns the path of that authority's certificate.
pub fn our_ca() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/fetch/clients/test-ca.pem").into()
}

/// Builds a response with a body and its length.
pub fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}");
    let mut out = format!("{head}connection: close\r\n\r\n").into_bytes();
    out.extend(body);
    out
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
