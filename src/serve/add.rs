//! `/add`: a feed is added by the address of its site or its own, after a look at what it would be.

use super::address::shown;
use super::forms::{self, SentForm};
use super::operator::{AddressPreview, FeedPreview, FoundFeed, PutFeed};
use super::problem::Problem;
use super::session::sign_in_address;
use super::{REQUEST_BODY_LIMIT, SharedState, admin, html};
use crate::model::{FeedAccess, FeedName, FeedOptions};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};

/// The longest address, in bytes.
const ADDRESS_LIMIT: usize = 2_000;

/// `GET /add`.
pub(super) async fn show(State(room): State<SharedState>, headers: HeaderMap) -> Response {
    if !room.sessions.is_open(&headers) {
        let content = html! {
            p { "Adding a feed is for who runs this gateway." }
            p.links { a href=(sign_in_address("/add")) { "Sign in" } }
        };
        return forms::page("Add a feed", &content);
    }
    forms::page("Add a feed", &html! { (address_form("", true)) })
}

/// `POST /add`: looks at an address, or adds the feed at one.
pub(super) async fn send(
    State(room): State<SharedState>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let form = SentForm::read(&room, &headers, body, REQUEST_BODY_LIMIT)?;
    form.authorize(&room, &headers)?;
    let address = completed(form.get("url"));
    let done = match form.get("do") {
        "add" => add(&room, &address, form.get("name").trim()).await.map(AddResult::Added),
        _ => look(&room, &address).await.map(AddResult::Seen),
    };
    match done {
        Ok(AddResult::Added(name)) => {
            let said = format!("The feed {name} was added, and its first poll is on its way.");
            room.sessions.leave_notice(&headers, said);
            forms::see(&format!("/feeds/{name}/about"))
        }
        Ok(AddResult::Seen(content)) => Ok(forms::page("Add a feed", &content)),
        Err(problem) => {
            let content = html! {
                p.note role="alert" { (html::text(problem.detail())) "." }
                (address_form(form.get("url"), true))
            };
            Ok(forms::refusal("Add a feed", &content, problem.status()))
        }
    }
}

/// What came of a form.
enum AddResult {
    Added(FeedName),
    Seen(Markup),
}

/// An address as a person types it, with a scheme.
fn completed(typed: &str) -> String {
    let typed = typed.trim();
    let is_feed = typed.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("feed:"));
    let rest = typed.get(5..).filter(|_| is_feed).unwrap_or(typed);
    let rest = if is_feed { rest.trim_start_matches("//") } else { rest };
    let scheme = rest.split_once("://").map_or("", |(scheme, _)| scheme);
    let has_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if has_scheme { rest.to_owned() } else { format!("https://{rest}") }
}

async fn look(room: &SharedState, address: &str) -> Result<Markup, Problem> {
    if address.len() > ADDRESS_LIMIT {
        return Err(Problem::parameter(
            "url",
            format!("an address has at most {ADDRESS_LIMIT} bytes"),
        ));
    }
    Ok(match room.operator.preview(address).await? {
        AddressPreview::Page(found) => choose(address, &found),
        AddressPreview::Feed(feed) => {
            let name = room.operator.name_for(&feed.url).await?;
            preview(&feed, &name)
        }
    })
}

async fn add(room: &SharedState, address: &str, name: &str) -> Result<FeedName, Problem> {
    let name = match name {
        "" => room.operator.name_for(address).await?,
        name => FeedName::new(name).map_err(|why| Problem::parameter("name", why.to_string()))?,
    };
    let put = PutFeed {
        url: address.to_owned(),
        options: FeedOptions::default(),
        must_be_new: true,
        keeps_paused: false,
        access: FeedAccess::default(),
        private: None,
    };
    admin::put_feed(room, &name, put).await?;
    Ok(name)
}

fn address_form(typed: &str, is_first: bool) -> Markup {
    html! {
        form.search action="/add" method="post" {
            label { span { "Address of a site or of its feed" }
                input type="text" inputmode="url" name="url" value=(typed) required autofocus[is_first]
                    placeholder="example.org"; }
            button name="do" value="look" { "Look" }
        }
        p.quiet { "Nothing is added yet: you are shown what is there." }
        p.links { a href="/add/list" { "Import a list of subscriptions (OPML)" } }
    }
}

/// The feeds of a page.
fn choose(address: &str, found: &[FoundFeed]) -> Markup {
    html! {
        @if found.is_empty() {
            p.note role="alert" {
                (html::text(&shown(address, None))) " is a page that names no feed, and none is where sites usually have \
                 one. Look for a link to a feed on the page, and give its address."
            }
        } @else {
            p { (html::text(&shown(address, None))) " is a page. It has these feeds:" }
            ul.found { @for feed in found {
                li {
                    form method="post" action="/add" {
                        input type="hidden" name="url" value=(feed.url);
                        div {
                            strong { (html::text(if feed.title.is_empty() { "A feed" } else { &feed.title })) }
                            div.quiet { (html::text(&shown(&feed.url, None))) }
                        }
                        button name="do" value="look" { "Look" }
                    }
                }
            } }
        }
        (address_form(address, false))
    }
}

/// A feed before it is added.
fn preview(feed: &FeedPreview, name: &FeedName) -> Markup {
    html! {
        h2 { @if feed.title.is_empty() { "A feed without a title" } @else { (html::text(&feed.title)) } }
        p.lead {
            (feed.format) " at " (html::text(&shown(&feed.url, None))) ", with "
            (crate::model::counted(feed.entries, "entry")) "."
        }
        form.choices method="post" action="/add" {
            input type="hidden" name="url" value=(feed.url);
            label { span { "Name: it is published here as /feeds/NAME, and the name stays" }
                input name="name" value=(name) required pattern="[a-z0-9][a-z0-9\\-]{0,63}"
                    autocomplete="off" spellcheck="false"; }
            div.buttons { button name="do" value="add" { "Add this feed" } }
        }
        h2 { "What would be published" }
        @if feed.titles.is_empty() { p.quiet { "Nothing yet: it has no entries." } }
        ol { @for (title, time) in &feed.titles {
            li {
                @if title.is_empty() { span.quiet { "without a title" } } @else { (html::text(title)) }
                @if let Some(time) = time { " " span.quiet { (html::moment(*time)) } }
            }
        } }
        @if feed.entries > feed.titles.len() {
            p.quiet { "and " (feed.entries - feed.titles.len()) " more" }
        }
        h2 { "How it would be judged" }
        ul { @for remark in &feed.remarks { li { (html::text(remark)) "." } } }
        h2 { "Another address" }
        (address_form("", false))
    }
}

#[cfg(test)]
mod tests {
    use super::completed;

    #[test]
    fn an_address_is_completed_as_a_browser_does() {
        for (typed, completed_to) in [
            (" example.org ", "https://example.org"),
            ("http://example.org/x", "http://example.org/x"),
            ("feed://example.org/x", "https://example.org/x"),
            ("feed:https://example.org/x", "https://example.org/x"),
            ("ftp://example.org", "ftp://example.org"),
            ("FEED://example.org/x", "https://example.org/x"),
            ("example.org/?x=http://y", "https://example.org/?x=http://y"),
        ] {
            assert_eq!(completed(typed), completed_to);
        }
    }
}
