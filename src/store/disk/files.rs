//! The files of an engine in a data folder.

use super::folder::StoreFolder;
use crate::is_database_file;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// The bytes that are hashed at a time.
const CHUNK: usize = 64 * 1024;
/// The unit in which the system says what a file takes, in bytes.
const BLOCK: u64 = 512;
/// How deep an engine's folders are.
const DEPTH_LIMIT: usize = 8;

/// The engine's files in a folder, in a fixed order.
fn engine_files(folder: &StoreFolder) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.path())? {
        let entry = entry?;
        if is_database_file(&entry.file_name().to_string_lossy()) {
            add_files(&entry.path(), 0, &mut found)?;
        }
    }
    found.sort();
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

/// The path of a file below the data folder.
fn below<'a>(folder: &StoreFolder, path: &'a Path) -> &'a Path {
    path.strip_prefix(folder.path()).unwrap_or(path)
}

/// Has the system forget what it keeps of the engine's files in memory, as far as it can: what a write
/// that failed left there may be nowhere else, and must not be taken for what is stored.
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

/// A fingerprint of the engine's files: their names, lengths and bytes.
pub(super) fn digest(folder: &StoreFolder) -> io::Result<u128> {
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; CHUNK];
    for path in engine_files(folder)? {
        let inner = below(folder, &path);
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

/// The bytes of the engine's files.
pub(super) fn engine_bytes(folder: &StoreFolder) -> io::Result<u64> {
    written_bytes(&engine_files(folder)?)
}

/// The bytes of all files in a folder.
pub(crate) fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut files = Vec::new();
    add_files(folder, 0, &mut files)?;
    written_bytes(&files)
}

/// The bytes of files; what a file is longer than what was written to it takes nothing.
fn written_bytes(files: &[PathBuf]) -> io::Result<u64> {
    let bytes = |about: fs::Metadata| about.len().min(about.blocks().saturating_mul(BLOCK));
    files.iter().map(|path| fs::metadata(path).map(bytes)).sum()
}

/// Copies the engine's files into the folder `to`.
pub(super) fn copy(folder: &StoreFolder, to: &Path) -> io::Result<()> {
    for path in engine_files(folder)? {
        let target = to.join(below(folder, &path));
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        fs::copy(&path, &target)?;
    }
    Ok(())
}
