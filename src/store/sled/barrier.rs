//! The moment from which on something may be acknowledged.
//!
//! sled's blocking flush returns once its log is durable (`sync.c`); a sync of our own follows: a write that failed is
//! reported once to each who has the file open, and sled's own thread does not pass it on. Never `flush_async`, which
//! deadlocks beside transactions (sled issue 1308).
//!
//! In one case (the last writer of a buffer that another one sealed), sled 0.34 notes a failed write and does not
//! wake the threads that wait for it. The next flush finds the error and wakes them. So while a barrier is slow, a
//! watchdog flushes now and then.

use scopeguard::{ScopeGuard, guard};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// How long a barrier may take before the watchdog flushes, and how often it does so then.
const REFRESH_EVERY: Duration = Duration::from_secs(2);
/// The most flushes at a time: on a slow disk each of them waits as well.
const AT_ONCE: usize = 4;

/// The durability barrier of a database.
pub(super) struct FlushAndSync {
    db: ::sled::Db,
    file: File,
    /// The file of the database, opened before the engine opens it, until the first barrier: the system reports lost
    /// writes once to each open file, and the engine does not pass that on.
    opened_before: Option<File>,
    watchdog: Watchdog,
}

impl FlushAndSync {
    /// The barrier of the database in `folder`.
    pub(super) fn new(
        db: ::sled::Db,
        folder: &Path,
        opened_before: Option<File>,
    ) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(folder.join("db"))?;
        let waking = db.clone();
        // Its result is not that of a barrier.
        let watchdog = Watchdog::new(REFRESH_EVERY, move || drop(waking.flush()))?;
        Ok(Self { db, file, opened_before, watchdog })
    }

    /// Returns when everything written before the call would survive a loss of power.
    pub(super) fn pass(&mut self) -> io::Result<()> {
        let _watch = self.watchdog.watch();
        let flushed = self.db.flush().map_err(|error| match error {
            ::sled::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        });
        flushed.and_then(|_| {
            self.file.sync_data()?;
            self.opened_before.take().map_or(Ok(()), |file| file.sync_data())
        })
    }
}

/// A thread that watches for slow barriers.
struct Watchdog {
    /// When the running barrier began.
    begun: Arc<Mutex<Option<Instant>>>,
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Checks after each `pause`, and calls `wake`, which may block.
    fn new(pause: Duration, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        let (ends, ended) = channel::<()>();
        let begun: Arc<Mutex<Option<Instant>>> = Arc::default();
        let (since, wake) = (Arc::clone(&begun), Arc::new(wake));
        let watch = move || {
            let mut asking: Vec<JoinHandle<()>> = Vec::new();
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                asking.retain(|thread| !thread.is_finished());
                let begun = *since.lock().unwrap_or_else(PoisonError::into_inner);
                let is_slow = begun.is_some_and(|begun| begun.elapsed() >= pause);
                if is_slow && asking.len() < AT_ONCE {
                    let wake = Arc::clone(&wake);
                    let thread = std::thread::Builder::new().spawn(move || wake());
                    asking.extend(thread);
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-watchdog".to_owned()).spawn(watch)?;
        Ok(Self { begun, ends: Some(ends), thread: Some(thread) })
    }

    /// Watches a barrier until the guard is dropped, also by a panic.
    fn watch(&self) -> ScopeGuard<&Self, fn(&Self)> {
        self.note_barrier(Some(Instant::now()));
        guard(self, |dog| dog.note_barrier(None))
    }

    /// Sets the beginning of a barrier, or that it is over.
    fn note_barrier(&self, begun: Option<Instant>) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ends = None;
        drop(self.thread.take().map(JoinHandle::join));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn only_a_barrier_that_takes_long_is_looked_at() {
        let (woken, count) = channel();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let pause = Duration::from_millis(10);
        let dog = Watchdog::new(pause, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = woken.send(());
        });
        let dog = dog.unwrap();
        drop(dog.watch());
        std::thread::sleep(5 * pause);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        let _watch = dog.watch();
        count.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
