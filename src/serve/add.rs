//! `/add`: a feed is added by the address of its site or its own, after a look at what it would be. The same
//! for programs: `POST /api/v1/preview` and `POST /api/v1/feeds`.

use super::address::shown;
use super::answers::{ActedFeed, NewFeed, answer, object};
use super::client::Client;
use super::edit::whole;
use super::forms::{self, SentForm};
use super::openapi::{BadRequest, Conflict};
use super::operator::{AddressPreview, FeedPreview, FoundFeed, PutFeed};
use super::problem::Problem;
use super::session::sign_in_address;
use super::{REQUEST_BODY_LIMIT, SharedState, admin, html, put};
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use serde::Serialize;
use serde_json::Value;
use tidegate_core::model::{FeedName, Time};
use tidegate_status::describe;
use tidegate_status::schema::{self, text as any_text};
use url::Url;
use utoipa::ToSchema;

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
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let form = SentForm::authorized(&room, (client, &headers), body, REQUEST_BODY_LIMIT).await?;
    let address = completed(form.get("url"));
    let done = match form.get("do") {
        "add" => add(&room, &address, &form).await.map(AddResult::Added),
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
pub(super) fn completed(typed: &str) -> String {
    let typed = typed.trim();
    let is_feed = typed.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("feed:"));
    let rest = typed.get(5..).filter(|_| is_feed).unwrap_or(typed);
    let rest = if is_feed { rest.trim_start_matches("//") } else { rest };
    let scheme = rest.split_once("://").map_or("", |(scheme, _)| scheme);
    let has_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if has_scheme { rest.to_owned() } else { format!("https://{rest}") }
}

/// The addresses that one as a person types it may be: with each scheme where it has none of its own, or is one of
/// `feed:`; as it is completed first. `None`: it is no address of the web.
pub(super) fn candidates(typed: &str) -> Option<Vec<Url>> {
    let completed = completed(typed);
    let first = Url::parse(&completed).ok()?;
    let mut other = first.clone();
    let scheme = if first.scheme() == "https" { "http" } else { "https" };
    if completed == typed.trim() || other.set_scheme(scheme).is_err() {
        return Some(vec![first]);
    }
    Some(vec![first, other])
}

/// What is at an address; of a feed, also the name that it gets where nobody chooses one.
enum SeenAddress {
    Page(Vec<FoundFeed>),
    Feed(Box<FeedPreview>, FeedName),
}

async fn look(room: &SharedState, address: &str) -> Result<Markup, Problem> {
    Ok(match look_at(room, address).await? {
        SeenAddress::Page(found) => choose(address, &found),
        SeenAddress::Feed(feed, name) => preview(&feed, &name),
    })
}

async fn look_at(room: &SharedState, address: &str) -> Result<SeenAddress, Problem> {
    if address.len() > ADDRESS_LIMIT {
        return Err(Problem::parameter(
            "url",
            format!("an address has at most {ADDRESS_LIMIT} bytes"),
        ));
    }
    Ok(match room.operator.preview(address).await? {
        AddressPreview::Page(found) => SeenAddress::Page(found),
        AddressPreview::Feed(feed) => {
            let name = room.operator.name_for(&feed.url).await?;
            SeenAddress::Feed(Box::new(feed), name)
        }
    })
}

async fn add(room: &SharedState, address: &str, form: &SentForm) -> Result<FeedName, Problem> {
    let adds_feeds = form.get("add_feeds") == "true";
    let said = [("url", address.into()), ("add_feeds", adds_feeds.into())];
    let said = said.map(|(key, value): (&str, Value)| (key.to_owned(), value));
    add_new(room, put::settings(&said.into_iter().collect())?, form.get("name").trim()).await
}

/// Adds a feed under a new name, one made of its address where none is chosen.
async fn add_new(room: &SharedState, put: PutFeed, name: &str) -> Result<FeedName, Problem> {
    let name = match name {
        "" => room.operator.name_for(&put.url).await?,
        name => FeedName::new(name).map_err(|why| Problem::parameter("name", why.to_string()))?,
    };
    let put = PutFeed { must_be_new: true, ..put };
    admin::put_feed(room, &name, put).await?;
    Ok(name)
}

/// Adds a feed under a new name.
#[utoipa::path(post, path = "/api/v1/feeds", operation_id = "addFeed", request_body = NewFeed, responses(
    (status = 201, description = "It was added.", body = ActedFeed, headers(("Location"))),
    BadRequest,
    Conflict,
))]
pub(super) async fn create(
    State(room): State<SharedState>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let mut object = put::object(&whole(body, REQUEST_BODY_LIMIT)?)?;
    let name = text(object.remove("name"), "name")?;
    let name = add_new(&room, put::settings(&object)?, &name).await?;
    admin::created(&room, &name).await
}

