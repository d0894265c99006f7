//! What the committer changes of a store's identity: where it goes on from, and where its running time stands.

use super::committer::{CommitGroup, Committer};
use super::open;
use crate::{StoreError, StoreOrigin};
use std::sync::PoisonError;
use tidegate_core::model::Time;

impl Committer {
    /// Goes on where another store was.
    pub(super) fn go_on_from(
        &mut self,
        origin: &StoreOrigin,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let mut lineage = origin.lineage.clone();
        lineage.open(self.shared.mark(), origin.reached.0);
        let writes = open::reidentify(&self.records, |identity| {
            identity.fence = identity.fence.max(origin.fence);
            identity.lineage = lineage.clone();
            identity.running = origin.running;
        })?;
        *self.shared.lineage.write().unwrap_or_else(PoisonError::into_inner) = lineage;
        group.is_renamed = true;
        self.write(writes, group);
        Ok(())
    }

    /// Notes where the running time stands.
    pub(super) fn note_running(
        &mut self,
        at: Time,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let passed = self.shared.running_since_noted(self.clock.running());
        let writes = open::note_running(&self.records, at, (passed, self.sealed.0))?;
        self.write(writes, group);
        Ok(())
    }
}
