//! The change log as SUP, `/changes` and `/events` read it: the newest epochs from memory, older ones from the store.

use super::{Problem, locked};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Included};
use std::sync::{Arc, Mutex};
use tidegate_store::{ClosedEpoch, Epoch, Store, StoreError};
use tokio::sync::watch;

/// The most epochs kept in memory; fewer than the store keeps whatever their age.
const RECENT: usize = 512;
/// How many epochs are read from the store at once.
const BATCH: usize = 256;
/// A reader at most this many epochs behind shares what it reads in memory; one further behind reads alone.
const NEAR: u64 = 256;

/// What there is after an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogAfter {
    /// The epochs that follow, oldest first, without a gap; none: there is nothing newer.
    Epochs(Vec<Arc<ClosedEpoch>>),
    /// What follows is not kept any more; this is the oldest that is.
    Gone {
        /// The oldest epoch that is kept.
        oldest: Epoch,
    },
    /// There was never such an epoch: the store was put back to an older copy, or is another one.
    Ahead,
}

pub(super) struct ChangeLog {
    pub(super) store: Arc<Store>,
    newest: watch::Receiver<Epoch>,
    /// The newest epochs that were read.
    recent: Mutex<BTreeMap<Epoch, Arc<ClosedEpoch>>>,
    /// One reader at a time; the others find in memory what it read.
    reading: tokio::sync::Mutex<()>,
}

impl ChangeLog {
    pub(super) fn new(store: Arc<Store>) -> Self {
        let newest = store.watch_announced();
        Self { store, newest, recent: Mutex::default(), reading: tokio::sync::Mutex::default() }
    }

    /// The newest epoch, and a wake-up for each new one.
    pub(super) fn watch(&self) -> watch::Receiver<Epoch> {
        self.store.watch_announced()
    }

    /// The opening by which a place up to this epoch is named ([`Lineage::mark_at`]).
    ///
    /// [`Lineage::mark_at`]: tidegate_core::model::Lineage::mark_at
    pub(super) fn opening(&self, epoch: Epoch) -> Option<u32> {
        self.store.lineage().mark_at(epoch.0, self.newest().0)
    }

    /// Whether this log agrees with all up to this epoch that an opening of a store gave out. Without an opening only
    /// the beginning is known, unless this store has no record of openings.
    pub(super) fn knows(&self, opening: Option<u32>, epoch: Epoch) -> bool {
        let lineage = self.store.lineage();
        match opening {
            Some(opening) => lineage.reaches(opening, epoch.0, self.newest().0),
            None => epoch == Epoch(0) || lineage.stretches().is_empty(),
        }
    }

    pub(super) fn newest(&self) -> Epoch {
        *self.newest.borrow()
    }

    /// Waits until this gateway has seen an epoch that another one over the same store may have announced. An error if
    /// the store cannot say whether there are newer ones.
    pub(super) async fn wait_for_epoch(&self, epoch: Epoch) -> Result<(), StoreError> {
        if epoch <= self.newest() {
            return Ok(());
        }
        if self.store.condition().stop.is_some() {
            self.store.epochs_after(self.newest(), 1).await?;
        }
        self.store.catch_up().await?;
        // An epoch that exists is announced here in a moment. One that does not exist is not waited for.
        let wanted = epoch.min(*self.store.watch_epochs().borrow());
        let told = self.watch().wait_for(|told| *told >= wanted).await.map(drop);
        told.map_err(|_| StoreError::Closed)
    }

    /// The epochs after `after`, at most `limit` (and at most what is read at once).
    pub(super) async fn after(&self, after: Epoch, limit: usize) -> Result<LogAfter, StoreError> {
        let newest = self.newest();
        if after > newest {
            return Ok(LogAfter::Ahead);
        }
        let known = self.remembered(after, newest, limit);
        if after == newest || !known.is_empty() {
            return Ok(LogAfter::Epochs(known));
        }
        // Who is far behind reads alone: nobody waits for that, and it takes the place of nothing in memory.
        let is_near = newest.0.saturating_sub(after.0) <= NEAR;
        let _turn = if is_near { Some(self.reading.lock().await) } else { None };
        let known = self.remembered(after, newest, limit);
        if !known.is_empty() {
            return Ok(LogAfter::Epochs(known));
        }
        let most = if is_near { BATCH } else { limit.min(BATCH) };
        let read = self.store.epochs_after(after, most).await?;
        match read.first().map(|first| first.epoch) {
            Some(oldest) if oldest.0 != after.0 + 1 => return Ok(LogAfter::Gone { oldest }),
            _ => {}
        }
        let seen = read.into_iter().take_while(|sealed| sealed.epoch <= newest).map(Arc::new);
        let seen: Vec<_> = seen.collect();
        if is_near {
            let mut recent = locked(&self.recent);
            recent.extend(seen.iter().map(|sealed| (sealed.epoch, Arc::clone(sealed))));
            while recent.len() > RECENT {
                recent.pop_first();
            }
        }
        Ok(LogAfter::Epochs(seen.into_iter().take(limit).collect()))
    }

