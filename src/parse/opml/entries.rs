//! A list as an Atom document: each outline an entry, whatever it stands in, so that lists are compared,
//! shared and merged like any feed.
//!
//! What means the same in Atom becomes that: the text, the address of the site, a description, a date.
//! All but the first two stand in an `outline` element of a namespace of ours as well, with the other
//! attributes, and what the outline stands in is named by another. `sx:sync` of SSE 0.91 stays what it
//! is. An entry begins in the line of its outline, as far as that can be.
//!
//! A list shows everything that it has: one that is there to its end is `fh:complete`, and one that is
//! not makes an Atom document that is cut off, too.

#[cfg(test)]
mod tests;

use super::{OpmlError, OpmlLimits, Outline, OutlineKind, OutlineList, Problem, read};
use crate::model::{OUTLINE_NAMESPACE, OUTLINE_PREFIX, Stamp, Time, Warning, outline_id};
use crate::parse::names::{XML_URI, is_name};
use crate::parse::out::{Out, root};
use crate::parse::sse::{ATOM, SseDialect, Tree, rfc822};
use crate::parse::{Limits, ParseError};
use crate::render::sx091;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The attribute that tells an Atom document which is a list, in the namespace of outlines.
pub(in crate::parse) const MARK: &str = "list";
/// The attribute of an outline that says the id which its entry has elsewhere.
const ID: &str = "id";
/// What an outline stands in that stands in no other.
const ROOT: &str = "body";
/// The prefix of sync markup.
const SX: &str = "sx";
/// How many problems are told as warnings; the rest are counted.
const WARNINGS: usize = 32;
/// The longest name of a namespace that is taken over, in bytes.
const NAMESPACE_BYTES: usize = 256;

/// A list as an Atom document with sync markup; `None` for whatever is no list.
pub fn transcoded(text: &str) -> Result<Option<String>, ParseError> {
    Ok(within(text, &Limits::default())?.map(|(text, _)| text))
}

/// The same within other limits, with what was wrong.
pub(in crate::parse) fn within(
    text: &str,
    limits: &Limits,
) -> Result<Option<(String, Vec<Warning>)>, ParseError> {
    let ignored = |c: char| c.is_whitespace() || c == '\u{FEFF}' || c.is_control();
    if !root(text.trim_start_matches(ignored)).is_some_and(|root| root.eq_ignore_ascii_case("opml"))
    {
        return Ok(None);
    }
    let most =
        OpmlLimits { bytes: limits.decoded, outlines: limits.entries, ..OpmlLimits::default() };
    let list = read(text, &most).map_err(|error| refused(text, &error))?;
    let mut writer = Writer {
        out: Out::new(limits),
        list: &list,
        text,
        namespaces: &list.namespaces,
        unnamable: Vec::new(),
        unnamed: list.unnamed,
    };
    writer.list();
    let Writer { out, unnamable, unnamed, .. } = writer;
    let problems = list.problems.len() + unnamable.len();
    let told = unnamable.iter().chain(&list.problems).take(WARNINGS);
    let told = told.map(|Problem { line, message }| Warning {
        offset: offset(text, *line),
        message: format!("line {line}: {message}"),
    });
    let mut warnings: Vec<Warning> = told.collect();
    let more = problems.saturating_sub(WARNINGS).saturating_add(unnamed);
    if more > 0 {
        let message = format!("{more} more problems are not named");
        warnings.push(Warning { offset: 0, message });
    }
    Ok(Some((out.finish()?, warnings)))
}

fn refused(text: &str, error: &OpmlError) -> ParseError {
    match *error {
        OpmlError::NotAList(what) => ParseError::NotAFeed { what: what.to_owned(), at: 0 },
        OpmlError::TooLarge { found, limit } => ParseError::TooLarge { found, limit },
        OpmlError::Limit { what, limit, line } => {
            ParseError::Limit { what, limit, at: offset(text, line) }
        }
    }
}

/// Where a line begins.
fn offset(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

struct Writer<'a> {
    out: Out,
    list: &'a OutlineList,
    text: &'a str,
    /// What prefixes mean.
    namespaces: &'a [(String, String)],
    /// Attributes whose names are none in XML.
    unnamable: Vec<Problem>,
    /// How many problems are not named.
    unnamed: usize,
}

/// The entry of an outline. Texts are borrowed: one may have many outlines in it.
#[derive(Debug, Clone)]
struct Place<'a> {
    id: Rc<str>,
    /// Of the one that it stands in.
    parent: Option<Parent<'a>>,
    /// Stands for the texts on the way to it.
    path: Rc<str>,
}

