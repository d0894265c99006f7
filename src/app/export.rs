//! `tidegate export FILE`: the whole state of a gateway in one file, whether it runs or not.

use super::disk::LastingStore;
use super::error::{blocking, joined};
use super::import::{ImportedState, LeftOutCredentials, lasting, open};
use super::{AppError, ConfigSource, ErrorContext, GatewayOptions, RunningGateway};
use http::Method;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use tempfile::TempPath;
use tidegate_core::model::Time;
use tidegate_store::portable::{
    ExportHead, ExportReader, ExportTotals, ExportWriter, PortableError,
};
use tidegate_store::{Store, StoreError};
use tokio::sync::mpsc;

/// How many pieces wait to be written, each as large as an entry or a document may be.
const WAITING: usize = 4;

/// What failed where a state is read and no file comes of it.
const UNWRITTEN: &str = "the state could not be written";

/// Writes the state of the gateway of a configuration. The file is there whole or not at all; there must be none of that
/// name.
pub async fn export(file: &Path, settings: &ConfigSource) -> Result<ImportedState, AppError> {
    let config = settings.load()?.config;
    let path = match lasting(&config)? {
        LastingStore::Disk(request) => Some(request.path),
        LastingStore::Postgres(_) => None,
    };
    if let Some(path) = path.filter(|path| !path.is_dir()) {
        let said = "of a gateway elsewhere, name its address with --gateway";
        return Err(AppError::Input(format!("there is no data folder {}; {said}", path.display())));
    }
    refuse_taken(file)?;
    let store = open(&config).await?;
    let written = write_named(file, async |_, to| write(store.as_ref(), to).await).await;
    let closed = store.close().await;
    let carried = written?;
    closed.context("the store could not be closed")?;
    Ok(carried)
}

fn refuse_taken(file: &Path) -> Result<(), AppError> {
    match file.exists() {
        true => Err(AppError::Input(format!("{} is there already; name another", file.display()))),
        false => Ok(()),
    }
}

/// Has a file written beside its place, at the path that `write` is given too, and gives it its name once it is whole.
async fn write_named(
    file: &Path,
    write: impl AsyncFnOnce(&Path, File) -> Result<ImportedState, AppError>,
) -> Result<ImportedState, AppError> {
    // It stays locked until it has its name.
    let (locked, unnamed) = create_beside(file).context(UNWRITTEN)?;
    let to = locked.try_clone().context(UNWRITTEN)?;
    let carried = write(&unnamed, to).await?;
    // By a system call of the C library, which the rigs of failing disks and losses of power see.
    std::fs::rename(unnamed, file).context("the file could not be given its name")?;
    // That the name is durable as well cannot be had everywhere.
    let _ = sync_folder(file);
    Ok(carried)
}

/// How many exports are written into one folder at a time.
const AT_ONCE: usize = 16;

/// A new file beside another, which is to have that one's name once it is whole. It is locked, and only its owner reads
/// it: it holds secrets of subscriptions. It takes the place of one that an export left which was ended by force.
fn create_beside(file: &Path) -> std::io::Result<(File, TempPath)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    for number in 1..=AT_ONCE {
        let path = folder_of(file).join(format!(".tidegate-export.~{number}"));
        let is_file = path.symlink_metadata().is_ok_and(|about| about.is_file());
        if is_file && File::open(&path).is_ok_and(|left| left.try_lock().is_ok()) {
            std::fs::remove_file(&path)?;
        }
        match options.open(&path) {
            Ok(new) => {
                // Where a file cannot be locked, nobody else finds it so either.
                let _ = new.try_lock();
                return Ok((new, TempPath::try_from_path(path)?));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other(format!("{AT_ONCE} exports are being written there already")))
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Makes a name durable; not every system can.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

async fn write(store: &Store, to: File) -> Result<ImportedState, AppError> {
    let written = write_to(store, BufWriter::new(to)).await?;
    let (totals, left_out) = (written.totals, written.left_out);
    let synced = written.to.into_inner().map_err(std::io::IntoInnerError::into_error);
    let synced = synced.and_then(|to| to.sync_all().and_then(|()| to.metadata()));
    let bytes = synced.context(UNWRITTEN)?.len();
    Ok(ImportedState { feeds: totals.feeds, items: totals.items, bytes, left_out })
}

/// What was written, and where to.
pub(super) struct WrittenState<W> {
    totals: ExportTotals,
    left_out: LeftOutCredentials,
    to: W,
}

/// Writes everything that a store keeps, without the credentials of feeds. The store goes on meanwhile.
pub(super) async fn write_to<W: Write + Send + 'static>(
    store: &Store,
    to: W,
) -> Result<WrittenState<W>, AppError> {
    let head = ExportHead { endpoint: store.endpoint().clone(), sup_ids: store.sup_ids() };
    let (sender, mut pieces) = mpsc::channel(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        let mut writer = ExportWriter::new(to, head)?;
        let mut left_out = LeftOutCredentials::default();
        while let Some(mut piece) = pieces.blocking_recv() {
            left_out.note(&mut piece);
            writer.put(piece)?;
        }
        Ok::<_, PortableError>((writer, left_out))
    });
    let carried = store.export(sender).await;
    let written = writing.await;
    carried.context("the state could not be read")?;
    let (writer, left_out) = joined(UNWRITTEN, written)?;
    // Only what was handed over whole gets its end.
    let (totals, to) = blocking(UNWRITTEN, move || writer.finish()).await?;
    Ok(WrittenState { totals, left_out, to })
}

