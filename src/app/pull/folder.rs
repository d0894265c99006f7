//! The folder of a replica: `replica.xml`, which ends with a processing instruction that says where the last pull ended.
//!
//! Both are one file, which takes the place of the one before in one step: a crash at any point leaves what was, or what
//! is to be. No file that was there already is written to.

use crate::app::export::{sync_folder, write_file};
use crate::app::{AppError, ErrorContext};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tidegate_format::pull::State;
use xxhash_rust::xxh3::xxh3_128;

/// The replica.
pub(super) const REPLICA: &str = "replica.xml";
const LOCK: &str = "lock";
/// What a replica is called that is not as a pull left it; the second one of them bears a number.
const OLD: &str = "old";
/// The most of them in a folder.
const OLD_LIMIT: usize = 100;
/// Who may read a replica: everybody whom the user's mask lets.
const MODE: u32 = 0o666;
/// The layout of what a replica ends with.
const VERSION: u32 = 1;
/// The longest replica that is read, in bytes.
const REPLICA_LIMIT: u64 = 128 * 1024 * 1024;
/// Around what a replica ends with.
const NOTE: (&str, &str) = ("<?tidegate-pull ", "?>\n");

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

/// What a replica ends with.
#[derive(Serialize, Deserialize)]
struct PullNote {
    version: u32,
    /// The address that was given.
    url: String,
    /// The digest of what stands before it.
    replica: String,
    #[serde(flatten)]
    state: State,
}

impl PullNote {
    /// A replica, and the note at its end; `None` where it has none.
    fn split(bytes: Vec<u8>) -> Option<(String, Self)> {
        let mut text = String::from_utf8(bytes).ok()?;
        let start = text.rfind(NOTE.0)?;
        let note = text.get(start..)?.strip_prefix(NOTE.0)?.strip_suffix(NOTE.1)?;
        let note: Self = serde_json::from_str(note).ok()?;
        text.truncate(start);
        (note.version == VERSION).then_some((text, note))
    }

    /// The note as it is written: in JSON `<` and `>` stand in texts alone, and are none of the markup so.
    fn write(&self) -> Result<String, AppError> {
        let json = serde_json::to_string(self).context("the state cannot be written")?;
        let json = json.replace('<', "\\u003c").replace('>', "\\u003e");
        Ok(format!("{}{json}{}", NOTE.0, NOTE.1))
    }
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
        let (saved, why) = match self.read()?.map(PullNote::split) {
            None => (None, None),
            Some(None) => (None, Some("a pull did not leave it so")),
            Some(Some((text, note))) => {
                if note.url != url {
                    return Err(AppError::Input(format!(
                        "the folder {} holds the replica of {}; use another --into",
                        self.path.display(),
                        note.url
                    )));
                }
                match digest(text.as_bytes()) == note.replica {
                    true => (Some((note.state, text)), None),
                    false => (None, Some("it was changed since the last pull")),
                }
            }
        };
        let warning = why.map(|why| self.set_aside(why)).transpose()?;
        Ok(FolderContent { saved, warning })
    }

    /// Writes a replica with its state.
    pub(super) fn save(&self, url: &str, state: &State, replica: &str) -> Result<(), AppError> {
        let replica =
            if replica.ends_with('\n') { replica.to_owned() } else { format!("{replica}\n") };
        let note = PullNote {
            version: VERSION,
            url: url.to_owned(),
            replica: digest(replica.as_bytes()),
            state: state.clone(),
        };
        let (path, note) = (self.path.join(REPLICA), note.write()?);
        let written = write_file(&path, MODE, &[replica.as_bytes(), note.as_bytes()]);
        written.context(format!("{} cannot be written", path.display()))
    }

    /// Puts a replica that is not as a pull left it out of the way; says so.
    fn set_aside(&self, why: &str) -> Result<String, AppError> {
        let (path, kept) = (self.path.join(REPLICA), self.free_name()?);
        let moved = fs::rename(&path, self.path.join(&kept)).and_then(|()| sync_folder(&path));
        moved.context(format!("{} cannot be written", self.path.join(&kept).display()))?;
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

    /// The replica; `None` where there is none.
    fn read(&self) -> Result<Option<Vec<u8>>, AppError> {
        let path = self.path.join(REPLICA);
        let mut bytes = Vec::new();
        let read =
            File::open(&path).and_then(|file| file.take(REPLICA_LIMIT).read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AppError::run(format!("{} cannot be read", path.display()), error)),
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

#[cfg(test)]
mod tests;
