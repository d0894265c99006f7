//! From text to tokens.

use super::build::Builder;
use super::repair::DECLARATION;
use crate::model::Flaw;
use crate::xml::{self, cut, is_name};
use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::events::Event;
use std::ops::Range;

/// A token with its place.
#[derive(Debug, Clone)]
pub(super) struct Pending<'a> {
    pub(super) span: Range<usize>,
    pub(super) token: Token<'a>,
}

/// What stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'a> {
    Start {
        name: &'a str,
        is_empty: bool,
    },
    End {
        name: &'a str,
    },
    Text,
    CData,
    Other,
    /// Something that begins here and has no end.
    Unreadable,
    /// Nothing more.
    Eof,
}

impl<'a> Builder<'a> {
    /// Reads on at the byte `at`.
    pub(super) fn restart(&mut self, at: usize) {
        self.at = at;
        self.pending = None;
    }

    /// Reads a token. Text goes up to the next `<`.
    pub(super) fn read(&mut self) -> Pending<'a> {
        let (text, start) = (self.doc.text, self.at);
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let is_markup = rest.starts_with(b"<");
        let length = match is_markup {
            true => 0,
            false => memchr::memchr(b'<', rest).unwrap_or(rest.len()),
        };
        let guessed = if is_markup && self.is_list { self.guess(start) } else { None };
        let (length, token) = match (guessed, rest.get(1)) {
            (Some(guessed), _) => guessed,
            _ if rest.is_empty() => (0, Token::Eof),
            _ if length > 0 => (length, Token::Text),
            (_, Some(b'!' | b'?')) => self.read_other(start, rest, is_first),
            // Where they end is all that must be known here of tags, which most tokens are.
            (_, second) => match tag_end(rest) {
                None => (rest.len(), Token::Unreadable),
                Some(end) if second == Some(&b'/') => {
                    (end + 1, Token::End { name: self.end_name(start..start + end) })
                }
                Some(end) => {
                    let is_empty = rest.get(end - 1) == Some(&b'/');
                    let name = self.name(start..start + end - usize::from(is_empty));
                    (end + 1, Token::Start { name, is_empty })
                }
            },
        };
        self.at = start + length;
        Pending { span: start..self.at, token }
    }

    /// Reads a token that is neither text nor a tag; how long it is.
    fn read_other(&mut self, start: usize, rest: &[u8], is_first: bool) -> (usize, Token<'a>) {
        let text = self.doc.text;
        // quick-xml would look at each `>` in a section, and whether all of it is UTF-8.
        if let Some(inside) = rest.strip_prefix(b"<![CDATA[")
            && let Some(length) = memchr::memmem::find(inside, b"]]>")
        {
            return (rest.len() - inside.len() + length + "]]>".len(), Token::CData);
        }
        let mut reader = Reader::from_str(cut(text, start..text.len()));
        let event = reader.read_event();
        let length = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let span = start..start.saturating_add(length).min(text.len());
        let token = match event {
            Ok(Event::Comment(_)) => {
                let inner = cut(text, span.start + 4..span.end.saturating_sub(3));
                if inner.contains("--") || inner.ends_with('-') {
                    self.remove_flaw(Flaw::Tags, &span, "a comment with '--' in it is taken out");
                }
                Token::Other
            }
            Ok(Event::PI(instruction)) => {
                let target = instruction.target();
                if !is_name(target) || target.eq_ignore_ascii_case("xml") {
                    let why = "a processing instruction without a name is taken out";
                    self.remove_flaw(Flaw::Tags, &span, why);
                } else {
                    self.hole(&span, false);
                }
                Token::Other
            }
            Ok(Event::Decl(_)) if is_first => {
                self.replace(span.clone(), DECLARATION);
                Token::Other
            }
            Ok(Event::Decl(_)) => {
                let why = "an XML declaration that is not at the start is taken out";
                self.remove_flaw(Flaw::Around, &span, why);
                Token::Other
            }
            Ok(Event::DocType(_)) if self.open.len() > usize::from(self.is_list) => {
                let why = "a DOCTYPE inside of an element is taken out";
                self.remove_flaw(Flaw::Tags, &span, why);
                Token::Other
            }
            Ok(Event::DocType(_)) => {
                self.remove(span.clone());
                Token::Other
            }
            Err(Error::IllFormed(_)) => {
                self.remove_around(&span);
                Token::Other
            }
            // It is nothing else that begins here.
            Ok(_) | Err(_) => return (rest.len(), Token::Unreadable),
        };
        (span.len(), token)
    }

    /// The name in a start tag, of which this is the place up to its `>` or `/>`.
    fn name(&self, span: Range<usize>) -> &'a str {
        let tag = cut(self.doc.text, span.start + 1..span.end);
        // A name that is longer than it may be need not be known whole.
        let tag = xml::shortened(tag, self.limits.name.saturating_add(1));
        let length = tag.bytes().position(xml::is_space).unwrap_or(tag.len());
        cut(tag, 0..length)
    }

    /// The name in an end tag, of which this is the place up to its `>`.
    fn end_name(&self, span: Range<usize>) -> &'a str {
        let tag = cut(self.doc.text, span.start + 2..span.end);
        let length = tag.bytes().position(xml::is_space).unwrap_or(tag.len());
        if length > 0 {
            return cut(tag, 0..length);
        }
        xml::trim(tag).split([' ', '\t', '\n', '\r']).next().unwrap_or_default()
    }
}

/// Where the `>` is that ends the tag which a text begins with: one outside of quotes.
fn tag_end(text: &[u8]) -> Option<usize> {
    let mut quote = None;
    memchr::memchr3_iter(b'>', b'"', b'\'', text).find(|at| {
        let byte = text.get(*at);
        match quote {
            None if byte == Some(&b'>') => return true,
            None => quote = byte,
            Some(_) if quote == byte => quote = None,
            Some(_) => {}
        }
        false
    })
}

/// Whether characters stand in a text that XML forbids.
pub(super) fn has_forbidden(text: &str) -> bool {
    let suspect = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let bytes = text.as_bytes();
    // Folding a whole block without a branch is what makes this scan cheap.
    bytes.chunks(4096).any(|block| block.iter().fold(false, |any, b| any | suspect(*b)))
        || memchr::memmem::find(bytes, b"\xEF\xBF\xBE").is_some()
        || memchr::memmem::find(bytes, b"\xEF\xBF\xBF").is_some()
}
