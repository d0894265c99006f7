//! SUP documents: when they are asked for, and what is polled because of what they tell.

use super::{Desk, Feed};
use crate::model::{EventKind, FeedName, Time};
use crate::poll::announced::{Looked, Wanted};
use crate::poll::round::Found;
use crate::poll::schedule::{Next, phase};
use std::time::Duration;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

/// What a feed's SUP document has to do with its polls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hearing {
    /// It was listed, and no poll has begun since.
    pub(super) listed: bool,
    /// Its last poll was one after which every change is listed.
    pub(super) covered: bool,
    /// When its last poll began.
    pub(super) polled: Option<Time>,
    /// Its next poll is the second one for what was listed.
    pub(super) retried: bool,
}

impl Desk {
    /// Asks for the SUP documents that are due.
    pub(super) fn look_at_documents(&mut self) {
        while let Some((address, begun)) = self.announced.take_due(Instant::now()) {
            // It is one more request to that host.
            self.polite.asked(&self.settings.host(&address), Instant::now());
            let (fetch, now) = (self.bench.fetch.clone(), self.clock.now());
            let cancel = self.cancel.clone();
            let task = self.looks.spawn(async move {
                tokio::select! {
                    () = cancel.cancelled() => None,
                    looked = begun.look(&fetch, now) => Some(looked),
                }
            });
            self.addresses.insert(task.id(), address);
        }
    }

    /// Polls what a SUP document lists.
    pub(super) fn looked(&mut self, done: Result<(Id, Option<Looked>), JoinError>) {
        let (id, looked) = match done {
            Ok((id, looked)) => (id, looked),
            Err(error) => (error.id(), None),
        };
        let Some(address) = self.addresses.remove(&id) else { return };
        let least = self.settings.min_interval;
        let wanted = self.announced.looked(&address, looked, least, Instant::now());
        for wanted in wanted {
            self.want(&wanted);
        }
    }

    fn want(&mut self, wanted: &Wanted) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(&wanted.feed) else { return };
        feed.hearing.covered &= wanted.listed;
        if wanted.listed {
            feed.hearing.listed = true;
        }
        // A round in flight sees to it when it is over; a feed in its host's line is polled soon.
        if feed.running.is_some() || feed.in_line {
            return;
        }
        // A publisher that fails, or has asked for a pause, is owed it all the same.
        if feed.memory.as_ref().is_some_and(|memory| memory.poll.failures > 0) {
            return;
        }
        let least = self.settings.bounds(&feed.record.options).min();
        let earliest = feed.hearing.polled.map_or(now, |polled| polled.plus(least));
        // Feeds that all lose their cover are not polled all at once.
        let spread = if wanted.listed { 0 } else { phase(&wanted.feed) % least.as_secs().max(1) };
        let at = earliest.max(now.plus(Duration::from_secs(spread)));
        if feed.due.is_none_or(|due| due > at) {
            self.schedule(&wanted.feed, Next { at, reason: wanted.reason.to_owned() });
        }
    }

    /// Takes in what a successful poll, begun at `begun`, says of the feed's SUP document; says
    /// whether every change from now on will be listed there. `listed`: whether it was polled
    /// because a document listed it.
    pub(super) fn heard(
        &mut self,
        name: &FeedName,
        found: &Found,
        begun: Instant,
        listed: bool,
    ) -> bool {
        if let Some(place) = &found.announced {
            self.announced.attach(name, place.clone(), Instant::now());
        }
        let Some(feed) = self.feeds.get_mut(name) else { return false };
        let new = [EventKind::Created, EventKind::Updated];
        let changed = new.iter().any(|kind| found.counts.get(kind).is_some_and(|n| *n > 0));
        let hearing = std::mem::take(&mut feed.hearing.retried) || feed.hearing.listed || listed;
        if changed && feed.hearing.covered && !hearing {
            self.announced.suspect(name);
        }
        let covered = self.announced.covers(name, begun) && found.held.is_none();
        feed.hearing.covered = covered;
        covered
    }
}

/// When a feed is polled again that was listed and had nothing new: an old answer of a cache may
/// stand before the new one for a minute.
const RETRY_AFTER: Duration = Duration::from_secs(90);

impl Feed {
    /// The poll that its SUP document makes of the one that was planned after a success. `quiet`:
    /// it was polled because it was listed, and nothing was new.
    pub(super) fn replan(
        &mut self,
        planned: Next,
        quiet: bool,
        least: Duration,
        now: Time,
    ) -> Next {
        let polled = self.hearing.polled.unwrap_or(now);
        let (at, reason) = if self.hearing.listed {
            (now.max(polled.plus(least)), "its SUP document listed a change while it was polled")
        } else if quiet && self.hearing.covered {
            self.hearing.retried = true;
            (
                now.plus(RETRY_AFTER.max(least)),
                "its SUP document listed a change that was not found",
            )
        } else {
            return planned;
        };
        if at < planned.at { Next { at, reason: reason.to_owned() } } else { planned }
    }
}
