//! `/feeds/NAME/items`: the items of a feed, page by page. HTML for people, JSON when asked for.

use super::html::{self, ago, text};
use super::paging::{self, NamedChoice as _, PagePlace, choices};
use super::{
    AudienceKey, BadRequest, Client, DocumentKey, DocumentKind, FeedCall, Gone, NotFound, Problem,
    Query, ReadQuery, Reply, ServedFeed, SharedState, TypedQuery, Viewer, Work, WorkKind, answers,
    items, kept_items, make_on_thread, unkept,
};
use axum::body::Bytes;
use maud::{Markup, html};
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{
    Count, FeedName, ItemStatus, LedgerEntry, Snapshot, SyncId, Tick, Time,
};
use tidegate_status::describe;
use tidegate_status::schema::words;
use utoipa::{IntoParams, ToSchema};

choices! {
    /// Which items are shown.
    #[derive(Default)]
    enum ItemFilter {
        #[default]
        All = "all", "All items";
        /// Those in the publisher's document.
        Current = "current", "Current";
        /// Missing from it, with nothing concluded yet.
        Missing = "missing", "Missing, to be confirmed";
        Retired = "retired", "Scrolled off";
        Deleted = "deleted", "Deleted";
        /// With more than one version.
        Edited = "edited", "Edited";
        Renamed = "renamed", "With a former id";
        Conflicts = "conflicts", "In conflict";
    }
}

impl ItemFilter {
    fn admits(self, known: &LedgerEntry) -> bool {
        match self {
            Self::All => true,
            Self::Current => known.standing.is_listed() && known.absence.is_none(),
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
    ItemFilterWord: words(ItemFilter::ALL.iter().map(|filter| filter.name()));
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

impl ReadQuery for ItemListQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        Ok(Self {
            search: paging::search(&query)?,
            filter: paging::choice(&query, "show")?,
            page: paging::page(&query)?,
        })
    }
}

impl ItemListQuery {
    /// The address of another page of the same.
    fn address(&self, feed: &FeedName, page: usize) -> String {
        let pairs = [("q", &*self.search), ("show", paging::unusual(self.filter))];
        paging::address(&format!("/feeds/{feed}/items"), &pairs, page)
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
        (ItemList = "application/json"),
        (String = "text/html"),
    )),
    NotFound, Gone,
))]
pub(super) async fn show(
    viewer: Viewer,
    record: ServedFeed,
    TypedQuery(query): TypedQuery<ItemListQuery>,
) -> Reply {
    let is_json = viewer.wants_json;
    let answer = load_item_list(&viewer.app, viewer.client, &record.name, (query, is_json)).await?;
    if is_json {
        return Ok(html::data(&viewer.headers, answer));
    }
    let content = String::from_utf8_lossy(&answer);
    let title = format!("Items of {}", html::text(&record.shown_title()));
    Ok(viewer.page(&title, &maud::PreEscaped(content.into_owned())))
}

/// Lists items, the newest first, 50 a page.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/items", operation_id = "listItems", params(ItemListQuery), responses(
    (status = 200, description = "A page of items; the last where the page is behind it.", body = ItemList),
    BadRequest, NotFound,
))]
pub(super) async fn list(
    FeedCall { app, client, name }: FeedCall,
    TypedQuery(query): TypedQuery<ItemListQuery>,
) -> Reply {
    app.directory.check_known(&name).await?;
    let listed = load_item_list(&app, client, &name, (query, true)).await?;
    Ok(unkept("application/json", listed))
}

/// The items of a feed as data, or as a page without its frame.
async fn load_item_list(
    app: &SharedState,
    client: Client,
    feed: &FeedName,
    (query, is_json): (ItemListQuery, bool),
) -> Result<Bytes, Problem> {
    let state = app.store.state(feed).await?;
    let items = state.as_ref().map_or(0, kept_items);
    let work = Work::new(feed, WorkKind::Ledger);
    let work_request = app.admission.request(client, work, items);
    let (audience, revision) = (AudienceKey::Public, state.map(|state| state.revision));
    let kind = DocumentKind::Items { query: query.clone(), is_json };
    let key = DocumentKey { audience, feed: Some(feed.clone()), kind };
    let make = || build_item_list(Arc::clone(app), feed.clone(), query, is_json);
    Ok(app.documents.get(key, revision, work_request, make).await?.text())
}

