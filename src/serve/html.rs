//! The frame around pages for people. No scripts; everything from outside is escaped by maud.

use super::address::{followable, item_page};
use super::conditional::Representation;
use super::negotiate::Encoding;
use super::rendition::EncodedBody;
use crate::model::{FeedName, SyncId, Time};
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use maud::{DOCTYPE, Markup, html};

/// How many characters of a text from outside a page shows.
const TEXT_SHOWN: usize = 300;

const STYLE: &str = include_str!("style.css");

/// `GET /assets/style.css`.
pub(super) async fn style(asked: HeaderMap) -> Response {
    whole(&asked, "text/css; charset=utf-8", "public, max-age=3600", STYLE)
}

/// The address of the icon.
pub(super) const ICON: &str = "/assets/icon.svg";

/// `GET /assets/icon.svg`, and `/favicon.ico` for those that ask without reading a page.
pub(super) async fn icon(asked: HeaderMap) -> Response {
    whole(&asked, "image/svg+xml", "public, max-age=86400", include_str!("icon.svg"))
}

/// A page with its title; not kept by anybody, because it shows the state of this moment.
pub(super) fn page(title: &str, content: &Markup) -> Response {
    whole_page(document(title, content))
}

/// A page as a document.
pub(super) fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Tidegate" }
                link rel="icon" type="image/svg+xml" href=(ICON);
                link rel="stylesheet" href="/assets/style.css";
            }
            body {
                header { a href="/" { "Tidegate" } }
                main { h1 { (title) } (content) }
            }
        }
    };
    page.into_string()
}

/// The answer that a page is.
pub(super) fn whole_page(page: impl Into<Body>) -> Response {
    chosen("text/html; charset=utf-8", page)
}

/// The same as data, for those that ask for that.
pub(super) fn data(json: Bytes) -> Response {
    chosen("application/json", json)
}

fn chosen(media_type: &'static str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (headers, body.into()).into_response()
}

/// A small document as a whole, with its tag.
pub(super) fn whole(
    asked: &HeaderMap,
    media_type: &'static str,
    cache_control: &'static str,
    document: &'static str,
) -> Response {
    let body = &EncodedBody::new(document, None);
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    let encoding = Encoding::Identity;
    Representation { headers, body, media_type, encoding, modified: None, is_dated: false }
        .answer(asked)
}

/// A moment as people read it; its exact form is in the markup.
pub(super) fn moment(time: Time) -> Markup {
    let exact = time.to_string();
    let shown = exact.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(exact) { (shown) } }
}

/// A text from outside, cut to what a page has room for.
pub(super) fn text(from_outside: &str) -> String {
    let mut shown: String = from_outside.chars().take(TEXT_SHOWN).collect();
    if shown.len() < from_outside.len() {
        shown.push('…');
    }
    shown
}

/// A link to an item's page.
pub(super) fn item(feed: &FeedName, id: &SyncId, title: &str) -> Markup {
    let title = if title.is_empty() { id.as_str() } else { title };
    html! { a href=(item_page(feed, id)) { (text(title)) } }
}

/// Where a page stands: the way to it from the feeds; `here` is what it is called.
pub(super) fn trail(feed: &FeedName, up: Option<(&str, &str)>, here: &str) -> Markup {
    html! {
        nav.trail aria-label="Where this is" {
            a href="/" { "Feeds" } " / " a href={ "/feeds/" (feed) } { (feed) } " / "
            @if let Some((address, name)) = up { a href=(address) { (name) } " / " }
            span { (here) }
        }
    }
}

/// A link to a page of somebody else, where its address is one to follow; else the text alone.
pub(super) fn outward(address: Option<&str>, label: &str) -> Markup {
    match address.and_then(followable) {
        Some(address) => html! { a href=(address) rel="noreferrer nofollow" { (text(label)) } },
        None => html! { (text(label)) },
    }
}
