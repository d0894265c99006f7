//! The bytes of a version, as they were taken in. What publishers write is hostile: it goes out as
//! plain text that no browser may make anything else of.

use super::Subject;
use crate::conditional::{Representation, add};
use crate::negotiate::Encoding;
use crate::rendition::EncodedBody;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use tidegate_core::model::{Markup, Time};
use tidegate_store::VersionNote;

/// Nothing runs, nothing is loaded, and the page is of no origin, whatever a browser takes it for.
const POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// The bytes of a version, ready to be sent as often as they are asked for.
pub(crate) struct Whole {
    body: EncodedBody,
    changed: Time,
    up: String,
}

impl Whole {
    /// `note`: of the version, where the bytes are those of one.
    pub(super) fn new(subject: &Subject, note: Option<&VersionNote>, markup: Markup) -> Self {
        let changed = note.map_or(subject.item.tick.time(), |note| note.shown);
        Self { body: EncodedBody::new(markup.xml, None), changed, up: subject.address() }
    }

    /// How many bytes it has.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.body.content.len()).unwrap_or(usize::MAX)
    }

    /// The answer.
    pub(super) fn answer(&self, asked: &HeaderMap) -> Response {
        let mut headers = HeaderMap::new();
        // The bytes of a version never change, but they may be redacted.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        add(&mut headers, header::LINK, &format!("<{}>; rel=\"up\"", self.up));
        Representation {
            headers,
            body: &self.body,
            media_type: "text/plain; charset=utf-8",
            encoding: Encoding::Identity,
            modified: Some(self.changed),
            is_dated: false,
        }
        .answer(asked)
    }
}
