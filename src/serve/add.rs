//! `/add`: a feed is added by the address of its site or its own, after a look at what it would be. The same
//! for programs: `POST /api/v1/preview` and `POST /api/v1/feeds`.

use super::answers::{ActedFeed, NewFeed, answer, object};
use super::operator::{AddressPreview, FeedPreview, FoundFeed};
use super::{
    BadRequest, Conflict, ImportedList, JsonObject, LIST_LIMIT, ListLine, Problem, PutMode, Query,
    Reply, SentForm, SharedState, TypedQuery, Viewer, WholeBody, admin, forms, html, put, shown,
};
use axum::body::Bytes;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use serde_json::Value;
use tidegate_config::FeedSettings;
use tidegate_core::model::{FeedName, counted};
use tidegate_status::describe;
use tidegate_status::schema::text as any_text;
use url::Url;

/// The longest address, in bytes.
const ADDRESS_LIMIT: usize = 2_000;
const TITLE: &str = "Add a feed";

/// `GET /add`.
pub(super) async fn show(viewer: Viewer) -> Response {
    let whose = "Adding a feed is for who runs this gateway.";
    viewer.operators_page(TITLE, (whose, "/add"), || address_form("", true))
}

/// `POST /add`: looks at an address, or adds the feed at one.
pub(super) async fn send(viewer: Viewer, form: SentForm) -> Reply {
    let (app, address) = (&viewer.app, completed(form.get("url")));
    let done = match form.get("do") {
        "add" => add(app, &address, &form).await.and_then(|name| {
            let notice = format!("The feed {name} was added, and its first poll is on its way.");
            viewer.see(&format!("/feeds/{name}/about"), &notice)
        }),
        _ => look_at(app, form.get("url")).await.map(|(address, there)| {
            let content = match there {
                AddressPreview::Page { feeds, .. } => choose(&address, &feeds),
                AddressPreview::Feed(feed) => preview(&feed),
            };
            viewer.form_page(TITLE, &content)
        }),
    };
    Ok(done.unwrap_or_else(|problem| {
        viewer.not_done(TITLE, &problem, &address_form(form.get("url"), true))
    }))
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

/// Refuses an address that is too long to be looked at.
pub(super) fn check_length(address: &str) -> Result<(), Problem> {
    let detail = || format!("an address has at most {ADDRESS_LIMIT} bytes");
    let fits = (address.len() <= ADDRESS_LIMIT).then_some(());
    fits.ok_or_else(|| Problem::parameter("url", detail()))
}

/// Looks at an address as a person typed it. Returns it as it was found, and what is there.
async fn look_at(app: &SharedState, typed: &str) -> Result<(String, AddressPreview), Problem> {
    check_length(typed)?;
    let asks_for_https = typed.to_ascii_lowercase().contains("https:");
    // What may be a secret goes out in clear only where that is typed.
    let has_secrets =
        |url: &Url| !url.username().is_empty() || url.password().is_some() || url.query().is_some();
    let may_be_asked = |url: &Url| url.scheme() == "https" || !(asks_for_https || has_secrets(url));
    let others = candidates(typed).into_iter().flatten().skip(1).filter(may_be_asked);
    let mut failed = None;
    for address in std::iter::once(completed(typed)).chain(others.map(String::from)) {
        match app.operator.preview(&address).await {
            Ok(there) => return Ok((address, there)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.map_or_else(Problem::unread_feed, Problem::from))
}

async fn add(app: &SharedState, address: &str, form: &SentForm) -> Result<FeedName, Problem> {
    let adds_feeds = form.get("add_feeds") == "true";
    let settings = [("url", address.into()), ("add_feeds", adds_feeds.into())];
    let settings = settings.map(|(key, value): (&str, Value)| (key.to_owned(), value));
    add_new(app, put::parse_settings(&settings.into_iter().collect())?, form.get("name").trim())
        .await
}

/// Adds a feed under a new name, one made of its address where none is chosen.
async fn add_new(
    app: &SharedState,
    settings: FeedSettings,
    name: &str,
) -> Result<FeedName, Problem> {
    let name = match name {
        "" => {
            let url = settings.url.as_ref().map(Url::as_str).unwrap_or_default();
            app.operator.name_for(url).await?
        }
        name => FeedName::new(name).map_err(|why| Problem::parameter("name", why.to_string()))?,
    };
    put::put_feed(app, &name, settings, PutMode::Add).await?;
    Ok(name)
}

/// Adds a feed under a new name.
#[utoipa::path(post, path = "/api/v1/feeds", operation_id = "addFeed", request_body = NewFeed, responses(
    (status = 201, description = "It was added.", body = ActedFeed, headers(("Location"))),
    BadRequest, Conflict,
))]
pub(super) async fn create(
    State(app): State<SharedState>,
    JsonObject(mut object): JsonObject,
) -> Reply {
    let name = object.text("name")?.unwrap_or_default();
    let name = add_new(&app, put::parse_settings(&object.0)?, &name).await?;
    admin::created(&app, &name).await
}

