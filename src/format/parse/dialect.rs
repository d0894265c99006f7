//! Which names are a format's own, and how the names of others are written in paths.

use super::{ParseError, opml};
use std::borrow::Cow;
use tidegate_core::model::{Family, Format};
use tidegate_core::sup;
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::{Ns, OUTLINE_PREFIX};
use tidegate_core::xml::{self, cut, split_name, trimmed};

/// The longest `version` of a root that says which format it is, in bytes.
const VERSION_LIMIT: usize = 64;

/// A format, as one document writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedDialect {
    /// The format.
    pub format: Format,
    /// The namespace of the document's root.
    pub root: Ns,
}

impl FeedDialect {
    /// Whether a namespace is one that the format's own elements stand in. RSS is put in this or
    /// that namespace now and then, and so are collections; some libraries write `xmlns=""` into Atom.
    pub fn owns(self, ns: Ns) -> bool {
        if self.is_atom() {
            matches!(ns, Ns::Atom | Ns::Atom03)
                || ns == self.root
                || (ns == Ns::None && !self.is_collection())
        } else {
            matches!(ns, Ns::None | Ns::Rss20 | Ns::Rss10 | Ns::Rss090)
                || (ns == self.root && !self.is_rdf())
        }
    }

    /// That of the document with this root; `None` where it is no feed.
    pub fn of(root: DocElement<'_, '_>) -> Option<Self> {
        // It is asked for each entry.
        let version = root.short_attribute(Ns::None, "version", VERSION_LIMIT).unwrap_or_default();
        let version = version.trim();
        let declares = |ns| root.declarations().any(|declared| declared.ns() == ns);
        let format = match (root.local(), root.ns()) {
            ("feed", Ns::Atom) if is_list(root) => Format::Opml,
            ("feed", Ns::Atom) => Format::Atom10,
            ("feed", Ns::Atom03) => Format::Atom03,
            ("collection", _) => Format::Collection,
            ("rss", _) if version.starts_with('2') => Format::Rss20,
            ("rss", _) => Format::Rss09x,
            ("RDF", Ns::Rdf) if declares(Ns::Rss090) && !declares(Ns::Rss10) => Format::Rss090,
            ("RDF", Ns::Rdf) => Format::Rss10,
            _ => return None,
        };
        Some(Self { format, root: root.ns() })
    }

    /// Of the family of Atom.
    pub fn is_atom(self) -> bool {
        self.format.family() == Family::Atom
    }

    /// RSS 1.0 or 0.90.
    pub const fn is_rdf(self) -> bool {
        matches!(self.format, Format::Rss10 | Format::Rss090)
    }

    /// A collection of FeedSync.
    pub fn is_collection(self) -> bool {
        self.format == Format::Collection
    }

    /// The local name of an entry.
    pub fn entry(self) -> &'static str {
        if self.is_atom() && !self.is_collection() { "entry" } else { "item" }
    }

    /// Whether an element is a link in Atom's manner: with `href` and `rel`.
    pub fn is_atom_link(self, element: DocElement<'_, '_>) -> bool {
        element.local() == "link"
            && (matches!(element.ns(), Ns::Atom | Ns::Atom03) || self.owns(element.ns()))
            && element.attribute("href").is_some()
    }

    /// Whether an element holds text or markup for people.
    pub fn is_prose(self, ns: Ns, local: &str) -> bool {
        let own = self.owns(ns) || matches!(ns, Ns::Atom | Ns::Atom03);
        match local {
            "title" | "description" | "summary" | "content" | "subtitle" | "tagline" | "rights"
            | "copyright" | "info" => own || ns == Ns::Named("dc"),
            "encoded" => ns == Ns::Named("content"),
            "body" | "div" => ns == Ns::Named("xhtml"),
            _ => false,
        }
    }

    /// Writes how an element is named in a path.
    pub fn segment(self, element: DocElement<'_, '_>, out: &mut String) {
        self.name(element.doc(), element.ns(), element.name(), out);
        if self.is_atom_link(element) {
            out.push('[');
            out.push_str(&relation(element));
            out.push(']');
        }
    }

    /// Writes a spelled name: the local one where it is the format's own, with the customary prefix
    /// where there is one, with the namespace in braces otherwise.
    pub fn name(self, doc: &Doc<'_>, ns: Ns, name: &str, out: &mut String) {
        match ns {
            _ if self.owns(ns) => {}
            Ns::Other(number) => {
                out.push('{');
                out.push_str(doc.uri(number));
                out.push('}');
            }
            Ns::None => out.push_str("{}"),
            _ => {
                out.push_str(ns.prefix().unwrap_or("{}"));
                out.push(':');
            }
        }
        out.push_str(split_name(name).1);
    }
}

