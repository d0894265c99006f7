//! The XML document that another kind of document is read as.

use crate::parse::{Limits, ParseError};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::{self, cut};

/// The text, and how much more may come.
pub struct Out {
    text: String,
    limit: usize,
    /// The line that the text ends in, and up to where line ends were counted.
    line: usize,
    counted: usize,
}

impl Out {
    pub const fn new(limits: &Limits) -> Self {
        Self { text: String::new(), limit: limits.decoded, line: 1, counted: 0 }
    }

    /// Adds text as it is. What is too much is left out and refused at the end.
    pub fn push(&mut self, text: &str) {
        if !self.is_full() {
            self.text.push_str(text);
        }
    }

    /// Whether it is longer than may be, so that it will be refused whatever comes.
    pub const fn is_full(&self) -> bool {
        self.text.len() > self.limit
    }

    /// Adds text, escaped.
    pub fn text(&mut self, text: &str) {
        if !self.is_full() {
            xml::push_text(&mut self.text, text);
        }
    }

    /// Adds line ends until a line of the source is reached.
    pub fn at(&mut self, line: usize) {
        let new = self.text.get(self.counted..).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', new.as_bytes()).count();
        let missing = line.saturating_sub(self.line);
        self.push(&"\n".repeat(missing));
        self.line += missing;
        self.counted = self.text.len();
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, name: &str, value: &str) {
        if !self.is_full() {
            xml::push_attribute(&mut self.text, name, value);
        }
    }

    /// Adds an element with text; `attributes` as they are written.
    pub fn element(&mut self, name: &str, attributes: &str, text: &str) {
        for piece in ["<", name, attributes, ">"] {
            self.push(piece);
        }
        self.text(text);
        for piece in ["</", name, ">"] {
            self.push(piece);
        }
    }

    /// Adds a link.
    pub fn link(&mut self, parts: &[(&str, &str)]) {
        self.empty("link", parts);
    }

    /// Adds an element without content.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        if !self.is_full() {
            let said: Vec<_> =
                attributes.iter().map(|(name, value)| (*name, Some(*value))).collect();
            xml::push_empty(&mut self.text, name, &said);
        }
    }

    /// Adds an element of the source as it is, with the bindings that it uses and does not make, where
    /// the namespace `default` is the default.
    pub fn copy(&mut self, element: DocElement<'_, '_>, default: &str) {
        let (text, span) = (element.doc().text(), element.span());
        let behind_name = span.start + 1 + element.name().len();
        self.push(cut(text, span.start..behind_name));
        let around = element.parent();
        for prefix in element.prefixes_from_around(|_| false) {
            let uri = around.and_then(|around| around.binding(prefix)).unwrap_or_default();
            match prefix {
                "" if uri == default => {}
                "" => self.attribute("xmlns", &uri),
                prefix => self.bind(prefix, &uri),
            }
        }
        self.push(cut(text, behind_name..span.end));
    }

    /// Declares a prefix.
    pub fn bind(&mut self, prefix: &str, uri: &str) {
        if prefix != "xml" && !uri.is_empty() {
            self.attribute(&format!("xmlns:{prefix}"), uri);
        }
    }

    /// The document.
    pub fn finish(self) -> Result<String, ParseError> {
        let (found, limit) = (self.text.len(), self.limit);
        if found > limit { Err(ParseError::TooLarge { found, limit }) } else { Ok(self.text) }
    }
}

/// Where the lines of a text end.
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    /// The line of a place, counted from 1.
    pub fn line(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }

    /// Where a line begins.
    pub fn start(&self, line: usize) -> usize {
        let before = line.checked_sub(2).and_then(|before| self.0.get(before));
        before.map_or(0, |end| end + 1)
    }
}

/// The name of the root element of a text that begins with markup, without its prefix; `None` where
/// it begins with something else, such as JSON that speaks of elements.
pub fn root(text: &str) -> Option<&str> {
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
