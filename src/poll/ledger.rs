//! The ledger of the feed that a document is judged for, as far as the document needs it.

use super::judge::JudgeError;
use std::sync::Arc;
use tidegate_core::model::{Snapshot, WantedItems};
use tidegate_judge::record::{self, Observation, Verdict};
use tidegate_store::{PinnedFeed, StoreError};
use tokio::runtime::Handle;

/// Reads what a snapshot lacks of its ledger, at the snapshot's revision ([`PinnedFeed::read_more`]). Blocks.
pub trait LedgerReader {
    /// The snapshot with the items that are wanted; `None` where there are none that it lacks.
    fn read_more(
        &self,
        snapshot: &Snapshot,
        wanted: WantedItems,
    ) -> Result<Option<Snapshot>, StoreError>;
}

/// The reader of a snapshot that lacks nothing.
pub struct NothingLeft;

impl LedgerReader for NothingLeft {
    fn read_more(&self, _: &Snapshot, _: WantedItems) -> Result<Option<Snapshot>, StoreError> {
        Ok(None)
    }
}

/// Reads through a pinned feed, from a thread that may block.
pub(super) struct PinnedLedger {
    pub(super) reader: Arc<dyn PinnedFeed>,
    pub(super) runtime: Handle,
}

impl LedgerReader for PinnedLedger {
    fn read_more(
        &self,
        snapshot: &Snapshot,
        wanted: WantedItems,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.runtime.block_on(Arc::clone(&self.reader).read_more(snapshot, wanted))
    }
}

/// Judges until the verdict needs no more of the ledger than the snapshot has.
pub(super) fn judge_with(
    round: &Observation<'_>,
    ledger: &dyn LedgerReader,
    mut judge: impl FnMut(&Observation<'_>) -> Result<Verdict, JudgeError>,
) -> Result<Verdict, JudgeError> {
    let (mut more, mut looks) = (None, 0);
    loop {
        let round = &Observation { snapshot: more.as_ref().or(round.snapshot), ..*round };
        let verdict = judge(round)?;
        looks += 1;
        // Ends with the whole ledger, which lacks nothing.
        let wanted = record::wanted_after(round, &verdict, looks);
        let (Some(wanted), Some(snapshot)) = (wanted, round.snapshot) else { return Ok(verdict) };
        let Some(read) = ledger.read_more(snapshot, wanted)? else { return Ok(verdict) };
        more = Some(read);
    }
}
