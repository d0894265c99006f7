//! `/feeds/NAME/conflicts`: versions that are in conflict, side by side with their winners, and
//! what can be done about them (SSE 1.0 section 3.4). HTML for people, JSON when asked for.

mod form;
mod list;
mod page;

pub(super) use form::resolve;
pub(super) use list::ConflictList;
pub(super) use page::excerpt;

use super::address::Site;
use super::admission::{Work, WorkKind};
use super::audience::ServedFeed;
use super::cache::Cache;
use super::client::Client;
use super::documents::{DocumentKey, DocumentKind};
use super::extract::{ReadQuery, TypedQuery, Viewer};
use super::openapi::{Gone, NotFound};
use super::problem::Problem;
use super::query::Query;
use super::shared_work::WorkRequest;
use super::{AppState, SharedState, answers, html};
use crate::locked;
use axum::body::Bytes;
use axum::response::Response;
use maud::{PreEscaped, html};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::{FeedName, Revision, SyncId};
use tidegate_status::schema;
use tidegate_store::{Store, StoreError};
use tokio::time::timeout;

/// How many items in conflict one answer shows.
const ITEMS_SHOWN: usize = 20;
/// How many losing versions of an item one answer shows.
const LOSERS_SHOWN: usize = 12;
/// How many losing versions one answer compares with their winners.
const COMPARED: usize = 40;
/// Of how many feeds it is remembered how many items are in conflict.
const COUNTED_FEEDS: u64 = 100_000;
/// How long somebody who looks at all feeds waits at most to hear which of them have items in conflict.
pub(super) const CONTESTED_WITHIN: Duration = Duration::from_secs(2);

/// In which form conflicts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConflictsForm {
    is_json: bool,
    /// Whether who looks need not send the token.
    is_signed_in: bool,
    /// Whether it can be decided from here.
    may_decide: bool,
}

impl ConflictsForm {
    const JSON: Self = Self { is_json: true, is_signed_in: false, may_decide: false };
}

/// How many items are in conflict of the feeds that have such.
pub(super) type ContestedFeeds = Arc<BTreeMap<FeedName, u32>>;

/// How many items of feeds are in conflict.
pub(super) struct Contested {
    store: Arc<dyn Store>,
    counted: Cache<(FeedName, Revision), u32>,
    /// Of all feeds, as the store told last.
    last: Mutex<Option<ContestedFeeds>>,
}

impl Contested {
    /// Nothing counted yet.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        let counted = Cache::of(COUNTED_FEEDS);
        Self { store, counted, last: Mutex::default() }
    }

    /// How many items are in conflict of all feeds that have such. Where the store does not tell within `limit`, what
    /// it told last is good enough; `None` where it never did.
    pub(super) async fn feeds(&self, limit: Duration) -> Option<ContestedFeeds> {
        let counted = timeout(limit, self.count_all()).await;
        let failed = match counted {
            Ok(Ok(counted)) => {
                let counted = Arc::new(counted);
                *locked(&self.last) = Some(Arc::clone(&counted));
                return Some(counted);
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        tracing::debug!(error = failed, "what is in conflict is told as it was known last");
        locked(&self.last).clone()
    }

    async fn count_all(&self) -> Result<BTreeMap<FeedName, u32>, StoreError> {
        let mut counted = BTreeMap::new();
        for feed in self.store.contested_feeds().await? {
            let count = self.count(&feed).await?;
            counted.insert(feed, count);
        }
        Ok(counted)
    }

    /// How many items of a feed are in conflict. They are looked for once for each revision.
    pub(super) async fn count(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let Some(state) = self.store.state(feed).await? else { return Ok(0) };
        let key = (feed.clone(), state.revision);
        if let Some(counted) = self.counted.get(&key) {
            return Ok(*counted);
        }
        let count = u32::try_from(self.store.contested(feed).await?.len()).unwrap_or(u32::MAX);
        self.counted.insert(key, count);
        Ok(count)
    }
}

/// Unresolved conflicts: a page, or data with `Accept: application/json`.
#[utoipa::path(get, path = "/feeds/{name}/conflicts", operation_id = "readConflicts",
    params(("after" = Option<schema::SyncId>, Query, description = "Only items behind this one.")),
    responses(
        (status = 200, description = "The conflicts.", content(
            (ConflictList = "application/json"),
            (String = "text/html"),
        )),
        NotFound,
        Gone,
    ))]
pub(super) async fn show(
    viewer: Viewer,
    record: ServedFeed,
    TypedQuery(query): TypedQuery<ConflictsQuery>,
) -> Result<Response, Problem> {
    let Viewer { is_signed_in, wants_json, .. } = viewer;
    let form = match wants_json {
        true => ConflictsForm::JSON,
        false => {
            let may_decide = viewer.audience.may_sign_in();
            ConflictsForm { is_json: false, is_signed_in, may_decide }
        }
    };
    let of = (&record.name, &record.site);
    let answer = answered(&viewer.room, viewer.client, of, (query.after, form)).await?;
    if wants_json {
        return Ok(html::data(answer));
    }
    // It was written as text here.
    let list = PreEscaped(String::from_utf8_lossy(&answer));
    let content = html! { (html::trail(&record.name, None, "Conflicts")) (list) };
    Ok(viewer.form_page(&format!("Conflicts in {}", record.name), &content))
}

/// Which items in conflict are asked for.
pub(super) struct ConflictsQuery {
    /// Only those behind this one, in the order of sync ids.
    after: Option<SyncId>,
}

impl ReadQuery for ConflictsQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let read = |id: &str| SyncId::new(id).ok();
        Ok(Self { after: Query::read(query)?.parse("after", "after is a sync id", read)? })
    }
}

/// The same for the administration.
pub(super) async fn listed(
    room: &SharedState,
    client: Client,
    feed: &FeedName,
    query: ConflictsQuery,
) -> Result<Bytes, Problem> {
    answered(room, client, (feed, &room.site), (query.after, ConflictsForm::JSON)).await
}

/// What is told of a feed's conflicts, made once for each revision and all who ask.
async fn answered(
    room: &SharedState,
    client: Client,
    (feed, site): (&FeedName, &Arc<Site>),
    (after, form): (Option<SyncId>, ConflictsForm),
) -> Result<Bytes, Problem> {
    let revision = room.store.state(feed).await?.map(|state| state.revision);
    let shown = usize::try_from(room.contested.count(feed).await?).unwrap_or(usize::MAX);
    let shown = u64::try_from(shown.min(ITEMS_SHOWN)).unwrap_or(u64::MAX);
    let work = Work::new(feed, WorkKind::Conflicts);
    let ask = WorkRequest { tells: true, ..room.admission.request(client, work, shown) };
    let kind = DocumentKind::Conflicts { after: after.clone(), form };
    let key = DocumentKey { audience: site.key(), feed: feed.clone(), revision, kind };
    let make = || {
        let (room, feed, site) = (Arc::clone(room), feed.clone(), Arc::clone(site));
        async move { made(&room, &site, &feed, (after, form)).await }
    };
    Ok(room.documents.get(key, ask, make).await?.text())
}

async fn made(
    room: &AppState,
    site: &Site,
    feed: &FeedName,
    (after, form): (Option<SyncId>, ConflictsForm),
) -> Result<Bytes, Problem> {
    let list = ConflictList::gather(room, site, feed, after.as_ref()).await?;
    Ok(match form.is_json {
        true => answers::text(&list),
        false => page::conflicts(&list, form).into_string().into(),
    })
}
