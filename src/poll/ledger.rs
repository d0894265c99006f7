//! The ledger of the feed that a document is judged for, as far as the document needs it.

use super::judge::JudgeError;
use crate::model::{FeedDocument, FoundItems, LedgerQuery, Snapshot};
use crate::record::{self, LEDGER_LOOKS, Observation, Verdict, WantedItems};
use crate::store::{PinnedFeed, StoreError};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Reads what a snapshot lacks of its ledger, at the snapshot's revision. Blocks.
pub trait LedgerReader {
    /// What a query finds.
    fn find(&self, query: LedgerQuery) -> Result<FoundItems, StoreError>;

    /// The snapshot with its whole ledger; `None` where the feed was purged meanwhile.
    fn read_whole(&self) -> Result<Option<Snapshot>, StoreError>;
}

/// The reader of a snapshot that lacks nothing.
pub struct NothingLeft;

impl LedgerReader for NothingLeft {
    fn find(&self, _query: LedgerQuery) -> Result<FoundItems, StoreError> {
        Ok(FoundItems::default())
    }

    fn read_whole(&self) -> Result<Option<Snapshot>, StoreError> {
        Ok(None)
    }
}

/// Reads through a pinned feed, from a thread that may block.
pub(super) struct PinnedLedger {
    pub(super) reader: Arc<dyn PinnedFeed>,
    pub(super) runtime: Handle,
}

impl LedgerReader for PinnedLedger {
    fn find(&self, query: LedgerQuery) -> Result<FoundItems, StoreError> {
        self.runtime.block_on(Arc::clone(&self.reader).find_items(query))
    }

    fn read_whole(&self) -> Result<Option<Snapshot>, StoreError> {
        self.runtime.block_on(Arc::clone(&self.reader).snapshot())
    }
}

/// The snapshot that a document is judged with, where that of the round lacks something that it needs.
pub(super) fn snapshot_for(
    round: &Observation<'_>,
    document: &FeedDocument<'_>,
    ledger: &dyn LedgerReader,
) -> Result<Option<Snapshot>, StoreError> {
    read(round, record::ledger_query(round, document), ledger)
}

/// Judges until the verdict needs no more of the ledger than the snapshot has.
pub(super) fn judge_with(
    round: &Observation<'_>,
    ledger: &dyn LedgerReader,
    mut judge: impl FnMut(&Observation<'_>) -> Result<Verdict, JudgeError>,
) -> Result<Verdict, JudgeError> {
    let mut more = None;
    for _ in 0..LEDGER_LOOKS {
        let round = &Observation { snapshot: more.as_ref().or(round.snapshot), ..*round };
        let verdict = judge(round)?;
        let wanted = record::wanted_after(round, &verdict);
        match wanted.map(|wanted| read(round, wanted, ledger)).transpose()?.flatten() {
            Some(snapshot) => more = Some(snapshot),
            None => return Ok(verdict),
        }
    }
    let whole = read(round, WantedItems::Whole, ledger)?;
    judge(&Observation { snapshot: whole.as_ref().or(round.snapshot), ..*round })
}

/// The snapshot of the round with the items that are wanted; `None` where there are none.
fn read(
    round: &Observation<'_>,
    wanted: WantedItems,
    ledger: &dyn LedgerReader,
) -> Result<Option<Snapshot>, StoreError> {
    let Some(snapshot) = round.snapshot else { return Ok(None) };
    match wanted {
        WantedItems::Whole => Ok(ledger.read_whole()?.map(|whole| whole.with_evicted(snapshot))),
        WantedItems::Found(query) if query.is_empty() => Ok(None),
        WantedItems::Found(query) => Ok(snapshot.with_found(ledger.find(query)?)),
    }
}
