//! The certificate that the gateway gets and renews by itself: when, and where it and the account are kept.

use super::tls::CertificateFiles;
use super::{AppError, disk};
use crate::acme::{AcmeAccount, AcmeError, Authority};
use crate::clock::Clock;
use crate::config::Config;
use crate::model::Time;
use crate::serve::{TlsIdentity, TlsKeys};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// The folder of the account and the certificate, in the data folder.
const FOLDER: &str = "acme";
/// After how many thirds of its time a certificate is renewed: two.
const RENEW_AFTER: (u32, u32) = (2, 3);
/// How often it is looked whether it is due: the wall clock may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// The pauses after failures, the last one from then on: Let's Encrypt takes five an hour for a name.
const PAUSES: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(20 * 60),
    Duration::from_secs(3600),
    Duration::from_secs(6 * 3600),
];
/// Behind the name of an account that its authority does not know any more.
const UNKNOWN: &str = "unknown";

/// Where the certificate and the account of an authority are. Another authority has other files, so that a
/// certificate for trials is never taken for a real one.
struct AcmePlace {
    folder: PathBuf,
    account: PathBuf,
    certificate: PathBuf,
}

impl AcmePlace {
    fn of(config: &Config) -> Self {
        let folder = config.store.path.join(FOLDER);
        let of = xxh3_64(config.server.acme_directory.as_bytes());
        Self {
            account: folder.join(format!("account-{of:016x}.json")),
            certificate: folder.join(format!("certificate-{of:016x}.pem")),
            folder,
        }
    }
}

/// The certificate that was got before, where there is one that is of use.
pub(super) fn files(config: &Config) -> Result<CertificateFiles, AppError> {
    let file = AcmePlace::of(config).certificate;
    let identity = match file.exists().then(|| TlsIdentity::load(&file, &file)) {
        Some(Ok(identity)) => Some(identity),
        Some(Err(error)) => {
            tracing::warn!(%error, "the certificate is of no use; another one is asked for");
            None
        }
        None => None,
    };
    CertificateFiles::renewed_by_itself(&file, identity)
}

/// Keeps the certificate of a configuration good, where it is to be got by ACME; to be run until it is told to end.
pub(super) struct CertificateKeeper {
    place: AcmePlace,
    authority: Authority,
    /// Its address, for messages.
    directory: String,
    names: Vec<String>,
    contact: Option<String>,
    files: CertificateFiles,
    keys: Arc<TlsKeys>,
}

impl CertificateKeeper {
    /// `None` where the configuration asks for no certificate.
    pub(super) fn new(config: &Config, files: &CertificateFiles) -> Result<Option<Self>, AppError> {
        let server = &config.server;
        if server.acme_names.is_empty() {
            return Ok(None);
        }
        let place = AcmePlace::of(config);
        if !disk::keeps(config) {
            return Err(AppError::Input("there is no folder for a certificate".to_owned()));
        }
        let url = Url::parse(&server.acme_directory);
        let url = url.map_err(|error| AppError::run("acme_directory is no address", error))?;
        let authority = Authority::new(&url, config.polling.ca_file.clone())
            .map_err(|error| AppError::run("no authority can be asked for certificates", error))?;
        Ok(Some(Self {
            place,
            authority,
            directory: server.acme_directory.clone(),
            names: server.acme_names.clone(),
            contact: server.acme_contact.clone(),
            files: files.clone(),
            keys: files.keys(),
        }))
    }

