//! Bytes of an upstream to a [`FeedDocument`]: charset, Atom 1.0 and 0.3, RSS 2.0, 0.9x and 1.0,
//! JSON Feed, collections of FeedSync, which become plain XML as they are decoded, and lists in OPML, which become
//! Atom.
//!
//! Entries are exact slices of the decoded text; what has to be repaired so that they can be
//! republished is repaired in copies. No element is matched by its prefix, no DTD is processed, no
//! entity is expanded, and a fault costs as little as possible: a reference that XML does not know
//! a warning, a broken entry that entry and the word `full`, a broken document what is behind the
//! break. No I/O happens here, and nothing of an upstream is believed but what it says of itself.

mod amend;
pub mod collection;
mod decode;
pub(crate) mod dialect;
pub mod discover;
mod entry;
mod feed;
mod head;
mod json;
pub mod opml;
mod out;
pub(crate) mod reading;
pub(crate) mod references;
pub mod sync_markup;

pub use amend::{Amendment, amended, amended_markup};
pub use decode::{Before, Decoded, characters, decode, decode_as};
pub use feed::frame::FeedFrame;

use dialect::FeedDialect;
use entry::DocumentSource;
use references::References;
use std::borrow::Cow;
use std::sync::Arc;
use tidegate_core::model::{
    Card, Completeness, Context, Entry, FeedDocument, Field, Format, Markup, Slots,
};
use tidegate_core::xml;
use tidegate_core::xml::doc::{Doc, DocLimits, LimitReached};
use url::Url;

/// How much of a document is looked at. A limit that is met inside an entry costs that entry (and
/// the document is then salvaged); one that is met elsewhere refuses the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the body, and of the decoded text.
    pub decoded: usize,
    /// What is read of its markup.
    pub markup: DocLimits,
    /// Entries of a document.
    pub entries: usize,
    /// Bytes of one entry.
    pub entry: usize,
    /// Fields of one entry.
    pub fields: usize,
    /// Bytes of one path in the projection.
    pub path: usize,
    /// Bytes that the projections of all entries may take beside the text itself.
    pub projection: usize,
    /// Bytes that conflicts and extras of all entries may take with what they inherit; what is more
    /// costs its entry the `sx:sync`.
    pub sync: usize,
    /// Links, tombstones and other values kept of the head, each.
    pub head_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            decoded: 32 << 20,
            markup: DocLimits::default(),
            entries: 50_000,
            entry: 8 << 20,
            fields: 10_000,
            path: 4096,
            projection: 256 << 20,
            sync: 128 << 20,
            head_values: 10_000,
        }
    }
}

/// Why bytes are not a feed document. The upstream is to blame for every one of these: asking
/// again helps only when it has changed what it sends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing but white space.
    #[error("the upstream sent an empty document; its last good one stays in force")]
    Empty,
    /// More bytes than are taken.
    #[error(
        "the upstream sent a document of {found} bytes (decoded), the limit is {limit}; it must \
         list fewer entries"
    )]
    TooLarge {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A web page, often a login form or an error page.
    #[error(
        "the upstream sent an HTML page{} instead of a feed (byte {at}); check the address, and \
         whether it asks for a login",
        title.as_ref().map(|t| format!(" titled {t:?}")).unwrap_or_default()
    )]
    Html {
        /// The page's title, where it has one.
        title: Option<String>,
        /// Byte offset of its first element.
        at: usize,
    },
    /// Something else that is no feed.
    #[error("the upstream sent {what} instead of a feed (byte {at}); check the address")]
    NotAFeed {
        /// What it is, with its article.
        what: String,
        /// Byte offset of what tells so.
        at: usize,
    },
    /// A broken document without a single whole entry.
    #[error("the upstream sent a broken feed with no whole entry in it: {reason} (byte {at})")]
    NothingWhole {
        /// What is broken.
        reason: String,
        /// Byte offset where it shows.
        at: usize,
    },
    /// A named limit.
    #[error(
        "the upstream's feed has more than {limit} {what} at byte {at}, which is the limit; it is \
         refused"
    )]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// Byte offset where it was met.
        at: usize,
    },
}

impl From<LimitReached> for ParseError {
    fn from(LimitReached { what, limit, at }: LimitReached) -> Self {
        Self::Limit { what, limit, at }
    }
}

impl ParseError {
    /// The byte offset into the decoded text, where one says something.
    pub const fn offset(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::TooLarge { .. } => None,
            Self::Html { at, .. }
            | Self::NotAFeed { at, .. }
            | Self::NothingWhole { at, .. }
            | Self::Limit { at, .. } => Some(*at),
        }
    }
}

/// How far into a text an XML declaration is looked for behind something else, in bytes.
const GARBAGE_LIMIT: usize = 64 << 10;

