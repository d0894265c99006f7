//! What a document says of sharing: the `sx:sync` of its entries, and its `sx:sharing`.
//!
//! The entries themselves are read like any others. Their sync markup is read a second time by
//! [`super::sse`], which is strict: a document that is not well-formed costs all its entries their
//! sync, and nothing else. One that merely ends early keeps it: its whole entries are read as if it
//! had been closed behind them, or each would be taken for a plain one with an id of ours.

use super::sse::{self, Payload, SseItem};
use super::{Limits, document, own};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tidegate_core::model::{
    Completeness, EndpointId, EntrySync, Family, FeedDocument, Incoming, Markup, Shared, Sharing,
    SyncExtras, SyncId, Time, Warning,
};
use tidegate_core::sync::Item091;
use tidegate_core::xml::ns::ATOM;
use tidegate_core::xml::push_attribute;
use url::Url;

/// What is said of an entry whose sync markup is not valid, behind why.
pub(crate) const TAKEN_FOR_PLAIN: &str = "; the entry is taken for a plain one";

/// Adds what a document says of sharing that has elements of sync markup.
pub(super) fn add(document: &mut FeedDocument<'_>, url: Option<&Url>) {
    let text = document.text;
    let closed = closed(document);
    let read = sse::read(text).or_else(|error| match &closed {
        Some(closed) => sse::read(closed).map_err(|_| error),
        None => Err(error),
    });
    let feed = match read {
        Ok(feed) => feed,
        Err(error) => {
            let message = format!("its sync markup cannot be read: {error}");
            document.warnings.push(Warning { offset: 0, message });
            for entry in &mut document.entries {
                entry.sync = Some(EntrySync::Invalid);
            }
            return;
        }
    };
    let said = feed.sharing();
    let expires = said.as_ref().and_then(|said| said.expires);
    document.head.hints.expires = expires.and_then(|at| Time::parse_rfc3339(at.trim()).ok());
    document.sharing = said.map(|said| Sharing {
        bounds: said.bounds(),
        complete: said.complete(url).map(String::from),
    });
    let mut read: HashMap<usize, EntrySync> = HashMap::new();
    let mut seen: HashMap<SyncId, usize> = HashMap::new();
    let mut repeated: HashSet<SyncId> = HashSet::new();
    let mut odd = OddNames::default();
    for item in &feed.items {
        let (at, said) = (item.span.start, of(item));
        let sync = match said {
            None => continue,
            Some(Ok(incoming)) => {
                odd.look(&incoming, at);
                if item.extras.is_none() {
                    let message = format!(
                        "its sx:sync has more than {} bytes that SSE does not know; they are not kept",
                        SyncExtras::LIMIT
                    );
                    document.warnings.push(Warning { offset: at, message });
                }
                if let Some(first) = seen.insert(incoming.id().clone(), at) {
                    repeated.insert(incoming.id().clone());
                    let message = format!(
                        "the sync id {} is that of the entry at byte {first} again; an id may \
                         stand once in a feed, so that it counts for none",
                        incoming.id()
                    );
                    document.warnings.push(Warning { offset: at, message });
                }
                EntrySync::Valid(Arc::new(incoming))
            }
            Some(Err(message)) => {
                let message = message + TAKEN_FOR_PLAIN;
                document.warnings.push(Warning { offset: at, message });
                EntrySync::Invalid
            }
        };
        read.insert(at, sync);
    }
    document.warnings.extend(odd.warning());
    for entry in &mut document.entries {
        entry.sync = read.remove(&entry.span.start).map(|sync| match sync {
            EntrySync::Valid(incoming) if repeated.contains(incoming.id()) => EntrySync::Invalid,
            sync => sync,
        });
    }
}

/// Ids of items and endpoints that are no Namespace Specific Strings (SSE 1.0 sections 2.1.1 and 2.4).
/// They are taken all the same, for they are compared as they stand; other programs may refuse them.
#[derive(Default)]
struct OddNames {
    first: Option<(usize, String)>,
    seen: HashSet<String>,
}

/// The most of them that are told apart.
const ODD_NAMES: usize = 1000;
/// The most characters of one that are shown.
const ODD_NAME_SHOWN: usize = 80;

