//! A document as a light tree of elements, each with its exact place in the text.

use crate::xml::ns::{self, XML};
use crate::xml::{declared_prefix, is_char, is_name, split_name};
use quick_xml::XmlVersion;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use quick_xml::reader::Reader;
use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of a document.
pub const BYTES_LIMIT: usize = 32 << 20;
/// How deep elements may stand in each other.
pub const DEPTH_LIMIT: usize = 256;
/// The most bytes that the elements and attributes of a document take in memory beside its text.
pub const WEIGHT_LIMIT: usize = 3 * BYTES_LIMIT;
/// The most attributes of an element, namespace declarations included.
pub const ATTRIBUTE_LIMIT: usize = 256;
/// The most namespace declarations in scope of an element.
pub const NAMESPACE_LIMIT: usize = 256;
/// Line ends are counted up to each place that is a multiple of this, in bytes.
const LINES_BLOCK: usize = 4096;

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
pub enum StrictContent<'a> {
    /// An element.
    Element(Id),
    /// Character data: references resolved, CDATA opened.
    Text(Cow<'a, str>),
}

/// An attribute or a namespace declaration.
#[derive(Debug, Clone)]
pub struct StrictAttribute<'a> {
    /// The name as written; of a declaration the prefix.
    pub name: &'a str,
    /// The value, normalised.
    pub value: Cow<'a, str>,
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
    pub attributes: Box<[StrictAttribute<'a>]>,
    /// Its namespace declarations, in their canonical spelling.
    pub declarations: Box<[StrictAttribute<'a>]>,
    /// How many declarations are made by it and the elements around it.
    declared: usize,
    /// The places of what stands in it and in the elements within, in [`Tree::contents`].
    within: Range<usize>,
}

/// A well-formed document within the limits of this module. Every prefix in it is declared.
#[derive(Debug)]
pub struct Tree<'a> {
    text: &'a str,
    elements: Vec<StrictElement<'a>>,
    /// What stands in all of them, in the order of the document.
    contents: Vec<StrictContent<'a>>,
    weight: usize,
    /// How many line ends stand before each [`LINES_BLOCK`].
    lines: Vec<usize>,
}

