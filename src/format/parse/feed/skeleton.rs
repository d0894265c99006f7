//! The document around its entries.

use super::super::dialect::FeedDialect;
use super::ParseError;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{Context, Head, Skeleton, SkeletonSlots};
use tidegate_core::xml::address::has_scheme;
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::walker::Walker;

/// Where things stand; byte offsets into the document.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Behind the root's name.
    pub root_name_end: usize,
    /// The value of the root's `version`.
    pub version: Option<Range<usize>>,
    /// The end of the root.
    pub root_end: usize,
    /// The end of the content of the feed or channel.
    pub container: Option<usize>,
    /// Bytes that end tags inserted behind that place take, where it has no end tag of its own.
    pub inserted: usize,
    /// Whether that was a channel.
    pub has_channel: bool,
    /// Whether it was written as an empty-element tag.
    pub was_empty: bool,
    /// The first entry inside it.
    pub first_entry: Option<usize>,
    /// What is in scope in it.
    pub context: Context,
    updated: Option<Range<usize>>,
    id: Option<Range<usize>>,
}

impl Plan {
    /// Takes note of an own element of the head.
    pub fn note(&mut self, dialect: FeedDialect, local: &str, place: Range<usize>) {
        let slot = match local {
            "updated" | "modified" if dialect.is_atom() => &mut self.updated,
            "lastBuildDate" if !dialect.is_atom() => &mut self.updated,
            "id" if dialect.is_atom() => &mut self.id,
            _ => return,
        };
        slot.get_or_insert(place);
    }

    /// Cuts the skeleton out.
    pub fn skeleton(
        self,
        walker: &mut Walker<'_>,
        dialect: FeedDialect,
        head: &Head,
        title: String,
    ) -> Result<Skeleton, ParseError> {
        let text = walker.text;
        let span = 0..text.len();
        let mut context = self.context;
        let invented = walker.scope.all_invented();
        if !invented.is_empty() {
            let attributes = walker.scope.invented_attributes();
            walker.edit(self.root_name_end..self.root_name_end, attributes)?;
            context.namespaces.extend(invented);
            context.namespaces.sort();
        }
        let list: Vec<Edit> = walker.take_edits(0, &span);
        let edits = Edits::new(span, list);
        let range = |range: Range<usize>| edits.before(range.start)..edits.behind(range.end);
        let entries = match (self.first_entry, self.container) {
            (Some(first), _) => edits.behind(first),
            (None, Some(container)) if self.was_empty => edits.before(container),
            (None, Some(container)) => edits.behind(container).saturating_sub(self.inserted),
            (None, None) => edits.behind(self.root_end),
        };
        let slots = SkeletonSlots {
            root_attributes: edits.before(self.root_name_end),
            // Quotes that it had to be given are not part of the value.
            version: self.version.map(|v| edits.behind(v.start)..edits.before(v.end)),
            entries,
            updated: self.updated.map(range),
            id: self.id.map(range),
        };
        Ok(Skeleton {
            format: dialect.format,
            text: match edits.apply(text) {
                Cow::Borrowed(text) => text.to_owned(),
                Cow::Owned(text) => text,
            },
            slots,
            context,
            title,
            link: head.link.clone().filter(|link| has_scheme(link)),
        })
    }
}
