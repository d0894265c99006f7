//! A store that is made within a data folder that has none, and put in its place there once it is whole.

use super::folder::{LOCK, StoreFolder};
use super::{DiskRequest, StoreOpener, swap};
use crate::embedded::{OpenRequest, Store};
use crate::{FreeSpace, StoreError};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tidegate_core::clock::Clock;

/// What a data folder without a store may have: what a gateway keeps beside it, what an import leaves that is
/// ended by force, and what a file system has at its root.
const BESIDE: [&str; 4] = ["admin-token", LOCK, swap::MAKING, "lost+found"];

/// Whether a data folder has no store, and nothing that somebody else put there; also where it is not there.
pub fn is_vacant(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let name = entry?.file_name();
        if !BESIDE.iter().any(|beside| name == *beside) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A data folder that gets a store, or another one. Until that is whole, it lies in a folder of its own within, which
/// whoever takes the data folder next removes.
#[derive(Clone)]
pub struct FreshStore {
    folder: Arc<StoreFolder>,
    is_new: bool,
}

impl FreshStore {
    /// Takes the data folder, which has no store, and opens an empty one that is to be its own. Blocks.
    pub fn begin(
        request: DiskRequest,
        min_free: u64,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Store), StoreError> {
        let DiskRequest { path, endpoint, sup_ids } = request;
        let failed = |source| StoreError::Io { doing: "make a store in its folder", source };
        let is_new = !path.try_exists().map_err(failed)?;
        let folder = Arc::new(StoreFolder::take(&path)?);
        if !is_vacant(&path).map_err(failed)? {
            return Err(StoreError::Occupied { path: path.display().to_string() });
        }
        let fresh = Self { folder, is_new };
        match fresh.open(OpenRequest { endpoint, sup_ids }, clock) {
            Ok(store) => {
                let space = Arc::new(FreeSpace::of_folder(path, min_free));
                Ok((fresh, store.with_space(space)))
            }
            Err(error) => {
                fresh.discard();
                Err(error)
            }
        }
    }

    /// In a folder that may have a store, which it is to take the place of.
    pub(super) const fn within(folder: Arc<StoreFolder>) -> Self {
        Self { folder, is_new: false }
    }

    /// Opens the empty store. Blocks.
    pub(super) fn open(
        &self,
        request: OpenRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Store, StoreError> {
        let making = StoreFolder::take(&self.folder.path().join(swap::MAKING))?;
        StoreOpener::new(Arc::new(making)).open(request, clock)
    }

    /// Puts the store in its place, which is closed; whoever takes the folder next goes on with it where this ends
    /// too early. Blocks.
    pub fn put_in_place(self) -> io::Result<()> {
        swap::put_in_place(self.folder.path(), &mut || Ok(()))
    }

    /// Leaves the folder as it was. Blocks.
    pub fn discard(self) {
        let path = self.folder.path();
        // What is left is of no use to anybody, and in nobody's way.
        let _ = fs::remove_dir_all(path.join(swap::MAKING));
        if self.is_new {
            let _ = fs::remove_file(path.join(LOCK));
            let _ = fs::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use tidegate_core::clock::SystemClock;

    fn begin(path: &Path) -> Result<(FreshStore, Store), StoreError> {
        let request = DiskRequest::new(path, None);
        FreshStore::begin(request, 0, Arc::new(SystemClock))
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The folder stays the same one: it may be a mount point, in a folder that its user may not write to.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_store_is_made_within_its_folder_and_what_is_beside_it_stays() {
        use std::os::unix::fs::MetadataExt as _;
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("data");
        fs::create_dir_all(path.join("lost+found")).unwrap();
        fs::write(path.join("admin-token"), "token").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        // What is not put in place leaves nothing, and what somebody put there is in the way.
        let other = outer.path().join("other");
        let (fresh, store) = begin(&other).unwrap();
        store.close().await.unwrap();
        drop(store);
        fresh.discard();
        assert_eq!(names(outer.path()), ["data"]);
        assert!(matches!(begin(outer.path()), Err(StoreError::Occupied { .. })));
        fs::remove_file(outer.path().join(LOCK)).unwrap();
        // One that was ended by force left this.
        fs::create_dir(path.join(swap::MAKING)).unwrap();
        fs::write(path.join(swap::MAKING).join("db"), "half of it").unwrap();
        let (fresh, store) = begin(&path).unwrap();
        assert!(matches!(begin(&path), Err(StoreError::InUse { .. })));
        let endpoint = store.endpoint().clone();
        store.close().await.unwrap();
        drop(store);
        assert_eq!(names(outer.path()), ["data"]);
        assert!(is_vacant(&path).unwrap(), "nothing is there before it is whole");
        fresh.put_in_place().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
        assert_eq!(fs::read_to_string(path.join("admin-token")).unwrap(), "token");
        assert!(path.join("lost+found").is_dir() && !path.join(swap::MAKING).exists());
        assert!(matches!(begin(&path), Err(StoreError::Occupied { .. })));
        let store = Store::on_disk(&path, None, Arc::new(SystemClock)).unwrap();
        assert_eq!(store.endpoint(), &endpoint);
        store.close().await.unwrap();
    }
}
