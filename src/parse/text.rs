//! Character data: references, white space, and HTML as plain text.

use super::edits::cut;
use super::html::{Piece, Pieces, REFERENCE_LIMIT, Tags};
use quick_xml::escape::resolve_html5_entity;
use std::borrow::Cow;

/// Whether XML 1.0 allows a character (section 2.2).
pub(super) const fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// What a reference stands for, and how it must be written so that XML knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// XML knows it as it is written.
    Fine(char),
    /// HTML knows it: its text.
    Html(&'static str),
    /// A number of a character that XML forbids.
    Forbidden,
    /// No reference at all: a bare `&` with text behind it.
    Bare,
}

/// Reads the reference `&name;`.
pub(super) fn reference(name: &str) -> Reference {
    if let Some(number) = name.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix('x') {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        if digits.is_empty() || !digits.bytes().all(|b| char::from(b).is_digit(radix)) {
            return Reference::Bare;
        }
        return match u32::from_str_radix(digits, radix).ok().and_then(char::from_u32) {
            Some(c) if allowed(c) => Reference::Fine(c),
            _ => Reference::Forbidden,
        };
    }
    match name {
        "lt" => Reference::Fine('<'),
        "gt" => Reference::Fine('>'),
        "amp" => Reference::Fine('&'),
        "quot" => Reference::Fine('"'),
        "apos" => Reference::Fine('\''),
        _ => named(name).map_or(Reference::Bare, Reference::Html),
    }
}

/// What HTML knows by a name (`&name;`): the one table of the program.
pub fn named(name: &str) -> Option<&'static str> {
    if name.len() > REFERENCE_LIMIT { None } else { resolve_html5_entity(name) }
}

/// A text as references by number, which every XML processor knows.
pub(super) fn numbered(text: &str) -> String {
    text.chars().map(|c| format!("&#{};", u32::from(c))).collect()
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Trims the white space of XML; wider definitions would take away what a publisher wrote.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Trims a borrowed or owned text.
pub(super) fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(trim(text)),
        Cow::Owned(text) if trim(&text).len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(trim(&text).to_owned()),
    }
}

/// Collapses every run of white space to one space and trims the ends.
pub(super) fn collapsed(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = trimmed(text);
    let mut before = b'x';
    let clean = text.bytes().all(|byte| {
        let fine = byte > b' ' || (byte == b' ' && before != b' ');
        before = byte;
        fine
    });
    if clean {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// Whether a text is nothing but white space.
pub(super) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// Writes `&`, `<`, `>` and `"` as references.
pub(super) fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
}

/// The plain text of HTML: tags out, references resolved, white space collapsed. Where `known_only`
/// only the tags of well-known elements are taken out.
pub(super) fn plain(html: &str, known_only: bool) -> String {
    let tags = if known_only { Tags::Known } else { Tags::All };
    let mut out = String::with_capacity(html.len());
    for piece in Pieces::new(html, tags) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Reference(name) => decode_into(&mut out, name),
            Piece::Tag(_) | Piece::Comment => {}
        }
    }
    collapsed(Cow::Owned(out)).into_owned()
}

/// Writes what the reference `&name;` stands for; itself, where it is none.
fn decode_into(out: &mut String, name: &str) {
    match reference(name) {
        Reference::Fine(c) => out.push(c),
        Reference::Html(text) => out.push_str(text),
        Reference::Forbidden => {}
        Reference::Bare => out.extend(["&", name, ";"]),
    }
}

/// The first bytes of a text, at most `limit`, cut between characters.
pub(super) fn shortened(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    cut(text, 0..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapses_and_borrows_where_it_can() {
        assert!(matches!(collapsed(Cow::Borrowed(" a b ")), Cow::Borrowed("a b")));
        assert_eq!(collapsed(Cow::Borrowed("a \n\t b\r\nc")), "a b c");
        assert_eq!(collapsed(Cow::Owned(" \n ".to_owned())), "");
        assert_eq!(collapsed(Cow::Borrowed("a\u{A0}\u{A0}b")), "a\u{A0}\u{A0}b");
    }

    #[test]
    fn references_are_what_xml_and_html_say() {
        assert_eq!(reference("amp"), Reference::Fine('&'));
        assert_eq!(reference("#x41"), Reference::Fine('A'));
        assert_eq!(reference("#65"), Reference::Fine('A'));
        assert_eq!(reference("nbsp"), Reference::Html("\u{A0}"));
        for forbidden in ["#0", "#x1F", "#xD800", "#xFFFF", "#x110000", "#99999999999"] {
            assert_eq!(reference(forbidden), Reference::Forbidden, "{forbidden}");
        }
        for bare in ["", "#", "#x", "#12a", "lol9", " a", "#+5", &"n".repeat(100)] {
            assert_eq!(reference(bare), Reference::Bare, "{bare}");
        }
    }

    #[test]
    fn html_becomes_plain_text() {
        assert_eq!(plain("<b>A</b> &amp; B&nbsp;<br/>C", false), "A & B\u{A0}C");
        assert_eq!(plain("Vec<T> & <em>x</em> &lt;y", true), "Vec<T> & x <y");
        assert_eq!(plain("1 < 2 &unknown; &", false), "1 < 2 &unknown; &");
        assert_eq!(plain("a<!-- no -->b", true), "ab");
        assert_eq!(plain("a<!-- a > b -->b", true), "ab");
    }

    #[test]
    fn shortens_between_characters() {
        assert_eq!(shortened("aé", 2), "a");
        assert_eq!(shortened("aé", 9), "aé");
    }
}
