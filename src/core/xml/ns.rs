//! Namespaces that the gateway knows: their URIs, and the spellings of them that feeds have.

use super::trim;
use std::borrow::Cow;
use std::collections::HashMap;

/// Atom 1.0 (RFC 4287).
pub const ATOM: &str = "http://www.w3.org/2005/Atom";
/// Atom 0.3.
pub const ATOM03: &str = "http://purl.org/atom/ns#";
/// RDF.
pub const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// The prefix `xml` (Namespaces in XML 1.0 section 3).
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The prefix `xmlns`.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
/// Simple Sharing Extensions 1.0.
pub const SSE: &str = "http://www.microsoft.com/schemas/sse";
/// Simple Sharing Extensions 0.91.
pub const SSE_091: &str = "http://www.microsoft.com/schemas/rss/sse";
/// FeedSync.
pub const FEED_SYNC: &str = "http://feedsync.org/2007/feedsync";
/// `fh:archive` and `fh:complete` (Feed History draft-05, RFC 5005).
pub const HISTORY: &str = "http://purl.org/syndication/history/1.0";
/// `at:deleted-entry` (RFC 6721).
pub const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";
/// XHTML.
pub const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// `content:encoded`.
pub const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
/// Dublin Core.
pub const DC: &str = "http://purl.org/dc/elements/1.1/";
/// Media RSS.
pub const MEDIA: &str = "http://search.yahoo.com/mrss/";
/// Apple's podcasts.
pub const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";
/// `slash:comments`.
pub const SLASH: &str = "http://purl.org/rss/1.0/modules/slash/";
/// `wfw:comment` and `wfw:commentRss`.
pub const WFW: &str = "http://wellformedweb.org/CommentAPI/";
/// `thr:count` (RFC 4685).
pub const THREADING: &str = "http://purl.org/syndication/thread/1.0";
/// XLink.
pub const XLINK: &str = "http://www.w3.org/1999/xlink";
/// What an outline says that Atom has no element for: an entry of a list has it.
pub const OUTLINE: &str = "urn:tidegate:outline";
/// The prefix of [`OUTLINE`] in what the gateway writes.
pub const OUTLINE_PREFIX: &str = "outline";
const PODCAST: &str = "https://podcastindex.org/namespace/1.0";

/// A namespace, told apart once where it is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ns {
    /// None.
    #[default]
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
    /// Simple Sharing Extensions 1.0 or FeedSync.
    Sx,
    /// Simple Sharing Extensions 0.91.
    Sx091,
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
            Self::Sx | Self::Sx091 => "sx",
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

    /// Whether it is one of sync markup, in any dialect.
    pub const fn is_sync_markup(self) -> bool {
        matches!(self, Self::Sx | Self::Sx091)
    }

    /// The namespace that a URI names, in any of its spellings.
    pub fn of(uri: &str) -> Option<Self> {
        known(uri).map(|(_, ns)| ns)
    }
}

/// The [`Ns::code`] of the first [`Ns::Other`].
const FIRST_OTHER: u32 = 1 << 10;

