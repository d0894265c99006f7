//! Answers over a database that other gateways write as well are no older than it allows: where what is in memory was
//! not compared with the database lately, the request waits for a look, or is refused.

use super::problem::{Problem, RETRY_SOON};
use super::{AppState, event_streams};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tidegate_store::StoreCondition;

/// What is answered whatever is known of the database.
const ALWAYS: [&str; 2] = ["/healthz", "/metrics"];
/// What says why the store has stopped, or for how long its database is silent.
const READY: &str = "/readyz";
/// What is answered once the database is not followed any more.
const ENDED: &str = "this gateway reads its database no more until its operator has mended that (/readyz says why); ask \
    another gateway, if there is one";

/// Why a request is refused: what was durable when it came cannot be seen. An extension of the request.
#[derive(Clone)]
struct UnseenDatabase(Problem);

/// Whether a request waits until this gateway has seen what was committed when it came.
pub(super) fn must_wait_for_store(room: &AppState, request: &Request) -> bool {
    let path = request.uri().path();
    let knows_why =
        |condition: StoreCondition| condition.stop.is_some() || condition.unanswered.is_some();
    let says_why = || path == READY && knows_why(room.store.condition());
    !room.store.answers_from_memory()
        && !ALWAYS.contains(&path)
        && !says_why()
        && !is_refused(request)
}

/// Waits until it has seen that. A request that came when it cannot be seen is refused from then on.
pub(super) async fn wait_for_store<B: Send>(room: &AppState, request: &mut http::Request<B>) {
    let Err(error) = room.store.catch_up().await else { return };
    // The store itself has logged why, once.
    let has_ended = room.store.condition().stop.is_some_and(|stop| stop.next_try.is_none());
    let problem = if has_ended { Problem::later(ENDED, RETRY_SOON) } else { Problem::from(error) };
    request.extensions_mut().insert(UnseenDatabase(problem));
}

/// Whether [`wait_for_store`] refused a request.
pub(super) fn is_refused<B>(request: &http::Request<B>) -> bool {
    request.extensions().get::<UnseenDatabase>().is_some()
}

/// The answer to what [`wait_for_store`] refused: behind what counts and logs answers.
pub(super) fn refusal(request: &Request) -> Option<Response> {
    let UnseenDatabase(problem) = request.extensions().get().cloned()?;
    Some(match event_streams::is_event_source(request) {
        // Any other status than 200 would be the end.
        true => event_streams::ended("ask another gateway"),
        false => problem.into_response(),
    })
}
