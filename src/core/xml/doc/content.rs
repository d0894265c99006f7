//! What stands in an element: a walk through it, its character data, and what of its surroundings it
//! needs to stand alone.

use super::{Doc, DocAttribute, DocElement, NodeId, index};
use crate::model::Context;
use crate::xml::reference::{Reference, reference};
use crate::xml::{cut, is_char, split_name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One step of a walk.
#[derive(Debug)]
pub enum WalkStep<'t, 'a> {
    /// An element opened.
    Open(DocElement<'t, 'a>),
    /// Character data, references resolved. It comes in pieces: text, a reference, a CDATA section.
    Text(Cow<'a, str>),
    /// An element closed.
    Close(DocElement<'t, 'a>),
}

/// A walk through an element.
#[derive(Debug)]
pub struct Walk<'t, 'a> {
    doc: &'t Doc<'a>,
    root: NodeId,
    /// The innermost element that is open, once the walk has begun.
    open: Option<DocElement<'t, 'a>>,
    /// The number that the next element in it has, if there is one, and the place of what comes next.
    next: NodeId,
    at: usize,
    place: usize,
    is_over: bool,
}

impl<'t, 'a> DocElement<'t, 'a> {
    /// A walk through the element, which is its first step and its last.
    pub const fn walk(self) -> Walk<'t, 'a> {
        let (doc, root) = (self.doc, self.id);
        Walk { doc, root, open: None, next: root, at: 0, place: 0, is_over: false }
    }
}

impl<'t, 'a> Walk<'t, 'a> {
    /// Where the piece of text begins that was the last step; byte offset into the document.
    pub const fn place(&self) -> usize {
        self.place
    }

    /// Leaves out what is in the element that opened last, and its end.
    pub fn leave_out(&mut self) {
        if let Some(element) = self.open {
            self.leave(element);
        }
    }

    fn leave(&mut self, element: DocElement<'t, 'a>) {
        (self.at, self.next) = (index(element.node.end), element.node.next);
        self.is_over = element.id == self.root;
        self.open = element.parent();
    }
}

impl<'t, 'a> Iterator for Walk<'t, 'a> {
    type Item = WalkStep<'t, 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        // Each turn goes behind a piece of text or passes an element's tag.
        while !self.is_over {
            let open = self.open;
            let end = open.map_or(self.next + 1, |open| open.node.next);
            let child = if self.next < end { self.doc.element(self.next) } else { None };
            let text_end = match (child, open) {
                (_, None) => self.at,
                (Some(child), _) => index(child.node.start),
                (None, Some(open)) => index(open.node.content_end),
            };
            if self.at < text_end {
                let (text, behind) = self.doc.piece(self.at..text_end, false);
                (self.place, self.at) = (self.at, behind);
                if !text.is_empty() {
                    return Some(WalkStep::Text(text));
                }
            } else if let Some(child) = child {
                (self.at, self.next) = (index(child.node.content), child.id + 1);
                self.open = Some(child);
                return Some(WalkStep::Open(child));
            } else {
                let open = open?;
                self.leave(open);
                return Some(WalkStep::Close(open));
            }
        }
        None
    }
}

impl<'a> Doc<'a> {
    /// The piece of character data that a span begins with, and where it ends. One that is `joined`
    /// goes up to the next `<`.
    pub(super) fn piece(&self, span: Range<usize>, joined: bool) -> (Cow<'a, str>, usize) {
        let text = cut(self.text, span.clone());
        let bytes = text.as_bytes();
        if bytes.first() == Some(&b'<') {
            return self.markup(span, text);
        }
        let end = match memchr::memchr2(b'<', b'&', bytes) {
            _ if joined => memchr::memchr(b'<', bytes).unwrap_or(bytes.len()),
            Some(0) => {
                let rest = bytes.get(1..).unwrap_or_default();
                let found =
                    memchr::memchr3(b';', b'&', b'<', rest).map_or(bytes.len(), |at| at + 1);
                found + usize::from(bytes.get(found) == Some(&b';'))
            }
            found => found.unwrap_or(bytes.len()),
        };
        (self.allowed(resolved(cut(text, 0..end))), span.start + end)
    }

    /// What stands at the beginning of a span that begins with a `<` and is no element.
    fn markup(&self, span: Range<usize>, text: &'a str) -> (Cow<'a, str>, usize) {
        if let Ok(found) = self.holes.binary_search_by_key(&span.start, |hole| index(hole.start))
            && let Some(hole) = self.holes.get(found)
        {
            return (Cow::Borrowed(if hole.is_text { "<" } else { "" }), index(hole.end));
        }
        let section = |before: &str, behind: &str| {
            let inside = text.strip_prefix(before)?;
            let end = memchr::memmem::find(inside.as_bytes(), behind.as_bytes())?;
            Some((cut(inside, 0..end), span.start + before.len() + end + behind.len()))
        };
        if let Some((inside, end)) = section("<![CDATA[", "]]>") {
            return (self.allowed(Cow::Borrowed(inside)), end);
        }
        let end = section("<!--", "-->").map_or(span.end, |(_, end)| end);
        (Cow::Borrowed(""), end)
    }

    /// Adds the character data in a span, in which no element stands.
    pub(super) fn push_text(&self, text: &mut Cow<'a, str>, span: Range<usize>) {
        let mut at = span.start;
        // Each turn goes behind a piece.
        while at < span.end {
            let (piece, end) = self.piece(at..span.end, true);
            if text.is_empty() {
                *text = piece;
            } else if !piece.is_empty() {
                text.to_mut().push_str(&piece);
            }
            at = end;
        }
    }

    /// A text without the characters that XML forbids.
    fn allowed<'c>(&self, text: Cow<'c, str>) -> Cow<'c, str> {
        if !self.has_forbidden || text.chars().all(is_char) {
            return text;
        }
        Cow::Owned(text.chars().filter(|c| is_char(*c)).collect())
    }

    /// The value of an attribute that stands in a place: white space as spaces, references
    /// resolved. A line end that is written as a reference stays one (XML 1.0 section 3.3.3).
    pub(super) fn value(&self, place: Range<usize>) -> Cow<'a, str> {
        let written = cut(self.text, place);
        if written.contains(['\t', '\n', '\r']) {
            let spaced = written.replace(['\t', '\n', '\r'], " ");
            return Cow::Owned(self.allowed(resolved(&spaced)).into_owned());
        }
        self.allowed(resolved(written))
    }
}

