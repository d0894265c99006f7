//! Text for people whose references all name their scheme, known without reading it as HTML.
//!
//! Most text is such, and reading HTML is most of what looking for references costs. Where this is not sure,
//! it says no, and the text is read.

use super::HTML_ATTRIBUTES;
use memchr::{memchr, memchr_iter, memmem};
use tidegate_core::xml::cut;
use tidegate_core::xml::reference::{Reference, reference};

/// What every absolute address begins with that is looked for here.
const SCHEMES: [&str; 2] = ["https://", "http://"];
/// What a value may stand in: quotes as they are, and as XML writes them in text.
const QUOTES: [&str; 6] = ["\"", "'", "&quot;", "&#34;", "&#39;", "&apos;"];

/// Where the element whose content begins at `start` ends, if it has text alone, and none of that leads
/// to a relative address or a fragment.
pub(super) fn end_of_plain_content(xml: &str, start: usize) -> Option<usize> {
    let rest = xml.get(start..)?;
    let tag = memchr(b'<', rest.as_bytes())?;
    let (text, behind) = rest.split_at_checked(tag)?;
    if behind.starts_with("</") {
        return (is_plain(text) && has_only_absolute(text)).then_some(start + tag);
    }
    let inside = behind.strip_prefix("<![CDATA[").filter(|_| text.trim().is_empty())?;
    let (inside, behind) = inside.split_at_checked(memmem::find(inside.as_bytes(), b"]]>")?)?;
    let behind = behind.strip_prefix("]]>")?.trim_start();
    (behind.starts_with("</") && has_only_absolute(inside)).then_some(xml.len() - behind.len())
}

/// Whether each reference to a character in a text of XML stands for one that is no part of a name and
/// no `=`.
fn is_plain(text: &str) -> bool {
    memchr_iter(b'&', text.as_bytes()).all(|at| {
        let name = text.get(at + 1..).and_then(|rest| rest.split_once(';'));
        name.is_some_and(|(name, _)| match reference(name) {
            Reference::Fine(c) => !c.is_ascii() || matches!(c, '<' | '>' | '&' | '"' | '\''),
            _ => false,
        })
    })
}

/// Whether all that could be an attribute with a reference is one with an absolute address.
fn has_only_absolute(text: &str) -> bool {
    memchr_iter(b'=', text.as_bytes()).all(|at| {
        let name = cut(text, 0..at).trim_end();
        let is_reference = HTML_ATTRIBUTES.iter().any(|attribute| ends_with(name, attribute));
        if !is_reference {
            return true;
        }
        let value = cut(text, at + 1..text.len()).trim_start();
        let value = QUOTES.iter().find_map(|quote| value.strip_prefix(quote)).unwrap_or(value);
        SCHEMES.iter().any(|scheme| value.starts_with(scheme))
    })
}

fn ends_with(text: &str, end: &str) -> bool {
    let from = text.len().checked_sub(end.len());
    let tail = from.and_then(|from| text.as_bytes().get(from..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end.as_bytes()))
}
