//! The page of an item: its versions, each with its reason, its bytes, and what differs between two
//! of them. HTML for people, JSON when asked for.

mod compare;
mod described;
mod page;
mod text_diff;

pub(super) use self::compare::{Differences, FieldDifference, compared};
pub(super) use self::page::{ItemContent, act, differing};
pub(super) use self::text_diff::CompareBudget;

use self::described::{ItemDetail, ItemFacts};
use super::admin::EVENTS_SHOWN;
use super::answers::EventAnswer;
use super::conditional::add;
use super::{
    AppState, DocumentKey, DocumentKind, Gone, ItemCall, LastModified, NotFound, Problem, Query,
    ReadQuery, Rendition, ServedDocument, ServedFeed, ServedItem, SharedState, Site, TypedQuery,
    Unchanged, Viewer, Work, WorkKind, answers, html, item_page, unknown_item,
};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use std::sync::Arc;
use tidegate_core::model::{Count, FeedName, Item, ItemStatus, LedgerEntry, Markup, SyncId, Time};
use tidegate_judge::{PendingAbsence, news};
use tidegate_store::{EVENTS_KEPT, StoreError, VersionNote};

/// How many versions are shown, newest first.
const VERSIONS_SHOWN: usize = 200;
/// How many versions are compared with others at once: it takes several times what entries may have (`parse::Limits`).
pub(super) const COMPARED_AT_ONCE: usize = 2;
/// What publishers write is hostile: of the bytes of a version nothing runs, nothing is loaded, and the page is of no
/// origin, whatever a browser takes it for.
const BYTES_POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// The cost of comparing two versions of an item, as a multiple of its bytes.
const COST_FACTOR: u64 = 8;

/// An item with everything that is said of it, without its bytes.
struct Subject {
    feed: FeedName,
    item: Item,
    known: LedgerEntry,
    versions: Vec<VersionNote>,
}

impl Subject {
    /// What it is called.
    fn title(&self) -> &str {
        let title = self.item.shared.winner.data.card.title.as_str();
        match (title.is_empty(), self.known.is_redacted()) {
            (false, _) => title,
            (true, false) => self.known.id.as_str(),
            (true, true) => "An item whose text was removed",
        }
    }

    /// The address of the page, without query.
    fn address(&self) -> String {
        item_page(&self.feed, &self.known.id)
    }

    /// Whether a version's own bytes can be had.
    fn has_bytes(&self, note: &VersionNote) -> bool {
        !note.deleted && !self.known.is_redacted()
    }

    /// The newest kept version before this one that has bytes.
    fn before(&self, note: &VersionNote) -> Option<&VersionNote> {
        let mut older = self.versions.iter().filter(|other| other.updates < note.updates);
        older.find(|other| self.has_bytes(other))
    }
}

/// An item with its versions: a page, data with `Accept: application/json`, the bytes of a version, or a difference.
#[utoipa::path(get, path = "/feeds/{name}/items/{id}", operation_id = "readItem",
    params(
        ("version" = Option<String>, Query, description = "The bytes of this version.",
            pattern = "^([1-9][0-9]{0,8}|newest)$"),
        ("diff" = Option<String>, Query, description = "What differs between two versions, the older first.",
            pattern = r"^[1-9][0-9]{0,8}\.\.([1-9][0-9]{0,8}|newest)$"),
    ),
    responses(
        (status = 200, description = "The item, a version or a difference.", content(
            (serde_json::Value = "application/json"),
            (String = "text/html"),
            (String = "application/atom+xml"),
            (String = "application/rss+xml"),
            (String = "application/xml"),
            (serde_json::Value = "application/feed+json"),
            (String = "text/x-opml"),
            (String = "text/plain"),
        )),
        Unchanged, NotFound, Gone,
    ))]
