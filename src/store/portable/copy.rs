//! Makes a copy of a store, whose clients can notice that it is one.

use super::{ExportRecord, StoreOrigin};
use crate::record::StateRecord;
use crate::{ClosedEpoch, Epoch, LoggedChange, endpoint};
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState, Gap, Lineage, Tick, Time};

/// The most feeds that one epoch announces as restarted.
const ANNOUNCED: usize = 256;

/// Converts the exported records of a store to those of a copy with a new identity.
///
/// The original may have gone on, and its clients with it. In the copy each feed begins a new window (`restarted`),
/// and the change log announces all of them, so that readers of the log, of SUP documents and of the hub check each
/// feed. The claims of the original are removed.
#[derive(Debug)]
pub struct Copying {
    known: Time,
    now: Time,
    last: (Epoch, Time),
    begun: Vec<LoggedChange>,
}

impl Copying {
    /// Makes a copy at the time `now`. `known`: the latest time in the records ([`ExportRecord::latest`]).
    pub const fn new(known: Time, now: Time) -> Self {
        Self { known, now, last: (Epoch(0), Time::MIN), begun: Vec::new() }
    }

    /// Converts a record of the original.
    pub fn piece(&mut self, piece: ExportRecord) -> ExportRecord {
        match piece {
            ExportRecord::Origin(origin) => {
                self.last.0 = self.last.0.max(origin.reached);
                ExportRecord::Origin(Box::new(StoreOrigin { fence: 0, ..*origin }))
            }
            ExportRecord::Log(closed) => {
                self.last = (closed.epoch, closed.at);
                ExportRecord::Log(closed)
            }
            ExportRecord::State(feed, head) => {
                let head = restarted(*head, self.known, self.now);
                self.begun.extend(announcement(&feed, &head.state));
                ExportRecord::State(feed, Box::new(head))
            }
            other => other,
        }
    }

    /// The records after the last one: the epochs that announce the feeds.
    pub fn end(self) -> impl Iterator<Item = ExportRecord> {
        let (Epoch(last), at) = (self.last.0, self.now.max(self.last.1));
        let parts: Vec<_> = self.begun.chunks(ANNOUNCED).map(<[_]>::to_vec).collect();
        (last.saturating_add(1)..).zip(parts).map(move |(number, changes)| {
            ExportRecord::Log(ClosedEpoch { epoch: Epoch(number), at, changes })
        })
    }
}

/// The log entry of a restarted feed, if it ever had one.
pub(crate) fn announcement(feed: &FeedName, state: &FeedState) -> Option<LoggedChange> {
    let (feed, revision) = (feed.clone(), state.revision);
    state.tick.map(|tick| LoggedChange { feed, tick, revision, versions: 0 })
}

/// The state of a feed that restarts from a copy, at the time `now`. `known`: the latest time in the copy
/// ([`ExportRecord::latest`]).
///
/// The original may have gone on, and its subscribers hold ticks and tags that the copy does not know. So a new
/// window begins after all of them: every subscriber finds itself out of sync and reads the complete feed (SSE 1.0
/// section 4.1). The unknown interval is noted ([`gap`](tidegate_core::model::FeedState::gap)).
pub fn restarted(mut head: StateRecord, known: Time, now: Time) -> StateRecord {
    let state = &mut head.state;
    let second = Duration::from_secs(1);
    if let Some(last) = state.tick {
        let tick = Tick::next(now, Some(last));
        state.tick = Some(tick);
        state.window_start = Some(tick);
        state.complete_start = state.complete_start.or(Some(tick));
    }
    let until = state.tick.map_or(now, |tick| now.max(tick.time()));
    state.gap = Some(Gap { since: known.min(until), until }.after(state.gap));
    let found = state.render_revision;
    state.render_revision = found.saturating_add(1);
    state.deltas_from = state.render_revision;
    state.updated_at = now.max(state.updated_at.plus(second));
    match endpoint::random_mark() {
        Some(mark) => state.lineage.go_on(mark, found),
        // Unknown which opening made the next revisions: claim none.
        None => state.lineage = Lineage::default(),
    }
    head
}
