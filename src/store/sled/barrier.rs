//! The moment from which on something may be acknowledged.
//!
//! sled's blocking flush returns once its log is durable (`sync.c`); a sync of our own follows: a write that failed is
//! reported once to each who has the file open, and sled's own thread does not pass it on. Never `flush_async`, which
//! deadlocks beside transactions (sled issue 1308).
//!
//! In one case (the last writer of a buffer that another one sealed), sled 0.34 notes a failed write and does not
//! wake the threads that wait for it. The next flush finds the error and wakes them. So while a barrier is slow, a
//! watchdog flushes now and then.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

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
}

impl FlushAndSync {
    /// The barrier of the database in `folder`.
    pub(super) fn new(
        db: ::sled::Db,
        folder: &Path,
        opened_before: Option<File>,
    ) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(folder.join("db"))?;
        Ok(Self { db, file, opened_before })
    }

    /// Returns when everything written before the call would survive a loss of power.
    pub(super) fn pass(&mut self) -> io::Result<()> {
        let waking = self.db.clone();
        // Its result is not that of a barrier.
        let wake = move || drop(waking.flush());
        let flushed = watched(REFRESH_EVERY, wake, || self.db.flush());
        let flushed = flushed.map_err(|error| match error {
            ::sled::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        });
        flushed.and_then(|_| {
            self.file.sync_data()?;
            self.opened_before.take().map_or(Ok(()), |file| file.sync_data())
        })
    }
}

/// Runs `work`, and calls `wake`, which may block, after each `pause` until it is done.
fn watched<T>(
    pause: Duration,
    wake: impl Fn() + Send + Clone + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let (ends, ended) = channel::<()>();
    let watch = move || {
        let mut waking: Vec<JoinHandle<()>> = Vec::new();
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            waking.retain(|thread| !thread.is_finished());
            if waking.len() < AT_ONCE {
                waking.extend(std::thread::Builder::new().spawn(wake.clone()));
            }
        }
    };
    std::thread::scope(|scope| {
        // Dropped before the scope joins the watchdog, also by a panic.
        let _ends = ends;
        let watchdog = std::thread::Builder::new().name("store-watchdog".to_owned());
        // Where no thread can be made, this barrier goes without one.
        drop(watchdog.spawn_scoped(scope, watch));
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_barrier_that_takes_long_is_looked_at() {
        let (woken, count) = channel();
        let wake = move || {
            let _ = woken.send(());
        };
        let pause = Duration::from_millis(20);
        watched(Duration::from_secs(20), wake.clone(), || ());
        std::thread::sleep(3 * pause);
        assert!(count.try_recv().is_err());
        watched(pause, wake, || count.recv_timeout(Duration::from_secs(20))).unwrap();
    }
}
