//! Which store a configuration asks for: one on disk, or one in PostgreSQL; and how much space is left for it.

use super::{AppError, ErrorContext, token};
use std::fs::DirEntry;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{Config, StoreKind};
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};
use tidegate_net::fetch;
use tidegate_store::{
    DiskRequest, FreeSpace, PostgresRequest, Store, StoreError, make_data_folder,
};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Whether anything outlives the process.
pub(super) fn keeps(config: &Config) -> bool {
    config.store.kind != StoreKind::Memory
}

/// What is asked of the store on disk; `None` where there is none.
pub(super) fn on_disk(config: &Config) -> Option<DiskRequest> {
    let endpoint = config.publish.endpoint.clone();
    let is_on_disk = config.store.kind == StoreKind::Sled;
    is_on_disk.then(|| DiskRequest::new(&config.store.path, endpoint))
}

/// A store that outlives the process, and that is to be opened.
#[derive(Debug, Clone)]
pub(super) enum LastingStore {
    Disk(DiskRequest),
    Postgres(PostgresRequest),
}

/// The store of a configuration; `None` where everything is kept in memory.
pub(super) fn request(config: &Config) -> Result<Option<LastingStore>, AppError> {
    if let Some(request) = on_disk(config) {
        return Ok(Some(LastingStore::Disk(request)));
    }
    let Some(url) = config.store.url.as_ref().filter(|_| keeps(config)) else { return Ok(None) };
    let url =
        fetch::find_secret(url).map_err(|why| AppError::Input(format!("store.url: {why}")))?;
    // It has only what is this machine's.
    make_data_folder(&config.store.path)
        .context(format!("{} cannot be made", config.store.path.display()))?;
    let endpoint = config.publish.endpoint.clone();
    Ok(Some(LastingStore::Postgres(PostgresRequest::new(&url, endpoint))))
}

/// An error where root would write a store anew into the folder of another user, whose gateway could not read it. Where
/// a file of the store is root's, root is who runs the gateway.
pub(super) fn check_owner(folder: &Path) -> Result<(), AppError> {
    // A folder that is root's may be `lost+found`, and a token may be put there by root for a gateway of another user.
    let is_roots = |file: DirEntry| {
        let is_file = file.metadata().is_ok_and(|about| about.is_file() && about.uid() == 0);
        is_file && file.file_name() != token::FILE
    };
    let user = std::fs::metadata(folder).map(|about| about.uid()).unwrap_or_default();
    if user == 0 || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    if files.any(is_roots) {
        return Ok(());
    }
    Err(AppError::Input(format!(
        "{} belongs to the user with the number {user}, who could not read what root writes; run the command as that user, as with `runuser -u tidegate -- tidegate …`",
        folder.display()
    )))
}

/// An error where the data folder is not there, or the gateway that uses it could not read what is written here.
pub(super) fn check_folder(path: &Path) -> Result<(), AppError> {
    if !path.is_dir() {
        return Err(AppError::Input(format!("there is no data folder {}", path.display())));
    }
    check_owner(path)
}

/// An error where another gateway uses the database of a store.
pub(super) fn check_alone(store: &Store) -> Result<(), AppError> {
    let live = store.gateways().map(|it| it.live()).unwrap_or_default();
    live.iter().find(|it| !it.is_this).map_or(Ok(()), |other| {
        Err(AppError::Input(format!(
            "the gateway {} runs with this database, or was killed less than 10 seconds ago; stop all gateways first",
            other.name
        )))
    })
}

/// What a store that cannot be opened means.
pub(super) fn unopened(error: StoreError) -> AppError {
    let doing = match &error {
        StoreError::InUse { .. } => "a gateway is running with this store; stop it first",
        _ => "the store could not be opened",
    };
    AppError::run(doing, error)
}

/// Opens the store of a configuration, which takes nothing new in while space is low.
pub(super) async fn open(
    config: &Config,
    clock: Arc<dyn Clock>,
    space: Option<Arc<FreeSpace>>,
) -> Result<Arc<Store>, AppError> {
    let (request, limits) = (request(config)?, config.store.space);
    let endpoint = config.publish.endpoint.clone();
    let open = move || {
        let store = match request {
            Some(request) => request.open(clock)?,
            None => Store::in_memory(endpoint, clock)?,
        };
        let Some(space) = space else { return Ok(store) };
        // Measures first.
        space.set_limits(limits);
        Ok(store.with_space(space))
    };
    let opened = spawn_blocking(open).await.context("the store could not be opened")?;
    Ok(Arc::new(opened.map_err(unopened)?))
}

impl LastingStore {
    /// For a new store that takes the place of another.
    pub(super) fn in_place_of(mut self, endpoint: EndpointId, sup_ids: SupIdBasis) -> Self {
        let (own, basis) = match &mut self {
            Self::Disk(request) => (&mut request.endpoint, &mut request.sup_ids),
            Self::Postgres(request) => (&mut request.endpoint, &mut request.sup_ids),
        };
        (*own, *basis) = (Some(endpoint), Some(sup_ids));
        self
    }

    /// Opens it. Blocks.
    pub(super) fn open(self, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        match self {
            Self::Disk(request) => Store::open_on_disk(request, clock),
            Self::Postgres(request) => Store::open_on_postgres(request, clock),
        }
    }
}

/// How often the free space is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(3);
/// The files of the data folder are counted at the first of so many measurements: once a minute.
const COUNT_EVERY: usize = 20;
/// The same where there is a limit on what they take: every twelve seconds.
const COUNT_OFTEN: usize = 4;

/// The free space that a gateway watches; `given`: one from outside. A store in memory takes none.
pub(super) fn watched(config: &Config, given: Option<Arc<FreeSpace>>) -> Option<Arc<FreeSpace>> {
    let is_on_disk = on_disk(config).is_some();
    let of_folder = || FreeSpace::of_folder(config.store.path.clone(), config.store.space.min_free);
    given.or_else(|| is_on_disk.then(|| Arc::new(of_folder())))
}

/// Measures until it is told to end.
pub(super) async fn watch(space: Arc<FreeSpace>, cancel: CancellationToken) {
    for turn in (0..COUNT_EVERY).cycle() {
        if cancel.run_until_cancelled(sleep(MEASURE_EVERY)).await.is_none() {
            return;
        }
        let measured = Arc::clone(&space);
        let measure = move || {
            measured.measure();
            if turn == 0 || (turn % COUNT_OFTEN == 0 && measured.has_size_limit()) {
                measured.measure_used();
            }
        };
        let _ = spawn_blocking(measure).await;
    }
}