/// A text with its references resolved; what is none stands as it is.
pub fn resolved(text: &str) -> Cow<'_, str> {
    let Some(mut at) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(cut(text, 0..at));
    // Each turn goes behind one more reference.
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let name = reference_name(rest).unwrap_or_default();
        let length = match reference(name) {
            Reference::Bare => {
                out.push('&');
                1
            }
            found => {
                found.push(&mut out);
                name.len() + 2
            }
        };
        let behind = at + length;
        let tail = text.as_bytes().get(behind..).unwrap_or_default();
        at = memchr::memchr(b'&', tail).map_or(text.len(), |next| behind + next);
        out.push_str(cut(text, behind..at));
    }
    Cow::Owned(out)
}

/// The name of the reference that a text begins with, where it has an end.
pub(super) fn reference_name(text: &str) -> Option<&str> {
    let rest = text.get(1..)?;
    // Nearly all are a few bytes long.
    let end = rest.bytes().position(|byte| matches!(byte, b';' | b'&' | b'<'))?;
    (rest.as_bytes().get(end) == Some(&b';')).then(|| cut(rest, 0..end))
}

impl<'t, 'a> DocElement<'t, 'a> {
    /// What the element inherits and uses. Sync markup within it, which is taken out, uses nothing.
    /// `invented`: bindings of prefixes that the document does not declare.
    pub fn context(self, invented: &[(String, String)]) -> Context {
        let parent = self.parent();
        let mut namespaces = Vec::new();
        let has_sync_markup = self.doc.has_sync_markup;
        let is_left_out = |within: Self| has_sync_markup && within.ns().is_sync_markup();
        for prefix in self.prefixes_from_around(is_left_out) {
            let declared = parent.and_then(|parent| parent.declaration_of(prefix));
            let given = || self.doc.given.filter(|_| prefix.is_empty()).map(Cow::Borrowed);
            let made_up = || {
                let found = invented.iter().find(|(made_up, _)| made_up == prefix);
                found.map(|(_, uri)| Cow::Borrowed(uri.as_str()))
            };
            let uri = declared.map(DocAttribute::declared_uri).or_else(given).or_else(made_up);
            if let Some(uri) = uri.filter(|uri| prefix != "xml" && !uri.is_empty()) {
                namespaces.push((prefix.to_owned(), uri.into_owned()));
            }
        }
        Context {
            namespaces,
            base: parent.and_then(Self::base_spelled),
            lang: parent.and_then(Self::lang),
        }
    }

    /// What elements in it inherit.
    pub fn inner_context(self) -> Context {
        Context { namespaces: self.scope(), base: self.base_spelled(), lang: self.lang() }
    }

    /// The namespace declarations in scope in it, in order of prefix; an emptied default namespace is
    /// none.
    pub fn scope(self) -> Vec<(String, String)> {
        let mut scope = BTreeMap::new();
        for declaration in self.ancestors().flat_map(Self::declarations) {
            let uri = || declaration.declared_uri();
            scope.entry(declaration.declared_prefix()).or_insert_with(uri);
        }
        if let Some(given) = self.doc.given {
            scope.entry("").or_insert(Cow::Borrowed(given));
        }
        let bound = scope.into_iter().filter(|(prefix, uri)| *prefix != "xml" && !uri.is_empty());
        bound.map(|(prefix, uri)| (prefix.to_owned(), uri.into_owned())).collect()
    }

    /// The prefixes that it and the elements within it use and do not declare, in order. Elements
    /// within it of which `is_left_out` is true use nothing.
    pub fn prefixes_from_around(self, is_left_out: impl Fn(Self) -> bool) -> BTreeSet<&'a str> {
        let (mut used, mut last) = (BTreeSet::new(), None);
        // The prefixes that the open elements declare, each with the number behind its element.
        let mut declared: Vec<(NodeId, &str)> = Vec::new();
        let within = self.within(&is_left_out).filter(|element| !is_left_out(*element));
        for element in std::iter::once(self).chain(within) {
            declared.truncate(declared.partition_point(|(behind, _)| *behind > element.id));
            let own = element.declarations();
            declared.extend(own.map(|own| (element.behind(), own.declared_prefix())));
            let named = element.attributes().map(|attribute| split_name(attribute.name()).0);
            let named = named.filter(|prefix| !prefix.is_empty());
            for prefix in named.chain([element.prefix()]) {
                // Most elements have the prefix of the one before.
                if last != Some(prefix) && !declared.iter().any(|(_, own)| *own == prefix) {
                    used.insert(prefix);
                    last = Some(prefix);
                }
            }
        }
        used
    }
}
