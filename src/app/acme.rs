//! The certificate that the gateway gets and renews by itself: when, and where it and the account are kept.

use super::AppError;
use async_trait::async_trait;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_config::Config;
use tidegate_core::clock::Clock;
use tidegate_core::model::Time;
use tidegate_net::acme::{AcmeAccount, AcmeError, Authority, NameDigests};
use tidegate_serve::{TlsIdentity, TlsKeys};
use tidegate_store::make_data_folder;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_64;

/// The folder of the account and the certificate, in the data folder.
const FOLDER: &str = "acme";
/// Behind the name of a file that is being written.
const NEW: &str = "new";
/// Behind the name of an account that its authority does not know any more.
const UNKNOWN: &str = "unknown";
/// Room for what is written, taken before it is asked for: a certificate that cannot be kept is lost, and authorities
/// give out few. In bytes.
const ROOM: usize = 64 * 1024;
/// After how many thirds of its time a certificate is renewed: two.
const RENEW_AFTER: (u32, u32) = (2, 3);
/// How often it is looked whether it is due: the wall clock may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(3600);
/// How long a renewal may take, from the first request until the certificate is kept.
const RENEWAL_TIME: Duration = Duration::from_secs(900);
/// How long a renewal that is under way may take when the gateway ends.
const END_TIME: Duration = Duration::from_secs(10);
/// The pauses after failures, [`LONGEST_PAUSE`] from then on: Let's Encrypt takes five an hour for a name.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(20 * 60),
    Duration::from_secs(3600),
];
/// The longest pause, also after an answer that it was asked too often.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 3600);
/// The least pause, however often the operator asks.
const LEAST_PAUSE: Duration = Duration::from_secs(30);

/// Who gives certificates out.
#[async_trait]
trait CertificateSource: Send + Sync {
    /// Gets a certificate for these names, in PEM with its key. `show` has handshakes prove names.
    async fn order(
        &self,
        names: &[String],
        show: &(dyn Fn(NameDigests) -> Result<(), String> + Send + Sync),
    ) -> Result<String, RenewalError>;
}

/// Keeps the certificate of a configuration good, by ACME.
#[derive(Clone)]
pub(super) struct CertificateKeeper(Arc<KeeperState>);

struct KeeperState {
    source: Box<dyn CertificateSource>,
    /// The authority's address, for messages.
    authority: String,
    names: Vec<String>,
    /// Where the certificate is, with its key.
    file: PathBuf,
    keys: Arc<TlsKeys>,
    /// What was got and could not be written yet.
    unwritten: Mutex<Option<String>>,
    /// The operator wants it tried again.
    asked: Notify,
}

impl CertificateKeeper {
    /// `None` where the configuration asks for no certificate. One that was got before is shown. Blocks.
    pub(super) fn new(config: &Config) -> Result<Option<Self>, AppError> {
        let server = &config.server;
        let Some(url) = server.acme_directory.as_ref().filter(|_| !server.acme_names.is_empty())
        else {
            return Ok(None);
        };
        let authority = Authority::new(url, config.polling.ca_file.clone())
            .map_err(|error| AppError::run("no authority can be asked for certificates", error))?;
        // Another authority has other files, so that a certificate for trials is never taken for a real one.
        let folder = config.store.path.join(FOLDER);
        let of = xxh3_64(url.as_str().as_bytes());
        let source = AcmeOrders {
            authority,
            contact: server.acme_contact.clone(),
            account: folder.join(format!("account-{of:016x}.json")),
        };
        let file = folder.join(format!("certificate-{of:016x}.pem"));
        Self::open(Box::new(source), server.acme_names.clone(), (url.to_string(), file)).map(Some)
    }

    fn open(
        source: Box<dyn CertificateSource>,
        names: Vec<String>,
        (authority, file): (String, PathBuf),
    ) -> Result<Self, AppError> {
        let identity = match file.exists().then(|| TlsIdentity::load(&file, &file)) {
            Some(Ok(identity)) => Some(identity),
            Some(Err(error)) => {
                tracing::warn!(%error, "the certificate is of no use; another one is asked for");
                None
            }
            None => None,
        };
        let keys = TlsKeys::new(identity).map_err(|error| AppError::Input(error.to_string()))?;
        Ok(Self(Arc::new(KeeperState {
            source,
            authority,
            names,
            file,
            keys: Arc::new(keys),
            unwritten: Mutex::default(),
            asked: Notify::new(),
        })))
    }

    /// What handshakes are made with.
    pub(super) fn keys(&self) -> Arc<TlsKeys> {
        Arc::clone(&self.0.keys)
    }

    /// Has it tried at once what failed, and another certificate got where the file of the last one is gone.
    pub(super) fn ask_again(&self) {
        self.0.asked.notify_one();
    }

