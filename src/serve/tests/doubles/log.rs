//! A change log that tests write.

use super::{at, name, tick};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tidegate_core::model::Revision;
use tidegate_store::{ClosedEpoch, Epoch, LoggedChange};
use tokio::sync::watch;

#[derive(Default)]
pub(in crate::tests) struct TestLog {
    epochs: Mutex<Vec<ClosedEpoch>>,
    sealed: watch::Sender<Epoch>,
    /// How often it was read.
    pub(in crate::tests) reads: AtomicUsize,
    /// Nobody is answered who reads it.
    pub(in crate::tests) is_silent: AtomicBool,
}

impl TestLog {
    /// Closes an epoch `seconds` from the time at which tests begin; answers its number.
    pub(in crate::tests) fn close(&self, seconds: i64, feeds: &[&str]) -> u64 {
        let mut epochs = self.epochs.lock().unwrap();
        let epoch = Epoch(self.sealed.borrow().0 + 1);
        let changed = |feed: &&str| LoggedChange {
            feed: name(feed),
            tick: tick(seconds),
            revision: Revision(epoch.0),
            versions: 1,
        };
        let changes = feeds.iter().map(changed).collect();
        epochs.push(ClosedEpoch { epoch, at: at(seconds), changes });
        drop(epochs);
        self.sealed.send_replace(epoch);
        epoch.0
    }

    /// Takes the oldest epochs out.
    pub(in crate::tests) fn trim(&self, count: usize) {
        self.epochs.lock().unwrap().drain(..count);
    }

    pub(super) fn epochs_after(&self, after: Epoch, limit: usize) -> Vec<ClosedEpoch> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let epochs = self.epochs.lock().unwrap();
        epochs.iter().filter(|sealed| sealed.epoch > after).take(limit).cloned().collect()
    }

    pub(super) fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.sealed.subscribe()
    }
}
