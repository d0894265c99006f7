//! What a copy is made of: everything of a store, so that whoever followed that one notices.

use super::{ExportRecord, StoreOrigin};
use crate::record::StateRecord;
use crate::{ClosedEpoch, Epoch, LoggedChange, endpoint};
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState, Gap, Lineage, Tick, Time};

/// How many feeds one epoch announces that begin anew.
const ANNOUNCED: usize = 256;

/// Makes the pieces of a store into those of a copy, which begins a life of its own.
///
/// The other store may have gone on, and its clients with it. In the copy each feed begins a new
/// window (`restarted`), and the log announces them all, so that who follows the log, SUP documents
/// or a hub looks at each. The claims of the other are not the copy's.
#[derive(Debug)]
pub struct Copying {
    known: Time,
    now: Time,
    last: (Epoch, Time),
    begun: Vec<LoggedChange>,
}

impl Copying {
    /// A copy that is made at the time `now`. `known`: the last moment that the pieces know of
    /// ([`ExportRecord::latest`]).
    pub const fn new(known: Time, now: Time) -> Self {
        Self { known, now, last: (Epoch(0), Time::MIN), begun: Vec::new() }
    }

    /// A piece of the other store, as the copy has it.
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

    /// What comes after the last piece: the epochs that announce the feeds.
    pub fn end(self) -> impl Iterator<Item = ExportRecord> {
        let (Epoch(last), at) = (self.last.0, self.now.max(self.last.1));
        let parts: Vec<_> = self.begun.chunks(ANNOUNCED).map(<[_]>::to_vec).collect();
        (last.saturating_add(1)..).zip(parts).map(move |(number, changes)| {
            ExportRecord::Log(ClosedEpoch { epoch: Epoch(number), at, changes })
        })
    }
}

/// What the log says of a feed that begins anew, where it ever said anything of it.
pub(crate) fn announcement(feed: &FeedName, state: &FeedState) -> Option<LoggedChange> {
    let (feed, revision) = (feed.clone(), state.revision);
    state.tick.map(|tick| LoggedChange { feed, tick, revision, versions: 0 })
}

/// The state of a feed that goes on from a copy, at the time `now`. `known`: the last moment that the
/// copy knows of ([`ExportRecord::latest`]).
///
/// The store that it was copied from may have gone on, and subscribers with it: they hold ticks and
/// tags that this one does not know. So a new window begins after all of them, and every subscriber
/// finds itself out of sync and reads the complete feed (SSE 1.0 section 4.1). That the copy does not know
/// what was made since is noted ([`gap`](tidegate_core::model::FeedState::gap)).
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
        // Nobody could tell what was made from now on: nothing is claimed of any revision.
        None => state.lineage = Lineage::default(),
    }
    head
}
