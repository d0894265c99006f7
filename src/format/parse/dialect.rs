//! Which names are a format's own, and how the names of others are written in paths.

use tidegate_core::model::{Family, Format};
use tidegate_core::sup;
use tidegate_core::xml::namespaces::NamespaceScope;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::walker::{OpenElement, WalkedAttribute};

/// A format, as one document writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FeedDialect {
    /// The format.
    pub format: Format,
    /// The namespace of the document's root.
    pub root: Ns,
}

impl FeedDialect {
    /// Whether a namespace is one that the format's own elements stand in. RSS is put in this or
    /// that namespace now and then, and Atom in none.
    pub fn owns(self, ns: Ns) -> bool {
        if self.is_atom() {
            matches!(ns, Ns::Atom | Ns::Atom03) || ns == self.root
        } else {
            matches!(ns, Ns::None | Ns::Rss20 | Ns::Rss10 | Ns::Rss090)
                || (ns == self.root && !self.is_rdf())
        }
    }

    /// A document of a format that stands in the namespace that is its own.
    pub fn usual(format: Format) -> Self {
        let root = if format.family() == Family::Atom { Ns::Atom } else { Ns::None };
        Self { format, root }
    }

    /// Whether its own elements are those of any document of its format.
    pub fn is_usual(self) -> bool {
        let usual = Self::usual(self.format);
        self.is_rdf() || usual.owns(self.root)
    }

    /// Atom 1.0 or 0.3.
    pub fn is_atom(self) -> bool {
        self.format.family() == Family::Atom
    }

    /// RSS 1.0 or 0.90.
    pub const fn is_rdf(self) -> bool {
        matches!(self.format, Format::Rss10 | Format::Rss090)
    }

    /// The local name of an entry.
    pub fn entry(self) -> &'static str {
        if self.is_atom() { "entry" } else { "item" }
    }

    /// Whether an element is a link in Atom's manner: with `href` and `rel`.
    pub fn is_atom_link(self, ns: Ns, local: &str, attributes: &[WalkedAttribute<'_>]) -> bool {
        local == "link"
            && (matches!(ns, Ns::Atom | Ns::Atom03) || self.owns(ns))
            && plain(attributes, "href").is_some()
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

    /// Writes how an element is named in a path. Gives the name where it stands so in the text.
    pub fn segment<'a>(
        self,
        frame: &OpenElement<'a>,
        attributes: &[WalkedAttribute<'a>],
        scope: &NamespaceScope<'a>,
        out: &mut String,
    ) -> Option<&'a str> {
        let link = self.is_atom_link(frame.ns, frame.local, attributes);
        let name = self.name(frame.ns, frame.name, frame.local, scope, out);
        if !link {
            return name;
        }
        out.push('[');
        out.push_str(relation(attributes));
        out.push(']');
        None
    }

    /// Writes a name: the local one where it is the format's own, with the customary prefix where
    /// there is one, with the namespace in braces otherwise.
    pub fn name<'a>(
        self,
        ns: Ns,
        name: &'a str,
        local: &'a str,
        scope: &NamespaceScope<'_>,
        out: &mut String,
    ) -> Option<&'a str> {
        if self.owns(ns) {
            out.push_str(local);
            return Some(local);
        }
        match ns {
            Ns::Other(number) => {
                out.push('{');
                out.push_str(scope.uri(number));
                out.push('}');
                out.push_str(local);
                None
            }
            _ => {
                let prefix = ns.prefix().unwrap_or("{}");
                out.push_str(prefix);
                if ns != Ns::None {
                    out.push(':');
                }
                out.push_str(local);
                let spelled = name.strip_suffix(local).and_then(|p| p.strip_suffix(':'));
                (spelled == Some(prefix)).then_some(name)
            }
        }
    }
}

/// The value of an attribute that stands in no namespace.
pub(super) fn plain<'t>(attributes: &'t [WalkedAttribute<'_>], local: &str) -> Option<&'t str> {
    attributes.iter().find(|a| a.ns == Ns::None && a.local == local).map(|a| a.value.as_ref())
}

/// The relation of a link; RFC 4287 section 4.2.7.2.
pub(super) fn relation<'t>(attributes: &'t [WalkedAttribute<'_>]) -> &'t str {
    let rel = plain(attributes, "rel").map(tidegate_core::xml::trim).filter(|rel| !rel.is_empty());
    let rel = rel.unwrap_or("alternate");
    rel.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(rel)
}

/// How well a link to another form of a feed or an entry leads people to its page: one that is a page comes
/// before one that is none, and then one in the language `lang`, or that says no language.
pub(super) fn page_rank(attributes: &[WalkedAttribute<'_>], lang: Option<&str>) -> (bool, bool) {
    let is_page = plain(attributes, "type").is_none_or(|kind| kind.contains("html"));
    let language = |tag: &str| {
        let subtags = tag.trim().split(['-', '_']);
        subtags.into_iter().next().unwrap_or_default().to_ascii_lowercase()
    };
    let said = plain(attributes, "hreflang").zip(lang);
    (is_page, said.is_none_or(|(said, lang)| language(said) == language(lang)))
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

/// The relations of links that are true of the document itself alone: those that name it, its hub, its SUP
/// document, or its neighbours (RFC 5005, READINGS 3).
const OF_THE_DOCUMENT: [&str; 11] = [
    "self",
    "hub",
    "current",
    "first",
    "last",
    "next",
    "prev",
    "previous",
    "prev-archive",
    "next-archive",
    sup::RELATION,
];

/// Whether a link of this relation has no meaning in another document of the same entries.
pub fn is_of_the_document(relation: &str) -> bool {
    OF_THE_DOCUMENT.iter().any(|own| own.eq_ignore_ascii_case(relation.trim()))
}
