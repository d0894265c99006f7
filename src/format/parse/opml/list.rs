//! From the tree of a list to its outlines.

use super::{HEAD, OpmlProblem, OpmlSharing, Outline, OutlineKind, OutlineList};
use crate::parse::out::Lines;
use crate::parse::sync_markup::{
    MOST_CONFLICTS, SyncResult, checked_id, lost_091, push_within, version_091,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidegate_core::model::{OUTLINE_DEPTH, Shared};
use tidegate_core::sync::By091;
use tidegate_core::xml::doc::{Doc, DocElement, DocLimits, Findings, LimitReached, NodeId};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{self, cut, split_name, trimmed};

/// The most bytes of a list.
pub const BYTES_LIMIT: usize = 32 << 20;
/// The most outlines of a list that is no feed.
const OUTLINES_LIMIT: usize = 100_000;
/// The most elements in outlines that are neither outlines nor sync markup, in the whole list; what
/// is beyond is left out.
const OTHERS_LIMIT: usize = 100_000;
/// The most problems that are named; the rest are counted.
const PROBLEMS_LIMIT: usize = 1_000;
/// The most bytes of one value; what is beyond is cut off.
const VALUE_LIMIT: usize = 1 << 20;
/// The most prefixes that are noted.
const PREFIX_LIMIT: usize = 256;

/// Reads a list; else why it is none, in words. What is ill-formed is repaired as far as it can be
/// guessed, and named.
pub fn read(text: &str) -> Result<OutlineList, String> {
    let found = text.len();
    if found > BYTES_LIMIT {
        return Err(format!("it has {found} bytes, the limit is {BYTES_LIMIT}"));
    }
    let read = read_tree(text, OUTLINES_LIMIT);
    let (doc, list) = read.map_err(|LimitReached { what, limit, at }| {
        let line = Lines::of(text).line(at);
        format!("line {line}: there are more than {limit} {what}, which is the limit")
    })?;
    let mut elements = doc.root().into_iter().flat_map(DocElement::descendants);
    if !list.outlines.is_empty() || elements.any(|element| is_called(element, "opml")) {
        return Ok(list);
    }
    let first = doc.element(1).map(|first| first.name().to_ascii_lowercase());
    let what = match first.as_deref() {
        Some("html") => "a web page",
        Some("rss" | "feed" | "rdf:rdf") => "a feed",
        Some(_) => "some other XML",
        None => "no XML",
    };
    Err(format!("it is {what} and no OPML list: there is no outline in it"))
}

/// Reads a list of at most so many outlines, with the tree that its outlines stand in.
pub(super) fn read_tree(
    text: &str,
    outlines: usize,
) -> Result<(Doc<'_>, OutlineList), LimitReached> {
    let lines = Lines::of(text);
    let depth = OUTLINE_DEPTH * 2 + 1;
    let limits = DocLimits { depth, warnings: PROBLEMS_LIMIT, ..DocLimits::default() };
    let built = Doc::read_list(text, &limits)?;
    let mut reader = ListReader::new(&lines, begin(&built.doc, &built.findings, &lines));
    let mut next = 0;
    // Each turn goes behind an element's tag.
    while let Some(element) = built.doc.element(next) {
        reader.element(element, outlines)?;
        next = if is_kept(element) { element.behind() } else { element.id + 1 };
    }
    let list = reader.finish();
    Ok((built.doc, list))
}

/// The list without its outlines.
fn begin(doc: &Doc<'_>, findings: &Findings, lines: &Lines) -> OutlineList {
    let length = doc.text().len();
    let problems = findings.warnings.iter().map(|warning| {
        let line = lines.line(warning.offset);
        OpmlProblem { line, message: warning.message.clone() }
    });
    // The last tag has no end of its own.
    let last = doc.root().and_then(|root| root.descendants().skip(1).last());
    let is_at_end = last.is_some_and(|l| l.span().end == length && l.is_empty_tag());
    let is_torn = is_at_end && !doc.text().ends_with("/>");
    OutlineList {
        problems: problems.collect(),
        unnamed: findings.unkept,
        is_whole: !findings.is_cut && !findings.has_endless && !is_torn,
        is_torn,
        body: length..length,
        ..OutlineList::default()
    }
}

/// Whether an element is one of SSE 0.91. A prefix that nothing declares is that by its usual name.
fn is_sharing(element: DocElement<'_, '_>, local: &str) -> bool {
    element.local() == local && is_in_sharing(element)
}

fn is_in_sharing(element: DocElement<'_, '_>) -> bool {
    let (prefix, _) = split_name(element.name());
    match element.ns() {
        Ns::Sx091 => !prefix.is_empty(),
        Ns::Other(_) => prefix == "sx" && element.binding(prefix).is_none(),
        _ => false,
    }
}

/// Whether an element keeps a version that lost, whose outline is none of the list.
fn is_kept(element: DocElement<'_, '_>) -> bool {
    is_sharing(element, "conflict") && element.ancestors().any(|around| is_sharing(around, "sync"))
}

fn is_called(element: DocElement<'_, '_>, name: &str) -> bool {
    element.local().eq_ignore_ascii_case(name)
}

fn is_outline(element: DocElement<'_, '_>) -> bool {
    is_called(element, "outline")
}

fn is_closed(element: DocElement<'_, '_>) -> bool {
    element.is_empty_tag() || element.has_end_tag()
}

/// The elements in an outline that are neither outlines, which are outlines of their own, nor sync
/// markup.
pub(super) fn others<'t, 'a>(
    outline: DocElement<'t, 'a>,
) -> impl Iterator<Item = DocElement<'t, 'a>> {
    outline.children().filter(|child| {
        let is_of_the_list = ["opml", "body"].iter().any(|name| is_called(*child, name));
        let is_other = !is_of_the_list && !is_in_sharing(*child) && is_closed(*child);
        is_other && !child.descendants().any(is_outline)
    })
}

struct ListReader<'t, 'a> {
    lines: &'t Lines,
    /// The outlines that are open: the number of each, and the number behind its elements.
    open: Vec<(usize, NodeId)>,
    /// How many elements in outlines are neither outlines nor sync markup.
    others: usize,
    prefixes: BTreeMap<&'a str, String>,
    list: OutlineList,
}

impl<'t, 'a> ListReader<'t, 'a> {
    const fn new(lines: &'t Lines, list: OutlineList) -> Self {
        Self { lines, open: Vec::new(), others: 0, prefixes: BTreeMap::new(), list }
    }

    fn problem(&mut self, at: usize, message: String) {
        if self.list.problems.len() < PROBLEMS_LIMIT {
            self.list.problems.push(OpmlProblem { line: self.lines.line(at), message });
        } else {
            self.list.unnamed += 1;
        }
    }

    /// Reads an element of a list of at most so many outlines.
    fn element(
        &mut self,
        element: DocElement<'_, 'a>,
        outlines: usize,
    ) -> Result<(), LimitReached> {
        while self.open.last().is_some_and(|(_, behind)| *behind <= element.id) {
            self.open.pop();
        }
        for declaration in element.declarations() {
            if self.prefixes.len() < PREFIX_LIMIT {
                let uri = xml::trim(&declaration.declared_uri()).to_owned();
                self.prefixes.insert(declaration.declared_prefix(), uri);
            }
        }
        if is_in_sharing(element) {
            self.sharing(element);
        } else if is_outline(element) {
            let (number, at) = (self.list.outlines.len(), element.span().start);
            for (what, found, limit) in [
                ("outlines", number, outlines),
                ("outlines inside each other", self.open.len(), OUTLINE_DEPTH),
            ] {
                if found >= limit {
                    return Err(LimitReached { what, limit, at });
                }
            }
            let outline = self.outline(element);
            self.open.push((number, element.behind()));
            self.list.outlines.push(outline);
        } else if is_called(element, "body") {
            let (content, end) = (element.content(), element.doc().text().len());
            self.list.body = content.start..if element.has_end_tag() { content.end } else { end };
        } else if self.open.is_empty() {
            self.head(element);
        }
        Ok(())
    }

    fn head(&mut self, element: DocElement<'_, 'a>) {
        let text = element.text();
        let text = xml::shortened(text.trim(), VALUE_LIMIT);
        let said = (!text.is_empty()).then(|| text.to_owned());
        if is_called(element, "title") && self.list.title.is_none() {
            self.list.title = said;
        } else if let Some(name) = HEAD.into_iter().find(|name| is_called(element, name))
            && !self.list.head.iter().any(|(known, _)| *known == name)
        {
            self.list.head.extend(said.map(|text| (name, text)));
        }
    }

    /// What an outline says.
    fn outline(&mut self, element: DocElement<'_, 'a>) -> Outline {
        let at = element.span().start;
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let value = attribute.value();
            if value.len() > VALUE_LIMIT {
                self.problem(at, "a value is too long, and its end is left out".to_owned());
            }
            // A line end is a blank, also where it is written as a reference.
            let value = xml::shortened(&value, VALUE_LIMIT).replace(['\t', '\n', '\r'], " ");
            attributes.push((attribute.name().to_owned(), value));
        }
        let says = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("isComment") && value.trim().eq_ignore_ascii_case("true")
        };
        let parent = self.open.last().map(|(number, _)| *number);
        let around = parent.and_then(|parent| self.list.outlines.get(parent));
        let is_comment =
            around.is_some_and(|around| around.is_comment) || attributes.iter().any(says);
        let left = OTHERS_LIMIT.saturating_sub(self.others);
        let other: Vec<_> = others(element).take(left).map(DocElement::span).collect();
        self.others += other.len();
        let mut outline = Outline {
            parent,
            attributes,
            sync: None,
            has_invalid_sync: false,
            is_comment,
            other,
            line: self.lines.line(at),
            is_closed: is_closed(element),
            node: element.id,
            sync_node: 0,
        };
        let is_passed = |inner| is_outline(inner) || is_sharing(inner, "sync");
        for sync in element.within(is_passed).filter(|inner| is_sharing(*inner, "sync")) {
            self.sync(sync, Some(&mut outline));
        }
        outline
    }

    /// An element of SSE 0.91.
    fn sharing(&mut self, element: DocElement<'_, 'a>) {
        let value = |name| value(element, name).map(Cow::into_owned);
        let is_in_sync = || element.ancestors().skip(1).any(|around| is_sharing(around, "sync"));
        match (element.local(), &mut self.list.sharing) {
            ("sharing", sharing @ None) => {
                let version = value("version").unwrap_or_default();
                let (since, until) = (value("since"), value("until"));
                *sharing = Some(OpmlSharing { version, since, until, complete: None });
            }
            ("related", Some(sharing))
                if value("type").as_deref() == Some("complete") && !is_in_sync() =>
            {
                sharing.complete = sharing.complete.take().or_else(|| value("link"));
            }
            ("sync", _) if self.open.is_empty() && !is_in_sync() => self.sync(element, None),
            _ => {}
        }
    }

    /// Reads the `sx:sync` of an outline.
    fn sync(&mut self, element: DocElement<'_, 'a>, outline: Option<&mut Outline>) {
        let at = element.span().start;
        let message = match (read_sync(element), outline) {
            (Ok(sync), Some(outline)) if outline.sync.is_none() => {
                (outline.sync, outline.sync_node) = (Some(sync), element.id);
                return;
            }
            (Ok(_), Some(_)) => "an outline has a second sx:sync, which is left out".to_owned(),
            (Ok(_), None) => "an sx:sync stands in no outline".to_owned(),
            (Err(error), outline) => {
                if let Some(outline) = outline {
                    outline.has_invalid_sync = true;
                }
                let message = format!("an sx:sync is not taken: {}", error.fault);
                let line = self.lines.line(at);
                self.list.invalid.get_or_insert(OpmlProblem { line, message: message.clone() });
                message
            }
        };
        self.problem(at, message);
    }

    fn finish(mut self) -> OutlineList {
        lift(&mut self.list.outlines);
        let prefixes = self.prefixes.into_iter();
        self.list.namespaces = prefixes.map(|(prefix, uri)| (prefix.to_owned(), uri)).collect();
        self.list.problems.sort_by_key(|problem| problem.line);
        self.list.problems.dedup();
        self.list
    }
}