/// Namespaces by their URIs. Of several with one prefix the first is the usual one.
const KNOWN: &[(&str, Ns)] = &[
    (ATOM, Ns::Atom),
    (ATOM03, Ns::Atom03),
    (RDF, Ns::Rdf),
    ("http://purl.org/rss/1.0/", Ns::Rss10),
    ("http://my.netscape.com/rdf/simple/0.9/", Ns::Rss090),
    ("http://channel.netscape.com/rdf/simple/0.9/", Ns::Rss090),
    ("http://my.netscape.com/publish/formats/rss-0.9/", Ns::Rss090),
    ("http://backend.userland.com/rss2", Ns::Rss20),
    ("http://backend.userland.com/rss", Ns::Rss20),
    ("http://backend.userland.com/rss091", Ns::Rss20),
    ("http://blogs.law.harvard.edu/tech/rss", Ns::Rss20),
    ("http://cyber.law.harvard.edu/rss/", Ns::Rss20),
    ("http://cyber.law.harvard.edu/rss/rss.html", Ns::Rss20),
    ("http://purl.org/net/rss2", Ns::Rss20),
    ("http://purl.org/rss/2.0/", Ns::Rss20),
    ("http://www.rssboard.org/rss-specification", Ns::Rss20),
    (XML, Ns::Xml),
    (SSE, Ns::Sx),
    (SSE_091, Ns::Sx091),
    (FEED_SYNC, Ns::Sx),
    (HISTORY, Ns::History),
    (TOMBSTONES, Ns::Tombstones),
    (XHTML, Ns::Named("xhtml")),
    (CONTENT, Ns::Named("content")),
    (DC, Ns::Named("dc")),
    ("http://purl.org/dc/terms/", Ns::Named("dcterms")),
    (MEDIA, Ns::Named("media")),
    (ITUNES, Ns::Named("itunes")),
    ("http://www.google.com/schemas/play-podcasts/1.0", Ns::Named("googleplay")),
    (PODCAST, Ns::Named("podcast")),
    ("http://podlove.org/simple-chapters", Ns::Named("psc")),
    (SLASH, Ns::Named("slash")),
    (WFW, Ns::Named("wfw")),
    (THREADING, Ns::Named("thr")),
    ("http://purl.org/rss/1.0/modules/syndication/", Ns::Named("sy")),
    ("http://www.georss.org/georss", Ns::Named("georss")),
    ("http://www.w3.org/2003/01/geo/wgs84_pos#", Ns::Named("geo")),
    ("http://www.opengis.net/gml", Ns::Named("gml")),
    ("http://www.youtube.com/xml/schemas/2015", Ns::Named("yt")),
    ("http://gdata.youtube.com/schemas/2007", Ns::Named("yt")),
    ("http://schemas.google.com/g/2005", Ns::Named("gd")),
    ("http://rssnamespace.org/feedburner/ext/1.0", Ns::Named("feedburner")),
    ("http://webns.net/mvcb/", Ns::Named("admin")),
    ("http://purl.org/rss/1.0/modules/taxonomy/", Ns::Named("taxo")),
    ("http://backend.userland.com/creativeCommonsRssModule", Ns::Named("creativeCommons")),
    ("http://web.resource.org/cc/", Ns::Named("cc")),
    ("http://creativecommons.org/ns#", Ns::Named("cc")),
    ("http://xmlns.com/foaf/0.1/", Ns::Named("foaf")),
    ("http://source.scripting.com/", Ns::Named("source")),
    ("http://a9.com/-/spec/opensearch/1.1/", Ns::Named("opensearch")),
    ("http://a9.com/-/spec/opensearchrss/1.0/", Ns::Named("opensearch")),
    ("http://www.andymatuschak.org/xml-namespaces/sparkle", Ns::Named("sparkle")),
    ("http://prismstandard.org/namespaces/basic/2.0/", Ns::Named("prism")),
    ("http://purl.org/rss/1.0/modules/prism/", Ns::Named("prism")),
    ("http://purl.org/rss/1.0/modules/event/", Ns::Named("ev")),
    ("http://www.w3.org/2007/app", Ns::Named("app")),
    (XLINK, Ns::Named("xlink")),
    ("http://www.w3.org/2000/svg", Ns::Named("svg")),
    ("http://www.w3.org/1998/Math/MathML", Ns::Named("mathml")),
    ("http://www.w3.org/2001/XMLSchema-instance", Ns::Named("xsi")),
    (OUTLINE, Ns::Named(OUTLINE_PREFIX)),
];

/// Other names of some of them, each with the one that counts.
const ALIASES: &[(&str, &str)] = &[
    ("http://purl.org/dc/elements/1.0/", DC),
    ("http://www.rssboard.org/media-rss", MEDIA),
    ("https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md", PODCAST),
];

