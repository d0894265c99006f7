//! The store on disk: its folder, and the database in it, which [`super::sled`] opens.

mod compact;
#[cfg(test)]
pub(crate) mod faults;
pub(super) mod files;
mod folder;
mod fresh;
mod private;
mod swap;

pub use self::compact::{CompactError, CompactProgress, CompactRequest, Compacted, compact};
pub use self::fresh::{FreshStore, is_vacant};
pub use self::private::make_data_folder;
pub use self::swap::has_store;

use self::folder::{Mark, StoreFolder};
use super::embedded::{Found, OpenRequest, Records, ReopenPauses, Reopened, Store, begin, inspect};
use super::engine::Engine;
use super::sled::SledEngine;
use super::{Epoch, StoreError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};
use xxhash_rust::xxh3::xxh3_64;

/// A store on disk that is to be opened, or made.
#[derive(Debug, Clone)]
pub struct DiskRequest {
    /// The data folder.
    pub path: PathBuf,
    /// As configured. A new store without one chooses its own at random, a used one refuses another.
    pub endpoint: Option<EndpointId>,
    /// What SUP ids are made of in a store that takes the place of another. A used one keeps its own.
    pub sup_ids: Option<SupIdBasis>,
}

impl DiskRequest {
    /// For the store in the folder `path`.
    pub fn new(path: &Path, endpoint: Option<EndpointId>) -> Self {
        Self { path: path.to_owned(), endpoint, sup_ids: None }
    }
}

impl Store {
    /// Opens a store on disk, or makes one. Blocks.
    pub fn open_on_disk(request: DiskRequest, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let DiskRequest { path, endpoint, sup_ids } = request;
        let folder = Arc::new(StoreFolder::take(&path)?);
        StoreOpener::new(folder).open(OpenRequest { endpoint, sup_ids }, clock)
    }
}

/// Wraps an engine: tests make it fail.
type WrapEngine = dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + Send;

/// An opened database, its records, and the file that notes the last epoch.
pub(super) type FoundStore = (Records, Found, NumberNote);

/// Opens the store in a folder that is this process's own, as often as needed.
pub(super) struct StoreOpener {
    folder: Arc<StoreFolder>,
    wrap: Box<WrapEngine>,
    /// The pauses between tries to open it again.
    pub(super) pauses: ReopenPauses,
}

impl StoreOpener {
    /// Opens the store in this folder.
    fn new(folder: Arc<StoreFolder>) -> Self {
        Self { folder, wrap: Box::new(|engine| engine), pauses: ReopenPauses::default() }
    }

    /// Opens the store. The lock of the folder is dropped last, whatever fails: the database may write until it is
    /// dropped.
    fn open(self, request: OpenRequest, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        let opened = self.begin(self.open_database()?, request)?;
        Store::in_folder(opened, clock, self)
    }

    /// Opens the database, and checks that it is not behind the mark of the folder.
    fn open_database(&self) -> Result<FoundStore, StoreError> {
        let folder = &self.folder;
        let mark = folder.mark()?;
        let (noted, reached) = folder.reached()?;
        files::read_through(folder).map_err(|source| StoreError::Io {
            doing: "read its files before opening them",
            source,
        })?;
        let engine = SledEngine::open(folder.path(), &folder.database())?;
        let records = Records::new((self.wrap)(Arc::new(engine)));
        let found = inspect(&records)?;
        let lost = match (mark, &found.identity) {
            (None, _) => None,
            (Some(_), None) => Some("the store was used, and is empty now"),
            (Some(mark), Some(identity)) => {
                let epoch = mark.epoch.max(noted);
                let is_behind = identity.fence < mark.fence || found.newest.0 < epoch;
                (is_behind || identity.endpoint != mark.endpoint)
                    .then_some("what is stored is older than what the store had reached")
            }
        };
        match lost {
            Some(what) => Err(records.damage(what.to_owned())),
            None => Ok((records, found, reached)),
        }
    }

    /// Opens the database again after a failure, and reads what it has.
    pub(super) fn find(&self) -> Result<FoundStore, StoreError> {
        // A full disk would fail the opening as well, after much reading.
        self.folder.try_writing()?;
        files::forget_cached(&self.folder);
        self.open_database()
    }

    /// Counts the opening, and finishes purges and large changes.
    pub(super) fn begin(
        &self,
        (records, found, reached): FoundStore,
        request: OpenRequest,
    ) -> Result<Reopened, StoreError> {
        let opened = begin(&records, found, request)?;
        let (identity, found) = &opened;
        let (endpoint, fence) = (identity.endpoint.clone(), identity.fence);
        let mark = Mark { endpoint, fence, epoch: found.newest.0 };
        self.folder.set_mark(&mark)?;
        let folder = Arc::clone(&self.folder);
        let folder = Arc::new(OpenFolder { folder, mark, reached: Mutex::new(reached) });
        Ok(Reopened { records, opened, folder })
    }
}

/// The folder of a store that is open.
pub(super) struct OpenFolder {
    folder: Arc<StoreFolder>,
    mark: Mark,
    reached: Mutex<NumberNote>,
}

impl OpenFolder {
    /// Notes an epoch that became durable, without waiting for the disk.
    pub(super) fn note_reached(&self, epoch: Epoch) {
        let note = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = note.write(epoch.0) {
            // The note serves only to detect damage; the store itself is durable.
            tracing::warn!(error = %error, "the store could not note what it has reached");
        }
    }

    /// Notes the state of the store at its end.
    pub(super) fn note_end(&self, epoch: Epoch) {
        if let Err(error) = self.folder.set_mark(&Mark { epoch, ..self.mark.clone() }) {
            // The mark of the start and the note of the last epoch are still there.
            tracing::warn!(error = %error, "the store could not note where it ended");
        }
    }
}

/// A growing number in a file that is not synced: after a loss of power it may be too low, and is never too high.
pub(super) struct NumberNote(File);

impl NumberNote {
    /// Opens the file, or makes it: its number, zero where there is none or half of one, and the place of the next
    /// number.
    fn open(path: &Path) -> io::Result<(u64, Self)> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let note = Self(options.open(path)?);
        Ok((note.read(), note))
    }

    /// Notes a number.
    fn write(&self, number: u64) -> io::Result<()> {
        let number = number.to_le_bytes();
        let check = xxh3_64(&number).to_le_bytes();
        self.0.write_all_at(&[number, check].concat(), 0)
    }

    fn read(&self) -> u64 {
        let (mut number, mut check) = ([0; 8], [0; 8]);
        let read = self.0.read_exact_at(&mut number, 0);
        let read = read.and_then(|()| self.0.read_exact_at(&mut check, 8));
        let is_whole = read.is_ok() && xxh3_64(&number) == u64::from_le_bytes(check);
        if is_whole { u64::from_le_bytes(number) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_not_whole_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("note");
        let (number, note) = NumberNote::open(&path).unwrap();
        assert_eq!(number, 0);
        for number in [1, u64::MAX, 7] {
            note.write(number).unwrap();
            assert_eq!(NumberNote::open(&path).unwrap().0, number);
        }
        for damage in [&b""[..], b"\x09\0\0", &[0xff; 16]] {
            std::fs::write(&path, damage).unwrap();
            assert_eq!(NumberNote::open(&path).unwrap().0, 0);
        }
    }
}
