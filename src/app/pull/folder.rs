//! The folder of a replica: `replica.xml`, and `state.json` beside it, which has the replica's digest.
//!
//! Each is written beside its place and then gets its name in one step. After a crash between the two the digest is
//! another one: the replica is put out of the way and read anew. No file that was there already is written to.

use crate::app::{AppError, ErrorContext};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempPath;
use tidegate_format::pull::State;
use xxhash_rust::xxh3::xxh3_128;

/// The replica.
pub(super) const REPLICA: &str = "replica.xml";
const STATE: &str = "state.json";
const LOCK: &str = "lock";
/// What a file's name ends with until it counts.
const NEW: &str = ".new";
/// What a replica is called that does not belong to the state; the second one of them bears a number.
const OLD: &str = "old";
/// The most of them in a folder.
const OLD_LIMIT: usize = 100;
/// The layout of the state file.
const VERSION: u32 = 1;
/// The longest state file and replica that are read, in bytes.
const STATE_LIMIT: u64 = 64 * 1024 * 1024;
const REPLICA_LIMIT: u64 = 64 * 1024 * 1024;

/// A folder that nobody else uses while this stands.
pub(super) struct ReplicaFolder {
    path: PathBuf,
    /// Whether it was made for this pull.
    is_new: bool,
    lock: File,
}

/// What a folder holds.
pub(super) struct FolderContent {
    /// The state and the replica of the last pull.
    pub(super) saved: Option<(State, String)>,
    /// What was odd about it.
    pub(super) warning: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenFile {
    version: u32,
    /// The address that was given.
    url: String,
    /// The digest of the replica that this belongs to.
    replica: String,
    #[serde(flatten)]
    state: State,
}

impl Drop for ReplicaFolder {
    fn drop(&mut self) {
        // Closing alone would leave it locked while a child that is just being started has it open.
        let _ = self.lock.unlock();
    }
}

impl ReplicaFolder {
    /// Takes a folder, or makes one.
    pub(super) fn lock(path: &Path) -> Result<Self, AppError> {
        let failed = |error: io::Error| {
            AppError::run(format!("the folder {} cannot be used", path.display()), error)
        };
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(failed)?;
        // What stands there already may be somebody's.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = options.open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), is_new, lock }),
            Err(TryLockError::WouldBlock) => Err(AppError::Input(format!(
                "the folder {} is in use by another pull; wait for it, or use another --into",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Lets go of it after a pull that failed. What was made for that alone goes, too.
    pub(super) fn abandon(self) {
        if self.is_new {
            // Where somebody has put something there meanwhile, it stays.
            let _ = fs::remove_file(self.path.join(LOCK));
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Reads what the last pull of `url` left.
    pub(super) fn open(&self, url: &str) -> Result<FolderContent, AppError> {
        let replica = self.read(REPLICA, REPLICA_LIMIT)?;
        let Some(bytes) = self.read(STATE, STATE_LIMIT)? else {
            let why = "there is no state beside it";
            let warning = replica.map(|_| self.set_aside(why)).transpose()?;
            return Ok(FolderContent { saved: None, warning });
        };
        let shown = self.path.display();
        let written: Option<WrittenFile> = serde_json::from_slice(&bytes).ok();
        let Some(written) = written.filter(|written| written.version == VERSION) else {
            return Err(AppError::Input(format!(
                "the folder {shown} holds a {STATE} that is not of a replica; use another --into, or \
                 remove that file"
            )));
        };
        if written.url != url {
            return Err(AppError::Input(format!(
                "the folder {shown} holds the replica of {}; use another --into",
                written.url
            )));
        }
        let is_there = replica.is_some();
        let own = replica.filter(|bytes| digest(bytes) == written.replica);
        let warning = match own.map(String::from_utf8) {
            Some(Ok(text)) => {
                let saved = Some((written.state, text));
                return Ok(FolderContent { saved, warning: None });
            }
            _ if is_there => self.set_aside("it is not the one that its state is about")?,
            _ => {
                let shown = self.path.join(REPLICA);
                format!("{} is read anew, because it is not there", shown.display())
            }
        };
        Ok(FolderContent { saved: None, warning: Some(warning) })
    }

    /// Writes the replica where it is another one than before, and the state.
    pub(super) fn save(
        &self,
        url: &str,
        state: &State,
        (before, replica): (Option<&str>, Option<&str>),
    ) -> Result<(), AppError> {
        let Some(text) = replica.or(before) else { return Ok(()) };
        let written = WrittenFile {
            version: VERSION,
            url: url.to_owned(),
            replica: digest(text.as_bytes()),
            state: state.clone(),
        };
        let json = serde_json::to_vec_pretty(&written).context("the state cannot be written")?;
        // Both are on the disk before one gets its name.
        let replica = replica.map(|replica| self.write(REPLICA, replica.as_bytes())).transpose()?;
        let json = self.write(STATE, &json)?;
        if let Some(replica) = replica {
            self.place(replica, REPLICA)?;
        }
        self.place(json, STATE)
    }

    /// Puts a replica that does not belong to the state out of the way; says so.
    fn set_aside(&self, why: &str) -> Result<String, AppError> {
        let (path, kept) = (self.path.join(REPLICA), self.free_name()?);
        self.place(&path, &kept)?;
        Ok(format!("{} is kept as {kept} and read anew, because {why}", path.display()))
    }

    /// A name for a replica that is put out of the way, which nothing there has.
    fn free_name(&self) -> Result<String, AppError> {
        let first = format!("{REPLICA}.{OLD}");
        let others = (2..=OLD_LIMIT).map(|number| format!("{first}.{number}"));
        let mut names = std::iter::once(first.clone()).chain(others);
        // Whatever has the name, a link that leads nowhere too.
        let is_free = |name: &String| fs::symlink_metadata(self.path.join(name)).is_err();
        names.find(is_free).ok_or_else(|| {
            AppError::Input(format!(
                "the folder {} holds {OLD_LIMIT} files like {first}, which is the limit; remove \
                 those that are not needed",
                self.path.display()
            ))
        })
    }

    fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, AppError> {
        let path = self.path.join(name);
        let failed = |error| AppError::run(format!("{} cannot be read", path.display()), error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }

    /// Writes what is to be the file `name` to the disk itself, under another name that nothing there has. It goes
    /// unless it gets its name.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<TempPath, AppError> {
        let (prefix, mode) = (format!("{name}."), Permissions::from_mode(0o666));
        let mut file = tempfile::Builder::new();
        file.prefix(&prefix).suffix(NEW).permissions(mode);
        let written = file.tempfile_in(&self.path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            Ok(file.into_temp_path())
        });
        let path = self.path.join(name);
        written.context(format!("{} cannot be written", path.display()))
    }

    /// Has a file get its name, for good.
    fn place(&self, from: impl AsRef<Path>, name: &str) -> Result<(), AppError> {
        let path = self.path.join(name);
        // A folder that cannot be opened like a file keeps its names without this.
        let sync = || File::open(&self.path).map_or(Ok(()), |folder| folder.sync_all());
        let placed = fs::rename(from, &path).and_then(|()| sync());
        placed.context(format!("{} cannot be written", path.display()))
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

#[cfg(test)]
mod tests;
