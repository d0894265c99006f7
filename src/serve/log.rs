//! The change log as every door reads it: the newest epochs from memory, older ones from the store.

use crate::locked;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, Mutex};
use tidegate_store::{ClosedEpoch, Epoch, Store, StoreError};
use tokio::sync::watch;

/// The most epochs kept in memory; fewer than the store keeps whatever their age.
const RECENT: usize = 512;
/// How many epochs are read from the store at once.
const BATCH: usize = 256;
/// Who is no further behind than this reads into memory.
const NEAR: u64 = 256;

/// What there is after an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogAfter {
    /// The epochs that follow, oldest first, without a gap; none: there is nothing newer.
    Epochs(Vec<Arc<ClosedEpoch>>),
    /// What follows is not kept any more; this is the oldest that is.
    Gone {
        /// The oldest epoch that is kept.
        oldest: Epoch,
    },
    /// There was never such an epoch: the store was put back to an older copy, or is another one.
    Ahead,
}

pub(super) struct ChangeLog {
    pub(super) store: Arc<Store>,
    newest: watch::Receiver<Epoch>,
    /// The newest epochs that were read.
    recent: Mutex<BTreeMap<Epoch, Arc<ClosedEpoch>>>,
    /// One reader at a time; the others find in memory what it read.
    reading: tokio::sync::Mutex<()>,
}

impl ChangeLog {
    /// The log of this store.
    pub(super) fn new(store: Arc<Store>) -> Self {
        let newest = store.watch_announced();
        Self { store, newest, recent: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    /// The newest epoch, and a wake-up for each new one.
    pub(super) fn watch(&self) -> watch::Receiver<Epoch> {
        self.store.watch_announced()
    }

    /// The opening by which a place up to this epoch is named ([`Lineage::mark_at`]).
    ///
    /// [`Lineage::mark_at`]: tidegate_core::model::Lineage::mark_at
    pub(super) fn mark(&self, epoch: Epoch) -> Option<u32> {
        self.store.lineage().mark_at(epoch.0, self.newest().0)
    }

    /// Whether all up to this epoch, as the opening `mark` gave it out, is what this log says as well.
    /// Without a mark nothing is known but the beginning.
    pub(super) fn knows(&self, mark: Option<u32>, epoch: Epoch) -> bool {
        let lineage = self.store.lineage();
        match mark {
            Some(mark) => lineage.reaches(mark, epoch.0, self.newest().0),
            None => epoch == Epoch(0) || lineage.stretches().is_empty(),
        }
    }

    /// The newest epoch.
    pub(super) fn newest(&self) -> Epoch {
        *self.newest.borrow()
    }

    /// Has an epoch known that another gateway over the same store may have told of. An error where there may be more than
    /// is known here, and it cannot be seen.
    pub(super) async fn until_reached(&self, epoch: Epoch) -> Result<(), StoreError> {
        if epoch <= self.newest() {
            return Ok(());
        }
        if self.store.condition().stop.is_some() {
            self.store.epochs_after(self.newest(), 1).await?;
        }
        self.store.catch_up().await?;
        // It is told here as well within a moment; one that is not there is waited for by nobody.
        let wanted = epoch.min(*self.store.watch_epochs().borrow());
        let told = self.watch().wait_for(|told| *told >= wanted).await.map(drop);
        told.map_err(|_| StoreError::Closed)
    }

    /// The epochs after `after`, at most `limit` (and at most what is read at once).
    pub(super) async fn after(&self, after: Epoch, limit: usize) -> Result<LogAfter, StoreError> {
        let newest = self.newest();
        if after > newest {
            return Ok(LogAfter::Ahead);
        }
        let known = self.remembered(after, newest, limit);
        if after == newest || !known.is_empty() {
            return Ok(LogAfter::Epochs(known));
        }
        // Who is far behind reads alone: nobody waits for that, and it takes the place of nothing in memory.
        let is_near = newest.0.saturating_sub(after.0) <= NEAR;
        let _turn = if is_near { Some(self.reading.lock().await) } else { None };
        let known = self.remembered(after, newest, limit);
        if !known.is_empty() {
            return Ok(LogAfter::Epochs(known));
        }
        let most = if is_near { BATCH } else { limit.min(BATCH) };
        let read = self.store.epochs_after(after, most).await?;
        match read.first().map(|first| first.epoch) {
            Some(oldest) if oldest.0 != after.0 + 1 => return Ok(LogAfter::Gone { oldest }),
            _ => {}
        }
        let seen = read.into_iter().take_while(|sealed| sealed.epoch <= newest).map(Arc::new);
        let seen: Vec<_> = seen.collect();
        if is_near {
            let mut recent = locked(&self.recent);
            recent.extend(seen.iter().map(|sealed| (sealed.epoch, Arc::clone(sealed))));
            while recent.len() > RECENT {
                recent.pop_first();
            }
        }
        Ok(LogAfter::Epochs(seen.into_iter().take(limit).collect()))
    }

    /// What is in memory of the epochs after `after`, without a gap.
    fn remembered(&self, after: Epoch, newest: Epoch, limit: usize) -> Vec<Arc<ClosedEpoch>> {
        if after >= newest {
            return Vec::new();
        }
        let recent = locked(&self.recent);
        let later = recent.range((Excluded(after), Included(newest))).zip(after.0 + 1..);
        let following = later.take_while(|((epoch, _), next)| epoch.0 == *next);
        following.take(limit).map(|((_, sealed), _)| Arc::clone(sealed)).collect()
    }
}
