//! Held documents: what is said of them, and what the operator decides.

use super::{AdminService, DECIDE_ATTEMPTS, internal};
use crate::model::{Decision, FeedRecord, Hold};
use crate::record;
use crate::serve::OperatorError;
use crate::store::CommitError;

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
        for _ in 0..DECIDE_ATTEMPTS {
            let snapshot = self.store.snapshot(&record.name).await.map_err(|e| internal(&e))?;
            let round = self.round(record, snapshot.as_ref());
            let Some(change) = record::decide(&round, decision).change else {
                let nothing = format!("nothing of the feed {} is held", record.name);
                return Err(OperatorError::Conflict(nothing));
            };
            match self.store.commit(&self.claim(), change).await {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(OperatorError::Internal(error.to_string())),
            }
        }
        Err(OperatorError::Internal(
            "the feed changed while this was decided; try again".to_owned(),
        ))
    }
}
