//! Namespaces: what a publisher's prefixes mean.

use crate::model::{OUTLINE_NAMESPACE, OUTLINE_PREFIX};
use crate::xml::trim;
use std::borrow::Cow;
use std::collections::HashMap;

/// A namespace, told apart once where it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ns {
    /// None.
    None,
    /// Atom 1.0.
    Atom,
    /// Atom 0.3.
    Atom03,
    /// RDF.
    Rdf,
    /// RSS 1.0.
    Rss10,
    /// RSS 0.90.
    Rss090,
    /// One of those that RSS 2.0 was put in here and there.
    Rss20,
    /// `xml:`.
    Xml,
    /// Simple Sharing Extensions or FeedSync, any of the four.
    Sx,
    /// Feed History (RFC 5005).
    History,
    /// Tombstones (RFC 6721).
    Tombstones,
    /// A well-known one, by its customary prefix.
    Named(&'static str),
    /// Any other, by its number in [`NamespaceScope`].
    Other(u32),
}

impl Ns {
    /// The customary prefix, where there is one.
    pub const fn prefix(self) -> Option<&'static str> {
        Some(match self {
            Self::None | Self::Other(_) => return None,
            Self::Atom => "atom",
            Self::Atom03 => "atom03",
            Self::Rdf => "rdf",
            Self::Rss10 => "rss",
            Self::Rss090 => "rss090",
            Self::Rss20 => "rss2",
            Self::Xml => "xml",
            Self::Sx => "sx",
            Self::History => "fh",
            Self::Tombstones => "at",
            Self::Named(prefix) => prefix,
        })
    }

    /// It as a number.
    pub(super) fn code(self) -> u32 {
        let code = match self {
            Self::None => None,
            Self::Other(number) => return number.saturating_add(FIRST_OTHER),
            _ => KNOWN.iter().position(|(_, ns)| *ns == self),
        };
        code.and_then(|code| u32::try_from(code + 1).ok()).unwrap_or_default()
    }

    /// The one of a number.
    pub(super) fn from_code(code: u32) -> Self {
        match code.checked_sub(FIRST_OTHER) {
            Some(number) => Self::Other(number),
            None => usize::try_from(code)
                .ok()
                .and_then(|code| KNOWN.get(code.checked_sub(1)?))
                .map_or(Self::None, |(_, ns)| *ns),
        }
    }
}

/// The [`Ns::code`] of the first [`Ns::Other`].
const FIRST_OTHER: u32 = 1 << 10;

