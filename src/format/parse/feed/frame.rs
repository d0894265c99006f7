//! What stands around the items of a whole document, for who puts other items into it.

use super::{is_container, is_entry};
use crate::parse::ParseError;
use crate::parse::dialect::{FeedDialect, no_feed};
use crate::parse::sync_markup::is_sync;
use std::ops::Range;
use tidegate_core::model::{Context, Format};
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml::doc::{BuiltDoc, Doc, DocElement};
use tidegate_core::xml::edits::Edit;

/// What stands around the items of a feed, or of a collection as plain XML.
#[derive(Debug)]
pub struct FeedFrame {
    /// Its items: the place of each, and the dialect of its `sx:sync`, where it has one.
    pub items: Vec<(Range<usize>, Option<Dialect>)>,
    /// The content of the element that they stand in; at its end where it is an empty-element tag.
    pub content: Range<usize>,
    /// The name of that element, where it is an empty-element tag.
    pub empty_tag: Option<String>,
    /// Whether it is a collection.
    pub is_collection: bool,
    /// The dialect of the first item that has one; where none has, one that the document declares.
    pub dialect: Option<Dialect>,
    /// The namespace of its own elements.
    pub namespace: String,
    /// What is in scope where the items stand.
    pub context: Context,
    /// What makes the document well-formed, where it is not.
    pub repairs: Vec<Edit>,
}

impl FeedFrame {
    /// Finds what stands around the items of a document.
    pub fn read(text: &str) -> Result<Self, ParseError> {
        let BuiltDoc { doc, repairs, .. } = Doc::read_plain(text)?;
        let nothing =
            || ParseError::NotAFeed { what: "a text without any element".to_owned(), at: 0 };
        let root = doc.root().ok_or_else(nothing)?;
        let container = container(root)?;
        let elements = root.descendants().filter(|element| is_entry(*element));
        let items: Vec<_> = elements.map(|item| (item.span(), dialect_of_item(item))).collect();
        let declared = || {
            let mut declarations = [root, container].into_iter().flat_map(DocElement::declarations);
            declarations.find_map(|declaration| Dialect::of(&declaration.declared_uri()))
        };
        Ok(Self {
            repairs: doc.edits(&repairs, &[]),
            is_collection: root.local() == "collection",
            content: container.content(),
            empty_tag: container.is_empty_tag().then(|| container.name().to_owned()),
            dialect: items.iter().find_map(|(_, dialect)| *dialect).or_else(declared),
            namespace: container.uri().unwrap_or_default().into_owned(),
            context: container.inner_context(),
            items,
        })
    }
}

/// The element that the items of a document stand in.
fn container<'t, 'a>(root: DocElement<'t, 'a>) -> Result<DocElement<'t, 'a>, ParseError> {
    let at = root.span().start;
    let refused = |what: &str| ParseError::NotAFeed { what: what.to_owned(), at };
    let dialect = FeedDialect::of(root).ok_or_else(|| no_feed(root))?;
    let formats = [Format::Atom10, Format::Rss20, Format::Rss09x, Format::Collection];
    if !formats.contains(&dialect.format) {
        return Err(refused(dialect.format.name()));
    }
    let mut elements = std::iter::once(root).chain(root.children());
    let found = elements.find(|element| is_container(*element, dialect));
    found.ok_or_else(|| refused("a feed without a channel"))
}

/// The dialect of an item's `sx:sync`.
fn dialect_of_item(item: DocElement<'_, '_>) -> Option<Dialect> {
    Dialect::of(&item.children().find(|child| is_sync(*child))?.uri()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_feed_is_refused_with_its_place() {
        for (text, found) in [
            ("\n<html/>", "<html/>"),
            ("<rss/>", "<rss/>"),
            ("<rss><x:channel/></rss>", "<rss>"),
            ("<!--x--><feed xmlns='http://purl.org/atom/ns#'/>", "<feed"),
        ] {
            let at = FeedFrame::read(text).unwrap_err().offset().unwrap();
            assert!(text.get(at..).unwrap().starts_with(found), "{text}: {at}");
        }
    }
}
