//! The change log as every door reads it: the newest epochs from memory, older ones from the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_store::{ClosedEpoch, Epoch, Store, StoreCondition, StoreError};
use tokio::sync::watch;
use tokio::time::timeout;

/// The most epochs kept in memory; fewer than the store keeps whatever their age.
const RECENT: usize = 512;
/// How many epochs are read from the store at once.
const BATCH: usize = 256;
/// How far back what is kept in memory begins.
const BEGIN: u64 = 64;

/// How many epochs another gateway may have told of that this one does not know, and how long that may last.
const TOLD_AHEAD: u64 = 64;
const TOLD_WAIT: Duration = Duration::from_secs(5);
/// How long the store may take to answer after that; with [`TOLD_WAIT`], well within the time of an answer of `/changes`.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

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
        let newest = store.watch_epochs();
        Self { store, newest, recent: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    /// The newest epoch, and a wake-up for each new one.
    pub(super) fn watch(&self) -> watch::Receiver<Epoch> {
        self.store.watch_epochs()
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

    /// Waits for a moment for an epoch that is to come next. Another gateway over the same store may have told of it before
    /// this one, which wrote it, learned that it is durable. An error where this one may still have to learn it.
    pub(super) async fn until_reached(&self, epoch: Epoch) -> Result<(), StoreError> {
        let ahead = epoch.0.saturating_sub(self.newest().0);
        if ahead == 0 {
            return Ok(());
        }
        let condition = self.store.condition();
        if ahead > TOLD_AHEAD {
            // Another gateway may write since, for as long as this one has not heard of its database.
            let is_unsure = condition.stop.is_some() || condition.unanswered.is_some();
            return if is_unsure { self.check_answers().await } else { Ok(()) };
        }
        // A store that has stopped does not say which other gateways there are.
        if condition.gateways.is_empty() && condition.stop.is_none() {
            return Ok(());
        }
        let mut newest = self.store.watch_epochs();
        let reached = newest.wait_for(|newest| *newest >= epoch);
        if matches!(timeout(TOLD_WAIT, reached).await, Ok(Ok(_))) {
            return Ok(());
        }
        self.check_answers().await
    }

    /// An error where the store has stopped, or its database is silent: what is durable may be more than it shows.
    async fn check_answers(&self) -> Result<(), StoreError> {
        let unseen = |silent: Duration| StoreError::Unseen { seconds: silent.as_secs() };
        if let Some(silent) = self.store.condition().unanswered {
            return Err(unseen(silent));
        }
        // The newest epoch alone: nothing is read of what comes after it.
        let before = Epoch(self.newest().0.saturating_sub(1));
        match timeout(ANSWER_WAIT, self.store.epochs_after(before, 1)).await {
            Ok(read) => read.map(drop),
            Err(_) => Err(unseen(ANSWER_WAIT)),
        }
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
        if newest.0 - after.0 <= BEGIN || self.begins().is_some_and(|begin| begin.0 <= after.0 + 1)
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

    fn begins(&self) -> Option<Epoch> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.front().map(|first| first.epoch)
    }

    fn ends(&self) -> Option<Epoch> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.back().map(|last| last.epoch)
    }

    fn remembered(
        &self,
        after: Epoch,
        newest: Epoch,
        limit: usize,
    ) -> Option<Vec<Arc<ClosedEpoch>>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
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
        if self.ends().is_some_and(|end| end >= newest) {
            return Ok(());
        }
        let _turn = self.reading.lock().await;
        // What is kept ends nearer to the newest with each round; where it lies too far behind, it
        // begins anew.
        loop {
            let end = self.ends().filter(|end| newest.0.saturating_sub(end.0) <= BEGIN * 4);
            let from = end.unwrap_or(Epoch(newest.0.saturating_sub(BEGIN)));
            if from >= newest {
                return Ok(());
            }
            let read = self.store.epochs_after(from, BATCH).await?;
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
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
