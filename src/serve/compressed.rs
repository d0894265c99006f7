//! Answers that are made for one request and have no tag (pages, lines of changes, metrics, JSON,
//! problem documents), compressed where the client asks for it. Documents that are kept are packed
//! once, where they are made (`rendition`), each encoding with a tag of its own.

use super::SharedState;
use super::admission::{Work, WorkKind};
use super::client::Client;
use super::negotiate::encoding;
use super::prefix::{AboutLength, content_length};
use super::problem::Problem;
use super::rendition;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body::Body as _;
use tidegate_store::StoreError;

/// What is smaller is sent as it is: it fits into a packet.
const LEAST: u64 = 1024;
/// What is larger is sent as it is, so that an answer costs a bounded time.
const MOST: u64 = 4 << 20;
/// What is larger is packed where blocking is allowed.
const AT_ONCE: usize = 32 << 10;
/// Kinds of text; an event stream is none of them, and is never held up.
const TEXTS: [&str; 4] = ["text/html", "text/plain", "application/", "text/css"];

/// Answers, and packs the answer where that is worth it. Where there is no room for that just now, the
/// answer goes out as it is.
pub(super) async fn answer(
    State(room): State<SharedState>,
    request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get().copied().unwrap_or(Client::Own);
    let is_head = request.method() == Method::HEAD;
    let wanted = encoding(request.headers(), true);
    let response = next.run(request).await;
    let size = match is_head {
        true => length_without_body(&response),
        false => response.body().size_hint().exact(),
    };
    let size = size.unwrap_or(0);
    if !is_text(&response) || !(LEAST..=MOST).contains(&size) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Whatever comes out: a cache must not give it to who asked otherwise.
    vary(&mut parts.headers);
    let Some(token) = wanted.token() else { return Response::from_parts(parts, body) };
    if is_head {
        // As of GET, whose body shows how long it is when it is packed.
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
        return Response::from_parts(parts, body);
    }
    let limit = usize::try_from(MOST).unwrap_or(usize::MAX);
    // The body is whole and of a known size already.
    let Ok(plain) = to_bytes(body, limit).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let packed = if plain.len() <= AT_ONCE {
        rendition::quickly(&plain, wanted).ok()
    } else {
        let whole = plain.clone();
        let packing = async move {
            let blocking = tokio::task::spawn_blocking(move || rendition::quickly(&whole, wanted));
            blocking.await.ok().and_then(Result::ok).ok_or(Problem::from(StoreError::Closed))
        };
        let work = Work::of_all(WorkKind::Packing);
        room.admission.run(client, &work, size, packing).await.ok()
    };
    let Some(packed) = packed else { return Response::from_parts(parts, Body::from(plain)) };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(packed))
}

/// About how long the body is that an answer to HEAD does not have.
fn length_without_body(response: &Response) -> Option<u64> {
    let about = response.extensions().get().map(|AboutLength(length)| *length);
    about.or_else(|| response.headers().get(header::CONTENT_LENGTH).and_then(content_length))
}

/// Whether an answer is a text without a tag that nobody packed yet.
fn is_text(response: &Response) -> bool {
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default();
    let is_free = |name| !headers.contains_key(name);
    response.status() != StatusCode::NOT_MODIFIED
        && is_free(header::ETAG)
        && is_free(header::CONTENT_ENCODING)
        && TEXTS.iter().any(|text| kind.starts_with(text))
}

fn vary(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}
