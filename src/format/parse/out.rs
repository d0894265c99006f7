//! The XML document that another kind of document is read as.

use crate::parse::{Limits, ParseError};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::{self, cut};

/// Which line a text ends in that is made of another one, so that its parts stand in the same lines.
pub struct LineCounter {
    line: usize,
    /// Up to where line ends were counted.
    counted: usize,
}

impl LineCounter {
    pub const fn new() -> Self {
        Self { line: 1, counted: 0 }
    }

    /// Adds line ends until a line of the source is reached.
    pub fn reach(&mut self, out: &mut String, line: usize) {
        let new = out.get(self.counted..).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', new.as_bytes()).count();
        let missing = line.saturating_sub(self.line);
        out.extend(std::iter::repeat_n('\n', missing));
        self.line += missing;
        self.counted = out.len();
    }
}

/// Adds an element of the source as it is, with the bindings that it uses and does not make, where
/// the namespace `default` is the default.
pub fn push_copy(out: &mut String, element: DocElement<'_, '_>, default: &str) {
    let (text, span) = (element.doc().text(), element.span());
    let behind_name = span.start + 1 + element.name().len();
    out.push_str(cut(text, span.start..behind_name));
    let around = element.parent();
    for prefix in element.prefixes_from_around(|_| false) {
        let uri = around.and_then(|around| around.binding(prefix)).unwrap_or_default();
        match prefix {
            "" if uri == default => {}
            "" => xml::push_attribute(out, "xmlns", &uri),
            prefix => push_binding(out, prefix, &uri),
        }
    }
    out.push_str(cut(text, behind_name..span.end));
}

/// Declares a prefix.
pub fn push_binding(out: &mut String, prefix: &str, uri: &str) {
    if prefix != "xml" && !uri.is_empty() {
        xml::push_namespace(out, prefix, uri);
    }
}

/// Refuses a text that is longer than may be.
pub const fn check_length(text: &str, limits: &Limits) -> Result<(), ParseError> {
    let (found, limit) = (text.len(), limits.decoded);
    if found > limit { Err(ParseError::TooLarge { found, limit }) } else { Ok(()) }
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