#[derive(Debug, Clone)]
struct Parent<'a> {
    id: Rc<str>,
    /// Its text, where that is what it goes by.
    label: Option<&'a str>,
}

impl<'w> Writer<'w> {
    fn list(&mut self) {
        let list = self.list;
        self.out.push("<feed xmlns=\"");
        self.out.push(ATOM);
        self.out.push("\"");
        self.out.attribute(&format!("xmlns:{OUTLINE_PREFIX}"), OUTLINE_NAMESPACE);
        self.out.attribute(&format!("{OUTLINE_PREFIX}:{MARK}"), "OPML");
        self.out.push(">");
        self.head();
        let places = places(list, self.namespaces);
        let whole = list.outlines.len().saturating_sub(usize::from(list.is_torn));
        for (outline, place) in list.outlines.iter().zip(&places).take(whole) {
            if self.out.is_full() {
                return;
            }
            self.out.at(outline.line);
            self.entry(outline, place, None);
        }
        // What ends early ends early in Atom, too.
        if list.is_whole {
            self.out.push("</feed>");
        }
    }

    fn head(&mut self) {
        let list = self.list;
        let said = |name: &str| {
            let found = list.head.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_str())
        };
        let title = list.title.as_deref().unwrap_or_default();
        self.out.element("title", "", title);
        if let Some(time) = said("dateModified").and_then(date) {
            self.out.element("updated", "", &time.to_string());
        }
        // RFC 4287 section 4.1.1 wants an author where entries name none.
        let name = said("ownerName").or(said("ownerEmail")).unwrap_or(title);
        self.out.push("<author>");
        self.out.element("name", "", if name.is_empty() { "unknown" } else { name });
        for (element, value) in [("uri", said("ownerId")), ("email", said("ownerEmail"))] {
            if let Some(value) = value {
                self.out.element(element, "", value);
            }
        }
        self.out.push("</author>");
        // A list of what changed since then is none of everything.
        let is_part = list.sharing.as_ref().is_some_and(|sharing| sharing.since.is_some());
        if list.is_whole && !is_part {
            self.out.push("<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>");
        }
        let rest = list.head.iter().filter(|(name, _)| *name != "dateModified");
        let mut rest = rest.peekable();
        if rest.peek().is_some() {
            self.out.push("<outline:head");
            for (name, value) in rest {
                self.out.attribute(name, value);
            }
            self.out.push("/>");
        }
        if let Some(sharing) = &list.sharing {
            self.out.push("<sx:sharing");
            self.out.attribute(&format!("xmlns:{SX}"), sx091::NAMESPACE);
            self.out.attribute("version", &sharing.version);
            for (name, value) in [("since", &sharing.since), ("until", &sharing.until)] {
                if let Some(value) = value {
                    self.out.attribute(name, value);
                }
            }
            self.out.push(">");
            if let Some(complete) = &sharing.complete {
                self.out.push("<sx:related type=\"complete\"");
                self.out.attribute("link", complete);
                self.out.push("/>");
            }
            self.out.push("</sx:sharing>");
        }
    }

    /// Adds the entry of an outline. `updated`: when it was made, of a version that lost.
    fn entry(&mut self, outline: &Outline, place: &Place<'_>, updated: Option<&Stamp>) {
        let text = outline.text().unwrap_or_default();
        self.out.push("<entry>");
        self.out.element("id", "", &place.id);
        self.out.element("title", "", text);
        let site = outline.site().filter(|site| is_web(site));
        let address = match outline.kind() {
            OutlineKind::Feed(address)
            | OutlineKind::Include(address)
            | OutlineKind::Link(address) => Some(address).filter(|address| is_web(address)),
            OutlineKind::Text => None,
        };
        let is_link = matches!(outline.kind(), OutlineKind::Link(_));
        match (site, address) {
            (Some(site), _) => self.out.link(&[("rel", "alternate"), ("href", site)]),
            // Its type says that it is no site.
            (None, Some(address)) => {
                let media = if is_link { "text/html" } else { "application/xml" };
                self.out.link(&[("rel", "alternate"), ("type", media), ("href", address)]);
            }
            (None, None) => {}
        }
        if let (Some(_), Some(address)) = (site, address) {
            self.out.link(&[("rel", "related"), ("type", "application/xml"), ("href", address)]);
        }
        if let Some(time) = outline.attribute("created").and_then(date) {
            self.out.element("published", "", &time.to_string());
        }
        if let Some(time) = updated.and_then(Stamp::when) {
            self.out.element("updated", "", &time.to_string());
        }
        let description = outline.attribute("description").map(str::trim).unwrap_or_default();
        if !description.is_empty() {
            self.out.element("summary", "", description);
        }
        if site.is_none() && address.is_none() {
            // RFC 4287 section 4.1.2 wants content where there is no link.
            self.out.push("<content/>");
        }
        // A site at the address of the feed itself is told from no site by its attribute.
        self.own(outline, text, site.is_some() && site != address);
        let (id, label) = match &place.parent {
            Some(Parent { id, label }) => (&**id, *label),
            None => (ROOT, None),
        };
        self.out.push("<outline:parent");
        self.out.attribute("ref", id);
        self.out.push(">");
        self.out.text(label.unwrap_or_default());
        self.out.push("</outline:parent>");
        self.sync(outline, place);
        self.out.push("</entry>");
    }

    /// Adds the element with what else the outline says. `has_site`: whether its site stands elsewhere.
    fn own(&mut self, outline: &Outline, text: &str, has_site: bool) {
        self.out.push("<outline:outline");
        let mut names: HashSet<(&str, &str)> = HashSet::new();
        let mut bound: HashSet<&str> = HashSet::new();
        for (name, value) in &outline.attributes {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let is_said = is("text") && value.trim() == text || is("htmlUrl") && has_site;
            if is_said {
                continue;
            }
            if !is_name(name) {
                self.unnamable(outline.line);
                continue;
            }
            let Some((prefix, local)) = name.split_once(':') else {
                if names.insert(("", name)) {
                    self.out.attribute(name, value);
                }
                continue;
            };
            // Names are told apart by what their prefixes mean (Namespaces in XML 1.0 section 6.3).
            let Some(uri) = self.foreign(prefix).filter(|uri| names.insert((uri, local))) else {
                continue;
            };
            if prefix != "xml" && bound.insert(prefix) {
                self.out.attribute(&format!("xmlns:{prefix}"), uri);
            }
            self.out.attribute(name, value);
        }
        self.out.push(">");
        for place in &outline.other {
            self.other(self.text.get(place.clone()).unwrap_or_default());
        }
        self.out.push("</outline:outline>");
    }

    /// Notes an attribute that nobody can write.
    fn unnamable(&mut self, line: usize) {
        if self.unnamable.len() < WARNINGS {
            let message = "an attribute whose name is none in XML is left out".to_owned();
            self.unnamable.push(Problem { line, message });
        } else {
            self.unnamed = self.unnamed.saturating_add(1);
        }
    }

    /// What a prefix means that is neither ours nor that of sync markup.
    fn foreign(&self, prefix: &str) -> Option<&'w str> {
        if prefix == "xml" {
            return Some(XML_URI);
        }
        let uri = bound(self.namespaces, prefix)?;
        let is_taken = uri == OUTLINE_NAMESPACE
            || uri.is_empty()
            || uri.len() > NAMESPACE_BYTES
            || SseDialect::of(uri).is_some()
            || matches!(prefix, OUTLINE_PREFIX | SX | "xmlns");
        (!is_taken).then_some(uri)
    }

    /// Adds markup that stands in an outline, where it is well-formed.
    fn other(&mut self, markup: &str) {
        let mut text = String::from("<around");
        self.bind(&mut text, markup);
        text.push('>');
        text.push_str(markup);
        text.push_str("</around>");
        let Ok(tree) = Tree::read(&text) else { return };
        for (id, _) in tree.children(0) {
            let (namespace, _) = tree.name(id);
            if SseDialect::of(namespace).is_none() && namespace != OUTLINE_NAMESPACE {
                self.out.copy(&tree, id);
            }
        }
    }

    /// Adds declarations of the prefixes that a piece of the list may use.
    fn bind(&self, out: &mut String, markup: &str) {
        for (prefix, uri) in self.namespaces {
            let is_used = || markup.contains(&format!("{prefix}:"));
            if is_name(prefix)
                && !prefix.starts_with("xml")
                && !uri.is_empty()
                && uri.len() <= NAMESPACE_BYTES
                && is_used()
            {
                crate::render::sx::attribute(out, &format!("xmlns:{prefix}"), uri);
            }
        }
    }

    /// Adds the outline's `sx:sync`.
    fn sync(&mut self, outline: &Outline, place: &Place<'_>) {
        let Some(sync) = &outline.sync else {
            if outline.has_invalid_sync {
                // What was wrong is said as a warning; the entry is none that takes part.
                self.out.push("<sx:sync");
                self.out.attribute(&format!("xmlns:{SX}"), sx091::NAMESPACE);
                self.out.push("/>");
            }
            return;
        };
        let declare = Some(sx091::NAMESPACE);
        let mut text = String::new();
        sx091::sync_element(&mut text, SX, declare, sync, &mut |out, conflict| {
            out.push('>');
            out.push_str(&self.lost(&conflict.data, place, &conflict.edit).unwrap_or_default());
        });
        self.out.push(&text);
    }

    /// What an `sx:conflict` keeps, as an entry; `None` where no outline can be read from it.
    fn lost(&self, markup: &str, place: &Place<'_>, edit: &Stamp) -> Option<String> {
        let mut text = String::from("<opml");
        self.bind(&mut text, markup);
        text.push_str("><body>");
        text.push_str(markup);
        text.push_str("</body></opml>");
        let list = read(&text, &OpmlLimits::default()).ok()?;
        let mut outline = list.outlines.first()?.clone();
        // The list is flat (SSE 1.0 section 3.3).
        if let Some(sync) = &mut outline.sync {
            sync.conflicts.clear();
        }
        let limits = Limits::default();
        let mut writer = Writer {
            out: Out::new(&limits),
            list: &list,
            text: &text,
            namespaces: &list.namespaces,
            unnamable: Vec::new(),
            unnamed: 0,
        };
        let parent = given(&outline, "parent", &list.namespaces);
        let parent = parent.map(|id| Parent { id: id.into(), label: None });
        let place = Place { parent: parent.or_else(|| place.parent.clone()), ..place.clone() };
        writer.entry(&outline, &place, Some(edit));
        writer.out.finish().ok()
    }
}