    /// Gets a certificate where there is none, and another one when two thirds of its time have passed.
    pub(super) async fn run(self, clock: Arc<dyn Clock>, cancel: CancellationToken) {
        let mut failures = 0_usize;
        loop {
            let now = clock.now();
            let mut pause = LOOK_EVERY.min(self.due(now).since(now));
            if pause.is_zero() {
                let ordered = tokio::select! {
                    () = cancel.cancelled() => return,
                    ordered = self.renew(now) => ordered,
                };
                pause = match ordered {
                    Ok(expires) => {
                        failures = 0;
                        let expires = expires.map(|expires| expires.to_string());
                        tracing::info!(
                            names = self.names.join(" "),
                            expires,
                            "there is a new certificate"
                        );
                        LOOK_EVERY
                    }
                    Err(error) => {
                        let pause = pause_after(failures, &error);
                        failures = failures.saturating_add(1);
                        self.tell(error.into(), pause);
                        pause
                    }
                };
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                // What kept it from it may have been mended.
                () = self.files.asked() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn tell(&self, error: AppError, pause: Duration) {
        let expires = self.keys.current().and_then(|shown| shown.expires());
        tracing::error!(
            names = self.names.join(" "),
            authority = self.directory,
            error = error.report(),
            until = expires.map(|expires| expires.to_string()),
            again_in_seconds = pause.as_secs(),
            "no certificate was got"
        );
    }

    /// When another certificate is to be asked for.
    fn due(&self, now: Time) -> Time {
        match self.keys.current() {
            Some(shown) if shown.is_for(&self.names) => {
                // The file is written when the certificate is issued; a clock that was set back is not believed.
                let about = std::fs::metadata(self.files.certificate());
                let issued = about.map_or(now, |about| Time::from_unix(about.mtime()).min(now));
                shown.expires().map_or(Time::MAX, |expires| {
                    let (parts, of) = RENEW_AFTER;
                    issued.plus(expires.since(issued) * parts / of)
                })
            }
            _ => now,
        }
    }

    /// Gets a certificate, keeps and shows it; until when it is good.
    async fn renew(&self, now: Time) -> Result<Option<Time>, RenewalError> {
        tracing::info!(
            names = self.names.join(" "),
            authority = self.directory,
            "asks for a certificate"
        );
        let account = self.account().await?;
        let show = |names| self.keys.prove(&names).map_err(|error| error.to_string());
        let ordered = account.order(&self.names, &show).await;
        if ordered.as_ref().is_err_and(AcmeError::is_unknown_account) {
            // The next try makes another one.
            let aside = self.place.account.with_extension(UNKNOWN);
            let moved = tokio::fs::rename(&self.place.account, aside).await;
            moved.map_err(|error| AppError::run("the account cannot be put aside", error))?;
        }
        let pem = ordered?;
        let (folder, file) = (self.place.folder.clone(), self.place.certificate.clone());
        keep(folder, file, pem).await?;
        let files = self.files.clone();
        let read = tokio::task::spawn_blocking(move || files.read_again(now)).await;
        read.map_err(|error| AppError::run("the certificate could not be read", error))??;
        Ok(self.keys.current().and_then(|shown| shown.expires()))
    }

    /// The account with the authority, which is made where there is none.
    async fn account(&self) -> Result<AcmeAccount, RenewalError> {
        let file = &self.place.account;
        let unread = |error: Box<dyn std::error::Error + Send + Sync>| {
            let said = format!(
                "{} cannot be read; move it away, and another account is made",
                file.display()
            );
            AppError::run(said, error)
        };
        match tokio::fs::read_to_string(file).await {
            Ok(kept) => {
                return self.authority.account(&kept).await.map_err(|error| match error {
                    AcmeError::Account(error) => unread(error.into()).into(),
                    error => error.into(),
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unread(error.into()).into()),
        }
        let (account, kept) = self.authority.new_account(self.contact.as_deref()).await?;
        keep(self.place.folder.clone(), self.place.account.clone(), kept).await?;
        Ok(account)
    }
}

/// Why a certificate was not renewed.
enum RenewalError {
    /// It was not got.
    Order(AcmeError),
    /// It could not be kept or read.
    Here(AppError),
}

impl From<AcmeError> for RenewalError {
    fn from(error: AcmeError) -> Self {
        Self::Order(error)
    }
}

impl From<AppError> for RenewalError {
    fn from(error: AppError) -> Self {
        Self::Here(error)
    }
}

impl From<RenewalError> for AppError {
    fn from(error: RenewalError) -> Self {
        match error {
            RenewalError::Order(error) => Self::run("the order failed", error),
            RenewalError::Here(error) => error,
        }
    }
}

/// How long to wait after a failure that so many came before.
fn pause_after(failures: usize, error: &RenewalError) -> Duration {
    let last = PAUSES.len().saturating_sub(1);
    let at = match error {
        RenewalError::Order(error) if error.is_rate_limited() => last,
        _ => failures.min(last),
    };
    PAUSES.get(at).copied().unwrap_or(LOOK_EVERY)
}

/// Writes a secret, which only the owner of the folder reads, whole or not at all.
async fn keep(folder: PathBuf, file: PathBuf, secret: String) -> Result<(), AppError> {
    let shown = file.display().to_string();
    let failed = |error| AppError::run(format!("{shown} cannot be written"), error);
    let written = tokio::task::spawn_blocking(move || write(&folder, &file, &secret)).await;
    written.map_err(std::io::Error::other).and_then(|written| written).map_err(failed)
}

fn write(folder: &Path, file: &Path, secret: &str) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Its owner alone reads and writes it.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(secret.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    /// 2030-01-01T00:00:00Z.
    const NOW: Time = Time::from_unix(1_893_456_000);

    fn keeper(folder: &Path, names: &[&str]) -> CertificateKeeper {
        let mut config = Config::default();
        config.store.path = folder.to_owned();
        config.server.acme_names = names.iter().map(|name| (*name).to_owned()).collect();
        CertificateKeeper::new(&config, &files(&config).unwrap()).unwrap().unwrap()
    }

    /// A certificate that expires on a day of 2030, where it would be kept; written at a moment.
    fn certify(keeper: &CertificateKeeper, (month, day): (u8, u8), written: Time) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2030, month, day);
        let pem = key.serialize_pem() + &params.self_signed(&key).unwrap().pem();
        write(&keeper.place.folder, &keeper.place.certificate, &pem).unwrap();
        let file = std::fs::File::options().write(true).open(&keeper.place.certificate).unwrap();
        let since = u64::try_from(written.unix()).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(since)).unwrap();
    }

    fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn a_certificate_is_due_after_two_thirds_of_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let empty = keeper(folder.path(), &["a.example"]);
        assert_eq!(empty.due(NOW), NOW, "there is none");
        // 90 days from the start of the year.
        certify(&empty, (4, 1), NOW);
        let kept = keeper(folder.path(), &["a.example"]);
        assert_eq!(kept.due(NOW.plus(days(1))), NOW.plus(days(60)));
        // A file from the future, or a copy of it.
        certify(&empty, (4, 1), NOW.plus(days(30)));
        assert_eq!(keeper(folder.path(), &["a.example"]).due(NOW), NOW.plus(days(60)));
        let other = keeper(folder.path(), &["a.example", "b.example"]);
        assert_eq!(other.due(NOW), NOW, "it has not all names");
        certify(&empty, (1, 1), NOW.minus(days(90)));
        let expired = keeper(folder.path(), &["a.example"]);
        assert!(expired.due(NOW.plus(days(5))) < NOW);
    }

    #[test]
    fn what_is_kept_is_its_owner_s_alone_and_of_one_authority() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper(folder.path(), &["a.example"]);
        certify(&keeper, (4, 1), NOW);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&keeper.place.folder), 0o700);
        assert_eq!(mode(&keeper.place.certificate), 0o600);
        let mut config = Config::default();
        config.store.path = folder.path().to_owned();
        config.server.acme_names = vec!["a.example".to_owned()];
        assert!(files(&config).unwrap().keys().current().is_some());
        config.server.acme_directory = "https://acme-staging-v02.example/directory".to_owned();
        assert!(files(&config).unwrap().keys().current().is_none());
    }

    #[test]
    fn a_damaged_certificate_is_asked_for_anew() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper(folder.path(), &["a.example"]);
        write(&keeper.place.folder, &keeper.place.certificate, "half of a").unwrap();
        assert!(self::keeper(folder.path(), &["a.example"]).keys.current().is_none());
    }

    #[test]
    fn pauses_grow_to_the_longest() {
        let late = || RenewalError::Order(AcmeError::Late);
        let pauses: Vec<u64> = (0..7).map(|n| pause_after(n, &late()).as_secs()).collect();
        assert_eq!(pauses, [60, 300, 1200, 3600, 21_600, 21_600, 21_600]);
    }
}