async fn build_item_list(
    app: SharedState,
    feed: FeedName,
    query: ItemListQuery,
    is_json: bool,
) -> Result<Bytes, Problem> {
    let snapshot = app.store.snapshot(&feed).await?;
    let list_query = query.clone();
    // On a blocking thread, since it goes through a whole ledger.
    let find = move || Ok(ItemList::new(snapshot.as_ref(), &list_query));
    let mut list = make_on_thread("the list of items", find).await?;
    for item in list.items.iter_mut().filter(|item| item.title.as_deref() == Some("")) {
        item.title = Some(items::stand_in_title(&app, &feed, &item.sync_id).await?);
    }
    if is_json {
        return Ok(answers::text(&list));
    }
    Ok(content((&feed, &query), &list, app.clock.now()).into_string().into())
}

/// A page of items.
#[derive(Serialize, ToSchema)]
pub(super) struct ItemList {
    items: Vec<ListedItem>,
    #[serde(flatten)]
    place: PagePlace,
}

/// An item of a list; of one whose text was taken out, nothing that leads to it.
#[derive(Serialize, ToSchema)]
struct ListedItem {
    sync_id: SyncId,
    published_id: String,
    native_id: Option<String>,
    title: Option<String>,
    link: Option<String>,
    first_seen: Time,
    standing: &'static str,
    standing_since: Option<Time>,
    missing: bool,
    #[schema(value_type = u32)]
    updates: Count,
    tick: Tick,
    conflicts: u32,
    /// How it stands for people, and since when.
    #[serde(skip)]
    shown_standing: (&'static str, Option<Time>),
    /// An id that it had.
    #[serde(skip)]
    former_id: Option<String>,
}

impl ItemList {
    /// What a query finds, the newest first.
    fn new(snapshot: Option<&Snapshot>, query: &ItemListQuery) -> Self {
        let known = snapshot.map(Snapshot::newest_first).unwrap_or_default();
        let found: Vec<_> = known.into_iter().filter(|known| query.admits(known)).collect();
        let (items, place) = PagePlace::cut(found, query.page);
        Self { items: items.map(ListedItem::from).collect(), place }
    }
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
            shown_standing: items::shown_standing(known),
            former_id: shown.and_then(|known| known.aliases.first().cloned()),
        }
    }
}

/// The page without its frame.
fn content((feed, query): (&FeedName, &ItemListQuery), list: &ItemList, now: Time) -> Markup {
    let address = format!("/feeds/{feed}/items");
    let choices = paging::select("show", "Show", query.filter, |_| String::new());
    html! {
        (html::trail(feed, None, "Items"))
        (paging::search_form(&address, &query.search, "Title or id", &choices))
        @if list.items.is_empty() {
            p.empty { "No item matches. " a href=(address) { "Show all items" } }
        } @else {
            table.items {
                thead { tr {
                    th scope="col" { "Item" } th scope="col" { "State" } th scope="col" { "First seen" }
                    th scope="col" { "Last version" } th.number scope="col" { "Versions" }
                } }
                tbody { @for item in &list.items { (row(feed, item, now)) } }
            }
        }
        (list.place.links("items", |page| query.address(feed, page)))
        p.quiet { "The same as data: this address with " code { "Accept: application/json" } "." }
    }
}

fn row(feed: &FeedName, item: &ListedItem, now: Time) -> Markup {
    let (word, since) = item.shown_standing;
    html! { tr {
        td {
            (html::item(feed, &item.sync_id, item.title.as_deref().unwrap_or_default()))
            @if let Some(id) = &item.former_id { div.quiet { "once " (text(id)) } }
        }
        td data-label="State" {
            span {
                span class={ "badge " (word) } { (word) }
                @if let Some(since) = since { " " span.quiet { (ago(since, now)) } }
                @if item.conflicts > 0 { " " span.pill.bad { "in conflict" } }
            }
        }
        td data-label="First seen" { (ago(item.first_seen, now)) }
        td data-label="Last version" { (ago(item.tick.time(), now)) }
        td.number data-label="Versions" { (item.updates.value()) }
    } }
}
