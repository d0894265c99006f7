//! `tidegate merge LOCAL INCOMING`: two SSE feed files become one (SSE 1.0 section 3.3), in LOCAL's
//! format and dialect, with everything in LOCAL that is not concerned kept byte for byte.

mod convert;
mod splice;
mod text;

#[cfg(test)]
mod tests;

use crate::model::{Shared, SyncId, Version};
use crate::parse::sse::{
    self, BYTES_LIMIT, Kept, Payload, SseDialect, SseError, SseFault, SseFeed,
};
use crate::sync::{self, Item091, Merged091};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Why two feeds were not merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeCommandError {
    /// A file cannot be read.
    #[error("{}: the file cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is no SSE feed that can be merged.
    #[error("{}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: SseError,
    },
    /// The result cannot be written.
    #[error("the merged feed cannot be written: {0}")]
    Write(#[source] std::io::Error),
}

impl MergeCommandError {
    /// The exit code of the command: 2 for wrong input, 1 for what failed at run time.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Input { .. } => 2,
            Self::Write(_) => 1,
        }
    }
}

/// Which of the two feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The feed that is kept.
    Local,
    /// The feed that is merged into it.
    Incoming,
}

/// Merges the feed file `incoming` into `local` and writes the merged feed.
pub fn merge(local: &Path, incoming: &Path, out: &mut dyn Write) -> Result<(), MergeCommandError> {
    let merged = merged(&load(local)?, &load(incoming)?).map_err(|(side, source)| {
        let path = match side {
            Side::Local => local.to_owned(),
            Side::Incoming => incoming.to_owned(),
        };
        MergeCommandError::Input { path, source }
    })?;
    out.write_all(merged.as_bytes()).and_then(|()| out.flush()).map_err(MergeCommandError::Write)
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

fn load(path: &Path) -> Result<Vec<u8>, MergeCommandError> {
    let mut bytes = Vec::new();
    // One byte more than is taken, so that what is too long is seen to be.
    let limit = u64::try_from(BYTES_LIMIT).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|source| MergeCommandError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
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

/// An item of one of the two kinds of sync markup.
enum Item {
    /// Of SSE 1.0 or FeedSync.
    Sse(Shared<Payload>),
    /// Of SSE 0.91.
    Sse091(Item091<Payload, Kept>),
}

/// What becomes of LOCAL's items and which ones are new.
struct Outcome {
    /// Items that changed, by the number of their element.
    changed: HashMap<usize, Item>,
    /// Items that LOCAL does not have, in INCOMING's order.
    new: Vec<Item>,
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
