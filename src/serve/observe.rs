//! What is done to every answer but those that are given again (`ready`): it is packed where the client asks for that,
//! counted until its client has taken it, guarded against what publishers wrote, counted in the metrics and logged. And
//! inside the routing, its time limit.
//!
//! Answers that are made for one request and have no tag of their bytes (pages, lines of changes, metrics, JSON, problem
//! documents) are packed here. Documents that are kept are packed once, where they are made (`rendition`), each encoding with a tag of
//! its own.
//!
//! A body that is sent is one with the document that is kept, so that it takes no memory of its own while that is
//! kept and however many are sent it. But who asks for one document after the other and takes none, on
//! streams of HTTP/2 without a window say, would keep all of them for as long as the connection lasts. So
//! what is held is counted by document, of each client and of all, until its last byte has gone.
//!
//! A document in a file (`spool`) takes no memory but for the piece that is sent just now, and space on the disk: one that
//! nobody asks for any more stays for as long as it is sent. So its bytes count as well, in a budget of their own: who takes
//! a large file has all else beside it.

use super::audience::X_ROBOTS_TAG;
use super::budget::{BudgetHolder, HeldThing};
use super::negotiate::encoding;
use super::site_service::Unsent;
use super::{
    AppState, Budget, BudgetEnd, BudgetShares, Client, Connection, Encoding, Problem, SpooledFile,
    Work, WorkKind, html, hub, rendition, router, routes,
};
use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use http_body::Body as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::ReaderToken;
use tidegate_core::xml::shortened;
use tidegate_store::StoreError;
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

/// Smaller bodies are not compressed: they fit into a packet.
const MIN_COMPRESSED: u64 = 1024;
/// Larger bodies are not compressed, so that an answer costs a bounded time.
const MAX_COMPRESSED: u64 = 4 << 20;
/// Larger bodies are compressed on a blocking thread.
const MAX_INLINE: usize = 32 << 10;
/// Kinds of text; an event stream is none of them, and is never held up.
const TEXTS: [&str; 4] = ["text/html", "text/plain", "application/", "text/css"];

/// One client, and one network, gets one part in this many of the bytes that are being sent. A larger body is sent when
/// its client has no other.
const CLIENT_PART: u64 = 4;
const NETWORK_PART: u64 = 2;
/// Bytes of files on their way in all, and of these those of one client.
const FILES: u64 = 1024 << 20;
const CLIENT_FILES: u64 = 512 << 20;
/// A connection whose client took nothing for this long is cut first when the budget is used up.
const PATIENCE: Duration = Duration::from_secs(15);

/// The budget of bodies on their way: so many bytes, with those that are on their way already.
pub(super) fn body_budget(all: u64, before: Option<&Arc<Budget>>) -> Arc<Budget> {
    let shares = BudgetShares { all, each: all / CLIENT_PART, network: all / NETWORK_PART };
    Budget::after(before, shares, PATIENCE)
}

/// That of bodies that are read from files as they are sent.
pub(super) fn file_budget() -> Arc<Budget> {
    Budget::new(BudgetShares { all: FILES, each: CLIENT_FILES, network: CLIENT_FILES }, PATIENCE)
}

/// What compression, budgets, metrics and the log need of a request once its handler has taken it.
pub(super) struct RequestFacts {
    begun: Instant,
    pub(super) method: Method,
    uri: Uri,
    agent: Option<HeaderValue>,
    client: Client,
    connection: Option<Arc<Connection>>,
    /// The encoding that the client would rather have.
    encoding: Encoding,
}

impl RequestFacts {
    /// Of a request that came just now.
    pub(super) fn new(request: &Request) -> Self {
        let (headers, extensions) = (request.headers(), request.extensions());
        Self {
            begun: Instant::now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            agent: headers.get(header::USER_AGENT).cloned(),
            client: Client::of(extensions),
            connection: extensions.get().cloned(),
            encoding: encoding(headers, true),
        }
    }

    pub(super) fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }
}

/// Compresses an answer if that is worth it; if no permit is free for that, it is sent as it is.
pub(super) async fn compress(app: &AppState, facts: &RequestFacts, response: Response) -> Response {
    let size = match facts.is_head() {
        true => length_without_body(&response),
        false => response.body().size_hint().exact(),
    };
    let size = size.unwrap_or(0);
    if !is_text(&response) || !(MIN_COMPRESSED..=MAX_COMPRESSED).contains(&size) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Whatever comes out: a cache must not give it to who asked otherwise.
    parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let Some(token) = facts.encoding.token() else { return Response::from_parts(parts, body) };
    if facts.is_head() {
        // As of GET, whose body shows how long it is when it is packed.
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
        return Response::from_parts(parts, body);
    }
    let limit = usize::try_from(MAX_COMPRESSED).unwrap_or(usize::MAX);
    // The body is whole and of a known size already.
    let Ok(plain) = to_bytes(body, limit).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let wanted = facts.encoding;
    let compressed = if plain.len() <= MAX_INLINE {
        rendition::compress_quickly(&plain, wanted).ok()
    } else {
        let whole = plain.clone();
        let compressing = async move {
            let blocking =
                tokio::task::spawn_blocking(move || rendition::compress_quickly(&whole, wanted));
            blocking.await.ok().and_then(Result::ok).ok_or(Problem::from(StoreError::Closed))
        };
        let work = Work::of_all(WorkKind::Compression);
        app.admission.run(facts.client, &work, size, compressing).await.ok()
    };
    let Some(compressed) = compressed else {
        return Response::from_parts(parts, Body::from(plain));
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(compressed))
}

