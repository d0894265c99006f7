//! The folder of a replica: `replica.xml`, and `state.json` beside it.
//!
//! The two are written so that a crash at any point leaves a pair that belongs together: the new
//! replica first, under a name of chance; then the state, which bears that name and the
//! replica's digest, in one step, from where on the new pair counts; then the replica takes its name.
//! Opening a folder finishes a step that was not. No file that was there already is written to.

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
    /// What the replica is called until it has its name.
    #[serde(default)]
    new: Option<String>,
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

    /// Reads what the last pull of `url` left, and finishes what it began.
    pub(super) fn open(&self, url: &str) -> Result<FolderContent, AppError> {
        let Some(bytes) = self.read(STATE, STATE_LIMIT)? else {
            let there = self.read(REPLICA, REPLICA_LIMIT)?.is_some();
            let why = "there is no state beside it";
            let warning = if there { Some(self.set_aside(why)?) } else { None };
            return Ok(FolderContent { saved: None, warning });
        };
        let written: Option<WrittenFile> = serde_json::from_slice(&bytes).ok();
        let Some(written) = written.filter(|written| written.version == VERSION) else {
            return Err(AppError::Input(format!(
                "the folder {} holds a {STATE} that is not of a replica; use another --into, or \
                 remove that file",
                self.path.display()
            )));
        };
        if written.url != url {
            return Err(AppError::Input(format!(
                "the folder {} holds the replica of {}; use another --into",
                self.path.display(),
                written.url
            )));
        }
        let belongs = |bytes: &Vec<u8>| digest(bytes) == written.replica;
        let mut replica = self.read(REPLICA, REPLICA_LIMIT)?.filter(belongs);
        if let (None, Some(new)) = (&replica, written.new.as_ref().filter(|new| is_new(new))) {
            replica = self.read(new, REPLICA_LIMIT)?.filter(belongs);
            if replica.is_some() {
                self.place(|path| fs::rename(self.path.join(new), path), REPLICA)?;
            }
        }
        match replica.map(String::from_utf8) {
            Some(Ok(text)) => {
                Ok(FolderContent { saved: Some((written.state, text)), warning: None })
            }
            _ => {
                let warning = Some(self.set_aside("it is not the one that its state is about")?);
                Ok(FolderContent { saved: None, warning })
            }
        }
    }

    /// Writes the state, and the replica where it is another one than before.
    pub(super) fn save(
        &self,
        url: &str,
        state: &State,
        (before, replica): (Option<&str>, Option<&str>),
    ) -> Result<(), AppError> {
        let Some(text) = replica.or(before) else { return Ok(()) };
        let new = replica.map(|replica| self.write(REPLICA, replica.as_bytes())).transpose()?;
        let name = new.as_ref().and_then(|new| new.file_name()?.to_str());
        let written = WrittenFile {
            version: VERSION,
            url: url.to_owned(),
            replica: digest(text.as_bytes()),
            new: name.map(str::to_owned),
            state: state.clone(),
        };
        let json = serde_json::to_vec_pretty(&written).context("the state cannot be written")?;
        let json = self.write(STATE, &json)?;
        let mut kept = Ok(None);
        let placed = self.place(
            |path| {
                fs::rename(json, path)?;
                // From here on the new pair counts, whatever its name.
                kept = new.map(TempPath::keep).transpose();
                Ok(())
            },
            STATE,
        );
        placed?;
        let kept = kept.map_err(|error| {
            AppError::run(format!("{} cannot be kept", error.path.display()), error.error)
        })?;
        kept.map_or(Ok(()), |new| self.place(|path| fs::rename(new, path), REPLICA))
    }

    /// Puts a replica that does not belong to the state out of the way; says so.
    fn set_aside(&self, why: &str) -> Result<String, AppError> {
        let shown = self.path.join(REPLICA);
        let shown = shown.display();
        if self.read(REPLICA, REPLICA_LIMIT)?.is_some() {
            let kept = self.free_name()?;
            self.place(|path| fs::rename(self.path.join(REPLICA), path), &kept)?;
            Ok(format!("{shown} is kept as {kept} and read anew, because {why}"))
        } else {
            Ok(format!("{shown} is read anew, because it is not there"))
        }
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
    fn place(
        &self,
        rename: impl FnOnce(&Path) -> io::Result<()>,
        name: &str,
    ) -> Result<(), AppError> {
        let path = self.path.join(name);
        // A folder that cannot be opened like a file keeps its names without this.
        let sync = || File::open(&self.path).map_or(Ok(()), |folder| folder.sync_all());
        rename(&path).and_then(|()| sync()).context(format!("{} cannot be written", path.display()))
    }
}

/// Whether a replica is called so until it counts: the state may come from anywhere.
fn is_new(name: &str) -> bool {
    let chance = name.strip_prefix(REPLICA).and_then(|rest| rest.strip_suffix(NEW));
    let chance = chance.and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    !chance.is_empty() && chance.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

#[cfg(test)]
mod tests;
