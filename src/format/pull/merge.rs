//! Merging two SSE feed documents (SSE 1.0 section 3.3; SSE 0.91 section 4.4): the result is the first
//! one with what changed, everything in it that is not concerned kept byte for byte.

use super::document::shares;
use super::item::ReplicaItem;
use super::{json, sharing, splice, text};
use crate::parse::ParseError;
use crate::parse::collection;
use crate::parse::sse::{
    self, KeptConflict, Payload, SseDialect, SseError, SseFault, SseFeed, converted,
};
use serde_json::Value;
use std::collections::HashMap;
use tidegate_core::model::{Shared, SyncId, Version};
use tidegate_core::sync::{self, Item091};

/// Which of the two feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The feed that is kept.
    Local,
    /// The feed that is merged into it.
    Incoming,
}

/// Merges the feed document `incoming` into `local`; an error says in which of them it is.
///
/// Each may be Atom, RSS, or a collection of FeedSync as plain XML or JSON, in any dialect: two feeds
/// of SSE 0.91 are merged by its section 4.4, all others in SSE 1.0. The result is in the container and
/// dialect of `local`.
pub fn merged(local: &[u8], incoming: &[u8]) -> Result<String, (Side, SseError)> {
    let here = |source| (Side::Local, source);
    let there = |source| (Side::Incoming, source);
    let local = Source::of(local).map_err(here)?;
    let incoming = Source::of(incoming).map_err(there)?;
    let local_feed = sse::read(&local.text).map_err(here)?;
    let incoming_feed = sse::read(&incoming.text).map_err(there)?;
    if !incoming_feed.items.is_empty() && !shares(&incoming_feed) {
        return Err(there(SseError { line: 1, fault: SseFault::SharesNothing }));
    }
    let ours = items(&local_feed).map_err(here)?;
    let theirs = items(&incoming_feed).map_err(there)?;
    let dialect = local_feed.dialect.or(incoming_feed.dialect);
    let outcome = match (all_091(&ours), all_091(&theirs)) {
        (Some(ours), Some(theirs)) if dialect == Some(SseDialect::Sse091) => {
            merge_items_091(ours, theirs)
        }
        _ => merge_items(in_sse(ours), in_sse(theirs)).into_dialect(dialect),
    };
    Ok(match local.json {
        Some(collection) => json::merged(collection, &local_feed, outcome),
        None => splice::merged(&local_feed, &incoming_feed, outcome),
    })
}

/// A feed document as text.
struct Source {
    /// The text; of a collection in JSON what it says as Atom.
    text: String,
    /// The collection in JSON.
    json: Option<Value>,
}

impl Source {
    fn of(bytes: &[u8]) -> Result<Self, SseError> {
        let text = text::decode(bytes)?;
        // Plain XML is read as it is.
        if !text::is_json(&text) {
            return Ok(Self { text: text::opened(text)?, json: None });
        }
        let fault = |error: &ParseError| {
            let before = text.get(..error.offset().unwrap_or(0)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let fault = match error {
                ParseError::NothingWhole { reason, .. } => SseFault::Malformed(reason.clone()),
                ParseError::Limit { what, limit, .. } => SseFault::TooMany { what, limit: *limit },
                other => SseFault::Collection(other.to_string()),
            };
            SseError { line, fault }
        };
        let atom = collection::transcoded(&text).map_err(|error| fault(&error))?;
        // A feed is read as far as it goes; what is merged must be whole.
        let json = serde_json::from_str(&text).map_err(|error| {
            let (said, line) = (error.to_string(), error.line().max(1));
            let said = said.split(" at line ").next().unwrap_or_default();
            let what = format!("it is broken JSON: {said}");
            SseError { line, fault: SseFault::Malformed(what) }
        })?;
        match atom {
            Some(text) => Ok(Self { text, json: Some(json) }),
            None => {
                let what = "it is JSON without items that have \"sync\"".to_owned();
                Err(SseError { line: 1, fault: SseFault::NotAFeed(what) })
            }
        }
    }
}

/// An item with the number of the element that it stands in.
type Placed<T> = (usize, T);

/// The shared items of a feed, each id once (SSE 1.0 section 2.4, SSE 0.91 section 2.3).
fn items(feed: &SseFeed<'_>) -> Result<Vec<Placed<ReplicaItem>>, SseError> {
    let mut once = Once::new(feed);
    let mut items = Vec::new();
    for item in &feed.items {
        let shared = match (&item.shared, &item.shared_091) {
            (Some(shared), _) => ReplicaItem::Sse(shared.clone()?),
            (None, Some(shared)) => ReplicaItem::Sse091(shared.clone()?),
            (None, None) => continue,
        };
        let id = match &shared {
            ReplicaItem::Sse(shared) => &shared.winner.id,
            ReplicaItem::Sse091(item) => &item.id,
            ReplicaItem::Plain(_) => continue,
        };
        once.check(id, item.span.start)?;
        items.push((item.element, shared));
    }
    Ok(items)
}

/// The items, where all are of SSE 0.91.
fn all_091(items: &[Placed<ReplicaItem>]) -> Option<Vec<Placed<Item091<Payload, KeptConflict>>>> {
    let one = |(element, item): &Placed<ReplicaItem>| match item {
        ReplicaItem::Sse091(item) => Some((*element, item.clone())),
        ReplicaItem::Sse(_) | ReplicaItem::Plain(_) => None,
    };
    items.iter().map(one).collect()
}

/// The items in SSE 1.0.
fn in_sse(items: Vec<Placed<ReplicaItem>>) -> Vec<Placed<Shared<Payload>>> {
    let one = |(element, item)| match item {
        ReplicaItem::Sse(shared) => Some((element, shared)),
        ReplicaItem::Sse091(item) => Some((element, converted(item))),
        ReplicaItem::Plain(_) => None,
    };
    items.into_iter().filter_map(one).collect()
}

/// Sees to it that an id stands once in a feed.
struct Once<'a> {
    feed: &'a SseFeed<'a>,
    lines: HashMap<SyncId, usize>,
}

