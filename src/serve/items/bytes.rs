//! The bytes of a version, as they were taken in. What publishers write is hostile: it goes out as
//! plain text that no browser may make anything else of.

use super::Subject;
use crate::model::{Markup, Time};
use crate::serve::conditional::{ETag, not_modified};
use crate::store::VersionNote;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Nothing runs, nothing is loaded, and the page is of no origin, whatever a browser takes it for.
const POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// The bytes of a version, ready to be sent as often as they are asked for.
pub(super) struct Whole {
    xml: Bytes,
    etag: ETag,
    changed: Time,
    up: String,
}

impl Whole {
    /// `note`: of the version, where the bytes are those of one.
    pub(super) fn new(subject: &Subject, note: Option<&VersionNote>, markup: Markup) -> Self {
        let etag = ETag::from_bytes(markup.xml.as_bytes(), None);
        let changed = note.map_or(subject.item.tick.time(), |note| note.shown);
        Self { xml: Bytes::from(markup.xml), etag, changed, up: subject.address() }
    }

    /// How many bytes it has.
    pub(super) const fn len(&self) -> usize {
        self.xml.len()
    }

    /// The answer.
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(header::ETAG, self.etag.value());
        // The bytes of a version never change, but they may be redacted.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        for (name, value) in [
            (header::LAST_MODIFIED, self.changed.rfc822()),
            (header::LINK, format!("<{}>; rel=\"up\"", self.up)),
        ] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        if not_modified(asked, &self.etag, None) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, plain);
        (headers, self.xml.clone()).into_response()
    }
}
