//! `/add/list`: the feeds of a subscription list (OPML) are added by an upload, with their folders and names.

use super::admin::{RequestJson, to_the_end};
use super::answers::answer;
use super::edit::whole;
use super::forms;
use super::openapi::BadRequest;
use super::operator::{ImportedList, LIST_LIMIT, ListLine};
use super::problem::Problem;
use super::query::Query;
use super::session::sign_in_address;
use super::{SharedState, html};
use axum::body::Bytes;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use maud::{Markup, html};
use std::sync::Arc;
use tidegate_core::model::counted;

/// The longest upload: a list, and what a form has around it.
pub(super) const UPLOAD_LIMIT: usize = LIST_LIMIT + 64 * 1024;
/// How many feeds that were added are named.
const NAMED: usize = 200;
/// How many fields of a form are read.
const FIELDS: usize = 8;

const TITLE: &str = "Import a list";

/// Adds the feeds of a subscription list (OPML), with their folders and names.
#[utoipa::path(post, path = "/api/v1/import", operation_id = "importList",
    params(("rearrange" = Option<bool>, Query,
        description = "Whether the list says where all of its feeds stand; not, where it is absent.")),
    request_body(content = String, content_type = "text/x-opml"),
    responses((status = 200, description = "What became of the list.", body = ImportedList), BadRequest))]
pub(super) async fn post(
    State(room): State<SharedState>,
    RawQuery(query): RawQuery,
    body: RequestJson,
) -> Result<Response, Problem> {
    let query = query.unwrap_or_default();
    let rearrange = Query::read(&query)?.flag("rearrange")?.unwrap_or(false);
    let done = import(&room, whole(body, LIST_LIMIT)?, rearrange).await?;
    Ok(answer(StatusCode::OK, &done))
}

/// `GET /add/list`.
pub(super) async fn show(State(room): State<SharedState>, headers: HeaderMap) -> Response {
    if !room.sessions.is_open(&headers) {
        let content = html! {
            p { "Feeds are added by who runs this gateway." }
            p.links { a href=(sign_in_address("/add/list")) { "Sign in" } }
        };
        return forms::page(TITLE, &content);
    }
    forms::page(TITLE, &form())
}

/// `POST /add/list`, with a file. Who may send it is known before anything of it is read.
pub(super) async fn upload(
    State(room): State<SharedState>,
    headers: HeaderMap,
    body: Result<Multipart, MultipartRejection>,
) -> Result<Response, Problem> {
    forms::refuse_foreign(&room, &headers)?;
    if !room.sessions.is_open(&headers) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "sign in first, then send it again"));
    }
    let imported = match read(body).await {
        Ok((list, rearrange)) => import(&room, list, rearrange).await,
        Err(problem) => Err(problem),
    };
    Ok(match imported {
        Ok(done) => forms::page(TITLE, &told(&done)),
        Err(problem) => {
            let content = html! {
                p.note role="alert" { (html::text(problem.detail())) ". Nothing was added." }
                (form())
            };
            forms::refusal(TITLE, &content, problem.status())
        }
    })
}

async fn import(room: &SharedState, list: Bytes, rearrange: bool) -> Result<ImportedList, Problem> {
    let acting = Arc::clone(room);
    to_the_end(async move { acting.operator.import_list(list, rearrange).await }).await
}

/// The file of the form, and whether it says where its feeds stand.
async fn read(body: Result<Multipart, MultipartRejection>) -> Result<(Bytes, bool), Problem> {
    let wrong = |status, said: String| Problem::new(status, said);
    let mut body = body.map_err(|error| wrong(error.status(), error.body_text()))?;
    let (mut list, mut rearrange) = (None, false);
    for _ in 0..FIELDS {
        let field = body.next_field().await;
        let field = field.map_err(|error| wrong(error.status(), error.body_text()))?;
        let Some(field) = field else { break };
        let name = field.name().unwrap_or_default().to_owned();
        let bytes = field.bytes().await;
        let bytes = bytes.map_err(|error| wrong(error.status(), error.body_text()))?;
        match name.as_str() {
            "list" => list = Some(bytes).filter(|bytes| !bytes.is_empty()),
            "rearrange" => rearrange = true,
            _ => {}
        }
    }
    let list = list.ok_or_else(|| Problem::parameter("list", "no file was chosen"))?;
    Ok((list, rearrange))
}

fn form() -> Markup {
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
fn told(done: &ImportedList) -> Markup {
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
