//! Tags as people write them: attributes without quotes, twice, with bare `&`, `<` and quotes in
//! their values, and tags that do not end.
//!
//! Every byte is looked at a bounded number of times, whatever the text is.

use std::ops::Range;
use tidegate_core::xml;
use tidegate_core::xml::cut;
use tidegate_core::xml::reference::{self, Reference};

/// What is said of a tag in which the text ends.
pub(super) const TORN: &str = "a tag is not ended before the list is";

/// The longest name of an element or attribute, in bytes; also how far behind a quote it is looked
/// whether the next attribute begins there.
const NAME_LIMIT: usize = 64;

/// The most quotes inside one value; one with more has no end that can be told.
const QUOTES_LIMIT: usize = 32;

/// Attributes in front of whose opening quote another value cannot go on.
const COMMON: [&str; 10] = [
    "text",
    "title",
    "xmlurl",
    "htmlurl",
    "url",
    "type",
    "description",
    "version",
    "language",
    "category",
];

/// A piece of markup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TagMarkup<'a> {
    /// A start tag; `empty` where it ends in `/>`.
    Start { name: &'a str, attributes: Vec<(&'a str, String)>, empty: bool },
    /// An end tag.
    End { name: &'a str },
    /// A comment, declaration, instruction or CDATA section.
    Other,
    /// A `<` that begins nothing.
    Stray,
    /// Something that does not end before the text does.
    Endless,
}

/// A tag read: what it is, where it ends, and what was guessed.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) markup: TagMarkup<'a>,
    pub(super) end: usize,
    pub(super) guesses: Vec<&'static str>,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.') || byte >= 0x80
}

/// What was looked for up to the end of the text and not found, so that it is looked for once.
pub(super) type Missing = std::collections::BTreeSet<&'static str>;

/// The bytes up to and with `end`.
fn until(rest: &str, end: &'static str, missing: &mut Missing) -> Option<usize> {
    if missing.contains(end) {
        return None;
    }
    let found = memchr::memmem::find(rest.as_bytes(), end.as_bytes()).map(|n| n + end.len());
    if found.is_none() {
        missing.insert(end);
    }
    found
}

/// Reads the markup that begins with the `<` at `at`.
pub(super) fn read<'a>(
    text: &'a str,
    at: usize,
    limits: (usize, usize),
    missing: &mut Missing,
) -> Read<'a> {
    let rest = cut(text, at..text.len());
    let other = |length: Option<usize>| match length {
        Some(length) => Read { markup: TagMarkup::Other, end: at + length, guesses: Vec::new() },
        None => Read { markup: TagMarkup::Endless, end: text.len(), guesses: Vec::new() },
    };
    if rest.starts_with("<!--") {
        return other(until(rest, "-->", missing));
    }
    if rest.starts_with("<![CDATA[") {
        return other(until(rest, "]]>", missing));
    }
    if rest.starts_with("<?") || rest.starts_with("<!") {
        return other(declaration(rest, missing));
    }
    let mut cursor = TagCursor { text, at: at + 1, guesses: Vec::new() };
    let is_end = cursor.byte() == Some(b'/');
    if is_end {
        cursor.at += 1;
    }
    let name = cursor.name();
    if name.is_empty() {
        return Read { markup: TagMarkup::Stray, end: at + 1, guesses: Vec::new() };
    }
    if is_end {
        while cursor.byte().is_some_and(|byte| byte != b'>' && byte != b'<') {
            cursor.at += 1;
        }
        if cursor.byte() == Some(b'>') {
            cursor.at += 1;
        }
        return Read { markup: TagMarkup::End { name }, end: cursor.at, guesses: cursor.guesses };
    }
    let (attributes, empty) = cursor.attributes(limits);
    let markup = TagMarkup::Start { name, attributes, empty };
    Read { markup, end: cursor.at, guesses: cursor.guesses }
}

/// The bytes of an instruction or a declaration; of a DTD with its own markup inside.
fn declaration(rest: &str, missing: &mut Missing) -> Option<usize> {
    let close = until(rest, ">", missing)?;
    let inner = rest.as_bytes().get(..close).unwrap_or_default();
    if rest.starts_with("<!") && memchr::memchr(b'[', inner).is_some() {
        return until(rest, "]>", missing);
    }
    Some(close)
}

