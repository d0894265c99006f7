//! `tidegate export FILE`: the whole state of a gateway in one file, whether it runs or not.

use super::disk::LastingStore;
use super::error::blocking;
use super::import::{ImportedState, lasting, open};
use super::{AppError, ConfigSource, ErrorContext, GatewayOptions, RunningGateway};
use http::Method;
use std::fs::{DirEntry, File, Metadata, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;
use tidegate_serve::{LeftOutCredentials, WrittenState, write_state};
use tidegate_store::portable::{ExportHead, ExportReader, ExportTotals, PortableError};
use tidegate_store::{Store, StoreError};

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
    let new = create_beside(file).context(UNWRITTEN)?;
    let to = new.as_file().try_clone().context(UNWRITTEN)?;
    let carried = write(new.path(), to).await?;
    // By a system call of the C library, which the rigs of failing disks and losses of power see.
    let (_locked, unnamed) = new.into_parts();
    std::fs::rename(unnamed, file).context("the file could not be given its name")?;
    // That the name is durable as well cannot be had everywhere.
    let _ = sync_folder(file);
    Ok(carried)
}

/// How the names of files end that are being written.
const UNFINISHED: &str = ".tidegate-export";

/// How long an unfinished file may go unlocked: its export locks it after it created it.
const UNLOCKED: Duration = Duration::from_secs(60);

/// Stands before what is of chance in such a name, as in hardly any that somebody gives.
const MARK: &str = ".~";

/// The letters and digits of chance in such a name.
const CHANCE: usize = 6;

/// Whether a file is an export's that ended before it was whole: an unlocked `.NAME.~CHANCE.tidegate-export`. An export
/// whose own name ends like that has no leading dot, or nothing of chance.
fn is_left_behind(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let chance = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(UNFINISHED)?.rsplit_once(MARK));
    let is_unfinished = chance.is_some_and(|(_, chance)| {
        chance.len() == CHANCE && chance.bytes().all(|b| b.is_ascii_alphanumeric())
    });
    let is_old = || {
        let changed = entry.metadata().ok().filter(Metadata::is_file)?.modified().ok()?;
        changed.elapsed().ok()
    };
    is_unfinished
        && is_old().is_some_and(|age| age > UNLOCKED)
        && File::open(entry.path()).is_ok_and(|left| left.try_lock().is_ok())
}

/// A new file beside another, which is to have that one's name once it is whole. It is locked, and only its owner reads
/// it: it holds secrets of subscriptions. What earlier exports left behind is removed.
fn create_beside(file: &Path) -> std::io::Result<NamedTempFile> {
    let folder = folder_of(file);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_left_behind(&entry) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let prefix = format!(".{}{MARK}", file.file_name().unwrap_or_default().to_string_lossy());
    let mut new = tempfile::Builder::new();
    let new = new.prefix(&prefix).suffix(UNFINISHED).rand_bytes(CHANCE).tempfile_in(folder)?;
    // Where a file cannot be locked, nobody else finds it so either.
    let _ = new.as_file().try_lock();
    Ok(new)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Makes a name durable. A folder that cannot be opened like a file keeps its names without this.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(folder_of(path)).map_or(Ok(()), |folder| folder.sync_all())
}

/// Writes a file whole or not at all, and for good: beside its place, under a name that nothing there has.
pub(super) fn write_file(path: &Path, mode: u32, parts: &[&[u8]]) -> std::io::Result<()> {
    let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
    let mut new = tempfile::Builder::new();
    let new = new.prefix(&prefix).suffix(".new").permissions(Permissions::from_mode(mode));
    let mut file = new.tempfile_in(folder_of(path))?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_all()?;
    // By a system call of the C library, which the rigs of failing disks and losses of power see.
    std::fs::rename(file.into_temp_path(), path)?;
    sync_folder(path)
}

async fn write(store: &Store, to: File) -> Result<ImportedState, AppError> {
    let written = write_state(store, BufWriter::new(to)).await;
    let WrittenState { totals, left_out, to } =
        written.map_err(|error| AppError::run(UNWRITTEN, error))?;
    let synced = to.into_inner().map_err(std::io::IntoInnerError::into_error);
    let synced = synced.and_then(|to| to.sync_all().and_then(|()| to.metadata()));
    let bytes = synced.context(UNWRITTEN)?.len();
    Ok(ImportedState { feeds: totals.feeds, items: totals.items, bytes, left_out })
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
    pub(super) state: ImportedState,
}

/// Reads a file from beginning to end, and says what is in it. Blocks.
pub(super) fn prove(file: &Path) -> Result<ProvedState, PortableError> {
    let from = File::open(file)?;
    let bytes = from.metadata()?.len();
    let mut reader = ExportReader::open(from)?;
    let mut left_out = LeftOutCredentials::default();
    while let Some(mut piece) = reader.next_piece()? {
        left_out.note(&mut piece);
    }
    let (head, ExportTotals { feeds, items }) = (reader.head().clone(), reader.totals());
    Ok(ProvedState { head, state: ImportedState { feeds, items, bytes, left_out } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_export_left_that_was_ended_by_force_goes_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |name: &str| create_beside(&folder.path().join(name)).unwrap().keep().unwrap();
        let age = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            let changed = file.metadata().unwrap().modified().unwrap();
            file.set_modified(changed - 2 * UNLOCKED).unwrap();
        };
        // Exports that are whole, whatever their names.
        let whole = [
            "monday.tidegate-export",
            ".tidegate-export",
            "8.tidegate-export",
            ".8.tidegate-export",
            ".x.backup.tidegate-export",
        ];
        let whole = whole.map(|name| folder.path().join(name));
        whole.iter().for_each(|path| std::fs::write(path, "whole").unwrap());
        let (of_ended, left) = begin("monday.tg");
        let (of_other, going_on) = begin("tuesday.tg");
        whole.iter().chain([&left, &going_on]).for_each(|path| age(path));
        drop(of_ended);
        let (of_new, new) = begin("wednesday.tg");
        assert!(!left.exists() && going_on.exists() && new.exists());
        assert!(whole.iter().all(|path| path.exists()));
        drop((of_other, of_new));
        // Whoever created it may not have locked it yet.
        begin("thursday.tg");
        assert!(new.exists());
    }
}