describe! {
    /// Where to look.
    SoughtAddress: object("url", any_text().min_length(Some(1)).max_length(Some(2000)).examples(["example.org"]));
}

/// What is at an address.
#[derive(Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Preview {
    Feed(PreviewedFeed),
    /// A page, with the feeds that it names or that were found where sites usually have one.
    Page {
        url: String,
        feeds: Vec<FoundFeed>,
    },
}

/// A feed as it would begin.
#[derive(Serialize, ToSchema)]
struct PreviewedFeed {
    /// Its address; where permanent redirects lead, if they do.
    url: String,
    /// The name that it gets where nobody chooses one.
    #[schema(value_type = schema::FeedName)]
    name: FeedName,
    format: &'static str,
    title: String,
    entries: usize,
    first_entries: Vec<PreviewedEntry>,
    /// How it would be judged.
    remarks: Vec<String>,
}

#[derive(Serialize, ToSchema)]
struct PreviewedEntry {
    title: String,
    #[schema(value_type = Option<schema::Time>)]
    time: Option<Time>,
}

impl PreviewedFeed {
    fn new(feed: FeedPreview, name: FeedName) -> Self {
        let FeedPreview { url, format, title, entries, titles, remarks, is_list: _ } = feed;
        let first = titles.into_iter().map(|(title, time)| PreviewedEntry { title, time });
        Self { url, name, format, title, entries, first_entries: first.collect(), remarks }
    }
}

/// Says what is at the address of a site or a feed; nothing is added.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewAddress", request_body = SoughtAddress, responses(
    (status = 200, description = "A feed, or a page with feeds.", body = Preview),
    BadRequest,
))]
pub(super) async fn preview_address(
    State(room): State<SharedState>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let mut object = put::object(&whole(body, REQUEST_BODY_LIMIT)?)?;
    let typed = text(object.remove("url"), "url")?;
    if let Some(key) = object.keys().next() {
        return Err(put::unknown_key(key));
    }
    if typed.is_empty() {
        return Err(Problem::parameter("url", "url, the address to look at, is missing"));
    }
    let address = completed(&typed);
    let preview = match look_at(&room, &address).await? {
        SeenAddress::Page(feeds) => Preview::Page { url: address, feeds },
        SeenAddress::Feed(feed, name) => Preview::Feed(PreviewedFeed::new(*feed, name)),
    };
    Ok(answer(StatusCode::OK, &preview))
}

/// The text of a key; empty where it is absent.
fn text(value: Option<Value>, key: &str) -> Result<String, Problem> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Problem::parameter(key, format!("{key} is a text"))),
    }
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
                (html::text(&shown(address, None))) " is a page without a feed: its links, its Link headers and the addresses where \
                 sites usually have a feed were looked at. Give the address of a feed itself."
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
            (tidegate_core::model::counted(feed.entries, "entry")) "."
        }
        form.choices method="post" action="/add" {
            input type="hidden" name="url" value=(feed.url);
            label { span { "Name: it is published here as /feeds/NAME, and the name stays" }
                input name="name" value=(name) required pattern="[a-z0-9][a-z0-9\\-]{0,63}"
                    autocomplete="off" spellcheck="false"; }
            @if feed.is_list {
                label { span { "The feeds of the list" }
                    select name="add_feeds" {
                        option value="false" { "are shown in it" }
                        option value="true" { "are feeds here too, and follow the list" }
                    } }
            }
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
    use super::{Url, candidates, completed};

    #[test]
    fn an_address_without_a_scheme_may_have_either() {
        let both = ["https://blog.test/x", "http://blog.test/x"];
        for (typed, expected) in [
            ("blog.test/x", &both[..]),
            (" //blog.test/x ", &both[..]),
            ("feed://blog.test/x", &both[..]),
            ("feed:https://blog.test/x", &both[..]),
            ("feed:http://blog.test/x", &["http://blog.test/x", "https://blog.test/x"][..]),
            ("https://blog.test/x", &["https://blog.test/x"][..]),
            ("http://blog.test/x", &["http://blog.test/x"][..]),
            ("blog.test:8080", &["https://blog.test:8080/", "http://blog.test:8080/"][..]),
            ("blog.test:80", &["https://blog.test:80/", "http://blog.test/"][..]),
            ("ftp://blog.test/x", &["ftp://blog.test/x"][..]),
        ] {
            let found = candidates(typed).unwrap();
            assert_eq!(found.iter().map(Url::as_str).collect::<Vec<_>>(), expected, "{typed}");
        }
        assert!(candidates("https://").is_none());
    }

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
