//! Held documents: what the operator decides.

use super::AdminService;
use tidegate_core::model::{Decision, FeedRecord};
use tidegate_judge::record;
use tidegate_serve::OperatorError;

impl AdminService {
    /// Commits what the operator decides about a held document.
    pub(super) async fn decide(
        &self,
        record: &FeedRecord,
        decision: Decision,
    ) -> Result<(), OperatorError> {
        self.decide_and_commit(record, &[], |round| match record::decide(round, decision).change {
            None => {
                let nothing = format!("nothing of the feed {} is held", record.name);
                Err(OperatorError::Conflict(nothing))
            }
            change => Ok((change, ())),
        })
        .await
    }
}