/// Those of them that HTML does not have.
const OWN: [&str; 5] = ["text", "xmlurl", "htmlurl", "description", "version"];

/// The element that begins another outline.
const OUTLINE: &[u8] = b"outline";

struct TagCursor<'a> {
    text: &'a str,
    at: usize,
    guesses: Vec<&'static str>,
}

impl<'a> TagCursor<'a> {
    fn byte(&self) -> Option<u8> {
        self.peek(self.at)
    }

    fn peek(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn guess(&mut self, what: &'static str) {
        if !self.guesses.contains(&what) {
            self.guesses.push(what);
        }
    }

    fn skip_space(&mut self) {
        while self.byte().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn name(&mut self) -> &'a str {
        let start = self.at;
        while self.byte().is_some_and(is_name) {
            self.at += 1;
        }
        cut(self.text, start..self.at)
    }

    /// The attributes up to the end of the tag, and whether that is `/>`.
    fn attributes(&mut self, (most, longest): (usize, usize)) -> (Vec<(&'a str, String)>, bool) {
        let mut found: Vec<(&'a str, String)> = Vec::new();
        loop {
            self.skip_space();
            match self.byte() {
                None => {
                    self.guess(TORN);
                    return (found, true);
                }
                Some(b'>') => {
                    self.at += 1;
                    return (found, false);
                }
                Some(b'/') if self.peek(self.at + 1) == Some(b'>') => {
                    self.at += 2;
                    return (found, true);
                }
                Some(b'<') => {
                    self.guess("a tag is not ended before the next begins");
                    return (found, false);
                }
                Some(byte) if !is_name(byte) => {
                    self.guess("a character between attributes is passed over");
                    self.at += 1;
                }
                Some(_) => {
                    let name = self.name();
                    let value = self.value();
                    if name.len() > NAME_LIMIT {
                        self.guess("an attribute with an overlong name is left out");
                    } else if found.len() >= most {
                        self.guess("there are too many attributes, and the last are left out");
                    } else if found.iter().any(|(known, had)| *known == name && !had.is_empty()) {
                        self.guess("an attribute stands there twice, and the first one counts");
                    } else {
                        let value = self.resolved(value, longest);
                        found.retain(|(known, _)| *known != name);
                        found.push((name, value));
                    }
                }
            }
        }
    }

    /// The place of the value behind a name.
    fn value(&mut self) -> Range<usize> {
        self.skip_space();
        if self.byte() != Some(b'=') {
            self.guess("an attribute has no value");
            return self.at..self.at;
        }
        self.at += 1;
        self.skip_space();
        match self.byte() {
            Some(quote @ (b'"' | b'\'')) => self.in_quotes(quote),
            _ => {
                self.guess("a value has no quotes");
                let start = self.at;
                while self.byte().is_some_and(|byte| !is_space(byte) && byte != b'>') {
                    self.at += 1;
                }
                let slash = self.byte() == Some(b'>') && self.at > start;
                if slash && self.peek(self.at - 1) == Some(b'/') {
                    self.at -= 1;
                }
                start..self.at
            }
        }
    }

    /// A value in quotes, which may hold such quotes itself.
    fn in_quotes(&mut self, quote: u8) -> Range<usize> {
        let start = self.at + 1;
        let mut from = start;
        for _ in 0..QUOTES_LIMIT {
            let rest = self.text.as_bytes().get(from..).unwrap_or_default();
            let Some(found) = memchr::memchr(quote, rest) else {
                self.guess("a value has no closing quote");
                return self.unclosed(start, self.text.len());
            };
            let close = from + found;
            // Within markup that is not escaped, quotes are those of its own attributes.
            let nested = self.in_markup(start, close);
            if close > start
                && let Some(name) = self.opens(start, close, nested)
            {
                self.guess("a value has no closing quote");
                return self.until_next(start, name);
            }
            if !nested && self.closes(close + 1) {
                self.at = close + 1;
                return start..close;
            }
            self.guess("a value has quotes in it that are not escaped");
            from = close + 1;
        }
        self.unclosed(start, from)
    }

    /// A value that has no end of its own: it ends with its line or tag, or before the next
    /// attribute.
    fn unclosed(&mut self, start: usize, end: usize) -> Range<usize> {
        let bytes = self.text.as_bytes().get(start..end).unwrap_or_default();
        let stop = memchr::memchr3(b'>', b'<', b'\n', bytes).map_or(end, |n| start + n);
        let mut close = stop;
        if self.peek(stop) == Some(b'>') && stop > start && self.peek(stop - 1) == Some(b'/') {
            close -= 1;
        }
        self.at = close;
        start..close
    }

    /// A value in front of the attribute at `name`: it ends there, or with its tag where another
    /// outline begins in between.
    fn until_next(&mut self, start: usize, name: usize) -> Range<usize> {
        let bytes = self.text.as_bytes().get(start..name).unwrap_or_default();
        let next = memchr::memchr_iter(b'<', bytes).find(|at| {
            let rest = bytes.get(at + 1..).unwrap_or_default();
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            rest.get(..OUTLINE.len()).is_some_and(|name| name.eq_ignore_ascii_case(OUTLINE))
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
    fn in_markup(&self, start: usize, at: usize) -> bool {
        let value = self.text.as_bytes().get(start..at).unwrap_or_default();
        let Some(open) = memchr::memrchr(b'<', value) else { return false };
        let inside = value.get(open + 1..).unwrap_or_default();
        let begins = inside.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/');
        begins && memchr::memchr(b'>', inside).is_none()
    }

    /// Where the name begins, should the quote at `quote` open the value of a common attribute; within
    /// markup, of one that markup does not have.
    fn opens(&self, start: usize, quote: usize, nested: bool) -> Option<usize> {
        let low = start.max(quote.saturating_sub(NAME_LIMIT));
        let before = self.text.as_bytes().get(low..quote)?.trim_ascii_end();
        let before = before.strip_suffix(b"=")?.trim_ascii_end();
        let length = before.iter().rev().take_while(|byte| is_name(**byte)).count();
        let (around, name) = before.split_at_checked(before.len() - length)?;
        let names: &[&str] = if nested { &OWN } else { &COMMON };
        let known = names.iter().any(|common| common.as_bytes().eq_ignore_ascii_case(name));
        (known && around.last().copied().is_some_and(is_space)).then(|| low + around.len())
    }

    /// Whether a value can end in front of `at`: the tag ends there or goes on as tags do.
    fn closes(&self, at: usize) -> bool {
        match self.peek(at) {
            None | Some(b'>' | b'/' | b'<' | b'?') => true,
            Some(byte) if is_space(byte) => true,
            Some(_) => {
                // `a="1"b="2"`: the blank is missing.
                let rest = self.text.as_bytes().get(at..).unwrap_or_default();
                let rest = rest.get(..NAME_LIMIT).unwrap_or(rest);
                let length = rest.iter().take_while(|byte| is_name(**byte)).count();
                let behind = rest.get(length..).unwrap_or_default().trim_ascii_start();
                length > 0 && behind.first() == Some(&b'=')
            }
        }
    }

    /// A value with its references resolved; white space is blanks (XML 1.0 section 3.3.3).
    fn resolved(&mut self, place: Range<usize>, longest: usize) -> String {
        let mut written = cut(self.text, place);
        if written.len() > longest {
            self.guess("a value is too long, and its end is left out");
            written = xml::shortened(written, longest);
        }
        if written.contains('<') {
            self.guess("a '<' in a value is not escaped");
        }
        let mut out = String::with_capacity(written.len());
        let mut rest = written;
        while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
            out.push_str(cut(rest, 0..at));
            let behind = cut(rest, at + 1..rest.len());
            let window = xml::shortened(behind, NAME_LIMIT);
            let end = window.find(';');
            let meaning =
                end.map_or(Reference::Bare, |end| reference::reference(cut(window, 0..end)));
            let used = match meaning {
                Reference::Fine(c) => {
                    out.push(c);
                    end
                }
                Reference::Html(known) => {
                    self.guess("a reference is one that only HTML knows");
                    out.push_str(known);
                    end
                }
                Reference::Forbidden => {
                    self.guess("a reference is to a character that XML forbids");
                    end
                }
                Reference::Bare => {
                    self.guess("a '&' is not escaped");
                    out.push('&');
                    None
                }
            };
            rest = cut(behind, used.map_or(0, |end| end + 1)..behind.len());
        }
        out.push_str(rest);
        out.retain(xml::is_char);
        if out.contains(['\t', '\n', '\r']) {
            out = out.replace(['\t', '\n', '\r'], " ");
        }
        out
    }
}
