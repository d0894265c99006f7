//! What a document says of sharing: the `sx:sync` of its entries, and its `sx:sharing`.
//!
//! The entries themselves are read like any others. Their sync markup is read a second time by
//! [`super::sse`], which is strict: a document that is not well-formed costs all its entries their
//! sync, and nothing else. One that merely ends early keeps it: its whole entries are read as if it
//! had been closed behind them, or each would be taken for a plain one with an id of ours.

use super::sse::{self, Payload, SseDialect, SseItem, SseSharing};
use super::{Limits, document, own};
use crate::model::{
    Completeness, EntrySync, Family, FeedDocument, Incoming, Markup, Shared, Sharing, SyncId,
    Warning,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use url::Url;

/// Adds what a document says of sharing.
pub(super) fn add(document: &mut FeedDocument<'_>, url: Option<&Url>) {
    let text = document.text;
    if !sse::mentions_sync_markup(text) {
        return;
    }
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
    document.sharing = feed.sharing().map(|said| sharing(&said, url));
    let mut read: HashMap<usize, EntrySync> = HashMap::new();
    let mut seen: HashMap<SyncId, usize> = HashMap::new();
    let mut repeated: HashSet<SyncId> = HashSet::new();
    for item in &feed.items {
        let (at, said) = (item.span.start, of(item));
        let sync = match said {
            None => continue,
            Some(Ok(incoming)) => {
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
                let message = format!("{message}; the entry is taken for a plain one");
                document.warnings.push(Warning { offset: at, message });
                EntrySync::Invalid
            }
        };
        read.insert(at, sync);
    }
    for entry in &mut document.entries {
        entry.sync = read.remove(&entry.span.start).map(|sync| match sync {
            EntrySync::Valid(incoming) if repeated.contains(incoming.id()) => EntrySync::Invalid,
            sync => sync,
        });
    }
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
    Some(item.any()?.map_err(|error| error.to_string()).and_then(|shared| incoming(&shared)))
}

fn incoming(shared: &Shared<Payload>) -> Result<Incoming, String> {
    let conflicts = shared.conflicts.iter().map(|conflict| {
        let markup = stand_alone(&conflict.data);
        let markup = markup.ok_or_else(|| "an item in its sx:conflicts cannot be read".to_owned());
        markup.map(|markup| conflict.with(markup))
    });
    let conflicts = conflicts.collect::<Result<_, _>>()?;
    Ok(Incoming { version: shared.winner.with(()), conflicts })
}

/// An item that was cut out of a document, as markup.
fn stand_alone(payload: &Payload) -> Option<Markup> {
    let (before, rest, end) = payload.parts();
    let mut text = String::with_capacity(payload.xml.len() + 512);
    // The root bears a prefix of its own, so that it binds nothing that the item might use.
    let after = match payload.family {
        Family::Atom => {
            text.push_str("<around:feed xmlns:around=\"");
            text.push_str(sse::ATOM);
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
            attribute(&mut text, name, value);
        }
    }
    text.push('>');
    if payload.family == Family::Rss {
        text.push_str("<channel>");
    }
    text.push_str(before);
    for (prefix, namespace) in &payload.needs {
        match prefix.as_str() {
            "" => attribute(&mut text, "xmlns", namespace),
            prefix => attribute(&mut text, &format!("xmlns:{prefix}"), namespace),
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

fn attribute(text: &mut String, name: &str, value: &str) {
    text.push(' ');
    text.push_str(name);
    text.push_str("=\"");
    super::text::escape_into(text, value);
    text.push('"');
}

/// What `sx:sharing` says.
fn sharing(said: &SseSharing<'_>, url: Option<&Url>) -> Sharing {
    // SSE 0.91 writes dates, whose letters are in no order.
    let bound = |text: &str| match said.dialect {
        SseDialect::Sse091 => sse::values::rfc822(text).map(|time| time.to_string()),
        SseDialect::Sse | SseDialect::FeedSync => Some(text.to_owned()),
    };
    let bounds = said.since.zip(said.until);
    Sharing {
        bounds: bounds.and_then(|(since, until)| bound(since).zip(bound(until))),
        complete: said.complete(url).map(String::from),
    }
}
