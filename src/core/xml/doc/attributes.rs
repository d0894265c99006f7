//! The attributes of start tags, and the tags of lists: people and programs write these with bare `<`
//! and quotes in their values, and forget where they end. What feeds would lose for that is an entry
//! of many; in a list it is an address that somebody wants to keep. So there a tag is what looks most
//! like one, and each guess is named.
//!
//! Every byte is looked at a bounded number of times, whatever the text is.

use super::build::Builder;
use super::start_tag::{Form, OpenElement, WrittenAttribute};
use super::tokens::Token;
use super::{BuiltDoc, Doc, DocLimits, DocNode, LimitReached, Units, offset};
use crate::model::Flaw;
use crate::xml::{self, cut};
use std::ops::Range;

/// The longest name of an attribute, in bytes; also how far behind a quote it is looked whether the
/// next attribute begins there.
const NAME_LIMIT: usize = 64;

/// The most quotes inside one value; one with more has no end that can be told.
const QUOTES_LIMIT: usize = 32;

/// Whether a value cannot go on in front of the opening quote of this attribute. `is_nested`:
/// within markup, whose own attributes do not count.
fn begins_another(name: &str, is_nested: bool) -> bool {
    match name {
        "text" | "xmlurl" | "htmlurl" | "description" | "version" => true,
        "title" | "url" | "type" | "language" | "category" => !is_nested,
        _ => false,
    }
}

/// The element of a list's entries.
const OUTLINE: &str = "outline";

impl<'a> Doc<'a> {
    /// Reads a list of outlines, whose tags are guessed where they are ill-formed. All that stands
    /// in the text stands in a root without a name, since lists lose their own. The repairs make no
    /// well-formed text of it.
    pub fn read_list(text: &'a str, limits: &DocLimits) -> Result<BuiltDoc<'a>, LimitReached> {
        let units = Units { name: |_| Ok(OUTLINE), is_one: |_| false };
        Self::read_by(|| Builder::of_list(text, limits), text, &units)
    }
}

impl<'a> Builder<'a> {
    fn of_list(text: &'a str, limits: &DocLimits) -> Self {
        let mut builder = Self::new(text, 0, None, limits);
        let end = offset(text.len());
        builder.is_list = true;
        builder.entry_name = Some(OUTLINE);
        builder.doc.nodes.push(DocNode { content_end: end, end, next: 1, ..DocNode::default() });
        builder.open.push(OpenElement::default());
        builder
    }

    /// Reads the markup that begins with the `<` at the byte `start`, and how long it is; `None` for
    /// what is no tag.
    pub(super) fn guess(&mut self, start: usize) -> Option<(usize, Token<'a>)> {
        let text = self.doc.text;
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let name_at = start + 1 + usize::from(rest.get(1) == Some(&b'/'));
        let name = name_of(text, name_at);
        let (end, token) = match rest.get(1).copied() {
            Some(b'!') => return None,
            // Its own end is forgotten now and then.
            Some(b'?') => (start + memchr::memchr(b'>', rest)? + 1, Token::Other),
            _ if !xml::is_name(name) || name.len() > self.limits.name => {
                self.findings.fault(start, "a '<' that begins no tag is taken for itself");
                (start + 1, Token::Other)
            }
            Some(b'/') => {
                let behind = text.as_bytes().get(name_at..).unwrap_or_default();
                let length = memchr::memchr2(b'>', b'<', behind).unwrap_or(behind.len());
                let is_ended = behind.get(length) == Some(&b'>');
                (name_at + length + usize::from(is_ended), Token::End { name })
            }
            _ => {
                let (text, most) = (self.doc.text, self.limits.attributes);
                let mut cursor = TagCursor::new(text, name_at + name.len(), &mut self.written);
                cursor.is_list = true;
                // All that it finds is guessed.
                let is_empty = cursor.attributes(most).unwrap_or(true);
                let (at, guesses) = (cursor.at, cursor.guesses);
                for why in guesses {
                    self.findings.flaw(Flaw::Tags, start, why);
                }
                (at, Token::Start { name, is_empty })
            }
        };
        let span = start..end;
        if matches!(token, Token::Other) {
            self.hole(&span, span.len() == 1);
        }
        Some((span.len(), token))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.') || byte >= 0x80
}

/// The name that stands at a place.
fn name_of(text: &str, at: usize) -> &str {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let length = rest.iter().take_while(|byte| is_name(**byte)).count();
    cut(text, at..at + length)
}

/// Why something that looks like a tag is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// It cannot be read as attributes.
    Unreadable,
    /// There are too many.
    TooMany,
}

/// A start tag that is being read, behind its name.
pub(super) struct TagCursor<'a, 'w> {
    /// The text up to the end of the tag; of a list all of it.
    text: &'a str,
    at: usize,
    /// Whether it is a list's: what is ill-formed is guessed and not refused.
    is_list: bool,
    guesses: Vec<&'static str>,
    written: &'w mut Vec<WrittenAttribute<'a>>,
}

impl<'a, 'w> TagCursor<'a, 'w> {
    pub(super) fn new(
        text: &'a str,
        at: usize,
        written: &'w mut Vec<WrittenAttribute<'a>>,
    ) -> Self {
        written.clear();
        Self { text, at, is_list: false, guesses: Vec::new(), written }
    }

