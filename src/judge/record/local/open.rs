//! A feed of the gateway's own before its first item, so that it is served from the beginning.

use super::super::draft::ChangeDraft;
use super::super::head;
use super::super::{Observation, Verdict};
use std::fmt::Write as _;
use tidegate_core::model::{Format, Snapshot, Time};
use tidegate_core::xml::ns::ATOM;
use tidegate_format::parse::{self, Limits};

/// Opens a feed that has no document of a publisher around its items: a local feed or an aggregate.
/// Where it is open already, what it is called is brought up to date.
pub fn open(observation: &Observation<'_>) -> Verdict {
    let first = Snapshot::untouched(Format::Atom10, observation.now);
    let snapshot = observation.snapshot.unwrap_or(&first);
    let mut draft = ChangeDraft::new(observation, snapshot);
    begin(&mut draft);
    if draft.shown_changed { draft.into_verdict(None) } else { Verdict::default() }
}

/// Puts our document around the items, where it is not there yet: that of a list where the feed is one.
pub(in crate::record) fn begin(draft: &mut ChangeDraft<'_>) {
    let text = document(draft.observation, draft.state.format == Format::Opml);
    // Only a fault of this program can bring about that it cannot be read.
    let Ok(document) = parse::document(&text, None, &Limits::default()) else { return };
    let print = head::skeleton_print(&document);
    if print == draft.state.head && draft.observation.snapshot.is_some() {
        return;
    }
    draft.state.head = print;
    draft.state.format = document.format;
    head::take_in(draft, &document.head);
    draft.skeleton = Some(document.skeleton);
    draft.shown_changed = true;
}

/// An Atom feed without entries (RFC 4287 section 4.1.1). Its author is there for entries that
/// name none (section 4.1.2).
fn document(observation: &Observation<'_>, is_list: bool) -> String {
    let title = observation.options.sharing.title.as_deref().unwrap_or(observation.feed.as_str());
    let mut shown = String::new();
    tidegate_core::xml::push_text(&mut shown, title);
    let mark = if is_list { parse::opml::mark() } else { String::new() };
    let (endpoint, feed, stamp) = (observation.endpoint, observation.feed, Time::from_unix(0));
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <feed xmlns=\"{ATOM}\"{mark}>\n<id>urn:x-tidegate:{endpoint}:{feed}</id>\n\
         <title>{shown}</title>\n<updated>{stamp}</updated>\n\
         <author><name>{shown}</name></author>\n</feed>\n"
    );
    text
}
