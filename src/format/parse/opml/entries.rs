//! A list as an Atom document: each outline an entry, whatever it stands in, so that lists are
//! compared, shared and merged like any feed.
//!
//! What means the same in Atom becomes that: the text, the address of the site, a description, a
//! date. All but the first two stand in an `outline` element of a namespace of ours as well, with
//! the other attributes, and what the outline stands in is named by another. `sx:sync` of SSE 0.91
//! stays what it is. An entry begins in the line of its outline, as far as that can be.
//!
//! A list shows everything that it has: one that is there to its end is `fh:complete`, and one that
//! is not makes an Atom document that is cut off, too.

#[cfg(test)]
mod tests;

use super::list::{lost_outlines, others, read_tree};
use super::{Outline, OutlineKind, OutlineList};
use crate::parse::out::{LineCounter, Lines, check_length, push_copy, root};
use crate::parse::{Limits, ParseError, without_garbage};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{OUTLINE_ROOT, OutlinePath, Stamp, Warning};
use tidegate_core::sync_markup::{Dialect, sx091};
use tidegate_core::xml::address::is_web;
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::ns::{ATOM, HISTORY, Ns, OUTLINE, OUTLINE_PREFIX, SSE_091, XML};
use tidegate_core::xml::{is_name, push_attribute, push_element, push_empty, well_formed_date};

/// The attribute that tells an Atom document which is a list, in the namespace of outlines.
pub const MARK: &str = "list";
/// The attribute of an outline that says the id which its entry has elsewhere.
const ID: &str = "id";
/// The prefix of sync markup.
const SX: &str = "sx";
/// How many problems are told as warnings; the rest are counted.
const WARNINGS: usize = 32;
/// The bytes of the longest namespace that counts: each is written wherever it is used.
const NAMESPACE: usize = 256;

/// What the start tag of an Atom feed bears whose entries are the outlines of a list.
pub fn mark() -> String {
    format!(" xmlns:{OUTLINE_PREFIX}=\"{OUTLINE}\" {OUTLINE_PREFIX}:{MARK}=\"OPML\"")
}

/// A list as an Atom document with sync markup; `None` for whatever is no list.
pub fn transcoded(text: &str) -> Result<Option<String>, ParseError> {
    Ok(within(text, &Limits::default())?.map(|(text, _)| text))
}

/// The same within other limits, with what was wrong.
pub fn within(text: &str, limits: &Limits) -> Result<Option<(String, Vec<Warning>)>, ParseError> {
    if !root(without_garbage(text)).is_some_and(|root| root.eq_ignore_ascii_case("opml")) {
        return Ok(None);
    }
    let (doc, mut list) = read_tree(text, limits.entries)?;
    list.namespaces.retain(|(_, uri)| uri.len() <= NAMESPACE);
    let lines = Lines::of(text);
    let mut writer = EntryWriter::new(&list, &doc, &lines);
    writer.more = list.unnamed;
    writer.list(limits)?;
    for problem in &list.problems {
        writer.warn(problem.line, &problem.message);
    }
    let EntryWriter { out, mut warnings, more, .. } = writer;
    if more > 0 {
        let message = format!("{more} more problems are not named");
        warnings.push(Warning { offset: 0, message });
    }
    check_length(&out, limits)?;
    Ok(Some((out, warnings)))
}

struct EntryWriter<'a> {
    out: String,
    list: &'a OutlineList,
    /// The tree that the outlines stand in.
    doc: &'a Doc<'a>,
    lines: &'a Lines,
    warnings: Vec<Warning>,
    /// How many problems are not named.
    more: usize,
}

impl<'a> EntryWriter<'a> {
    fn new(list: &'a OutlineList, doc: &'a Doc<'a>, lines: &'a Lines) -> Self {
        Self { out: String::new(), list, doc, lines, warnings: Vec::new(), more: 0 }
    }

