//! What items' addresses answered lately: of many who ask for the same at once, one has it made, and
//! all of them are sent the same bytes.

use super::bytes::Whole;
use super::query::ItemQuery;
use crate::admission::Admission;
use crate::audience::AudienceKey;
use crate::html::trail;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::single_flight::SingleFlightCache;
use axum::body::Bytes;
use maud::{Markup, PreEscaped, html};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Revision, SyncId};

/// How many bytes of pages, and of what else, are kept, all items together.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;
/// How long an answer is kept: what goes from the past of an item does not raise its feed's revision.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What an answer is a function of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ItemAnswerKey {
    pub(super) audience: AudienceKey,
    pub(super) feed: FeedName,
    pub(super) id: SyncId,
    pub(super) revision: Revision,
    pub(super) asked: ItemQuery,
    pub(super) is_json: bool,
}

/// What the page of an item says to everybody.
pub(crate) struct ItemContent {
    pub(super) feed: FeedName,
    pub(super) title: String,
    /// How it stands.
    pub(super) standing: String,
    pub(super) rest: String,
}

impl ItemContent {
    fn len(&self) -> usize {
        self.title.len() + self.standing.len() + self.rest.len()
    }

    /// All of it, with what can be done between how the item stands and the rest.
    pub(super) fn with(&self, acting: &Markup) -> Markup {
        html! {
            (trail(&self.feed, None, "Item"))
            (PreEscaped(self.standing.as_str()))
            (acting)
            (PreEscaped(self.rest.as_str()))
        }
    }
}

/// An answer that was made.
pub(crate) enum CachedAnswer {
    /// The page of an item, without its frame.
    Item(ItemContent),
    /// Another page for people.
    Page(Bytes),
    /// The same as data.
    Json(Bytes),
    /// The bytes of a version.
    Whole(Whole),
}

impl CachedAnswer {
    fn weight(&self) -> u32 {
        let length = match self {
            Self::Item(content) => content.len(),
            Self::Page(body) | Self::Json(body) => body.len(),
            Self::Whole(whole) => whole.len(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }
}

/// Items' answers, of one kind.
pub(crate) type Answers = SingleFlightCache<ItemAnswerKey, CachedAnswer, Problem>;

/// Nothing answered yet.
pub(crate) fn answers(
    name: &'static str,
    admission: &Arc<Admission>,
    metrics: &Metrics,
) -> Answers {
    let (admission, metrics) = (Arc::clone(admission), metrics.clone());
    let kept = (name, KEPT_BYTES);
    SingleFlightCache::lasting(kept, KEPT_FOR, CachedAnswer::weight, admission, metrics)
}
