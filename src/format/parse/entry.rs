//! One entry: its markup, what its elements mean, and its canonical projection, read from the tree of
//! its document.

use super::dialect::FeedDialect;
use super::reading::{EntryReading, Meaning};
use super::{Limits, collection};
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::model::{Context, Entry, Field, Format, Projection, Slots};
use tidegate_core::xml::doc::{Doc, DocAttribute, DocElement, Repair, WalkStep};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::html::{plain_text, plain_text_if_html, without_section};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{collapsed, push_attribute, push_text};

/// What a field costs beside its path, in bytes, when the projection is measured.
pub(super) const FIELD_COST: usize = 64;
/// What a name takes in a path beside what is spelled in its tag: a customary prefix and what parts
/// it.
const NAME_COST: usize = 32;

/// Why an entry cannot be taken of which there is more than may be.
pub(super) fn too_much(what: &str, limit: usize) -> String {
    format!("an entry has more than {limit} {what}")
}

/// What the entries of a document are read from.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentSource<'t, 'a> {
    pub doc: &'t Arc<Doc<'a>>,
    pub dialect: FeedDialect,
    pub limits: &'t Limits,
    /// Bindings of prefixes that the document does not declare.
    pub invented: &'t [(String, String)],
}

/// Reads an entry that inherits `context`; and how many bytes its projection takes beside its text,
/// at most.
pub(super) fn read<'a>(
    DocumentSource { doc, dialect, limits, .. }: DocumentSource<'_, 'a>,
    entry: DocElement<'_, 'a>,
    repairs: &[Repair],
    context: Arc<Context>,
) -> Result<(Entry<'a>, usize), String> {
    let span = entry.span();
    if span.len() > limits.entry {
        return Err(too_much("bytes", limits.entry));
    }
    let cost = measure(entry, dialect, limits)?;
    let (said, id_element) = if dialect.is_collection() {
        let said = collection::read(entry).ok_or("an item of the collection cannot be read")?;
        (said, collection::id_element(entry))
    } else {
        let reading = EntryReading::new(entry, dialect);
        let (native_id, id_is_permalink) = reading.native_id();
        let said = Entry {
            native_id,
            id_is_permalink,
            link: reading.link(),
            title: reading.title(),
            author: reading.authors().into_iter().next().map(|author| author.name.into()),
            published: reading.published(),
            updated: reading.updated(),
            projection: Projection::in_document(Arc::clone(doc), entry.id, dialect.format, fields),
            ..Entry::default()
        };
        (said, reading.all(Meaning::Id).next())
    };
    let is_sync_markup = |element: DocElement<'_, '_>| element.ns().is_sync_markup();
    let outermost = entry.within(is_sync_markup).filter(|element| is_sync_markup(*element));
    let outermost = if doc.has_sync_markup() { outermost.collect() } else { Vec::new() };
    let mut list = doc.edits(repairs, &outermost);
    list.extend(doc.drop_forbidden(&span));
    if let Some(id) = id_element {
        let end = id.span().end;
        if id.is_empty_tag() {
            let with = Cow::Owned(format!("></{}>", id.name()));
            list.push(Edit { range: end - 2..end, with });
        } else if !id.has_end_tag() {
            return Err("an entry's id is not closed".to_owned());
        }
    }
    let edits = Edits::new(span.clone(), list);
    let slots = Slots {
        attributes: edits.before(span.start + 1 + entry.name().len()),
        inner: (!entry.is_empty_tag()).then(|| edits.before(entry.content().start)),
        ..slots_of_id(&edits, id_element)
    };
    let markup = edits.apply(doc.text());
    Ok((Entry { span, markup, slots, context, ..said }, cost))
}

/// The slots of the id, and nothing else.
fn slots_of_id(edits: &Edits, id: Option<DocElement<'_, '_>>) -> Slots {
    let Some(id) = id else { return Slots::default() };
    let span = id.span();
    let whole = edits.before(span.start)..edits.before(span.end);
    let inner = if id.has_end_tag() {
        edits.before(id.content().start)..edits.behind(id.content().end)
    } else {
        // It was an empty-element tag and has become a pair of tags.
        let at = whole.end.saturating_sub(id.name().len() + "</>".len());
        at..at
    };
    Slots { id: Some(inner), id_element: Some(whole), ..Slots::default() }
}

