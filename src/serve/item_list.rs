//! `/feeds/NAME/items`: the items of a feed, page by page. HTML for people, JSON when asked for.

mod page;

use super::admission::{Work, WorkKind};
use super::audience::{Audience, AudienceKey};
use super::client::Client;
use super::documents::{DocumentKey, DocumentKind};
use super::feeds::{NameInPath, unreadable};
use super::negotiate::wants_json;
use super::openapi::{Gone, NotFound};
use super::paging::{self, PagePlace};
use super::problem::Problem;
use super::query::Query;
use super::{SharedState, answers, html, items};
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{
    Count, FeedName, ItemStatus, LedgerEntry, Snapshot, SyncId, Tick, Time,
};
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use tidegate_store::StoreError;
use utoipa::{IntoParams, ToSchema};

/// How many items a page shows.
const PAGE: usize = 50;
/// Which items are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum ItemFilter {
    #[default]
    All,
    /// Those in the publisher's document.
    Current,
    /// Missing from it, with nothing concluded yet.
    Missing,
    Retired,
    Deleted,
    /// With more than one version.
    Edited,
    /// With a former id.
    Renamed,
    Conflicts,
}

impl ItemFilter {
    const ALL: [Self; 8] = [
        Self::All,
        Self::Current,
        Self::Missing,
        Self::Retired,
        Self::Deleted,
        Self::Edited,
        Self::Renamed,
        Self::Conflicts,
    ];

    /// Its value in an address.
    const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Current => "current",
            Self::Missing => "missing",
            Self::Retired => "retired",
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Renamed => "renamed",
            Self::Conflicts => "conflicts",
        }
    }

    fn admits(self, known: &LedgerEntry) -> bool {
        match self {
            Self::All => true,
            Self::Current => known.standing == ItemStatus::Current && known.absence.is_none(),
            Self::Missing => known.pending_absence().is_some(),
            Self::Retired => matches!(known.standing, ItemStatus::Retired { .. }),
            Self::Deleted => known.is_deleted(),
            Self::Edited => known.updates.value() > 1 && !known.is_deleted(),
            Self::Renamed => !known.aliases.is_empty(),
            Self::Conflicts => known.conflicts > 0,
        }
    }
}

describe! {
    /// Which items.
    ItemFilterWord: words(ItemFilter::ALL.map(ItemFilter::name));
}

/// What somebody looks for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ItemListQuery {
    /// Only items with this text in their titles or ids.
    #[param(rename = "q", required = false)]
    search: String,
    /// Only these.
    #[param(rename = "show", value_type = Option<ItemFilterWord>, inline)]
    filter: ItemFilter,
    /// Which page, from 1.
    #[param(required = false, minimum = 1, maximum = 1000000)]
    page: usize,
}

impl ItemListQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        Ok(Self {
            search: paging::search(&query)?,
            filter: paging::choice(&query, "show", (ItemFilter::ALL, ItemFilter::name))?,
            page: paging::page(&query)?,
        })
    }

    /// The address of another page of the same.
    fn address(&self, feed: &FeedName, page: usize) -> String {
        let show = if self.filter == ItemFilter::default() { "" } else { self.filter.name() };
        paging::address(
            &format!("/feeds/{feed}/items"),
            &[("q", &self.search), ("show", show)],
            page,
        )
    }

    fn admits(&self, known: &LedgerEntry) -> bool {
        self.filter.admits(known) && (self.search.is_empty() || self.finds(known))
    }

    /// Whether the text is found in what may be shown of an item.
    fn finds(&self, known: &LedgerEntry) -> bool {
        let contains = |text: &str| text.to_lowercase().contains(&self.search);
        let is_shown = !known.is_redacted();
        contains(known.id.as_str())
            || contains(&known.published_id)
            || is_shown
                && (contains(&known.title)
                    || contains(&known.native_shown)
                    || known.aliases.iter().any(|alias| contains(alias)))
    }
}

/// The items of a feed: a page, or data with `Accept: application/json`.
#[utoipa::path(get, path = "/feeds/{name}/items", operation_id = "readItems", params(ItemListQuery), responses(
    (status = 200, description = "A page of items.", content(
        (ItemListAnswer = "application/json"),
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name, &audience).await?;
    let is_json = wants_json(&headers);
    let answer = answered(&room, client, &record.name, (query.as_deref(), is_json)).await?;
    if is_json {
        return Ok(html::data(answer));
    }
    let content = String::from_utf8_lossy(&answer);
    let content = maud::html! { (maud::PreEscaped(content)) };
    let title = record.shown_title();
    Ok(html::page(&format!("Items of {}", html::text(&title)), &content))
}

