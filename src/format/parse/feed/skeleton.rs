//! The document around its entries.

use super::super::dialect::FeedDialect;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{Context, Head, Skeleton, SkeletonSlots};
use tidegate_core::xml::address::has_scheme;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::{cut, is_blank, push_namespace};

/// What of the document around its entries is spliced.
pub(super) struct Plan<'t, 'a> {
    pub root: DocElement<'t, 'a>,
    /// Where the document begins.
    start: usize,
    /// The first channel.
    pub channel: Option<DocElement<'t, 'a>>,
    /// The first entry in the feed or a channel; byte offset into the document.
    pub first_entry: Option<usize>,
    /// What is in scope in the feed or the last channel.
    pub context: Context,
    updated: Option<Range<usize>>,
    id: Option<Range<usize>>,
}

/// Takes entries out, and the white space between two of them.
pub(super) fn take_out_entries(text: &str, spans: &[Range<usize>], edits: &mut Vec<Edit>) {
    let first = edits.len();
    for span in spans {
        match edits.get_mut(first..).and_then(<[Edit]>::last_mut) {
            Some(last) if is_blank(cut(text, last.range.end..span.start)) => {
                last.range.end = span.end;
            }
            _ => edits.push(Edit { range: span.clone(), with: Cow::Borrowed("") }),
        }
    }
}

impl<'t, 'a> Plan<'t, 'a> {
    /// The plan of a document that begins at the byte `start`.
    pub fn new(root: DocElement<'t, 'a>, start: usize) -> Self {
        let context = root.inner_context();
        Self { root, start, channel: None, first_entry: None, context, updated: None, id: None }
    }

    /// Takes note of an own element of the head.
    pub fn note(&mut self, dialect: FeedDialect, element: DocElement<'_, '_>) {
        let slot = match element.local() {
            "updated" | "modified" if dialect.is_atom() => &mut self.updated,
            "lastBuildDate" if !dialect.is_atom() => &mut self.updated,
            "id" if dialect.is_atom() => &mut self.id,
            _ => return,
        };
        slot.get_or_insert(element.content());
    }

    /// Behind the root's name.
    pub fn root_name_end(&self) -> usize {
        self.root.span().start + 1 + self.root.name().len()
    }

    /// Cuts the skeleton out. `title`: to show, and whether the document is cut.
    pub fn skeleton(
        self,
        (mut list, invented): (Vec<Edit>, Vec<(String, String)>),
        dialect: FeedDialect,
        head: &Head,
        (title, is_cut): (String, bool),
    ) -> Skeleton {
        let doc = self.root.doc();
        let text = doc.text();
        let span = 0..text.len();
        let container = self.channel.unwrap_or(self.root);
        let end = container.span().end;
        if container.is_empty_tag() {
            // Its end tag comes before those of elements around it.
            let tag = Edit { range: end..end, with: format!("</{}>", container.name()).into() };
            list.splice(0..0, [Edit { range: end.saturating_sub(2)..end, with: ">".into() }, tag]);
        }
        let mut edit = |range, with: Cow<'static, str>| list.push(Edit { range, with });
        edit(0..self.start, "".into());
        let root_end = self.root.span().end;
        if !is_blank(cut(text, root_end..text.len())) {
            edit(root_end..text.len(), "".into());
        }
        let root_name_end = self.root_name_end();
        let mut context = self.context.clone();
        if !invented.is_empty() {
            let mut declared = String::new();
            for (prefix, uri) in &invented {
                push_namespace(&mut declared, prefix, uri);
            }
            edit(root_name_end..root_name_end, declared.into());
            context.namespaces.extend(invented);
            context.namespaces.sort();
        }
        list.extend(doc.drop_forbidden(&span));
        let edits = Edits::new(span, list);
        let range = |range: Range<usize>| edits.before(range.start)..edits.behind(range.end);
        let content_end = container.content().end;
        let entries = match self.first_entry {
            Some(first) => edits.behind(first),
            None if container.is_empty_tag() => edits.before(content_end),
            None => edits.behind(content_end).saturating_sub(inserted(container, is_cut)),
        };
        let version = self.root.attributes().find(|a| a.name() == "version");
        let version = version.filter(|_| self.root.local() == "rss").map(|a| a.place());
        let slots = SkeletonSlots {
            root_attributes: edits.before(root_name_end),
            // Quotes that it had to be given are not part of the value.
            version: version.map(|v| edits.behind(v.start)..edits.before(v.end)),
            entries,
            updated: self.updated.map(range),
            id: self.id.map(range),
        };
        Skeleton {
            format: dialect.format,
            text: edits.apply(text).into_owned(),
            slots,
            context,
            title,
            link: head.link.clone().filter(|link| has_scheme(link)),
        }
    }
}

/// Bytes of the end tags that are inserted where a container ends that has none of its own: a cut
/// closes the elements around it, too.
fn inserted(container: DocElement<'_, '_>, is_cut: bool) -> usize {
    if container.has_end_tag() {
        return 0;
    }
    let closed = container.ancestors().take(if is_cut { usize::MAX } else { 1 });
    closed.map(|element| element.name().len() + "</>".len()).sum()
}
