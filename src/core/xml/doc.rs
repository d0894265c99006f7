//! A document as a tree: a flat arena of its elements and attributes, each with its exact place in
//! the text.
//!
//! The tree is balanced whatever the publisher wrote. Repairs that this took are kept as edits
//! beside the text. Faults that every reader tolerates only warn; those that put the borders of
//! elements in doubt are also [`Findings::fault`]. A strict reader takes a document without flaws.

mod attribute;
mod attributes;
mod build;
mod content;
mod recover;
mod repair;
mod start_tag;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod tokens;

use super::cut;
use super::ns::{self, Ns};
pub use attribute::DocAttribute;
pub use build::{BuiltDoc, Unit, Units};
pub(super) use content::resolved;
pub use content::{Walk, WalkStep};
pub use repair::{DECLARATION, Findings, Repair, RepairKind};
use std::borrow::Cow;
use std::ops::Range;
use url::Url;

/// How much of a document is read. A limit that is met inside an entry costs that entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocLimits {
    /// Elements open at the same time.
    pub depth: usize,
    /// Attributes of one element, namespace declarations among them.
    pub attributes: usize,
    /// Namespace declarations in scope at the same time.
    pub namespaces: usize,
    /// Bytes of the spelled name of an element or attribute.
    pub name: usize,
    /// Bytes of a base address.
    pub base: usize,
    /// Bytes that the elements and attributes of a document take in memory.
    pub weight: usize,
    /// Repairs made to the text of the head, and of all entries together.
    pub repairs: usize,
    /// Times that reading is taken up again behind something that is no XML.
    pub restarts: usize,
    /// Warnings kept.
    pub warnings: usize,
}

impl Default for DocLimits {
    fn default() -> Self {
        Self {
            depth: 256,
            attributes: 256,
            namespaces: 256,
            name: 1024,
            base: 4096,
            weight: 96 << 20,
            repairs: 1_000_000,
            restarts: 128,
            warnings: 64,
        }
    }
}

/// A limit that was met where that costs the whole document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the markup has more than {limit} {what} at byte {at}, which is the limit")]
pub struct LimitReached {
    /// What there is too much of.
    pub what: &'static str,
    pub limit: usize,
    /// Byte offset where it was met.
    pub at: usize,
}

/// The longest language tag that is taken, in bytes (RFC 5646 section 4.4.1 wants 35).
const LANGUAGE_LIMIT: usize = 64;

/// The number of an element in its [`Doc`], in document order; the root is 0.
pub type NodeId = u32;

/// An element. Places are byte offsets into the text.
#[derive(Debug, Clone, Copy, Default)]
struct DocNode {
    start: u32,
    content: u32,
    content_end: u32,
    end: u32,
    parent: NodeId,
    /// The number behind those of all elements within.
    next: NodeId,
    /// Its first attribute.
    attributes: u32,
    /// [`Ns::code`] of its namespace.
    ns: u32,
    /// Bytes of its spelled name, and of the prefix of that.
    name: u16,
    prefix: u16,
    is_empty: bool,
    /// Whether it or an element around it has an `xml:base`.
    has_base: bool,
}

/// An attribute or a namespace declaration. Places are byte offsets into the text.
#[derive(Debug, Clone, Copy)]
struct DocAttributeSpan {
    start: u32,
    value: u32,
    value_end: u32,
    /// [`Ns::code`] of its namespace; of a declaration that of what it declares.
    ns: u32,
    name: u16,
    is_declaration: bool,
}

/// Markup between elements that is no text of its own kind: a `<` that begins no tag, or what is
/// passed over.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u32,
    end: u32,
    /// Whether it is a `<` that stands for itself.
    is_text: bool,
}

/// A document.
#[derive(Debug)]
pub struct Doc<'a> {
    text: &'a str,
    nodes: Vec<DocNode>,
    attributes: Vec<DocAttributeSpan>,
    holes: Vec<Hole>,
    /// The namespaces of [`Ns::Other`], by its number.
    uris: Vec<String>,
    /// The default namespace that its root was given, which stood in none.
    given: Option<&'static str>,
    /// The bindings in scope around it.
    around: &'a [(String, String)],
    base: Option<Url>,
    base_limit: usize,
    /// Whether characters stand in it that XML forbids.
    has_forbidden: bool,
    has_sync_markup: bool,
}

