//! The Atom document that another kind of document is read as.

use crate::parse::{Limits, ParseError};
use tidegate_core::sync_markup::shape_element;
use tidegate_core::xml;
use tidegate_core::xml::ns::ATOM;
use tidegate_core::xml::strict::{Id, Tree};

/// The text, and how much more may come.
pub(in crate::parse) struct Out {
    text: String,
    limit: usize,
    /// How much of the text is shapes, which say again what the entries do and have a limit of their
    /// own: a collection may be as large as any other document.
    shapes: usize,
    /// The line that the text ends in, and up to where line ends were counted.
    line: usize,
    counted: usize,
}

impl Out {
    pub(in crate::parse) const fn new(limits: &Limits) -> Self {
        Self { text: String::new(), limit: limits.decoded, shapes: 0, line: 1, counted: 0 }
    }

    /// How long the text is.
    pub(in crate::parse) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Adds the shape that the entry which begins at `start` has in its collection: an element of that
    /// name with `content` in it, as it is written (FeedSync for Collections, section 2.1.7).
    pub(in crate::parse) fn shape(&mut self, start: usize, name: &str, content: &str) {
        if self.is_full() || self.shapes.saturating_add(content.len()) > self.limit {
            return;
        }
        let whole = format!("{}</entry>", self.text.get(start..).unwrap_or_default());
        if let Some(of) = shape_element::print_of(&whole) {
            let before = self.text.len();
            shape_element::push(&mut self.text, name, &of, content);
            self.shapes = self.shapes.saturating_add(self.text.len().saturating_sub(before));
        }
    }

    /// Adds text as it is. What is too much is left out and refused at the end.
    pub(in crate::parse) fn push(&mut self, text: &str) {
        if !self.is_full() {
            self.text.push_str(text);
        }
    }

    /// Whether it is longer than may be, so that it will be refused whatever comes.
    pub(in crate::parse) const fn is_full(&self) -> bool {
        self.text.len().saturating_sub(self.shapes) > self.limit
    }

    /// Adds text, escaped.
    pub(in crate::parse) fn text(&mut self, text: &str) {
        if !self.is_full() {
            xml::push_text(&mut self.text, text);
        }
    }

    /// Adds line ends until a line of the source is reached.
    pub(in crate::parse) fn at(&mut self, line: usize) {
        let new = self.text.get(self.counted..).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', new.as_bytes()).count();
        let missing = line.saturating_sub(self.line);
        self.push(&"\n".repeat(missing));
        self.line += missing;
        self.counted = self.text.len();
    }

    /// Adds an attribute.
    pub(in crate::parse) fn attribute(&mut self, name: &str, value: &str) {
        if !self.is_full() {
            xml::push_attribute(&mut self.text, name, value);
        }
    }

    /// Adds an element of Atom with text; `attributes` as they are written.
    pub(in crate::parse) fn element(&mut self, name: &str, attributes: &str, text: &str) {
        for piece in ["<", name, attributes, ">"] {
            self.push(piece);
        }
        self.text(text);
        for piece in ["</", name, ">"] {
            self.push(piece);
        }
    }

    /// Adds a link.
    pub(in crate::parse) fn link(&mut self, parts: &[(&str, &str)]) {
        self.push("<link");
        for (name, value) in parts {
            self.attribute(name, value);
        }
        self.push("/>");
    }

    /// Adds an element of the source as it is, with the bindings that it uses and does not make.
    pub(in crate::parse) fn copy(&mut self, tree: &Tree<'_>, id: Id) {
        self.copy_within(tree, id, ATOM);
    }

    /// The same where another namespace is the default.
    pub(in crate::parse) fn copy_within(&mut self, tree: &Tree<'_>, id: Id, default: &str) {
        let Some(element) = tree.element(id) else { return };
        self.at(tree.line(element.span.start));
        let behind_name = element.span.start + 1 + element.name.len();
        self.push(tree.slice(element.span.start..behind_name));
        for (prefix, uri) in needs(tree, id) {
            match prefix.as_str() {
                "" if uri == default => {}
                "" => self.attribute("xmlns", &uri),
                prefix => self.bind(prefix, &uri),
            }
        }
        self.push(tree.slice(behind_name..element.span.end));
    }

    /// Declares a binding where elements of Atom have no prefix.
    pub(in crate::parse) fn bind(&mut self, prefix: &str, uri: &str) {
        match prefix {
            "" if uri != ATOM => self.attribute("xmlns", uri),
            "" | "xml" => {}
            _ if uri.is_empty() => {}
            prefix => self.attribute(&format!("xmlns:{prefix}"), uri),
        }
    }

    /// The document.
    pub(in crate::parse) fn finish(self) -> Result<String, ParseError> {
        let (found, limit) = (self.text.len().saturating_sub(self.shapes), self.limit);
        if found > limit { Err(ParseError::TooLarge { found, limit }) } else { Ok(self.text) }
    }
}

/// The bindings that an element and what is in it use and do not make themselves.
fn needs(tree: &Tree<'_>, item: Id) -> Vec<(String, String)> {
    let mut needs: Vec<(String, String)> = Vec::new();
    // Elements to visit, each with the prefixes declared between it and the item.
    let mut open = vec![item];
    while let Some(id) = open.pop() {
        let Some(element) = tree.element(id) else { continue };
        for prefix in element.prefixes() {
            if prefix == "xml" || needs.iter().any(|(known, _)| known == prefix) {
                continue;
            }
            if !made_within(tree, item, id, prefix) {
                let uri = tree.binding(id, prefix).unwrap_or_default();
                needs.push((prefix.to_owned(), uri.to_owned()));
            }
        }
        open.extend(tree.children(id).map(|(child, _)| child));
    }
    needs.sort();
    needs
}

/// Whether `prefix` is declared by `id` or an element around it, up to `item`.
fn made_within(tree: &Tree<'_>, item: Id, id: Id, prefix: &str) -> bool {
    let mut next = Some(id);
    while let Some(id) = next {
        let Some(element) = tree.element(id) else { return false };
        if element.declaration(prefix).is_some() {
            return true;
        }
        next = element.parent.filter(|_| id != item);
    }
    false
}

/// The name of the root element of a text that begins with markup, without its prefix; `None` where it
/// begins with something else, such as JSON that speaks of elements.
pub(in crate::parse) fn root(text: &str) -> Option<&str> {
    let mut rest = text.starts_with('<').then_some(text)?;
    // Each turn goes behind one more declaration or comment.
    let name = loop {
        let tag = rest.get(rest.find('<')? + 1..)?;
        let end = match tag {
            comment if comment.starts_with("!--") => "-->",
            prolog if prolog.starts_with(['?', '!']) => ">",
            _ => break tag,
        };
        rest = tag.get(tag.find(end)? + end.len()..)?;
    };
    let name = name.split(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').next()?;
    name.rsplit(':').next()
}