/// About how long the body is that an answer to HEAD does not have.
fn length_without_body(response: &Response) -> Option<u64> {
    response.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether an answer is a text that nobody packed yet, and without a tag of its bytes.
fn is_text(response: &Response) -> bool {
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default();
    let tag = headers.get(header::ETAG);
    response.status() != StatusCode::NOT_MODIFIED
        && tag.is_none_or(|tag| tag.as_bytes().starts_with(b"W/"))
        && !headers.contains_key(header::CONTENT_ENCODING)
        && TEXTS.iter().any(|text| kind.starts_with(text))
}

fn refused(end: BudgetEnd) -> Response {
    let detail = match end {
        BudgetEnd::Share => {
            "answers are on their way to your address that it does not take; take them first"
        }
        BudgetEnd::All => "too many answers are on their way; ask again soon",
    };
    Problem::later(detail).into_response()
}

/// Counts the body of an answer until its client has taken it. What comes bit by bit has bounds of its own.
pub(super) async fn hold_body(
    app: &AppState,
    facts: &RequestFacts,
    mut response: Response,
) -> Response {
    let is_action = !facts.method.is_safe();
    let connection = facts.connection.clone();
    let file = response.extensions_mut().remove::<Arc<SpooledFile>>();
    if let Some(file) = file.filter(|_| !facts.is_head()) {
        let thing = HeldThing { id: Arc::as_ptr(&file).addr(), size: file.len() };
        let holder = BudgetHolder { client: Some(facts.client), connection, thing, is_action };
        return match app.file_bodies.take(holder) {
            Ok(held) => response.map(|_| Body::new(Unsent::of_file(file, held))),
            Err(end) => refused(end),
        };
    }
    if response.body().size_hint().exact().unwrap_or(0) == 0 {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is whole and of a known size already, so it is handed over and not copied.
    let whole = to_bytes(body, usize::MAX).await.unwrap_or_default();
    match count_bytes(app, (facts.client, connection), is_action, whole) {
        Ok(body) => Response::from_parts(parts, body),
        Err(end) => refused(end),
    }
}

/// A body of these bytes, which are counted until its client has taken them.
pub(super) fn count_bytes(
    app: &AppState,
    (client, connection): (Client, Option<Arc<Connection>>),
    is_action: bool,
    whole: Bytes,
) -> Result<Body, BudgetEnd> {
    let size = u64::try_from(whole.len()).unwrap_or(u64::MAX);
    let thing = HeldThing { id: whole.as_ptr().addr(), size };
    let holder = BudgetHolder { client: Some(client), connection, thing, is_action };
    // An action was carried out, or refused: "ask again soon" would be untrue.
    let held = match is_action {
        true => app.bodies.take_anyway(holder),
        false => app.bodies.take(holder)?,
    };
    Ok(Body::new(Unsent::of_memory(whole, held)))
}

/// Whether each answer has a line in the log.
pub(super) fn logs_every_answer() -> bool {
    tracing::enabled!(tracing::Level::DEBUG)
}

/// Guards, counts and logs an answer.
pub(super) fn record_answer(app: &AppState, facts: &RequestFacts, response: &mut Response) {
    let RequestFacts { begun, method, uri, agent, .. } = facts;
    guard(response.headers_mut());
    let route = response.extensions().get::<MatchedPath>().cloned();
    if !app.config.server.indexed && html::is_page(response.headers()) {
        response.headers_mut().insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex"));
    }
    let status = response.status().as_u16();
    // The body of an answer to HEAD is cut off inside; what is counted is what goes out.
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    // The last step of a callback is a secret.
    let path = || match route {
        hub::CALLBACK => route.to_owned(),
        _ => cut(&app.readers.mask(shortened(uri.path(), LOGGED + ReaderToken::LIMIT))),
    };
    let agent = || agent.as_ref().and_then(|value| value.to_str().ok()).map(cut);
    app.metrics.answered(method, route, status, bytes);
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let problem = response.extensions().get::<Problem>().filter(|_| status >= 500);
    let reason = problem.map(|problem| problem.detail.as_str());
    if status >= 500 || route.starts_with("/api/") {
        let (path, agent) = (path(), agent());
        tracing::info!(%method, path, route, status, reason, bytes, milliseconds, agent, "answered");
    } else if logs_every_answer() {
        let (path, agent) = (path(), agent());
        tracing::debug!(%method, path, route, status, bytes, milliseconds, agent, "answered");
    }
}

/// Answers what has a route within its time, and notes which it is for what is around the routing.
pub(super) async fn routed(route: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let response = match router::refusal(&request) {
        Some(refused) => refused,
        None => in_time(route.as_ref(), request, next).await,
    };
    note_route(response, route)
}

/// An answer of a route, where it is of one.
pub(super) fn note_route(mut response: Response, route: Option<MatchedPath>) -> Response {
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
        let detail = format!("no answer was ready within {} seconds", limit.as_secs());
        if is_safe {
            return Problem::later(detail).into_response();
        }
        // To ask again would begin it twice.
        let detail =
            format!("{detail}; what was begun goes on: see what came of it before you ask again");
        Problem::new(StatusCode::GATEWAY_TIMEOUT, detail).into_response()
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
    use axum::{Router, middleware::from_fn};
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
            let said = answer.extensions().get::<Problem>().unwrap().detail.as_str();
            assert_eq!(said.contains("goes on"), !is_safe, "{said}");
        }
    }
}