describe! {
    /// Where to look.
    SoughtAddress: object("url", any_text().min_length(Some(1)).max_length(Some(2000)).examples(["example.org"]));
}

/// Says what is at the address of a site or a feed; nothing is added.
#[utoipa::path(post, path = "/api/v1/preview", operation_id = "previewAddress", request_body = SoughtAddress, responses(
    (status = 200, description = "A feed, or a page with feeds.", body = AddressPreview),
    BadRequest,
))]
pub(super) async fn preview_address(
    State(app): State<SharedState>,
    JsonObject(mut object): JsonObject,
) -> Reply {
    let missing = || Problem::parameter("url", "url, the address to look at, is missing");
    let typed = object.text("url")?.filter(|url| !url.is_empty()).ok_or_else(missing)?;
    object.finish()?;
    let (_, there) = look_at(&app, &typed).await?;
    Ok(answer(StatusCode::OK, &there))
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
fn preview(feed: &FeedPreview) -> Markup {
    html! {
        h2 { @if feed.title.is_empty() { "A feed without a title" } @else { (html::text(&feed.title)) } }
        p.lead {
            (feed.format) " at " (html::text(&shown(&feed.url, None))) ", with "
            (tidegate_core::model::counted(feed.entries, "entry")) "."
        }
        form.choices method="post" action="/add" {
            input type="hidden" name="url" value=(feed.url);
            label { span { "Name: it is published here as /feeds/NAME, and the name stays" }
                input name="name" value=(feed.name) required pattern="[a-z0-9][a-z0-9\\-]{0,63}"
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
        @if feed.first_entries.is_empty() { p.quiet { "Nothing yet: it has no entries." } }
        ol { @for entry in &feed.first_entries {
            li {
                @if entry.title.is_empty() { span.quiet { "without a title" } } @else { (html::text(&entry.title)) }
                @if let Some(time) = entry.time { " " span.quiet { (html::moment(time)) } }
            }
        } }
        @if feed.entries > feed.first_entries.len() {
            p.quiet { "and " (feed.entries - feed.first_entries.len()) " more" }
        }
        h2 { "How it would be judged" }
        ul { @for remark in &feed.remarks { li { (html::text(remark)) "." } } }
        h2 { "Another address" }
        (address_form("", false))
    }
}

// `/add/list`: the feeds of a subscription list (OPML) are added by an upload, with their folders and names.

/// The longest upload: a list, and what a form has around it.
pub(super) const UPLOAD_LIMIT: usize = LIST_LIMIT + 64 * 1024;
/// How many feeds that were added are named.
const NAMED: usize = 200;
/// How many fields of a form are read.
const FIELDS: usize = 8;

const IMPORT_TITLE: &str = "Import a list";

/// Adds the feeds of a subscription list (OPML), with their folders and names.
#[utoipa::path(post, path = "/api/v1/import", operation_id = "importList",
    params(("rearrange" = Option<bool>, Query,
        description = "Whether the list says where all of its feeds stand; not, where it is absent.")),
    request_body(content = String, content_type = "text/x-opml"),
    responses((status = 200, description = "What became of the list.", body = ImportedList), BadRequest))]
pub(super) async fn import_list(
    State(app): State<SharedState>,
    TypedQuery(query): TypedQuery<Query>,
    WholeBody(body): WholeBody,
) -> Reply {
    let rearrange = query.flag("rearrange")?.unwrap_or(false);
    let done = import(&app, body, rearrange).await?;
    Ok(answer(StatusCode::OK, &done))
}

/// `GET /add/list`.
pub(super) async fn show_import(viewer: Viewer) -> Response {
    let whose = "Feeds are added by who runs this gateway.";
    viewer.operators_page(IMPORT_TITLE, (whose, "/add/list"), import_form)
}

/// `POST /add/list`, with a file. Who may send it is known before anything of it is read.
pub(super) async fn upload(
    viewer: Viewer,
    headers: HeaderMap,
    body: Result<Multipart, MultipartRejection>,
) -> Reply {
    forms::refuse_foreign(&viewer.app, &headers)?;
    if !viewer.is_signed_in {
        return Err(forms::not_signed_in());
    }
    let done = match read_upload(body).await {
        Ok((list, rearrange)) => import(&viewer.app, list, rearrange).await,
        Err(problem) => Err(problem),
    };
    Ok(match done {
        Ok(done) => viewer.form_page(IMPORT_TITLE, &imported(&done)),
        Err(problem) => viewer.not_done(IMPORT_TITLE, &problem, &import_form()),
    })
}

async fn import(app: &SharedState, list: Bytes, rearrange: bool) -> Result<ImportedList, Problem> {
    app.act(|operator| async move { operator.import_list(list, rearrange).await }).await
}

/// The file of the form, and whether it says where its feeds stand.
async fn read_upload(
    body: Result<Multipart, MultipartRejection>,
) -> Result<(Bytes, bool), Problem> {
    let mut body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let (mut list, mut rearrange) = (None, false);
    for _ in 0..FIELDS {
        let field = body.next_field().await;
        let field = field.map_err(|error| Problem::new(error.status(), error.body_text()))?;
        let Some(field) = field else { break };
        let name = field.name().unwrap_or_default().to_owned();
        let bytes = field.bytes().await;
        let bytes = bytes.map_err(|error| Problem::new(error.status(), error.body_text()))?;
        match name.as_str() {
            "list" => list = Some(bytes).filter(|bytes| !bytes.is_empty()),
            "rearrange" => rearrange = true,
            _ => {}
        }
    }
    let list = list.ok_or_else(|| Problem::parameter("list", "no file was chosen"))?;
    Ok((list, rearrange))
}

fn import_form() -> Markup {
    html! {
        p { "Feed readers export their subscriptions as OPML. Choose such a file: its feeds are added, with their \
             folders and names." }
        form.choices method="post" action="/add/list" enctype="multipart/form-data" {
            label { span { "File" }
                input type="file" name="list" accept=".opml,.xml,text/x-opml,text/xml,application/xml" required; }
            label.inline {
                input type="checkbox" name="rearrange" value="yes";
                span { "Move feeds that are here already to where the list has them" }
            }
            div.buttons { button { "Import" } }
        }
        p.quiet {
            "At most " (tidegate_core::model::shown_size(u64::try_from(LIST_LIMIT).unwrap_or(u64::MAX)))
            "; a longer one is taken by " code { "tidegate import" } "."
        }
        p.links { a href="/add" { "Add a single feed" } }
    }
}

/// What became of a list.
fn imported(done: &ImportedList) -> Markup {
    let facts = [
        (done.known, "were here already"),
        (done.placed, "have another place now"),
        (done.again, "stand in a further folder"),
        (done.deeper, "stand deeper than folders are kept"),
        (done.deleted, "were deleted in the list"),
        (done.not_taken, "could not be taken"),
        (done.repaired, "mistakes of the list were passed over"),
    ];
    html! {
        p.note role="status" { (counted(done.added.len(), "feed")) " added." }
        @if facts.iter().any(|(number, _)| *number > 0) {
            ul { @for (number, what) in facts.into_iter().filter(|(number, _)| *number > 0) {
                li { (number) " " (what) }
            } }
        }
        @if !done.added.is_empty() {
            h2 { "Added" }
            p { "They are polled one after the other, a host at a time." }
            ul { @for name in done.added.iter().take(NAMED) {
                li { a href={ "/feeds/" (name) "/about" } { (name) } }
            } }
            @if done.added.len() > NAMED { p.quiet { "and " (done.added.len() - NAMED) " more" } }
        }
        (lines("Not taken", &done.refused))
        (lines("What was wrong with the list", &done.problems))
        p.links { a href="/" { "All feeds" } a href="/add/list" { "Another list" } }
    }
}

fn lines(title: &str, lines: &[ListLine]) -> Markup {
    html! {
        @if !lines.is_empty() {
            h2 { (title) }
            ul { @for line in lines {
                li { span.quiet { "line " (line.line) ": " } (html::text(&line.said)) }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::candidates;

    #[test]
    fn an_address_without_a_scheme_may_have_either() {
        let both = "https://blog.test/x http://blog.test/x";
        for (typed, expected) in [
            ("blog.test/x", both),
            (" //blog.test/x ", both),
            ("FEED://blog.test/x", both),
            ("blog.test/?u=http://y", "https://blog.test/?u=http://y http://blog.test/?u=http://y"),
            ("feed://blog.test/x", both),
            ("feed:https://blog.test/x", both),
            ("feed:http://blog.test/x", "http://blog.test/x https://blog.test/x"),
            ("https://blog.test/x", "https://blog.test/x"),
            ("http://blog.test/x", "http://blog.test/x"),
            ("blog.test:8080", "https://blog.test:8080/ http://blog.test:8080/"),
            ("blog.test:80", "https://blog.test:80/ http://blog.test/"),
            ("ftp://blog.test/x", "ftp://blog.test/x"),
        ] {
            let found: Vec<_> = candidates(typed).unwrap().into_iter().map(String::from).collect();
            assert_eq!(found.join(" "), expected, "{typed}");
        }
        assert!(candidates("https://").is_none());
    }
}
