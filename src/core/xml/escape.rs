//! Text on its way into markup, and back out of it. The only place where values become markup.

use super::reference;
use super::text::{cut, is_char};
use quick_xml::events::Event;
use quick_xml::reader::Reader;
use std::borrow::Cow;

/// Adds `value` as character data. Characters that XML forbids are dropped; a carriage return is
/// written as a reference, because a parser would make a line feed of it.
pub fn push_text(out: &mut String, value: &str) {
    push_with(out, value, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\r' => Some("&#13;"),
        c if is_char(c) => None,
        _ => Some(""),
    });
}

/// Adds `value` as the value of an attribute, the quotes not included. Both kinds of quotes are
/// escaped, because a value may be spliced between those that its publisher wrote. White space
/// other than blanks is written as references, because a parser would normalise it.
pub fn push_value(out: &mut String, value: &str) {
    push_with(out, value, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&apos;"),
        '\t' => Some("&#9;"),
        '\n' => Some("&#10;"),
        '\r' => Some("&#13;"),
        c if is_char(c) => None,
        _ => Some(""),
    });
}

/// Adds ` name="value"`.
pub fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_value(out, value);
    out.push('"');
}

/// Adds an element with text.
pub fn push_element(out: &mut String, name: &str, text: &str) {
    for piece in ["<", name, ">"] {
        out.push_str(piece);
    }
    push_text(out, text);
    for piece in ["</", name, ">"] {
        out.push_str(piece);
    }
}

/// Adds the declaration of a prefix, or of the default namespace where the prefix is empty.
pub fn push_namespace(out: &mut String, prefix: &str, namespace: &str) {
    if prefix.is_empty() {
        push_attribute(out, "xmlns", namespace);
    } else {
        push_attribute(out, &format!("xmlns:{prefix}"), namespace);
    }
}

/// Adds a text in runs: each character for which `written` gives something is replaced by that.
fn push_with(out: &mut String, value: &str, written: impl Fn(char) -> Option<&'static str>) {
    let mut copied = 0;
    for (at, c) in value.char_indices() {
        if let Some(with) = written(c) {
            out.push_str(cut(value, copied..at));
            out.push_str(with);
            copied = at + c.len_utf8();
        }
    }
    out.push_str(cut(value, copied..value.len()));
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
            Ok(Event::GeneralRef(name)) => reference::push(&mut text, &name),
            Ok(Event::Eof) | Err(_) => return Cow::Owned(text),
            Ok(_) => {}
        }
    }
}

/// The value of an attribute as written between its quotes.
pub fn plain_value(raw: &str) -> Cow<'_, str> {
    if raw.contains('&') { plain(raw) } else { Cow::Borrowed(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_values_stay_values() {
        let mut out = String::new();
        push_text(&mut out, "</title><x a=\"1\">&amp;]]>\u{0}\u{B}\u{FFFF}");
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
            push_text(&mut out, &value);
            prop_assert_eq!(plain(&out).into_owned(), value.clone());
            let mut out = String::new();
            push_value(&mut out, &value);
            prop_assert_eq!(plain_value(&out).into_owned(), value);
        }
    }
}