/// Parses a decoded document. `url` is where it came from; relative references are resolved
/// against it.
pub fn document<'a>(
    text: &'a str,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<FeedDocument<'a>, ParseError> {
    if text.len() > limits.decoded {
        return Err(ParseError::TooLarge { found: text.len(), limit: limits.decoded });
    }
    let trimmed = without_garbage(text);
    if trimmed.is_empty() {
        return Err(ParseError::Empty);
    }
    let at = text.len() - trimmed.len();
    if trimmed.starts_with('{') {
        return json::read(text, at, url, limits);
    }
    let Some(start) = memchr::memchr(b'<', text.as_bytes()) else {
        let what = if trimmed.starts_with('[') { "a JSON list" } else { "plain text" };
        return Err(ParseError::NotAFeed { what: what.to_owned(), at });
    };
    let read = feed::read(text, start, url, limits);
    // Programs that fail print their warnings before the document, with markup in them.
    match &read {
        Err(ParseError::Html { .. } | ParseError::NotAFeed { .. }) => {}
        _ => return read,
    }
    let window = text.as_bytes().get(start + 1..).unwrap_or_default();
    let window = window.get(..GARBAGE_LIMIT).unwrap_or(window);
    match memchr::memmem::find(window, b"<?xml ") {
        Some(later) => feed::read(text, start + 1 + later, url, limits).or(read),
        None => read,
    }
}

/// How much of a feed a document shows that has this fault, where it has one; one without a whole
/// entry shows nothing.
fn completeness(
    fault: Option<(usize, String)>,
    has_no_entries: bool,
) -> Result<Completeness, ParseError> {
    match fault {
        None => Ok(Completeness::Full),
        Some((at, reason)) if has_no_entries => Err(ParseError::NothingWhole { reason, at }),
        Some((at, reason)) => Ok(Completeness::Salvaged(format!("{reason} (byte {at})"))),
    }
}

/// A text without what may stand before a document and means nothing.
fn without_garbage(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}' || c.is_control())
}

/// What an entry that stands alone says: its canonical projection again. `None` where it cannot be
/// read, which only a fault of this program can bring about.
pub fn again(markup: &Markup) -> Option<Vec<Field<'static>>> {
    Some(entry_again(markup)?.fields().iter().cloned().map(Field::detached).collect())
}

/// The same of all that an entry says.
pub fn entry_again(markup: &Markup) -> Option<Entry<'static>> {
    alone(markup.format, &markup.xml, &markup.context)
}

/// An entry that stands alone and inherits `context`.
fn alone(format: Format, text: &str, context: &Context) -> Option<Entry<'static>> {
    let (limits, inherited) = (Limits::default(), Arc::new(context.clone()));
    if format == Format::JsonFeed {
        let entry = json::alone(text, context, &limits)?;
        return Some(Entry { context: inherited, ..entry });
    }
    let doc = Arc::new(Doc::read_in(text, context)?);
    let entry = doc.root()?;
    let dialect = FeedDialect { format, root: entry.ns() };
    let source = DocumentSource { doc: &doc, dialect, limits: &limits, invented: &[] };
    let (entry, _) = entry::read(source, entry, &[], inherited).ok()?;
    Some(entry.detached())
}

/// An entry on its own, with what it inherits and what there is to say of it.
pub fn own(document: &FeedDocument<'_>, entry: &Entry<'_>) -> Markup {
    markup_of(document.format, entry)
}

/// Whether the tree of its document shows that no reference in an entry needs a base.
fn is_absolute(entry: &Entry<'_>) -> bool {
    let is_as_written = matches!(entry.markup, Cow::Borrowed(_));
    let element = entry.projection.element().filter(|_| is_as_written);
    element.is_some_and(|element| References::of(Some(element)).is_empty())
}

