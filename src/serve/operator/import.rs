//! The feeds of a subscription list (OPML) become feeds here.

mod plan;

pub(super) use plan::ListRules;
pub use plan::{ExistingFeeds, ImportPlan};

use super::{Operator, OperatorError};
use bytes::Bytes;
use plan::plan;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_format::parse::opml::{self, OpmlProblem, OutlineList};
use tidegate_format::parse::{self, Limits};
use tidegate_store::FeedList;
use utoipa::ToSchema;

/// The longest subscription list that a running gateway takes, in bytes.
pub const LIST_LIMIT: usize = 8 * 1024 * 1024;

/// What became of a subscription list.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, ToSchema)]
pub struct ImportedList {
    /// The feeds that were added, in the order of the list.
    pub added: Vec<FeedName>,
    /// How many of its addresses were polled already.
    pub known: usize,
    /// How many feeds that were there have another place now.
    pub placed: usize,
    /// How many stand in a further folder, and how many deeper than folders are kept.
    pub again: usize,
    pub deeper: usize,
    /// How many were deleted in the list, by its sharing markup.
    pub deleted: usize,
    /// How many could not be taken, and why, at most [`ImportedList::NAMED`].
    pub not_taken: usize,
    pub refused: Vec<ListLine>,
    /// How many mistakes of the list were passed over, and which, as many.
    pub repaired: usize,
    pub problems: Vec<ListLine>,
}

/// A line of a list, and what there is to say of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, ToSchema)]
pub struct ListLine {
    /// Counted from 1.
    pub line: usize,
    pub said: String,
}

impl ImportedList {
    /// The most lines of a kind that are named.
    pub const NAMED: usize = 200;
}

/// A list, and what was wrong with its characters and its markup.
pub type ReadList = (OutlineList, Vec<OpmlProblem>);

/// Reads a list, and what was wrong with its characters and its markup.
pub fn read_list(bytes: &[u8], limit: usize) -> Result<ReadList, String> {
    if bytes.len() > limit {
        return Err(format!("it has more than {limit} bytes, which is the limit"));
    }
    let decoded = parse::characters(bytes, None, &Limits::default());
    let decoded = decoded.map_err(|error| error.to_string())?;
    let list = opml::read(&decoded.text)?;
    let warnings = decoded.warnings.iter();
    let mut problems: Vec<OpmlProblem> =
        warnings.map(|warning| OpmlProblem { line: 1, message: warning.message.clone() }).collect();
    problems.extend(list.problems.iter().cloned());
    Ok((list, problems))
}

/// Decides what becomes of the outlines of a list.
pub fn decide((list, problems): &ReadList, before: &ExistingFeeds<'_>) -> ImportPlan {
    let mut plan = plan(list, before);
    let named = problems.iter().take(ImportedList::NAMED);
    let named = named.map(|problem| ListLine { line: problem.line, said: problem.message.clone() });
    plan.done.problems = named.collect();
    plan.done.repaired = problems.len().saturating_add(list.unnamed);
    plan
}

impl Operator {
    /// Adds the feeds of a subscription list (OPML), with their folders and names; those that are there
    /// already get a place where they have none. `rearrange`: the list says where all of its feeds stand.
    /// Durable on return.
    pub async fn import_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError> {
        let (_guard, feeds) = self.lock_feeds().await?;
        self.store.condition().check_intake()?;
        let read = move || read_list(&list, LIST_LIMIT);
        let planned = self.plan_over(&feeds, (rearrange, None), read).await?;
        let wrong = |why| OperatorError::bad_request(format!("the list: {why}"));
        let plan = planned.map_err(wrong)?;
        self.apply(plan.changed(), &feeds).await?;
        Ok(plan.done)
    }

    /// Reads a list and plans its import on a blocking thread. The inner error is one of the list, as a sentence.
    /// `rearrange` and `rules`: see [`ExistingFeeds`].
    pub(super) async fn plan_over(
        &self,
        feeds: &Arc<FeedList>,
        (rearrange, rules): (bool, Option<ListRules>),
        read: impl FnOnce() -> Result<ReadList, String> + Send + 'static,
    ) -> Result<Result<ImportPlan, String>, OperatorError> {
        let (active_config, feeds) = (self.active_config(), Arc::clone(feeds));
        let (endpoint, now) = (self.store.endpoint().clone(), self.clock.now());
        let planning = tokio::task::spawn_blocking(move || {
            let stored: Vec<Arc<FeedRecord>> = feeds.values().cloned().collect();
            let (stored, config, endpoint) = (&*stored, &active_config.config, &endpoint);
            let before = ExistingFeeds { stored, config, endpoint, now, rearrange, rules };
            read().map(|list| decide(&list, &before))
        });
        planning.await.map_err(|error| OperatorError::internal(error.to_string()))
    }
}
