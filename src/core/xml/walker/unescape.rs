//! Character data in which every reference is one that XML knows: where it ends, and what it means.

use crate::xml::reference::{Reference, reference};
use std::borrow::Cow;

/// The longest reference to a character, `&` and `;` included, that is looked for; longer ones are left to
/// the walk.
const NUMBER_LIMIT: usize = 12;

/// Where the text that begins at `at` ends with a `<`. `None` where it has no end, or something in it is no
/// text of XML.
pub(super) fn end_of_text(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        let rest = bytes.get(at..)?;
        let found = memchr::memchr3(b'<', b'&', b']', rest)?;
        let rest = rest.get(found..)?;
        match rest.first()? {
            b'<' => return Some(at + found),
            b'&' => at += found + known(rest)?.1,
            _ if rest.starts_with(b"]]>") => return None,
            _ => at += found + 1,
        }
    }
}

/// Whether every reference in the value of an attribute is one that XML knows.
pub(super) fn is_text(value: &[u8]) -> bool {
    let mut at = 0;
    while let Some(rest) = value.get(at..) {
        let Some(found) = memchr::memchr(b'&', rest) else { return true };
        let Some((_, length)) = rest.get(found..).and_then(known) else { return false };
        at += found + length;
    }
    true
}

/// What a text means in which every reference is known.
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let (before, mut rest) = text.split_at_checked(first).unwrap_or_default();
    out.push_str(before);
    // Each turn goes behind one more reference.
    while let Some((c, length)) = known(rest.as_bytes()) {
        out.push(c);
        let behind = rest.get(length..).unwrap_or_default();
        let next = memchr::memchr(b'&', behind.as_bytes()).unwrap_or(behind.len());
        let (before, others) = behind.split_at_checked(next).unwrap_or_default();
        out.push_str(before);
        rest = others;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The reference that a text begins with, and how long it is.
fn known(text: &[u8]) -> Option<(char, usize)> {
    let named = match *text.get(1)? {
        b'l' => (b"&lt;".as_slice(), '<'),
        b'g' => (b"&gt;".as_slice(), '>'),
        b'q' => (b"&quot;".as_slice(), '"'),
        b'a' if text.get(2) == Some(&b'm') => (b"&amp;".as_slice(), '&'),
        b'a' => (b"&apos;".as_slice(), '\''),
        _ => {
            let window = text.get(..NUMBER_LIMIT).unwrap_or(text);
            let end = memchr::memchr(b';', window)?;
            let name = std::str::from_utf8(window.get(1..end)?).ok()?;
            return match reference(name) {
                Reference::Fine(c) => Some((c, end + 1)),
                Reference::Html(_) | Reference::Forbidden | Reference::Bare => None,
            };
        }
    };
    text.starts_with(named.0).then_some((named.1, named.0.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_up_to_a_tag() {
        for (text, end) in [
            ("<a", Some(0)),
            ("a &lt; &#65;&#x42; ] ]] <", Some(24)),
            ("a", None),
            ("a & b<", None),
            ("a &nbsp;<", None),
            ("a &#0;<", None),
            ("a ]]><", None),
            ("&<", None),
            ("&amp<", None),
        ] {
            assert_eq!(end_of_text(text.as_bytes(), 0), end, "{text}");
        }
    }

    #[test]
    fn references_stand_for_characters() {
        assert_eq!(unescaped("a &lt;&gt;&amp;&quot;&apos;&#xe9; b&#33;"), "a <>&\"'é b!");
        assert!(matches!(unescaped("a b"), Cow::Borrowed("a b")));
        assert!(is_text(b"a &amp; b") && is_text(b"") && !is_text(b"a & b") && !is_text(b"&"));
    }
}
