//! Around every answer: its line in the log, its count, its time limit, and the headers that keep
//! a browser from running what publishers wrote.

use super::audience::X_ROBOTS_TAG;
use super::problem::{Problem, RETRY_SOON};
use super::{SharedState, callback, html, routes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body::Body as _;
use std::time::Duration;
use tidegate_config::ReaderToken;
use tidegate_core::xml::shortened;
use tokio::time::Instant;

/// How long an answer may take.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an answer may take that waits for an upstream.
pub(super) const POLL_TIMEOUT: Duration = Duration::from_secs(150);
/// How many bytes of a path and of a user agent go into the log.
const LOGGED: usize = 256;

/// Feeds are shown as documents by some browsers, so they get nearly the same policy as pages: nothing runs, nothing
/// is loaded but our own style sheet, nobody puts an answer of ours into a frame, and no form is sent. A page whose
/// forms may be sent has a policy of its own ([`html::POLICY`](super::html::POLICY)).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// Answers, and then counts and logs the answer.
pub(super) async fn answer(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let path = shortened(request.uri().path(), LOGGED + ReaderToken::LIMIT).to_owned();
    let agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let agent = agent.map(cut);
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    guard(response.headers_mut());
    if !room.is_indexed && html::is_page(response.headers()) {
        response.headers_mut().insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
    }
    let status = response.status().as_u16();
    // The body of an answer to HEAD is cut off inside; what is counted is what goes out.
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    let route = route.as_deref().unwrap_or("none");
    // The last step of a callback is a secret.
    let path = || match route {
        callback::ROUTE => route.to_owned(),
        _ => cut(&room.readers.mask(&path)),
    };
    room.metrics.answered(&method, route, status, bytes);
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let problem = response.extensions().get::<Problem>().filter(|_| status >= 500);
    let reason = problem.map(Problem::detail);
    if status >= 500 || route.starts_with("/api/") {
        let path = path();
        tracing::info!(%method, path, route, status, reason, bytes, milliseconds, agent, "answered");
    } else if logs_every_answer() {
        let path = path();
        tracing::debug!(%method, path, route, status, bytes, milliseconds, agent, "answered");
    }
    response
}

/// Whether every answer has a line in the log.
pub(super) fn logs_every_answer() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// Gives up on an answer that takes too long; a body that comes too slowly counts as well.
pub(super) async fn time_limit(request: Request, next: Next) -> Response {
    let limit = time_limit_of(&request);
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let said = format!("no answer was ready within {} seconds", limit.as_secs());
            Problem::later(said, RETRY_SOON).into_response()
        }
    }
}

/// How long the answer to a request may take.
pub(super) fn time_limit_of(request: &Request) -> Duration {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or(REQUEST_TIMEOUT, |route| routes::time_limit(route.as_str()))
}

/// The headers that every answer has.
pub(super) fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (CROSS_ORIGIN_OPENER, HeaderValue::from_static("same-origin")),
    ] {
        // What is bound more tightly stays so.
        headers.entry(name).or_insert(value);
    }
}

const CROSS_ORIGIN_OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

fn cut(text: &str) -> String {
    text.chars().take(LOGGED).collect()
}
