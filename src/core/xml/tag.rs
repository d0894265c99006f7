//! The attributes of one start tag, read where they stand. Enough for a tag that a parser has
//! accepted; of anything else it gives nothing or too little, never a panic.

use super::cut;
use super::html::{self, HtmlAttribute};
use std::borrow::Cow;
use std::ops::Range;

/// An attribute as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagAttribute<'a> {
    /// The name with its prefix.
    pub name: &'a str,
    /// The value between its quotes, references not resolved.
    pub value: &'a str,
    /// Where the value stands in the text that was scanned.
    pub range: Range<usize>,
}

/// Reads the attributes in `text`, which begins directly behind an element's name, up to the end of
/// the tag or of the text.
pub fn attributes(text: &str) -> impl Iterator<Item = TagAttribute<'_>> {
    let is_whole = move |a: &HtmlAttribute<'_>| a.quote.is_some() && a.value.end < text.len();
    html::attributes_from(text, 0).filter(is_whole).map(|HtmlAttribute { name, value, .. }| {
        TagAttribute { name, value: cut(text, value.clone()), range: value }
    })
}

/// The attribute with this name, where `text` has it.
pub fn find<'a>(text: &'a str, name: &str) -> Option<TagAttribute<'a>> {
    attributes(text).find(|attribute| attribute.name == name)
}

/// The namespace that the attributes in `text` bind a prefix to.
pub fn declared<'a>(text: &'a str, prefix: &str) -> Option<Cow<'a, str>> {
    let own = attributes(text).find(|own| super::declared_prefix(own.name) == Some(prefix));
    own.map(|own| super::plain_value(own.value))
}

/// The name of the element whose name ends where `before` ends: `a:entry` of `… <a:entry`.
pub fn name_before(before: &str) -> &str {
    before.rsplit_once('<').map_or("", |(_, name)| name)
}

/// The prefix of a name with its colon, or nothing.
pub fn prefix_of(name: &str) -> &str {
    name.find(':').and_then(|colon| name.get(..=colon)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_written() {
        let text = " a='1 > \"2\"'\n\txml:base = \"/x\" xmlns=\"\"/>b=\"3\"";
        let all: Vec<_> = attributes(text).map(|a| (a.name, a.value)).collect();
        assert_eq!(all, [("a", "1 > \"2\""), ("xml:base", "/x"), ("xmlns", "")]);
        let base = find(text, "xml:base").unwrap();
        assert_eq!(text.get(base.range), Some("/x"));
        assert_eq!(find(text, "b"), None);
    }

    #[test]
    fn names_have_prefixes_or_none() {
        assert_eq!(name_before("<?xml?><!-- < --><a:feed"), "a:feed");
        assert_eq!(prefix_of("a:feed"), "a:");
        assert_eq!(prefix_of("feed"), "");
    }
}
