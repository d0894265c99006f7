//! Feeds that are not polled any more: for the time being, of which polling keeps what it knows, or for good.

use super::PollScheduler;
use crate::board::BoardEntry;
use crate::memory::Memory;
use crate::politeness::Errand;
use std::collections::hash_map::Entry;
use tidegate_core::model::{FeedName, FeedRecord, InterruptionKind, PollState, Time};
use tidegate_status::PollGaps;
use tokio::sync::oneshot;

/// How a feed leaves polling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// It is paused, and may come back.
    Paused,
    Removed,
    /// Another gateway polls it from now on, with what this one remembers of it.
    Moved,
    /// Another gateway polls it already.
    Lost,
}

impl PollScheduler {
    /// Stops polling a feed, once the round in flight is over.
    pub(super) fn depart(
        &mut self,
        name: &FeedName,
        departure: Departure,
        reply: oneshot::Sender<()>,
    ) {
        if let Some(feed) = self.feeds.get_mut(name)
            && let Some(running) = &feed.running
        {
            running.cancel.cancel();
            let after = feed.after_round();
            after.leaving = Some(departure);
            after.left.push(reply);
            return;
        }
        self.drop_feed(name, departure);
        let _ = reply.send(());
    }

    pub(super) fn drop_feed(&mut self, name: &FeedName, departure: Departure) {
        if departure == Departure::Moved {
            self.save_aside(name);
        }
        self.unschedule(name);
        self.forget(&Errand::Probe(name.clone()));
        self.forget(&Errand::Walk(name.clone()));
        match departure {
            Departure::Paused | Departure::Removed => self.leave_hub(name),
            Departure::Moved | Departure::Lost => self.close_callback(name),
        }
        if departure == Departure::Paused {
            self.put_aside(name);
        }
        self.feeds.remove(name);
        self.announced.detach(name);
        match departure {
            Departure::Paused => return,
            Departure::Removed => drop(self.unsaved.remove(name)),
            Departure::Moved => self.bench.attempts.forget(name),
            Departure::Lost => {
                self.unsaved.remove(name);
                self.bench.attempts.forget(name);
            }
        }
        self.paused.remove(name);
        self.board.remove(name);
    }

    /// Writes down what polling remembers of a feed, and keeps it.
    fn put_aside(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(memory) = feed.memory.as_mut() else { return };
        // Whether it would fail is not known while nobody asks.
        memory.poll.interruptions.note(InterruptionKind::Failed, None, now);
        let state = memory.write(&feed.record);
        self.remember(name, state);
        if let Some(state) = self.unsaved.get(name).cloned() {
            self.show_paused(&state);
            self.paused.insert(name.clone(), Box::new(state));
        }
    }

    /// Takes over what the store knows of a feed that is paused.
    pub(super) fn keep_paused(&mut self, state: PollState) {
        self.board.change(&state.feed, |status| status.failures = state.failures);
        self.show_paused(&state);
        self.paused.insert(state.feed.clone(), Box::new(state));
    }

    fn show_paused(&self, state: &PollState) {
        self.board.change(&state.feed, |status| {
            status.pause();
            let gaps = (&state.overlap).into();
            status.rare.change(|rare| rare.gaps = gaps);
            status.interruptions = state.interruptions.clone();
        });
    }

    /// What polling remembers of a feed that it polls from now on: what it knew before a pause, unless
    /// that was of another address.
    pub(super) fn recall(&mut self, record: &FeedRecord, now: Time) -> Memory {
        if let Entry::Occupied(paused) = self.paused.entry(record.name.clone()) {
            let state = *paused.remove();
            if state.url == record.url {
                return Memory::from_saved(state, now);
            }
            self.board.remove(&record.name);
        }
        Memory::new(record, now)
    }

    /// Shows how a feed stands that is polled from now on: anew, unless it was paused.
    pub(super) fn begin_on_board(&self, name: &FeedName, memory: &Memory) {
        let (now, poll) = (self.clock.now(), &memory.poll);
        self.board.change(name, |status| {
            if !status.is_paused() {
                *status = BoardEntry::default();
            }
            status.begin(now, poll.failures);
            status.interruptions = poll.interruptions.clone();
            let gaps = PollGaps::from(&poll.overlap);
            if gaps != status.rare.gaps {
                status.rare.change(|rare| rare.gaps = gaps);
            }
        });
    }
}
