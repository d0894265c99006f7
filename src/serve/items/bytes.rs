//! The bytes of a version, as they were taken in. What publishers write is hostile: it goes out as
//! plain text that no browser may make anything else of.

use super::Subject;
use crate::model::Markup;
use crate::serve::conditional::{ETag, not_modified};
use crate::store::VersionNote;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Nothing runs, nothing is loaded, and the page is of no origin, whatever a browser takes it for.
const POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// The answer. `note`: of the version, where the bytes are those of one.
pub(super) fn answer(
    subject: &Subject,
    note: Option<&VersionNote>,
    markup: &Markup,
    asked: &HeaderMap,
) -> Response {
    let etag = ETag::of(markup.xml.as_bytes(), None);
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, etag.value());
    // The bytes of a version never change, but they may be redacted.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    let changed = note.map_or(subject.item.tick.time(), |note| note.shown);
    for (name, value) in [
        (header::LAST_MODIFIED, changed.rfc822()),
        (header::LINK, format!("<{}>; rel=\"up\"", subject.address())),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    if not_modified(asked, &etag, None) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    (headers, markup.xml.clone()).into_response()
}
