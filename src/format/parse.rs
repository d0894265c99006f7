//! Bytes of an upstream to a [`FeedDocument`]: charset, Atom 1.0 and 0.3, RSS 2.0, 0.9x and 1.0,
//! JSON Feed, and collections of FeedSync and lists in OPML, which become Atom as they are decoded.
//!
//! Entries are exact slices of the decoded text; what has to be repaired so that they can be
//! republished is repaired in copies. No element is matched by its prefix, no DTD is processed, no
//! entity is expanded, and a fault costs as little as possible: a reference that XML does not know
//! a warning, a broken entry that entry and the word `full`, a broken document what is behind the
//! break. No I/O happens here, and nothing of an upstream is believed but what it says of itself.

mod again;
mod amend;
pub mod collection;
mod decode;
mod dialect;
pub mod discover;
mod entry;
mod error;
mod feed;
mod head;
mod json;
mod limits;
pub mod opml;
mod out;
pub mod sync_markup;

pub use amend::{Amendment, amended, amended_markup};
pub use decode::{Before, Decoded, characters, decode, decode_as};
pub use error::ParseError;
pub use feed::frame::FeedFrame;
pub use limits::Limits;

use tidegate_core::model::{Card, Entry, FeedDocument, Field, Format, Markup};
use tidegate_core::xml;
use url::Url;

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
    let ignored = |c: char| c.is_whitespace() || c == '\u{FEFF}' || c.is_control();
    let trimmed = text.trim_start_matches(ignored);
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

/// What an entry that stands alone says: its canonical projection again. `None` where it cannot be
/// read, which only a fault of this program can bring about.
pub fn again(markup: &Markup) -> Option<Vec<Field<'static>>> {
    Some(entry_again(markup)?.fields().iter().cloned().map(Field::detached).collect())
}

/// The same of all that an entry says.
pub fn entry_again(markup: &Markup) -> Option<Entry<'static>> {
    let text = again::document(markup)?;
    let url = markup.context.base.as_deref().and_then(|base| Url::parse(base).ok());
    let document = document(&text, url.as_ref(), &Limits::default()).ok()?;
    Some(document.entries.into_iter().next()?.detached())
}

/// An entry on its own, with what it inherits and what there is to say of it.
pub fn own(document: &FeedDocument<'_>, entry: &Entry<'_>) -> Markup {
    markup_of(document.format, entry)
}

/// The same of an entry in a format.
fn markup_of(format: Format, entry: &Entry<'_>) -> Markup {
    let short = |text: &str| xml::shortened(text, Card::TEXT_LIMIT).to_owned();
    let link = entry.link.as_deref().filter(|link| xml::address::has_scheme(link));
    Markup {
        format,
        xml: entry.markup.clone().into_owned(),
        context: (*entry.context).clone(),
        slots: entry.slots.clone(),
        card: Card {
            title: entry.title.as_deref().map(short).unwrap_or_default(),
            link: link.filter(|link| link.len() <= Card::TEXT_LIMIT).map(str::to_owned),
            author: entry.author.as_deref().map(short),
            published: entry.published,
            updated: entry.updated,
        },
    }
}
