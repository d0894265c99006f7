//! `/add`: a feed is added by the address of its site or its own, after a look at what it would be.

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
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use std::sync::Arc;

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
    forms::page("Add a feed", &html! { (address_form("")) })
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
        "add" => add(&room, &address, form.get("name").trim()).await.map(Outcome::Added),
        _ => look(&room, &address).await.map(Outcome::Seen),
    };
    match done {
        Ok(Outcome::Added(name)) => {
            let said = format!("The feed {name} was added, and its first poll is on its way.");
            room.sessions.leave_notice(&headers, said);
            forms::see(&format!("/feeds/{name}/about"))
        }
        Ok(Outcome::Seen(content)) => Ok(forms::page("Add a feed", &content)),
        Err(problem) => {
            let content = html! {
                p.note role="alert" { (html::text(problem.detail())) "." }
                (address_form(form.get("url")))
            };
            let mut page = forms::page("Add a feed", &content);
            *page.status_mut() = problem.status();
            Ok(page)
        }
    }
}

/// What came of a form.
enum Outcome {
    Added(FeedName),
    Seen(Markup),
}

/// An address as a person types it, with a scheme.
fn completed(typed: &str) -> String {
    let typed = typed.trim();
    let typed = typed.strip_prefix("feed:").map_or(typed, |rest| rest.trim_start_matches("//"));
    match typed.contains("://") {
        true => typed.to_owned(),
        false => format!("https://{typed}"),
    }
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
    if room.directory.listing().await?.contains_key(&name) {
        let said = format!("there is a feed {name} already; choose another name");
        return Err(Problem::new(StatusCode::CONFLICT, said).about("name"));
    }
    let put = PutFeed {
        url: address.to_owned(),
        options: FeedOptions::default(),
        access: FeedAccess::default(),
    };
    let (acting, feed) = (Arc::clone(room), name.clone());
    let done = admin::to_the_end(async move {
        let done = acting.operator.put(&feed, put).await;
        acting.directory.changed();
        done
    });
    done.await?;
    Ok(name)
}

fn address_form(typed: &str) -> Markup {
    html! {
        form.search action="/add" method="post" {
            label { span { "Address of a site or of its feed" }
                input type="text" inputmode="url" name="url" value=(typed) required autofocus
                    placeholder="example.org"; }
            button name="do" value="look" { "Look" }
        }
        p.quiet { "Nothing is added yet: you are shown what is there." }
    }
}

/// The feeds of a page.
fn choose(address: &str, found: &[FoundFeed]) -> Markup {
    html! {
        @if found.is_empty() {
            p.note role="alert" {
                (html::text(address)) " is a page that names no feed, and none is where sites usually have \
                 one. Look for a link to a feed on the page, and give its address."
            }
        } @else {
            p { (html::text(address)) " is a page. It has these feeds:" }
            ul.found { @for feed in found {
                li {
                    form method="post" action="/add" {
                        input type="hidden" name="url" value=(feed.url);
                        div {
                            strong { (html::text(if feed.title.is_empty() { &feed.url } else { &feed.title })) }
                            div.quiet { (html::text(&feed.url)) }
                        }
                        button name="do" value="look" { "Look" }
                    }
                }
            } }
        }
        (address_form(address))
    }
}

/// A feed before it is added.
fn preview(feed: &FeedPreview, name: &FeedName) -> Markup {
    html! {
        h2 { @if feed.title.is_empty() { "A feed without a title" } @else { (html::text(&feed.title)) } }
        p.lead {
            (feed.format) " at " (html::text(&feed.url)) ", with "
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
        (address_form(""))
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
        ] {
            assert_eq!(completed(typed), completed_to);
        }
    }
}
