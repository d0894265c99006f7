//! `/feeds/NAME/changes`: the edits and deletions of a feed as a feed of their own, an entry for each version
//! with what differs from the one before. Atom or JSON Feed for readers, a page for people.

use super::address::ChangeFeedForm;
use super::dashboard::pill;
use super::items::{CompareBudget, Differences};
use super::negotiate::container;
use super::views::borne_ids;
use super::{
    AppState, Audience, BadRequest, Client, DocumentKind, Gone, LastModified, Later, NotFound,
    Problem, Query, Rendition, ServedDocument, ServedFeed, SharedState, TypedQuery, Unchanged,
    Work, WorkKind, followable, html, item_page, items, make_on_thread, reading,
};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use maud::{Markup, PreEscaped, html};
use std::collections::HashSet;
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, FeedName, LedgerEntry, Stamp, Tick, Time};
use tidegate_format::render::{ChangeEntry, ChangeFeed, Container};
use tidegate_status::describe;
use tidegate_status::schema::words;
use tidegate_store::{StoreError, VersionNote};

/// The most entries of a feed of changes.
const ENTRIES: usize = 50;
/// How many events are looked at for them: as many as a store keeps of a feed.
const EVENTS_READ: usize = tidegate_store::EVENTS_KEPT;
/// How many versions of an item are looked at for the two that are compared.
const VERSIONS_READ: usize = 200;
/// The cost of making a document, in bytes: this many times its text, and a fixed part.
const COST_FACTOR: u64 = 8;
const BASE_COST: u64 = 256 * 1024;

/// Who was told of a change must not get what an intermediary kept from before.
const FRESH: HeaderValue = HeaderValue::from_static("public, no-cache");

describe! {
    /// A form of the changes.
    ChangeForm: words(["atom", "jsonfeed", "html"]);
}

/// The newest edits and deletions, an entry for each version with what differs.
#[utoipa::path(get, path = "/feeds/{name}/changes", operation_id = "changeFeed",
    params(("as" = inline(Option<ChangeForm>), Query, description = "The form; where it is left out, Accept chooses.")),
    responses(
        (status = 200, description = "The changes.", headers(("ETag"), ("Last-Modified")), content(
            (String = "application/atom+xml"),
            (Object = "application/feed+json"),
            (String = "text/html"),
        )),
        Unchanged, BadRequest, NotFound, Gone, Later,
    ))]
pub(super) async fn show(
    State(app): State<SharedState>,
    (audience, client): (Audience, Client),
    record: ServedFeed,
    TypedQuery(query): TypedQuery<Query>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = form(&query, &headers)?;
    let state = app.store.shown_state(&record.name).await?.ok_or_else(Problem::unread_feed)?;
    let work = Work::new(&record.name, WorkKind::Changes);
    let entries = u64::try_from(ENTRIES).unwrap_or(u64::MAX);
    let work_request = app.admission.request(client, work, entries);
    let (key, revision) = (record.key(DocumentKind::Changes(form)), Some(state.revision));
    let make = || build_change_feed(Arc::clone(&app), record.clone(), state.updated_at, form);
    let document = app.documents.get(key, revision, work_request, make).await?;
    let Some(rendition) = document.encoded() else {
        let (title, content) = (title(&record), document.text());
        let content = html! { (PreEscaped(String::from_utf8_lossy(&content))) };
        let links = html::feed_links((&record.name, Container::Atom), &title);
        let page = html::document(&audience, &title, &links, &content);
        return Ok(reading::whole_page(&headers, page));
    };
    let modified = LastModified::seen(rendition.shown, app.clock.now());
    Ok(rendition.answer(&headers, Some(modified), None))
}

fn title(record: &ServedFeed) -> String {
    format!("{}: edits and deletions", record.shown_title())
}

fn form(query: &Query, headers: &HeaderMap) -> Result<ChangeFeedForm, Problem> {
    let named = query.parse("as", "as is atom, jsonfeed or html", |value| match value {
        "atom" => Some(ChangeFeedForm::Atom),
        "jsonfeed" => Some(ChangeFeedForm::JsonFeed),
        "html" => Some(ChangeFeedForm::Page),
        _ => None,
    })?;
    Ok(match named {
        Some(named) => named,
        None if reading::is_navigation(headers) => ChangeFeedForm::Page,
        None => match container(headers, Container::Atom) {
            Container::JsonFeed => ChangeFeedForm::JsonFeed,
            _ => ChangeFeedForm::Atom,
        },
    })
}

async fn build_change_feed(
    app: SharedState,
    record: ServedFeed,
    shown: Time,
    form: ChangeFeedForm,
) -> Result<ServedDocument, Problem> {
    let feed = gather(&app, &record).await?;
    // Text that is removed, and versions that are not kept any more, leave the document without a change.
    let name = record.name.clone();
    make_on_thread("the feed of changes", move || {
        let (text, media_type) = match form {
            ChangeFeedForm::Atom => (feed.to_atom(), Container::Atom.media_type()),
            ChangeFeedForm::JsonFeed => (feed.to_json(), Container::JsonFeed.media_type()),
            ChangeFeedForm::Page => return Ok(page(&name, &feed).into()),
        };
        let head = [(header::CACHE_CONTROL, FRESH), (header::VARY, reading::VARY)];
        Ok(Rendition::build_quickly(text, media_type, shown)?.with(head).into())
    })
    .await
}

