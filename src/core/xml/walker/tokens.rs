//! From text to tokens, and what tokens without structure mean.

use super::{LimitReached, Pending, Token, Walker, unescape};
use crate::model::Flaw;
use crate::xml;
use crate::xml::cut;
use crate::xml::is_name;
use crate::xml::reference::{self, Reference};
use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::Event;
use std::borrow::Cow;
use std::ops::Range;

/// The declaration of every document after decoding.
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";

/// A reader from the byte `start` on; structure is checked by the walk, not by the reader.
pub(super) fn reader(text: &str, start: usize) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(cut(text, start..text.len()));
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    reader
}

/// Whether each end tag, from the byte `start` up to where the root closes, closes what opened last.
pub(super) fn is_balanced(text: &str, start: usize) -> bool {
    let mut reader = reader(text, start);
    let config = reader.config_mut();
    config.allow_unmatched_ends = false;
    config.check_end_names = true;
    let mut open = 0_usize;
    // Each turn reads a token.
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => open += 1,
            Ok(Event::End(_)) if open > 1 => open -= 1,
            Ok(Event::End(_)) => return true,
            Ok(Event::Empty(_)) if open == 0 => return true,
            Ok(Event::Eof)
            | Err(Error::IllFormed(
                IllFormedError::MismatchedEndTag { .. } | IllFormedError::UnmatchedEndTag(_),
            )) => return false,
            // What else is ill-formed is no tag; the walk takes it out.
            Ok(_) | Err(Error::IllFormed(_)) => {}
            Err(_) => return false,
        }
    }
}

/// Where characters stand that XML forbids.
pub(super) fn forbidden(text: &str) -> Vec<usize> {
    let suspect = |byte: u8| byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let bytes = text.as_bytes();
    // Folding a whole block without a branch is what makes this scan cheap.
    let any = bytes.chunks(4096).any(|block| block.iter().fold(false, |any, b| any | suspect(*b)))
        || memchr::memmem::find(bytes, b"\xEF\xBF\xBE").is_some()
        || memchr::memmem::find(bytes, b"\xEF\xBF\xBF").is_some();
    if !any {
        return Vec::new();
    }
    text.char_indices().filter(|(_, c)| !xml::is_char(*c)).map(|(at, _)| at).collect()
}

impl<'a> Walker<'a> {
    /// Reads on at the byte `at`.
    pub(super) fn restart(&mut self, at: usize) {
        let mut at = at;
        // The reader would take this character away without counting it.
        while cut(self.text, at..self.text.len()).starts_with('\u{FEFF}') {
            at += '\u{FEFF}'.len_utf8();
        }
        self.reader = reader(self.text, at);
        self.offset = at;
        self.pending = None;
    }

    fn position(&self) -> usize {
        let read = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        self.offset.saturating_add(read).min(self.text.len())
    }

