//! The certificate that the gateway shows, out of files that are read at the start and again when they change.

use super::AppError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;
use tidegate_serve::{TlsIdentity, TlsKeys};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// So long before a certificate expires the log begins to warn of it, once a day.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 86_400);
/// How often it is warned of.
const WARN_EVERY: Duration = Duration::from_secs(86_400);

/// By what it is told that a file is another one: its number, size, and the time of its last change.
type FileMark = (u64, u64, i64, i64);

/// The files of a certificate and its key, and what was read of them.
pub(super) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    keys: Arc<TlsKeys>,
    /// The files as they were when they were last read, whatever came of it.
    seen: [Option<FileMark>; 2],
    /// When their expiry was warned of.
    warned: Option<Time>,
}

impl CertificateFiles {
    /// Those that a configuration names, read; `None` where it names none, and no TLS is spoken.
    pub(super) fn find(config: &Config, now: Time) -> Result<Option<Self>, AppError> {
        let Some((certificate, key)) = config.server.tls() else { return Ok(None) };
        let seen = [certificate, key].map(mark);
        let keys = TlsKeys::new(load(certificate, key)?);
        let keys = Arc::new(keys.map_err(|error| AppError::Input(error.to_string()))?);
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        let mut files = Self { certificate, key, keys, seen, warned: None };
        files.warn_of_expiry(now);
        Ok(Some(files))
    }

    /// What handshakes are made with.
    pub(super) fn keys(&self) -> Arc<TlsKeys> {
        Arc::clone(&self.keys)
    }

    /// Reads the files again where they have changed. What is of no use changes nothing. Blocks.
    fn look(&mut self, now: Time) {
        let marks = [&*self.certificate, &*self.key].map(mark);
        if std::mem::replace(&mut self.seen, marks) != marks {
            match load(&self.certificate, &self.key) {
                Ok(identity) => {
                    self.keys.change(identity);
                    self.warned = None;
                    tracing::info!(
                        certificate = %self.certificate.display(),
                        "the certificate was read again, since its files have changed"
                    );
                }
                Err(error) => tracing::error!(
                    error = error.report(),
                    "the certificate has changed and is of no use; the one before goes on being shown"
                ),
            }
        }
        self.warn_of_expiry(now);
    }

    fn warn_of_expiry(&mut self, now: Time) {
        let Some(expires) = self.keys.current().expires() else { return };
        let is_warned = self.warned.is_some_and(|last| now < last.plus(WARN_EVERY));
        if now.plus(WARN_BEFORE) < expires || is_warned {
            return;
        }
        self.warned = Some(now);
        let certificate = self.certificate.display();
        if expires <= now {
            tracing::warn!(%certificate, %expires, "the certificate has expired: clients refuse it; renew it");
        } else {
            tracing::warn!(%certificate, %expires, "the certificate expires soon; renew it");
        }
    }

    /// Looks at the files now and then, until it is cancelled.
    pub(super) async fn watch(mut self, clock: Arc<dyn Clock>, cancel: CancellationToken) {
        while cancel.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
            let now = clock.now();
            let looking = spawn_blocking(move || {
                self.look(now);
                self
            });
            let Ok(looked) = looking.await else { return };
            self = looked;
        }
    }
}

fn load(certificate: &Path, key: &Path) -> Result<TlsIdentity, AppError> {
    TlsIdentity::load(certificate, key).map_err(|error| AppError::Input(error.to_string()))
}

fn mark(path: &Path) -> Option<FileMark> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    /// 2030-01-01T00:00:00Z.
    const NOW: Time = Time::from_unix(1_893_456_000);

    /// A certificate that expires on a day of 2030, and its key, in a folder.
    fn certify(folder: &Path, month: u8, day: u8) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2030, month, day);
        std::fs::write(folder.join("chain"), params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(folder.join("key"), key.serialize_pem()).unwrap();
    }

    fn files(folder: &Path) -> CertificateFiles {
        let mut config = Config::default();
        config.server.tls_cert_file = Some(folder.join("chain"));
        config.server.tls_key_file = Some(folder.join("key"));
        CertificateFiles::find(&config, NOW).unwrap().unwrap()
    }

    fn expires(files: &CertificateFiles) -> String {
        files.keys().current().expires().unwrap().to_string()
    }

    #[test]
    fn files_that_change_are_read_again_and_what_is_of_no_use_changes_nothing() {
        assert!(CertificateFiles::find(&Config::default(), NOW).unwrap().is_none());
        let folder = tempfile::tempdir().unwrap();
        certify(folder.path(), 6, 1);
        let mut files = files(folder.path());
        let before = files.keys().current();
        files.look(NOW);
        assert!(Arc::ptr_eq(&before, &files.keys().current()), "nothing has changed");
        certify(folder.path(), 7, 1);
        files.look(NOW);
        assert_eq!(expires(&files), "2030-07-01T00:00:00Z");
        std::fs::write(folder.path().join("key"), "half of a").unwrap();
        files.look(NOW);
        assert_eq!(expires(&files), "2030-07-01T00:00:00Z");
        std::fs::remove_file(folder.path().join("chain")).unwrap();
        files.look(NOW);
        certify(folder.path(), 8, 1);
        files.look(NOW);
        assert_eq!(expires(&files), "2030-08-01T00:00:00Z");
        // A certificate that ends is warned of once a day.
        let folder = tempfile::tempdir().unwrap();
        certify(folder.path(), 1, 16);
        let mut files = self::files(folder.path());
        assert_eq!(files.warned, None, "more than two weeks are left");
        let day = |day: u64| NOW.plus(Duration::from_secs(day * 86_400));
        files.look(day(2));
        assert_eq!(files.warned, Some(day(2)));
        files.look(day(2).plus(Duration::from_secs(60)));
        assert_eq!(files.warned, Some(day(2)), "not again on the same day");
        for later in [3, 20] {
            files.look(day(later));
            assert_eq!(files.warned, Some(day(later)));
        }
    }
}