    /// What is in memory of the epochs after `after`, without a gap.
    fn remembered(&self, after: Epoch, newest: Epoch, limit: usize) -> Vec<Arc<ClosedEpoch>> {
        if after >= newest {
            return Vec::new();
        }
        let recent = locked(&self.recent);
        let later = recent.range((Excluded(after), Included(newest))).zip(after.0 + 1..);
        let following = later.take_while(|((epoch, _), next)| epoch.0 == *next);
        following.take(limit).map(|((_, sealed), _)| Arc::clone(sealed)).collect()
    }
}

/// A place in the log: every epoch before `epoch` has been given out, and of that epoch the first
/// `part` changes, or all of them.
///
/// It is written `5f0c31ab-17.3`: before the dash an opening of the store that had reached it, so that
/// a log that went back to a copy, or another one, knows that it never gave this out. The beginning is
/// `0` in every log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    opening: Option<u32>,
    /// The last epoch of which something was given out.
    pub(super) epoch: Epoch,
    part: Option<usize>,
}

impl Position {
    /// Behind a whole epoch of this log.
    pub(super) fn behind(log: &ChangeLog, epoch: Epoch) -> Self {
        Self { opening: log.opening(epoch).filter(|_| epoch > Epoch(0)), epoch, part: None }
    }

    /// Behind all of this log.
    pub(super) fn newest(log: &ChangeLog) -> Self {
        Self::behind(log, log.newest())
    }

    /// Behind the first `part` changes of this epoch.
    pub(super) const fn within(self, part: usize) -> Self {
        Self { part: Some(part), ..self }
    }

    /// Whether this log gave it out, or would have.
    pub(super) fn is_of(self, log: &ChangeLog) -> bool {
        log.knows(self.opening, self.epoch)
    }

    /// The last epoch that was given out whole.
    pub(super) const fn whole(self) -> Epoch {
        match self.part {
            None => self.epoch,
            Some(_) => Epoch(self.epoch.0.saturating_sub(1)),
        }
    }

    /// How many changes of this epoch were given out already.
    pub(super) fn given(self, epoch: Epoch) -> usize {
        self.part.filter(|_| epoch == self.epoch).unwrap_or(0)
    }

    /// Reads a position: `5f0c31ab-17`, `5f0c31ab-17.3` or `0`.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        let detail = "after is an id that was given out here, or 0";
        Self::parse(text).ok_or_else(|| Problem::parameter("after", detail))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let number = text.parse::<u64>().ok();
            number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (opening, text) = match text.split_once('-') {
            None => (None, text),
            Some((opening, rest)) => {
                let is_one = opening.len() == 8 && opening.bytes().all(|b| b.is_ascii_hexdigit());
                (Some(u32::from_str_radix(opening, 16).ok().filter(|_| is_one)?), rest)
            }
        };
        let (epoch, part) = match text.split_once('.') {
            None => (text, None),
            Some((epoch, part)) => (epoch, Some(usize::try_from(number(part)?).ok()?)),
        };
        Some(Self { opening, epoch: Epoch(number(epoch)?), part })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(opening) = self.opening {
            write!(f, "{opening:08x}-")?;
        }
        match self.part {
            None => write!(f, "{}", self.epoch.0),
            Some(part) => write!(f, "{}.{part}", self.epoch.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_nothing_else_is_read() {
        let with_marks = ["18446744073709551615", "5f0c31ab-17", "00000000-17.3"];
        for text in ["0", "17", "17.0", "17.3"].into_iter().chain(with_marks) {
            assert_eq!(Position::read(text).unwrap().to_string(), text);
        }
        let bad = ["-", "1-2", "", ".", "1.", ".1", "-1", "+1", "1.x", "1.2.3", " 1"];
        let bad_marks = ["5f0c31ab-", "5f0c31ab--1", "+f0c31ab-1", "18446744073709551616"];
        for bad in bad.into_iter().chain(bad_marks) {
            assert!(Position::read(bad).is_err(), "{bad:?}");
        }
        // A part of an epoch leaves the rest of it.
        let within = Position::read("17.3").unwrap();
        let parts = (within.whole(), within.given(Epoch(17)), within.given(Epoch(18)));
        assert_eq!(parts, (Epoch(16), 3, 0));
        let behind = Position::read("17").unwrap();
        assert_eq!((behind.whole(), behind.given(Epoch(17))), (Epoch(17), 0));
    }
}
