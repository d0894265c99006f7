//! The space that the file system of a store has left, and the limits on it.

use super::disk::files::folder_bytes;
use super::{SpaceReading, SpaceStatus, StoreError};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The share of a small file system that must stay free: one part in 50.
const SMALL_PART: u64 = 50;
/// After a shortage, this part of the limit must be free on top of it: a quarter.
const RESUME_PART: u64 = 4;
/// After the data folder reached its limit, one part in 20 of the limit must be free below it.
const RESUME_BELOW: u64 = 20;
/// With less than one part in 10 of the limit left, the past is pruned at once.
const NEAR_PART: u64 = 10;

/// How much space must stay free, and how much may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLimits {
    /// The bytes that must stay free; of a small file system 2 %, where that is less.
    pub min_free: u64,
    /// The bytes that the data folder may take; `None`: as many as there are.
    pub max_size: Option<u64>,
}

/// A file system as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredSpace {
    /// The bytes that this process may still write.
    pub free: u64,
    /// All its bytes.
    pub total: u64,
}

type Measure = dyn Fn() -> io::Result<MeasuredSpace> + Send + Sync;

/// Watches the space of one file system. Its owner measures now and then; other users read the last measurement.
pub struct FreeSpace {
    limits: Mutex<SpaceLimits>,
    measure: Box<Measure>,
    /// The folder whose files are counted.
    folder: Option<PathBuf>,
    status: Mutex<SpaceStatus>,
    /// Notifies pruning that the folder is near its limit.
    near: Notify,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FreeSpace {
    /// Watches the file system of the folder `path`. `min_free`: the bytes that must stay free; of a small file
    /// system 2 %, where that is less.
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
        let limits = Mutex::new(SpaceLimits { min_free, max_size: None });
        Self { limits, measure, folder: None, status: Mutex::default(), near: Notify::new() }
    }

    /// Goes by these limits from now on. Blocks: measures anew.
    pub fn set_limits(&self, limits: SpaceLimits) {
        *locked(&self.limits) = limits;
        self.measure();
        self.measure_used();
    }

    /// Whether there is a limit on what the folder takes.
    pub fn has_size_limit(&self) -> bool {
        locked(&self.limits).max_size.is_some()
    }

    /// Waits until the folder comes near the limit on its size.
    pub async fn near_limit(&self) {
        self.near.notified().await;
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
        let limit = locked(&self.limits).min_free.min(total / SMALL_PART);
        let mut status = locked(&self.status);
        let was_low = status.free.is_some_and(|last| last.is_short);
        let needed = if was_low { limit.saturating_add(limit / RESUME_PART) } else { limit };
        let now = SpaceReading { bytes: free, limit, is_short: free < needed };
        let over = "there is space again: everything is taken in as usual";
        note_reading(&mut status.free, now, SpaceReading::too_little_free, over);
    }

    /// Measures, and refuses new content while space is low. Blocks.
    pub fn check(&self) -> Result<(), StoreError> {
        self.measure();
        self.check_last()
    }

    /// Refuses what is new where space was low when it was measured last.
    pub(super) fn check_last(&self) -> Result<(), StoreError> {
        self.status().check()
    }

    /// Counts the bytes that the files of the folder take. Where that fails, because a file goes
    /// meanwhile, they stay as they were. Blocks.
    pub fn measure_used(&self) {
        if let Some(Ok(used)) = self.folder.as_deref().map(folder_bytes) {
            self.note_used(used);
        }
    }

    /// Compares what the folder takes with what it may take, and logs where that begins or ends to be too much.
    fn note_used(&self, used: u64) {
        let (mut status, limit) = (locked(&self.status), locked(&self.limits).max_size);
        status.used = Some(used);
        let taken = &mut status.taken;
        let Some(limit) = limit else {
            *taken = None;
            return;
        };
        let near = limit - limit / NEAR_PART;
        if used >= near && taken.is_none_or(|before| before.bytes < near) {
            self.near.notify_one();
        }
        let was_over = taken.is_some_and(|taken| taken.is_short);
        let bound = if was_over { limit - limit / RESUME_BELOW } else { limit };
        let now = SpaceReading { bytes: used, limit, is_short: used >= bound };
        let over = "the data folder takes less: everything is taken in as usual";
        note_reading(taken, now, SpaceReading::too_much_taken, over);
    }