    /// Gets a certificate where there is none, and another one when two thirds of its time have passed.
    pub(super) async fn run(self, clock: Arc<dyn Clock>, cancel: CancellationToken) {
        let state = &*self.0;
        let mut failures = 0_u32;
        loop {
            let now = clock.now();
            let mut pause = LOOK_EVERY.min(state.due(now).since(now));
            let mut may_hurry = true;
            if pause.is_zero() {
                match self.renew_apart(&clock, &cancel).await {
                    Some(Ok(())) => {
                        failures = 0;
                        let now = clock.now();
                        if state.due(now) <= now {
                            tracing::warn!(
                                "by the clock of this machine the new certificate is to be renewed \
                                 already; set the clock"
                            );
                            pause = LONGEST_PAUSE;
                        }
                    }
                    Some(Err(error)) => {
                        pause = pause_after(failures, &error);
                        may_hurry = !error.is_rate_limited();
                        failures = failures.saturating_add(1);
                        state.tell(error, pause);
                    }
                    None => return,
                }
                state.keys.note_failures(failures);
            }
            // What kept it from it may have been mended.
            let hurried = async {
                tokio::time::sleep(LEAST_PAUSE).await;
                state.asked.notified().await;
            };
            tokio::select! {
                () = cancel.cancelled() => return,
                () = hurried, if may_hurry => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Renews the certificate in a task of its own, so that whatever an authority answers ends only that. `None` where
    /// the gateway ends; then what is under way may end first, for a certificate that is not kept is lost.
    async fn renew_apart(
        &self,
        clock: &Arc<dyn Clock>,
        cancel: &CancellationToken,
    ) -> Option<Result<(), RenewalError>> {
        let (state, clock) = (Arc::clone(&self.0), Arc::clone(clock));
        let renewing = async move { state.renew(clock.as_ref()).await };
        let mut renewing = tokio::spawn(tokio::time::timeout(RENEWAL_TIME, renewing));
        let renewed = tokio::select! {
            renewed = &mut renewing => renewed,
            () = cancel.cancelled() => {
                if tokio::time::timeout(END_TIME, &mut renewing).await.is_err() {
                    renewing.abort();
                }
                return None;
            }
        };
        let broken = |error| RenewalError::Here(AppError::run("the renewal broke off", error));
        Some(match renewed {
            Ok(Ok(renewed)) => renewed,
            Ok(Err(_)) => Err(RenewalError::Late),
            Err(error) => Err(broken(error)),
        })
    }
}

impl KeeperState {
    fn tell(&self, error: RenewalError, pause: Duration) {
        let expires = self.keys.current().and_then(|shown| shown.expires());
        tracing::error!(
            names = self.names.join(" "),
            authority = self.authority,
            error = AppError::from(error).report(),
            until = expires.map(|expires| expires.to_string()),
            again_in_seconds = pause.as_secs(),
            "no certificate was got"
        );
    }

    /// When another certificate is to be asked for.
    fn due(&self, now: Time) -> Time {
        match self.keys.current() {
            Some(shown) if shown.is_for(&self.names) && self.file.exists() => match shown.expires()
            {
                Some(expires) => {
                    let begins = shown.begins().unwrap_or(Time::MIN);
                    let (parts, of) = RENEW_AFTER;
                    begins.plus(expires.since(begins) / of * parts)
                }
                None => Time::MAX,
            },
            _ => now,
        }
    }

    /// Gets a certificate, shows and keeps it.
    async fn renew(&self, clock: &dyn Clock) -> Result<(), RenewalError> {
        let unwritten = self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take();
        let pem = match unwritten {
            Some(pem) => pem,
            None => {
                // Before anything is asked for.
                let file = self.file.clone();
                off_thread(move || take_room(&file)).await?;
                self.order(clock.now()).await?
            }
        };
        let (file, secret) = (self.file.clone(), pem.clone());
        if let Err(error) = off_thread(move || keep(&file, &secret)).await {
            // It is shown already, and was given out for good.
            *self.unwritten.lock().unwrap_or_else(PoisonError::into_inner) = Some(pem);
            return Err(error.into());
        }
        Ok(())
    }

    /// Gets a certificate, and shows it where it is one.
    async fn order(&self, now: Time) -> Result<String, RenewalError> {
        let names = self.names.join(" ");
        tracing::info!(names, authority = self.authority, "asks for a certificate");
        let show = |names| self.keys.prove(&names).map_err(|error| error.to_string());
        let ordered = self.source.order(&self.names, &show).await;
        // Nothing is proved that nobody asks for.
        let _ = show(NameDigests::new());
        let pem = ordered?;
        let part = (pem.as_bytes(), &*self.file);
        let identity = TlsIdentity::from_pem(part, part);
        let identity = identity.map_err(|error| RenewalError::Useless(error.to_string()))?;
        let expires = identity.expires();
        if !identity.is_for(&self.names) {
            return Err(RenewalError::Useless("it is for other names".to_owned()));
        }
        if expires.is_some_and(|expires| expires <= now) {
            return Err(RenewalError::Useless("it has expired".to_owned()));
        }
        self.keys.change(identity);
        let expires = expires.map(|expires| expires.to_string());
        tracing::info!(names, expires, "there is a new certificate");
        Ok(pem)
    }
}

/// Certificates by ACME, from one account.
struct AcmeOrders {
    authority: Authority,
    contact: Option<String>,
    /// Where the account is kept.
    account: PathBuf,
}

#[async_trait]
impl CertificateSource for AcmeOrders {
    async fn order(
        &self,
        names: &[String],
        show: &(dyn Fn(NameDigests) -> Result<(), String> + Send + Sync),
    ) -> Result<String, RenewalError> {
        let ordered = self.account().await?.order(names, show).await;
        if ordered.as_ref().is_err_and(AcmeError::is_unknown_account) {
            // The next try makes another one.
            let aside = self.account.with_extension(UNKNOWN);
            let moved = tokio::fs::rename(&self.account, aside).await;
            moved.map_err(|error| AppError::run("the account cannot be put aside", error))?;
        }
        Ok(ordered?)
    }
}

impl AcmeOrders {
    /// The account with the authority, which is made where there is none.
    async fn account(&self) -> Result<AcmeAccount, RenewalError> {
        let file = &self.account;
        let unread = |error: Box<dyn std::error::Error + Send + Sync>| {
            let file = file.display();
            AppError::run(
                format!("{file} is of no use; move it away, and another account is made"),
                error,
            )
        };
        match tokio::fs::read_to_string(file).await {
            Ok(kept) => {
                return self.authority.account(&kept).await.map_err(|error| match error {
                    AcmeError::Account(error) => unread(error).into(),
                    error => error.into(),
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unread(error.into()).into()),
        }
        let room = file.clone();
        off_thread(move || take_room(&room)).await?;
        let (account, kept) = self.authority.new_account(self.contact.as_deref()).await?;
        let file = file.clone();
        off_thread(move || keep(&file, &kept)).await?;
        Ok(account)
    }
}

/// Why a certificate was not renewed.
#[derive(Debug)]
enum RenewalError {
    /// It was not got.
    Order(AcmeError),
    /// What was got is of no use.
    Useless(String),
    /// It took too long.
    Late,
    /// It could not be kept.
    Here(AppError),
}

impl RenewalError {
    fn is_rate_limited(&self) -> bool {
        matches!(self, Self::Order(error) if error.is_rate_limited())
    }
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
            RenewalError::Useless(why) => Self::run("what was got is of no use", why),
            RenewalError::Late => {
                let seconds = RENEWAL_TIME.as_secs();
                Self::Input(format!("there was no certificate within {seconds} seconds"))
            }
            RenewalError::Here(error) => error,
        }
    }
}

/// How long to wait after a failure that so many came before.
fn pause_after(failures: u32, error: &RenewalError) -> Duration {
    let row = usize::try_from(failures).ok().filter(|_| !error.is_rate_limited());
    row.and_then(|row| PAUSES.get(row)).copied().unwrap_or(LONGEST_PAUSE)
}

/// Does what waits for a disk.
async fn off_thread(
    work: impl FnOnce() -> Result<(), AppError> + Send + 'static,
) -> Result<(), AppError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(AppError::run("writing broke off", error)))
}

/// Opens the file beside another one that only its owner reads and writes, and that takes its place when it is whole.
fn open_beside(file: &Path) -> std::io::Result<std::fs::File> {
    if let Some(folder) = file.parent() {
        make_data_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file.with_extension(NEW))
}

fn unwritten(file: &Path) -> impl FnOnce(std::io::Error) -> AppError {
    let said = format!("{} cannot be written", file.display());
    move |error| AppError::run(said, error)
}

/// Takes the room that a file needs; an error where there is none.
fn take_room(file: &Path) -> Result<(), AppError> {
    let taken = open_beside(file).and_then(|mut new| {
        new.write_all(&[0; ROOM])?;
        new.sync_all()
    });
    taken.map_err(unwritten(file))
}

/// Writes a secret, whole or not at all.
fn keep(file: &Path, secret: &str) -> Result<(), AppError> {
    let kept = (|| {
        let new = file.with_extension(NEW);
        // In the room that was taken, where there is some.
        let mut to = match OpenOptions::new().write(true).open(&new) {
            Ok(to) => to,
            Err(_) => open_beside(file)?,
        };
        to.write_all(secret.as_bytes())?;
        to.set_len(u64::try_from(secret.len()).unwrap_or(u64::MAX))?;
        to.sync_all()?;
        std::fs::rename(&new, file)?;
        match file.parent() {
            Some(folder) => std::fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    kept.map_err(unwritten(file))
}

#[cfg(test)]
mod tests;
