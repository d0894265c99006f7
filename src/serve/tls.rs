//! TLS of the gateway's own socket: the certificate with its key, and handshakes with limits. An authority that asks
//! for proof of a name (RFC 8737) is shown the certificate that proves it.

use super::client::Client;
use super::connections::{ConnectionSlot, Ending, EndingWatch};
use super::shares::{FairShares, Share};
use arc_swap::{ArcSwap, ArcSwapOption};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{
    ClientHello, ParsedCertificate, ResolvesServerCert, ServerSessionMemoryCache,
};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
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
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", PROOF];
/// What an authority speaks that asks for proof of a name (RFC 8737 section 4): nothing, after the handshake.
const PROOF: &[u8] = b"acme-tls/1";
/// The end of the year 9999: a certificate that is good then is good for ever.
const FOR_EVER: Duration = Duration::from_secs(253_402_300_799);

/// Why a certificate and its key are of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("the file {} cannot be read: {error}", .path.display())]
    Read {
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is too large.
    #[error("the file {} is larger than {FILE_LIMIT} bytes; it is none with certificates or a key", .0.display())]
    TooLarge(PathBuf),
    /// There is no certificate in it, or one that cannot be read.
    #[error("the file {} has no certificates in PEM: {why}", .path.display())]
    Certificate {
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is no key in it, or one that cannot be read.
    #[error("the file {} has no private key in PEM: {why}", .path.display())]
    Key {
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The key is that of another certificate.
    #[error("the key in {} does not belong to the certificate in {}", .key.display(), .certificate.display())]
    Mismatch { key: PathBuf, certificate: PathBuf },
    /// What proves a name cannot be made.
    #[error("the certificate that proves the name {name} cannot be made: {why}")]
    Proof { name: String, why: String },
    /// The library of TLS is without the versions that are spoken.
    #[error("TLS 1.2 and 1.3 cannot be spoken: {0}")]
    Versions(String),
    /// The two cannot be served.
    #[error("the certificate in {} cannot be served: {why}", .certificate.display())]
    Unfit {
        certificate: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// A certificate with its key, ready for handshakes.
#[derive(Debug)]
pub struct TlsIdentity {
    certified: Arc<CertifiedKey>,
    begins: Option<Time>,
    expires: Option<Time>,
}

impl TlsIdentity {
    /// Reads the certificate, with those that lead to a root behind it, and its key. Blocks.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::from_pem((&read_file(certificate)?, certificate), (&read_file(key)?, key))
    }

    /// The same of the contents of files, with their names.
    pub fn from_pem(
        (chain, certificate): (&[u8], &Path),
        (private, key): (&[u8], &Path),
    ) -> Result<Self, TlsError> {
        let chain = read_chain(chain, certificate)?;
        let private = PrivateKeyDer::from_pem_slice(private)
            .map_err(|error| TlsError::Key { path: key.to_owned(), why: error.to_string() })?;
        let provider = ring::default_provider();
        let (begins, expires) = chain.first().map(|leaf| validity(leaf, &provider)).unzip();
        let unfit = |error: rustls::Error| match error {
            rustls::Error::InconsistentKeys(_) => {
                TlsError::Mismatch { key: key.to_owned(), certificate: certificate.to_owned() }
            }
            error => {
                TlsError::Unfit { certificate: certificate.to_owned(), why: error.to_string() }
            }
        };
        let certified = CertifiedKey::from_der(chain, private, &provider).map_err(unfit)?;
        let (begins, expires) = (begins.flatten(), expires.flatten());
        Ok(Self { certified: Arc::new(certified), begins, expires })
    }

    /// Whether it is for hosts of all these names.
    pub fn is_for(&self, names: &[String]) -> bool {
        let leaf = self.certified.end_entity_cert().ok();
        let leaf = leaf.and_then(|leaf| ParsedCertificate::try_from(leaf).ok());
        let is_for = |leaf: &ParsedCertificate<'_>, name: &str| {
            ServerName::try_from(name).is_ok_and(|name| verify_server_name(leaf, &name).is_ok())
        };
        leaf.is_some_and(|leaf| names.iter().all(|name| is_for(&leaf, name)))
    }

    /// From when on the certificate is good; `None` where that is unknown, or it always was.
    pub const fn begins(&self) -> Option<Time> {
        self.begins
    }

    /// Until when the certificate is good; `None` where that is unknown, or it is for ever.
    pub const fn expires(&self) -> Option<Time> {
        self.expires
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unread = |error| TlsError::Read { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(unread)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(TlsError::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

fn read_chain(bytes: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| TlsError::Certificate { path: path.to_owned(), why };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(bytes).take(CHAIN_LIMIT + 1).collect();
    let chain = chain.map_err(|error| wrong(error.to_string()))?;
    match chain.len() {
        0 => Err(wrong("there is none".to_owned())),
        1..=CHAIN_LIMIT => Ok(chain),
        _ => Err(wrong(format!("there are more than {CHAIN_LIMIT}"))),
    }
}

/// From when on and until when a certificate is good: what checks against no root at all, at the beginning and at the
/// end of time, find first.
fn validity(leaf: &CertificateDer<'_>, provider: &CryptoProvider) -> (Option<Time>, Option<Time>) {
    let Ok(parsed) = ParsedCertificate::try_from(leaf) else { return (None, None) };
    let roots = RootCertStore::empty();
    let algorithms = provider.signature_verification_algorithms.all;
    let found = |at: Duration| {
        let at = UnixTime::since_unix_epoch(at);
        let checked =
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], at, algorithms);
        match checked.err()? {
            rustls::Error::InvalidCertificate(
                CertificateError::NotValidYetContext { not_before: bound, .. }
                | CertificateError::ExpiredContext { not_after: bound, .. },
            ) => i64::try_from(bound.as_secs()).ok().map(Time::from_unix),
            _ => None,
        }
    };
    (found(Duration::ZERO), found(FOR_EVER))
}

/// The certificate of one handshake, which proves to an authority that a name is this gateway's (RFC 8737 section 3).
fn proof(name: &str, digest: &[u8; 32]) -> Result<CertifiedKey, TlsError> {
    let unmade = |why: String| TlsError::Proof { name: name.to_owned(), why };
    let made = KeyPair::generate().and_then(|key| {
        let mut wanted = CertificateParams::new(vec![name.to_owned()])?;
        wanted.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        Ok((wanted.self_signed(&key)?.der().clone(), key))
    });
    let (certificate, key) = made.map_err(|error| unmade(error.to_string()))?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let key = ring::default_provider().key_provider.load_private_key(key);
    let key = key.map_err(|error| unmade(error.to_string()))?;
    // Not compared with its key as another one is: what reads certificates there refuses this extension.
    Ok(CertifiedKey::new(vec![certificate], key))
}

/// The certificate of a running gateway, which can be changed for another.
#[derive(Debug)]
pub struct TlsKeys {
    config: ArcSwap<ServerConfig>,
    shown: Arc<ShownCertificates>,
    /// How often in a row another certificate was asked for and not got.
    failures: AtomicU32,
}

/// What is shown to whom.
#[derive(Debug, Default)]
struct ShownCertificates {
    identity: ArcSwapOption<TlsIdentity>,
    proofs: ArcSwap<HashMap<String, Arc<CertifiedKey>>>,
}

impl ResolvesServerCert for ShownCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // An authority offers that alone (RFC 8737 section 3).
        if hello.alpn().is_some_and(|mut offered| offered.any(|protocol| protocol == PROOF)) {
            return self.proofs.load().get(&hello.server_name()?.to_ascii_lowercase()).cloned();
        }
        Some(Arc::clone(&self.identity.load().as_ref()?.certified))
    }
}

impl TlsKeys {
    /// This one at first; without one no handshake is made, but for proofs.
    pub fn new(identity: Option<TlsIdentity>) -> Result<Self, TlsError> {
        let shown = Arc::new(ShownCertificates::default());
        shown.identity.store(identity.map(Arc::new));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| TlsError::Versions(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&shown) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(Self { config: ArcSwap::from_pointee(config), shown, failures: AtomicU32::new(0) })
    }

    /// Handshakes from now on are made with another one. No session that began with the one before is resumed: a
    /// resumed one is shown no certificate.
    pub fn change(&self, identity: TlsIdentity) {
        self.shown.identity.store(Some(Arc::new(identity)));
        let mut config = ServerConfig::clone(&self.config.load());
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        self.config.store(Arc::new(config));
    }

    /// That of the next handshake.
    pub fn current(&self) -> Option<Arc<TlsIdentity>> {
        self.shown.identity.load_full()
    }

    /// Proves these names to an authority, and no others: by each, SHA-256 of its key authorization.
    pub fn prove(&self, names: &HashMap<String, [u8; 32]>) -> Result<(), TlsError> {
        let proved =
            names.iter().map(|(name, digest)| Ok((name.clone(), Arc::new(proof(name, digest)?))));
        self.shown.proofs.store(Arc::new(proved.collect::<Result<_, TlsError>>()?));
        Ok(())
    }

    /// Notes how often in a row another certificate was asked for and not got.
    pub fn note_failures(&self, failures: u32) {
        self.failures.store(failures, Ordering::Relaxed);
    }

    /// What was noted so last.
    pub fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Handshakes, within their limits.
pub(super) struct Handshakes {
    keys: Arc<TlsKeys>,
    shares: FairShares<Client>,
}

impl Handshakes {
    pub(super) fn new(keys: Arc<TlsKeys>) -> Self {
        Self { keys, shares: FairShares::new(HANDSHAKES_EACH) }
    }

    /// Makes the handshake of a connection; `None` where it fails, takes too long, or the connection is to
    /// end. `client`: whose share it takes; a trusted proxy has none.
    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        client: Option<Client>,
        place: &ConnectionSlot,
    ) -> Option<TlsStream<S>> {
        let shaking = async {
            let _share: Option<Share<Client>> = match client {
                Some(client) => Some(self.shares.acquire(&client, 1).await),
                None => None,
            };
            let acceptor = TlsAcceptor::from(self.keys.config.load_full());
            tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await
        };
        let mut shaking = std::pin::pin!(shaking);
        let mut watch = EndingWatch::new(Arc::clone(&place.activity));
        let ended = poll_fn(|context| match watch.poll_ending(context) {
            Ending::No => shaking.as_mut().poll(context).map(Some),
            Ending::Graceful | Ending::Now => Poll::Ready(None),
        });
        match ended.await? {
            // The handshake was all that was asked for.
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(PROOF) => {
                tracing::debug!("a name was proved to an authority");
                None
            }
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
