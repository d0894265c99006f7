//! References to characters and entities (XML 1.0 section 4.1; HTML section 13.2.5.72).

use super::text::is_char;
use htmlize::ENTITIES;
use std::borrow::Cow;

/// The longest name of a reference, in bytes; HTML's longest has 31, and numbers may have zeros in
/// front.
pub const REFERENCE_LIMIT: usize = 40;

/// What a reference stands for, and how it must be written so that XML knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
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
pub fn reference(name: &str) -> Reference {
    if let Some(number) = name.strip_prefix('#') {
        return match number_of(number, &['x']) {
            None => Reference::Bare,
            Some(number) => match number.and_then(char::from_u32) {
                Some(c) if is_char(c) => Reference::Fine(c),
                _ => Reference::Forbidden,
            },
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
    if name.len() > REFERENCE_LIMIT {
        return None;
    }
    std::str::from_utf8(ENTITIES.get(format!("&{name};").as_bytes())?).ok()
}

/// A text as references by number, which every XML processor knows.
pub fn numbered(text: &str) -> String {
    text.chars().map(|c| format!("&#{};", u32::from(c))).collect()
}

/// What HTML reads in `&name;`: unlike XML, every number is a character (section 13.2.5.80).
pub fn html(name: &str) -> Option<Cow<'static, str>> {
    let Some(number) = name.strip_prefix('#') else { return named(name).map(Cow::Borrowed) };
    let number = number_of(number, &['x', 'X'])?.unwrap_or(0);
    // Among the control characters are those of windows-1252.
    let written = format!("&#{number};");
    Some(Cow::Owned(htmlize::unescape(written).into_owned()))
}

/// The number behind the `#` of a reference: `None` where none is written, `Some(None)` where it is
/// too large. `hex`: what begins one to the base of 16.
fn number_of(written: &str, hex: &[char]) -> Option<Option<u32>> {
    let (digits, radix) = match written.strip_prefix(hex) {
        Some(digits) => (digits, 16),
        None => (written, 10),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|b| char::from(b).is_digit(radix));
    is_number.then(|| u32::from_str_radix(digits, radix).ok())
}

impl Reference {
    /// Adds what it stands for; nothing where it is none.
    pub fn push(&self, out: &mut String) {
        match self {
            Self::Fine(c) => out.push(*c),
            Self::Html(text) => out.push_str(text),
            Self::Forbidden | Self::Bare => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_what_xml_and_html_say() {
        assert_eq!(reference("amp"), Reference::Fine('&'));
        assert_eq!(reference("#x41"), Reference::Fine('A'));
        assert_eq!(reference("#65"), Reference::Fine('A'));
        for (name, text) in [("nbsp", "\u{A0}"), ("zcaron", "ž"), ("acE", "∾\u{333}")] {
            assert_eq!(reference(name), Reference::Html(text));
        }
        for forbidden in ["#0", "#x1F", "#xD800", "#xFFFF", "#x110000", "#99999999999"] {
            assert_eq!(reference(forbidden), Reference::Forbidden, "{forbidden}");
        }
        for bare in ["", "#", "#x", "#12a", "lol9", " a", "#+5", &"n".repeat(100)] {
            assert_eq!(reference(bare), Reference::Bare, "{bare}");
        }
    }

    #[test]
    fn html_reads_every_number() {
        for (name, text) in
            [("#65", "A"), ("#x42", "B"), ("#X43", "C"), ("#0", "\u{FFFD}"), ("nbsp", "\u{A0}")]
        {
            assert_eq!(html(name).as_deref(), Some(text), "{name}");
        }
        assert_eq!(html("#99999999999").as_deref(), Some("\u{FFFD}"));
        for none in ["", "#", "#x", "#+5", "lol9"] {
            assert_eq!(html(none), None, "{none}");
        }
    }
}
