//! What an operator decides about items.

use super::{Operator, OperatorError};
use tidegate_core::model::{FeedName, FeedStanding, LedgerEntry, SyncId, Tick};
use tidegate_judge::record::local::{self, Act, Acted};
use tidegate_judge::record::{self as judge, DeletionError};
use tidegate_store::VERSIONS_LIMIT;
use utoipa::ToSchema;

/// The reason that is shown for a redaction where the operator gives none.
const REDACTED: &str = "its text was removed by the operator";

/// An item whose text was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, ToSchema)]
pub struct Redacted {
    /// The id it is published with.
    pub published_id: String,
    /// The native id by which it is kept out.
    pub native_id: String,
    /// The tick of the tombstone that this made; `None` where it was deleted before.
    pub tick: Option<Tick>,
    /// How many kept versions lost their text.
    pub versions: usize,
    /// Whether it had been redacted before, so that nothing was done.
    #[serde(rename = "was_redacted")]
    pub before: bool,
}

impl Operator {
    /// Makes, changes or deletes an item, or resolves what is in conflict with it. Durable on return.
    pub async fn item(&self, feed: &FeedName, act: Act) -> Result<Acted, OperatorError> {
        let record = self.record(feed).await?;
        if record.standing == FeedStanding::Gone {
            return Err(OperatorError::conflict(format!("the feed {feed} was deleted")));
        }
        if record.options.sharing.is_aggregate() && matches!(act, Act::Create { .. }) {
            let detail =
                format!("the feed {feed} is an aggregate: make the item in one of its sources");
            return Err(OperatorError::conflict(detail));
        }
        self.decide_and_commit(&record, &[], |observation| {
            let (verdict, acted) = local::act(observation, &act)?;
            Ok((verdict.change, acted))
        })
        .await
    }

    /// Takes the text of an item out of everything that is kept, and keeps it out. `reason`: what is
    /// shown as the reason. Durable on return.
    pub async fn redact(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        let record = self.record(feed).await?;
        let why = reason.as_deref().unwrap_or(REDACTED);
        // What left the complete view is in archives still.
        let names = [item.to_string()];
        // Nothing is read once the text is gone: a store that fails then would make that look undone.
        let kept = self.store.versions(feed, item, VERSIONS_LIMIT).await?.len();
        let unknown = || OperatorError::unknown_item(feed);
        let redacted = |ledger: &[LedgerEntry], tick: Option<Tick>| {
            let known = ledger.iter().find(|known| known.id == *item)?;
            let (published_id, native_id) =
                (known.published_id.clone(), known.native_shown.clone());
            // A tombstone is a version, too.
            let versions = kept.saturating_add(usize::from(tick.is_some())).min(VERSIONS_LIMIT);
            Some(Redacted { published_id, native_id, tick, versions, before: false })
        };
        self.decide_and_commit(&record, &names, |observation| {
            match judge::redact(observation, item, why) {
                Err(_) => Err(unknown()),
                Ok(None) => {
                    let known =
                        observation.snapshot.and_then(|snapshot| redacted(&snapshot.known, None));
                    let known = known.ok_or_else(unknown)?;
                    Ok((None, Redacted { before: true, ..known }))
                }
                Ok(Some(verdict)) => {
                    let change = verdict.change.ok_or_else(unknown)?;
                    let done = redacted(&change.known, change.tick).ok_or_else(unknown)?;
                    Ok((Some(change), done))
                }
            }
        })
        .await
    }

    /// Deletes an item of a publisher that is missing from its document. The tick of the tombstone that
    /// this made; `None` where it was deleted before. Durable on return.
    pub async fn delete_missing(
        &self,
        feed: &FeedName,
        item: &SyncId,
    ) -> Result<Option<Tick>, OperatorError> {
        let record = self.record(feed).await?;
        // What left the complete view may be deleted still.
        let names = [item.to_string()];
        self.decide_and_commit(&record, &names, |observation| {
            let verdict =
                judge::delete_missing(observation, item).map_err(|error| match error {
                    DeletionError::Unknown => OperatorError::unknown_item(feed),
                    _ => OperatorError::conflict(error.to_string()),
                })?;
            let change = verdict.and_then(|verdict| verdict.change);
            let tick = change.as_ref().and_then(|change| change.tick);
            Ok((change, tick))
        })
        .await
    }
}