/// The items of a feed as data, or as a page without its frame.
pub(super) async fn answered(
    room: &SharedState,
    client: Client,
    feed: &FeedName,
    (query, is_json): (Option<&str>, bool),
) -> Result<Bytes, Problem> {
    let query = ItemListQuery::read(query.unwrap_or_default())?;
    let state = room.store.state(feed).await?;
    let items =
        state.as_ref().map_or(0, |state| u64::from(state.living) + u64::from(state.tombstones));
    let work = Work::new(feed, WorkKind::Ledger);
    let ask = room.admission.request(client, work, items);
    let (audience, revision) = (AudienceKey::Public, state.map(|state| state.revision));
    let kind = DocumentKind::Items { query: query.clone(), is_json };
    let key = DocumentKey { audience, feed: feed.clone(), revision, kind };
    let make = || {
        let (room, feed) = (Arc::clone(room), feed.clone());
        async move { made(&room, feed, query, is_json).await }
    };
    Ok(room.documents.get(key, ask, make).await?.text())
}

async fn made(
    room: &SharedState,
    feed: FeedName,
    query: ItemListQuery,
    is_json: bool,
) -> Result<Bytes, StoreError> {
    let snapshot = room.store.snapshot(&feed).await?;
    let now = room.clock.now();
    // All of a ledger is looked at, where that keeps nobody waiting.
    let made = tokio::task::spawn_blocking(move || {
        let list = ItemList::new(snapshot.as_ref(), (&feed, &query));
        match is_json {
            true => answers::text(&list.answer()),
            false => page::content(&list, now).into_string().into(),
        }
    });
    made.await.map_err(|_| StoreError::Closed)
}

/// A page of items.
struct ItemList<'a> {
    feed: &'a FeedName,
    query: &'a ItemListQuery,
    items: Vec<&'a LedgerEntry>,
    place: PagePlace,
}

impl<'a> ItemList<'a> {
    /// What a query finds, the newest first.
    fn new(
        snapshot: Option<&'a Snapshot>,
        (feed, query): (&'a FeedName, &'a ItemListQuery),
    ) -> Self {
        let known = snapshot.map(Snapshot::newest_first).unwrap_or_default();
        let found: Vec<_> = known.into_iter().filter(|known| query.admits(known)).collect();
        let place = PagePlace::new(found.len(), query.page, PAGE);
        let items = found.into_iter().skip(place.skipped()).take(PAGE).collect();
        Self { feed, query, items, place }
    }

    fn answer(&self) -> ItemListAnswer {
        let PagePlace { matches, page, pages, .. } = self.place;
        let items = self.items.iter().map(|known| ListedItem::from(*known)).collect();
        ItemListAnswer { items, matches, page, pages }
    }
}

/// A page of items.
#[derive(Serialize, ToSchema)]
#[schema(as = ItemList)]
pub(super) struct ItemListAnswer {
    items: Vec<ListedItem>,
    matches: usize,
    #[schema(minimum = 1)]
    page: usize,
    #[schema(minimum = 1)]
    pages: usize,
}

/// An item of a list; of one whose text was taken out, nothing that leads to it.
#[derive(Serialize, ToSchema)]
struct ListedItem {
    #[schema(value_type = schema::SyncId)]
    sync_id: SyncId,
    published_id: String,
    native_id: Option<String>,
    title: Option<String>,
    link: Option<String>,
    #[schema(value_type = schema::Time)]
    first_seen: Time,
    standing: &'static str,
    #[schema(value_type = Option<schema::Time>)]
    standing_since: Option<Time>,
    missing: bool,
    #[schema(value_type = u32)]
    updates: Count,
    #[schema(value_type = Option<schema::Time>)]
    tick: Tick,
    conflicts: u32,
}

impl From<&LedgerEntry> for ListedItem {
    fn from(known: &LedgerEntry) -> Self {
        let (standing, standing_since) = items::standing(&known.standing);
        let shown = Some(known).filter(|known| !known.is_redacted());
        Self {
            sync_id: known.id.clone(),
            published_id: known.published_id.clone(),
            native_id: shown.map(|known| known.native_shown.clone()),
            title: shown.map(|known| known.title.clone()),
            link: shown.and_then(|known| known.link.clone()),
            first_seen: known.first_seen,
            standing,
            standing_since,
            missing: known.pending_absence().is_some(),
            updates: known.updates,
            tick: known.tick,
            conflicts: known.conflicts,
        }
    }
}