/// The same of an entry in a format.
pub fn markup_of(format: Format, entry: &Entry<'_>) -> Markup {
    let short = |text: &str| xml::shortened(text, Card::TEXT_LIMIT).to_owned();
    let link = entry.link.as_deref().filter(|link| xml::address::has_scheme(link));
    Markup {
        format,
        xml: entry.markup.clone().into_owned(),
        context: (*entry.context).clone(),
        slots: Slots { is_absolute: is_absolute(entry), ..entry.slots.clone() },
        card: Card {
            title: entry.title.as_deref().map(short).unwrap_or_default(),
            link: link.filter(|link| link.len() <= Card::TEXT_LIMIT).map(str::to_owned),
            author: entry.author.as_deref().map(short),
            published: entry.published,
            updated: entry.updated,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::golden::{self, said};
    use crate::parse::{self, Limits};
    use tidegate_core::model::{Completeness, FeedDocument};
    use tidegate_core::xml::ns::{ATOM, ATOM03};
    use url::Url;

    fn read(text: &str) -> FeedDocument<'_> {
        parse::document(text, None, &Limits::default()).unwrap()
    }

    #[test]
    fn an_entry_of_no_namespace_says_the_same_again() {
        for (root, namespace) in [
            ("<feed>", ATOM),
            ("<feed version=\"0.3\">", ATOM03),
            ("<feed version=' 0.3 'xmlns=''>", ATOM03),
            ("<feed xmlns:a=\"urn:a\">", ATOM),
            ("<feed\nxmlns a='b'>", ATOM),
        ] {
            // Some libraries write that what is Atom's stands in none.
            let text = format!(
                "{root}<entry xmlns=''><id>j</id></entry><entry><id>i</id><title>t</title>\
                 <title xmlns=''>u</title></entry></feed>"
            );
            let document = read(&text);
            assert_eq!(document.entries.len(), 2, "{root}");
            let why = "the feed stands in no namespace and is taken for Atom";
            assert_eq!(document.warnings.iter().filter(|w| w.message == why).count(), 1, "{root}");
            let skeleton = read(&document.skeleton.text);
            assert!(skeleton.warnings.is_empty(), "{:?}", skeleton.warnings);
            assert_eq!(skeleton.skeleton, document.skeleton, "{root}");
            assert_eq!(
                parse::own(&document, &document.entries[1]).namespace(),
                namespace,
                "{root}"
            );
            for entry in &document.entries {
                let again = parse::again(&parse::own(&document, entry)).unwrap();
                assert_eq!(said(&again), said(entry.fields()), "{root}");
            }
        }
    }

    #[test]
    fn each_format_is_read_for_all_it_says() {
        for (name, url) in [
            ("atom10.xml", "https://harbour.example/feed.atom"),
            ("atom03.xml", "https://lamps.example/atom.xml"),
            ("rss20.xml", "https://bread.example/feed.rss"),
            ("rss091.xml", "https://ads.example/rss"),
            ("rss10.xml", "https://stars.example/rss"),
            ("rss090.xml", "https://ports.example/rss"),
            ("feed11.json", "https://trees.example/feed.json"),
            ("feed10.json", "https://trees.example/feed.json"),
        ] {
            let bytes = std::fs::read(format!("../../tests/fixtures/feeds/{name}")).unwrap();
            golden::same("parse", name, &golden::described(&bytes, Url::parse(url).ok().as_ref()));
        }
    }

    #[test]
    fn every_document_is_read_for_all_it_says() {
        for (folder, documents) in [
            ("others", 3),
            // The examples of both kinds, with quotes that JSON knows, and with numbers and booleans; conflicts are
            // entries in both; an item may have a child that is called like an entry; one may have nothing yet; faults
            // have a place.
            ("collections", 15),
            // What nobody can write costs an outline nothing else, and of two attributes that mean the same one counts.
            // What ends early is told so. What stands in a folder with an id says nothing of its text: not when that
            // changes, and not when it must go.
            ("outlines", 13),
            // Each fault of sync markup names the element that it stands at; of SSE 0.91 by sections 2.4, 2.5 and 5.2.
            ("faults", 1),
            ("faults-0.91", 1),
            // One bad item costs no other its sync, nor does what is broken outside of the entries, or behind them
            // (READINGS 1, row 18). A repaired entry may have lost its sync; that is of interest where a document has
            // such markup at all.
            ("bad-items", 9),
            // Conflicts in conflicts are conflicts of the item (READINGS 1, row 20), and stand alone, with what they
            // inherit and use; SSE 0.91 is read as 1.0; bounds can be compared; extras can stand anywhere.
            ("sync", 21),
            // An id that stands twice counts for none.
            ("twice", 2),
        ] {
            golden::each(&format!("reading/{folder}"), documents, |bytes| {
                golden::described(bytes, None)
            });
        }
    }

    #[test]
    fn an_item_that_cannot_be_rendered_is_broken() {
        let deep = format!("{{\"_x\":{}{}}}", "[".repeat(130), "]".repeat(130));
        for (broken, why) in [
            ("{\"_x\":1e999}", "number out of range"),
            (&deep, "recursion limit exceeded"),
            ("1", "expected a map"),
        ] {
            let items = format!("[{{\"id\":\"a\"}},{broken},{{\"id\":\"b\"}}]");
            let text = format!("{{\"title\":\"t\",\"items\":{items}}}");
            let document = read(&text);
            let Completeness::Salvaged(said) = &document.completeness else { panic!("{broken}") };
            assert!(said.contains(why), "{said}");
            assert_eq!(document.entries.len(), 2, "{broken}");
        }
    }

    #[test]
    fn an_empty_text_is_no_entry() {
        let document =
            read("<rss version='2.0'><channel><item><title>A</title></item></channel></rss>");
        let mut markup = parse::own(&document, &document.entries[0]);
        assert!(parse::again(&markup).is_some());
        markup.xml.clear();
        assert!(parse::again(&markup).is_none());
    }
}