impl<'a> Tree<'a> {
    /// Reads a document. No DTD is processed, and no entity of one is expanded.
    pub fn read(text: &'a str) -> Result<Self, TreeError> {
        if text.len() > BYTES_LIMIT {
            let fault = TreeFault::TooMany { what: "bytes", limit: BYTES_LIMIT };
            return Err(TreeError { line: 1, fault });
        }
        let blocks = text.as_bytes().chunks(LINES_BLOCK);
        let lines = blocks.scan(0, |lines, block| {
            let before = *lines;
            *lines += memchr::memchr_iter(b'\n', block).count();
            Some(before)
        });
        let (elements, contents) = (Vec::new(), Vec::new());
        let mut tree = Self { text, elements, contents, weight: 0, lines: lines.collect() };
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !is_char(*c)) {
            return Err(tree.fault(at, impossible(c)));
        }
        tree.fill()?;
        Ok(tree)
    }

    /// The line of a place, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        let block = at / LINES_BLOCK;
        let begun = self.text.as_bytes().get(block * LINES_BLOCK..at).unwrap_or_default();
        let before = self.lines.get(block).or(self.lines.last()).copied().unwrap_or_default();
        before + memchr::memchr_iter(b'\n', begun).count() + 1
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
        self.contents(id).filter_map(|content| match content {
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
        let within = self.contents.get(self.within(id)).unwrap_or_default().iter();
        let texts = within.filter_map(|content| match content {
            StrictContent::Text(text) => Some(&**text),
            StrictContent::Element(_) => None,
        });
        texts.collect()
    }

    /// What stands in an element, in order.
    pub fn contents(&self, id: Id) -> impl Iterator<Item = &StrictContent<'a>> {
        let mut within = self.within(id);
        std::iter::from_fn(move || {
            let content = self.contents.get(within.clone())?.first()?;
            within.start = match content {
                StrictContent::Element(child) => self.within(*child).end,
                StrictContent::Text(_) => within.start + 1,
            };
            Some(content)
        })
    }

    fn within(&self, id: Id) -> Range<usize> {
        self.element(id).map_or(0..0, |element| element.within.clone())
    }

    fn fill(&mut self) -> Result<(), TreeError> {
        let mut reader = Reader::from_str(self.text);
        let mut open: Vec<Id> = Vec::new();
        // Whether the last of the contents is text to which more text belongs.
        let mut joins = false;
        loop {
            let start = place(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                let at = place(reader.error_position());
                self.fault(at, TreeFault::Malformed(error.to_string()))
            })?;
            let end = place(reader.buffer_position());
            match event {
                Event::Start(_) => {
                    joins = false;
                    let inside = start + 1..end - 1;
                    let id = self.open((start..end, inside), open.last().copied(), open.len())?;
                    if let Some(element) = self.elements.get_mut(id) {
                        element.inner = Some(end..end);
                    }
                    open.push(id);
                }
                Event::Empty(_) => {
                    joins = false;
                    let inside = start + 1..end - 2;
                    self.open((start..end, inside), open.last().copied(), open.len())?;
                }
                Event::End(_) => {
                    joins = false;
                    let contents = self.contents.len();
                    let closed = open.pop().and_then(|id| self.elements.get_mut(id));
                    if let Some(element) = closed {
                        element.inner = element.inner.as_ref().map(|inner| inner.start..start);
                        element.span.end = end;
                        element.within.end = contents;
                    }
                }
                Event::Text(text) => {
                    self.add_text((!open.is_empty(), &mut joins), start, text.xml10_content())?;
                }
                Event::CData(text) => {
                    self.add_text((!open.is_empty(), &mut joins), start, text.xml10_content())?;
                }
                Event::GeneralRef(name) => {
                    let value = match name.resolve_char_ref() {
                        Ok(Some(c)) => Cow::Owned(c.to_string()),
                        Ok(None) => match crate::xml::reference::named(&name) {
                            Some(known) => Cow::Borrowed(known),
                            None => Cow::Owned(format!("&{};", &*name)),
                        },
                        Err(error) => {
                            return Err(self.fault(start, TreeFault::Malformed(error.to_string())));
                        }
                    };
                    possible(&value).map_err(|fault| self.fault(start, fault))?;
                    self.add_text((!open.is_empty(), &mut joins), start, value)?;
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
        (span, inside): (Range<usize>, Range<usize>),
        parent: Option<Id>,
        depth: usize,
    ) -> Result<Id, TreeError> {
        let too_many = |what, limit| Err(TreeFault::TooMany { what, limit });
        let checked = if depth >= DEPTH_LIMIT {
            too_many("elements in each other", DEPTH_LIMIT)
        } else if self.weight > WEIGHT_LIMIT {
            too_many("bytes in elements and attributes", WEIGHT_LIMIT)
        } else if parent.is_none() && !self.elements.is_empty() {
            Err(TreeFault::Malformed("there is a second root element".to_owned()))
        } else {
            attributes(self.slice(inside))
        };
        let (name, declarations, attributes) =
            checked.map_err(|fault| self.fault(span.start, fault))?;
        let around = parent.and_then(|parent| self.element(parent));
        let declared = around.map_or(0, |element| element.declared) + declarations.len();
        if declared > NAMESPACE_LIMIT {
            let what = "namespace declarations in scope";
            let fault = TreeFault::TooMany { what, limit: NAMESPACE_LIMIT };
            return Err(self.fault(span.start, fault));
        }
        // The element itself, and text behind it.
        self.weight += size_of::<StrictElement<'_>>() + 2 * size_of::<StrictContent<'_>>();
        let written = declarations.len() + attributes.len();
        self.weight += written * size_of::<StrictAttribute<'_>>();
        let id = self.elements.len();
        if parent.is_some() {
            self.contents.push(StrictContent::Element(id));
        }
        let at = span.start;
        let within = self.contents.len()..self.contents.len();
        self.elements.push(StrictElement {
            parent,
            name,
            span,
            inner: None,
            attributes,
            declarations,
            declared,
            within,
        });
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
        (is_inside, joins): (bool, &mut bool),
        at: usize,
        text: Cow<'a, str>,
    ) -> Result<(), TreeError> {
        let is_first = !std::mem::replace(joins, is_inside);
        match self.contents.last_mut() {
            Some(StrictContent::Text(before)) if is_inside && !is_first => {
                before.to_mut().push_str(&text);
            }
            _ if is_inside => self.contents.push(StrictContent::Text(text)),
            _ if text.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() => {}
            _ => {
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
        self.attributes.iter().find(|a| a.name == name).map(|a| a.value.as_ref())
    }

    /// What this element itself binds a prefix to; `""` undoes the default namespace.
    pub fn declaration(&self, prefix: &str) -> Option<&str> {
        self.declarations.iter().find(|d| d.name == prefix).map(|d| d.value.as_ref())
    }

    /// The prefixes that the element's tag uses; `""` is that of a name without one. Attributes
    /// without prefix are in no namespace.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        let attributes = self.attributes.iter().map(|a| split_name(a.name).0);
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

/// The name of an element, its namespace declarations and its attributes.
type TagParts<'a> = (&'a str, Box<[StrictAttribute<'a>]>, Box<[StrictAttribute<'a>]>);

/// Reads what stands between the brackets of a start tag.
fn attributes(inside: &str) -> Result<TagParts<'_>, TreeFault> {
    let name = inside.split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
    named(name)?;
    let (mut declarations, mut attributes) = (Vec::new(), Vec::new());
    for attribute in Attributes::new(inside, name.len()) {
        if attributes.len() + declarations.len() >= ATTRIBUTE_LIMIT {
            let what = "attributes on one element";
            return Err(TreeFault::TooMany { what, limit: ATTRIBUTE_LIMIT });
        }
        let attribute = attribute.map_err(|error| TreeFault::Malformed(error.to_string()))?;
        let name = attribute.key.0;
        named(name)?;
        // A reference that nobody knows stays as it is written; where the value matters it
        // will not do there.
        let normalized = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = normalized.unwrap_or(attribute.value);
        possible(&value)?;
        match declared_prefix(name) {
            Some(prefix) => {
                let value = match ns::canonical(&value) {
                    canonical if canonical == value => value,
                    canonical => Cow::Owned(canonical.to_owned()),
                };
                declarations.push(StrictAttribute { name: prefix, value });
            }
            None => attributes.push(StrictAttribute { name, value }),
        }
    }
    Ok((name, declarations.into(), attributes.into()))
}

fn place(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
