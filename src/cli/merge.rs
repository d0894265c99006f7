//! `tidegate merge LOCAL INCOMING`: two SSE feed files become one (SSE 1.0 section 3.3), in LOCAL's
//! format and dialect, with everything in LOCAL that is not concerned kept byte for byte.

mod convert;
mod splice;
mod text;

#[cfg(test)]
mod tests;

use crate::model::{Shared, SyncId, Version};
use crate::parse::sse::{self, BYTES_LIMIT, Payload, SseDialect, SseError, SseFault, SseFeed};
use crate::sync;
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

/// Merges the feed file `incoming` into `local` and writes the merged feed.
pub fn merge(local: &Path, incoming: &Path, out: &mut dyn Write) -> Result<(), MergeCommandError> {
    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |source| MergeCommandError::Input { path, source }
    };
    let local_text = text::decode(&load(local)?).map_err(wrong(local))?;
    let incoming_text = text::decode(&load(incoming)?).map_err(wrong(incoming))?;
    let local_feed = sse::read(&local_text).map_err(wrong(local))?;
    let incoming_feed = sse::read(&incoming_text).map_err(wrong(incoming))?;
    let here = shared_items(&local_feed).map_err(wrong(local))?;
    let there = shared_items(&incoming_feed).map_err(wrong(incoming))?;
    let merged = splice::merged(&local_feed, &incoming_feed, merge_items(here, there));
    out.write_all(merged.as_bytes()).and_then(|()| out.flush()).map_err(MergeCommandError::Write)
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

/// A shared item with the number of the element that it stands in.
type Placed = (usize, Shared<Payload>);

/// The items of a feed that take part, each id once (section 2.4).
fn shared_items(feed: &SseFeed<'_>) -> Result<Vec<Placed>, SseError> {
    let mut first: HashMap<SyncId, usize> = HashMap::new();
    let mut items = Vec::new();
    for item in &feed.items {
        let at = item.span.start;
        if item.dialect == Some(SseDialect::Sse091) {
            return Err(feed.tree.fault(at, SseFault::Sse091));
        }
        let Some(shared) = item.shared.clone().transpose()? else { continue };
        let line = feed.tree.line(at);
        if let Some(first) = first.insert(shared.winner.id.clone(), line) {
            let id = shared.winner.id.to_string();
            return Err(feed.tree.fault(at, SseFault::Repeated { id, first }));
        }
        items.push((item.element, shared));
    }
    Ok(items)
}

/// What becomes of LOCAL's items and which ones are new.
struct Outcome {
    /// Items that changed, by the number of their element.
    changed: HashMap<usize, Shared<Payload>>,
    /// Items that LOCAL does not have, in INCOMING's order.
    new: Vec<Shared<Payload>>,
}

fn merge_items(local: Vec<Placed>, incoming: Vec<Placed>) -> Outcome {
    let mut outcome = Outcome { changed: HashMap::new(), new: Vec::new() };
    let mut known: HashMap<SyncId, Placed> =
        local.into_iter().map(|placed| (placed.1.winner.id.clone(), placed)).collect();
    for (_, mut item) in incoming {
        let Some((element, here)) = known.remove(&item.winner.id) else {
            outcome.new.push(item);
            continue;
        };
        keep_local_form(&mut item, &here);
        let before = here.clone();
        match sync::merge(here, item) {
            Ok(merged) if !sync::same_item(&merged, &before) => {
                outcome.changed.insert(element, merged);
            }
            Ok(_) | Err(_) => {}
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
