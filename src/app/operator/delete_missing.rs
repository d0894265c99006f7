//! Deleting an item that is missing, at the operator's word.

use super::AdminService;
use tidegate_core::model::{FeedName, SyncId, Tick};
use tidegate_judge::record::{self, DeletionError};
use tidegate_serve::OperatorError;

impl AdminService {
    /// Deletes a missing item; the tick of its tombstone, or `None` where it was one before.
    pub(super) async fn bury(
        &self,
        feed: &FeedName,
        item: &SyncId,
    ) -> Result<Option<Tick>, OperatorError> {
        let record = self.record(feed).await?;
        // What left the complete view may be deleted still.
        let names = [item.to_string()];
        self.decide_and_commit(&record, &names, |round| {
            let verdict = record::delete_missing(round, item).map_err(|error| match error {
                DeletionError::Unknown => OperatorError::UnknownItem(feed.clone()),
                _ => OperatorError::Conflict(error.to_string()),
            })?;
            let change = verdict.and_then(|verdict| verdict.change);
            let tick = change.as_ref().and_then(|change| change.tick);
            Ok((change, tick))
        })
        .await
    }
}
