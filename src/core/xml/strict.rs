//! A document as a light tree of elements, each with its exact place in the text.

use crate::model::XML_NAMESPACE as XML;
use crate::xml::{declared_prefix, is_char, is_name, split_name};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of a document.
pub const BYTES_LIMIT: usize = 32 << 20;
/// How deep elements may stand in each other.
pub const DEPTH_LIMIT: usize = 256;
/// The most elements of a document.
pub const ELEMENT_LIMIT: usize = 1_000_000;
/// The most attributes of an element, namespace declarations included.
pub const ATTRIBUTE_LIMIT: usize = 256;
/// The most namespace declarations in scope of an element.
pub const NAMESPACE_LIMIT: usize = 256;
/// A fault with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct FaultAt<F> {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: F,
}

impl<F> FaultAt<F> {
    /// The same place, with the fault as its reader words it.
    pub fn map<G: From<F>>(self) -> FaultAt<G> {
        FaultAt { line: self.line, fault: self.fault.into() }
    }
}

/// Why a text is no document, with its place.
pub type TreeError = FaultAt<TreeFault>;

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeFault {
    /// It is not well-formed.
    #[error("the document is not well-formed: {0}")]
    Malformed(String),
    /// It has no root.
    #[error("there is no element in it")]
    NoElement,
    /// There is more of something than is taken.
    #[error("there are more than {limit} {what}, which is the limit")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The named limit.
        limit: usize,
    },
    /// A prefix is used that nothing declares.
    #[error("the prefix {0:?} is not declared")]
    Undeclared(String),
}

/// The number of an element in its [`Tree`]; the root is 0.
pub type Id = usize;

/// What stands in an element.
#[derive(Debug, Clone)]
pub enum StrictContent {
    /// An element.
    Element(Id),
    /// Character data: references resolved, CDATA opened.
    Text(String),
}

/// An attribute or a namespace declaration.
#[derive(Debug, Clone)]
pub struct StrictAttribute {
    /// The name as written; of a declaration the prefix.
    pub name: String,
    /// The value, normalised.
    pub value: String,
}

/// An element.
#[derive(Debug, Clone)]
pub struct StrictElement<'a> {
    /// The element around it.
    pub parent: Option<Id>,
    /// The name as written.
    pub name: &'a str,
    /// From its `<` to its last `>`.
    pub span: Range<usize>,
    /// Its content, between its tags; `None` for an empty-element tag.
    pub inner: Option<Range<usize>>,
    /// Its attributes, without namespace declarations.
    pub attributes: Vec<StrictAttribute>,
    /// Its namespace declarations.
    pub declarations: Vec<StrictAttribute>,
    /// How many declarations are made by it and the elements around it.
    pub declared: usize,
    /// What stands in it.
    pub content: Vec<StrictContent>,
}

/// A well-formed document within the limits of this module. Every prefix in it is declared.
#[derive(Debug)]
pub struct Tree<'a> {
    text: &'a str,
    elements: Vec<StrictElement<'a>>,
    newlines: Vec<usize>,
}

