//! The feed element: what is an entry, what is the head, and the document around its entries.

pub(super) mod frame;

use super::dialect::{FeedDialect, is_of_the_document, no_feed, relation};
use super::entry::{self, DocumentSource};
use super::head::HeadBuilder;
use super::sync_markup::{SyncReader, read_sharing};
use super::{Limits, ParseError, collection, completeness};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{
    Context, Entry, EntryTombstone, FeedDocument, Flaw, Head, Skeleton, SkeletonSlots,
};
use tidegate_core::xml::address::has_scheme;
use tidegate_core::xml::doc::{BuiltDoc, Doc, DocElement, Findings, NodeId, Repair, Unit, Units};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{self, cut, find_tag, is_blank, push_namespace, trimmed};
use url::Url;

/// A document that is being read.
struct FeedReader<'t, 'a> {
    source: DocumentSource<'t, 'a>,
    findings: Findings,
    head: HeadBuilder,
    plan: Plan<'t, 'a>,
    entries: Vec<Entry<'a>>,
    tombstones: Vec<EntryTombstone>,
    /// Elements of the head that are taken out, in order.
    taken_out: Vec<DocElement<'t, 'a>>,
    /// Where entries are, in order.
    entry_spans: Vec<Range<usize>>,
    sync: SyncReader<'a, 't>,
}

/// Reads the XML document that begins at the byte `start`.
pub(super) fn read<'a>(
    text: &'a str,
    start: usize,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<FeedDocument<'a>, ParseError> {
    let units = Units { name: entry_name, is_one: is_entry };
    let built = Doc::read(text, start, url, &limits.markup, &units)?;
    let BuiltDoc { doc, findings, units, dropped, repairs, invented } = built;
    let doc = Arc::new(doc);
    let root = doc.root().and_then(|root| Some((root, FeedDialect::of(root)?)));
    let Some((root, dialect)) = root else {
        let what = "a text without any element".to_owned();
        return Err(ParseError::NotAFeed { what, at: 0 });
    };
    let source = DocumentSource { doc: &doc, dialect, limits, invented: &invented };
    let mut reader = FeedReader {
        source,
        findings,
        head: HeadBuilder::default(),
        plan: Plan::new(root, dialect, start),
        entries: Vec::new(),
        tombstones: Vec::new(),
        taken_out: Vec::new(),
        entry_spans: Vec::new(),
        sync: SyncReader::new(source),
    };
    if start > 0 {
        let why = "what stands before the document is passed over";
        reader.findings.flaw(Flaw::Around, 0, why);
    }
    reader.read_head(root, &units);
    let head_repairs = repairs_of_head(&repairs, &units);
    reader.read_entries(units, dropped, &repairs)?;
    reader.finish(&head_repairs, url)
}

/// The local name of entries in the document of a root.
fn entry_name(root: DocElement<'_, '_>) -> Result<&'static str, ParseError> {
    FeedDialect::of(root).map(FeedDialect::entry).ok_or_else(|| no_feed(root))
}

/// Whether an element is an entry of its document.
fn is_entry(element: DocElement<'_, '_>) -> bool {
    if !matches!(element.local(), "entry" | "item") || element.ns().is_sync_markup() {
        return false;
    }
    let Some(dialect) = element.doc().root().and_then(FeedDialect::of) else { return false };
    element.local() == dialect.entry()
        && dialect.owns(element.ns())
        && element.parent().is_some_and(|parent| parent.id == 0 || is_container(parent, dialect))
}

/// Whether the feed's own elements and entries stand in an element.
fn is_container(element: DocElement<'_, '_>, dialect: FeedDialect) -> bool {
    match element.parent() {
        None => dialect.is_atom(),
        Some(root) => root.id == 0 && !dialect.is_atom() && is_channel(element, dialect),
    }
}

fn is_channel(element: DocElement<'_, '_>, dialect: FeedDialect) -> bool {
    dialect.owns(element.ns()) && element.local() == "channel"
}

/// The repairs that are no entry's.
fn repairs_of_head(repairs: &[Repair], units: &[Unit]) -> Vec<Repair> {
    let starts = std::iter::once(0).chain(units.iter().map(|unit| unit.repairs.end));
    let ends = units.iter().map(|unit| unit.repairs.start).chain([repairs.len()]);
    let between = starts.zip(ends).filter_map(|(start, end)| repairs.get(start..end));
    between.flatten().copied().collect()
}

impl<'t, 'a> FeedReader<'t, 'a> {
    /// Reads the elements around the entries.
    fn read_head(&mut self, root: DocElement<'t, 'a>, units: &[Unit]) {
        let mut units = units.iter().map(|unit| unit.node).peekable();
        let mut next = root.id;
        while let Some(element) = self.source.doc.element(next) {
            next = element.behind();
            if units.next_if_eq(&element.id).is_some() {
                continue;
            }
            let around = element.parent();
            let is_in_head = around.is_some_and(|around| is_container(around, self.source.dialect));
            if is_container(element, self.source.dialect) {
                self.open_container(element);
            } else if around.is_some() && self.is_taken_out(element, is_in_head) {
                self.taken_out.push(element);
                continue;
            } else if is_in_head {
                if element.has_end_tag() && self.source.dialect.owns(element.ns()) {
                    self.plan.note(element);
                }
                self.head.child(self.source.dialect, element);
            }
            next = element.id + 1;
        }
    }

