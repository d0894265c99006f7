//! The attributes of tags in HTML (section 13.2.5.32 to 13.2.5.40), and what their values stand for.

use crate::xml::reference;
use crate::xml::text::cut;
use std::borrow::Cow;
use std::ops::Range;

/// References by name that HTML reads without their semicolon, as far as addresses have them.
const UNENDED: [&str; 4] = ["amp", "gt", "lt", "quot"];

/// An attribute with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtmlAttribute<'a> {
    /// Its name, in any spelling.
    pub name: &'a str,
    /// Where its value stands in the tag, without quotes.
    pub value: Range<usize>,
    /// The quote around it.
    pub quote: Option<char>,
}

/// The name of a tag that is given without its `<` and `>`; empty for an end tag.
pub fn tag_name(tag: &str) -> &str {
    let length = tag.find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
    cut(tag, 0..length.unwrap_or(tag.len()))
}

/// The value of the first attribute with a name, its references resolved.
pub fn attribute<'a>(tag: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let found = attributes(tag).find(|attribute| attribute.name.eq_ignore_ascii_case(name))?;
    Some(decoded_value(cut(tag, found.value)))
}

/// The attributes with a value of a tag that is given without its `<` and `>`. Each byte is looked at
/// a few times.
pub fn attributes(tag: &str) -> impl Iterator<Item = HtmlAttribute<'_>> {
    attributes_from(tag, tag_name(tag).len())
}

/// The same from the byte `at` on.
pub fn attributes_from(tag: &str, at: usize) -> impl Iterator<Item = HtmlAttribute<'_>> {
    let mut cursor = AttributeCursor { tag, at };
    std::iter::from_fn(move || cursor.next())
}

struct AttributeCursor<'a> {
    tag: &'a str,
    at: usize,
}

impl<'a> AttributeCursor<'a> {
    fn rest(&self) -> &'a str {
        cut(self.tag, self.at..self.tag.len())
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_skipped).len();
    }

    fn next(&mut self) -> Option<HtmlAttribute<'a>> {
        loop {
            self.skip(|c| c.is_ascii_whitespace() || c == '/');
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with('>') {
                return None;
            }
            // A '=' where a name begins is part of that name.
            let name = rest
                .char_indices()
                .find(|(at, c)| {
                    c.is_ascii_whitespace() || matches!(c, '/' | '>') || (*c == '=' && *at > 0)
                })
                .map_or(rest, |(at, _)| cut(rest, 0..at));
            self.at += name.len();
            self.skip(|c| c.is_ascii_whitespace());
            if !self.rest().starts_with('=') {
                continue;
            }
            self.at += 1;
            self.skip(|c| c.is_ascii_whitespace());
            let quote = self.rest().chars().next().filter(|c| matches!(c, '"' | '\''));
            self.at += usize::from(quote.is_some());
            let rest = self.rest();
            let length = match quote {
                Some(quote) => rest.find(quote),
                None => rest.find(|c: char| c.is_ascii_whitespace() || c == '>'),
            };
            let value = self.at..self.at + length.unwrap_or(rest.len());
            self.at = value.end + usize::from(quote.is_some() && length.is_some());
            return Some(HtmlAttribute { name, value, quote });
        }
    }
}

/// The value of an attribute with its references to characters resolved (section 13.2.5.72). What is
/// none stands as it is.
pub fn decoded_value(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        rest = behind;
        match character(behind) {
            Some((text, length)) => {
                out.push_str(&text);
                rest = cut(behind, length..behind.len());
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What stands for the reference behind whose `&` this text begins, and how long the reference is.
fn character(text: &str) -> Option<(Cow<'static, str>, usize)> {
    let run = |from: usize, is_part: fn(&u8) -> bool| {
        let bytes = text.as_bytes().get(from..).unwrap_or_default();
        let length = bytes.iter().take(reference::REFERENCE_LIMIT).take_while(|b| is_part(b));
        from + length.count()
    };
    let end = match text.as_bytes() {
        [b'#', b'x' | b'X', ..] => run(2, u8::is_ascii_hexdigit),
        [b'#', ..] => run(1, u8::is_ascii_digit),
        _ => run(0, u8::is_ascii_alphanumeric),
    };
    let name = cut(text, 0..end);
    let next = text.as_bytes().get(end);
    let is_ended = next == Some(&b';');
    let is_one = is_ended
        || name.starts_with('#')
        || UNENDED.contains(&name) && next.is_none_or(|byte| *byte != b'=');
    let found = reference::html(name).filter(|_| is_one)?;
    Some((found, end + usize::from(is_ended)))
}

/// Writes a value, escaped, between the quotes that stand there, or between new ones.
pub fn push_quoted(out: &mut String, quote: Option<char>, value: &str) {
    let end = quote.unwrap_or('"');
    if quote.is_none() {
        out.push(end);
    }
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' if end == '"' => out.push_str("&quot;"),
            '\'' if end == '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    if quote.is_none() {
        out.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_html_reads_them() {
        let read = |tag| -> Vec<(&str, &str)> {
            attributes(tag).map(|found| (found.name, cut(tag, found.value))).collect()
        };
        let expected = [("b", "1"), ("c", "2>"), ("D", "3/4"), ("f", "/g/"), ("=h", "5")];
        assert_eq!(read("a b = '1' c=\"2>\"D=3/4 e f=/g/ =h=5"), expected);
        assert_eq!(read("img/src='c'/"), [("src", "c")]);
        assert_eq!(read("a href=\"b"), [("href", "b")]);
        for none in ["", "a", "a b", "/a", "a >b=c", "a b="] {
            assert!(read(none).iter().all(|(_, value)| value.is_empty()), "{none}");
        }
        assert_eq!(attribute("a data-href='1' HREF=2&amp;3", "href").as_deref(), Some("2&3"));
        assert_eq!(attribute("a title='href=1'", "href"), None);
    }

    #[test]
    fn references_to_characters_are_read_as_html_reads_them() {
        for (written, read) in [
            ("a&amp;b&lt;&#65;&#x42;&#X43&#68", "a&b<ABCD"),
            ("?a&amp=1&ampb&amp", "?a&amp=1&ampb&"),
            ("&nosuch; &; & &# &#x; &#0; &copy", "&nosuch; &; & &# &#x; \u{FFFD} &copy"),
            ("&#99999999999999999999999\u{e9}&", "\u{FFFD}\u{e9}&"),
        ] {
            assert_eq!(decoded_value(written), read, "{written}");
        }
    }
}
