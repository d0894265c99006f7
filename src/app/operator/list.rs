//! The feeds of a subscription list are added to a running gateway.

use super::AdminService;
use crate::app::import::{ExistingFeeds, ImportPlan, plan, read_list};
use bytes::Bytes;
use std::sync::Arc;
use tidegate_core::model::{EndpointId, FeedRecord, Time};
use tidegate_format::parse::opml::{OpmlLimits, OpmlProblem};
use tidegate_serve::{ImportedList, LIST_LIMIT, ListLine, OperatorError};
use tidegate_store::FeedList;

impl AdminService {
    /// Adds the feeds of a list and gives those that are there a place; see [`tidegate_serve::Operator`].
    pub(super) async fn add_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError> {
        let _one = self.changing.lock().await;
        self.store.condition().check_intake()?;
        let feeds = self.store.feed_list().await?;
        let config = self.named_config();
        let (endpoint, now) = (self.store.endpoint().clone(), self.clock.now());
        let planning = tokio::task::spawn_blocking(move || {
            decide(&list, &feeds, &config, (&endpoint, now, rearrange))
        });
        let planned = planning.await.map_err(|error| OperatorError::Internal(error.to_string()))?;
        let (plan, problems, unnamed) = planned.map_err(OperatorError::BadRequest)?;
        let done = told(&plan, &problems, unnamed);
        self.carry_out(&plan).await?;
        Ok(done)
    }
}

/// What is to be done about a list, what is wrong with it, and how much of that is not named.
type DecidedList = (ImportPlan, Vec<OpmlProblem>, usize);

fn decide(
    list: &[u8],
    feeds: &FeedList,
    config: &tidegate_config::Config,
    (endpoint, now, rearrange): (&EndpointId, Time, bool),
) -> Result<DecidedList, String> {
    let limits = OpmlLimits { bytes: LIST_LIMIT, ..OpmlLimits::default() };
    let (list, problems) = read_list(list, &limits).map_err(|why| format!("the list: {why}"))?;
    let stored: Vec<Arc<FeedRecord>> = feeds.values().cloned().collect();
    let before = ExistingFeeds { stored: &stored, config, endpoint, now, rearrange, rules: None };
    let planned = plan(&list, &before);
    Ok((planned, problems, list.unnamed))
}

fn told(plan: &ImportPlan, problems: &[OpmlProblem], unnamed: usize) -> ImportedList {
    let refused = plan.refused.iter().take(ImportedList::NAMED);
    let named = problems.iter().take(ImportedList::NAMED);
    ImportedList {
        added: plan.new.iter().map(|record| record.name.clone()).collect(),
        known: plan.known,
        placed: plan.placed.len(),
        again: plan.again,
        deeper: plan.deeper,
        deleted: plan.deleted,
        not_taken: plan.refused.len(),
        refused: refused
            .map(|refused| {
                let address = refused.address.as_deref();
                let address = address.map(|it| format!("{it}: ")).unwrap_or_default();
                ListLine { line: refused.line, said: format!("{address}{}", refused.why) }
            })
            .collect(),
        repaired: problems.len().saturating_add(unnamed),
        problems: named
            .map(|problem| ListLine { line: problem.line, said: problem.message.clone() })
            .collect(),
    }
}
