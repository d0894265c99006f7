//! What a gateway answers that does not write its store: readers get what another gateway made durable, as of when
//! they asked. What only the other one can answer is passed on to it ([`super::relay`]).

use super::observe::guard;
use super::problem::{Problem, RETRY_SOON};
use super::{AppState, error_page};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};

/// What is answered whatever is known of the database.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];
/// What says why the store has stopped.
const READY: &str = "/readyz";
/// What is answered once the database is not followed any more.
const ENDED: &str = "this gateway reads its database no more until its operator has mended that (/readyz says why); ask \
    another gateway";

/// Whether a request waits until a standby has seen what was durable when it came.
pub(super) fn must_catch_up(room: &AppState, request: &Request) -> bool {
    let path = request.uri().path();
    let says_why = || path == READY && room.store.condition().stop.is_some();
    !room.store.answers_from_memory() && !ALWAYS.contains(&path) && !says_why()
}

/// Waits until a standby has seen that; the answer where it cannot be seen.
pub(super) async fn catch_up(room: &AppState, is_page: bool) -> Option<Response> {
    let error = room.store.catch_up().await.err()?;
    // The store itself has logged why, once.
    let has_ended = room.store.condition().stop.is_some_and(|stop| stop.next_try.is_none());
    let problem = if has_ended { Problem::later(ENDED, RETRY_SOON) } else { Problem::from(error) };
    let response = problem.into_response();
    let mut response = if is_page { error_page::page(response, "/") } else { response };
    guard(response.headers_mut());
    Some(response)
}
