//! Derives a publisher's updates documents from the change log.

use super::{GATEWAYS_APART, slack};
use crate::model::{SupId, Tick, Time};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

/// A closed epoch of the change log, reduced to what SUP needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Its number.
    pub epoch: u64,
    /// When it was closed. The next epoch is never closed before the moment at which this one could first be read.
    pub at: Time,
    /// The changed feeds and their ticks, in the order of the log.
    pub changes: Vec<(SupId, Tick)>,
}

/// An update that documents may list.
#[derive(Debug, Clone)]
struct SupUpdate {
    /// Any document made before the update was readable has an `updated_time` before this.
    from: Time,
    id: SupId,
    tick: Tick,
}

/// The newest update of each feed, in the order of the log, as far back as the longest period needs.
///
/// **Why no consumer misses an update.** A document's `updated_time` is the second before the time `now`, which was
/// read *before* the log. So every epoch that it could not see became readable at `now` or later. Each update carries
/// the earliest time that is certain not to be before that moment: the closing of the next epoch, or the end of the
/// reading that found it. These times never decrease. A document whose `since_time` is not after another's
/// `updated_time` therefore lists every update that the other did not. After a restart only the last epoch may carry a
/// later time than before: it may be listed once more, which does no harm.
///
/// **With several gateways** the two documents may use two clocks, and the closing of an epoch a third one. A gateway
/// may also show an update later than another. So the time of an update may precede the moment at which the other
/// gateway could read it, by less than [`GATEWAYS_APART`]. If there may be other gateways, a document also lists
/// updates up to that long before its `since_time`.
#[derive(Debug, Clone)]
pub struct Windows {
    longest: Duration,
    epoch: u64,
    /// The last epoch that documents include.
    settled: u64,
    now: Time,
    /// The latest time of an update.
    from: Time,
    /// How far before its `since_time` a document begins.
    overlap: Duration,
    /// The last epoch, until it is known when it could first be read.
    last: Option<Closed>,
    listed: BTreeMap<u64, SupUpdate>,
    newest: HashMap<SupId, u64>,
    next: u64,
}

impl Windows {
    /// Creates windows up to the period `longest`, in seconds, before anything was read.
    pub fn new(longest: u32) -> Self {
        let longest = Duration::from_secs(u64::from(longest)).saturating_add(slack(longest));
        Self {
            longest,
            epoch: 0,
            settled: 0,
            now: Time::MIN,
            from: Time::MIN,
            overlap: Duration::ZERO,
            last: None,
            listed: BTreeMap::new(),
            newest: HashMap::new(),
            next: 0,
        }
    }

    /// Returns the last epoch added; 0 before the first.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of updates held.
    pub fn len(&self) -> usize {
        self.listed.len()
    }

    /// Whether no updates are held.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// Adds the next epoch of the log; ignores one added before.
    pub fn add_epoch(&mut self, closed: Closed) {
        if closed.epoch <= self.epoch {
            return;
        }
        self.epoch = closed.epoch;
        let readable = closed.at;
        if let Some(last) = self.last.replace(closed) {
            self.list(last, readable);
        }
    }

    /// Makes later documents correct for consumers that have also asked other gateways of the same log.
    pub const fn allow_other_gateways(&mut self) {
        self.overlap = GATEWAYS_APART;
    }

    /// Declares that every epoch readable at `now` was added, so that documents may say so; none was added after `end`.
    pub fn finish(&mut self, now: Time, end: Time) {
        let at = self.last.as_ref().map_or(now, |last| now.max(last.at));
        self.now = self.now.max(at);
        if let Some(last) = self.last.take() {
            self.list(last, end);
        }
        self.settled = self.epoch;
        let kept = self.longest.saturating_add(self.overlap).saturating_add(Duration::from_secs(1));
        let cut = self.now.minus(kept);
        while let Some(oldest) = self.listed.first_entry() {
            if oldest.get().from > cut {
                break;
            }
            let (place, gone) = oldest.remove_entry();
            if self.newest.get(&gone.id) == Some(&place) {
                self.newest.remove(&gone.id);
            }
        }
    }

    fn list(&mut self, closed: Closed, readable: Time) {
        // Times never decrease, because documents end at the first update that is too old.
        let from = readable.max(self.now).max(self.from);
        self.from = from;
        for (id, tick) in closed.changes {
            let place = self.next;
            self.next = self.next.saturating_add(1);
            if let Some(before) = self.newest.insert(id.clone(), place) {
                self.listed.remove(&before);
            }
            self.listed.insert(place, SupUpdate { from, id, tick });
        }
    }

    /// Returns the interval of the document of `period` seconds, as of the last [`finish`](Self::finish).
    pub fn window(&self, period: u32) -> SupWindow<'_> {
        let updated = self.now.minus(Duration::from_secs(1));
        let length = Duration::from_secs(u64::from(period)).saturating_add(slack(period));
        SupWindow {
            windows: self,
            period,
            since: updated.minus(length),
            updated,
            epoch: self.settled,
        }
    }
}

/// The interval (`since_time`, `updated_time`] of a document and its updates.
#[derive(Debug, Clone, Copy)]
pub struct SupWindow<'a> {
    windows: &'a Windows,
    /// The period, in seconds.
    pub period: u32,
    /// `since_time`.
    pub since: Time,
    /// `updated_time`.
    pub updated: Time,
    /// The last epoch that it includes.
    pub epoch: u64,
}

/// The approximate bytes of one update in a document.
const UPDATE_BYTES: usize = 48;

impl SupWindow<'_> {
    /// Returns the newest update of each feed in the interval, newest first; with other gateways also those shortly
    /// before (READINGS 4, rows 8 and 9).
    pub fn updates(&self) -> impl Iterator<Item = (&SupId, Tick)> {
        let begin = self.since.minus(self.windows.overlap);
        let newest = self.windows.listed.values().rev();
        newest.take_while(move |update| update.from > begin).map(|update| (&update.id, update.tick))
    }

    /// Writes the document (SUP section 3). `address`: returns the absolute address of a period's document.
    /// `is_listed`: selects the feeds of the document.
    pub fn write(
        &self,
        periods: &[u32],
        address: impl Fn(u32) -> String,
        is_listed: impl Fn(&SupId) -> bool,
    ) -> String {
        let updates = || self.updates().filter(|(id, _)| is_listed(id));
        let mut out = String::with_capacity(512 + UPDATE_BYTES * updates().count().min(1 << 22));
        out.push_str("{\"updated_time\":\"");
        // Writing to a string cannot fail.
        let _ = write!(out, "{}\",\"since_time\":\"{}\"", self.updated, self.since);
        let _ = write!(out, ",\"period\":{},\"available_periods\":{{", self.period);
        for (n, period) in periods.iter().enumerate() {
            let address = serde_json::Value::String(address(*period));
            let comma = if n == 0 { "" } else { "," };
            let _ = write!(out, "{comma}\"{period}\":{address}");
        }
        out.push_str("},\"updates\":[");
        let mut spelled: Option<(Tick, String)> = None;
        for (n, (id, tick)) in updates().enumerate() {
            if n > 0 {
                out.push_str(",\n");
            }
            // Feeds that changed together have the same update id.
            let update = match spelled.take() {
                Some((of, update)) if of == tick => update,
                _ => tick.update_id(),
            };
            // Neither id contains characters that JSON escapes.
            for part in ["[\"", id.as_str(), "\",\"", &update, "\"]"] {
                out.push_str(part);
            }
            spelled = Some((tick, update));
        }
        out.push_str("]}\n");
        out
    }
}