impl<'a> Tree<'a> {
    /// Reads a document. No DTD is processed, and no entity of one is expanded.
    pub fn read(text: &'a str) -> Result<Self, TreeError> {
        if text.len() > BYTES_LIMIT {
            let fault = TreeFault::TooMany { what: "bytes", limit: BYTES_LIMIT };
            return Err(TreeError { line: 1, fault });
        }
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        let mut tree = Self { text, elements: Vec::new(), newlines };
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !is_char(*c)) {
            return Err(tree.fault(at, impossible(c)));
        }
        tree.fill()?;
        Ok(tree)
    }

    /// The line of a place, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        self.newlines.partition_point(|newline| *newline < at) + 1
    }

    /// A fault at a place.
    pub fn fault<F>(&self, at: usize, fault: F) -> FaultAt<F> {
        FaultAt { line: self.line(at), fault }
    }

    /// The whole text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// A part of the text; empty where it is not one.
    pub fn slice(&self, span: Range<usize>) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    /// The root element. A tree that was read has one.
    pub fn root(&self) -> Option<&StrictElement<'a>> {
        self.elements.first()
    }

    /// An element.
    pub fn element(&self, id: Id) -> Option<&StrictElement<'a>> {
        self.elements.get(id)
    }

    /// The elements in an element, in order.
    pub fn children(&self, id: Id) -> impl Iterator<Item = (Id, &StrictElement<'a>)> {
        let content = self.element(id).map_or(&[][..], |element| &element.content);
        content.iter().filter_map(|content| match content {
            StrictContent::Element(child) => self.element(*child).map(|element| (*child, element)),
            StrictContent::Text(_) => None,
        })
    }

    /// What a prefix is bound to where an element stands, its own declarations included; the
    /// default namespace has prefix `""`. `None` where it is bound to nothing.
    pub fn binding(&self, id: Id, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(XML);
        }
        self.inherited(id, |element| element.declaration(prefix)).filter(|uri| !uri.is_empty())
    }

    /// The nearest value that `find` finds in the element or one around it.
    pub fn inherited<'t, T>(
        &'t self,
        id: Id,
        find: impl Fn(&'t StrictElement<'a>) -> Option<T>,
    ) -> Option<T> {
        let mut next = self.element(id);
        while let Some(element) = next {
            if let Some(found) = find(element) {
                return Some(found);
            }
            next = element.parent.and_then(|parent| self.element(parent));
        }
        None
    }

    /// The namespace and local name of an element; no namespace is `""`.
    pub fn name(&self, id: Id) -> (&str, &'a str) {
        let (prefix, local) = split_name(self.element(id).map_or("", |element| element.name));
        (self.binding(id, prefix).unwrap_or_default(), local)
    }

    /// The character data in an element and all within it.
    pub fn plain(&self, id: Id) -> String {
        let mut out = String::new();
        let mut open: Vec<&StrictContent> = self.contents(id).rev().collect();
        while let Some(content) = open.pop() {
            match content {
                StrictContent::Text(text) => out.push_str(text),
                StrictContent::Element(child) => open.extend(self.contents(*child).rev()),
            }
        }
        out
    }

    /// What stands in an element, in order.
    pub fn contents(&self, id: Id) -> std::slice::Iter<'_, StrictContent> {
        self.element(id).map_or(&[][..], |element| &element.content).iter()
    }

    fn fill(&mut self) -> Result<(), TreeError> {
        let mut reader = Reader::from_str(self.text);
        let mut open: Vec<Id> = Vec::new();
        loop {
            let start = place(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                let at = place(reader.error_position());
                self.fault(at, TreeFault::Malformed(error.to_string()))
            })?;
            let end = place(reader.buffer_position());
            match event {
                Event::Start(tag) => {
                    let id = self.open(&tag, start..end, open.last().copied(), open.len())?;
                    if let Some(element) = self.elements.get_mut(id) {
                        element.inner = Some(end..end);
                    }
                    open.push(id);
                }
                Event::Empty(tag) => {
                    self.open(&tag, start..end, open.last().copied(), open.len())?;
                }
                Event::End(_) => {
                    let closed = open.pop().and_then(|id| self.elements.get_mut(id));
                    if let Some(element) = closed {
                        element.inner = element.inner.as_ref().map(|inner| inner.start..start);
                        element.span.end = end;
                    }
                }
                Event::Text(text) => self.add_text(open.last(), start, text.xml10_content())?,
                Event::CData(text) => self.add_text(open.last(), start, text.xml10_content())?,
                Event::GeneralRef(name) => {
                    let value = match name.resolve_char_ref() {
                        Ok(Some(c)) => c.to_string(),
                        Ok(None) => match crate::xml::reference::named(&name) {
                            Some(known) => known.to_owned(),
                            None => format!("&{};", &*name),
                        },
                        Err(error) => {
                            return Err(self.fault(start, TreeFault::Malformed(error.to_string())));
                        }
                    };
                    possible(&value).map_err(|fault| self.fault(start, fault))?;
                    self.add_text(open.last(), start, Cow::Owned(value))?;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof => break,
            }
        }
        let unclosed = open.last().and_then(|id| self.elements.get(*id));
        if let Some(element) = unclosed {
            let what = format!("the element {:?} is not closed", element.name);
            return Err(self.fault(element.span.start, TreeFault::Malformed(what)));
        }
        if self.elements.is_empty() {
            return Err(self.fault(0, TreeFault::NoElement));
        }
        Ok(())
    }

    fn open(
        &mut self,
        tag: &BytesStart<'_>,
        span: Range<usize>,
        parent: Option<Id>,
        depth: usize,
    ) -> Result<Id, TreeError> {
        let too_many = |what, limit| Err(TreeFault::TooMany { what, limit });
        let checked = if depth >= DEPTH_LIMIT {
            too_many("elements in each other", DEPTH_LIMIT)
        } else if self.elements.len() >= ELEMENT_LIMIT {
            too_many("elements", ELEMENT_LIMIT)
        } else if parent.is_none() && !self.elements.is_empty() {
            Err(TreeFault::Malformed("there is a second root element".to_owned()))
        } else {
            attributes(tag)
        };
        let (declarations, attributes) = checked.map_err(|fault| self.fault(span.start, fault))?;
        let around = parent.and_then(|parent| self.element(parent));
        let declared = around.map_or(0, |element| element.declared) + declarations.len();
        if declared > NAMESPACE_LIMIT {
            let what = "namespace declarations in scope";
            let fault = TreeFault::TooMany { what, limit: NAMESPACE_LIMIT };
            return Err(self.fault(span.start, fault));
        }
        let named = span.start + 1..span.start + 1 + tag.name().as_ref().len();
        let id = self.elements.len();
        let name = self.slice(named);
        let at = span.start;
        let inner = None;
        let content = Vec::new();
        self.elements.push(StrictElement {
            parent,
            name,
            span,
            inner,
            attributes,
            declarations,
            declared,
            content,
        });
        if let Some(parent) = parent.and_then(|parent| self.elements.get_mut(parent)) {
            parent.content.push(StrictContent::Element(id));
        }
        match self.undeclared(id) {
            Some(prefix) => Err(self.fault(at, TreeFault::Undeclared(prefix))),
            None => Ok(id),
        }
    }

    fn undeclared(&self, id: Id) -> Option<String> {
        let element = self.element(id)?;
        element
            .prefixes()
            .find(|prefix| !prefix.is_empty() && self.binding(id, prefix).is_none())
            .map(str::to_owned)
    }

    fn add_text(
        &mut self,
        into: Option<&Id>,
        at: usize,
        text: Cow<'_, str>,
    ) -> Result<(), TreeError> {
        match into.and_then(|id| self.elements.get_mut(*id)) {
            Some(element) => match element.content.last_mut() {
                Some(StrictContent::Text(before)) => before.push_str(&text),
                _ => element.content.push(StrictContent::Text(text.into_owned())),
            },
            None if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() => {}
            None => {
                let what = "there is text outside of the root element".to_owned();
                return Err(self.fault(at, TreeFault::Malformed(what)));
            }
        }
        Ok(())
    }
}

