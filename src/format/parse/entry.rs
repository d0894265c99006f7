//! One entry: its markup, its canonical projection and what it means.

mod meaning;
mod projection;

use super::Limits;
use super::dialect::FeedDialect;
use meaning::Meaning;
pub(super) use meaning::plain_title;
pub(super) use projection::{FIELD_COST, exact_cost};
use projection::{fields, measure};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{Context, Entry, Projection, Slots};
use tidegate_core::xml::doc::{Doc, DocElement, Repair};
use tidegate_core::xml::edits::{Edit, Edits};

/// Why an entry cannot be taken of which there is more than may be.
pub(super) fn too_much(what: &str, limit: usize) -> String {
    format!("an entry has more than {limit} {what}")
}

/// Reads an entry that inherits `context`; and how many bytes its projection takes beside its text,
/// at most.
pub(super) fn read<'a>(
    doc: &Arc<Doc<'a>>,
    entry: DocElement<'_, 'a>,
    repairs: &[Repair],
    context: Arc<Context>,
    (dialect, limits): (FeedDialect, &Limits),
) -> Result<(Entry<'a>, usize), String> {
    let span = entry.span();
    if span.len() > limits.entry {
        return Err(too_much("bytes", limits.entry));
    }
    let cost = measure(entry, limits)?;
    let meaning = Meaning::read(entry, dialect);
    let sync_markup = sync_markup(entry);
    let mut list = doc.edits(repairs, &sync_markup);
    list.extend(doc.drop_forbidden(&span));
    if let Some(id) = meaning.id_element {
        let end = id.span().end;
        if id.is_empty_tag() {
            let with = Cow::Owned(format!("></{}>", id.name()));
            list.push(Edit { range: end - 2..end, with });
        } else if !id.has_end_tag() {
            return Err("an entry's id is not closed".to_owned());
        }
    }
    let edits = Edits::new(span.clone(), list);
    let slots = Slots {
        attributes: edits.before(span.start + 1 + entry.name().len()),
        inner: (!entry.is_empty_tag()).then(|| edits.before(entry.content().start)),
        ..slots_of_id(&edits, meaning.id_element)
    };
    let markup = edits.apply(doc.text());
    let projection = Projection::in_document(Arc::clone(doc), entry.id, fields);
    Ok((Entry { markup, slots, context, projection, ..meaning.entry(entry, dialect) }, cost))
}

/// The elements of sync markup in an element that stand in no other one.
fn sync_markup<'t, 'a>(entry: DocElement<'t, 'a>) -> Vec<DocElement<'t, 'a>> {
    let mut found = Vec::new();
    let mut next = entry.id + 1;
    while let Some(element) = entry.doc().element(next).filter(|_| next < entry.behind()) {
        let is_found = element.ns().is_sync_markup();
        next = if is_found { element.behind() } else { next + 1 };
        found.extend(is_found.then_some(element));
    }
    found
}

/// The slots of the id, and nothing else.
fn slots_of_id(edits: &Edits, id: Option<DocElement<'_, '_>>) -> Slots {
    let Some(id) = id else { return Slots::default() };
    let span: Range<usize> = id.span();
    let whole = edits.before(span.start)..edits.before(span.end);
    let inner = if id.has_end_tag() {
        edits.before(id.content().start)..edits.behind(id.content().end)
    } else {
        // It was an empty-element tag and has become a pair of tags.
        let at = whole.end.saturating_sub(id.name().len() + "</>".len());
        at..at
    };
    Slots { id: Some(inner), id_element: Some(whole), ..Slots::default() }
}