/// Writes the state of the store in the folder; where a gateway that runs has it, that gateway is asked, and also
/// where one is named.
pub async fn export_of(file: &Path, gateway: &GatewayOptions) -> Result<ImportedState, AppError> {
    if gateway.gateway.is_some() {
        return export_running(file, gateway).await;
    }
    match export(file, &gateway.settings()).await {
        Err(error) if is_in_use(&error) => export_running(file, gateway)
            .await
            .context("the gateway that runs with this store was asked for it"),
        done => done,
    }
}

/// Whether the store is another process's.
pub(super) fn is_in_use(error: &AppError) -> bool {
    let AppError::Run { source, .. } = error else { return false };
    matches!(source.downcast_ref(), Some(StoreError::InUse { .. }))
}

/// Has a gateway that runs hand its state over. The file gets its name once it is proved whole.
async fn export_running(file: &Path, gateway: &GatewayOptions) -> Result<ImportedState, AppError> {
    refuse_taken(file)?;
    let gateway = RunningGateway::find(gateway)?;
    let mut answer = gateway.open(Method::GET, ("/export", &[]), None).await?;
    let take = async |new: &Path, mut to: File| {
        while let Some(chunk) = answer.chunk().await.map_err(|error| gateway.unreached(error))? {
            to.write_all(&chunk).context(UNWRITTEN)?;
        }
        to.sync_all().context(UNWRITTEN)?;
        let new = new.to_owned();
        let proved = blocking("the file is not whole", move || prove(&new)).await?;
        Ok::<_, AppError>(proved.state)
    };
    write_named(file, take).await
}

/// A file with the state of a gateway, which was read from beginning to end and is whole.
pub(super) struct ProvedState {
    pub(super) head: ExportHead,
    /// The last moment that it knows of.
    pub(super) latest: Time,
    pub(super) state: ImportedState,
}

/// Reads a file from beginning to end, and says what is in it. Blocks.
pub(super) fn prove(file: &Path) -> Result<ProvedState, PortableError> {
    let from = File::open(file)?;
    let bytes = from.metadata()?.len();
    let mut reader = ExportReader::open(from)?;
    let (mut left_out, mut latest) = (LeftOutCredentials::default(), Time::from_unix(0));
    while let Some(mut piece) = reader.next_piece()? {
        latest = piece.latest().map_or(latest, |other| latest.max(other));
        left_out.note(&mut piece);
    }
    let (head, ExportTotals { feeds, items }) = (reader.head().clone(), reader.totals());
    Ok(ProvedState { head, latest, state: ImportedState { feeds, items, bytes, left_out } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_export_left_that_was_ended_by_force_goes_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |name: &str| create_beside(&folder.path().join(name)).unwrap();
        let (ended, left) = begin("monday.tg");
        let (_going_on, other) = begin("tuesday.tg");
        let left = left.keep().unwrap();
        std::fs::write(&left, "a part").unwrap();
        drop(ended);
        let (_new, path) = begin("wednesday.tg");
        assert_eq!((&*path, path.metadata().unwrap().len()), (&*left, 0));
        assert!(other.exists() && *other != *path);
    }
}
