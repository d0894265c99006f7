//! Character data and the values of attributes: what they mean.

use super::{Doc, index};
use crate::xml::reference::{self, Reference, reference};
use crate::xml::{cut, is_char};
use std::borrow::Cow;
use std::ops::Range;

impl<'a> Doc<'a> {
    /// The piece of character data that a span begins with, and where it ends. One that is `joined`
    /// goes up to the next `<`.
    pub(super) fn piece(&self, span: Range<usize>, joined: bool) -> (Cow<'a, str>, usize) {
        let text = cut(self.text, span.clone());
        let bytes = text.as_bytes();
        if bytes.first() == Some(&b'<') {
            return self.markup(span, text);
        }
        let end = match memchr::memchr2(b'<', b'&', bytes) {
            _ if joined => memchr::memchr(b'<', bytes).unwrap_or(bytes.len()),
            Some(0) => {
                let rest = bytes.get(1..).unwrap_or_default();
                let found =
                    memchr::memchr3(b';', b'&', b'<', rest).map_or(bytes.len(), |at| at + 1);
                found + usize::from(bytes.get(found) == Some(&b';'))
            }
            found => found.unwrap_or(bytes.len()),
        };
        (self.allowed(resolved(cut(text, 0..end))), span.start + end)
    }

    /// What stands at the beginning of a span that begins with a `<` and is no element.
    fn markup(&self, span: Range<usize>, text: &'a str) -> (Cow<'a, str>, usize) {
        if let Ok(found) = self.holes.binary_search_by_key(&span.start, |hole| index(hole.start))
            && let Some(hole) = self.holes.get(found)
        {
            return (Cow::Borrowed(if hole.is_text { "<" } else { "" }), index(hole.end));
        }
        let section = |before: &str, behind: &str| {
            let inside = text.strip_prefix(before)?;
            let end = memchr::memmem::find(inside.as_bytes(), behind.as_bytes())?;
            Some((cut(inside, 0..end), span.start + before.len() + end + behind.len()))
        };
        if let Some((inside, end)) = section("<![CDATA[", "]]>") {
            return (self.allowed(Cow::Borrowed(inside)), end);
        }
        let end = section("<!--", "-->").map_or(span.end, |(_, end)| end);
        (Cow::Borrowed(""), end)
    }

    /// Adds the character data in a span, in which no element stands.
    pub(super) fn push_text(&self, text: &mut Cow<'a, str>, span: Range<usize>) {
        let mut at = span.start;
        // Each turn goes behind a piece.
        while at < span.end {
            let (piece, end) = self.piece(at..span.end, true);
            if text.is_empty() {
                *text = piece;
            } else if !piece.is_empty() {
                text.to_mut().push_str(&piece);
            }
            at = end;
        }
    }

    /// A text without the characters that XML forbids.
    fn allowed<'c>(&self, text: Cow<'c, str>) -> Cow<'c, str> {
        if !self.has_forbidden || text.chars().all(is_char) {
            return text;
        }
        Cow::Owned(text.chars().filter(|c| is_char(*c)).collect())
    }

    /// The value of an attribute that stands in a place: white space as spaces, references
    /// resolved. A line end that is written as a reference stays one (XML 1.0 section 3.3.3).
    pub(super) fn value(&self, place: Range<usize>) -> Cow<'a, str> {
        let written = cut(self.text, place);
        if written.contains(['\t', '\n', '\r']) {
            let spaced = written.replace(['\t', '\n', '\r'], " ");
            return Cow::Owned(self.allowed(resolved(&spaced)).into_owned());
        }
        self.allowed(resolved(written))
    }
}

/// A text with its references resolved; what is none stands as it is.
pub fn resolved(text: &str) -> Cow<'_, str> {
    let Some(mut at) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(cut(text, 0..at));
    // Each turn goes behind one more reference.
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match spelled(rest).map(|name| (name, reference(name))) {
            None | Some((_, Reference::Bare)) => {
                out.push('&');
                1
            }
            Some((name, _)) => {
                reference::push(&mut out, name);
                name.len() + 2
            }
        };
        let behind = at + length;
        let tail = text.as_bytes().get(behind..).unwrap_or_default();
        at = memchr::memchr(b'&', tail).map_or(text.len(), |next| behind + next);
        out.push_str(cut(text, behind..at));
    }
    Cow::Owned(out)
}

/// The name of the reference that a text begins with, where it has an end.
pub(super) fn spelled(text: &str) -> Option<&str> {
    let rest = text.get(1..)?;
    let end = memchr::memchr3(b';', b'&', b'<', rest.as_bytes())?;
    (rest.as_bytes().get(end) == Some(&b';')).then(|| cut(rest, 0..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_what_is_none_stays() {
        for (text, meaning) in [
            ("a &lt; &#65;&#x42;&apos;&quot;&gt;&amp;", "a < AB'\">&"),
            ("a & b &nosuch; &amp", "a & b &nosuch; &amp"),
            ("&nbsp;&#0;x&", "\u{A0}x&"),
            ("&&amp;;", "&&;"),
        ] {
            assert_eq!(resolved(text), meaning, "{text}");
        }
        assert!(matches!(resolved("urn:x"), Cow::Borrowed("urn:x")));
    }
}