/// A feed that is not closed is no folder of what follows it.
fn lift(outlines: &mut [Outline]) {
    for number in 0..outlines.len() {
        let mut parent = outlines.get(number).and_then(|outline| outline.parent);
        // Those before were lifted already, so their parents are final: one step is enough but where
        // several feeds in a row are not closed.
        while let Some(around) = parent.and_then(|at| outlines.get(at))
            && !around.is_closed
            && matches!(around.kind(), OutlineKind::Feed(_))
        {
            parent = around.parent;
        }
        if let Some(outline) = outlines.get_mut(number) {
            outline.parent = parent;
        }
    }
}

/// The value of an attribute, trimmed; an empty one is as good as none.
fn value<'a>(element: DocElement<'_, 'a>, name: &str) -> Option<Cow<'a, str>> {
    element.attribute(name).map(trimmed).filter(|value| !value.is_empty())
}

/// Reads an `sx:sync`: what it says, or the first thing that is wrong.
fn read_sync(sync: DocElement<'_, '_>) -> SyncResult<By091<String>> {
    let id = checked_id(sync, &value(sync, "id").unwrap_or_default())?;
    let (winner, conflict) = version_091(sync, id, String::new(), parts)?;
    let mut item = Shared::new(winner);
    for element in parts(sync, "conflict") {
        let markup = || cut(element.doc().text(), element.content()).to_owned();
        let lost = || lost_091(element, &item.winner.id, markup());
        push_within(&mut item.conflicts, MOST_CONFLICTS, element, lost)?;
    }
    Ok(By091 { item, conflict })
}

/// The outlines that are kept of the conflicts of an `sx:sync`, in order; `None` where there is none.
pub(super) fn lost_outlines(
    sync: DocElement<'_, '_>,
    lines: &Lines,
) -> impl Iterator<Item = Option<Outline>> {
    parts(sync, "conflict").map(|conflict| {
        let outline = conflict.descendants().find(|inner| is_outline(*inner))?;
        Some(ListReader::new(lines, OutlineList::default()).outline(outline))
    })
}

/// The elements of a name that belong to an `sx:sync` or a part of it: not what was kept of a conflict, nor
/// outlines behind one that is not closed.
fn parts<'t, 'a>(
    sync: DocElement<'t, 'a>,
    name: &'static str,
) -> impl Iterator<Item = DocElement<'t, 'a>> {
    let is_of_others = |element| is_outline(element) || is_sharing(element, "conflict");
    sync.within(is_of_others).filter(move |element| is_sharing(*element, name))
}