/// The relation of a link; RFC 4287 section 4.2.7.2.
pub(super) fn relation<'a>(link: DocElement<'_, 'a>) -> Cow<'a, str> {
    let rel = link.attribute("rel").map(trimmed).filter(|rel| !rel.is_empty());
    let rel = rel.unwrap_or(Cow::Borrowed("alternate"));
    match rel.strip_prefix("http://www.iana.org/assignments/relation/") {
        Some(known) => Cow::Owned(known.to_owned()),
        None => rel,
    }
}

/// Whether a document is a list that was made an Atom document of.
fn is_list(root: DocElement<'_, '_>) -> bool {
    root.attribute_of(Ns::Named(OUTLINE_PREFIX), opml::MARK).is_some()
}

/// How well a link to another form of a feed or an entry leads people to its page: one that is a
/// page comes before one that is none, and then one in the language `lang`, or that says no
/// language.
pub(super) fn page_rank(
    link: DocElement<'_, '_>,
    lang: impl FnOnce() -> Option<String>,
) -> (bool, bool) {
    let is_page = link.attribute("type").is_none_or(|kind| kind.contains("html"));
    let language = |tag: &str| {
        let subtags = tag.trim().split(['-', '_']);
        subtags.into_iter().next().unwrap_or_default().to_ascii_lowercase()
    };
    let said = link.attribute("hreflang").and_then(|said| Some((said, lang()?)));
    (is_page, said.is_none_or(|(said, lang)| language(&said) == language(&lang)))
}

/// Takes a link of this rank where none of the same or a better one is known.
pub(super) fn take_better<T>(
    best: &mut Option<((bool, bool), T)>,
    rank: (bool, bool),
    link: impl FnOnce() -> Option<T>,
) {
    if best.as_ref().is_none_or(|(known, _)| *known < rank)
        && let Some(link) = link()
    {
        *best = Some((rank, link));
    }
}

/// Whether a link of this relation has no meaning in another document of the same entries: it names
/// the document itself, its hub, its SUP document, or its neighbours (RFC 5005, READINGS 3).
pub fn is_of_the_document(relation: &str) -> bool {
    let relation = relation.trim().to_ascii_lowercase();
    relation.eq_ignore_ascii_case(sup::RELATION)
        || matches!(
            relation.as_str(),
            "self"
                | "hub"
                | "current"
                | "first"
                | "last"
                | "next"
                | "prev"
                | "previous"
                | "prev-archive"
                | "next-archive"
        )
}

/// How far an HTML page is searched for its title, in bytes.
const TITLE_WINDOW: usize = 64 << 10;

/// What a document is whose first element is no feed's.
pub fn no_feed(root: DocElement<'_, '_>) -> ParseError {
    let (text, at) = (root.doc().text(), root.span().start);
    let local = root.local().to_ascii_lowercase();
    let before = cut(text, 0..at).to_ascii_lowercase();
    let page = ["html", "head", "body", "script", "meta", "title", "div", "p", "br", "center"];
    if page.contains(&local.as_str()) || before.contains("<!doctype html") {
        return ParseError::Html { title: page_title(text), at };
    }
    let what = match local.as_str() {
        "entry" => "a single Atom entry".to_owned(),
        "opml" => "a subscription list (OPML)".to_owned(),
        "urlset" | "sitemapindex" => "a sitemap".to_owned(),
        _ => format!("an XML document of another kind (<{}>)", xml::shortened(root.name(), 64)),
    };
    ParseError::NotAFeed { what, at }
}

/// The title of a web page, for people.
fn page_title(text: &str) -> Option<String> {
    let window = xml::shortened(text, TITLE_WINDOW).to_ascii_lowercase();
    let open = window.find("<title")?;
    let start = open + window.get(open..)?.find('>')? + 1;
    let end = start + window.get(start..)?.find("</title")?;
    let title = plain_text(text.get(start..end)?);
    let title = xml::shortened(&title, 100).to_owned();
    (!title.is_empty()).then_some(title)
}
