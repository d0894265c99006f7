//! What a gateway answers that does not write its store: readers get what another gateway made durable, as of when
//! they asked. What only the other one can answer is passed on to it ([`super::relay`]).

use super::observe::guard;
use super::problem::Problem;
use super::{AppState, error_page};
use crate::store::StoreError;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};

/// What is answered whatever is known of the database.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];

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
