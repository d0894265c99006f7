//! Trying a recovery on a copy, where the files are not those that the last close left.
//!
//! Engines recover in place: what follows the first damaged entry they take for a write that was cut
//! off, and overwrite it. After a crash that is right; where the damage lies in the middle, it
//! would destroy what could still be saved. So a recovery must first prove, on a copy, that it finds
//! everything that was durable.

use super::folder::{Mark, StoreFolder};
use super::{files, inspect_folder};
use crate::{Epoch, StoreError, open_database};
use std::fs;
use std::io;
use std::path::Path;

/// Where the copy stands, in the folder itself.
const COPY: &str = "rehearsal";
/// The part of the files' size that must stay free beside a copy: a tenth.
const COPY_MARGIN: u64 = 10;

/// Makes sure that opening the store will find everything up to `reached`. Where all files are as
/// the last close left them, there is nothing to recover; otherwise the recovery is tried first.
pub(super) fn verify_recovery_on_copy(
    folder: &StoreFolder,
    mark: &Mark,
    reached: Epoch,
) -> Result<(), StoreError> {
    let path = folder.path();
    let copy = path.join(COPY);
    let failed = |source| StoreError::Io { doing: "look at its files before opening them", source };
    clear(&copy).map_err(failed)?;
    let is_closed =
        mark.digest.is_some() && mark.digest == Some(files::digest(folder).map_err(failed)?);
    if is_closed {
        return Ok(());
    }
    tracing::info!(path = %path.display(), "the store was not closed: its recovery is tried on a copy");
    if !has_room(folder) {
        tracing::warn!("the disk has no room for a copy: the store is recovered without one");
        return Ok(());
    }
    let outcome = files::copy(folder, &copy).map_err(failed).and_then(|()| {
        let engine = open_database(&copy)?;
        inspect_folder(engine, Some(mark), reached).map(drop)
    });
    clear(&copy).map_err(failed)?;
    match outcome {
        // For the copy, or for what a recovery writes into it.
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => {
            tracing::warn!("the disk has no room for a copy: the store is recovered without one");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Whether a copy of the engine's files would leave something free, so that nobody else meets a full disk
/// meanwhile. Where that cannot be told, it is tried.
fn has_room(folder: &StoreFolder) -> bool {
    let size = files::engine_bytes(folder);
    let (Ok(size), Ok(system)) = (size, rustix::fs::statvfs(folder.path())) else { return true };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    free > size.saturating_add(size / COPY_MARGIN)
}

/// Removes the copy, this one or one that a crash left behind.
fn clear(copy: &Path) -> io::Result<()> {
    match fs::remove_dir_all(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
