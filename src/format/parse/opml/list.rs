//! From the tree of a list to its outlines.

use super::{
    HEAD, OpmlError, OpmlLimits, OpmlProblem, OpmlSharing, Outline, OutlineKind, OutlineList,
};
use crate::parse::out::Lines;
use crate::parse::sync_markup::{
    MOST_CONFLICTS, SyncResult, checked_id, item_091, lost_091, push_within,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidegate_core::sync::{Conflict091, Item091};
use tidegate_core::xml::doc::{Doc, DocElement, DocLimits, Findings, LimitReached, NodeId};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{self, cut, split_name, trimmed};

/// The most bytes of one value; what is beyond is cut off.
const VALUE_LIMIT: usize = 1 << 20;
/// The most prefixes that are noted.
const PREFIX_LIMIT: usize = 256;

/// Reads a list. What is ill-formed is repaired as far as it can be guessed, and named.
pub fn read(text: &str, limits: &OpmlLimits) -> Result<OutlineList, OpmlError> {
    if text.len() > limits.bytes {
        return Err(OpmlError::TooLarge { found: text.len(), limit: limits.bytes });
    }
    let lines = Lines::of(text);
    let depth = limits.depth.saturating_mul(2) + 1;
    let doc_limits = DocLimits { depth, warnings: limits.problems, ..DocLimits::default() };
    let read = Doc::read_list(text, &doc_limits);
    let built = read.map_err(|LimitReached { what, limit, at }| {
        let line = lines.line(at);
        OpmlError::Limit { what, limit, line }
    })?;
    let mut reader = ListReader {
        limits,
        lines: &lines,
        open: Vec::new(),
        others: 0,
        sync_end: 0,
        has_root: false,
        prefixes: BTreeMap::new(),
        list: begin(&built.doc, &built.findings, &lines),
    };
    let mut next = 0;
    // Each turn goes behind an element's tag.
    while let Some(element) = built.doc.element(next) {
        reader.element(element)?;
        let is_lost = element.id < reader.sync_end && is_sharing(element, "conflict");
        next = if is_lost { element.behind() } else { element.id + 1 };
    }
    reader.finish(&built.doc)
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

fn is_outline(element: DocElement<'_, '_>) -> bool {
    element.local().eq_ignore_ascii_case("outline")
}

fn is_closed(element: DocElement<'_, '_>) -> bool {
    element.is_empty_tag() || element.has_end_tag()
}

struct ListReader<'t, 'a> {
    limits: &'t OpmlLimits,
    lines: &'t Lines,
    /// The outlines that are open: the number of each, and its element.
    open: Vec<(usize, DocElement<'t, 'a>)>,
    /// How many elements in outlines are neither outlines nor sync markup.
    others: usize,
    /// The number behind the last `sx:sync`.
    sync_end: NodeId,
    has_root: bool,
    prefixes: BTreeMap<&'a str, String>,
    list: OutlineList,
}

impl<'t, 'a> ListReader<'t, 'a> {
    fn problem(&mut self, at: usize, message: String) {
        if self.list.problems.len() < self.limits.problems {
            self.list.problems.push(OpmlProblem { line: self.lines.line(at), message });
        } else {
            self.list.unnamed += 1;
        }
    }

    fn element(&mut self, element: DocElement<'t, 'a>) -> Result<(), OpmlError> {
        while self.open.last().is_some_and(|(_, open)| open.behind() <= element.id) {
            self.open.pop();
        }
        for declaration in element.declarations() {
            if self.prefixes.len() < PREFIX_LIMIT {
                let uri = xml::trim(&declaration.declared_uri()).to_owned();
                self.prefixes.insert(declaration.declared_prefix(), uri);
            }
        }
        let is = |name: &str| element.local().eq_ignore_ascii_case(name);
        if is_in_sharing(element) {
            self.sharing(element);
        } else if is_outline(element) {
            self.outline(element)?;
        } else if is("opml") {
            self.has_root = true;
        } else if is("body") {
            let (content, end) = (element.content(), element.doc().text().len());
            self.list.body = content.start..if element.has_end_tag() { content.end } else { end };
        } else if let Some((number, around)) = self.open.last() {
            // Outlines within it are outlines of their own.
            if element.parent().is_some_and(|parent| parent.id == around.id)
                && is_closed(element)
                && self.others < self.limits.others
                && !element.descendants().any(is_outline)
                && let Some(outline) = self.list.outlines.get_mut(*number)
            {
                outline.other.push(element.span());
                self.others += 1;
            }
        } else {
            self.head(element);
        }
        Ok(())
    }

    fn head(&mut self, element: DocElement<'t, 'a>) {
        let text = element.text();
        let text = xml::shortened(text.trim(), VALUE_LIMIT);
        let said = (!text.is_empty()).then(|| text.to_owned());
        let is = |name: &&str| element.local().eq_ignore_ascii_case(name);
        if is(&"title") && self.list.title.is_none() {
            self.list.title = said;
        } else if let Some(name) = HEAD.into_iter().find(is)
            && !self.list.head.iter().any(|(known, _)| *known == name)
        {
            self.list.head.extend(said.map(|text| (name, text)));
        }
    }

    fn outline(&mut self, element: DocElement<'t, 'a>) -> Result<(), OpmlError> {
        let (at, limits, number) = (element.span().start, self.limits, self.list.outlines.len());
        let line = self.lines.line(at);
        for (what, found, limit) in [
            ("outlines", number, limits.outlines),
            ("outlines inside each other", self.open.len(), limits.depth),
        ] {
            if found >= limit {
                return Err(OpmlError::Limit { what, limit, line });
            }
        }
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
        self.open.push((number, element));
        self.list.outlines.push(Outline {
            parent,
            attributes,
            sync: None,
            has_invalid_sync: false,
            is_comment,
            other: Vec::new(),
            line,
            closed: is_closed(element),
        });
        Ok(())
    }

    /// An element of SSE 0.91.
    fn sharing(&mut self, element: DocElement<'t, 'a>) {
        let value = |name| value(element, name).map(Cow::into_owned);
        let is_in_sync = element.id < self.sync_end;
        match (element.local(), &mut self.list.sharing) {
            ("sharing", sharing @ None) => {
                let version = value("version").unwrap_or_default();
                let (since, until) = (value("since"), value("until"));
                *sharing = Some(OpmlSharing { version, since, until, complete: None });
            }
            ("related", Some(sharing))
                if !is_in_sync && value("type").as_deref() == Some("complete") =>
            {
                sharing.complete = sharing.complete.take().or_else(|| value("link"));
            }
            ("sync", _) if !is_in_sync => {
                self.sync_end = element.behind();
                self.sync(element);
            }
            _ => {}
        }
    }

    fn sync(&mut self, element: DocElement<'t, 'a>) {
        let at = element.span().start;
        let number = self.open.last().map(|(number, _)| *number);
        let outline = number.and_then(|number| self.list.outlines.get_mut(number));
        let message = match (read_sync(element), outline) {
            (Ok(sync), Some(outline)) if outline.sync.is_none() => {
                outline.sync = Some(sync);
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

    fn finish(mut self, doc: &Doc<'_>) -> Result<OutlineList, OpmlError> {
        if self.list.outlines.is_empty() && !self.has_root {
            let first = doc.element(1).map(|first| first.name().to_ascii_lowercase());
            return Err(OpmlError::NotAList(match first.as_deref() {
                Some("html") => "a web page",
                Some("rss" | "feed" | "rdf:rdf") => "a feed",
                Some(_) => "some other XML",
                None => "no XML",
            }));
        }
        lift(&mut self.list.outlines);
        let prefixes = self.prefixes.into_iter();
        self.list.namespaces = prefixes.map(|(prefix, uri)| (prefix.to_owned(), uri)).collect();
        self.list.problems.sort_by_key(|problem| problem.line);
        self.list.problems.dedup();
        Ok(self.list)
    }
}

/// A feed that is not closed is no folder of what follows it.
fn lift(outlines: &mut [Outline]) {
    for number in 0..outlines.len() {
        let mut parent = outlines.get(number).and_then(|outline| outline.parent);
        // Those before were lifted already, so their parents are final: one step is enough but where
        // several feeds in a row are not closed.
        while let Some(around) = parent.and_then(|at| outlines.get(at))
            && !around.closed
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
fn read_sync(sync: DocElement<'_, '_>) -> SyncResult<Item091<(), String>> {
    let id = value(sync, "id").unwrap_or_default();
    let mut read = item_091(sync, checked_id(sync, &id)?, (), parts)?;
    for conflict in parts(sync, "conflict") {
        push_within(&mut read.conflicts, MOST_CONFLICTS, conflict, || {
            let (version, edit) = lost_091(conflict)?;
            let data = cut(conflict.doc().text(), conflict.content()).to_owned();
            Ok(Conflict091 { version, edit, data })
        })?;
    }
    Ok(read)
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
