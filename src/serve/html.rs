//! The frame around pages for people. No scripts; everything from outside is escaped by maud.

use super::conditional::{ETag, tags};
use super::{Audience, Rendition, SharedState, followable, item_page, shown_pages, unkept};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};
use std::time::Duration;
use tidegate_core::model::{FeedName, SyncId, Time};
use tidegate_format::render::Container;

/// How many characters of a text from outside a page shows.
const TEXT_SHOWN: usize = 300;

/// What is farther away than this is shown as a day.
const FAR: Duration = Duration::from_secs(60 * 86_400);
/// Units of time in seconds, the longest first.
const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
/// How many colours monograms have; as many as the style sheet names.
const MONOGRAM_COLOURS: u8 = 6;

pub(super) const MEDIA_TYPE: &str = "text/html; charset=utf-8";

const STYLE: &str = include_str!("style.css");

/// `GET /assets/style.css`.
pub(super) async fn style(request_headers: HeaderMap) -> Response {
    whole(&request_headers, "text/css; charset=utf-8", "public, max-age=3600", STYLE)
}

pub(super) const ICON: &str = "/assets/icon.svg";

/// `GET /assets/icon.svg`, and `/favicon.ico` for those that ask without reading a page.
pub(super) async fn icon(request_headers: HeaderMap) -> Response {
    whole(&request_headers, "image/svg+xml", "public, max-age=86400", include_str!("icon.svg"))
}

/// Whether an answer is a page.
pub(super) fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// `GET /robots.txt` (RFC 9309): keeps search engines out of the pages, where they may not list them. Feeds are for everybody.
pub(super) async fn robots(State(app): State<SharedState>) -> Response {
    let path = app.site.path();
    let pages = ["/$", "/?", "/recent"].into_iter().map(str::to_owned);
    let of_feeds =
        ["about", "items", "changes", "conflicts"].map(|page| format!("/feeds/*/{page}"));
    let mut rules = "User-agent: *\nDisallow: /api/\n".to_owned();
    for page in pages.chain(of_feeds).filter(|_| !app.config.server.indexed) {
        rules.push_str(&format!("Disallow: {path}{page}\n"));
    }
    unkept("text/plain; charset=utf-8", rules)
}