    fn open_container(&mut self, element: DocElement<'t, 'a>) {
        self.plan.context = element.inner_context();
        if element.id > 0 {
            self.head.channel(element);
            self.plan.channel.get_or_insert(element);
        }
    }

    /// Whether an element around the entries is no part of the skeleton. `is_in_head`: it is one of
    /// the feed's own children.
    fn is_taken_out(&mut self, element: DocElement<'t, 'a>, is_in_head: bool) -> bool {
        let (ns, local) = (element.ns(), element.local());
        let is_own = self.source.dialect.owns(ns);
        match (ns, local) {
            (Ns::Sx | Ns::Sx091, _) => true,
            (Ns::History, local) => {
                self.head.head.complete |= local == "complete" && is_in_head;
                true
            }
            (Ns::Tombstones, "deleted-entry") => {
                self.tombstone(element);
                true
            }
            (_, "cloud") => is_own && !self.source.dialect.is_atom(),
            (_, "items") => is_own && self.source.dialect.is_rdf(),
            (_, "link") if is_in_head && self.source.dialect.is_atom_link(element) => {
                let lang = self.plan.context.lang.as_deref();
                self.head.link(element, lang, self.source.limits);
                is_of_the_document(&relation(element))
            }
            _ => false,
        }
    }

    fn tombstone(&mut self, element: DocElement<'_, '_>) {
        let limit = self.source.limits.head_values;
        if self.tombstones.len() == limit {
            let at = element.span().start;
            self.findings.warn(at, format!("tombstones beyond {limit} are passed over"));
        }
        let native_id = element.attribute("ref").map(trimmed).unwrap_or_default();
        if self.tombstones.len() < limit && !native_id.is_empty() {
            let when = element.attribute("when").and_then(|when| xml::date(&when));
            self.tombstones.push(EntryTombstone { native_id: native_id.into_owned(), when });
        }
    }

    fn read_entries(
        &mut self,
        units: Vec<Unit>,
        dropped: Vec<(Range<usize>, NodeId)>,
        repairs: &[Repair],
    ) -> Result<(), ParseError> {
        let (mut cost, mut nodes) = (0_usize, Vec::new());
        // Entries that inherit the same share it.
        let mut context = Arc::new(Context::default());
        for unit in units {
            let Some(element) = self.source.doc.element(unit.node) else { continue };
            let span = element.span();
            if self.entries.len() >= self.source.limits.entries {
                let limit = self.source.limits.entries;
                return Err(ParseError::Limit { what: "entries", limit, at: span.start });
            }
            let repairs = repairs.get(unit.repairs).unwrap_or_default();
            let own = element.context(self.source.invented);
            if own != *context {
                context = Arc::new(own);
            }
            match entry::read(self.source, element, repairs, Arc::clone(&context)) {
                Ok((mut entry, more)) => {
                    cost = cost.saturating_add(more);
                    entry.sync = self.sync.read(element, repairs, unit.is_sound);
                    self.entries.push(entry);
                    nodes.push(unit.node);
                }
                Err(why) => self.findings.fault(span.start, why),
            }
            self.note_entry(span, element.parent());
        }
        for (span, parent) in dropped {
            self.note_entry(span, self.source.doc.element(parent));
        }
        self.entry_spans.sort_by_key(|span| span.start);
        let limit = self.source.limits.projection;
        // What an entry costs is known without its fields, and then too high.
        let exact = |nodes: Vec<NodeId>| -> usize {
            nodes
                .into_iter()
                .filter_map(|id| self.source.doc.element(id))
                .map(|entry| entry::exact_cost(entry, self.source.dialect))
                .sum()
        };
        if cost > limit && exact(nodes) > limit {
            let at = self.entries.last().map_or(0, |entry| entry.span.start);
            return Err(ParseError::Limit { what: "bytes in all fields", limit, at });
        }
        Ok(())
    }

    /// Takes note of the place of an entry, which is no part of the skeleton.
    fn note_entry(&mut self, span: Range<usize>, parent: Option<DocElement<'t, 'a>>) {
        if parent.is_some_and(|parent| is_container(parent, self.source.dialect)) {
            let first = self.plan.first_entry.get_or_insert(span.start);
            *first = span.start.min(*first);
        }
        self.entry_spans.push(span);
    }