impl OddNames {
    fn look(&mut self, said: &Incoming, at: usize) {
        let conflicts = said.conflicts.iter().map(|conflict| &conflict.history);
        let histories = conflicts.chain([&said.version.history]);
        let by = histories.flat_map(|history| history.iter()).filter_map(|u| u.stamp.by());
        let names = by.map(EndpointId::as_str).chain([said.id().as_str()]);
        for name in names.filter(|name| !is_nss(name)) {
            self.first.get_or_insert_with(|| (at, name.chars().take(ODD_NAME_SHOWN).collect()));
            if self.seen.len() < ODD_NAMES && !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
        }
    }

    fn warning(self) -> Option<Warning> {
        let (offset, name) = self.first?;
        let others = match self.seen.len() {
            0 | 1 => String::new(),
            n => format!(", the first of {n}"),
        };
        let message = format!(
            "the id {name:?} of an item or an endpoint is no Namespace Specific String of RFC 2141, as \
             SSE wants it{others}; it is taken as it stands, and other programs may refuse it"
        );
        Some(Warning { offset, message })
    }
}

/// Whether a text has the syntax of a Namespace Specific String (RFC 2141 section 2.2).
fn is_nss(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    !bytes.is_empty()
        && bytes.iter().enumerate().all(|(at, byte)| match byte {
            b'%' => is_hex(at + 1) && is_hex(at + 2),
            byte => byte.is_ascii_alphanumeric() || b"()+,-.:=@;$_!*'/?#".contains(byte),
        })
}

/// A document that ends early, closed behind its last whole entry.
fn closed(document: &FeedDocument<'_>) -> Option<String> {
    if !matches!(document.completeness, Completeness::Salvaged(_)) {
        return None;
    }
    let whole = document.text.get(..document.entries.last()?.span.end)?;
    let closing = match document.format.family() {
        Family::Atom => "</feed>",
        Family::Rss => "</channel></rss>",
    };
    Some(format!("{whole}{closing}"))
}

/// What an item's `sx:sync` says, or what is wrong with it; `None` where it has none.
fn of(item: &SseItem) -> Option<Result<Incoming, String>> {
    let conflict = |old: &Result<Item091<_, _>, _>| old.as_ref().ok().map(|old| old.conflict);
    let sse091 = match &item.shared {
        Some(_) => None,
        None => item.shared_091.as_ref().and_then(conflict),
    };
    let shared = item.any()?.map_err(|error| error.to_string());
    let incoming = shared.and_then(|shared| incoming(&shared, sse091));
    let extras = item.extras.clone().unwrap_or_default();
    Some(incoming.map(|incoming| Incoming { extras, ..incoming }))
}

fn incoming(shared: &Shared<Payload>, sse091: Option<bool>) -> Result<Incoming, String> {
    let conflicts = shared.conflicts.iter().map(|conflict| {
        let markup = stand_alone(&conflict.data);
        let markup = markup.ok_or_else(|| "an item in its sx:conflicts cannot be read".to_owned());
        markup.map(|markup| conflict.with(markup))
    });
    let conflicts = conflicts.collect::<Result<_, _>>()?;
    Ok(Incoming {
        version: shared.winner.with(()),
        conflicts,
        sse091,
        extras: SyncExtras::default(),
    })
}

