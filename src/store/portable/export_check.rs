//! Checks that exported records agree with each other, whatever their source.

use super::ExportRecord;
use crate::limits::VERSIONS_LIMIT;
use crate::record::{ArchiveRecord, ItemRecord, TextRecord, packing};
use crate::{Epoch, StoreError};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{FeedName, SyncId, Tick, Time};

/// The state of the check between records.
#[derive(Debug, Default)]
pub(crate) struct ExportCheck {
    /// Whether there was a record.
    begun: bool,
    epoch: Option<Epoch>,
    done: HashSet<FeedName>,
    feed: Option<(FeedName, FeedCheck)>,
}

/// The state of the check within a feed.
#[derive(Debug, Default)]
struct FeedCheck {
    /// Its items, and whether each is in the ledger.
    items: HashMap<SyncId, bool>,
    /// The item that the next texts belong to.
    item: Option<ItemCheck>,
    /// The time since which the last frame was in force.
    since: Option<Time>,
    /// The order of the frame in force.
    order: Vec<SyncId>,
    /// The last archive, and how many of its blocks are to come.
    archive: Option<(u64, u32)>,
    /// The numbers of the archives with content.
    kept: Vec<u64>,
}

/// The state of the check within an item.
#[derive(Debug)]
struct ItemCheck {
    id: SyncId,
    /// How many versions are missing.
    versions: u32,
    /// The version with its newest bytes, until that came.
    newest: Option<Option<Tick>>,
    last: Option<Option<Tick>>,
    /// The time of the version that the last bytes are a difference to.
    base: Option<Time>,
}

impl ItemCheck {
    fn text(&mut self, tick: Option<Tick>, text: &TextRecord) -> Result<(), &'static str> {
        if self.last.replace(tick).is_some_and(|last| last >= tick) {
            return Err("has versions that are not in order");
        }
        if text.note.is_some() {
            let left = self.versions.checked_sub(1);
            self.versions = left.ok_or("has more versions than are kept")?;
        }
        let Some(body) = &text.body else { return Ok(()) };
        let base = packing::base(body).map_err(|_| "has bytes that are none")?;
        if self.base.is_some_and(|base| Some(base) != tick.map(Tick::time)) {
            return Err("has a version without the next one");
        }
        if self.newest == Some(tick) && base.is_none() {
            self.newest = None;
        }
        self.base = base;
        Ok(())
    }
}

impl ExportCheck {
    /// Checks the next record.
    pub(crate) fn check(&mut self, piece: &ExportRecord) -> Result<(), StoreError> {
        self.check_piece(piece).map_err(|what| StoreError::Unfit { what })
    }