/// The most bytes of scheme and end that are left out of a URI of the tables.
const AROUND: usize = "https://".len() + "/".len();

/// A URI without what varies in real feeds beside its case: the scheme, and what ends it (`/`,
/// `#`).
fn bare(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.strip_prefix("//").unwrap_or(rest).trim_end_matches(['/', '#'])
}

/// A namespace with its canonical URI.
fn known(uri: &str) -> Option<(&'static str, Ns)> {
    if let Some(spelled_so) = KNOWN.iter().find(|(canonical, _)| *canonical == uri) {
        return Some(*spelled_so);
    }
    let squeezed: Cow<'_, str> = match uri.contains(char::is_whitespace) {
        true => Cow::Owned(uri.split_whitespace().collect()),
        false => Cow::Borrowed(uri),
    };
    let written = bare(&squeezed);
    let is_written = |uri: &str| {
        let lengths = written.len()..=written.len() + AROUND;
        lengths.contains(&uri.len()) && bare(uri).eq_ignore_ascii_case(written)
    };
    let alias = ALIASES.iter().find(|(other, _)| is_written(other));
    KNOWN
        .iter()
        .find(|(uri, _)| alias.map_or_else(|| is_written(uri), |(_, meant)| uri == meant))
        .copied()
}

/// The canonical spelling of a namespace; one that is not known keeps its own.
pub fn canonical(uri: &str) -> &str {
    known(uri).map_or(uri, |(canonical, _)| canonical)
}

/// Whether RSS's own elements stand in this namespace: in none, or in one of those that RSS 2.0 was
/// put in here and there.
pub fn is_rss(uri: &str) -> bool {
    uri.is_empty() || Ns::of(uri) == Some(Ns::Rss20)
}

/// The URI for a prefix that a document uses without declaring it. What makes an item shared or
/// deleted has to be declared.
fn customary(prefix: &str) -> Cow<'static, str> {
    let prefix = if matches!(prefix, "atom10" | "a10") { "atom" } else { prefix };
    let is_usual = |ns: Ns| matches!(ns, Ns::Atom | Ns::Rdf | Ns::Named(_));
    let found = KNOWN.iter().find(|(_, ns)| is_usual(*ns) && ns.prefix() == Some(prefix));
    match found {
        Some((uri, _)) => Cow::Borrowed(uri),
        None => Cow::Owned(format!("urn:undeclared:{prefix}")),
    }
}

/// Whether a declaration is one that XML forbids to write: of the prefixes `xml` and `xmlns`, and
/// of other prefixes for the names that belong to these (Namespaces in XML 1.0 section 3).
pub fn is_reserved(prefix: &str, uri: &str) -> bool {
    prefix == "xmlns" || uri == XMLNS || (prefix == "xml") != (uri == XML)
}

