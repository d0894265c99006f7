//! Taking the text of an item out of everything that is kept.

use super::{AdminService, DECIDE_ATTEMPTS, internal};
use crate::model::{FeedName, SyncId, Tick};
use crate::record::{self, Redaction};
use crate::serve::{OperatorError, Redacted};
use crate::store::{CommitError, VERSIONS_LIMIT};

/// The reason that is shown where the operator gives none.
const REASON: &str = "its text was removed by the operator";

impl AdminService {
    /// Redacts an item.
    pub(super) async fn take_out(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        let record = self.record(feed).await?;
        let why = reason.as_deref().unwrap_or(REASON);
        for _ in 0..DECIDE_ATTEMPTS {
            let snapshot = self.store.snapshot(feed).await.map_err(|e| internal(&e))?;
            let round = self.round(&record, snapshot.as_ref());
            let change = match record::redact(&round, item, why) {
                Redaction::Unknown => return Err(OperatorError::UnknownItem(feed.clone())),
                Redaction::Before => return self.redacted(feed, item, None, true).await,
                Redaction::Commit(verdict) => verdict.change,
            };
            let Some(change) = change else { continue };
            let tick = change.tick;
            match self.store.commit(&self.claim(), change).await {
                Ok(_) => return self.redacted(feed, item, tick, false).await,
                Err(CommitError::Conflict(_)) => {}
                Err(error) => return Err(OperatorError::Internal(error.to_string())),
            }
        }
        Err(OperatorError::Internal(
            "the feed changed while its item was redacted; try again".to_owned(),
        ))
    }

    async fn redacted(
        &self,
        feed: &FeedName,
        item: &SyncId,
        tick: Option<Tick>,
        before: bool,
    ) -> Result<Redacted, OperatorError> {
        let known = self.store.known(feed, item).await.map_err(|e| internal(&e))?;
        let known = known.ok_or_else(|| OperatorError::UnknownItem(feed.clone()))?;
        let versions = self.store.versions(feed, item, VERSIONS_LIMIT).await;
        let versions = versions.map_err(|e| internal(&e))?.len();
        let (published_id, native_id) = (known.published_id, known.native_shown);
        Ok(Redacted { published_id, native_id, tick, versions, before })
    }
}