    fn check_piece(&mut self, piece: &ExportRecord) -> Result<(), String> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        if let Some(name) = piece.feed() {
            let (open, mut fit) = match self.feed.take() {
                None if self.done.contains(name) => {
                    return Err(format!("the feed {name} is in it twice"));
                }
                feed => feed.unwrap_or_else(|| (name.clone(), FeedCheck::default())),
            };
            if open != *name {
                return Err(format!("the feed {open} ends without a state"));
            }
            fit.check(name, piece)?;
            match piece {
                ExportRecord::State(..) => drop(self.done.insert(open)),
                _ => self.feed = Some((open, fit)),
            }
            return Ok(());
        }
        match piece {
            ExportRecord::Origin(origin) => {
                let stretches = origin.lineage.stretches();
                let rises = stretches.is_sorted_by(|one, next| one.after < next.after);
                let ends = stretches.last().is_none_or(|last| last.after <= origin.reached.0);
                let fits = is_first && rises && ends && origin.fence < u64::MAX;
                if fits { Ok(()) } else { Err("what it had reached is not in order".to_owned()) }
            }
            ExportRecord::Log(closed) => {
                // Another epoch must be able to follow.
                let is_last = closed.epoch.0 == u64::MAX;
                if closed.changes.is_empty() || Some(closed.epoch) <= self.epoch || is_last {
                    return Err("its change log is not in order".to_owned());
                }
                self.epoch = Some(closed.epoch);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks that nothing is missing at the end.
    pub(crate) fn end(&self) -> Result<(), StoreError> {
        self.feed.as_ref().map_or(Ok(()), |(open, _)| {
            Err(StoreError::Unfit { what: format!("the feed {open} ends without a state") })
        })
    }
}

impl FeedCheck {
    fn check(&mut self, feed: &FeedName, piece: &ExportRecord) -> Result<(), String> {
        if let ExportRecord::Text(_, tick, text) = piece {
            let none = || format!("a version of the feed {feed} has no item");
            let item = self.item.as_mut().ok_or_else(none)?;
            let text = item.text(*tick, text);
            return text
                .map_err(|fault| format!("the item {} of the feed {feed} {fault}", item.id));
        }
        if let Some(ItemCheck { id, versions, newest, base, .. }) = self.item.take()
            && (versions > 0 || newest.is_some() || base.is_some())
        {
            return Err(format!("the item {id} of the feed {feed} lacks versions"));
        }
        match piece {
            ExportRecord::Past(_, since, _) => self.since(feed, *since)?,
            ExportRecord::Frame(_, frame) => {
                self.since(feed, frame.since)?;
                self.order.clone_from(&frame.order);
            }
            ExportRecord::Item(_, item) => {
                let ItemRecord { known, body, has_latest, kept, conflicts } = &**item;
                let fault = if known.is_evicted() {
                    "stands in the ledger and says that it left it"
                } else if known.conflicts as usize != conflicts.len() {
                    "lacks conflicts"
                } else if conflicts.iter().any(|version| version.id != known.id) {
                    "is in conflict with another item"
                } else if *kept as usize > VERSIONS_LIMIT {
                    "has more versions than are kept"
                } else if self.items.insert(known.id.clone(), true).is_some() {
                    "is in it twice"
                } else {
                    let newest = Some((!has_latest).then_some(*body));
                    let (id, versions) = (known.id.clone(), *kept);
                    self.item = Some(ItemCheck { id, versions, newest, last: None, base: None });
                    return Ok(());
                };
                return Err(format!("the item {} of the feed {feed} {fault}", known.id));
            }
            ExportRecord::Stub(_, stub) => {
                let is_known = self.items.insert(stub.id.clone(), false).is_some();
                let twice = || format!("the item {} of the feed {feed} is in it twice", stub.id);
                return if is_known { Err(twice()) } else { Ok(()) };
            }
            ExportRecord::Archive(_, record) => {
                let ArchiveRecord { note, blocks } = &**record;
                if self.archive.is_some_and(|(last, left)| note.number <= last || left > 0) {
                    return Err(format!("the archives of the feed {feed} are not in order"));
                }
                self.archive = Some((note.number, *blocks));
            }
            ExportRecord::Block(_, block) => {
                let archive = self.archive.as_mut().filter(|(_, left)| *left > 0);
                let is_first = archive.as_ref().map(|(number, _)| self.kept.last() != Some(number));
                let Some((number, left)) = archive.filter(|_| is_first == Some(block.is_first()))
                else {
                    return Err(format!("a block of the feed {feed} has no archive"));
                };
                *left -= 1;
                self.kept.extend(block.is_first().then_some(*number));
            }
            ExportRecord::State(_, head) => {
                let chain = &head.state.archives;
                let begins = self.kept.first().is_none_or(|first| *first == chain.first);
                let is_whole = self.archive.is_none_or(|(_, left)| left == 0);
                let kept = chain.next.checked_sub(chain.first) == Some(self.kept.len() as u64);
                if !(kept && begins && is_whole) {
                    return Err(format!("archives of the feed {feed} are missing"));
                }
                if head.state.revision.0 == u64::MAX {
                    return Err(format!("the feed {feed} has the last of all revisions"));
                }
                let mut order = self.order.iter();
                if let Some(unknown) = order.find(|id| self.items.get(*id) != Some(&true)) {
                    return Err(format!("the feed {feed} shows the unknown item {unknown}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn since(&mut self, feed: &FeedName, since: Time) -> Result<(), String> {
        match self.since.replace(since) {
            Some(last) if last >= since => {
                Err(format!("the orders of the feed {feed} are not in order"))
            }
            _ => Ok(()),
        }
    }
}