/// The title in an element, as plain text: it is HTML where its type says so (RFC 4287 section 3.1;
/// Atom 0.3 section 3.1), or may be where the format knows no type. `is_markup`: the text is.
pub(super) fn plain_title<'a>(
    kind: &str,
    dialect: FeedDialect,
    (text, is_markup): (Cow<'a, str>, bool),
) -> Cow<'a, str> {
    match without_section(&text) {
        _ if !text.contains(['<', '&']) => collapsed(text),
        _ if is_markup || dialect.is_atom() && kind.contains("html") => plain_text(&text).into(),
        _ if !dialect.is_atom() => plain_text_if_html(&text).into(),
        inside if inside.len() < text.len() => collapsed(Cow::Owned(inside.to_owned())),
        _ => collapsed(text),
    }
}

/// Fields, and the limits that they are to keep.
struct FieldReader<'l> {
    dialect: FeedDialect,
    limits: Option<&'l Limits>,
    path: String,
    fields: Vec<Field<'static>>,
}

/// The fields of an entry of a format.
fn fields(entry: DocElement<'_, '_>, format: Format) -> Vec<Field<'static>> {
    let root = entry.doc().root().map(DocElement::ns).unwrap_or_default();
    read_fields(entry, FeedDialect { format, root }, None).unwrap_or_default()
}

/// The same within limits.
fn read_fields(
    entry: DocElement<'_, '_>,
    dialect: FeedDialect,
    limits: Option<&Limits>,
) -> Result<Vec<Field<'static>>, String> {
    let mut reader = FieldReader { dialect, limits, path: String::new(), fields: Vec::new() };
    reader.attributes(entry)?;
    for child in parts(entry) {
        reader.element(child)?;
    }
    let text = collapsed(entry.text());
    if !text.is_empty() {
        reader.field(String::new(), text)?;
    }
    Ok(reader.fields)
}

/// What a projection costs in bytes beside its text, at most; more than the limits admit is
/// refused.
fn measure(
    entry: DocElement<'_, '_>,
    dialect: FeedDialect,
    limits: &Limits,
) -> Result<usize, String> {
    let fields = entry.element_count() + entry.attributes_within();
    let mut paths = 0_usize;
    let mut is_long = fields > limits.fields;
    // The elements around, each with the bytes of its path.
    let mut around: Vec<(DocElement<'_, '_>, usize)> = Vec::new();
    for element in entry.descendants().skip(1) {
        while around.last().is_some_and(|(outer, _)| outer.span().end <= element.span().start) {
            around.pop();
        }
        let outer = around.last().map_or(0, |(_, path)| *path);
        let uri = |ns| if let Ns::Other(number) = ns { entry.doc().uri(number).len() } else { 0 };
        let tag = element.content().start - element.span().start;
        let path = outer + tag + NAME_COST + uri(element.ns());
        is_long |= path > limits.path;
        paths += path;
        for attribute in element.attributes() {
            let path = path + NAME_COST + uri(attribute.ns());
            is_long |= path > limits.path;
            paths += path;
        }
        if !element.is_leaf() {
            around.push((element, path));
        }
    }
    if is_long {
        return read_fields(entry, dialect, Some(limits)).map(|fields| cost(&fields));
    }
    Ok(fields * FIELD_COST + paths)
}

/// What the projection of an entry costs in bytes beside its text.
pub(super) fn exact_cost(entry: DocElement<'_, '_>, dialect: FeedDialect) -> usize {
    cost(&fields(entry, dialect.format))
}

