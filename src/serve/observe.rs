//! Around every answer, also those of the entrance: its line in the log, its count, and the headers that keep a browser
//! from running what publishers wrote; and inside the routing, its time limit.

use super::audience::X_ROBOTS_TAG;
use super::problem::{Problem, RETRY_SOON};
use super::{SharedState, callback, freshness, html, routes};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
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
    let mut response = next.run(request).await;
    guard(response.headers_mut());
    let route = response.extensions().get::<MatchedPath>().cloned();
    if !room.is_indexed && html::is_page(response.headers()) {
        response.headers_mut().insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
    }
    let status = response.status().as_u16();
    // The body of an answer to HEAD is cut off inside; what is counted is what goes out.
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
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

/// Answers what has a route within its time, and notes which it is for what is around the routing.
pub(super) async fn routed(route: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let response = match freshness::refusal(&request) {
        Some(refused) => refused,
        None => in_time(route.as_ref(), request, next).await,
    };
    note(response, route)
}

/// An answer of a route, where it is of one.
pub(super) fn note(mut response: Response, route: Option<MatchedPath>) -> Response {
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}

/// Gives up on an answer that takes too long; a body that comes too slowly counts as well.
async fn in_time(route: Option<&MatchedPath>, request: Request, next: Next) -> Response {
    let limit = route.map_or(REQUEST_TIMEOUT, |route| routes::time_limit(route.as_str()));
    let is_safe = request.method().is_safe();
    let answered = tokio::time::timeout(limit, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let said = format!("no answer was ready within {} seconds", limit.as_secs());
        if is_safe {
            return Problem::later(said, RETRY_SOON).into_response();
        }
        // To ask again would begin it twice.
        let said =
            format!("{said}; what was begun goes on: see what came of it before you ask again");
        Problem::new(StatusCode::GATEWAY_TIMEOUT, said).into_response()
    })
}

/// The headers that every answer has.
fn guard(headers: &mut HeaderMap) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use axum::{Router, body::Body, middleware::from_fn};
    use http::Method;
    use std::future::pending;
    use tower::ServiceExt as _;

    #[tokio::test(start_paused = true)]
    async fn an_action_that_takes_too_long_is_said_to_go_on() {
        let never = || pending::<()>();
        let router = Router::new().route("/", get(never).post(never)).layer(from_fn(routed));
        for (method, status) in [
            (Method::GET, StatusCode::SERVICE_UNAVAILABLE),
            (Method::POST, StatusCode::GATEWAY_TIMEOUT),
        ] {
            let is_safe = method.is_safe();
            let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.headers().contains_key(header::RETRY_AFTER), is_safe);
            let said = answer.extensions().get::<Problem>().unwrap().detail();
            assert_eq!(said.contains("goes on"), !is_safe, "{said}");
        }
    }
}