pub(super) async fn item(
    viewer: Viewer,
    ServedItem { feed: record, id }: ServedItem,
    TypedQuery(item_query): TypedQuery<ItemQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (app, is_json) = (&viewer.app, viewer.wants_json);
    let state = app.store.state(&record.name).await?;
    let revision = state.ok_or_else(|| unknown_item(&record.name))?.revision;
    // What an item takes is known once it was read.
    let work = Work::new(&record.name, WorkKind::Item(id.clone()));
    let work_request = app.admission.request(viewer.client, work, 1);
    let kind = DocumentKind::Item { id: id.clone(), query: item_query, is_json };
    let (audience, feed) = (record.site.key(), record.name.clone());
    let key = DocumentKey { audience, feed: Some(feed), kind };
    let make = || make_document(Arc::clone(app), record.clone(), id.clone(), (item_query, is_json));
    let document = app.documents.get(key, Some(revision), work_request, make).await?;
    let content = match &*document {
        ServedDocument::Item(content) => content,
        ServedDocument::Encoded(bytes) => {
            let modified = LastModified::vague(bytes.shown);
            return Ok(bytes.answer(&headers, Some(modified), None));
        }
        data => return Ok(html::data(&headers, data.text())),
    };
    if item_query != ItemQuery::Page {
        // Nothing can be done there, so that no form is sent from what publishers wrote.
        let (nothing, title) = (maud::Markup::default(), &content.title);
        let page = html::document(&viewer.audience, title, &nothing, &content.with(&nothing));
        return Ok(html::whole_page(&headers, page));
    }
    let acting = page::render_actions(&viewer, &record, &id).await?;
    Ok(viewer.page(&content.title, &content.with(&acting)))
}

/// Makes what an address answers.
async fn make_document(
    app: SharedState,
    record: ServedFeed,
    id: SyncId,
    (item_query, is_json): (ItemQuery, bool),
) -> Result<ServedDocument, Problem> {
    let subject = subject(&app, &record.site, (&record.name, &id)).await?;
    Ok(match item_query {
        ItemQuery::Page if is_json => item_as_data(&record.site, &subject),
        ItemQuery::Page => {
            let pending = pending(&app, &subject).await;
            ServedDocument::Item(page::item(&subject, pending.as_ref()))
        }
        ItemQuery::Version(which) => {
            let (note, markup) = bytes_of(&app, &subject, which).await?;
            bytes_as_document(&subject, note.as_ref(), markup).into()
        }
        ItemQuery::Difference(old, new) => {
            let difference = compare::compare_versions(&app, &subject, old, new).await?;
            if is_json {
                answers::text(&difference.as_data(&subject)).into()
            } else {
                ServedDocument::Item(page::difference(&subject, &difference))
            }
        }
    })
}

/// An item as everybody may read it.
fn item_as_data(site: &Site, subject: &Subject) -> ServedDocument {
    let (known, facts) = (&subject.known, ItemFacts::new(&site.at(""), subject));
    let native_id = (!known.is_redacted()).then_some(&known.native_shown);
    let pending = known.absence.as_ref().map(|absence| {
        json!({
            "evidence": absence.evidence,
            "since": absence.since,
            "observations": absence.observations,
        })
    });
    let mut item = answers::value(&facts);
    if let Some(members) = item.as_object_mut() {
        members.insert("native_id".to_owned(), json!(native_id));
        members.insert("pending".to_owned(), json!(pending));
    }
    item.to_string().into()
}

/// The bytes of a version, as they were taken in: as plain text that no browser may make anything else of. `note`: of
/// the version, where they are those of one.
fn bytes_as_document(subject: &Subject, note: Option<&VersionNote>, markup: Markup) -> Rendition {
    let shown = note.map_or(subject.item.tick.time(), |note| note.shown);
    let media_type = "text/plain; charset=utf-8";
    let mut bytes = Rendition::uncompressed(markup.xml, media_type, shown).with([
        // The bytes of a version never change, but they may be redacted.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, BYTES_POLICY),
    ]);
    add(&mut bytes.head, header::LINK, &format!("<{}>; rel=\"up\"", subject.address()));
    bytes
}