/// An item that was cut out of a document, as markup.
fn stand_alone(payload: &Payload) -> Option<Markup> {
    let (before, rest, end) = payload.parts();
    let mut text = String::with_capacity(payload.xml.len() + 512);
    // The root bears a prefix of its own, so that it binds nothing that the item might use.
    let after = match payload.family {
        Family::Atom => {
            text.push_str("<around:feed xmlns:around=\"");
            text.push_str(ATOM);
            text.push('"');
            "</around:feed>"
        }
        Family::Rss => {
            text.push_str("<rss version=\"2.0\"");
            "</rss>"
        }
    };
    for (name, value) in [("xml:base", &payload.base), ("xml:lang", &payload.lang)] {
        if let Some(value) = value {
            push_attribute(&mut text, name, value);
        }
    }
    text.push('>');
    if payload.family == Family::Rss {
        text.push_str("<channel>");
    }
    text.push_str(before);
    for (prefix, namespace) in &payload.needs {
        match prefix.as_str() {
            "" if namespace.is_empty() => {}
            "" => push_attribute(&mut text, "xmlns", namespace),
            prefix => push_attribute(&mut text, &format!("xmlns:{prefix}"), namespace),
        }
    }
    text.push_str(rest);
    text.push_str(end);
    if payload.family == Family::Rss {
        text.push_str("</channel>");
    }
    text.push_str(after);
    let document = document(&text, None, &Limits::default()).ok()?;
    let entry = document.entries.first()?;
    Some(own(&document, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::xml::ns;

    const FEED: &str = "<feed xmlns='http://www.w3.org/2005/Atom'";
    const SSE: &str = "http://www.microsoft.com/schemas/sse";

    /// The strict reader refuses these documents, and says so.
    #[test]
    fn a_document_is_read_again_for_elements_of_sync_markup_alone() {
        let broken = "<entry unquoted=1><id>urn:e</id></entry></feed>";
        let read = |text: &str| {
            let document = document(text, None, &Limits::default()).unwrap();
            let said = document.warnings.iter().any(|w| w.message.contains("sync markup"));
            (said, document.entries[0].sync.clone())
        };
        let nothing = (false, None);
        assert_eq!(read(&format!("{FEED}><title>On {SSE}</title>{broken}")), nothing);
        assert_eq!(read(&format!("{FEED} x='{SSE}'><!-- {SSE} -->{broken}")), nothing);
        assert_eq!(read(&format!("{FEED} xmlns:s='{SSE}'>{broken}")), nothing);
        let invalid = (true, Some(EntrySync::Invalid));
        assert_eq!(read(&format!("{FEED} xmlns:s='{SSE}'><s:sharing/>{broken}")), invalid);
        let inside = broken.replace("<id>", &format!("<sync xmlns='{SSE}'/><id>"));
        assert_eq!(read(&format!("{FEED}>{inside}")), invalid);
    }

    /// Also in a namespace that is spelled otherwise. Without `since` SSE 0.91 means from the beginning.
    #[test]
    fn bounds_can_be_compared_in_every_dialect() {
        let bounds = |namespace: &str, since: &str, until: &str| {
            let text = format!(
                "{FEED} xmlns:s='{namespace}'><s:sharing{since} until='{until}'/><entry><s:sync \
                 id='a' updates='3' version='3'><s:history sequence='3' by='A'/></s:sync></entry></feed>"
            );
            let document = document(&text, None, &Limits::default()).unwrap();
            let is_valid = matches!(document.entries[0].sync, Some(EntrySync::Valid(_)));
            assert!(is_valid, "{:?}", document.warnings);
            document.sharing.unwrap().bounds
        };
        let pair = |since: &str, until: &str| Some((since.to_owned(), until.to_owned()));
        for sse in [SSE, "https://www.microsoft.com/schemas/SSE/"] {
            assert_eq!(bounds(sse, " since='1'", "2"), pair("1", "2"));
            assert_eq!(bounds(sse, "", "2"), None);
        }
        for old in [ns::SSE_091, "https://www.microsoft.com/schemas/rss/sse/"] {
            let (since, until) = ("Fri, 20 Nov 2026 16:20:05 GMT", "Sat, 21 Nov 2026 16:20:05 GMT");
            let read = ("2026-11-20T16:20:05Z", "2026-11-21T16:20:05Z");
            assert_eq!(bounds(old, &format!(" since='{since}'"), until), pair(read.0, read.1));
            assert_eq!(bounds(old, "", until), pair("", read.1));
            assert_eq!(bounds(old, "", "tomorrow"), None);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sync_markup_costs_a_document_no_more_than_a_bound() {
        use crate::memory;
        if !memory::is_alone(
            "parse::sharing::tests::sync_markup_costs_a_document_no_more_than_a_bound",
        ) {
            return;
        }
        const SIZE: usize = 8 << 20;
        for piece in ["<a/>", "<a b='' c='' d='' e='' f=''/>", "<a>x</a>", "&lt;\n", "\n"] {
            let content = piece.repeat(SIZE / piece.len());
            let taken = |head: &str| {
                let text = format!(
                    "{FEED} xmlns:s='{SSE}'>{head}<entry><id>e</id></entry><x>{content}</x></feed>"
                );
                let read = || document(&text, None, &Limits::default()).map(drop);
                memory::peak(read).1
            };
            let (without, with) = (taken(""), taken("<s:sharing/>"));
            // A list that grows is there twice for a moment.
            let bound = without + 2 * tidegate_core::xml::strict::WEIGHT_LIMIT;
            assert!(with < bound, "{piece:?}: {with} bytes, {without} without sync markup");
        }
    }
}
