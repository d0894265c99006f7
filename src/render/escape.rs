//! Text on its way into XML. The only place where values become markup.

use quick_xml::events::Event;
use quick_xml::reader::Reader;
use std::borrow::Cow;

/// Whether XML 1.0 allows a character (section 2.2, production 2).
const fn allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Adds `value` as character data. Characters that XML forbids are dropped; a carriage return is
/// written as a reference, because a parser would make a line feed of it.
pub fn text(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#13;"),
            c if allowed(c) => out.push(c),
            _ => {}
        }
    }
}

/// Adds `value` as the value of an attribute, the quotes not included. Both kinds of quotes are
/// escaped, because a value may be spliced between those that its publisher wrote. White space
/// other than blanks is written as references, because a parser would normalise it.
pub fn attribute(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            c if allowed(c) => out.push(c),
            _ => {}
        }
    }
}

/// Adds ` name="value"`.
pub fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    attribute(out, value);
    out.push('"');
}

/// The text of a piece of character content: references resolved, CDATA opened, comments left out.
/// Elements inside contribute their text. What cannot be resolved stands as it is.
pub fn plain(content: &str) -> Cow<'_, str> {
    if !content.contains(['&', '<', '\r']) {
        return Cow::Borrowed(content);
    }
    let mut reader = Reader::from_str(content);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    reader.config_mut().allow_dangling_amp = true;
    let mut text = String::with_capacity(content.len());
    loop {
        match reader.read_event() {
            Ok(Event::Text(piece)) => text.push_str(&piece.xml10_content()),
            Ok(Event::CData(piece)) => text.push_str(&piece.xml10_content()),
            Ok(Event::GeneralRef(name)) => reference(&mut text, &name),
            Ok(Event::Eof) | Err(_) => return Cow::Owned(text),
            Ok(_) => {}
        }
    }
}

/// The value of an attribute as written between its quotes.
pub fn plain_value(raw: &str) -> Cow<'_, str> {
    if raw.contains('&') { plain(raw) } else { Cow::Borrowed(raw) }
}

/// Adds what the reference `name` (without `&` and `;`) stands for.
pub fn reference(out: &mut String, name: &str) {
    let number = match name.strip_prefix("#x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => name.strip_prefix('#').and_then(|digits| digits.parse().ok()),
    };
    match (name, number.and_then(char::from_u32)) {
        ("amp", _) => out.push('&'),
        ("lt", _) => out.push('<'),
        ("gt", _) => out.push('>'),
        ("quot", _) => out.push('"'),
        ("apos", _) => out.push('\''),
        (_, Some(c)) => out.push(c),
        _ => match crate::parse::named_reference(name) {
            Some(text) => out.push_str(text),
            None => {
                out.push('&');
                out.push_str(name);
                out.push(';');
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_values_stay_values() {
        let mut out = String::new();
        text(&mut out, "</title><x a=\"1\">&amp;]]>\u{0}\u{B}\u{FFFF}");
        assert_eq!(out, "&lt;/title&gt;&lt;x a=\"1\"&gt;&amp;amp;]]&gt;");
        let mut out = String::new();
        push_attribute(&mut out, "href", "\"/><x>\n\t\r&'\u{1}");
        assert_eq!(out, " href=\"&quot;/&gt;&lt;x&gt;&#10;&#9;&#13;&amp;&apos;\"");
    }

    #[test]
    fn plain_text_opens_what_markup_hides() {
        assert_eq!(
            plain("a &amp; b<![CDATA[ <c> &d; ]]>&#65;&#x42;<!-- no -->"),
            "a & b <c> &d; AB"
        );
        assert_eq!(plain("&nosuch; & alone"), "&nosuch; & alone");
        assert!(matches!(plain("urn:x"), Cow::Borrowed("urn:x")));
    }

    proptest! {
        #[test]
        fn what_is_escaped_reads_back(value in "\\PC*") {
            let mut out = String::new();
            text(&mut out, &value);
            prop_assert_eq!(plain(&out).into_owned(), value.clone());
            let mut out = String::new();
            attribute(&mut out, &value);
            prop_assert_eq!(plain_value(&out).into_owned(), value);
        }
    }
}
