//! Held documents: what is said of them, and what the operator decides.

use super::AdminService;
use crate::model::{Decision, FeedRecord, Hold};
use crate::record;
use crate::serve::OperatorError;

/// Why a document is held, as everywhere outside: the rule and the evidence.
pub(super) fn in_words(hold: &Hold) -> String {
    format!("{}: {}", hold.kind, hold.reason)
}

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
