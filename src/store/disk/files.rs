//! The files of an engine in a data folder.

use super::folder::StoreFolder;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The unit of block counts, in bytes.
const BLOCK: u64 = 512;
/// How deep an engine's folders are.
const DEPTH_LIMIT: usize = 8;

/// The engine's files in a folder.
fn engine_files(folder: &StoreFolder) -> io::Result<Vec<PathBuf>> {
    let (mut found, database) = (Vec::new(), folder.database());
    // A new store has none yet.
    if database.exists() {
        add_files(&database, 0, &mut found)?;
    }
    Ok(found)
}

fn add_files(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        found.push(path.to_owned());
    } else if depth < DEPTH_LIMIT {
        for entry in fs::read_dir(path)? {
            add_files(&entry?.path(), depth + 1, found)?;
        }
    }
    Ok(())
}

/// Drops the pages of the engine's files from the page cache where possible: pages of a failed write exist nowhere
/// else, and must not be read as stored data.
pub(super) fn forget_cached(folder: &StoreFolder) {
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

/// Reads all files of the engine; an error where a part cannot be read. sled would take such a part for the end of
/// its log, and overwrite it.
pub(super) fn read_through(folder: &StoreFolder) -> io::Result<()> {
    for path in engine_files(folder)? {
        io::copy(&mut fs::File::open(path)?, &mut io::sink())?;
    }
    Ok(())
}

/// The bytes that files in a folder take; holes in them take none.
pub(crate) fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut files = Vec::new();
    add_files(folder, 0, &mut files)?;
    let bytes = |about: fs::Metadata| about.len().min(about.blocks().saturating_mul(BLOCK));
    files.iter().map(|path| fs::metadata(path).map(bytes)).sum()
}
