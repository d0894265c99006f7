//! TLS of the gateway's own socket: the certificate with its key, and handshakes with limits.

use super::{Client, Connection, FairShares};
use arc_swap::ArcSwap;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ParsedCertificate, ServerSessionMemoryCache};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::Time;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The largest file with a certificate or a key, in bytes.
const FILE_LIMIT: u64 = 1024 * 1024;
/// The most certificates of a chain.
const CHAIN_LIMIT: usize = 16;
/// How long a handshake may take, from the moment that it has its share.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Handshakes at once of one client that is no trusted proxy; further ones of its connections wait.
const HANDSHAKES_EACH: u32 = 16;
/// How many sessions are kept for who resumes one.
const SESSIONS: usize = 256;
/// What is spoken over TLS, the first one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The end of the year 9999: a certificate that is good then is good for ever.
const FOR_EVER: Duration = Duration::from_secs(253_402_300_799);

/// Why a certificate and its key are of no use, in a sentence that names the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// A certificate with its key, ready for handshakes.
#[derive(Debug)]
pub struct TlsIdentity {
    certified: CertifiedKey,
    expires: Option<Time>,
}

impl TlsIdentity {
    /// Reads the certificate, with those that lead to a root behind it, and its key. Blocks.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = read_chain(&read_file(certificate)?, certificate)?;
        let (shown, shown_key) = (certificate.display(), key.display());
        let private = PrivateKeyDer::from_pem_slice(&read_file(key)?).map_err(|error| {
            TlsError(format!("the file {shown_key} has no private key in PEM: {error}"))
        })?;
        let provider = ring::default_provider();
        let expires = chain.first().and_then(|leaf| expiry(leaf, &provider));
        let unfit = |error: rustls::Error| {
            TlsError(match error {
                rustls::Error::InconsistentKeys(_) => {
                    format!("the key in {shown_key} does not belong to the certificate in {shown}")
                }
                error => format!("the certificate in {shown} cannot be served: {error}"),
            })
        };
        let certified = CertifiedKey::from_der(chain, private, &provider).map_err(unfit)?;
        Ok(Self { certified, expires })
    }

    fn resolver(&self) -> Arc<SingleCertAndKey> {
        Arc::new(SingleCertAndKey::from(self.certified.clone()))
    }

    /// Until when the certificate is good; `None` where that is unknown, or it is for ever.
    pub const fn expires(&self) -> Option<Time> {
        self.expires
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let shown = path.display();
    let unread = |error: io::Error| TlsError(format!("the file {shown} cannot be read: {error}"));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(unread)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(TlsError(format!(
            "the file {shown} is larger than {FILE_LIMIT} bytes; it is none with certificates or a key"
        )));
    }
    Ok(bytes)
}

fn read_chain(bytes: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| {
        TlsError(format!("the file {} has no certificates in PEM: {why}", path.display()))
    };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(bytes).take(CHAIN_LIMIT + 1).collect();
    let chain = chain.map_err(|error| wrong(error.to_string()))?;
    match chain.len() {
        0 => Err(wrong("there is none".to_owned())),
        1..=CHAIN_LIMIT => Ok(chain),
        _ => Err(wrong(format!("there are more than {CHAIN_LIMIT}"))),
    }
}

/// The expiry of a certificate. rustls tells it only in the error for an expired one, which it finds before it looks
/// for a root: so verify it without roots, at the end of the year 9999.
fn expiry(leaf: &CertificateDer<'_>, provider: &CryptoProvider) -> Option<Time> {
    let parsed = ParsedCertificate::try_from(leaf).ok()?;
    let (roots, at) = (RootCertStore::empty(), UnixTime::since_unix_epoch(FOR_EVER));
    let algorithms = provider.signature_verification_algorithms.all;
    match verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], at, algorithms).err()? {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after, ..
        }) => i64::try_from(not_after.as_secs()).ok().map(Time::from_unix),
        _ => None,
    }
}

/// The certificate of a running gateway, which can be changed for another.
#[derive(Debug)]
pub struct TlsKeys {
    config: ArcSwap<ServerConfig>,
    shown: ArcSwap<TlsIdentity>,
}

impl TlsKeys {
    pub fn new(identity: TlsIdentity) -> Result<Self, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| TlsError(format!("TLS 1.2 and 1.3 cannot be spoken: {error}")))?
            .with_no_client_auth()
            .with_cert_resolver(identity.resolver());
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(Self { config: ArcSwap::from_pointee(config), shown: ArcSwap::from_pointee(identity) })
    }

    /// Handshakes from now on are made with another one. No session that began with the one before is resumed: a
    /// resumed one is shown no certificate.
    pub fn change(&self, identity: TlsIdentity) {
        let mut config = ServerConfig::clone(&self.config.load());
        config.cert_resolver = identity.resolver();
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        self.config.store(Arc::new(config));
        self.shown.store(Arc::new(identity));
    }

    /// That of the next handshake.
    pub fn current(&self) -> Arc<TlsIdentity> {
        self.shown.load_full()
    }
}

/// Handshakes, within their limits.
pub(super) struct Handshakes(FairShares<Client>);

impl Handshakes {
    pub(super) fn new() -> Self {
        Self(FairShares::new(HANDSHAKES_EACH))
    }

    /// Makes the handshake of a connection; `None` where it fails, takes too long, or the connection is to
    /// end. `client`: whose share it takes; a trusted proxy has none.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        keys: &TlsKeys,
        stream: S,
        client: Option<Client>,
        connection: &Connection,
    ) -> Option<TlsStream<S>> {
        let shaking = async {
            let _share = match client {
                Some(client) => Some(self.0.acquire(&client, 1).await),
                None => None,
            };
            let acceptor = TlsAcceptor::from(keys.config.load_full());
            tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await
        };
        let shaken = tokio::select! {
            biased;
            () = connection.ended() => return None,
            shaken = shaking => shaken.unwrap_or_else(|late| Err(late.into())),
        };
        shaken.inspect_err(|error| tracing::debug!(%error, "a TLS handshake failed")).ok()
    }
}

#[cfg(test)]
mod tests;
