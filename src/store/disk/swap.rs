//! Puts other files of the engine in the place of those in a data folder, all or none, whatever ends the
//! process meanwhile.
//!
//! The new files, those of a compaction or of an import, are made in a folder within the data folder, and its name
//! says how far that is:
//!
//! 1. `compact.making`: not whole yet. The next start removes it.
//! 2. `compact.made`: whole and durable, once it has this name. The old files are removed.
//! 3. `compact.placing`: the old files are gone. The new ones are moved into the data folder one by one.
//!
//! Each step can be made again, and whoever takes the data folder next goes on with it.

use crate::is_database_file;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where the new files are made.
pub(super) const MAKING: &str = "compact.making";
/// The new files, whole and durable.
const MADE: &str = "compact.made";
/// The new files while they are moved.
const PLACING: &str = "compact.placing";
/// What is not moved: the data folder's own lock is held.
const STAYS: &str = super::folder::LOCK;

/// Called after each change to the folder; an error ends the work there, as the end of the process would.
pub(super) type AfterStep<'a> = dyn FnMut() -> io::Result<()> + 'a;

/// Puts what was made in [`MAKING`] in the place of the engine's files.
pub(super) fn put_in_place(folder: &Path, after: &mut AfterStep<'_>) -> io::Result<()> {
    let making = folder.join(MAKING);
    sync_all(&making)?;
    fs::rename(&making, folder.join(MADE))?;
    sync(folder)?;
    after()?;
    finish(folder, after)
}

/// Goes on where a process that ended had come to, and removes what it had not made whole.
pub(super) fn finish(folder: &Path, after: &mut AfterStep<'_>) -> io::Result<()> {
    let (making, made) = (folder.join(MAKING), folder.join(MADE));
    let placing = folder.join(PLACING);
    if making.exists() {
        fs::remove_dir_all(&making)?;
        after()?;
    }
    if made.exists() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if is_database_file(&entry.file_name().to_string_lossy()) {
                remove(&entry.path())?;
                after()?;
            }
        }
        sync(folder)?;
        fs::rename(&made, &placing)?;
        sync(folder)?;
        after()?;
    }
    if placing.exists() {
        for entry in fs::read_dir(&placing)? {
            let entry = entry?;
            if entry.file_name() != STAYS {
                fs::rename(entry.path(), folder.join(entry.file_name()))?;
                after()?;
            }
        }
        sync(folder)?;
        fs::remove_dir_all(&placing)?;
        sync(folder)?;
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
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
    use std::collections::BTreeMap;

    const OLD: [(&str, &str); 5] =
        [("db", "old"), ("conf", "c"), ("blobs/1", "old"), ("blobs/2", "old"), ("snap.7", "old")];
    const NEW: [(&str, &str); 5] =
        [("db", "new"), ("conf", "c"), ("blobs/1", "new"), ("snap.3", "new"), ("mark", "new")];
    const OTHER: [(&str, &str); 3] = [("lock", ""), ("admin-token", "t"), ("reached", "r")];

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn files(folder: &Path) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(at) = folders.pop() {
            for entry in fs::read_dir(at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    found.insert(name, fs::read_to_string(path).unwrap());
                }
            }
        }
        found
    }

    fn expected(engine: &[(&str, &str)]) -> BTreeMap<String, String> {
        let all = engine.iter().chain(&OTHER);
        all.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn begun() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &OLD);
        write(folder.path(), &[("mark", "old")]);
        write(folder.path(), &OTHER);
        let making = folder.path().join(MAKING);
        write(&making, &NEW);
        write(&making, &[("lock", "another"), ("reached", "r")]);
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
            // The one who goes on is ended as well.
            let mut left = ends_after;
            let _ = finish(folder.path(), &mut || {
                left -= 2;
                if left < 0 { Err(io::Error::other("ended")) } else { Ok(()) }
            });
            finish(folder.path(), &mut || Ok(())).unwrap();
            assert_eq!(files(folder.path()), expected(&NEW), "ended after step {ends_after}");
            assert_eq!(files(folder.path()), {
                finish(folder.path(), &mut || Ok(())).unwrap();
                files(folder.path())
            });
            if ended.is_ok() {
                assert!(ends_after > 10, "only {ends_after} steps");
                return;
            }
        }
    }

    #[test]
    fn what_was_not_made_whole_goes_and_all_stays() {
        let folder = begun();
        finish(folder.path(), &mut || Ok(())).unwrap();
        let mut old = expected(&OLD);
        old.insert("mark".to_owned(), "old".to_owned());
        assert_eq!(files(folder.path()), old);
    }
}
