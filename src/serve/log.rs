//! The change log as every door reads it: the newest epochs from memory, older ones from the store.

use crate::locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tidegate_store::{ClosedEpoch, Epoch, Store, StoreCondition, StoreError};
use tokio::sync::watch;

/// The most epochs kept in memory; fewer than the store keeps whatever their age.
const RECENT: usize = 512;
/// How many epochs are read from the store at once.
const BATCH: usize = 256;
/// How far back what is kept in memory begins.
const BEGIN: u64 = 64;

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
    store: Arc<dyn Store>,
    newest: watch::Receiver<Epoch>,
    /// The newest epochs, without a gap.
    recent: Mutex<VecDeque<Arc<ClosedEpoch>>>,
    /// One reader of what is new at a time; the others find it in memory.
    reading: tokio::sync::Mutex<()>,
}

impl ChangeLog {
    /// The log of this store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
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

    /// Has the log go on to what was durable when this was called, where other gateways write it as well.
    pub(super) async fn catch_up(&self) -> Result<(), StoreError> {
        self.store.catch_up().await
    }

    /// What of its store does not work, and which gateways share it.
    pub(super) fn condition(&self) -> StoreCondition {
        self.store.condition()
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
        if after == newest {
            return Ok(LogAfter::Epochs(Vec::new()));
        }
        if newest.0 - after.0 <= BEGIN
            || self.range().is_some_and(|(begin, _)| begin.0 <= after.0 + 1)
        {
            self.refresh(newest).await?;
            if let Some(epochs) = self.remembered(after, newest, limit) {
                return Ok(LogAfter::Epochs(epochs));
            }
        }
        let read = self.store.epochs_after(after, limit.min(BATCH)).await?;
        match read.first().map(|first| first.epoch) {
            Some(first) if first.0 != after.0 + 1 => Ok(LogAfter::Gone { oldest: first }),
            _ => {
                let seen = read.into_iter().take_while(|sealed| sealed.epoch <= newest);
                Ok(LogAfter::Epochs(seen.map(Arc::new).collect()))
            }
        }
    }

    /// The first and the last epoch that are remembered.
    fn range(&self) -> Option<(Epoch, Epoch)> {
        let recent = locked(&self.recent);
        Some((recent.front()?.epoch, recent.back()?.epoch))
    }

    fn remembered(
        &self,
        after: Epoch,
        newest: Epoch,
        limit: usize,
    ) -> Option<Vec<Arc<ClosedEpoch>>> {
        let recent = locked(&self.recent);
        let first = recent.front()?.epoch;
        if first.0 > after.0 + 1 {
            return None;
        }
        let begin = recent.partition_point(|sealed| sealed.epoch <= after);
        let found = recent.iter().skip(begin).take(limit);
        Some(found.take_while(|sealed| sealed.epoch <= newest).cloned().collect())
    }

    /// Reads what is new up to `newest` into memory.
    async fn refresh(&self, newest: Epoch) -> Result<(), StoreError> {
        if self.range().is_some_and(|(_, end)| end >= newest) {
            return Ok(());
        }
        let _turn = self.reading.lock().await;
        // What is kept ends nearer to the newest with each round; where it lies too far behind, it
        // begins anew.
        loop {
            let end = self
                .range()
                .map(|(_, end)| end)
                .filter(|end| newest.0.saturating_sub(end.0) <= BEGIN * 4);
            let from = end.unwrap_or(Epoch(newest.0.saturating_sub(BEGIN)));
            if from >= newest {
                return Ok(());
            }
            let read = self.store.epochs_after(from, BATCH).await?;
            let mut recent = locked(&self.recent);
            let follows = read.first().is_some_and(|first| first.epoch.0 == from.0 + 1);
            if end.is_none() || !follows {
                recent.clear();
            }
            let before = recent.len();
            recent.extend(read.into_iter().filter(|s| s.epoch <= newest).map(Arc::new));
            if recent.len() == before {
                return Ok(());
            }
            while recent.len() > RECENT {
                recent.pop_front();
            }
        }
    }
}