/// A namespace declaration.
#[derive(Debug, Clone)]
struct Binding<'a> {
    prefix: &'a str,
    uri: Cow<'a, str>,
    /// The [`Ns::code`] of its namespace.
    ns: u32,
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
    /// Whether one of sync markup was declared anywhere.
    pub(super) has_sync_markup: bool,
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

    /// Enters a declaration, and answers the [`Ns::code`] of its namespace.
    pub(super) fn declare(&mut self, prefix: &'a str, uri: Cow<'a, str>) -> u32 {
        let ns = self.classify(&uri).code();
        self.bindings.push(Binding { prefix, uri, ns });
        ns
    }

    /// What a namespace is.
    pub fn classify(&mut self, uri: &str) -> Ns {
        let uri = trim(uri);
        if uri.is_empty() {
            return Ns::None;
        }
        if let Some(ns) = Ns::of(uri) {
            self.has_sync_markup |= ns.is_sync_markup();
            return ns;
        }
        if let Some(number) = self.others.get(uri) {
            return Ns::Other(*number);
        }
        let number = u32::try_from(self.uris.len()).unwrap_or(u32::MAX);
        self.uris.push(uri.to_owned());
        self.others.insert(uri.to_owned(), number);
        Ns::Other(number)
    }

    /// The [`Ns::code`] of what a prefix means. `None`: undeclared.
    pub(super) fn resolve(&self, prefix: &str) -> Option<u32> {
        let bound = |all: &[Binding<'_>]| {
            all.iter().rev().find(|binding| binding.prefix == prefix).map(|binding| binding.ns)
        };
        bound(&self.bindings).or_else(|| match prefix {
            "" => Some(Ns::None.code()),
            "xml" => Some(Ns::Xml.code()),
            _ => bound(&self.invented),
        })
    }

    /// Makes up a declaration for a prefix that has none.
    pub(super) fn invent(&mut self, prefix: &'a str) -> u32 {
        let uri = customary(prefix);
        let ns = self.classify(&uri).code();
        self.invented.push(Binding { prefix, uri, ns });
        ns
    }

    /// How many declarations were made up.
    pub const fn invented_len(&self) -> usize {
        self.invented.len()
    }

    /// The namespace URIs of [`Ns::Other`] by its number, and the declarations that were made up, as
    /// (prefix, URI).
    pub fn into_parts(self) -> (Vec<String>, Vec<(String, String)>) {
        let made_up = self.invented.into_iter();
        (self.uris, made_up.map(|b| (b.prefix.to_owned(), b.uri.into_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_namespaces_have_numbers() {
        let mut scope = NamespaceScope::default();
        assert_eq!(scope.classify(" "), Ns::None);
        let other = scope.classify("urn:a");
        assert_eq!(other, scope.classify(" urn:a\n"));
        assert_ne!(other, scope.classify("urn:b"));
    }

    #[test]
    fn a_namespace_is_known_in_its_many_spellings() {
        for (written, uri, ns) in [
            ("http://www.w3.org/2005/Atom", ATOM, Ns::Atom),
            ("https://www.w3.org/2005/Atom", ATOM, Ns::Atom),
            ("//www.w3.org/2005/Atom/", ATOM, Ns::Atom),
            (" http://www\n.w3.org/2005/Atom ", ATOM, Ns::Atom),
            ("https://www.microsoft.com/schemas/rss/sse", SSE_091, Ns::Sx091),
            ("http://www.microsoft.com/schemas/sse/", SSE, Ns::Sx),
            ("http://feedsync.org/2007/FeedSync#", FEED_SYNC, Ns::Sx),
            ("http://www.itunes.com/DTDs/Podcast-1.0.dtd", ITUNES, Ns::Named("itunes")),
            ("http://purl.org/rss/1.0/modules/content", CONTENT, Ns::Named("content")),
            ("http://purl.org/dc/elements/1.1", DC, Ns::Named("dc")),
            ("http://purl.org/dc/elements/1.0/", DC, Ns::Named("dc")),
            ("https://www.rssboard.org/media-rss", MEDIA, Ns::Named("media")),
        ] {
            assert_eq!(known(written), Some((uri, ns)), "{written}");
        }
        for other in ["", "urn:a", "http://www.w3.org/2005/Atoms"] {
            assert_eq!((Ns::of(other), canonical(other)), (None, other));
        }
    }

    #[test]
    fn each_is_its_own_canonical_spelling() {
        for (uri, ns) in KNOWN {
            assert_eq!(known(uri), Some((*uri, *ns)));
        }
        assert!(ALIASES.iter().all(|(_, meant)| canonical(meant) == *meant));
    }

    #[test]
    fn an_undeclared_prefix_has_its_customary_meaning() {
        for (prefix, uri) in [("atom10", ATOM), ("dc", DC), ("rdf", RDF), ("itunes", ITUNES)] {
            assert_eq!(customary(prefix), uri);
        }
        for prefix in ["sx", "at", "fh", "rss", "zz"] {
            assert_eq!(customary(prefix), format!("urn:undeclared:{prefix}"));
        }
    }
}
