//! What is missing of feeds and waits for a conclusion, read from a ledger once for each revision.

use super::AdminService;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedOptions, FeedRecord, FeedState, LedgerEntry, Revision};
use tidegate_judge::{self as judge, PENDING_SHOWN, PendingAbsence};
use tidegate_serve::{Cache, OperatorError};

/// How many items are remembered in all, at most [`PENDING_SHOWN`] of a feed.
const REMEMBERED: u64 = 16 * 1024;

/// What the items of a feed that wait are a function of.
type PendingKey = (FeedName, Revision, FeedOptions);
/// Those that are shown, what is decided first first, and how many there are.
type PendingItems = (Vec<LedgerEntry>, usize);

/// What was found in ledgers.
pub(super) struct AbsentItems(Cache<PendingKey, PendingItems>);

impl AbsentItems {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        let weigh = |waiting: &PendingItems| {
            u32::try_from(waiting.0.len()).unwrap_or(u32::MAX).saturating_add(1)
        };
        Self(Cache::weighing(REMEMBERED, weigh))
    }
}

impl AdminService {
    /// What waits in a feed, and how many do; `same` full observations agreed since the last commit.
    pub(super) async fn pending(
        &self,
        record: &FeedRecord,
        state: Option<&FeedState>,
        same: u32,
    ) -> Result<(Vec<PendingAbsence>, usize), OperatorError> {
        let Some(state) = state.filter(|state| state.next_decision_at.is_some()) else {
            return Ok((Vec::new(), 0));
        };
        let key = (record.name.clone(), state.revision, record.options.clone());
        let waiting = match self.absent.0.get(&key) {
            Some(waiting) => waiting,
            None => {
                let snapshot = self.store.snapshot(&record.name).await?;
                let Some(snapshot) = snapshot else { return Ok((Vec::new(), 0)) };
                let key = (record.name.clone(), snapshot.state.revision, record.options.clone());
                let waiting = Arc::new(judge::absent(&snapshot, &record.options, PENDING_SHOWN));
                self.absent.0.insert(key, Arc::clone(&waiting));
                waiting
            }
        };
        let (known, all) = &*waiting;
        let of = |known| PendingAbsence::new(known, &record.options, same);
        Ok((known.iter().filter_map(of).collect(), *all))
    }
}
