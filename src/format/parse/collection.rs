//! Collections as plain XML and as JSON (FeedSync for Collections), read as Atom.
//!
//! The specification leaves open what an item says. What means the same in Atom becomes that: `title`
//! and `subject`, `content`, `body` and `description`, ids, links, dates, authors, categories and
//! enclosures. Elements of Atom stay as they are, and everything else is kept as foreign markup. What
//! comes of it is an Atom document with `sx:*`, which is read like any other; each item begins in the
//! line that it had, as far as that can be, so that faults name their place.

mod fields;
mod json;
mod pox;

#[cfg(test)]
mod tests;

use super::out::Out;
use super::{Limits, ParseError, out};

/// The most items of a collection.
pub const ITEM_LIMIT: usize = 100_000;

/// A collection as an Atom document with sync markup; `None` for whatever is no collection. Plain XML whose root
/// is a collection is one though nothing in it is shared.
pub fn transcoded(text: &str) -> Result<Option<String>, ParseError> {
    read(text, &Limits::default(), true)
}

/// The same within limits, of a document that may be anything: it is a collection where it shares something.
pub(super) fn within(text: &str, limits: &Limits) -> Result<Option<String>, ParseError> {
    read(text, limits, false)
}

fn read(text: &str, limits: &Limits, is_expected: bool) -> Result<Option<String>, ParseError> {
    let ignored = |c: char| c.is_whitespace() || c == '\u{FEFF}' || c.is_control();
    let trimmed = text.trim_start_matches(ignored);
    let start = text.len() - trimmed.len();
    let mut out = Out::new(limits);
    let is_one = match trimmed.as_bytes().first() {
        Some(b'{') => json::write(&mut out, text, start, limits)?,
        Some(b'<') if out::root(trimmed) == Some("collection") => {
            pox::write_if_shared(&mut out, text, is_expected || mentions_sync_markup(trimmed))?
        }
        _ => false,
    };
    if is_one { out.finish().map(Some) } else { Ok(None) }
}

/// Whether a text has one of the namespaces of sync markup, as they stand in documents that cannot be
/// read, too.
fn mentions_sync_markup(text: &str) -> bool {
    ["www.microsoft.com/schemas/sse", "www.microsoft.com/schemas/rss/sse", "feedsync.org/2007"]
        .iter()
        .any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
}
