//! `/feeds/NAME/conflicts`: versions that are in conflict, side by side with their winners, and
//! what can be done about them (SSE 1.0 section 3.4). HTML for people, JSON when asked for.

mod described;
mod form;
mod page;

pub(super) use described::ConflictList;
pub(super) use form::resolve;
pub(super) use page::excerpt;

use super::address::Site;
use super::admission::{Work, WorkKind};
use super::audience::Audience;
use super::cache::Cache;
use super::client::Client;
use super::documents::{DocumentKey, DocumentKind};
use super::feeds::{NameInPath, unreadable};
use super::items::{self, CompareBudget, Differences};
use super::negotiate::wants_json;
use super::openapi::{Gone, NotFound};
use super::problem::Problem;
use super::query::Query;
use super::shared_work::WorkRequest;
use super::{AppState, SharedState, answers, forms, html, session};
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, Method};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::model::{FeedName, Item, Revision, SyncId};
use tidegate_judge::record::local;
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

/// An item in conflict.
struct Contest {
    /// With its conflicts.
    item: Item,
    /// What it is known by at this moment.
    tag: String,
    /// What differs between the winner and each loser, as far as it is shown and can be told.
    differences: Vec<Option<Differences>>,
}

/// A page of items in conflict.
struct Contests {
    feed: FeedName,
    /// How many items are in conflict in all.
    all: usize,
    shown: Vec<Contest>,
    /// The last item shown, where there are more behind it.
    more: Option<SyncId>,
    /// Whether who looks need not send the token.
    is_signed_in: bool,
    /// Whether it can be decided from here.
    may_decide: bool,
}

/// In which form conflicts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ConflictsForm {
    Json,
    Page { is_signed_in: bool, may_decide: bool },
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
                *self.last() = Some(Arc::clone(&counted));
                return Some(counted);
            }
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        tracing::debug!(error = failed, "what is in conflict is told as it was known last");
        self.last().clone()
    }

    fn last(&self) -> MutexGuard<'_, Option<ContestedFeeds>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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
    State(room): State<SharedState>,
    (audience, client): (Audience, Client),
    name: NameInPath,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    // Only the items behind this one, in the order of sync ids; and what was resolved a moment ago.
    let after = item_in(query.as_deref(), "after")?;
    let resolved = item_in(query.as_deref(), "resolved")?;
    let form = match wants_json(&headers) {
        true => ConflictsForm::Json,
        false => ConflictsForm::Page {
            is_signed_in: room.sessions.is_open(&headers),
            may_decide: audience.may_sign_in(),
        },
    };
    let answer = answered(&room, client, (&record.name, &record.site), (after, form)).await?;
    if form == ConflictsForm::Json {
        return Ok(html::data(answer));
    }
    let notice = session::notice(&room, &method, &headers);
    let content = page::around(&record.name, (resolved.as_ref(), &notice), &answer);
    Ok(forms::page(&format!("Conflicts in {}", record.name), &content))
}

/// The same for the administration.
pub(super) async fn listed(
    room: &SharedState,
    client: Client,
    feed: &FeedName,
    query: Option<&str>,
) -> Result<Bytes, Problem> {
    let after = item_in(query, "after")?;
    answered(room, client, (feed, &room.site), (after, ConflictsForm::Json)).await
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
    let mut contests = gather(room, feed, after.as_ref()).await?;
    Ok(match form {
        ConflictsForm::Json => answers::text(&ConflictList::new(&site.at(""), &contests)),
        ConflictsForm::Page { is_signed_in, may_decide } => {
            (contests.is_signed_in, contests.may_decide) = (is_signed_in, may_decide);
            page::contests(&contests).into_string().into()
        }
    })
}

/// The item that a key of a query names.
fn item_in(query: Option<&str>, key: &str) -> Result<Option<SyncId>, Problem> {
    let query = Query::read(query.unwrap_or_default())?;
    query.parse(key, &format!("{key} is a sync id"), |id| SyncId::new(id).ok())
}

async fn gather(
    room: &AppState,
    feed: &FeedName,
    after: Option<&SyncId>,
) -> Result<Contests, Problem> {
    let (is_signed_in, may_decide) = (false, false);
    let (feed_name, shown) = (feed.clone(), Vec::new());
    let mut contests =
        Contests { feed: feed_name, all: 0, shown, more: None, is_signed_in, may_decide };
    let all = room.store.contested(feed).await?;
    contests.all = all.len();
    let behind = all.iter().filter(|id| after.is_none_or(|after| *id > after));
    let ids: Vec<&SyncId> = behind.take(ITEMS_SHOWN + 1).collect();
    let (mut compared, mut budget) = (0, CompareBudget::whole());
    for id in ids.iter().take(ITEMS_SHOWN) {
        let Some(item) = room.store.item(feed, id).await? else { continue };
        if item.shared.conflicts.is_empty() {
            continue;
        }
        let mut differences = Vec::new();
        for loser in item.shared.conflicts.iter().take(LOSERS_SHOWN) {
            if compared >= COMPARED {
                break;
            }
            compared += 1;
            // What a deletion says is not its bytes, which only stand in for the item.
            if loser.deleted != item.shared.winner.deleted {
                differences.push(None);
                continue;
            }
            let pair = (item.shared.winner.data.clone(), loser.data.clone());
            let mut told = items::compared(room, pair, &mut budget).await?;
            if let Some(told) = &mut told {
                // An item keeps its own id whatever is decided.
                told.fields.retain(|field| field.name != "Id");
            }
            differences.push(told);
        }
        let tag = local::tag(&item.shared);
        contests.shown.push(Contest { item, tag, differences });
    }
    let last = ids.get(ITEMS_SHOWN.saturating_sub(1)).filter(|_| ids.len() > ITEMS_SHOWN);
    contests.more = last.map(|id| (*id).clone());
    Ok(contests)
}
