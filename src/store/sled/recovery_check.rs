//! Trying a recovery on a copy, where the files are not those that the last close left.
//!
//! sled recovers in place: what follows the first damaged entry it takes for a write that was cut
//! off, and overwrites it. After a crash that is right; where the damage lies in the middle, it
//! would destroy what could still be saved. So a recovery must first prove, on a copy, that it finds
//! everything that was durable.

use super::folder::{Mark, StoreFolder};
use super::{engine, flush_and_sync, inspect_folder, swap};
use crate::store::{Epoch, StoreError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Where the copy stands, in the folder itself.
const COPY: &str = "rehearsal";
/// The part of the files' size that must stay free beside a copy: a tenth.
const COPY_MARGIN: u64 = 10;
/// The bytes that are hashed at a time.
const CHUNK: usize = 64 * 1024;

/// The engine's files in a folder, in a fixed order.
fn engine_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !swap::is_engines(&name) {
            continue;
        }
        if name == "blobs" {
            for blob in fs::read_dir(entry.path())? {
                found.push(blob?.path());
            }
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Has the system forget what it keeps of the engine's files in memory, as far as it can: what a write
/// that failed left there may be nowhere else, and must not be taken for what is stored.
pub(super) fn forget_cached(folder: &Path) {
    let forget = |path: &Path| {
        let file = fs::File::open(path)?;
        let all = None;
        rustix::fs::fadvise(&file, 0, all, rustix::fs::Advice::DontNeed).map_err(io::Error::from)
    };
    let forgotten =
        engine_files(folder).and_then(|paths| paths.iter().try_for_each(|path| forget(path)));
    if let Err(error) = forgotten {
        tracing::warn!(%error, "what the system has in memory of the store's files is not forgotten");
    }
}

/// A fingerprint of the engine's files: their names, lengths and bytes.
pub(super) fn digest(folder: &Path) -> io::Result<u128> {
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; CHUNK];
    for path in engine_files(folder)? {
        let inner = path.strip_prefix(folder).unwrap_or(&path);
        hash.update(inner.as_os_str().as_encoded_bytes());
        let mut file = fs::File::open(&path)?;
        hash.update(&file.metadata()?.len().to_le_bytes());
        loop {
            let read = io::Read::read(&mut file, &mut buffer)?;
            match buffer.get(..read) {
                Some(bytes) if read > 0 => hash.update(bytes),
                _ => break,
            }
        }
    }
    Ok(hash.digest128())
}

/// Makes sure that opening the store will find everything up to `reached`. Where the files are as
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
    if mark.digest.is_some() && mark.digest == Some(digest(path).map_err(failed)?) {
        return Ok(());
    }
    tracing::info!(path = %path.display(), "the store was not closed: its recovery is tried on a copy");
    if !has_room(path) {
        tracing::warn!("the disk has no room for a copy: the store is recovered without one");
        return Ok(());
    }
    let outcome = copy_engine(path, &copy).map_err(failed).and_then(|()| {
        let engine = engine::open(&copy, path, flush_and_sync)?;
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

/// The bytes of the engine's files.
pub(super) fn engine_bytes(folder: &Path) -> io::Result<u64> {
    let size = |path: &PathBuf| fs::metadata(path).map(|about| about.len());
    engine_files(folder)?.iter().map(size).sum()
}

/// Whether a copy of the engine's files would leave something free, so that nobody else meets a full disk
/// meanwhile. Where that cannot be told, it is tried.
fn has_room(folder: &Path) -> bool {
    let size = engine_bytes(folder);
    let (Ok(size), Ok(system)) = (size, rustix::fs::statvfs(folder)) else { return true };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    free > size.saturating_add(size / COPY_MARGIN)
}

fn copy_engine(from: &Path, to: &Path) -> io::Result<()> {
    for path in engine_files(from)? {
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        fs::copy(&path, &target)?;
    }
    Ok(())
}

/// Removes the copy, this one or one that a crash left behind.
fn clear(copy: &Path) -> io::Result<()> {
    match fs::remove_dir_all(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