impl<'a> Doc<'a> {
    /// The text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// The element of the document, where it has one.
    pub fn root(&self) -> Option<DocElement<'_, 'a>> {
        self.element(0)
    }

    /// The base of relative references where nothing in it names one.
    pub const fn base(&self) -> Option<&Url> {
        self.base.as_ref()
    }

    /// An element.
    pub fn element(&self, id: NodeId) -> Option<DocElement<'_, 'a>> {
        let node = self.nodes.get(index(id))?;
        Some(DocElement { doc: self, id, node })
    }

    /// Whether a namespace of sync markup is declared in it: where none is, nothing is sync markup.
    pub const fn has_sync_markup(&self) -> bool {
        self.has_sync_markup
    }

    /// The default namespace that its root was given, where a feed of Atom stood in none.
    pub const fn given_namespace(&self) -> Option<&'static str> {
        self.given
    }

    /// The canonical spelling of the URI that a declaration binds, where it is written otherwise.
    fn respelled(&self, prefix: &str, place: Range<usize>) -> Option<Cow<'a, str>> {
        let written = cut(self.text, place);
        let canonical = ns::canonical(written);
        let is_other = canonical != written && !ns::is_reserved(prefix, canonical);
        is_other.then_some(Cow::Borrowed(canonical))
    }

    /// The namespace URI of an [`Ns::Other`].
    pub fn uri(&self, number: u32) -> &str {
        self.uris.get(index(number)).map_or("", String::as_str)
    }
}

/// An element of a [`Doc`].
#[derive(Debug, Clone, Copy)]
pub struct DocElement<'t, 'a> {
    doc: &'t Doc<'a>,
    pub id: NodeId,
    node: &'t DocNode,
}

impl<'t, 'a> DocElement<'t, 'a> {
    /// The document that it stands in.
    pub const fn doc(self) -> &'t Doc<'a> {
        self.doc
    }

