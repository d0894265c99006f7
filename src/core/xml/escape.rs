//! Text on its way into markup, and back out of it. The only place where values become markup.

use super::doc::{Doc, resolved};
use super::text::{cut, is_char};
use std::borrow::Cow;

/// Adds `value` as character data. Characters that XML forbids are dropped; a carriage return is
/// written as a reference, because a parser would make a line feed of it.
pub fn push_text(out: &mut String, value: &str) {
    push_escaped(out, value, false);
}

/// Adds `value` as the value of an attribute, the quotes not included. Both kinds of quotes are
/// escaped, because a value may be spliced between those that its publisher wrote. White space
/// other than blanks is written as references, because a parser would normalise it.
pub fn push_value(out: &mut String, value: &str) {
    push_escaped(out, value, true);
}

/// Adds a text in runs between the characters that are written otherwise.
fn push_escaped(out: &mut String, value: &str, is_attribute: bool) {
    let mut copied = 0;
    for (at, c) in value.char_indices() {
        let with = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '\r' => "&#13;",
            '"' if is_attribute => "&quot;",
            '\'' if is_attribute => "&apos;",
            '\t' if is_attribute => "&#9;",
            '\n' if is_attribute => "&#10;",
            c if is_char(c) => continue,
            _ => "",
        };
        out.push_str(cut(value, copied..at));
        out.push_str(with);
        copied = at + c.len_utf8();
    }
    out.push_str(cut(value, copied..value.len()));
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

/// Adds an element without content, with those of these attributes that have a value.
pub fn push_empty(out: &mut String, name: &str, attributes: &[(&str, Option<&str>)]) {
    out.push('<');
    out.push_str(name);
    for (name, value) in attributes {
        value.iter().for_each(|value| push_attribute(out, name, value));
    }
    out.push_str("/>");
}

/// Adds the declaration of a prefix, or of the default namespace where the prefix is empty.
pub fn push_namespace(out: &mut String, prefix: &str, namespace: &str) {
    if prefix.is_empty() {
        push_attribute(out, "xmlns", namespace);
    } else {
        push_attribute(out, &format!("xmlns:{prefix}"), namespace);
    }
}

/// The text of a piece of character content: references resolved, CDATA opened, comments left out.
/// Elements inside contribute their text. What cannot be resolved stands as it is.
pub fn plain(content: &str) -> Cow<'_, str> {
    if !content.contains(['&', '<', '\r']) {
        return Cow::Borrowed(content);
    }
    let text = format!("<a>{content}</a>").replace("\r\n", "\n").replace('\r', "\n");
    let doc = Doc::read_plain(&text).ok();
    let root = doc.as_ref().and_then(|built| built.doc.root());
    root.map_or(Cow::Borrowed(content), |root| Cow::Owned(root.all_text()))
}

/// The value of an attribute as written between its quotes.
pub fn plain_value(raw: &str) -> Cow<'_, str> {
    if raw.contains('&') && raw.contains('\r') {
        let lines = raw.replace("\r\n", "\n").replace('\r', "\n");
        return Cow::Owned(resolved(&lines).into_owned());
    }
    resolved(raw)
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
        let marked = "a &amp; b<![CDATA[ <c> &d; ]]>&#65;&#x42;<!-- no -->";
        assert_eq!(plain(marked), "a & b <c> &d; AB");
        assert_eq!(plain("&nosuch; & alone"), "&nosuch; & alone");
        assert!(matches!(plain("urn:x"), Cow::Borrowed("urn:x")));
    }

    #[test]
    fn a_value_has_one_line_end_where_two_characters_stand() {
        assert_eq!(plain_value("a&amp;\r\nb\rc&#13;"), "a&\nb\nc\r");
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
