//! Feeds that are not polled any more: for the time being, of which polling keeps what it knows, or for good.

use super::errands::Errand;
use super::{PollScheduler, ScheduledFeed};
use crate::memory::Memory;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, InterruptionKind};
use tidegate_core::websub::subscriber::Requests;
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
        self.table.remove(name);
    }

    /// Writes down what polling remembers of a feed, and keeps it.
    fn put_aside(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        let mut polling = feed.cell.lock();
        // Whether it would fail is not known while nobody asks.
        let interruptions = &mut polling.memory.state.interruptions;
        interruptions.note(InterruptionKind::Failed, None, self.clock.now());
        polling.pause();
        drop(polling);
        self.remember(name);
    }

    /// A feed that is polled from now on. `memory`: what is known of it; `None`: what was known before a pause, unless
    /// that was of another address.
    pub(super) fn admit(
        &self,
        record: Arc<FeedRecord>,
        memory: Option<Memory>,
    ) -> Box<ScheduledFeed> {
        let (name, now) = (&record.name, self.clock.now());
        let paused = self.table.get(name).filter(|cell| {
            let polling = cell.lock();
            polling.is_paused() && memory.is_none() && polling.memory.state.url == record.url
        });
        let cell = paused.unwrap_or_else(|| {
            let memory = memory.unwrap_or_else(|| Memory::new(&record, now));
            self.table.insert(name.clone(), memory)
        });
        cell.lock().begin(now);
        Box::new(ScheduledFeed::new(record, cell))
    }

    /// Ends what else was under way for a feed that another takes the place of. What it asked its hub for.
    pub(super) fn replace(&mut self, name: &FeedName) -> Option<Box<Requests>> {
        self.forget(&Errand::Probe(name.clone()));
        self.forget(&Errand::Walk(name.clone()));
        self.leave_hub(name);
        self.announced.detach(name);
        self.feeds.get_mut(name)?.hub_requests.take()
    }
}
