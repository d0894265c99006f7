//! What was wrong with a document, and the repairs to its text.

use super::{Doc, DocElement, NodeId, index};
use crate::model::{Flaw, Flaws, Warning};
use crate::xml::edits::Edit;
use crate::xml::{cut, is_char, ns, push_namespace, reference, trim};
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
    /// A declaration of this default namespace.
    Declaration(&'static str),
    /// The end tag of an element.
    EndTag(NodeId),
}

/// The XML declaration of every document after decoding.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

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
            RepairKind::Text("") => Cow::Borrowed(gap(self.text, &range)),
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
            RepairKind::Declaration(uri) => {
                let mut declaration = String::new();
                push_namespace(&mut declaration, "", uri);
                Cow::Owned(declaration)
            }
            RepairKind::EndTag(id) => {
                Cow::Owned(format!("</{}>", self.element(id).map_or("", |e| e.name())))
            }
        };
        Edit { range, with }
    }

    /// Repairs as edits, but for those in elements that are taken out, and edits that take these
    /// out. The elements are in order and none stands in another.
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
        for edit in &mut edits {
            edit.with = Cow::Borrowed(gap(self.text, &edit.range));
        }
        edits
    }
}

/// What a dropped piece of the text leaves: a space where what stands before and behind it, or what is dropped beside
/// it, could make a `]]>`, `-->` or `?>`, which end something or may not stand there.
fn gap(text: &str, dropped: &Range<usize>) -> &'static str {
    let before = cut(text, 0..dropped.start).chars().next_back();
    let may_join = before.is_some_and(|c| matches!(c, ']' | '-' | '?' | ';' | '>') || !is_char(c));
    let is_end = cut(text, dropped.end..text.len()).starts_with([']', '-', '>']);
    if may_join && is_end { " " } else { "" }
}

/// What was wrong with a document.
#[derive(Debug, Default)]
pub struct Findings {
    pub warnings: Vec<Warning>,
    /// What keeps it from being well-formed.
    pub flaws: Flaws,
    /// The first fault that puts the borders of elements in doubt: where, and what.
    pub fault: Option<(usize, String)>,
    /// Whether the text ended before its root did.
    pub is_cut: bool,
    /// Whether something around entries had no end, so that text was passed over.
    pub has_endless: bool,
    /// How many warnings were not kept.
    pub unkept: usize,
    /// How many flaws put in doubt what was written: those of tags and characters.
    pub(super) doubts: usize,
    /// The most warnings that are kept.
    pub(super) limit: usize,
}

impl Findings {
    /// Notes something that does not prevent parsing.
    pub fn warn(&mut self, offset: usize, message: impl Into<String>) {
        if self.warnings.len() < self.limit {
            self.warnings.push(Warning { offset, message: message.into() });
        } else {
            self.unkept = self.unkept.saturating_add(1);
        }
    }

    /// Notes something for which a strict processor would refuse the document.
    pub fn flaw(&mut self, flaw: Flaw, offset: usize, message: impl Into<String>) {
        self.flaws.insert(flaw);
        self.doubts += usize::from(matches!(flaw, Flaw::Tags | Flaw::Characters));
        self.warn(offset, message);
    }

    /// Notes a fault that puts the borders of elements in doubt.
    pub fn fault(&mut self, at: usize, message: impl Into<String>) {
        let message = message.into();
        self.flaw(Flaw::Tags, at, message.clone());
        if self.fault.as_ref().is_none_or(|(first, _)| at < *first) {
            self.fault = Some((at, message));
        }
    }
}
