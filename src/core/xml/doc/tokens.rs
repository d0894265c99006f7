//! From text to tokens.

use super::build::Builder;
use super::repair::DECLARATION;
use crate::model::Flaw;
use crate::xml::{self, cut, is_name};
use quick_xml::Reader;
use quick_xml::errors::Error;
use quick_xml::events::Event;
use std::io::BufRead;
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
        let mut at = at;
        // The reader would take this character away without counting it.
        while cut(self.doc.text, at..self.doc.text.len()).starts_with('\u{FEFF}') {
            at += '\u{FEFF}'.len_utf8();
        }
        self.reader = reader(self.doc.text, at);
        self.begin = at;
        self.pending = None;
    }

    fn position(&self) -> usize {
        let read = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        self.begin.saturating_add(read).min(self.doc.text.len())
    }

    /// Goes behind so many bytes.
    pub(super) fn consume(&mut self, length: usize) {
        self.reader.stream().consume(length);
        self.is_begun = true;
    }

    /// Reads a token. Text goes up to the next `<`.
    pub(super) fn read(&mut self) -> Pending<'a> {
        let (text, start) = (self.doc.text, self.position());
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let length = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        if length > 0 {
            self.consume(length);
            return Pending { span: start..start + length, token: Token::Text };
        }
        if self.is_list
            && !rest.is_empty()
            && let Some(pending) = self.guess(start)
        {
            return pending;
        }
        // The reader would look at each `>` in a section, and whether all of it is UTF-8.
        if let Some(inside) = rest.strip_prefix(b"<![CDATA[")
            && let Some(length) = memchr::memmem::find(inside, b"]]>")
        {
            let length = rest.len() - inside.len() + length + "]]>".len();
            self.consume(length);
            return Pending { span: start..start + length, token: Token::CData };
        }
        let event = self.reader.read_event();
        let span = start..self.position();
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let token = match event {
            Ok(Event::Start(_)) => Token::Start { name: self.name(&span, 1), is_empty: false },
            Ok(Event::Empty(_)) => Token::Start { name: self.name(&span, 2), is_empty: true },
            Ok(Event::End(_)) => Token::End { name: self.end_name(&span) },
            Ok(Event::Eof) => Token::Eof,
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
            // Text and sections were read already.
            Ok(Event::Text(_) | Event::GeneralRef(_) | Event::CData(_)) | Err(_) => {
                return Pending { span: start..text.len(), token: Token::Unreadable };
            }
        };
        Pending { span, token }
    }

    /// The name of a tag whose end takes `end` bytes.
    fn name(&self, span: &Range<usize>, end: usize) -> &'a str {
        let tag = cut(self.doc.text, span.start + 1..span.end.saturating_sub(end));
        // A name that is longer than it may be need not be known whole.
        let tag = xml::shortened(tag, self.limits.name.saturating_add(1));
        let length = tag.bytes().position(xml::is_space).unwrap_or(tag.len());
        cut(tag, 0..length)
    }

    /// The name of an end tag.
    fn end_name(&self, span: &Range<usize>) -> &'a str {
        let tag = cut(self.doc.text, span.start + 2..span.end.saturating_sub(1));
        let length = tag.bytes().position(xml::is_space).unwrap_or(tag.len());
        if length > 0 {
            return cut(tag, 0..length);
        }
        xml::trim(tag).split([' ', '\t', '\n', '\r']).next().unwrap_or_default()
    }
}

/// A reader from the byte `start` on; structure is checked by the builder, not by the reader.
pub(super) fn reader(text: &str, start: usize) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(cut(text, start..text.len()));
    let config = reader.config_mut();
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    reader
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
