//! Wakes who waits in the engine for a write that has failed.
//!
//! sled 0.34 notes a failed write for all to see, but on one way (the last writer of a buffer that somebody
//! else sealed) it wakes nobody who waits for that write. Whoever asks it to flush then notices the error,
//! and wakes the others. So while a barrier takes long, somebody asks now and then.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::Instant;

/// How long a barrier may take before it is looked at, and how often after that.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How many may ask at a time: on a disk that is merely slow, each of them waits too.
const AT_ONCE: usize = 4;

/// Looks after the barriers of one database.
pub(super) struct Watchdog {
    begun: Arc<Mutex<Option<Instant>>>,
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A barrier that is watched until this is dropped.
pub(super) struct Watched<'a>(&'a Watchdog);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        *self.0.begun.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Watchdog {
    /// One that calls `wake`, which may block, in a thread of its own.
    pub(super) fn new(wake: impl Fn() + Send + Sync + 'static) -> std::io::Result<Self> {
        Self::every(LOOK_EVERY, wake)
    }

    fn every(pause: Duration, wake: impl Fn() + Send + Sync + 'static) -> std::io::Result<Self> {
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

    /// Watches a barrier that begins.
    pub(super) fn watch(&self) -> Watched<'_> {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Watched(self)
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
        let dog = Watchdog::every(pause, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = woken.send(());
        });
        let dog = dog.unwrap();
        drop(dog.watch());
        std::thread::sleep(5 * pause);
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        let watched = dog.watch();
        count.recv_timeout(Duration::from_secs(20)).unwrap();
        drop(watched);
        drop(dog);
    }
}
