//! An item in `sx:conflicts` as markup that stands alone.

use super::error::{SyncFault, SyncMarkupError, fault};
use crate::parse::dialect::FeedDialect;
use crate::parse::{Limits, entry, markup_of};
use std::sync::Arc;
use tidegate_core::model::{Format, Markup};
use tidegate_core::xml::doc::{Doc, DocElement, Repair};
use tidegate_core::xml::ns::Ns;

/// How an element is read that stands among the conflicts of a document in `dialect`; `None` where it is no
/// item. It may be of the other family.
pub(super) fn dialect_of_item(
    element: DocElement<'_, '_>,
    dialect: FeedDialect,
) -> Option<FeedDialect> {
    let root = element.ns();
    match element.local() {
        local if local == dialect.entry() && dialect.owns(root) => Some(dialect),
        "entry" if root == Ns::Atom => Some(FeedDialect { format: Format::Atom10, root }),
        "item" if matches!(root, Ns::None | Ns::Rss20) => {
            Some(FeedDialect { format: Format::Rss20, root })
        }
        _ => None,
    }
}

/// Reads the conflicts of an entry.
pub(super) struct ConflictReader<'a, 'r> {
    pub doc: &'r Arc<Doc<'a>>,
    pub dialect: FeedDialect,
    pub limits: &'r Limits,
    /// Bindings of prefixes that the document does not declare.
    pub invented: &'r [(String, String)],
    /// The repairs in the entry.
    pub repairs: &'r [Repair],
}

impl<'a> ConflictReader<'a, '_> {
    pub fn read(&self, item: DocElement<'_, 'a>) -> Result<Markup, SyncMarkupError> {
        let dialect = dialect_of_item(item, self.dialect).unwrap_or(self.dialect);
        let context = item.context(|within| within.ns().is_sync_markup(), self.invented);
        let span = item.span();
        let is_within = |repair: &&Repair| span.contains(&repair.range().start);
        let repairs: Vec<Repair> = self.repairs.iter().filter(is_within).copied().collect();
        let read = entry::read(self.doc, item, &repairs, context.into(), (dialect, self.limits));
        let read = read.map_err(|why| fault(item, SyncFault::Conflict(why)))?;
        Ok(markup_of(dialect.format, &read.entry))
    }
}