/// What is to come of an item that is missing.
async fn pending(app: &AppState, subject: &Subject) -> Option<PendingAbsence> {
    subject.known.pending_absence()?;
    app.operator.pending_absence(&subject.feed, &subject.known).await.ok()?
}

async fn subject(
    app: &AppState,
    site: &Site,
    (feed, id): (&FeedName, &SyncId),
) -> Result<Subject, Problem> {
    let Some(mut item) = app.store.item(feed, id).await? else {
        return Err(missing(app, site, feed, id).await?);
    };
    let known = app.store.known(feed, id).await?.ok_or_else(|| unknown_item(feed))?;
    let versions = app.store.versions(feed, id, VERSIONS_SHOWN).await?;
    // What is said of an item needs none of its bytes, which may be many.
    let shared = &mut item.shared;
    let mut bytes = 0_u64;
    for version in std::iter::once(&mut shared.winner).chain(&mut shared.conflicts) {
        let text = std::mem::take(&mut version.data.xml);
        bytes = bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
    }
    let work = Work::new(feed, WorkKind::Item(id.clone()));
    app.admission.record_cost(work, bytes.saturating_mul(COST_FACTOR));
    Ok(Subject { feed: feed.clone(), item, known, versions })
}

/// All that is known of an item.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/items/{id}", operation_id = "showItem", responses(
    (status = 200, description = "The item.", body = ItemDetail, headers(("ETag", description = "What `If-Match` of a change says."))),
    NotFound,
))]
pub(super) async fn detail(ItemCall { app, feed, id }: ItemCall) -> Result<Response, Problem> {
    let subject = subject(&app, &app.site, (&feed, &id)).await?;
    let events = app.store.events(&feed, EVENTS_KEPT).await?;
    let events = events.iter().filter(|event| event.id == subject.known.id).take(EVENTS_SHOWN);
    let pending = app.operator.pending_absence(&feed, &subject.known).await?;
    let events = events.map(EventAnswer::from).collect();
    let item = ItemDetail::new(&app.site.at(""), &subject, pending.as_ref(), events);
    let mut response = answers::answer(StatusCode::OK, &item);
    let tag = format!("\"{}\"", subject.known.updates.value());
    add(response.headers_mut(), header::ETAG, &tag);
    Ok(response)
}

/// The bytes of a version, or the newest ones.
async fn bytes_of(
    app: &AppState,
    subject: &Subject,
    which: VersionChoice,
) -> Result<(Option<VersionNote>, Markup), Problem> {
    if subject.known.is_redacted() {
        let detail = "the text of this item was removed, that of all its versions with it";
        return Err(Problem::new(StatusCode::GONE, detail));
    }
    let updates = match which {
        VersionChoice::Newest => {
            let item = app.store.item(&subject.feed, &subject.known.id).await?;
            let item = item.ok_or_else(|| unknown_item(&subject.feed))?;
            return Ok((None, item.shared.winner.data));
        }
        VersionChoice::Number(updates) => updates,
    };
    let version = app.store.version(&subject.feed, &subject.known.id, updates).await?;
    let version = version.ok_or_else(|| not_kept(subject, updates))?;
    match version.markup {
        Some(markup) => Ok((Some(version.note), markup)),
        None => Err(Problem::not_found(format!(
            "version {} is a tombstone, which has no bytes of its own",
            updates.value()
        ))),
    }
}

fn not_kept(subject: &Subject, updates: Count) -> Problem {
    let kept = subject.versions.iter().map(|note| note.updates.value());
    let (first, last) = (kept.clone().min(), kept.max());
    Problem::not_found(match (first, last) {
        (Some(first), Some(last)) => format!(
            "version {} of this item is not kept; those from {first} to {last} are",
            updates.value()
        ),
        _ => format!("version {} of this item is not kept", updates.value()),
    })
}