/// What a page of ours may do: send forms to this gateway, and load its style sheet and icon. What a publisher wrote
/// has a policy that lets no form be sent (`observe`).
pub(super) const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// A page of this moment as an answer.
pub(super) fn page(request_headers: &HeaderMap, document: String) -> Response {
    let mut response = whole_page(request_headers, document);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// A page with forms as an answer: nobody keeps it, and the forms say which origin they come from.
pub(super) fn form_page(document: String) -> Response {
    let mut response = unkept(MEDIA_TYPE, document);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// A page without links and style sheet, for the host of an origin, where no address of ours exists.
pub(super) fn lone_document(title: &str, content: &Markup) -> String {
    let body = html! { main { h1 { (title) } (content) } };
    framed(&html! { title { (title) } }, &body)
}

/// What the head of a page about a feed names for programs that look for one; `title`: of the page.
pub(super) fn feed_links((feed, container): (&FeedName, Container), title: &str) -> Markup {
    let kind = container.media_type();
    let kind = kind.split(';').next().unwrap_or(kind);
    html! {
        link rel="alternate" type=(kind) title=(title) href={ "/feeds/" (feed) };
        link rel="alternate" type=(Container::Atom.media_range())
            title={ (title) ": edits and deletions" } href={ "/feeds/" (feed) "/changes" };
    }
}

/// A page as a document, as its audience has it; `head`: what its head names beside the title.
pub(super) fn document(
    audience: &Audience,
    title: &str,
    head: &Markup,
    content: &Markup,
) -> String {
    let head = html! {
        title { (title) " · Tidegate" }
        link rel="icon" type="image/svg+xml" href=(ICON);
        link rel="stylesheet" href="/assets/style.css";
        (head)
    };
    let body = html! {
        header {
            a.brand href="/" { "Tidegate" }
            (pages(audience.may_sign_in, audience.is_operator()))
        }
        main { h1 { (title) } (content) }
        footer { "Tidegate " (env!("CARGO_PKG_VERSION")) }
    };
    shown_pages::prefix_links_with_path(audience.site.path(), framed(&head, &body))
}

fn framed(head: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                (head)
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// The way to the pages that are about all feeds; to those of operators where they are here; and out, for one
/// who is signed in.
fn pages(are_operators_here: bool, is_signed_in: bool) -> Markup {
    html! {
        nav aria-label="Pages" {
            a href="/" { "Overview" }
            a href="/recent" { "Recent changes" }
            @if are_operators_here { a href="/add" { "Add a feed" } }
            a href="/subscriptions.opml" { "OPML" }
            @if are_operators_here { a href="/metrics" { "Metrics" } }
            @if is_signed_in { a href="/session" { "Signed in: sign out" } }
        }
    }
}

/// The answer that a page is.
pub(super) fn whole_page(request_headers: &HeaderMap, page: String) -> Response {
    chosen(request_headers, MEDIA_TYPE, page.into())
}

/// The same as data, for those that ask for that.
pub(super) fn data(request_headers: &HeaderMap, json: Bytes) -> Response {
    chosen(request_headers, "application/json", json)
}

/// What `Accept` chose, or that the client has it.
fn chosen(request_headers: &HeaderMap, media_type: &'static str, body: Bytes) -> Response {
    let tag = ETag::from_bytes(&body, None);
    let lasting = [
        (header::ETAG, tag.weak_value()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    if tags(request_headers).any(|known| known == "*" || tag.matches(known)) {
        return (StatusCode::NOT_MODIFIED, lasting).into_response();
    }
    (lasting, [(header::CONTENT_TYPE, media_type)], body).into_response()
}

/// A small document as a whole, with its tag.
pub(super) fn whole(
    request_headers: &HeaderMap,
    media_type: &'static str,
    cache_control: &'static str,
    document: impl Into<Bytes>,
) -> Response {
    let fresh = (header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    let document = Rendition::uncompressed(document, media_type, Time::MIN).with([fresh]);
    document.answer(request_headers, None, None)
}

/// A moment as people read it; its exact form is in the markup.
pub(super) fn moment(time: Time) -> Markup {
    let exact = time.to_string();
    let shown = exact.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(exact) { (shown) } }
}

/// A moment by how far it is from now; its exact form is in the markup, and shown to who points at it. One
/// that is far away is shown as a day.
pub(super) fn ago(time: Time, now: Time) -> Markup {
    let exact = time.to_string();
    let (is_past, apart) = match time <= now {
        true => (true, now.since(time)),
        false => (false, time.since(now)),
    };
    let words = match apart.as_secs() {
        0..10 => "now".to_owned(),
        seconds if seconds >= FAR.as_secs() => exact.chars().take("2026-11-20".len()).collect(),
        seconds => {
            let (unit, name) =
                UNITS.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "s"));
            let number = seconds / unit;
            if is_past { format!("{number} {name} ago") } else { format!("in {number} {name}") }
        }
    };
    html! { time datetime=(exact) title=(exact.replace('T', " ").replace('Z', " UTC")) { (words) } }
}

/// A letter that stands for a feed, in one of a few colours that follow from its title. The publisher's own
/// picture is not loaded: it would tell publishers who looks.
pub(super) fn monogram(title: &str) -> Markup {
    let letter = title.chars().find(|c| c.is_alphanumeric()).unwrap_or('·');
    let letter: String = letter.to_uppercase().collect();
    let sum = title.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    html! { span class={ "monogram m" (sum % MONOGRAM_COLOURS) } aria-hidden="true" { (letter) } }
}

/// A text from outside, cut to what a page has room for.
pub(super) fn text(from_outside: &str) -> String {
    cut(from_outside, TEXT_SHOWN)
}

/// A text of at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().take(most).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A link to an item's page.
pub(super) fn item(feed: &FeedName, id: &SyncId, title: &str) -> Markup {
    let title = if title.is_empty() { id.as_str() } else { title };
    html! { a href=(item_page(feed, id)) { (text(title)) } }
}

/// A table under these headings.
pub(super) fn table(headings: &[&str], rows: &Markup) -> Markup {
    html! { div.wide { table {
        thead { tr { @for heading in headings { th { (heading) } } } }
        tbody { (rows) }
    } } }
}

/// How many of all there are are shown, where that is not all.
pub(super) fn shown_of(shown: usize, all: impl TryInto<usize>) -> Markup {
    let all = all.try_into().unwrap_or(usize::MAX);
    html! { @if all > shown { p.quiet { (shown) " of " (all) " are shown." } } }
}

/// Where a page stands: the way to it from the feeds; `here` is what it is called.
pub(super) fn trail(feed: &FeedName, up: Option<(&str, &str)>, here: &str) -> Markup {
    html! {
        nav.trail aria-label="Where this is" {
            a href="/" { "Feeds" } " / " a href={ "/feeds/" (feed) "/about" } { (feed) } " / "
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_said_by_how_far_they_are() {
        let now = Time::from_unix(1_795_191_605);
        let shown = |seconds: i64| {
            let markup = ago(Time::from_unix(now.unix() + seconds), now).into_string();
            assert!(markup.contains(" UTC\">"), "{markup}");
            let text = markup.split('>').nth(1).and_then(|rest| rest.split('<').next());
            text.unwrap_or_default().to_owned()
        };
        for (seconds, words) in [
            (0, "now"),
            (-9, "now"),
            (-10, "10 s ago"),
            (-119, "1 min ago"),
            (-7_200, "2 h ago"),
            (-86_400, "1 d ago"),
            (300, "in 5 min"),
            (-60 * 86_400, "2026-09-21"),
        ] {
            assert_eq!(shown(seconds), words, "{seconds}");
        }
    }

    #[test]
    fn a_monogram_is_a_letter_whatever_the_title_is() {
        let cases = [("news", "N"), ("  «ßa»", "SS"), ("<b>", "B"), ("", "·"), ("!?", "·")];
        for (title, letter) in cases {
            let markup = monogram(title).into_string();
            assert!(markup.ends_with(&format!("\">{letter}</span>")), "{markup}");
        }
    }
}