/// The newest changes, each with what differs.
async fn gather(app: &AppState, record: &ServedFeed) -> Result<ChangeFeed, Problem> {
    let name = &record.name;
    let events = app.store.events(name, EVENTS_READ).await?;
    // A publisher that begins to share its items replaces them: nothing is gone.
    let tells_deletions = events.iter().any(|event| event.kind == EventKind::Deleted);
    let ledger = if tells_deletions { app.store.snapshot(name).await? } else { None };
    let borne = match ledger {
        Some(ledger) => borne_ids(ledger).await?,
        None => HashSet::new(),
    };
    let mut entries: Vec<ChangeEntry> = Vec::new();
    let mut budget = CompareBudget::FOR_ENTRIES;
    for event in events.iter().filter(|event| is_told(event.kind)) {
        let Some(tick) = event.tick else { continue };
        if entries.len() >= ENTRIES {
            break;
        }
        let Some(known) = app.store.known(name, &event.id).await? else { continue };
        let is_replaced = known.is_deleted() && borne.contains(&known.published_id);
        if known.is_redacted() || event.kind == EventKind::Deleted && is_replaced {
            continue;
        }
        let entry = entry(app, record, (event, tick, &known), &mut budget).await?;
        // An item has one version of a tick, whatever happened to it then.
        if entries.iter().all(|other| other.id != entry.id) {
            entries.push(entry);
        }
    }
    let bytes: usize = entries.iter().map(|entry| entry.html.len()).sum();
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(COST_FACTOR);
    app.admission.record_cost(Work::new(name, WorkKind::Changes), bytes.saturating_add(BASE_COST));
    // A feed has a date even where nothing changed yet.
    let began = record.enrolment.history.last().and_then(Stamp::when);
    Ok(ChangeFeed {
        id: record.site.change_feed_id(name),
        title: title(record),
        atom: record.site.changes(name, ChangeFeedForm::Atom),
        json: record.site.changes(name, ChangeFeedForm::JsonFeed),
        page: record.site.at(&format!("/feeds/{name}/about")),
        updated: entries.first().map(|entry| entry.at).or(began).unwrap_or(Time::from_unix(0)),
        entries,
    })
}

/// Whether a reader who knew the item is told: what is new to them is in the feed itself.
const fn is_told(kind: EventKind) -> bool {
    use EventKind::{Deleted, Rekeyed, Undeleted, Updated};
    matches!(kind, Updated | Deleted | Undeleted | Rekeyed)
}

async fn entry(
    app: &AppState,
    record: &ServedFeed,
    (event, tick, known): (&Event, Tick, &LedgerEntry),
    budget: &mut CompareBudget,
) -> Result<ChangeEntry, Problem> {
    let feed = &record.name;
    let versions = app.store.versions(feed, &event.id, VERSIONS_READ).await?;
    let pair = compared_versions(&versions, tick);
    let read = async |note: &VersionNote| -> Result<_, StoreError> {
        let version = app.store.version(feed, &event.id, note.updates).await?;
        Ok(version.and_then(|version| version.markup))
    };
    let mut differences = None;
    if let Some((old, new)) = pair
        && let (Some(old), Some(new)) = (read(old).await?, read(new).await?)
    {
        budget.next_entry();
        differences = items::compared(app, (old, new), budget).await?;
    }
    let page = record.site.at(&item_page(feed, &event.id));
    let link = known.link.as_deref().and_then(followable).map(str::to_owned);
    let mut title = event.title.clone();
    if title.is_empty() {
        title = items::stand_in_title(app, feed, &event.id).await?;
    }
    let title = if title.is_empty() { event.id.as_str() } else { &title };
    let mut word = event.kind.word().to_owned();
    word.get_mut(..1).map(str::make_ascii_uppercase);
    Ok(ChangeEntry {
        id: record.site.change_entry_id(feed, &event.id, tick),
        title: format!("{word}: {}", html::text(title)),
        kind: event.kind,
        at: event.at,
        html: entry_html(event, (&page, link.as_deref()), pair, differences.as_ref()).into_string(),
        page,
        link,
    })
}

/// The version that was made at a tick and the one before, where both have a text of their own.
pub(super) fn compared_versions(
    versions: &[VersionNote],
    tick: Tick,
) -> Option<(&VersionNote, &VersionNote)> {
    let new = versions.iter().find(|note| note.tick == tick && !note.deleted)?;
    let mut older = versions.iter().filter(|note| note.updates < new.updates && !note.deleted);
    Some((older.next()?, new))
}

/// What there is to say of a change.
fn entry_html(
    event: &Event,
    (page, link): (&str, Option<&str>),
    pair: Option<(&VersionNote, &VersionNote)>,
    differences: Option<&Differences>,
) -> Markup {
    html! {
        p { (html::text(&event.reason)) "." }
        @if differences.is_some() { (items::differing(differences)) }
        p {
            @if let Some((old, new)) = pair {
                a href={ (page) "?diff=" (old.updates.value()) ".." (new.updates.value()) } { "What changed" }
                " · "
            }
            a href=(page) { "All versions" }
            @if link.is_some() { " · " (html::outward(link, "The publisher's page")) }
        }
    }
}

/// The feed as a page, without its frame.
fn page(name: &FeedName, feed: &ChangeFeed) -> String {
    let content = html! {
        (html::trail(name, None, "Edits and deletions"))
        p.links {
            a href={ "/feeds/" (name) "/changes?as=atom" } { "Atom" }
            a href={ "/feeds/" (name) "/changes?as=jsonfeed" } { "JSON Feed" }
        }
        p.quiet { "To follow them, give this address to your feed reader: " code { (feed.atom) } }
        @if feed.entries.is_empty() {
            p.empty { "Nothing was edited or deleted yet since this gateway knows the feed." }
        }
        @for entry in &feed.entries {
            article.change {
                h2 { (pill(entry.kind)) " " a href=(entry.page) { (entry.title) } }
                p.quiet { (html::moment(entry.at)) }
                (PreEscaped(entry.html.as_str()))
            }
        }
    };
    content.into_string()
}
