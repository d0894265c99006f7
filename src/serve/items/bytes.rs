//! The bytes of a version, as they were taken in. What publishers write is hostile: it goes out as
//! plain text that no browser may make anything else of.

use super::Subject;
use crate::conditional::{Representation, add};
use crate::rendition::{About, Rendition};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};
use tidegate_core::model::{Markup, Revision};
use tidegate_store::VersionNote;

/// Nothing runs, nothing is loaded, and the page is of no origin, whatever a browser takes it for.
const POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// The bytes as a document. `note`: of the version, where they are those of one.
pub(super) fn document(subject: &Subject, note: Option<&VersionNote>, markup: Markup) -> Rendition {
    let shown = note.map_or(subject.item.tick.time(), |note| note.shown);
    let media_type = "text/plain; charset=utf-8";
    let about = About { media_type, shown, revision: Revision(0), token: None };
    let mut bytes = Rendition::unpacked(markup.xml, about).with([
        // The bytes of a version never change, but they may be redacted.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ]);
    add(&mut bytes.head, header::LINK, &format!("<{}>; rel=\"up\"", subject.address()));
    bytes
}

/// The answer that carries them.
pub(super) fn answer(bytes: &Rendition, asked: &HeaderMap) -> Response {
    let modified = Some(bytes.shown);
    Representation { modified, ..bytes.represented(asked) }.answer(asked)
}
