//! What a gateway writes while another one reads everything.

use super::memory_change::MemoryChange;
use super::{DatabaseLook, FOLLOW, FollowedTo, LookAt, RecentWrites};
use crate::StoreError;
use crate::embedded::Records;
use std::io;
use std::time::Duration;

/// How often, and how far apart, it is looked whether what was read is durable.
const DURABLE_TRIES: (usize, Duration) = (100, Duration::from_millis(50));

/// What was written since a look.
pub(super) struct WrittenSince {
    change: MemoryChange,
    fence: i64,
    /// The last write of it.
    last: i64,
}

impl WrittenSince {
    pub(super) fn new(begun: &DatabaseLook) -> Self {
        // What was logged behind that may be in an epoch that is not closed.
        let last = begun.closed.min(begun.passed);
        Self { change: MemoryChange::default(), fence: begun.fence, last }
    }

    /// Takes what became durable. `None` where that is not known any more, or another gateway has taken the database.
    pub(super) fn read_notes(
        &mut self,
        records: &Records,
        look: &LookAt,
    ) -> Result<Option<DatabaseLook>, StoreError> {
        let mut seen = look(self.last)?;
        let recent = std::mem::replace(&mut seen.recent, RecentWrites::Forgotten);
        let RecentWrites::Noted { entries, reached } = recent else { return Ok(None) };
        if seen.fence != self.fence {
            return Ok(None);
        }
        self.change.apply_notes(records, entries)?;
        self.last = reached;
        Ok(Some(seen))
    }

    /// The same once all up to the write `end` is durable, with the look that says so, and up to where that is.
    pub(super) fn finish_at(
        mut self,
        end: i64,
        records: &Records,
        look: &LookAt,
    ) -> Result<Option<(MemoryChange, DatabaseLook, FollowedTo)>, StoreError> {
        for _ in 0..DURABLE_TRIES.0 {
            let Some(seen) = self.read_notes(records, look)? else { return Ok(None) };
            if self.last >= end {
                let at = FollowedTo { fence: seen.fence, claim: seen.claim, write: self.last };
                return Ok(Some((self.change, seen, at)));
            }
            if self.last >= seen.passed {
                std::thread::sleep(DURABLE_TRIES.1);
            }
        }
        let source = io::Error::other("what it wrote last does not become durable");
        Err(StoreError::Io { doing: FOLLOW, source })
    }
}