/// Well-known namespaces without scheme and without what ends them (`/`, `#`), since both vary in
/// real feeds; compared without case.
const KNOWN: &[(&str, Ns)] = &[
    ("www.w3.org/2005/atom", Ns::Atom),
    ("purl.org/atom/ns", Ns::Atom03),
    ("www.w3.org/1999/02/22-rdf-syntax-ns", Ns::Rdf),
    ("purl.org/rss/1.0", Ns::Rss10),
    ("my.netscape.com/rdf/simple/0.9", Ns::Rss090),
    ("channel.netscape.com/rdf/simple/0.9", Ns::Rss090),
    ("backend.userland.com/rss2", Ns::Rss20),
    ("backend.userland.com/rss", Ns::Rss20),
    ("backend.userland.com/rss091", Ns::Rss20),
    ("blogs.law.harvard.edu/tech/rss", Ns::Rss20),
    ("cyber.law.harvard.edu/rss", Ns::Rss20),
    ("cyber.law.harvard.edu/rss/rss.html", Ns::Rss20),
    ("purl.org/net/rss2", Ns::Rss20),
    ("purl.org/rss/2.0", Ns::Rss20),
    ("www.rssboard.org/rss-specification", Ns::Rss20),
    ("www.w3.org/xml/1998/namespace", Ns::Xml),
    ("www.microsoft.com/schemas/sse", Ns::Sx),
    ("www.microsoft.com/schemas/rss/sse", Ns::Sx),
    ("feedsync.org/2007/feedsync", Ns::Sx),
    ("purl.org/syndication/history/1.0", Ns::History),
    ("purl.org/atompub/tombstones/1.0", Ns::Tombstones),
    ("www.w3.org/1999/xhtml", Ns::Named("xhtml")),
    ("purl.org/rss/1.0/modules/content", Ns::Named("content")),
    ("purl.org/dc/elements/1.1", Ns::Named("dc")),
    ("purl.org/dc/elements/1.0", Ns::Named("dc")),
    ("purl.org/dc/terms", Ns::Named("dcterms")),
    ("search.yahoo.com/mrss", Ns::Named("media")),
    ("www.rssboard.org/media-rss", Ns::Named("media")),
    ("www.itunes.com/dtds/podcast-1.0.dtd", Ns::Named("itunes")),
    ("www.google.com/schemas/play-podcasts/1.0", Ns::Named("googleplay")),
    ("podcastindex.org/namespace/1.0", Ns::Named("podcast")),
    ("github.com/podcastindex-org/podcast-namespace/blob/main/docs/1.0.md", Ns::Named("podcast")),
    ("podlove.org/simple-chapters", Ns::Named("psc")),
    ("purl.org/rss/1.0/modules/slash", Ns::Named("slash")),
    ("wellformedweb.org/commentapi", Ns::Named("wfw")),
    ("purl.org/syndication/thread/1.0", Ns::Named("thr")),
    ("purl.org/rss/1.0/modules/syndication", Ns::Named("sy")),
    ("www.georss.org/georss", Ns::Named("georss")),
    ("www.w3.org/2003/01/geo/wgs84_pos", Ns::Named("geo")),
    ("www.opengis.net/gml", Ns::Named("gml")),
    ("www.youtube.com/xml/schemas/2015", Ns::Named("yt")),
    ("gdata.youtube.com/schemas/2007", Ns::Named("yt")),
    ("schemas.google.com/g/2005", Ns::Named("gd")),
    ("rssnamespace.org/feedburner/ext/1.0", Ns::Named("feedburner")),
    ("webns.net/mvcb", Ns::Named("admin")),
    ("purl.org/rss/1.0/modules/taxonomy", Ns::Named("taxo")),
    ("backend.userland.com/creativecommonsrssmodule", Ns::Named("creativeCommons")),
    ("web.resource.org/cc", Ns::Named("cc")),
    ("creativecommons.org/ns", Ns::Named("cc")),
    ("xmlns.com/foaf/0.1", Ns::Named("foaf")),
    ("source.scripting.com", Ns::Named("source")),
    ("a9.com/-/spec/opensearch/1.1", Ns::Named("opensearch")),
    ("a9.com/-/spec/opensearchrss/1.0", Ns::Named("opensearch")),
    ("www.andymatuschak.org/xml-namespaces/sparkle", Ns::Named("sparkle")),
    ("prismstandard.org/namespaces/basic/2.0", Ns::Named("prism")),
    ("purl.org/rss/1.0/modules/prism", Ns::Named("prism")),
    ("purl.org/rss/1.0/modules/event", Ns::Named("ev")),
    ("www.w3.org/2007/app", Ns::Named("app")),
    ("www.w3.org/1999/xlink", Ns::Named("xlink")),
    ("www.w3.org/2000/svg", Ns::Named("svg")),
    ("www.w3.org/1998/math/mathml", Ns::Named("mathml")),
    ("www.w3.org/2001/xmlschema-instance", Ns::Named("xsi")),
    (OUTLINE_NAMESPACE, Ns::Named(OUTLINE_PREFIX)),
];

/// The URI of the `xml` prefix.
pub const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS_URI: &str = "http://www.w3.org/2000/xmlns/";

fn known(uri: &str) -> Option<Ns> {
    let bare = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let bare = bare.trim_end_matches(['/', '#']);
    KNOWN.iter().find(|(name, _)| name.eq_ignore_ascii_case(bare)).map(|(_, ns)| *ns)
}

/// Whether RSS's own elements stand in this namespace: in none, or in one of those that RSS 2.0 was put
/// in here and there.
pub fn is_rss(uri: &str) -> bool {
    uri.is_empty() || known(uri) == Some(Ns::Rss20)
}

