//! What a standby answers: readers get what another gateway made durable, as of when they asked; who would change
//! something is told which gateway has the feeds.

use super::observe::guard;
use super::problem::Problem;
use super::{AppState, SharedState, callback, error_page};
use crate::store::StoreError;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Method;

/// What is answered whatever is known of the database.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];
/// What changes nothing outside this process, though it is sent.
const OWN: [&str; 2] = ["/session", "/session/end"];
/// What reads and is still for the gateway that has the feeds: what it asked hubs for, who subscribes at its own,
/// and its whole state.
const OF_OWNER: [&str; 4] =
    [callback::ROUTE, "/api/v1/export", "/api/v1/subscriptions", "/api/v1/feeds/{name}/webhook"];

/// Whether a request waits until a standby has seen what was durable when it came.
pub(super) fn must_catch_up(room: &AppState, request: &Request) -> bool {
    !room.store.answers_from_memory() && !ALWAYS.contains(&request.uri().path())
}

/// The answer where that cannot be seen.
pub(super) fn unseen(error: StoreError, is_page: bool) -> Response {
    let response = Problem::from(error).into_response();
    let mut response = if is_page { error_page::page(response, "/") } else { response };
    guard(response.headers_mut());
    response
}

/// Refuses what a standby does not do, before anything of it is done.
pub(super) async fn refuse_changes(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if !room.store.answers_from_memory() && is_change(&request) {
        room.store.condition().check_intake()?;
    }
    Ok(next.run(request).await)
}

fn is_change(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if is_read { OF_OWNER.contains(&route) } else { !OWN.contains(&route) }
}