impl<'a> Once<'a> {
    fn new(feed: &'a SseFeed<'a>) -> Self {
        Self { feed, lines: HashMap::new() }
    }

    fn check(&mut self, id: &SyncId, at: usize) -> Result<(), SseError> {
        match self.lines.insert(id.clone(), self.feed.tree.line(at)) {
            Some(first) => {
                let id = id.to_string();
                Err(self.feed.tree.fault(at, SseFault::Repeated { id, first }))
            }
            None => Ok(()),
        }
    }
}

/// What becomes of LOCAL's items and which ones are new.
pub(super) struct MergeOutcome {
    /// Items that changed, by the number of their element.
    pub(super) changed: HashMap<usize, ReplicaItem>,
    /// Items that LOCAL does not have, in INCOMING's order.
    pub(super) new: Vec<ReplicaItem>,
}

impl MergeOutcome {
    /// The same in a dialect.
    fn into_dialect(self, dialect: Option<SseDialect>) -> Self {
        let changed = self.changed.into_iter();
        Self {
            changed: changed.map(|(at, item)| (at, item.into_dialect(dialect))).collect(),
            new: self.new.into_iter().map(|item| item.into_dialect(dialect)).collect(),
        }
    }
}

fn merge_items(
    local: Vec<Placed<Shared<Payload>>>,
    incoming: Vec<Placed<Shared<Payload>>>,
) -> MergeOutcome {
    let mut outcome = MergeOutcome { changed: HashMap::new(), new: Vec::new() };
    let mut known: HashMap<SyncId, Placed<_>> =
        local.into_iter().map(|placed| (placed.1.winner.id.clone(), placed)).collect();
    for (_, mut item) in incoming {
        let Some((element, here)) = known.remove(&item.winner.id) else {
            outcome.new.push(ReplicaItem::Sse(item));
            continue;
        };
        keep_local_form(&mut item, &here);
        let before = here.clone();
        match sync::merge(here, item) {
            Ok(merged) if !sync::same_item(&merged, &before) => {
                outcome.changed.insert(element, ReplicaItem::Sse(merged));
            }
            Ok(_) | Err(_) => {}
        }
    }
    outcome
}

/// The same by section 4.4 of SSE 0.91. A loser is kept whole, with its own `sx:sync`.
fn merge_items_091(
    local: Vec<Placed<Item091<Payload, KeptConflict>>>,
    incoming: Vec<Placed<Item091<Payload, KeptConflict>>>,
) -> MergeOutcome {
    let mut outcome = MergeOutcome { changed: HashMap::new(), new: Vec::new() };
    let known: HashMap<SyncId, Placed<_>> =
        local.into_iter().map(|placed| (placed.1.id.clone(), placed)).collect();
    for (_, item) in incoming {
        let Some((element, here)) = known.get(&item.id) else {
            outcome.new.push(ReplicaItem::Sse091(item));
            continue;
        };
        if let Some(merged) = sharing::merge_091(here, &item) {
            outcome.changed.insert(*element, ReplicaItem::Sse091(merged));
        }
    }
    outcome
}

/// A version that LOCAL has in its own format is not replaced by the same version in another.
fn keep_local_form(incoming: &mut Shared<Payload>, local: &Shared<Payload>) {
    let known = || local.conflicts.iter().chain([&local.winner]);
    for version in incoming.conflicts.iter_mut().chain([&mut incoming.winner]) {
        let same = known().find(|known| is_same_version(known, version));
        if let Some(same) = same.filter(|same| same.data.family != version.data.family) {
            version.data = same.data.clone();
        }
    }
}

fn is_same_version(x: &Version<Payload>, y: &Version<Payload>) -> bool {
    let flags = |v: &Version<Payload>| (v.updates, v.deleted, v.noconflicts);
    flags(x) == flags(y) && x.history == y.history
}