/// The usual URI for a prefix that a document uses without declaring it.
fn customary(prefix: &str) -> Cow<'static, str> {
    let found = KNOWN.iter().find(|(_, ns)| ns.prefix() == Some(prefix));
    match (prefix, found) {
        ("atom" | "atom10" | "a10", _) => Cow::Borrowed("http://www.w3.org/2005/Atom"),
        ("content", _) => Cow::Borrowed("http://purl.org/rss/1.0/modules/content/"),
        ("dc", _) => Cow::Borrowed("http://purl.org/dc/elements/1.1/"),
        ("dcterms", _) => Cow::Borrowed("http://purl.org/dc/terms/"),
        ("media", _) => Cow::Borrowed("http://search.yahoo.com/mrss/"),
        ("slash", _) => Cow::Borrowed("http://purl.org/rss/1.0/modules/slash/"),
        ("sy", _) => Cow::Borrowed("http://purl.org/rss/1.0/modules/syndication/"),
        ("wfw", _) => Cow::Borrowed("http://wellformedweb.org/CommentAPI/"),
        ("rdf", _) => Cow::Borrowed("http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("podcast", _) => Cow::Borrowed("https://podcastindex.org/namespace/1.0"),
        (OUTLINE_PREFIX, _) => Cow::Borrowed(OUTLINE_NAMESPACE),
        (_, Some((uri, Ns::Named(_)))) => Cow::Owned(format!("http://{uri}")),
        _ => Cow::Owned(format!("urn:undeclared:{prefix}")),
    }
}

/// A namespace declaration.
#[derive(Debug, Clone)]
struct Binding<'a> {
    prefix: &'a str,
    uri: Cow<'a, str>,
    ns: Ns,
    /// The last entry that used it from outside of its own declarations.
    used: u32,
}

/// The declarations in scope, innermost last.
#[derive(Debug, Default)]
pub struct NamespaceScope<'a> {
    bindings: Vec<Binding<'a>>,
    /// Declarations made up for prefixes that the document does not declare; they count as the
    /// root's.
    invented: Vec<Binding<'a>>,
    others: HashMap<String, u32>,
    uris: Vec<String>,
    /// Where the declarations of the open entry begin, and its number; none: the number is 0.
    fence: usize,
    entry: u32,
}

impl<'a> NamespaceScope<'a> {
    /// How many declarations are in scope.
    pub const fn declared(&self) -> usize {
        self.bindings.len()
    }

    /// Leaves elements: only the first `length` declarations stay.
    pub fn truncate(&mut self, length: usize) {
        self.bindings.truncate(length);
    }

    /// Enters a declaration, and answers what its namespace is.
    pub fn declare(&mut self, prefix: &'a str, uri: Cow<'a, str>) -> Ns {
        let ns = self.classify(&uri);
        self.bindings.push(Binding { prefix, uri, ns, used: 0 });
        ns
    }

    /// What a namespace is.
    pub fn classify(&mut self, uri: &str) -> Ns {
        let squeezed: Cow<'_, str> = if uri.contains([' ', '\n', '\r', '\t']) {
            Cow::Owned(uri.split_whitespace().collect())
        } else {
            Cow::Borrowed(trim(uri))
        };
        if squeezed.is_empty() {
            return Ns::None;
        }
        if let Some(ns) = known(&squeezed) {
            return ns;
        }
        if let Some(number) = self.others.get(squeezed.as_ref()) {
            return Ns::Other(*number);
        }
        let number = u32::try_from(self.uris.len()).unwrap_or(u32::MAX);
        self.uris.push(squeezed.clone().into_owned());
        self.others.insert(squeezed.into_owned(), number);
        Ns::Other(number)
    }

    /// The namespace URIs of [`Ns::Other`], by its number.
    pub fn take_uris(&mut self) -> Vec<String> {
        std::mem::take(&mut self.uris)
    }

    /// From here on declarations are those of an entry; uses of earlier ones are remembered.
    pub fn enter_entry(&mut self, outer: usize) {
        self.fence = outer;
        self.entry = self.entry.saturating_add(1);
    }

    /// Takes a prefix for what it means, and remembers that the entry used it. `None`: undeclared.
    pub fn resolve(&mut self, prefix: &str) -> Option<Ns> {
        let found = self.bindings.iter_mut().enumerate().rev().find(|(_, b)| b.prefix == prefix);
        if let Some((at, binding)) = found {
            if at < self.fence {
                binding.used = self.entry;
            }
            return Some(binding.ns);
        }
        match prefix {
            "" => return Some(Ns::None),
            "xml" => return Some(Ns::Xml),
            _ => {}
        }
        let invented = self.invented.iter_mut().find(|binding| binding.prefix == prefix)?;
        invented.used = self.entry;
        Some(invented.ns)
    }

    /// Makes up a declaration for a prefix that has none.
    pub fn invent(&mut self, prefix: &'a str) -> Ns {
        let uri = customary(prefix);
        let ns = self.classify(&uri);
        self.invented.push(Binding { prefix, uri, ns, used: self.entry });
        ns
    }

    /// How many declarations were made up.
    pub const fn invented_len(&self) -> usize {
        self.invented.len()
    }

    /// The declarations that were made up, as attributes to add to the root.
    pub fn invented_attributes(&self) -> String {
        self.invented.iter().map(|b| format!(" xmlns:{}=\"{}\"", b.prefix, b.uri)).collect()
    }

    /// What the open entry used from outside, in order of prefix.
    pub fn used_by_entry(&self) -> Vec<(String, String)> {
        let outer = self.bindings.iter().take(self.fence).chain(&self.invented);
        pairs(outer.filter(|binding| binding.used == self.entry))
    }

    /// The declarations that were made up, in order of prefix.
    pub fn all_invented(&self) -> Vec<(String, String)> {
        pairs(self.invented.iter())
    }
}