/// Why a feed has no item of a sync id: it left the ledger, so that it is in archives alone, or never was there.
async fn missing(
    app: &AppState,
    site: &Site,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Problem, StoreError> {
    let state = app.store.state(feed).await?.filter(|state| state.evictions.count > 0);
    let Some(state) = state else { return Ok(unknown_item(feed)) };
    let stubs = app.store.stubs(feed, &[id.to_string()]).await?;
    let stub = stubs.into_iter().find(|stub| stub.id == *id);
    let Some(stub) = stub else { return Ok(unknown_item(feed)) };
    let ItemStatus::Evicted { since, deleted } = stub.standing else {
        return Ok(unknown_item(feed));
    };
    let was = if deleted { "which was deleted," } else { "one of its oldest," };
    let detail = format!(
        "the item, {was} left the complete view of the feed {feed} at {since}; it comes back as itself \
         where its publisher lists it again"
    );
    let gone =
        |detail| Problem::new(StatusCode::GONE, detail).with("published_id", stub.published_id);
    Ok(match state.archives.newest.filter(|_| !deleted) {
        Some(newest) => {
            let archives = site.archive(feed, &newest, site.form(None, None));
            gone(format!("{detail}, and is in its archives, the newest of which is {archives}"))
                .with("archives", archives)
        }
        None => gone(detail),
    })
}

/// What an item without a title is called: by the beginning of its text, where it has any.
pub(super) async fn stand_in_title(
    app: &AppState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<String, StoreError> {
    let item = app.store.item(feed, id).await?;
    let title = item.map(|item| news::stand_in_title(&item.shared.winner.data));
    Ok(title.unwrap_or_default())
}

/// The same for people: an item that left the publisher's document is missing until that is decided about.
pub(super) fn shown_standing(known: &LedgerEntry) -> (&'static str, Option<Time>) {
    match known.pending_absence() {
        Some(absence) => ("missing", Some(absence.since)),
        None => standing(&known.standing),
    }
}

/// The word for what an item is to its upstream, and since when.
pub(super) fn standing(standing: &ItemStatus) -> (&'static str, Option<Time>) {
    match standing {
        ItemStatus::Current => ("current", None),
        ItemStatus::Retired { since } => ("retired", Some(*since)),
        ItemStatus::Deleted { since } => ("deleted", Some(*since)),
        ItemStatus::Redacted { since } => ("redacted", Some(*since)),
        ItemStatus::Discarded { since } => ("discarded", Some(*since)),
        ItemStatus::Evicted { since, .. } => ("evicted", Some(*since)),
        ItemStatus::Older { since } => ("older", Some(*since)),
    }
}

/// A version of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum VersionChoice {
    /// The newest bytes, whether they made a version or not.
    Newest,
    /// The version of this number.
    Number(Count),
}

/// What is asked of an item's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ItemQuery {
    /// The item with its versions.
    Page,
    /// `?version=N` or `?version=newest`: the bytes of one.
    Version(VersionChoice),
    /// `?diff=A..B`: what differs between two, the older first.
    Difference(VersionChoice, VersionChoice),
}

impl ReadQuery for ItemQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let version =
            query.parse("version", "version is the number of a version, or newest", which)?;
        let wanted = "diff is two numbers of versions, the older first: 3..4; newest is one too";
        let difference = query.parse("diff", wanted, |value| {
            let (old, new) = value.split_once("..")?;
            Some((which(old)?, which(new)?))
        })?;
        match (version, difference) {
            (None, None) => Ok(Self::Page),
            (Some(version), None) => Ok(Self::Version(version)),
            (None, Some((old, new))) => Ok(Self::Difference(old, new)),
            (Some(_), Some(_)) => Err(Problem::parameter("diff", "diff is given beside version")),
        }
    }
}

fn which(text: &str) -> Option<VersionChoice> {
    if text == "newest" {
        return Some(VersionChoice::Newest);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    Count::new(number).ok().map(VersionChoice::Number)
}
