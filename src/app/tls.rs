//! The certificate that the gateway shows: read at the start, and again when its files change.

use super::AppError;
use crate::clock::Clock;
use crate::config::Config;
use crate::model::Time;
use crate::serve::{TlsIdentity, TlsKeys};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
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
#[derive(Clone)]
pub(super) struct CertificateFiles(Arc<CertificateState>);

struct CertificateState {
    certificate: PathBuf,
    key: PathBuf,
    keys: Arc<TlsKeys>,
    /// The files as they were when they were last read, whatever came of it.
    seen: Mutex<[Option<FileMark>; 2]>,
    warned: Mutex<Option<Time>>,
}

/// The files that a configuration names, read; `None` where it names none.
pub(super) fn keys(config: &Config, now: Time) -> Result<Option<CertificateFiles>, AppError> {
    let Some((certificate, key)) = config.server.tls() else { return Ok(None) };
    let seen = [certificate, key].map(mark);
    let identity = load(certificate, key)?;
    let files = CertificateFiles(Arc::new(CertificateState {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        keys: Arc::new(TlsKeys::new(identity)),
        seen: Mutex::new(seen),
        warned: Mutex::default(),
    }));
    files.warn_of_expiry(now);
    Ok(Some(files))
}

fn load(certificate: &Path, key: &Path) -> Result<TlsIdentity, AppError> {
    TlsIdentity::load(certificate, key).map_err(|error| AppError::Input(error.to_string()))
}

fn mark(path: &Path) -> Option<FileMark> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.ino(), about.size(), about.mtime(), about.mtime_nsec()))
}

impl CertificateFiles {
    /// What handshakes are made with.
    pub(super) fn keys(&self) -> Arc<TlsKeys> {
        Arc::clone(&self.0.keys)
    }

    /// Reads the files again; where they are of no use, what was read before stays. Blocks.
    pub(super) fn renew(&self, now: Time) -> Result<(), AppError> {
        let state = &*self.0;
        *state.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            [&*state.certificate, &*state.key].map(mark);
        state.keys.change(load(&state.certificate, &state.key)?);
        *state.warned.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.warn_of_expiry(now);
        Ok(())
    }

    /// Reads the files again where they have changed since they were last read. Blocks.
    fn look(&self, now: Time) {
        let state = &*self.0;
        let before = *state.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if before != [&*state.certificate, &*state.key].map(mark) {
            match self.renew(now) {
                Ok(()) => tracing::info!(
                    certificate = %state.certificate.display(),
                    "the certificate was read again, since its files have changed"
                ),
                Err(error) => tracing::error!(
                    error = error.report(),
                    "the certificate has changed and is of no use; the one before goes on being shown"
                ),
            }
        }
        self.warn_of_expiry(now);
    }

    /// Warns of a certificate that expires soon, or has.
    fn warn_of_expiry(&self, now: Time) {
        let state = &*self.0;
        let Some(expires) = state.keys.current().expires() else { return };
        let mut warned = state.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if now.plus(WARN_BEFORE) < expires || warned.is_some_and(|last| now < last.plus(WARN_EVERY))
        {
            return;
        }
        *warned = Some(now);
        let certificate = state.certificate.display();
        if expires <= now {
            tracing::warn!(%certificate, %expires, "the certificate has expired: clients refuse it; renew it");
        } else {
            tracing::warn!(%certificate, %expires, "the certificate expires soon; renew it");
        }
    }
}

/// Looks at the files until it is told to end.
pub(super) async fn watch(
    files: CertificateFiles,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
) {
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let (files, now) = (files.clone(), clock.now());
        // A file system that hangs keeps one thread waiting, and this task.
        let looking = tokio::task::spawn_blocking(move || files.look(now));
        tokio::select! {
            () = cancel.cancelled() => return,
            _ = looking => {}
        }
    }
}