/// (prefix, URI) in order of prefix; of several with one prefix the last counts, and an emptied
/// default namespace is none.
fn pairs<'b, 'a: 'b>(bindings: impl Iterator<Item = &'b Binding<'a>>) -> Vec<(String, String)> {
    let mut out = std::collections::BTreeMap::new();
    for binding in bindings.filter(|binding| binding.prefix != "xml") {
        out.insert(binding.prefix.to_owned(), binding.uri.clone().into_owned());
    }
    out.into_iter().filter(|(_, uri)| !uri.is_empty()).collect()
}

/// Whether a declaration is one that XML forbids to write: of the prefixes `xml` and `xmlns`, and of
/// other prefixes for the names that belong to these (Namespaces in XML 1.0 section 3).
pub fn is_reserved(prefix: &str, uri: &str) -> bool {
    prefix == "xmlns" || uri == XMLNS_URI || (prefix == "xml") != (uri == XML_URI)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_known_in_their_many_spellings() {
        let mut scope = NamespaceScope::default();
        for (uri, ns) in [
            ("http://www.w3.org/2005/Atom", Ns::Atom),
            (" http://www\n.w3.org/2005/Atom ", Ns::Atom),
            ("https://www.microsoft.com/schemas/rss/sse", Ns::Sx),
            ("http://www.microsoft.com/schemas/rss/sse", Ns::Sx),
            ("http://www.microsoft.com/schemas/sse", Ns::Sx),
            ("http://feedsync.org/2007/feedsync", Ns::Sx),
            ("http://www.itunes.com/DTDs/Podcast-1.0.dtd", Ns::Named("itunes")),
            ("http://purl.org/dc/elements/1.1", Ns::Named("dc")),
            ("", Ns::None),
        ] {
            assert_eq!(scope.classify(uri), ns, "{uri}");
        }
        let other = scope.classify("urn:a");
        assert_eq!(other, scope.classify("urn:a"));
        assert_ne!(other, scope.classify("urn:b"));
    }

    #[test]
    fn an_entry_brings_along_what_it_uses_and_no_more() {
        let mut scope = NamespaceScope::default();
        scope.declare("", Cow::Borrowed("urn:d"));
        scope.declare("b", Cow::Borrowed("urn:b"));
        scope.declare("a", Cow::Borrowed("urn:a"));
        scope.declare("a", Cow::Borrowed("urn:a2"));
        scope.enter_entry(4);
        scope.declare("b", Cow::Borrowed("urn:b2"));
        for prefix in ["", "a", "b"] {
            assert!(scope.resolve(prefix).is_some());
        }
        let text = |p: &str, u: &str| (p.to_owned(), u.to_owned());
        assert_eq!(scope.used_by_entry(), [text("", "urn:d"), text("a", "urn:a2")]);
        assert_eq!(scope.resolve("zz"), None);
    }
}
