//! Replaces the database in a data folder, safe against being killed at any moment.
//!
//! The new database, of a compaction or an import, is made within the data folder:
//!
//! 1. `compact.making`: that folder. Its database is not whole yet, and whoever takes the data folder next removes it.
//! 2. `compact.made`: the database, whole and durable once it has this name. The old one is removed, and this one gets
//!    its name; whoever takes the data folder next goes on with that.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of the database.
pub(super) const DATABASE: &str = "db";
/// The data folder in which the new one is made.
pub(super) const MAKING: &str = "compact.making";
/// The new database, whole and durable.
const MADE: &str = "compact.made";

/// Called after each change to the folder; tests answer an error to end the work there, as a kill would.
pub(super) type AfterStep<'a> = dyn FnMut() -> io::Result<()> + 'a;

/// Whether a data folder has a store.
pub fn has_store(folder: &Path) -> bool {
    [DATABASE, MADE].iter().any(|name| folder.join(name).exists())
}

/// Replaces the database with the one in [`MAKING`].
pub(super) fn put_in_place(folder: &Path, after: &mut AfterStep<'_>) -> io::Result<()> {
    let made = folder.join(MAKING).join(DATABASE);
    sync_all(&made)?;
    fs::rename(&made, folder.join(MADE))?;
    sync(folder)?;
    after()?;
    finish(folder, after)
}

/// Continues what a killed process began, and removes what it had not finished.
pub(super) fn finish(folder: &Path, after: &mut AfterStep<'_>) -> io::Result<()> {
    let [making, made, database] = [MAKING, MADE, DATABASE].map(|name| folder.join(name));
    if making.exists() {
        fs::remove_dir_all(&making)?;
        after()?;
    }
    if made.exists() {
        if database.exists() {
            fs::remove_dir_all(&database)?;
            after()?;
        }
        fs::rename(&made, &database)?;
        sync(folder)?;
    }
    Ok(())
}

/// Makes the names in a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes a folder with all in it durable.
fn sync_all(folder: &Path) -> io::Result<()> {
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => File::open(entry.path())?.sync_all()?,
            }
        }
        sync(&folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::faults::files;
    use std::collections::BTreeMap;

    const OLD: [(&str, &str); 4] =
        [("db/db", "old"), ("db/blobs/1", "old"), ("db/blobs/2", "old"), ("db/snap.7", "old")];
    const NEW: [(&str, &str); 3] = [("db/db", "new"), ("db/blobs/1", "new"), ("db/snap.3", "new")];
    const OTHER: [(&str, &str); 4] =
        [("lock", ""), ("mark", "m"), ("admin-token", "t"), ("reached", "r")];

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn expected(database: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        let all = database.iter().chain(&OTHER);
        all.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    fn begun() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &OLD);
        write(folder.path(), &OTHER);
        let making = folder.path().join(MAKING);
        write(&making, &NEW);
        write(&making, &[("lock", "another"), ("mark", "another")]);
        folder
    }

    #[test]
    fn an_end_at_any_step_is_gone_on_from() {
        for ends_after in 0.. {
            let folder = begun();
            let mut left = ends_after;
            let ended = put_in_place(folder.path(), &mut || {
                left -= 1;
                if left < 0 { Err(io::Error::other("ended")) } else { Ok(()) }
            });
            // The process that continues is killed as well.
            let _ = finish(folder.path(), &mut || Err(io::Error::other("ended")));
            finish(folder.path(), &mut || Ok(())).unwrap();
            assert_eq!(files(folder.path()), expected(&NEW), "ended after step {ends_after}");
            finish(folder.path(), &mut || Ok(())).unwrap();
            assert_eq!(files(folder.path()), expected(&NEW));
            if ended.is_ok() {
                assert_eq!(ends_after, 3, "the steps are others");
                return;
            }
        }
    }

    #[test]
    fn what_was_not_made_whole_goes_and_all_stays() {
        let folder = begun();
        finish(folder.path(), &mut || Ok(())).unwrap();
        assert_eq!(files(folder.path()), expected(&OLD));
    }
}