    /// Tells of a problem.
    fn warn(&mut self, line: usize, message: &str) {
        if self.warnings.len() < WARNINGS {
            let message = format!("line {line}: {message}");
            self.warnings.push(Warning { offset: self.lines.start(line), message });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    fn list(&mut self, limits: &Limits) -> Result<(), ParseError> {
        let (list, mut counter) = (self.list, LineCounter::new());
        self.out.push_str(&format!("<feed xmlns=\"{ATOM}\"{}>", mark()));
        self.head();
        let ids = ids(list);
        let whole = list.outlines.len().saturating_sub(usize::from(list.is_torn));
        for (outline, id) in list.outlines.iter().zip(&ids).take(whole) {
            check_length(&self.out, limits)?;
            counter.reach(&mut self.out, outline.line);
            let parent = outline.parent.and_then(|at| ids.get(at)).map(String::as_str);
            self.entry(outline, (id, parent), None);
        }
        // What ends early ends early in Atom, too.
        if list.is_whole {
            self.out.push_str("</feed>");
        }
        Ok(())
    }

    fn head(&mut self) {
        let list = self.list;
        let said = |name: &str| {
            let found = list.head.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        let title = list.title.as_deref().unwrap_or_default();
        push_element(&mut self.out, "title", title);
        if let Some(time) = said("dateModified").and_then(well_formed_date) {
            push_element(&mut self.out, "updated", &time.to_string());
        }
        // RFC 4287 section 4.1.1 wants an author where entries name none.
        let name = said("ownerName").or(said("ownerEmail")).unwrap_or(title);
        self.out.push_str("<author>");
        push_element(&mut self.out, "name", if name.is_empty() { "unknown" } else { name });
        for (element, value) in [("uri", said("ownerId")), ("email", said("ownerEmail"))] {
            value.into_iter().for_each(|value| push_element(&mut self.out, element, value));
        }
        self.out.push_str("</author>");
        // A list of what changed since then is none of everything.
        let is_part = list.sharing.as_ref().is_some_and(|sharing| sharing.since.is_some());
        if list.is_whole && !is_part {
            self.out.push_str(&format!("<fh:complete xmlns:fh=\"{HISTORY}\"/>"));
        }
        let rest = list.head.iter().filter(|(name, _)| *name != "dateModified");
        let rest: Vec<_> = rest.map(|(name, value)| (*name, Some(value.as_str()))).collect();
        if !rest.is_empty() {
            push_empty(&mut self.out, "outline:head", &rest);
        }
        if let Some(sharing) = &list.sharing {
            self.out.push_str(&format!("<sx:sharing xmlns:{SX}=\"{SSE_091}\""));
            push_attribute(&mut self.out, "version", &sharing.version);
            for (name, value) in [("since", &sharing.since), ("until", &sharing.until)] {
                value.iter().for_each(|value| push_attribute(&mut self.out, name, value));
            }
            self.out.push('>');
            if let Some(complete) = &sharing.complete {
                let said = [("type", Some("complete")), ("link", Some(complete.as_str()))];
                push_empty(&mut self.out, "sx:related", &said);
            }
            self.out.push_str("</sx:sharing>");
        }
    }

    fn link(&mut self, relation: &str, media: Option<&str>, address: &str) {
        let said = [("rel", Some(relation)), ("type", media), ("href", Some(address))];
        push_empty(&mut self.out, "link", &said);
    }

    /// Adds the entry of an outline with this id, in the one of another id. `updated`: when it was made,
    /// of a version that lost.
    fn entry(
        &mut self,
        outline: &Outline,
        place @ (id, parent): (&str, Option<&str>),
        updated: Option<&Stamp>,
    ) {
        let text = outline.text().unwrap_or_default();
        self.out.push_str("<entry>");
        push_element(&mut self.out, "id", id);
        push_element(&mut self.out, "title", text);
        let site = outline.site().filter(|site| is_web(site));
        let address = address(outline).filter(|address| is_web(address));
        let is_link = matches!(outline.kind(), OutlineKind::Link(_));
        match (site, address) {
            (Some(site), _) => self.link("alternate", None, site),
            // Its type says that it is no site.
            (None, Some(address)) => {
                let media = if is_link { "text/html" } else { "application/xml" };
                self.link("alternate", Some(media), address);
            }
            (None, None) => {}
        }
        if let (Some(_), Some(address)) = (site, address) {
            self.link("related", Some("application/xml"), address);
        }
        if let Some(time) = outline.attribute("created").and_then(well_formed_date) {
            push_element(&mut self.out, "published", &time.to_string());
        }
        if let Some(time) = updated.and_then(Stamp::when) {
            push_element(&mut self.out, "updated", &time.to_string());
        }
        let description = outline.attribute("description").map(str::trim).unwrap_or_default();
        if !description.is_empty() {
            push_element(&mut self.out, "summary", description);
        }
        if site.is_none() && address.is_none() {
            // RFC 4287 section 4.1.2 wants content where there is no link.
            self.out.push_str("<content/>");
        }
        // A site at the address of the feed itself is told from no site by its attribute.
        self.own(outline, text, site.is_some() && site != address);
        // Its text is not told: what an operator redacts must not stay in those within it.
        push_empty(&mut self.out, "outline:parent", &[("ref", parent.or(Some(OUTLINE_ROOT)))]);
        self.sync(outline, place);
        self.out.push_str("</entry>");
    }

    /// Adds the element with what else the outline says. `has_site`: whether its site stands
    /// elsewhere.
    fn own(&mut self, outline: &Outline, text: &str, has_site: bool) {
        self.out.push_str("<outline:outline");
        let mut names: HashSet<(&str, &str)> = HashSet::new();
        let mut bound: HashSet<&str> = HashSet::new();
        for (name, value) in &outline.attributes {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let is_said = is("text") && value.trim() == text || is("htmlUrl") && has_site;
            if is_said {
                continue;
            }
            if !is_name(name) {
                self.warn(outline.line, "an attribute whose name is none in XML is left out");
                continue;
            }
            let (prefix, local) = name.split_once(':').unwrap_or(("", name));
            let uri = if prefix.is_empty() { Some("") } else { self.foreign(prefix) };
            // Names are told apart by what their prefixes mean (Namespaces in XML 1.0 section 6.3).
            let Some(uri) = uri.filter(|uri| names.insert((*uri, local))) else { continue };
            if !prefix.is_empty() && prefix != "xml" && bound.insert(prefix) {
                push_attribute(&mut self.out, &format!("xmlns:{prefix}"), uri);
            }
            push_attribute(&mut self.out, name, value);
        }
        self.out.push('>');
        let element = self.doc.element(outline.node);
        for other in element.into_iter().flat_map(others).take(outline.other.len()) {
            self.other(other);
        }
        self.out.push_str("</outline:outline>");
    }

    /// What a prefix means that is neither ours nor that of sync markup.
    fn foreign(&self, prefix: &str) -> Option<&'a str> {
        if prefix == "xml" {
            return Some(XML);
        }
        let uri = self.list.bound(prefix)?;
        let is_taken = uri == OUTLINE
            || uri.is_empty()
            || Dialect::of(uri).is_some()
            || matches!(prefix, OUTLINE_PREFIX | SX | "xmlns");
        (!is_taken).then_some(uri)
    }

    /// Adds an element that stands in an outline, where it is well-formed.
    fn other(&mut self, element: DocElement<'_, '_>) {
        let is_ours = |ns: Ns| ns.is_sync_markup() || ns == Ns::Named(OUTLINE_PREFIX);
        let is_long = |prefix| element.binding(prefix).is_some_and(|uri| uri.len() > NAMESPACE);
        if is_ours(element.ns()) || element.prefixes_from_around(|_| false).into_iter().any(is_long)
        {
            return;
        }
        let mut markup = String::new();
        push_copy(&mut markup, element, ATOM);
        if Doc::read_flawless(&markup).is_some() {
            self.out.push_str(&markup);
        }
    }

    /// Adds the outline's `sx:sync`.
    fn sync(&mut self, outline: &Outline, place: (&str, Option<&str>)) {
        let Some(sync) = &outline.sync else {
            if outline.has_invalid_sync {
                // What was wrong is said as a warning; the entry is none that takes part.
                self.out.push_str(&format!("<sx:sync xmlns:{SX}=\"{SSE_091}\"/>"));
            }
            return;
        };
        let element = self.doc.element(outline.sync_node);
        let mut lost = element.into_iter().flat_map(|sync| lost_outlines(sync, self.lines));
        let mut text = String::new();
        let (winner, conflicts) = ((&sync.item.winner, sync.conflict), &sync.item.conflicts);
        sx091::sync_element(
            &mut text,
            SX,
            Some(SSE_091),
            winner,
            conflicts,
            &mut |out, conflict| {
                out.push('>');
                let edit = &conflict.history.topmost().stamp;
                let entry = lost.next().flatten().map(|lost| self.lost(lost, place, edit));
                out.push_str(&entry.unwrap_or_default());
            },
        );
        self.out.push_str(&text);
    }

    /// The outline that an `sx:conflict` keeps, as an entry.
    fn lost(
        &self,
        mut outline: Outline,
        (id, around): (&str, Option<&str>),
        edit: &Stamp,
    ) -> String {
        // The list is flat (SSE 1.0 section 3.3).
        if let Some(sync) = &mut outline.sync {
            sync.item.conflicts.clear();
        }
        let mut writer = EntryWriter::new(self.list, self.doc, self.lines);
        let parent = self.list.ours(&outline, "parent").or(around);
        writer.entry(&outline, (id, parent), Some(edit));
        writer.out
    }
}

/// The ids of the entries. An id is the one that the list says, else the outline's address, else
/// made of its text, so that what is moved keeps it; each stands once. Of outlines of one address
/// or text the one goes by it whose id by the texts on the way to it is the least, whatever their
/// order is: lists are sorted anew.
fn ids(list: &OutlineList) -> Vec<String> {
    let mut paths: Vec<OutlinePath> = Vec::with_capacity(list.outlines.len());
    let mut names: Vec<Names<'_>> = Vec::with_capacity(list.outlines.len());
    for outline in &list.outlines {
        let around = outline.parent.and_then(|at| paths.get(at)).cloned().unwrap_or_default();
        let text = outline.text().unwrap_or_default();
        let path = around.with(text);
        let (own, way) = match address(outline) {
            Some(address) => (Cow::Borrowed(address), path.with(address)),
            None => (Cow::Owned(OutlinePath::default().with(text).id(0)), path.clone()),
        };
        names.push(Names { given: list.ours(outline, ID), own, made: way.id(0), way });
        paths.push(path);
    }
    let mut holders: HashMap<&str, (&str, usize)> = HashMap::new();
    for (names, at) in names.iter().zip(0..).filter(|(names, _)| names.given.is_none()) {
        let own = (names.made.as_str(), at);
        let holder = holders.entry(&names.own).or_insert(own);
        *holder = own.min(*holder);
    }
    let mut ids: Vec<String> = Vec::with_capacity(list.outlines.len());
    // What stands in no other is said to stand in that.
    let mut used: HashSet<String> = HashSet::from([OUTLINE_ROOT.to_owned()]);
    let mut ordinals: HashMap<&str, u64> = HashMap::new();
    for (names, at) in names.iter().zip(0..) {
        let holds = holders.get(&*names.own).is_some_and(|(_, holder)| *holder == at);
        let wanted = names.given.or(holds.then_some(&*names.own));
        let id = wanted.filter(|id| !used.contains(*id)).map(str::to_owned);
        let id = id.unwrap_or_else(|| {
            let ordinal = ordinals.entry(&names.made).or_insert(0);
            // Each turn passes over one of the ids that the list says.
            loop {
                let id = names.way.id(*ordinal);
                *ordinal = ordinal.saturating_add(1);
                if !used.contains(&id) {
                    break id;
                }
            }
        });
        used.insert(id.clone());
        ids.push(id);
    }
    ids
}

/// What an outline may go by.
struct Names<'a> {
    /// The id that the list says.
    given: Option<&'a str>,
    /// Wherever it stands: its address, else an id made of its text.
    own: Cow<'a, str>,
    /// The way to it, its address included.
    way: OutlinePath,
    /// The first id that is made of that.
    made: String,
}

/// The address of what an outline is, where it is more than a text.
fn address(outline: &Outline) -> Option<&str> {
    match outline.kind() {
        OutlineKind::Feed(address) | OutlineKind::Include(address) | OutlineKind::Link(address) => {
            Some(address)
        }
        OutlineKind::Text => None,
    }
}
