//! Taking the text of an item out of everything that is kept.

use super::AdminService;
use crate::model::{FeedName, SyncId, Tick};
use crate::record::{self, Redaction};
use crate::serve::{OperatorError, Redacted};
use crate::store::VERSIONS_LIMIT;

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
        // What left the complete view is in archives still.
        let names = [item.to_string()];
        let (tick, before) = self
            .decide_and_commit(&record, &names, |round| match record::redact(round, item, why) {
                Redaction::Unknown => Err(OperatorError::UnknownItem(feed.clone())),
                Redaction::Before => Ok((None, (None, true))),
                Redaction::Commit(verdict) => {
                    let tick = verdict.change.as_ref().and_then(|change| change.tick);
                    Ok((verdict.change, (tick, false)))
                }
            })
            .await?;
        self.redacted(feed, item, tick, before).await
    }

    async fn redacted(
        &self,
        feed: &FeedName,
        item: &SyncId,
        tick: Option<Tick>,
        before: bool,
    ) -> Result<Redacted, OperatorError> {
        let known = self.store.known(feed, item).await?;
        let known = known.ok_or_else(|| OperatorError::UnknownItem(feed.clone()))?;
        let versions = self.store.versions(feed, item, VERSIONS_LIMIT).await?.len();
        let (published_id, native_id) = (known.published_id, known.native_shown);
        Ok(Redacted { published_id, native_id, tick, versions, before })
    }
}