    /// What was measured last.
    pub(super) fn status(&self) -> SpaceStatus {
        *locked(&self.status)
    }
}

/// Notes a reading, and logs where a shortage begins or is over.
fn note_reading(
    last: &mut Option<SpaceReading>,
    now: SpaceReading,
    shortage: fn(SpaceReading) -> String,
    over: &str,
) {
    let was_short = last.replace(now).is_some_and(|last| last.is_short);
    let SpaceReading { bytes, limit, is_short } = now;
    if is_short && !was_short {
        tracing::error!(bytes, limit, "{}", shortage(now));
    } else if was_short && !is_short {
        tracing::warn!(bytes, limit, "{over}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const MIB: u64 = 1 << 20;

    /// After a shortage a quarter more than the limit must be free.
    #[test]
    fn space_is_low_below_the_limit_or_two_parts_in_a_hundred_of_a_small_file_system() {
        const LIMIT: u64 = 256 * MIB;
        type Case = (u64, u64, &'static [(u64, bool)]);
        let large: &[(u64, bool)] = &[
            (LIMIT, false),
            (LIMIT - 1, true),
            (320 * MIB - 1, true),
            (320 * MIB, false),
            (LIMIT, false),
        ];
        let cases: [Case; 4] = [
            (LIMIT, 1 << 40, large),
            (LIMIT, 100 * MIB, &[(2 * MIB, false), (2 * MIB - 1, true)]),
            (0, 100 * MIB, &[(0, false)]),
            // What cannot be measured stays as it was.
            (LIMIT, 1 << 40, &[(MIB, true), (u64::MAX, true)]),
        ];
        for (min_free, total, readings) in cases {
            let left = Arc::new(AtomicU64::new(total));
            let free = Arc::clone(&left);
            let space = FreeSpace::measured_by(min_free, move || {
                let free = free.load(Ordering::SeqCst);
                let unknown = || io::Error::other("it does not answer");
                Some(MeasuredSpace { free, total }).filter(|_| free != u64::MAX).ok_or_else(unknown)
            });
            assert_eq!(space.status().free, None);
            for (reading, is_low) in readings {
                left.store(*reading, Ordering::SeqCst);
                space.measure();
                let free = space.status().free.unwrap();
                assert_eq!(free.is_short, *is_low, "{reading} of {total}");
                assert_eq!(free.limit, min_free.min(total / SMALL_PART));
                assert!(free.bytes == *reading || *reading == u64::MAX && free.bytes == MIB);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_size_of_the_folder_has_a_limit_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let space = FreeSpace::of_folder(folder.path().to_owned(), 0);
        let is_near = async || {
            let wait = std::time::Duration::from_secs(1);
            tokio::time::timeout(wait, space.near_limit()).await.is_ok()
        };
        let missing = FreeSpace::of_folder(folder.path().join("none"), 0);
        for space in [&space, &missing] {
            space.measure();
            space.measure_used();
        }
        assert!(space.status().free.is_some_and(|last| !last.is_short));
        assert_eq!((space.status().used, space.status().taken), (Some(0), None), "no limit");
        assert_eq!((missing.status().free, missing.status().used), (None, None));
        std::fs::create_dir(folder.path().join("below")).unwrap();
        let takes = |bytes: usize| {
            std::fs::write(folder.path().join("below/file"), vec![7; bytes]).unwrap();
            space.measure_used();
            space.status().taken.unwrap().is_short
        };
        space.set_limits(SpaceLimits { min_free: 0, max_size: Some(100_000) });
        assert!(!takes(89_999) && !is_near().await);
        // Who prunes is told once.
        assert!(!takes(90_000) && is_near().await);
        assert!(!takes(99_999) && space.check().is_ok() && !is_near().await);
        assert!(takes(100_000));
        let said = space.check().unwrap_err().to_string();
        assert!(said.contains("store.max_size") && said.contains("takes 97.6 KiB"), "{said}");
        assert!(takes(95_000), "not before 5 % are free again");
        assert!(!takes(94_999) && !takes(99_999));
        assert!(takes(100_000));
        space.set_limits(SpaceLimits { min_free: 0, max_size: Some(200_000) });
        assert!(space.check().is_ok(), "the limit was raised");
        space.set_limits(SpaceLimits { min_free: 0, max_size: None });
        assert_eq!(space.status().taken, None);
    }
}