fn cost(fields: &[Field<'_>]) -> usize {
    fields.iter().map(|field| FIELD_COST + field.path.len()).sum()
}

/// The elements in an element, without sync markup.
fn parts<'t, 'a>(element: DocElement<'t, 'a>) -> impl Iterator<Item = DocElement<'t, 'a>> {
    element.children().filter(|child| !child.ns().is_sync_markup())
}

impl FieldReader<'_> {
    /// Reads an element in the entry, with all within it.
    fn element(&mut self, element: DocElement<'_, '_>) -> Result<(), String> {
        let outer = self.path.len();
        if outer > 0 {
            self.path.push('/');
        }
        self.dialect.segment(element, &mut self.path);
        if let Some(limit) = self.limits.map(|limits| limits.path)
            && self.path.len() > limit
        {
            return Err(too_much("bytes in a path", limit));
        }
        let has_attributes = self.attributes(element)?;
        let (text, is_markup) = prose(element, self.dialect);
        let mut is_bare = !has_attributes && !is_markup;
        for child in parts(element).filter(|_| !is_markup) {
            is_bare = false;
            self.element(child)?;
        }
        let value = collapsed(text);
        if !value.is_empty() || (is_bare && !self.dialect.owns(element.ns())) {
            self.field(self.path.clone(), value)?;
        }
        self.path.truncate(outer);
        Ok(())
    }

    /// Reads the attributes of an element, and answers whether it has some.
    fn attributes(&mut self, element: DocElement<'_, '_>) -> Result<bool, String> {
        let is_link = self.dialect.is_atom_link(element);
        let mut has_some = false;
        for attribute in element.attributes() {
            let is_skipped = match attribute.ns() {
                Ns::Sx | Ns::Sx091 => true,
                Ns::Xml => attribute.local() != "lang",
                // The path tells it.
                Ns::None => is_link && attribute.local() == "rel",
                _ => false,
            };
            if is_skipped {
                continue;
            }
            let mut path = String::with_capacity(self.path.len() + attribute.local().len() + 1);
            path.push_str(&self.path);
            path.push('@');
            push_name(self.dialect, element, attribute, &mut path);
            self.field(path, collapsed(attribute.value()))?;
            has_some = true;
        }
        Ok(has_some)
    }

    fn field(&mut self, path: String, value: Cow<'_, str>) -> Result<(), String> {
        if let Some(limit) = self.limits.map(|limits| limits.fields)
            && self.fields.len() >= limit
        {
            return Err(too_much("fields", limit));
        }
        self.fields.push(Field { path: Cow::Owned(path), value: Cow::Owned(value.into_owned()) });
        Ok(())
    }
}

fn push_name(
    dialect: FeedDialect,
    element: DocElement<'_, '_>,
    attribute: DocAttribute<'_, '_>,
    out: &mut String,
) {
    if attribute.ns() == Ns::None {
        out.push_str(attribute.local());
    } else {
        dialect.name(element.doc(), attribute.ns(), attribute.name(), out);
    }
}

/// The text of an element of an entry, and whether that is markup: an element that holds prose may
/// hold markup that is meant as text.
pub(super) fn prose<'a>(element: DocElement<'_, 'a>, dialect: FeedDialect) -> (Cow<'a, str>, bool) {
    let is_markup = !element.is_leaf()
        && dialect.is_prose(element.ns(), element.local())
        && parts(element).next().is_some();
    if is_markup { (Cow::Owned(markup(element, dialect)), true) } else { (element.text(), false) }
}

/// The content of an element as markup, with the names that paths have.
fn markup(element: DocElement<'_, '_>, dialect: FeedDialect) -> String {
    let mut out = String::new();
    let mut walk = element.walk();
    while let Some(step) = walk.next() {
        match step {
            WalkStep::Open(inner) if inner.ns().is_sync_markup() => walk.leave_out(),
            WalkStep::Open(inner) if inner.id != element.id => {
                push_tag(dialect, inner, &mut out);
            }
            WalkStep::Close(inner) if inner.id != element.id => {
                out.push_str("</");
                push_element_name(dialect, inner, &mut out);
                out.push('>');
            }
            WalkStep::Open(_) | WalkStep::Close(_) => {}
            WalkStep::Text(text) => push_text(&mut out, &text),
        }
    }
    out
}

fn push_tag(dialect: FeedDialect, element: DocElement<'_, '_>, out: &mut String) {
    out.push('<');
    push_element_name(dialect, element, out);
    let attributes = element.attributes().filter(|attribute| !attribute.ns().is_sync_markup());
    let named = attributes.map(|attribute| {
        let mut name = String::new();
        push_name(dialect, element, attribute, &mut name);
        (name, attribute.value())
    });
    let mut attributes: Vec<(String, Cow<'_, str>)> = named.collect();
    attributes.sort_unstable();
    for (name, value) in attributes {
        push_attribute(out, &name, &value);
    }
    out.push('>');
}

fn push_element_name(dialect: FeedDialect, element: DocElement<'_, '_>, out: &mut String) {
    if element.ns() == Ns::Named("xhtml") {
        out.push_str(element.local());
    } else {
        dialect.name(element.doc(), element.ns(), element.name(), out);
    }
}