    fn finish(
        mut self,
        repairs: &[Repair],
        url: Option<&Url>,
    ) -> Result<FeedDocument<'a>, ParseError> {
        let DocumentSource { doc, dialect, invented, .. } = self.source;
        let text = doc.text();
        self.check_end();
        let mut head = self.head.finish();
        head.language = head.language.or_else(|| self.plan.context.lang.clone());
        if dialect.is_collection() {
            if !collection::is_collection(self.plan.root) {
                return Err(no_feed(self.plan.root));
            }
            head.title.get_or_insert_with(|| collection::UNTITLED.to_owned());
        }
        let is_unlikely = doc.given_namespace().is_some() && head.title.is_none();
        let is_missing = !dialect.is_atom() && self.plan.channel.is_none();
        if self.entries.is_empty() && (is_unlikely || is_missing) {
            if let Some((at, reason)) = self.findings.fault {
                return Err(ParseError::NothingWhole { reason, at });
            }
            let what = "an XML document with a feed's root and nothing of a feed in it".to_owned();
            return Err(ParseError::NotAFeed { what, at: self.plan.root_name_end() });
        }
        let broken_at = self.findings.fault.as_ref().map(|(at, _)| *at);
        let completeness = completeness(self.findings.fault.take(), self.entries.is_empty())?;
        let is_head = |around: DocElement<'_, '_>| is_container(around, dialect);
        let sharing = read_sharing(&self.taken_out, is_head, url);
        let (sharing, expires) = sharing.unzip();
        head.hints.expires = expires.flatten();
        let mut edits = doc.edits(repairs, &self.taken_out);
        take_out_entries(text, &self.entry_spans, &mut edits);
        let skeleton = self.plan.skeleton(edits, invented.to_vec(), &head, self.findings.is_cut);
        let mut warnings = self.findings.warnings;
        let has_sharing = self.taken_out.iter().any(|element| element.ns().is_sync_markup());
        warnings.extend(self.sync.finish(&mut self.entries, has_sharing));
        warnings.sort_by_key(|warning| warning.offset);
        Ok(FeedDocument {
            sharing,
            format: dialect.format,
            text,
            head,
            skeleton,
            entries: self.entries,
            tombstones: self.tombstones,
            completeness,
            broken_at,
            warnings,
            flaws: self.findings.flaws,
            charset: None,
        })
    }

    /// What stands behind the root's end is passed over; entries there are not believed, but they
    /// show that the document is not whole.
    fn check_end(&mut self) {
        let text = self.source.doc.text();
        let end = self.plan.root.span().end;
        let rest = cut(text, end..text.len());
        if is_blank(rest) {
            return;
        }
        let has_entries = find_tag(text, end, self.source.dialect.entry()).is_some();
        if has_entries {
            self.findings.fault(end, "entries stand behind the end of the feed");
        } else if !rest.trim_start().starts_with("<!--") {
            let why = "what stands behind the document is passed over";
            self.findings.flaw(Flaw::Around, end, why);
        }
    }
}

/// What an element's text is taken as.
pub(super) fn owned(text: Cow<'_, str>) -> Option<String> {
    (!text.is_empty()).then(|| text.into_owned())
}

/// What of the document around its entries is spliced.
struct Plan<'t, 'a> {
    root: DocElement<'t, 'a>,
    dialect: FeedDialect,
    /// Where the document begins.
    start: usize,
    /// The first channel.
    channel: Option<DocElement<'t, 'a>>,
    /// The first entry in the feed or a channel; byte offset into the document.
    first_entry: Option<usize>,
    /// What is in scope in the feed or the last channel.
    context: Context,
    updated: Option<Range<usize>>,
    id: Option<Range<usize>>,
}

/// Takes entries out, and the white space between two of them.
fn take_out_entries(text: &str, spans: &[Range<usize>], edits: &mut Vec<Edit>) {
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
    fn new(root: DocElement<'t, 'a>, dialect: FeedDialect, start: usize) -> Self {
        let context = root.inner_context();
        Self {
            root,
            dialect,
            start,
            channel: None,
            first_entry: None,
            context,
            updated: None,
            id: None,
        }
    }

    /// Takes note of an own element of the head.
    fn note(&mut self, element: DocElement<'_, '_>) {
        let slot = match element.local() {
            "updated" | "modified" if self.dialect.is_atom() => &mut self.updated,
            "lastBuildDate" if !self.dialect.is_atom() => &mut self.updated,
            "id" if self.dialect.is_atom() => &mut self.id,
            _ => return,
        };
        slot.get_or_insert(element.content());
    }

    /// Behind the root's name.
    fn root_name_end(&self) -> usize {
        self.root.span().start + 1 + self.root.name().len()
    }

    /// Cuts the skeleton out with these edits and made up bindings. `is_cut`: whether the document is.
    fn skeleton(
        self,
        mut list: Vec<Edit>,
        invented: Vec<(String, String)>,
        head: &Head,
        is_cut: bool,
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
            format: self.dialect.format,
            text: edits.apply(text).into_owned(),
            slots,
            context,
            title: head.title.clone().unwrap_or_default(),
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
