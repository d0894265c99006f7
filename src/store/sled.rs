//! The store on disk: its folder, and sled in it. sled is named in this folder only.

mod barrier;
mod compact;
mod engine;
#[cfg(test)]
mod faults;
mod folder;
mod private;
mod recovery_check;
mod swap;
mod watchdog;

pub use self::compact::{CompactError, CompactProgress, CompactRequest, Compacted, compact};

use self::barrier::{Barrier, FlushAndSync};
use self::engine::SledEngine;
use self::folder::{Mark, Reached, StoreFolder};
use super::embedded::{
    Acknowledged, EmbeddedStore, Found, OpenRequest, Records, Reopen, ReopenError, ReopenPauses,
    Reopened, StorePlace, begin, inspect,
};
use super::{Epoch, StoreError};
use crate::clock::Clock;
use crate::model::{EndpointId, SupIdBasis};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

impl EmbeddedStore {
    /// Opens the store in the folder `path`, or makes one. `endpoint`: as configured; a new store
    /// without one chooses its own at random, a used one refuses another. Blocks.
    pub fn on_disk(
        path: &Path,
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::on_disk_as(path, endpoint, None, clock)
    }

    /// The same; `sup_ids` says what SUP ids are made of in a new store, for one that takes the place of
    /// another.
    pub fn on_disk_as(
        path: &Path,
        endpoint: Option<EndpointId>,
        sup_ids: Option<SupIdBasis>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let request = OpenRequest { endpoint, sup_ids, takes_moved: false };
        open(path, request, clock, flush_and_sync)
    }

    /// The same of a store that may have been moved away ([`StoreError::Moved`]), to copy it.
    pub fn on_disk_to_copy(
        path: &Path,
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let request = OpenRequest { endpoint, sup_ids: None, takes_moved: true };
        open(path, request, clock, flush_and_sync)
    }
}

/// Makes the barrier of a database in a folder.
type MakeBarrier = dyn Fn(&::sled::Db, &Path) -> io::Result<Box<dyn Barrier>> + Send;

fn flush_and_sync(db: &::sled::Db, folder: &Path) -> io::Result<Box<dyn Barrier>> {
    Ok(Box::new(FlushAndSync::new(db.clone(), folder)?))
}

fn open(
    path: &Path,
    request: OpenRequest,
    clock: Arc<dyn Clock>,
    barrier: impl Fn(&::sled::Db, &Path) -> io::Result<Box<dyn Barrier>> + Send + 'static,
) -> Result<EmbeddedStore, StoreError> {
    open_with(path, request, clock, ReopenPauses::default(), Box::new(barrier))
}

fn open_with(
    path: &Path,
    request: OpenRequest,
    clock: Arc<dyn Clock>,
    pauses: ReopenPauses,
    barrier: Box<MakeBarrier>,
) -> Result<EmbeddedStore, StoreError> {
    open_in(Arc::new(StoreFolder::take(path)?), request, clock, pauses, barrier)
}

/// Opens the store in a folder that is this process's own. It is let go of last, whatever fails: the
/// database may write until it is dropped.
fn open_in(
    folder: Arc<StoreFolder>,
    request: OpenRequest,
    clock: Arc<dyn Clock>,
    pauses: ReopenPauses,
    barrier: Box<MakeBarrier>,
) -> Result<EmbeddedStore, StoreError> {
    let opener = StoreOpener { folder, barrier, pauses };
    let found = opener.open_database()?;
    let Reopened { records, opened, place } = opener.begin(found, request)?;
    EmbeddedStore::over((records, opened, place), clock, Some(Box::new(opener)))
}

/// Opens the store in a folder that is this process's own, as often as needed.
struct StoreOpener {
    folder: Arc<StoreFolder>,
    barrier: Box<MakeBarrier>,
    pauses: ReopenPauses,
}

impl StoreOpener {
    /// Opens the database, and checks that it has everything up to its mark.
    fn open_database(&self) -> Result<(Records, Found, Reached), StoreError> {
        let folder = &self.folder;
        let mark = folder.mark()?;
        let (noted, reached) = folder.reached()?;
        if let Some(mark) = &mark {
            recovery_check::verify_recovery_on_copy(folder, mark, noted)?;
        }
        let engine = engine::open(folder.path(), folder.path(), &self.barrier)?;
        folder.restrict();
        let (records, found) = inspect_folder(engine, mark.as_ref(), noted)?;
        Ok((records, found, reached))
    }

    /// Begins to use what was found.
    fn begin(
        &self,
        (records, found, reached): (Records, Found, Reached),
        request: OpenRequest,
    ) -> Result<Reopened, StoreError> {
        let opened = begin(&records, found, request)?;
        let (endpoint, fence) = (opened.endpoint.clone(), opened.opening.fence);
        let mark = Mark { endpoint, fence, epoch: opened.sealed.0, digest: None };
        self.folder.set_mark(&mark)?;
        let folder = Arc::clone(&self.folder);
        let place = Arc::new(OnDisk { folder, mark, reached: Mutex::new(reached) });
        Ok(Reopened { records, opened, place })
    }
}

impl Reopen for StoreOpener {
    fn reopen(&self, known: &Acknowledged) -> Result<Reopened, ReopenError> {
        // Where nothing can be written, opening would fail too, after much reading.
        self.folder.try_writing()?;
        recovery_check::forget_cached(self.folder.path());
        let found = self.open_database()?;
        if let Some(missing) = known.missing(&found.1) {
            let path = self.folder.path().display().to_string();
            let what = format!("acknowledged state is missing since a write failed: {missing}");
            return Err(ReopenError::Missing(StoreError::Damaged { path, what }));
        }
        // One that was moved away as it failed takes nothing more in; a start says so.
        let endpoint = Some(known.endpoint.clone());
        Ok(self.begin(found, OpenRequest { endpoint, sup_ids: None, takes_moved: true })?)
    }

    fn pauses(&self) -> ReopenPauses {
        self.pauses
    }
}

/// Undoes what was not finished, reads what is kept in memory, and checks that the store has everything
/// up to its mark and up to `reached`.
fn inspect_folder(
    engine: SledEngine,
    mark: Option<&Mark>,
    reached: Epoch,
) -> Result<(Records, Found), StoreError> {
    let records = Records::of(Arc::new(engine));
    let found = inspect(&records)?;
    match (mark, &found.identity) {
        (None, _) => {}
        (Some(_), None) => {
            return Err(records.damage("the store was used, and is empty now".to_owned()));
        }
        (Some(mark), Some(identity)) => {
            let behind = identity.fence < mark.fence || found.sealed.0 < mark.epoch.max(reached);
            if behind || identity.endpoint != mark.endpoint {
                let what = "what is stored is older than what the store had reached";
                return Err(records.damage(what.to_owned()));
            }
        }
    }
    Ok((records, found))
}

/// The folder of a store that is open.
struct OnDisk {
    folder: Arc<StoreFolder>,
    mark: Mark,
    reached: Mutex<Reached>,
}

impl StorePlace for OnDisk {
    fn blocks(&self) -> bool {
        true
    }

    fn note(&self, epoch: Epoch) -> io::Result<()> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).note(epoch)
    }

    fn closed(&self, epoch: Epoch, is_alone: bool) {
        let digest = is_alone.then(|| recovery_check::digest(self.folder.path()).ok()).flatten();
        if let Err(error) = self.folder.set_mark(&Mark { epoch, digest, ..self.mark.clone() }) {
            // The mark of the start still stands; the next start tries its recovery on a copy.
            tracing::warn!(error = %error, "the store could not note where it ended");
        }
    }
}
