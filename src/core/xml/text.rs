//! Characters, names and white space (XML 1.0 sections 2.2 and 2.3), and slices that cannot fail.

use std::borrow::Cow;
use std::ops::Range;

/// Whether XML 1.0 allows a character (section 2.2, production 2).
pub const fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// Whether a byte is white space of XML (section 2.3, production 3).
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Trims the white space of XML; wider definitions would take away what a publisher wrote.
pub fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Trims a borrowed or owned text.
pub fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(trim(text)),
        Cow::Owned(text) if trim(&text).len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(trim(&text).to_owned()),
    }
}

/// Collapses every run of white space to one space and trims the ends.
pub fn collapsed(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = trimmed(text);
    let pairs = text.bytes().zip(text.bytes().skip(1));
    if !pairs.into_iter().any(|(one, next)| is_space(one) && (one != b' ' || next == b' ')) {
        return text;
    }
    let mut collapsed = String::with_capacity(text.len());
    let ends = text.bytes().enumerate().filter(|(_, byte)| is_space(*byte)).map(|(at, _)| at);
    let mut begin = 0;
    for end in ends.chain([text.len()]) {
        if end > begin {
            if begin > 0 {
                collapsed.push(' ');
            }
            collapsed.push_str(cut(&text, begin..end));
        }
        begin = end + 1;
    }
    Cow::Owned(collapsed)
}

/// Where a start tag of this name seems to begin in a text, at `from` or later.
pub fn find_tag(text: &str, from: usize, name: &str) -> Option<usize> {
    let (bytes, wanted) = (text.as_bytes(), format!("<{name}"));
    let found = memchr::memmem::find_iter(bytes.get(from..)?, wanted.as_bytes());
    let is_end = |at: usize| bytes.get(at).is_some_and(|byte| is_space(*byte) || *byte == b'>');
    found.map(|at| at + from).find(|at| is_end(at + wanted.len()))
}

/// Whether a text is nothing but white space.
pub fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// Whether a text says as much as this in units: a letter or digit is one, a character that stands for a syllable or a
/// word (CJK, kana, hangul) is two.
pub fn has_units(text: &str, least: usize) -> bool {
    let mut found = 0;
    least == 0
        || units_of(text).any(|units| {
            found += units;
            found >= least
        })
}

fn units_of(text: &str) -> impl Iterator<Item = usize> {
    /// Where the scripts begin of which a character is a syllable or a word.
    const SYLLABLES: char = '\u{2E80}';
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.map(|c| if c >= SYLLABLES { 2 } else { 1 })
}

/// The first bytes of a text, at most `limit`, cut between characters.
pub fn shortened(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    cut(text, 0..end)
}

/// A slice that cannot fail: empty where the range does not fit.
pub fn cut(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default()
}

/// The namespace declaration that an attribute name makes, if it is one: the prefix.
pub fn declared_prefix(name: &str) -> Option<&str> {
    match name.strip_prefix("xmlns") {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix(':'),
        None => None,
    }
}

/// A spelled name as prefix and local name (Namespaces in XML 1.0 section 4); the prefix is empty
/// where there is none.
pub fn split_name(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

/// Whether a spelled name may stand in XML with namespaces: at most one colon, with something on
/// both sides, and no character that names exclude.
pub fn is_name(name: &str) -> bool {
    fn part(part: &str) -> bool {
        // Not every one of them begins a name (`NameStartChar`).
        let behind =
            |c: char| matches!(c, '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}');
        let start = |c: char| {
            c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && fits(c) && !behind(c))
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        if part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.bytes().all(plain) {
            return true;
        }
        part.starts_with(start)
            && part.chars().all(|c| {
                c.is_ascii_alphanumeric()
                    || matches!(c, '-' | '.' | '_')
                    || (!c.is_ascii() && fits(c))
            })
    }
    // XML 1.0 section 2.3, the ranges beyond ASCII.
    fn fits(c: char) -> bool {
        matches!(c, '\u{B7}' | '\u{C0}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'
            | '\u{200D}' | '\u{203F}' | '\u{2040}' | '\u{2070}'..='\u{218F}'
            | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}'
            | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
            && !matches!(c, '\u{D7}' | '\u{F7}')
    }
    match name.split_once(':') {
        None => part(name),
        Some((prefix, local)) => part(prefix) && part(local),
    }
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
    fn units_are_letters_and_syllables() {
        for (text, found) in [("", 0), ("a-1 é", 3), ("日本 x", 5)] {
            assert_eq!(units_of(text).sum::<usize>(), found, "{text}");
            for least in 0..8 {
                assert_eq!(has_units(text, least), found >= least, "{text} {least}");
            }
        }
    }

    #[test]
    fn shortens_between_characters() {
        assert_eq!(shortened("aé", 2), "a");
        assert_eq!(shortened("aé", 9), "aé");
    }

    #[test]
    fn names_are_told_from_text() {
        for good in ["a", "a:b", "_x-1.2", "élan", "dc:creator"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ":", "a:", ":a", "a:b:c", "3", "-a", "a b", "foo@bar", "a\u{1}", "×"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
