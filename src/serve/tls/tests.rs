use super::*;
use crate::connections::{Ending, SweepClock};
use crate::tests::client;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::path::PathBuf;
use tokio::io::DuplexStream;
use tokio_rustls::TlsConnector;

/// A folder with a certificate for localhost that expires at the start of a year, and its key.
struct Files {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn new(year: i32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let made = params.self_signed(&key).unwrap();
        std::fs::write(folder.path().join("chain"), made.pem()).unwrap();
        std::fs::write(folder.path().join("key"), key.serialize_pem()).unwrap();
        Self { folder, certificate: made.der().clone() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self, certificate: &str, key: &str) -> Result<TlsIdentity, String> {
        let loaded = TlsIdentity::load(&self.path(certificate), &self.path(key));
        loaded.map_err(|error| error.to_string())
    }

    fn keys(&self) -> TlsKeys {
        TlsKeys::new(self.load("chain", "key").unwrap()).unwrap()
    }

    /// Connects as a client that trusts this certificate; what is spoken then.
    async fn connect(
        &self,
        stream: DuplexStream,
    ) -> Option<tokio_rustls::client::TlsStream<DuplexStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let (files, other) = (Files::new(2040), Files::new(2040));
    std::fs::copy(other.path("key"), files.path("other-key")).unwrap();
    std::fs::write(files.path("nothing"), "no PEM at all").unwrap();
    let chain = std::fs::read_to_string(files.path("chain")).unwrap();
    std::fs::write(files.path("long"), chain.repeat(CHAIN_LIMIT + 1)).unwrap();
    std::fs::File::create(files.path("large")).unwrap().set_len(FILE_LIMIT + 1).unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(files.path("broken"), broken).unwrap();
    for (certificate, key, file, said) in [
        ("gone", "key", "gone", "cannot be read: No such file"),
        ("chain", "gone", "gone", "cannot be read: No such file"),
        ("nothing", "key", "nothing", "has no certificates in PEM: there is none"),
        ("key", "key", "key", "has no certificates in PEM: there is none"),
        ("long", "key", "long", "there are more than 16"),
        ("large", "key", "large", "is larger than 1048576 bytes"),
        ("chain", "chain", "chain", "has no private key in PEM"),
        ("chain", "other-key", "other-key", "does not belong to the certificate in"),
        ("broken", "key", "broken", "cannot be served"),
    ] {
        let error = files.load(certificate, key).unwrap_err();
        let file = files.path(file).display().to_string();
        assert!(error.contains(&file) && error.contains(said), "{certificate}, {key}: {error}");
    }
    // The end of a certificate is known whether it has come or not.
    for year in [2021, 2040] {
        let files = Files::new(year);
        let expires = files.load("chain", "key").unwrap().expires().unwrap();
        assert_eq!(expires.to_string(), format!("{year}-01-01T00:00:00Z"));
    }
}

fn connection() -> Arc<Connection> {
    Arc::new(Connection::new(SweepClock::default(), false))
}

#[tokio::test(start_paused = true)]
async fn who_hangs_in_handshakes_keeps_nobody_else_from_them_and_not_for_long() {
    let files = Files::new(2040);
    let keys = Arc::new(files.keys());
    let handshakes = Arc::new(Handshakes::new());
    let mut hanging = Vec::new();
    for _ in 0..HANDSHAKES_EACH {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (keys, handshakes, place) = (Arc::clone(&keys), Arc::clone(&handshakes), connection());
        let task =
            async move { handshakes.accept(&keys, ours, Some(client(1)), &place).await.is_some() };
        hanging.push((tokio::spawn(task), theirs));
    }
    tokio::task::yield_now().await;
    let shake = async |from: Option<Client>| {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let place = connection();
        let began = tokio::time::Instant::now();
        let (accepted, said) =
            tokio::join!(handshakes.accept(&keys, ours, from, &place), files.connect(theirs));
        let spoken = said.as_ref().and_then(|said| said.get_ref().1.alpn_protocol());
        assert!(accepted.is_some() && spoken == Some(&b"h2"[..]), "{spoken:?}");
        began.elapsed()
    };
    assert_eq!(shake(Some(client(2))).await, Duration::ZERO, "another client");
    assert_eq!(shake(None).await, Duration::ZERO, "a proxy");
    // Its own share is taken until they are over.
    assert!(shake(Some(client(1))).await >= HANDSHAKE_TIME);
    for (task, _theirs) in hanging {
        assert!(!task.await.unwrap());
    }
}

#[tokio::test]
async fn a_connection_that_is_to_end_makes_no_handshake() {
    let files = Files::new(2040);
    let (keys, handshakes) = (files.keys(), Handshakes::new());
    let (ours, _theirs) = tokio::io::duplex(1 << 16);
    let place = connection();
    let ending = async {
        tokio::task::yield_now().await;
        place.end(Ending::Graceful);
    };
    let (accepted, ()) =
        tokio::join!(handshakes.accept(&keys, ours, Some(client(1)), &place), ending);
    assert!(accepted.is_none());
}
