//! How much space the file system of a store has left, and when that is too little.

use super::disk::files::folder_bytes;
use super::{FreeBytes, StoreError};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Of a small file system, one part in so many must stay free: 2 %.
const SMALL_PART: u64 = 50;
/// Once space was low, the limit and this part of it must be free before anything is taken in again:
/// a quarter.
const RESUME_PART: u64 = 4;

/// A file system as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredSpace {
    /// The bytes that this process may still write.
    pub free: u64,
    /// All its bytes.
    pub total: u64,
}

type Measure = dyn Fn() -> io::Result<MeasuredSpace> + Send + Sync;

/// Watches the space of one file system. Whoever owns it measures now and then; everybody else reads
/// what was measured last.
pub struct FreeSpace {
    min_free: u64,
    measure: Box<Measure>,
    last: Mutex<Option<FreeBytes>>,
    /// Whose files are counted.
    folder: Option<PathBuf>,
    used: Mutex<Option<u64>>,
}

impl FreeSpace {
    /// Of the file system that has the folder `path`. `min_free`: the bytes that must stay free; of a
    /// small file system 2 %, where that is less.
    pub fn of_folder(path: PathBuf, min_free: u64) -> Self {
        let folder = Some(path.clone());
        let measured = Self::measured_by(min_free, move || {
            let system = rustix::fs::statvfs(&path)?;
            let bytes = |blocks: u64| blocks.saturating_mul(system.f_frsize);
            Ok(MeasuredSpace { free: bytes(system.f_bavail), total: bytes(system.f_blocks) })
        });
        Self { folder, ..measured }
    }

    /// The same, measured by `measure`: the seam for tests.
    pub fn measured_by(
        min_free: u64,
        measure: impl Fn() -> io::Result<MeasuredSpace> + Send + Sync + 'static,
    ) -> Self {
        let measure = Box::new(measure);
        Self { min_free, measure, last: Mutex::default(), folder: None, used: Mutex::default() }
    }

    /// Measures, and logs where it begins or ends that space is low. What cannot be measured stays as
    /// it was. Blocks.
    pub fn measure(&self) {
        let MeasuredSpace { free, total } = match (self.measure)() {
            Ok(measured) => measured,
            Err(error) => {
                return tracing::warn!(%error, "the free space of the data folder is unknown");
            }
        };
        let limit = self.min_free.min(total / SMALL_PART);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let was_low = last.is_some_and(|last| last.is_low);
        let needed = if was_low { limit.saturating_add(limit / RESUME_PART) } else { limit };
        let is_low = free < needed;
        if is_low && !was_low {
            tracing::error!(free, limit, "{}", super::condition::low_space(free, limit));
        } else if was_low && !is_low {
            tracing::warn!(free, limit, "there is space again: everything is taken in as usual");
        }
        *last = Some(FreeBytes { free, limit, is_low });
    }

    /// Measures, and refuses what is new where space is low. Blocks.
    pub fn check(&self) -> Result<(), StoreError> {
        self.measure();
        self.last().as_ref().map_or(Ok(()), FreeBytes::check)
    }

    /// Counts the bytes that the files of the folder take. Where that fails, because a file goes
    /// meanwhile, they stay as they were. Blocks.
    pub fn measure_used(&self) {
        if let Some(Ok(used)) = self.folder.as_deref().map(folder_bytes) {
            *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(used);
        }
    }

    /// The bytes that the files of the folder took when they were counted last.
    pub fn used(&self) -> Option<u64> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was measured last.
    pub fn last(&self) -> Option<FreeBytes> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MIB: u64 = 1 << 20;

    fn watched(min_free: u64, total: u64) -> (FreeSpace, Arc<AtomicU64>) {
        let free = Arc::new(AtomicU64::new(total));
        let left = Arc::clone(&free);
        let measure = move || match left.load(Ordering::SeqCst) {
            u64::MAX => Err(io::Error::other("it does not answer")),
            free => Ok(MeasuredSpace { free, total }),
        };
        (FreeSpace::measured_by(min_free, measure), free)
    }

    fn is_low(space: &FreeSpace, free: &AtomicU64, bytes: u64) -> bool {
        free.store(bytes, Ordering::SeqCst);
        space.measure();
        space.last().unwrap().is_low
    }

    #[test]
    fn space_is_low_below_the_limit_until_a_quarter_more_is_free() {
        let (space, free) = watched(256 * MIB, 1 << 40);
        assert_eq!(space.last(), None);
        assert!(!is_low(&space, &free, 256 * MIB));
        assert!(is_low(&space, &free, 256 * MIB - 1));
        assert!(is_low(&space, &free, 320 * MIB - 1));
        assert!(!is_low(&space, &free, 320 * MIB));
        assert!(!is_low(&space, &free, 256 * MIB));
        assert_eq!(space.last().unwrap().limit, 256 * MIB);
    }

    #[test]
    fn a_small_file_system_keeps_two_parts_in_a_hundred() {
        let (space, free) = watched(256 * MIB, 100 * MIB);
        assert!(!is_low(&space, &free, 2 * MIB));
        assert!(is_low(&space, &free, 2 * MIB - 1));
        let (off, free) = watched(0, 100 * MIB);
        assert!(!is_low(&off, &free, 0));
    }

    #[test]
    fn what_cannot_be_measured_stays_as_it_was() {
        let (space, free) = watched(256 * MIB, 1 << 40);
        assert!(is_low(&space, &free, MIB));
        let before = space.last();
        assert!(is_low(&space, &free, u64::MAX));
        assert_eq!(space.last(), before);
    }

    #[test]
    fn a_folder_that_is_there_can_be_measured() {
        let folder = tempfile::tempdir().unwrap();
        let space = FreeSpace::of_folder(folder.path().to_owned(), 0);
        space.measure();
        assert!(space.last().is_some_and(|last| !last.is_low));
        assert_eq!(space.used(), None);
        space.measure_used();
        assert_eq!(space.used(), Some(0));
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/file"), [7; 5000]).unwrap();
        space.measure_used();
        assert_eq!(space.used(), Some(5000));
        let missing = FreeSpace::of_folder(folder.path().join("none"), 0);
        missing.measure();
        missing.measure_used();
        assert_eq!((missing.last(), missing.used()), (None, None));
    }
}