impl<'a> StrictElement<'a> {
    /// The value of an attribute by its name as written.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|a| a.name == name).map(|a| a.value.as_str())
    }

    /// What this element itself binds a prefix to; `""` undoes the default namespace.
    pub fn declaration(&self, prefix: &str) -> Option<&str> {
        self.declarations.iter().find(|d| d.name == prefix).map(|d| d.value.as_str())
    }

    /// The prefixes that the element's tag uses; `""` is that of a name without one. Attributes
    /// without prefix are in no namespace.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        let attributes = self.attributes.iter().map(|a| split_name(&a.name).0);
        std::iter::once(split_name(self.name).0)
            .chain(attributes.filter(|prefix| !prefix.is_empty()))
    }
}

fn impossible(c: char) -> TreeFault {
    TreeFault::Malformed(format!("the character U+{:04X} may not stand in XML", u32::from(c)))
}

/// Refuses characters that only a reference could bring in.
fn possible(value: &str) -> Result<(), TreeFault> {
    value.chars().find(|c| !is_char(*c)).map_or(Ok(()), |c| Err(impossible(c)))
}

/// Refuses what is no name in XML with namespaces: what is spelled with such a prefix could not be
/// read again.
fn named(name: &str) -> Result<(), TreeFault> {
    if is_name(name) {
        return Ok(());
    }
    Err(TreeFault::Malformed(format!("{name:?} is no name in XML with namespaces")))
}

/// The namespace declarations and the attributes of a tag.
fn attributes(
    tag: &BytesStart<'_>,
) -> Result<(Vec<StrictAttribute>, Vec<StrictAttribute>), TreeFault> {
    named(tag.name().as_ref())?;
    let (mut declarations, mut attributes) = (Vec::new(), Vec::new());
    for attribute in tag.attributes() {
        if attributes.len() + declarations.len() >= ATTRIBUTE_LIMIT {
            let what = "attributes on one element";
            return Err(TreeFault::TooMany { what, limit: ATTRIBUTE_LIMIT });
        }
        let attribute = attribute.map_err(|error| TreeFault::Malformed(error.to_string()))?;
        named(attribute.key.as_ref())?;
        // A reference that nobody knows stays as it is written; where the value matters it
        // will not do there.
        let value = match attribute.normalized_value(XmlVersion::Implicit1_0) {
            Ok(value) => value.into_owned(),
            Err(_) => attribute.value.clone().into_owned(),
        };
        possible(&value)?;
        let name = attribute.key.as_ref();
        match declared_prefix(name) {
            Some(prefix) => declarations.push(StrictAttribute { name: prefix.to_owned(), value }),
            None => attributes.push(StrictAttribute { name: name.to_owned(), value }),
        }
    }
    Ok((declarations, attributes))
}

fn place(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
