//! Merging two SSE feed documents (SSE 1.0 section 3.3): the result is the first one with what
//! changed, everything in it that is not concerned kept byte for byte.

use super::item::Item;
use super::{splice, text};
use crate::model::{Shared, SyncId, Version};
use crate::parse::sse::{self, Kept, Payload, SseDialect, SseError, SseFault, SseFeed};
use crate::sync::{self, Item091, Merged091};
use std::collections::HashMap;

/// Which of the two feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The feed that is kept.
    Local,
    /// The feed that is merged into it.
    Incoming,
}

/// Merges the feed document `incoming` into `local`; an error says in which of them it is.
pub fn merged(local: &[u8], incoming: &[u8]) -> Result<String, (Side, SseError)> {
    let here = |source| (Side::Local, source);
    let there = |source| (Side::Incoming, source);
    let local_text = text::decode(local).map_err(here)?;
    let incoming_text = text::decode(incoming).map_err(there)?;
    let local_feed = sse::read(&local_text).map_err(here)?;
    let incoming_feed = sse::read(&incoming_text).map_err(there)?;
    let dialect = local_feed.dialect.or(incoming_feed.dialect);
    let outcome = if dialect == Some(SseDialect::Sse091) {
        let ours = items_091(&local_feed).map_err(here)?;
        merge_items_091(ours, items_091(&incoming_feed).map_err(there)?)
    } else {
        let ours = shared_items(&local_feed).map_err(here)?;
        merge_items(ours, shared_items(&incoming_feed).map_err(there)?)
    };
    Ok(splice::merged(&local_feed, &incoming_feed, outcome))
}

/// An item with the number of the element that it stands in.
type Placed<T> = (usize, T);

/// The items of SSE 1.0 or FeedSync in a feed, each id once (section 2.4).
fn shared_items(feed: &SseFeed<'_>) -> Result<Vec<Placed<Shared<Payload>>>, SseError> {
    let mut once = Once::new(feed);
    let mut items = Vec::new();
    for item in &feed.items {
        if item.shared_091.is_some() {
            let fault = SseFault::Mixed { found: "SSE 0.91", wanted: "SSE 1.0" };
            return Err(feed.tree.fault(item.span.start, fault));
        }
        let Some(shared) = item.shared.clone().transpose()? else { continue };
        once.check(&shared.winner.id, item.span.start)?;
        items.push((item.element, shared));
    }
    Ok(items)
}

/// The items of SSE 0.91 in a feed, each id once (section 2.3 of that specification).
fn items_091(feed: &SseFeed<'_>) -> Result<Vec<Placed<Item091<Payload, Kept>>>, SseError> {
    let mut once = Once::new(feed);
    let mut items = Vec::new();
    for item in &feed.items {
        if item.shared.is_some() {
            let fault = SseFault::Mixed { found: "SSE 1.0", wanted: "SSE 0.91" };
            return Err(feed.tree.fault(item.span.start, fault));
        }
        let Some(shared) = item.shared_091.clone().transpose()? else { continue };
        once.check(&shared.id, item.span.start)?;
        items.push((item.element, shared));
    }
    Ok(items)
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
pub(super) struct Outcome {
    /// Items that changed, by the number of their element.
    pub(super) changed: HashMap<usize, Item>,
    /// Items that LOCAL does not have, in INCOMING's order.
    pub(super) new: Vec<Item>,
}

fn merge_items(
    local: Vec<Placed<Shared<Payload>>>,
    incoming: Vec<Placed<Shared<Payload>>>,
) -> Outcome {
    let mut outcome = Outcome { changed: HashMap::new(), new: Vec::new() };
    let mut known: HashMap<SyncId, Placed<_>> =
        local.into_iter().map(|placed| (placed.1.winner.id.clone(), placed)).collect();
    for (_, mut item) in incoming {
        let Some((element, here)) = known.remove(&item.winner.id) else {
            outcome.new.push(Item::Sse(item));
            continue;
        };
        keep_local_form(&mut item, &here);
        let before = here.clone();
        match sync::merge(here, item) {
            Ok(merged) if !sync::same_item(&merged, &before) => {
                outcome.changed.insert(element, Item::Sse(merged));
            }
            Ok(_) | Err(_) => {}
        }
    }
    outcome
}

/// The same by section 4.4 of SSE 0.91. A loser is kept whole, with its own `sx:sync`.
fn merge_items_091(
    local: Vec<Placed<Item091<Payload, Kept>>>,
    incoming: Vec<Placed<Item091<Payload, Kept>>>,
) -> Outcome {
    let mut outcome = Outcome { changed: HashMap::new(), new: Vec::new() };
    let known: HashMap<SyncId, Placed<_>> =
        local.into_iter().map(|placed| (placed.1.id.clone(), placed)).collect();
    for (_, item) in incoming {
        let Some((element, here)) = known.get(&item.id) else {
            outcome.new.push(Item::Sse091(item));
            continue;
        };
        let preserve = |loser| Kept::Item(Box::new(loser));
        if let Merged091::Changed(merged) = sync::merge_091(here, &item, preserve) {
            outcome.changed.insert(*element, Item::Sse091(merged));
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
