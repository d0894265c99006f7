//! Repairs to the text of a document.

use super::{Doc, DocElement, NodeId, index};
use crate::xml::edits::Edit;
use crate::xml::{cut, is_char, ns, reference, trim};
use std::borrow::Cow;
use std::ops::Range;

/// A piece of the text that is replaced.
#[derive(Debug, Clone, Copy)]
pub struct Repair {
    pub(super) start: u32,
    pub(super) end: u32,
    pub kind: RepairKind,
}

/// What stands in a place instead of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairKind {
    /// This text.
    Text(&'static str),
    /// The reference that was written, by number.
    Number,
    /// The name of the end tag alone.
    Name,
    /// The canonical spelling of the namespace URI.
    Namespace,
    /// The end tag of an element.
    EndTag(NodeId),
}

/// The XML declaration of every document after decoding.
pub(super) const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

impl Repair {
    /// The piece of the text that is replaced.
    pub fn range(self) -> Range<usize> {
        index(self.start)..index(self.end)
    }
}

impl Doc<'_> {
    /// A repair as an edit of the text.
    fn edit(&self, repair: Repair) -> Edit {
        let range = repair.range();
        let written = cut(self.text, range.clone());
        let with = match repair.kind {
            RepairKind::Text(text) => Cow::Borrowed(text),
            RepairKind::Number => {
                let name = written.trim_matches(['&', ';']);
                Cow::Owned(reference::named(name).map(reference::numbered).unwrap_or_default())
            }
            RepairKind::Name => {
                let name = trim(written).split([' ', '\t', '\n', '\r']).next();
                Cow::Owned(name.unwrap_or_default().to_owned())
            }
            RepairKind::Namespace => Cow::Owned(ns::canonical(written).to_owned()),
            RepairKind::EndTag(id) => {
                Cow::Owned(format!("</{}>", self.element(id).map_or("", |e| e.name())))
            }
        };
        Edit { range, with }
    }

    /// Repairs as edits, but for those in elements that are taken out, and edits that take these out. The
    /// elements are in order and none stands in another.
    pub fn edits(&self, repairs: &[Repair], taken_out: &[DocElement<'_, '_>]) -> Vec<Edit> {
        let is_left = |repair: &&Repair| {
            let range = repair.range();
            let before = taken_out.partition_point(|element| element.span().start <= range.start);
            let Some(element) = before.checked_sub(1).and_then(|at| taken_out.get(at)) else {
                return true;
            };
            let span = element.span();
            match repair.kind {
                RepairKind::EndTag(id) => !(element.id..element.node.next).contains(&id),
                _ if range.is_empty() => range.start == span.start || range.start >= span.end,
                _ => range.start >= span.end,
            }
        };
        let edits = repairs.iter().filter(is_left).map(|repair| self.edit(*repair));
        let nothing =
            |element: &DocElement<'_, '_>| Edit { range: element.span(), with: "".into() };
        edits.chain(taken_out.iter().map(nothing)).collect()
    }

    /// Edits that drop the characters in a span that XML forbids.
    pub fn drop_forbidden(&self, span: &Range<usize>) -> Vec<Edit> {
        let text = cut(self.text, span.clone());
        let text = if self.has_forbidden { text } else { "" };
        let mut edits: Vec<Edit> = Vec::new();
        for (at, c) in text.char_indices().filter(|(_, c)| !is_char(*c)) {
            let (start, end) = (span.start + at, span.start + at + c.len_utf8());
            match edits.last_mut() {
                Some(last) if last.range.end == start => last.range.end = end,
                _ => edits.push(Edit { range: start..end, with: Cow::Borrowed("") }),
            }
        }
        edits
    }
}