    /// Reads all text up to the next tag, where it is plain.
    pub(super) fn joined_text(&mut self) -> Option<Cow<'a, str>> {
        if !self.joins_text || self.open.is_empty() || !self.forbidden.is_empty() {
            return None;
        }
        let start = self.position();
        let end = unescape::end_of_text(self.text.as_bytes(), start).filter(|end| *end > start)?;
        self.restart(end);
        Some(unescape::unescaped(cut(self.text, start..end)))
    }

    /// Reads a token.
    pub(super) fn read(&mut self) -> Result<Pending<'a>, LimitReached> {
        let start = self.position();
        let event = self.reader.read_event();
        let span = start..self.position();
        let first = !std::mem::replace(&mut self.seen, true);
        let token = match event {
            Ok(Event::Start(_)) => Token::Start { name: self.start_name(&span, 1), empty: false },
            Ok(Event::Empty(_)) => Token::Start { name: self.start_name(&span, 2), empty: true },
            Ok(Event::End(_)) => Token::End { name: self.end_name(&span)? },
            Ok(Event::Text(_)) => Token::Text,
            Ok(Event::GeneralRef(_)) => Token::Reference,
            Ok(Event::CData(_)) => Token::CData,
            Ok(Event::Eof) => Token::Eof,
            Ok(Event::Comment(_)) => {
                let inner = cut(self.text, span.start + 4..span.end.saturating_sub(3));
                if inner.contains("--") || inner.ends_with('-') {
                    self.flaw(Flaw::Tags, span.start, "a comment with '--' in it is taken out");
                    self.edit(span.clone(), "")?;
                }
                Token::Other
            }
            Ok(Event::PI(instruction)) => {
                let target = instruction.target();
                if !is_name(target) || target.eq_ignore_ascii_case("xml") {
                    self.flaw(
                        Flaw::Tags,
                        span.start,
                        "a processing instruction without a name is taken out",
                    );
                    self.edit(span.clone(), "")?;
                }
                Token::Other
            }
            Ok(Event::Decl(_)) if first => {
                self.edit(span.clone(), DECLARATION)?;
                Token::Other
            }
            Ok(Event::Decl(_)) => {
                self.flaw(
                    Flaw::Around,
                    span.start,
                    "an XML declaration that is not at the start is taken out",
                );
                self.edit(span.clone(), "")?;
                Token::Other
            }
            Ok(Event::DocType(_)) | Err(Error::IllFormed(_)) => {
                self.edit(span.clone(), "")?;
                Token::Other
            }
            Err(_) => {
                return Ok(Pending { span: start..self.text.len(), token: Token::Unreadable });
            }
        };
        Ok(Pending { span, token })
    }

    /// The name of a tag whose end takes `end` bytes.
    fn start_name(&self, span: &Range<usize>, end: usize) -> &'a str {
        let tag = cut(self.text, span.start + 1..span.end.saturating_sub(end));
        // A name that is longer than it may be need not be known whole.
        let tag = xml::shortened(tag, self.limits.name.saturating_add(1));
        tag.split([' ', '\t', '\n', '\r']).next().unwrap_or_default()
    }

    fn end_name(&mut self, span: &Range<usize>) -> Result<&'a str, LimitReached> {
        let inside = span.start + 2..span.end.saturating_sub(1);
        let tag = cut(self.text, inside.clone());
        let name = xml::trim(tag).split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
        // Blanks may stand behind the name and nothing else (XML 1.0, production 42).
        let is_more = tag.strip_prefix(name).is_none_or(|rest| !xml::is_blank(rest));
        if is_more && is_name(name) {
            self.flaw(Flaw::Tags, span.start, "an end tag with more than its name loses the rest");
            self.edit(inside, name.to_owned())?;
        }
        Ok(name)
    }

    /// Character data as it stands; `None` where it means nothing.
    pub(super) fn characters(
        &mut self,
        span: Range<usize>,
    ) -> Result<Option<Cow<'a, str>>, LimitReached> {
        let text = cut(self.text, span.clone());
        if self.open.is_empty() {
            if !xml::is_blank(text) {
                self.flaw(
                    Flaw::Around,
                    span.start,
                    "text outside of the document's element is taken out",
                );
                self.edit(span, "")?;
            }
            return Ok(None);
        }
        if text.starts_with('&') {
            self.flaw(Flaw::References, span.start, "a bare '&' is taken for itself");
            self.edit(span.start..span.start + 1, "&amp;")?;
        }
        if text.contains("]]>") {
            for (at, _) in text.match_indices("]]>") {
                self.flaw(Flaw::Tags, span.start + at, "a stray ']]>' is taken for itself");
                self.edit(span.start + at + 2..span.start + at + 3, "&gt;")?;
            }
        }
        Ok(Some(self.cleaned(&span)))
    }

    /// A reference, `&` and `;` included.
    pub(super) fn reference(
        &mut self,
        span: &Range<usize>,
    ) -> Result<Option<Cow<'a, str>>, LimitReached> {
        if self.open.is_empty() {
            self.edit(span.clone(), "")?;
            return Ok(None);
        }
        let meaning =
            reference::reference(cut(self.text, span.start + 1..span.end.saturating_sub(1)));
        self.mend(span, &meaning)?;
        Ok(Some(match meaning {
            Reference::Fine('<') => Cow::Borrowed("<"),
            Reference::Fine('>') => Cow::Borrowed(">"),
            Reference::Fine('&') => Cow::Borrowed("&"),
            Reference::Fine('"') => Cow::Borrowed("\""),
            Reference::Fine('\'') => Cow::Borrowed("'"),
            Reference::Fine(c) => Cow::Owned(c.to_string()),
            Reference::Html(text) => Cow::Borrowed(text),
            Reference::Forbidden => return Ok(None),
            Reference::Bare => self.cleaned(span),
        }))
    }

    /// Writes a reference so that XML knows it.
    pub(super) fn mend(
        &mut self,
        span: &Range<usize>,
        meaning: &Reference,
    ) -> Result<(), LimitReached> {
        match meaning {
            Reference::Fine(_) => Ok(()),
            Reference::Html(text) => {
                self.flaw(
                    Flaw::References,
                    span.start,
                    "a reference that only HTML knows is written as a number",
                );
                self.edit(span.clone(), reference::numbered(text))
            }
            Reference::Forbidden => {
                self.flaw(
                    Flaw::References,
                    span.start,
                    "a reference to a character that XML forbids is dropped",
                );
                self.edit(span.clone(), "")
            }
            Reference::Bare => {
                self.flaw(Flaw::References, span.start, "a bare '&' is taken for itself");
                self.edit(span.start..span.start + 1, "&amp;")
            }
        }
    }

    /// The content of a CDATA section.
    pub(super) fn cdata(
        &mut self,
        span: &Range<usize>,
    ) -> Result<Option<Cow<'a, str>>, LimitReached> {
        if self.open.is_empty() {
            self.edit(span.clone(), "")?;
            return Ok(None);
        }
        Ok(Some(self.cleaned(&(span.start + 9..span.end.saturating_sub(3)))))
    }

    /// A piece of the text without the characters that XML forbids.
    pub(super) fn cleaned(&mut self, span: &Range<usize>) -> Cow<'a, str> {
        let text = cut(self.text, span.clone());
        let next = self.forbidden.partition_point(|at| *at < span.start);
        match self.forbidden.get(next) {
            Some(at) if *at < span.end => {
                let at = *at;
                self.flaw(Flaw::Characters, at, "a character that XML forbids is dropped");
                Cow::Owned(text.chars().filter(|c| xml::is_char(*c)).collect())
            }
            _ => Cow::Borrowed(text),
        }
    }
}
