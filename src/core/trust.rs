//! Which authorities are believed that vouch for servers: those of the system, and those in a file that the operator
//! names.

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// The largest file with certificates, in bytes.
pub const CA_FILE_LIMIT: u64 = 1024 * 1024;

/// What servers are believed by.
#[derive(Debug, Clone)]
pub struct ServerTrust {
    /// How a client asks a server who it is. It offers no protocol yet.
    pub config: ClientConfig,
    /// Whether there is any authority. Without one no server is believed, and all else goes on.
    pub has_authorities: bool,
}

impl ServerTrust {
    /// The authorities of the system, and these.
    pub fn with(own: &[CertificateDer<'static>]) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let mut roots = RootCertStore::empty();
        for certificate in own {
            roots.add(certificate.clone())?;
        }
        let verifier = Verifier::new_with_extra_roots(own.iter().cloned(), provider);
        let has_authorities = verifier.is_ok() || !own.is_empty();
        let builder = match verifier {
            Ok(verifier) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            // The system knows none.
            Err(_) => builder.with_root_certificates(roots),
        };
        Ok(Self { config: builder.with_no_client_auth(), has_authorities })
    }
}

/// The certificates in a file; else what is wrong.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unread =
        |error: std::io::Error| format!("the file {} cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unread)?;
    file.take(CA_FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(unread)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > CA_FILE_LIMIT {
        return Err(format!(
            "the file {} is larger than {CA_FILE_LIMIT} bytes, the limit",
            path.display()
        ));
    }
    match CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>() {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("the file {} has no certificate in PEM", path.display())),
    }
}

/// Checks that a file has certificates; else what is wrong.
pub fn check_certificates(path: &Path) -> Result<(), String> {
    read_certificates(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUR_CA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../net/fetch/clients/test-ca.pem");

    #[test]
    fn a_file_without_certificates_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        for text in ["", "hello"] {
            std::fs::write(&path, text).unwrap();
            let said = check_certificates(&path).unwrap_err();
            assert!(said.contains("has no certificate in PEM"), "{said}");
        }
        let large = vec![b'x'; usize::try_from(CA_FILE_LIMIT).unwrap() + 1];
        std::fs::write(&path, large).unwrap();
        assert!(check_certificates(&path).unwrap_err().contains("is larger than 1048576 bytes"));
        assert!(check_certificates(Path::new("/nowhere")).unwrap_err().contains("cannot be read"));
        assert_eq!(check_certificates(Path::new(OUR_CA)), Ok(()));
    }

    /// A client is made wherever the program runs, also where the system has no authorities.
    #[test]
    fn a_certificate_that_is_none_is_refused_and_none_at_all_is_not() {
        assert!(ServerTrust::with(&[]).unwrap().config.alpn_protocols.is_empty());
        let own = read_certificates(Path::new(OUR_CA)).unwrap();
        assert!(ServerTrust::with(&own).unwrap().has_authorities);
        assert!(ServerTrust::with(&[CertificateDer::from(vec![1, 2, 3])]).is_err());
    }
}