    /// Its spelled name.
    pub fn name(self) -> &'a str {
        let start = index(self.node.start) + 1;
        cut(self.doc.text, start..start + usize::from(self.node.name))
    }

    /// The prefix of its name; empty where it has none.
    fn prefix(self) -> &'a str {
        let start = index(self.node.start) + 1;
        cut(self.doc.text, start..start + usize::from(self.node.prefix))
    }

    /// Its local name.
    pub fn local(self) -> &'a str {
        let start = index(self.node.start) + 1;
        let prefix = usize::from(self.node.prefix);
        let local = start + prefix + usize::from(prefix > 0);
        cut(self.doc.text, local..start + usize::from(self.node.name))
    }

    /// Its namespace.
    pub fn ns(self) -> Ns {
        Ns::from_code(self.node.ns)
    }

    /// From its `<` to its last `>`.
    pub fn span(self) -> Range<usize> {
        index(self.node.start)..index(self.node.end)
    }

    /// Its content, between its tags; empty and at its end for an empty-element tag.
    pub fn content(self) -> Range<usize> {
        index(self.node.content)..index(self.node.content_end)
    }

    /// Whether it is written as an empty-element tag.
    pub const fn is_empty_tag(self) -> bool {
        self.node.is_empty
    }

    /// Whether it has an end tag of its own.
    pub const fn has_end_tag(self) -> bool {
        self.node.content_end < self.node.end
    }

    /// The number behind those of all elements within it.
    pub const fn behind(self) -> NodeId {
        self.node.next
    }

    /// How many elements it is, with all within it.
    pub fn element_count(self) -> usize {
        index(self.node.next.saturating_sub(self.id))
    }

    /// Whether no element stands in it.
    pub fn is_leaf(self) -> bool {
        self.element_count() <= 1
    }

    /// The element around it.
    pub fn parent(self) -> Option<Self> {
        if self.id == 0 { None } else { self.doc.element(self.node.parent) }
    }

    /// It and the elements around it, innermost first.
    pub fn ancestors(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |element| element.parent())
    }

    /// The elements in it, in order.
    pub fn children(self) -> impl Iterator<Item = Self> {
        self.within(|_| true)
    }

    /// The elements within it in document order, but for those within one of which `is_passed` is
    /// true.
    pub fn within(self, is_passed: impl Fn(Self) -> bool) -> impl Iterator<Item = Self> {
        let mut next = self.id + 1;
        std::iter::from_fn(move || {
            let found = if next < self.node.next { self.doc.element(next)? } else { return None };
            next = if is_passed(found) { found.node.next } else { next + 1 };
            Some(found)
        })
    }

    /// It and all elements within it, in document order.
    pub fn descendants(self) -> impl Iterator<Item = Self> {
        (self.id..self.node.next).filter_map(|id| self.doc.element(id))
    }

    /// Its attributes, without namespace declarations.
    pub fn attributes(self) -> impl Iterator<Item = DocAttribute<'t, 'a>> {
        self.written().skip_while(|attribute| attribute.written.is_declaration)
    }

    /// Its namespace declarations; the namespace of each is that which it declares.
    pub fn declarations(self) -> impl Iterator<Item = DocAttribute<'t, 'a>> {
        // They come before its other attributes.
        self.written().take_while(|attribute| attribute.written.is_declaration)
    }

    fn written(self) -> impl Iterator<Item = DocAttribute<'t, 'a>> {
        let next = self.doc.nodes.get(index(self.id) + 1);
        let end = next.map_or(self.doc.attributes.len(), |next| index(next.attributes));
        let written = self.doc.attributes.get(index(self.node.attributes)..end);
        written.unwrap_or_default().iter().map(|written| DocAttribute { doc: self.doc, written })
    }

    /// How many attributes and declarations it and all elements within it have.
    pub fn attributes_within(self) -> usize {
        let next = self.doc.nodes.get(index(self.node.next));
        let end = next.map_or(self.doc.attributes.len(), |next| index(next.attributes));
        end.saturating_sub(index(self.node.attributes))
    }

    /// The value of an attribute without namespace, else in that of the element, where some write it.
    pub fn attribute(self, local: &str) -> Option<Cow<'a, str>> {
        let is_own = |code| code == Ns::None.code() || code == self.node.ns;
        let found = self.attributes().filter(|a| is_own(a.written.ns) && a.local() == local);
        found.min_by_key(|a| a.written.ns != Ns::None.code()).map(DocAttribute::value)
    }

    /// The value of an attribute.
    pub fn attribute_of(self, ns: Ns, local: &str) -> Option<Cow<'a, str>> {
        self.find_attribute(ns, local).map(DocAttribute::value)
    }

    /// The value of an attribute that is written with at most `limit` bytes; a longer one is not
    /// read, so that it can be asked for again and again.
    pub fn short_attribute(self, ns: Ns, local: &str, limit: usize) -> Option<Cow<'a, str>> {
        let found = self.find_attribute(ns, local)?;
        (found.place().len() <= limit).then(|| found.value())
    }

    fn find_attribute(self, ns: Ns, local: &str) -> Option<DocAttribute<'t, 'a>> {
        let code = ns.code();
        self.attributes().find(|a| a.written.ns == code && a.local() == local)
    }

    /// The declaration of a prefix that holds in it.
    fn declaration_of(self, prefix: &str) -> Option<DocAttribute<'t, 'a>> {
        let mut declared = self.ancestors().flat_map(Self::declarations);
        declared.find(|declaration| declaration.declared_prefix() == prefix)
    }

    /// The namespace URI that a prefix is bound to in it, in its canonical spelling; empty for the
    /// default namespace where there is none, `None` where nothing declares the prefix.
    pub fn binding(self, prefix: &str) -> Option<Cow<'a, str>> {
        if prefix == "xml" {
            return Some(Cow::Borrowed(ns::XML));
        }
        let bound = self.declaration_of(prefix);
        let given = || self.doc.given.filter(|_| prefix.is_empty());
        let around = || {
            let found = self.doc.around.iter().find(|(bound, _)| bound == prefix);
            found.map(|(_, uri)| uri.as_str())
        };
        let inherited = || given().or_else(around).map(Cow::Borrowed);
        let unbound = || prefix.is_empty().then_some(Cow::Borrowed(""));
        bound.map(DocAttribute::declared_uri).or_else(inherited).or_else(unbound)
    }

    /// The URI of its namespace, in its canonical spelling; empty where it is in none, `None` where
    /// nothing declares its prefix.
    pub fn uri(self) -> Option<Cow<'a, str>> {
        self.binding(self.prefix())
    }

    /// The base of relative references in it.
    pub fn base(self) -> Option<Cow<'t, Url>> {
        match self.joined_base() {
            Some((base, _)) => base.map(Cow::Owned),
            None => self.doc.base.as_ref().map(Cow::Borrowed),
        }
    }

    /// The `xml:base` in scope in it, made absolute where that is possible.
    pub fn base_spelled(self) -> Option<String> {
        self.joined_base().map(|(_, spelled)| spelled)
    }

    /// The base that it and the elements around it set, and how it is spelled; `None` where they
    /// set none.
    fn joined_base(self) -> Option<(Option<Url>, String)> {
        if !self.node.has_base {
            return None;
        }
        let mut values: Vec<Cow<'a, str>> = self.inherited("base", self.doc.base_limit).collect();
        let mut joined: Option<(Option<Url>, String)> = None;
        while let Some(value) = values.pop() {
            let around = match &joined {
                Some((base, _)) => base.as_ref(),
                None => self.doc.base.as_ref(),
            };
            joined = join_base(around, &value, self.doc.base_limit).or(joined);
        }
        joined
    }

    /// The `xml:lang` in scope in it.
    pub fn lang(self) -> Option<String> {
        let lang = self.inherited("lang", LANGUAGE_LIMIT).next()?;
        Some(super::trim(&lang).to_owned()).filter(|lang| !lang.is_empty())
    }

    /// The values of an attribute of the namespace `xml` that it and the elements around it have,
    /// innermost first. Those that are written with more than `limit` bytes are passed over unread:
    /// each entry asks.
    fn inherited(self, local: &'static str, limit: usize) -> impl Iterator<Item = Cow<'a, str>> {
        self.ancestors().filter_map(move |element| element.short_attribute(Ns::Xml, local, limit))
    }

    /// All text in it and in the elements within: references resolved, CDATA opened.
    pub fn all_text(self) -> String {
        let texts = self.walk().filter_map(|step| match step {
            WalkStep::Text(text) => Some(text),
            WalkStep::Open(_) | WalkStep::Close(_) => None,
        });
        texts.collect()
    }

    /// The text that stands directly in it: references resolved, CDATA opened.
    pub fn text(self) -> Cow<'a, str> {
        let mut text = Cow::Borrowed("");
        let mut at = index(self.node.content);
        for child in self.children() {
            self.doc.push_text(&mut text, at..index(child.node.start));
            at = index(child.node.end);
        }
        self.doc.push_text(&mut text, at..index(self.node.content_end));
        text
    }
}

/// The base that `xml:base` sets within another, and how it is spelled; `None` where that is too
/// long.
fn join_base(around: Option<&Url>, value: &str, limit: usize) -> Option<(Option<Url>, String)> {
    let value = super::trim(value);
    let joined = match around {
        Some(base) => base.join(value).ok(),
        None => Url::parse(value).ok(),
    };
    let spelled = joined.as_ref().map_or(value, Url::as_str);
    (spelled.len() <= limit).then(|| spelled.to_owned()).map(|spelled| (joined, spelled))
}

/// An offset or a number as an index.
const fn index(number: u32) -> usize {
    number as usize
}

/// An offset into a text that is no longer than [`u32::MAX`], which building sees to.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