/// What a prefix is bound to.
fn bound<'a>(namespaces: &'a [(String, String)], prefix: &str) -> Option<&'a str> {
    let found = namespaces.iter().find(|(known, _)| known == prefix);
    found.map(|(_, uri)| uri.as_str())
}

/// The value of an attribute of ours.
fn given<'a>(outline: &'a Outline, name: &str, namespaces: &[(String, String)]) -> Option<&'a str> {
    let found = outline.attributes.iter().find(|(written, _)| {
        written.split_once(':').is_some_and(|(prefix, local)| {
            local == name && bound(namespaces, prefix) == Some(OUTLINE_NAMESPACE)
        })
    });
    found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

/// The ids of the entries and what each stands in. An id is the one that the list says, else the
/// outline's address, else made of the texts on the way to it; each stands once.
fn places<'a>(list: &'a OutlineList, namespaces: &[(String, String)]) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::with_capacity(list.outlines.len());
    let mut used: HashSet<Rc<str>> = HashSet::new();
    let mut ordinals: HashMap<String, u64> = HashMap::new();
    for outline in &list.outlines {
        let around = outline.parent.and_then(|at| Some((places.get(at)?, list.outlines.get(at)?)));
        let above = around.map(|(place, _)| Rc::clone(&place.path)).unwrap_or_default();
        let text = outline.text().unwrap_or_default();
        let path: Rc<str> = outline_id([&*above, text], 0).into();
        let parent = around.map(|(place, around)| Parent {
            id: Rc::clone(&place.id),
            // One that is shared keeps its id when its text changes.
            label: around.text().filter(|_| around.sync.is_none()),
        });
        let address = match outline.kind() {
            OutlineKind::Feed(address)
            | OutlineKind::Include(address)
            | OutlineKind::Link(address) => Some(address),
            OutlineKind::Text => None,
        };
        let wanted = given(outline, ID, namespaces).or(address);
        let id: Rc<str> = match wanted.filter(|id| !used.contains(*id)) {
            Some(id) => id.into(),
            None => {
                let way = || [&*above, text].into_iter().chain(address);
                let ordinal = ordinals.entry(outline_id(way(), 0)).or_insert(0);
                let id = outline_id(way(), *ordinal);
                *ordinal = ordinal.saturating_add(1);
                id.into()
            }
        };
        used.insert(Rc::clone(&id));
        places.push(Place { id, parent, path });
    }
    places
}

/// A date as lists write it (RFC 822), and as they should not.
fn date(text: &str) -> Option<Time> {
    rfc822(text).or_else(|| Time::parse_rfc3339(text.trim()).ok())
}

/// Whether an address can be followed by a reader.
fn is_web(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|s| s.eq_ignore_ascii_case("http") || s.eq_ignore_ascii_case("https"))
}
