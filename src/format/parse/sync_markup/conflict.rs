//! An item in `sx:conflicts` as markup that stands alone.

use super::SyncReader;
use super::version::{SyncResult, fault};
use crate::parse::dialect::FeedDialect;
use crate::parse::{entry, markup_of};
use std::ops::Range;
use tidegate_core::model::{Format, Markup, Slots, SyncFault};
use tidegate_core::xml::doc::{DocElement, Repair};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::split_name;

/// How an element is read that stands among the conflicts of a document in `dialect`; `None` where
/// it is no item. It may be of the other family.
pub fn dialect_of_item(element: DocElement<'_, '_>, dialect: FeedDialect) -> Option<FeedDialect> {
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

impl<'a> SyncReader<'a, '_> {
    /// Reads one of the conflicts of an entry that has these repairs.
    pub fn conflict(&self, item: DocElement<'_, 'a>, repairs: &[Repair]) -> SyncResult<Markup> {
        let dialect = dialect_of_item(item, self.dialect).unwrap_or(self.dialect);
        let context = item.context(&self.invented);
        let span = item.span();
        let is_within = |repair: &&Repair| span.contains(&repair.range().start);
        let repairs: Vec<Repair> = repairs.iter().filter(is_within).copied().collect();
        let read = entry::read(self.doc, item, &repairs, context.into(), (dialect, self.limits));
        let read = read.map_err(|why| fault(item, SyncFault::Conflict(why)))?;
        let markup = markup_of(dialect.format, &read.0);
        Ok(if item.ns().is_sync_markup() { as_item(item, markup) } else { markup })
    }
}

/// An `sx:conflict` of SSE 0.91 in which no item stands, as an item that says what stands in it.
/// Its element is called like that of the item around.
fn as_item(conflict: DocElement<'_, '_>, markup: Markup) -> Markup {
    let item = conflict.ancestors().find(|around| !around.ns().is_sync_markup());
    let Some(item) = item else { return markup };
    let (name, prefix) = (item.name(), split_name(item.name()).0);
    let Markup { xml, mut context, slots, .. } = markup;
    let content = slots.inner.and_then(|at| Some(xml.get(at..)?.rsplit_once("</")?.0));
    if let Some(uri) = item.binding(prefix).filter(|uri| !uri.is_empty())
        && !context.namespaces.iter().any(|(bound, _)| bound == prefix)
    {
        context.namespaces.push((prefix.to_owned(), uri.into_owned()));
        context.namespaces.sort_unstable();
    }
    let begin = name.len() + "<>".len();
    let moved = |place: Range<usize>| {
        let moved = |at: usize| (at + begin).saturating_sub(slots.inner.unwrap_or_default());
        moved(place.start)..moved(place.end)
    };
    Markup {
        xml: format!("<{name}>{}</{name}>", content.unwrap_or_default()),
        context,
        slots: Slots {
            attributes: name.len() + 1,
            inner: Some(begin),
            id: slots.id.clone().map(moved),
            id_element: slots.id_element.clone().map(moved),
        },
        ..markup
    }
}
