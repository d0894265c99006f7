//! Whether pieces fit together, whatever they were read from.

use super::{CarriedItem, ExportRecord};
use crate::limits::VERSIONS_LIMIT;
use crate::{Epoch, StoreError};
use std::collections::HashSet;
use tidegate_core::model::{FeedName, SyncId, Tick, Time};

/// What came so far.
#[derive(Debug, Default)]
pub(crate) struct Fit {
    feed: Option<FeedName>,
    done: HashSet<FeedName>,
    items: HashSet<SyncId>,
    /// Those among them that left the ledger.
    stubs: HashSet<SyncId>,
    /// The item whose versions come, how many came, and the tick of the last one.
    versions: Option<(SyncId, usize, Option<Tick>)>,
    /// Since when the last frame was in force, and its order.
    frame: Option<(Time, Vec<SyncId>)>,
    archive: Option<u64>,
    /// Whether that one's blocks come.
    blocks: bool,
    /// Those that have their content, by number.
    kept: Vec<u64>,
    epoch: Option<Epoch>,
    /// Whether anything came.
    begun: bool,
}

fn unfit(what: String) -> StoreError {
    StoreError::Unfit { what }
}

impl Fit {
    /// Checks the next piece.
    pub(crate) fn check(&mut self, piece: &ExportRecord) -> Result<(), StoreError> {
        if let Some(feed) = piece.feed() {
            match &self.feed {
                Some(open) if open != feed => {
                    return Err(unfit(format!("the feed {open} ends without a state")));
                }
                Some(_) => {}
                None if self.done.contains(feed) => {
                    return Err(unfit(format!("the feed {feed} is in it twice")));
                }
                None => self.feed = Some(feed.clone()),
            }
        }
        let is_first = !std::mem::replace(&mut self.begun, true);
        let (item, of_archive) = (self.versions.take(), std::mem::take(&mut self.blocks));
        match piece {
            ExportRecord::Origin(origin) => {
                let stretches = origin.lineage.stretches();
                let rises = stretches.is_sorted_by(|one, next| one.after < next.after);
                let ends = stretches.last().is_none_or(|last| last.after <= origin.reached.0);
                if !(is_first && rises && ends && origin.fence < u64::MAX) {
                    return Err(unfit("what it had reached is not in order".to_owned()));
                }
            }
            ExportRecord::Log(sealed) => {
                // One more must be able to follow.
                let is_last = sealed.epoch.0 == u64::MAX;
                if sealed.changes.is_empty() || Some(sealed.epoch) <= self.epoch || is_last {
                    return Err(unfit("its change log is not in order".to_owned()));
                }
                self.epoch = Some(sealed.epoch);
            }
            ExportRecord::Frame(feed, frame) => {
                if self.frame.as_ref().is_some_and(|(before, _)| frame.since <= *before) {
                    return Err(unfit(format!("the orders of the feed {feed} are not in order")));
                }
                self.frame = Some((frame.since, frame.order.clone()));
            }
            ExportRecord::Item(feed, item) => {
                let CarriedItem { known, conflicts, .. } = &**item;
                let fault = if known.is_evicted() {
                    "stands in the ledger and says that it left it"
                } else if usize::try_from(known.conflicts) != Ok(conflicts.len()) {
                    "lacks conflicts"
                } else if conflicts.iter().any(|version| version.id != known.id) {
                    "is in conflict with another item"
                } else if !self.items.insert(known.id.clone()) {
                    "is in it twice"
                } else {
                    self.versions = Some((known.id.clone(), 0, None));
                    return Ok(());
                };
                return Err(unfit(format!("the item {} of the feed {feed} {fault}", known.id)));
            }
            ExportRecord::Stub(feed, stub) => {
                if !self.items.insert(stub.id.clone()) {
                    return Err(unfit(format!(
                        "the item {} of the feed {feed} is in it twice",
                        stub.id
                    )));
                }
                self.stubs.insert(stub.id.clone());
            }
            ExportRecord::Version(feed, version) => {
                let Some((id, came, last)) = item else {
                    return Err(unfit(format!("a version of the feed {feed} has no item")));
                };
                let tick = version.note.tick;
                let fault = if came >= VERSIONS_LIMIT {
                    "has more versions than are kept"
                } else if last.is_some_and(|last| tick >= last) {
                    "has versions that are not in order"
                } else {
                    self.versions = Some((id, came + 1, Some(tick)));
                    return Ok(());
                };
                return Err(unfit(format!("the item {id} of the feed {feed} {fault}")));
            }
            ExportRecord::Archive(feed, note) => {
                if Some(note.number) <= self.archive {
                    return Err(unfit(format!("the archives of the feed {feed} are not in order")));
                }
                (self.archive, self.blocks) = (Some(note.number), true);
            }
            ExportRecord::Block(feed, block) => {
                let number = self.archive.filter(|_| of_archive);
                let is_first = number.is_some() && self.kept.last() != number.as_ref();
                let Some(number) = number.filter(|_| block.is_first() == is_first) else {
                    return Err(unfit(format!("a block of the feed {feed} has no archive")));
                };
                if is_first {
                    self.kept.push(number);
                }
                self.blocks = true;
            }
            ExportRecord::State(feed, state) => {
                let chain = &state.archives;
                let kept = u64::try_from(self.kept.len()).unwrap_or(u64::MAX);
                let begins = self.kept.first().is_none_or(|first| *first == chain.first);
                if chain.next.checked_sub(chain.first) != Some(kept) || !begins {
                    return Err(unfit(format!("archives of the feed {feed} are missing")));
                }
                if state.revision.0 == u64::MAX {
                    return Err(unfit(format!("the feed {feed} has the last of all revisions")));
                }
                let order = self.frame.take().map(|(_, order)| order).unwrap_or_default();
                let is_there = |id: &SyncId| self.items.contains(id) && !self.stubs.contains(id);
                if let Some(unknown) = order.iter().find(|id| !is_there(id)) {
                    return Err(unfit(format!("the feed {feed} shows the unknown item {unknown}")));
                }
                self.done.insert(feed.clone());
                let (done, epoch) = (std::mem::take(&mut self.done), self.epoch);
                *self = Self { done, epoch, begun: true, ..Self::default() };
            }
            ExportRecord::Feed(_)
            | ExportRecord::Poll(_)
            | ExportRecord::Subscription(_)
            | ExportRecord::Floor(..) => {}
            ExportRecord::Held(..) | ExportRecord::Event(..) | ExportRecord::Sites(_) => {}
        }
        Ok(())
    }

    /// Checks that nothing is missing at the end.
    pub(crate) fn end(&self) -> Result<(), StoreError> {
        match &self.feed {
            Some(open) => Err(unfit(format!("the feed {open} ends without a state"))),
            None => Ok(()),
        }
    }
}
