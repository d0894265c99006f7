//! What items' addresses answered lately: of many who ask for the same at once, one has it made, and
//! all of them are sent the same bytes.

use super::bytes::Whole;
use super::query::ItemQuery;
use crate::model::{FeedName, Revision, SyncId};
use crate::serve::admission::Admission;
use crate::serve::html::{data, whole_page};
use crate::serve::metrics::Metrics;
use crate::serve::problem::Problem;
use crate::serve::single_flight::{SingleFlightCache, WorkRequest};
use axum::body::Bytes;
use axum::response::Response;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;

/// How many bytes of answers are kept, all items together.
const KEPT_BYTES: u64 = 16 * 1024 * 1024;
/// How long an answer is kept: what goes from the past of an item does not raise its feed's revision.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What an answer is a function of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ItemAnswerKey {
    pub(super) feed: FeedName,
    pub(super) id: SyncId,
    pub(super) revision: Revision,
    pub(super) asked: ItemQuery,
    pub(super) is_json: bool,
}

/// An answer that was made.
pub(super) enum CachedAnswer {
    /// A page for people.
    Page(Bytes),
    /// The same as data.
    Json(Bytes),
    /// The bytes of a version.
    Whole(Whole),
}

impl CachedAnswer {
    fn weight(&self) -> u32 {
        let length = match self {
            Self::Page(body) | Self::Json(body) => body.len(),
            Self::Whole(whole) => whole.len(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// As it is sent.
    pub(super) fn response(&self, asked: &HeaderMap) -> Response {
        match self {
            Self::Page(body) => whole_page(body.clone()),
            Self::Json(body) => data(body.clone()),
            Self::Whole(whole) => whole.answer(asked),
        }
    }
}

/// The answers that are kept.
pub(in crate::serve) struct Answers {
    pages: SingleFlightCache<ItemAnswerKey, CachedAnswer, Problem>,
    versions: SingleFlightCache<ItemAnswerKey, CachedAnswer, Problem>,
}

impl Answers {
    /// Nothing answered yet.
    pub(in crate::serve) fn new(admission: &Arc<Admission>, metrics: &Metrics) -> Self {
        let press = || {
            let (admission, metrics) = (Arc::clone(admission), metrics.clone());
            SingleFlightCache::lasting(
                KEPT_BYTES / 2,
                KEPT_FOR,
                CachedAnswer::weight,
                admission,
                metrics,
            )
        };
        Self { pages: press(), versions: press() }
    }

    /// What is kept under a key, or what `make` answers when it is admitted.
    pub(super) async fn get<F>(
        &self,
        key: ItemAnswerKey,
        ask: WorkRequest,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<CachedAnswer>, Problem>
    where
        F: Future<Output = Result<CachedAnswer, Problem>> + Send + 'static,
    {
        let press = if key.asked == ItemQuery::Page { &self.pages } else { &self.versions };
        Ok(press.get(key, ask, make).await?)
    }
}
