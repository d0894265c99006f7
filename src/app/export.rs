//! `tidegate export FILE`: the whole state of a gateway in one file.

use super::import::{ImportedState, folder, open};
use super::{AppError, ConfigSource};
use crate::store::Store;
use crate::store::portable::{ExportWriter, PortableError};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;

/// How many pieces wait to be written.
const WAITING: usize = 64;

/// What `tidegate export` is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOptions {
    /// The file; there must be none of that name.
    pub file: PathBuf,
    /// Where the configuration comes from.
    pub settings: ConfigSource,
}

/// Writes the state of a gateway. The file is there whole or not at all.
pub async fn export(options: ExportOptions) -> Result<ImportedState, AppError> {
    let config = options.settings.load()?.config;
    let (file, path) = (options.file, folder(&config)?);
    if !path.is_dir() {
        return Err(AppError::Input(format!("there is no data folder {}", path.display())));
    }
    if file.exists() {
        return Err(AppError::Input(format!("{} is there already; name another", file.display())));
    }
    let store = open(&config).await?;
    let new = beside(&file);
    let written = write(store.as_ref(), &new).await;
    let closed = store.close().await;
    let carried = written
        .and_then(|carried| {
            closed.map_err(|error| AppError::run("the store could not be closed", error))?;
            std::fs::rename(&new, &file)
                .map_err(|error| AppError::run("the file could not be given its name", error))?;
            Ok(carried)
        })
        .inspect_err(|_| drop(std::fs::remove_file(&new)))?;
    sync_folder(&file);
    Ok(carried)
}

/// The name of a file while it is written.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    PathBuf::from(name)
}

/// Makes a name durable, where the system can.
pub(super) fn sync_folder(path: &Path) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Ok(folder) = File::open(parent.unwrap_or(Path::new("."))) {
        // The file itself is durable; that its name is as well cannot be had everywhere.
        let _ = folder.sync_all();
    }
}

/// A new file that only its owner reads: it holds secrets of subscriptions.
fn create(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

async fn write(store: &dyn Store, file: &Path) -> Result<ImportedState, AppError> {
    let failed = |error: PortableError| AppError::run("the state could not be written", error);
    let to = create(file).map_err(|error| failed(error.into()))?;
    let (endpoint, sup_ids) = (store.endpoint().clone(), store.sup_ids());
    let (sender, mut pieces) = mpsc::channel(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        let mut writer = ExportWriter::new(BufWriter::new(to), &endpoint, sup_ids)?;
        while let Some(piece) = pieces.blocking_recv() {
            writer.put(piece)?;
        }
        let (totals, to) = writer.finish()?;
        let to = to.into_inner().map_err(|error| PortableError::Io(error.into_error()))?;
        to.sync_all()?;
        Ok::<_, PortableError>((totals, to.metadata()?.len()))
    });
    let carried = store.export(sender).await;
    let written = writing.await;
    carried.map_err(|error| AppError::run("the state could not be read", error))?;
    let written =
        written.map_err(|error| AppError::run("the state could not be written", error))?;
    let (totals, bytes) = written.map_err(failed)?;
    Ok(ImportedState { feeds: totals.feeds, items: totals.items, bytes })
}
