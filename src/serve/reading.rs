//! A feed as a page, for who opens its address in a browser: what is in it now, and where edits and deletions
//! are marked. Every program that reads feeds gets the feed.

use super::{
    Audience, Client, DocumentKey, DocumentKind, PrivateReaders, Problem, Query, ServedFeed,
    SharedState, Work, WorkKind, conflicts, html, make_on_thread, prefers_html, readers,
};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use maud::{Markup, PreEscaped, html};
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, FeedName, Item, Time, counted};
use tidegate_format::render::{Container, ViewKind};
use tidegate_store::{Select, View};

/// What a browser is going to do with an answer (Fetch Metadata).
pub(super) const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// What it says when somebody goes to an address.
pub(super) const NAVIGATION: &str = "document";
/// What an answer at the address of a feed depends on, where it may be a page.
pub(super) const VARY: HeaderValue =
    HeaderValue::from_static("Accept, Accept-Encoding, Sec-Fetch-Dest");
/// The most items of a page.
const ITEMS_SHOWN: usize = 100;
/// The most deletions of a page, and how many events are read for them.
const DELETIONS_SHOWN: usize = 10;
const EVENTS_READ: usize = 100;
/// Whether the page is asked for: with `?as=html`, or by a browser that goes to the address, which names nothing
/// else. A browser that does not say so may be a program that calls itself one.
pub(super) fn is_asked_for(query: &str, headers: &HeaderMap) -> Result<bool, Problem> {
    let query = Query::read(query)?;
    let others = ["as-of", "sx", "since"];
    let other = others.into_iter().find(|key| query.all(key).next().is_some());
    if let Some(container) = query.get("as")? {
        return match (container == "html", other) {
            (true, Some(key)) => {
                Err(Problem::parameter(key, format!("the page of a feed (as=html) has no {key}")))
            }
            (is_html, _) => Ok(is_html),
        };
    }
    Ok(other.is_none() && is_navigation(headers))
}

/// Whether a browser goes to the address, to look at it.
pub(super) fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get(FETCH_DEST).is_some_and(|dest| dest == NAVIGATION) && prefers_html(headers)
}

/// The feed as a page.
pub(super) async fn page(
    app: &SharedState,
    (viewing, client): (&Audience, Client),
    record: &ServedFeed,
    request_headers: &HeaderMap,
) -> Result<Response, Problem> {
    let state = app.store.shown_state(&record.name).await?.ok_or_else(Problem::unread_feed)?;
    let work = Work::new(&record.name, WorkKind::View(ViewKind::Reader));
    let work_request = app.admission.request(client, work, u64::from(state.current));
    let (readers, audience) = readers::readers_for_operator(app, viewing, record).await?;
    let (feed, revision) = (record.name.clone(), Some(state.revision));
    let key = DocumentKey { audience, feed: Some(feed), kind: DocumentKind::Reading };
    let make = || render_page(Arc::clone(app), record.name.clone());
    let content = app.documents.get(key, revision, work_request, make).await?.text();
    let title = record.shown_title();
    let content = html! {
        (follow(record, readers.as_ref()))
        (PreEscaped(String::from_utf8_lossy(&content)))
    };
    let title = html::text(&title);
    let links = html::feed_links((&record.name, Container::of(state.format)), &title);
    Ok(whole_page(request_headers, html::document(viewing, &title, &links, &content)))
}

/// A page at an address where programs get a feed.
pub(super) fn whole_page(request_headers: &HeaderMap, page: String) -> Response {
    let mut response = html::whole_page(request_headers, page);
    response.headers_mut().insert(header::VARY, VARY);
    response
}

/// How to follow a feed; `readers`: for whom it is, where it is private.
fn follow(record: &ServedFeed, readers: Option<&PrivateReaders>) -> Markup {
    let address = format!("/feeds/{}", record.name);
    html! { div.subscribe {
        @if let Some(readers) = readers {
            p { "This is a feed. " span.pill { "private" } " " (html::text(&readers.about)) "." }
        } @else {
            p { "This is a feed. To follow it, give this address to your feed reader:" }
            p { a href=(address) rel="alternate" { code { (record.site.at(&address)) } } }
        }
    } }
}

/// The page without its frame and without how to follow the feed.
async fn render_page(app: SharedState, name: FeedName) -> Result<String, Problem> {
    let view = app.store.view(&name, Select::Current).await?.ok_or_else(Problem::unread_feed)?;
    let events = app.store.events(&name, EVENTS_READ).await?;
    let now = app.clock.now();
    let make = move || Ok(content(&name, &view, &events, now).into_string());
    make_on_thread("this page", make).await
}

fn content(name: &FeedName, view: &View, events: &[Event], now: Time) -> Markup {
    let deletions = || events.iter().filter(|event| event.kind == EventKind::Deleted);
    html! {
        p.links {
            @if let Some(link) = &view.skeleton.link { (html::outward(Some(link), "The publisher's page")) }
            a href={ "/feeds/" (name) "/about" } { "What happened to it" }
            a href={ "/feeds/" (name) "/items" } { "All items" }
            a href={ "/feeds/" (name) "/changes?as=html" } { "Edits and deletions" }
            a href={ "/feeds/" (name) "?as=atom" } { "Atom" }
            a href={ "/feeds/" (name) "?as=rss" } { "RSS" }
            a href={ "/feeds/" (name) "?as=jsonfeed" } { "JSON Feed" }
        }
        @if view.items.is_empty() { p.empty { "There is nothing in it now." } }
        ol.reading { @for item in view.items.iter().take(ITEMS_SHOWN) { (entry(name, item, now)) } }
        @if view.items.len() > ITEMS_SHOWN {
            p.quiet { "The first " (ITEMS_SHOWN) " of " (view.items.len()) " items are shown." }
        }
        @if deletions().next().is_some() {
            h2 { "Lately deleted by the publisher" }
            ul { @for event in deletions().take(DELETIONS_SHOWN) {
                li { del { (html::item(name, &event.id, &event.title)) } " " span.quiet { (html::ago(event.at, now)) } }
            } }
        }
    }
}

fn entry(feed: &FeedName, item: &Item, now: Time) -> Markup {
    let winner = &item.shared.winner;
    let card = &winner.data.card;
    let title = if card.title.is_empty() { "Without a title" } else { &card.title };
    let versions = winner.updates.value();
    let excerpt = conflicts::excerpt(&winner.data);
    html! { li dir="auto" {
        h2 { (html::outward(card.link.as_deref(), title)) }
        p.quiet {
            @if let Some(author) = &card.author { (html::text(author)) " · " }
            (html::ago(card.published.or(card.updated).unwrap_or_else(|| item.tick.time()), now)) " · "
            a href=(super::address::item_page(feed, &winner.id)) {
                @if versions > 1 { span.pill.edit { (counted(versions, "version")) } } @else { "one version" }
            }
        }
        @if !excerpt.is_empty() { p.excerpt { (excerpt) } }
    } }
}
