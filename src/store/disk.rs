//! The store on disk: its folder, and the database in it, which [`super::sled`] opens.

mod compact;
#[cfg(test)]
pub(crate) mod faults;
pub(super) mod files;
mod folder;
mod fresh;
#[cfg(test)]
mod measure;
mod note;
mod private;
mod swap;

pub use self::compact::{CompactError, CompactProgress, CompactRequest, Compacted, compact};
pub use self::fresh::{FreshStore, is_vacant};
use self::note::NumberNote;
pub use self::private::make_data_folder;

use self::folder::{Mark, StoreFolder};
use super::embedded::{
    Found, OpenRequest, Records, Reopen, ReopenPauses, Reopened, Store, StorePlace, begin, inspect,
};
use super::engine::Engine;
use super::{Epoch, StoreError, open_database};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};

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
    pub fn on_disk(
        path: &Path,
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::open_on_disk(DiskRequest::new(path, endpoint), clock)
    }

    /// The same, as a request says. Blocks.
    pub fn open_on_disk(request: DiskRequest, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let DiskRequest { path, endpoint, sup_ids } = request;
        let folder = Arc::new(StoreFolder::take(&path)?);
        StoreOpener::new(folder).open(OpenRequest { endpoint, sup_ids }, clock)
    }
}

/// Puts something before an engine: tests let it fail.
type WrapEngine = dyn Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + Send;

/// A database with what it has, and the note of the last epoch.
pub(super) type FoundStore = (Records, Found, NumberNote);

/// Opens the store in a folder that is this process's own, as often as needed.
struct StoreOpener {
    folder: Arc<StoreFolder>,
    wrap: Box<WrapEngine>,
    pauses: ReopenPauses,
}

impl StoreOpener {
    /// One of this folder.
    fn new(folder: Arc<StoreFolder>) -> Self {
        Self { folder, wrap: Box::new(|engine| engine), pauses: ReopenPauses::default() }
    }

    /// Opens the store. The folder is let go of last, whatever fails: the database may write until it is dropped.
    fn open(self, request: OpenRequest, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        let opened = self.begin(self.open_database()?, request)?;
        Store::over(opened, clock, Some(Box::new(self)))
    }

    /// Opens the database, and checks that it has everything up to its mark.
    fn open_database(&self) -> Result<FoundStore, StoreError> {
        let folder = &self.folder;
        let mark = folder.mark()?;
        let (noted, reached) = folder.reached()?;
        files::read_through(folder).map_err(|source| StoreError::Io {
            doing: "read its files before opening them",
            source,
        })?;
        let engine = open_database(folder.path(), &folder.database())?;
        let records = Records::of((self.wrap)(engine));
        let found = inspect(&records)?;
        let lost = match (mark, &found.identity) {
            (None, _) => None,
            (Some(_), None) => Some("the store was used, and is empty now"),
            (Some(mark), Some(identity)) => {
                let epoch = mark.epoch.max(noted);
                let is_behind = identity.fence < mark.fence || found.sealed.0 < epoch;
                (is_behind || identity.endpoint != mark.endpoint)
                    .then_some("what is stored is older than what the store had reached")
            }
        };
        match lost {
            Some(what) => Err(records.damage(what.to_owned())),
            None => Ok((records, found, reached)),
        }
    }
}

impl Reopen for StoreOpener {
    fn find(&self) -> Result<FoundStore, StoreError> {
        // Where nothing can be written, opening would fail too, after much reading.
        self.folder.try_writing()?;
        files::forget_cached(&self.folder);
        self.open_database()
    }

    fn begin(
        &self,
        (records, found, reached): FoundStore,
        request: OpenRequest,
    ) -> Result<Reopened, StoreError> {
        let opened = begin(&records, found, request)?;
        let (identity, found) = &opened;
        let (endpoint, fence) = (identity.endpoint.clone(), identity.fence);
        let mark = Mark { endpoint, fence, epoch: found.sealed.0 };
        self.folder.set_mark(&mark)?;
        let folder = Arc::clone(&self.folder);
        let place = Arc::new(OnDisk { folder, mark, reached: Mutex::new(reached) });
        Ok(Reopened { records, opened, place })
    }

    fn pauses(&self) -> ReopenPauses {
        self.pauses
    }
}

/// The folder of a store that is open.
struct OnDisk {
    folder: Arc<StoreFolder>,
    mark: Mark,
    reached: Mutex<NumberNote>,
}

impl StorePlace for OnDisk {
    fn note(&self, epoch: Epoch) -> io::Result<()> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).write(epoch.0)
    }

    fn closed(&self, epoch: Epoch) {
        if let Err(error) = self.folder.set_mark(&Mark { epoch, ..self.mark.clone() }) {
            // The mark of the start still stands, and so does the note of the last epoch.
            tracing::warn!(error = %error, "the store could not note where it ended");
        }
    }
}
