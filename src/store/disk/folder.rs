//! The data folder: its lock, and its mark, which distinguishes a store that lost its data from a new one.

use super::{NumberNote, private, swap};
use crate::{Epoch, StoreError};
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tidegate_core::model::EndpointId;

/// The lock file, locked from open to close; the system unlocks it when the process ends.
pub(super) const LOCK: &str = "lock";
/// The mark: the state of the store when it was last opened or closed.
pub(super) const MARK: &str = "mark";
/// The last epoch that became durable, since the mark was made.
const REACHED: &str = "reached";
/// The file that probes whether the file system takes writes.
pub(super) const TRIAL: &str = "trial";
/// Its size: more than the engine needs to open its files.
const TRIAL_BYTES: usize = 2 << 20;

/// A folder that belongs to this process.
pub(super) struct StoreFolder {
    path: PathBuf,
    lock: File,
}

/// The mark of a store. A store that is behind its mark has lost data: an engine may silently open an empty or
/// truncated file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    /// The endpoint of the store.
    pub(super) endpoint: EndpointId,
    /// The number of its last opening.
    pub(super) fence: u64,
    /// The last closed epoch.
    pub(super) epoch: Epoch,
}

impl StoreFolder {
    /// Makes the folder where there is none, and locks it. Finishes a compaction or import that was killed.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let failed =
            |error: io::Error| StoreError::at("make or open its folder", path.display(), &error);
        private::make_data_folder(path).map_err(failed)?;
        private::shut_out_others(path);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {
                let folder = Self { path: path.to_owned(), lock };
                swap::finish(path, &mut || Ok(())).map_err(failed)?;
                Ok(folder)
            }
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::InUse { path: path.display().to_string() })
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// Writes a durable probe into the folder and removes it: an error where the file system takes no writes.
    pub(super) fn try_writing(&self) -> Result<(), StoreError> {
        let path = self.path.join(TRIAL);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&vec![1; TRIAL_BYTES])?;
            file.sync_all()
        };
        let written = write();
        let removed = std::fs::remove_file(&path);
        let failed = |error| StoreError::at("write to its folder", self.path.display(), &error);
        written.and(removed).map_err(failed)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the database.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join(swap::DATABASE)
    }

    /// The mark, where there is one.
    pub(super) fn mark(&self) -> Result<Option<Mark>, StoreError> {
        let text = match std::fs::read(self.path.join(MARK)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { doing: "read its mark", source }),
        };
        let damaged = |_| StoreError::Damaged {
            path: self.path.display().to_string(),
            what: format!("the file {MARK} is not as it was written"),
        };
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// The file with the last durable epoch: its number, and the place of the next one.
    pub(super) fn reached(&self) -> Result<(Epoch, NumberNote), StoreError> {
        let note = NumberNote::open(&self.path.join(REACHED));
        let (number, note) =
            note.map_err(|source| StoreError::Io { doing: "open its notes", source })?;
        Ok((Epoch(number), note))
    }

    /// Writes the mark atomically, and makes the names in the folder durable.
    pub(super) fn set_mark(&self, mark: &Mark) -> Result<(), StoreError> {
        let write = || {
            let text = serde_json::to_string(mark)?;
            let new = self.path.join(format!("{MARK}.new"));
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, self.path.join(MARK))?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| StoreError::Io { doing: "write its mark", source })
    }
}

impl Drop for StoreFolder {
    fn drop(&mut self) {
        // Closing alone would keep the lock while a starting child process has the file open.
        let _ = self.lock.unlock();
    }
}
