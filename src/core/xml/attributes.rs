//! The attributes of one tag, found by their places so that they can be repaired in place.

use super::text::{cut, is_name, is_space};
use std::ops::Range;

/// An attribute as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAttribute<'a> {
    /// Its spelled name.
    pub name: &'a str,
    /// Where the name begins; byte offset into the document.
    pub start: usize,
    /// The place of its value, without quotes.
    pub value: Range<usize>,
    /// How the value is written.
    pub form: Form,
    /// Whether white space stands before it, as it must.
    pub spaced: bool,
}

/// How the value of an attribute is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// In quotes.
    Quoted,
    /// Without quotes, as HTML allows.
    Bare,
    /// Not at all, as HTML allows.
    Absent,
}

/// Why something that looks like a tag is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It cannot be read as attributes.
    Unreadable,
    /// There are too many.
    TooMany,
}

/// Finds the attributes in `text[range]`, which is a tag without its name and its ends.
pub fn lex<'a>(
    text: &'a str,
    range: Range<usize>,
    limit: usize,
    out: &mut Vec<WrittenAttribute<'a>>,
) -> Result<(), Broken> {
    out.clear();
    let bytes = text.as_bytes();
    let byte = |at: usize| if at < range.end { bytes.get(at).copied() } else { None };
    let skip = |mut at: usize| {
        while byte(at).is_some_and(is_space) {
            at += 1;
        }
        at
    };
    let mut at = range.start;
    loop {
        let start = skip(at);
        let spaced = start > at;
        let Some(first) = byte(start) else { return Ok(()) };
        if first == b'<' {
            return Err(Broken::Unreadable);
        }
        if out.len() >= limit {
            return Err(Broken::TooMany);
        }
        let mut end = start;
        while byte(end).is_some_and(|b| !is_space(b) && b != b'=') {
            end += 1;
        }
        let name = cut(text, start..end);
        if !is_name(name) {
            return Err(Broken::Unreadable);
        }
        let equals = skip(end);
        if byte(equals) != Some(b'=') {
            out.push(WrittenAttribute { name, start, value: end..end, form: Form::Absent, spaced });
            at = end;
            continue;
        }
        let open = skip(equals + 1);
        let (value, form, next) = match byte(open) {
            Some(quote @ (b'"' | b'\'')) => {
                let rest = bytes.get(open + 1..range.end).unwrap_or_default();
                let length = memchr::memchr(quote, rest).ok_or(Broken::Unreadable)?;
                let close = open + 1 + length;
                (open + 1..close, Form::Quoted, close + 1)
            }
            Some(_) => {
                let mut close = open;
                while byte(close).is_some_and(|b| !is_space(b)) {
                    close += 1;
                }
                (open..close, Form::Bare, close)
            }
            None => return Err(Broken::Unreadable),
        };
        let raw = bytes.get(value.clone()).unwrap_or_default();
        let stray = form == Form::Bare && memchr::memchr2(b'"', b'\'', raw).is_some();
        if stray || memchr::memchr(b'<', raw).is_some() {
            return Err(Broken::Unreadable);
        }
        out.push(WrittenAttribute { name, start, value, form, spaced });
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tag: &str) -> Result<Vec<(&str, &str, Form, bool)>, Broken> {
        let mut out = Vec::new();
        lex(tag, 0..tag.len(), 4, &mut out)?;
        Ok(out.into_iter().map(|w| (w.name, cut(tag, w.value.clone()), w.form, w.spaced)).collect())
    }

    #[test]
    fn reads_xml_and_what_html_makes_of_it() {
        use Form::{Absent, Bare, Quoted};
        assert_eq!(
            read(" a = \"1\" b='2>\"'\n"),
            Ok(vec![("a", "1", Quoted, true), ("b", "2>\"", Quoted, true)])
        );
        assert_eq!(
            read(" a=\"1\"b=2"),
            Ok(vec![("a", "1", Quoted, true), ("b", "2", Bare, false)])
        );
        assert_eq!(read(" a b=''"), Ok(vec![("a", "", Absent, true), ("b", "", Quoted, true)]));
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn tells_what_is_no_tag() {
        for bad in [" 3", " a=\"1", " a=\"<b\"", " =a", " a=b\"c", " a=", " ,"] {
            assert_eq!(read(bad), Err(Broken::Unreadable), "{bad}");
        }
        assert_eq!(read(" a b c d e"), Err(Broken::TooMany));
    }
}