    fn byte(&self) -> Option<u8> {
        self.peek(self.at)
    }

    fn peek(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn bytes(&self, place: Range<usize>) -> &[u8] {
        self.text.as_bytes().get(place).unwrap_or_default()
    }

    fn guess(&mut self, what: &'static str) -> Result<(), Broken> {
        if !self.is_list {
            return Err(Broken::Unreadable);
        }
        if !self.guesses.contains(&what) {
            self.guesses.push(what);
        }
        Ok(())
    }

    fn is_blank(&self, byte: u8) -> bool {
        if self.is_list { is_space(byte) } else { xml::is_space(byte) }
    }

    fn skip_space(&mut self) {
        while self.byte().is_some_and(|byte| self.is_blank(byte)) {
            self.at += 1;
        }
    }

    /// Reads at most so many attributes up to the end of the tag; answers whether that is `/>`.
    pub(super) fn attributes(&mut self, most: usize) -> Result<bool, Broken> {
        loop {
            let before = self.at;
            self.skip_space();
            match self.byte() {
                None if !self.is_list => return Ok(false),
                None => {
                    self.guess("a tag is not ended before the list is")?;
                    return Ok(true);
                }
                Some(b'<') => {
                    self.guess("a tag is not ended before the next begins")?;
                    return Ok(false);
                }
                Some(_) if !self.is_list && self.written.len() >= most => {
                    return Err(Broken::TooMany);
                }
                Some(b'>') if self.is_list => {
                    self.at += 1;
                    return Ok(false);
                }
                Some(b'/') if self.is_list && self.peek(self.at + 1) == Some(b'>') => {
                    self.at += 2;
                    return Ok(true);
                }
                Some(byte) if !is_name(byte) => {
                    self.guess("a character between attributes is passed over")?;
                    self.at += 1;
                }
                Some(_) => self.attribute(most, self.at > before)?,
            }
        }
    }

    fn attribute(&mut self, most: usize, spaced: bool) -> Result<(), Broken> {
        let start = self.at;
        let name = name_of(self.text, start);
        self.at += name.len();
        let (value, form) = self.value()?;
        let raw = cut(self.text, value.clone());
        if raw.contains('<') {
            self.guess("a '<' in a value is not escaped")?;
        }
        let has_stray = form == Form::Bare && raw.contains(['"', '\'']);
        if !self.is_list && (has_stray || !xml::is_name(name)) {
            return Err(Broken::Unreadable);
        }
        if self.is_list && name.len() > NAME_LIMIT {
            self.guess("an attribute with an overlong name is left out")
        } else if self.written.len() >= most {
            self.guess("there are too many attributes, and the last are left out")
        } else {
            self.written.push(WrittenAttribute { name, start, value, form, spaced });
            Ok(())
        }
    }

    /// The place of the value behind a name.
    fn value(&mut self) -> Result<(Range<usize>, Form), Broken> {
        let end = self.at;
        self.skip_space();
        if self.byte() != Some(b'=') {
            // White space in front of what comes next is its own.
            self.at = end;
            return Ok((end..end, Form::Absent));
        }
        self.at += 1;
        self.skip_space();
        let start = self.at;
        match self.byte() {
            Some(quote @ (b'"' | b'\'')) => Ok((self.in_quotes(quote)?, Form::Quoted)),
            None if !self.is_list => Err(Broken::Unreadable),
            _ => {
                let is_part = |byte| !(self.is_blank(byte) || self.is_list && byte == b'>');
                let length = self.bytes(start..self.text.len()).iter();
                self.at += length.take_while(|byte| is_part(**byte)).count();
                let is_ended = self.byte() == Some(b'>') && self.at > start;
                if is_ended && self.peek(self.at - 1) == Some(b'/') {
                    self.at -= 1;
                }
                Ok((start..self.at, Form::Bare))
            }
        }
    }

    /// A value in quotes; of a list one that may hold such quotes itself.
    fn in_quotes(&mut self, quote: u8) -> Result<Range<usize>, Broken> {
        let start = self.at + 1;
        let mut from = start;
        for _ in 0..QUOTES_LIMIT {
            let rest = self.bytes(from..self.text.len());
            let Some(found) = memchr::memchr(quote, rest) else {
                self.guess("a value has no closing quote")?;
                return Ok(self.unclosed(start, self.text.len()));
            };
            let close = from + found;
            // Within markup that is not escaped, quotes are those of its own attributes.
            let is_nested = self.is_list && self.is_in_markup(start, close);
            if self.is_list
                && close > start
                && let Some(name) = self.opens(start, close, is_nested)
            {
                self.guess("a value has no closing quote")?;
                return Ok(self.until_next(start, name));
            }
            if !self.is_list || !is_nested && self.closes(close + 1) {
                self.at = close + 1;
                return Ok(start..close);
            }
            self.guess("a value has quotes in it that are not escaped")?;
            from = close + 1;
        }
        Ok(self.unclosed(start, from))
    }

    /// A value that has no end of its own: it ends with its line or tag, or before the next
    /// attribute.
    fn unclosed(&mut self, start: usize, end: usize) -> Range<usize> {
        let bytes = self.bytes(start..end);
        let stop = memchr::memchr3(b'>', b'<', b'\n', bytes).map_or(end, |n| start + n);
        let is_empty = stop > start && self.bytes(stop - 1..stop + 1) == b"/>";
        self.at = stop - usize::from(is_empty);
        start..self.at
    }

    /// A value in front of the attribute at `name`: it ends there, or with its tag where another
    /// outline begins in between.
    fn until_next(&mut self, start: usize, name: usize) -> Range<usize> {
        let bytes = self.bytes(start..name);
        let next = memchr::memchr_iter(b'<', bytes).find(|at| {
            let rest = bytes.get(at + 1..).unwrap_or_default();
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            rest.get(..OUTLINE.len()).is_some_and(|n| n.eq_ignore_ascii_case(OUTLINE.as_bytes()))
        });
        match next.and_then(|next| memchr::memrchr(b'>', bytes.get(..next).unwrap_or_default())) {
            Some(end) => self.unclosed(start, start + end + 1),
            None => {
                self.at = name;
                start..name
            }
        }
    }

    /// Whether a tag that began between `start` and `at` is open at `at`.
    fn is_in_markup(&self, start: usize, at: usize) -> bool {
        let value = self.bytes(start..at);
        let Some(open) = memchr::memrchr(b'<', value) else { return false };
        let inside = value.get(open + 1..).unwrap_or_default();
        let begins = inside.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/');
        begins && memchr::memchr(b'>', inside).is_none()
    }

    /// Where the name begins, should the quote at `quote` open the value of a common attribute;
    /// within markup, of one that markup does not have.
    fn opens(&self, start: usize, quote: usize, is_nested: bool) -> Option<usize> {
        let low = start.max(quote.saturating_sub(NAME_LIMIT));
        let before = self.bytes(low..quote).trim_ascii_end();
        let before = before.strip_suffix(b"=")?.trim_ascii_end();
        let length = before.iter().rev().take_while(|byte| is_name(**byte)).count();
        let (around, name) = before.split_at_checked(before.len() - length)?;
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        (begins_another(&name, is_nested) && around.last().copied().is_some_and(is_space))
            .then(|| low + around.len())
    }

    /// Whether a value can end in front of `at`: the tag ends there or goes on as tags do.
    fn closes(&self, at: usize) -> bool {
        match self.peek(at) {
            None | Some(b'>' | b'/' | b'<' | b'?') => true,
            Some(byte) if is_space(byte) => true,
            Some(_) => {
                // `a="1"b="2"`: the blank is missing.
                let rest = self.bytes(at..self.text.len().min(at + NAME_LIMIT));
                let length = rest.iter().take_while(|byte| is_name(**byte)).count();
                let behind = rest.get(length..).unwrap_or_default().trim_ascii_start();
                length > 0 && behind.first() == Some(&b'=')
            }
        }
    }
}
