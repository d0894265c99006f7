//! SUP documents: when they are asked for, and what is polled because of what they tell.

use super::{PollScheduler, RunningErrand, ScheduledFeed};
use crate::announced::{AnnouncedFeed, Looked};
use crate::polling::PollResult;
use crate::reason::PlannedPoll;
use crate::schedule::{PushSource, phase};
use std::time::Duration;
use tidegate_core::model::{EventKind, FeedName, Time};
use tidegate_core::websub::subscriber::Polled;
use tidegate_status::PollEnding;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

/// What a feed's SUP document and its hub have to do with its polls.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PushTriggers {
    /// It was listed, and no poll has begun since.
    pub(super) listed: bool,
    /// Its last poll was one after which every change is listed.
    pub(super) covered: bool,
    /// When its last poll began.
    pub(super) polled: Option<Time>,
    /// Its next poll is the second one for what was told of.
    pub(super) retried: bool,
    /// Its hub told of a change, and no poll has begun since.
    pub(super) pushed: bool,
    /// Its last poll was one after which its hub tells of every change.
    pub(super) by_hub: bool,
    /// Its hub delivered when its last poll began.
    pub(super) expects: bool,
    /// Pushes in a row after which nothing was new.
    pub(super) futile: u32,
    /// When a poll found a change that no document has listed yet, and that no push has told of yet.
    unlisted: Option<Time>,
    unpushed: Option<Time>,
    /// The last poll was begun because a change was told of, and there is none that this could be.
    pub(super) not_found: bool,
}

/// For how long what was found without being told of may be what is told of then: SUP documents of the
/// usual periods list a change within an hour.
const TOLD_LATER: Duration = Duration::from_secs(3600);

impl PushTriggers {
    /// Notes of a poll whether what was told of is still to be found. A document that lists what a push
    /// has told of before, and the other way round, tells of nothing more.
    fn weigh(&mut self, running: &RunningErrand, found: &PollResult, changed: bool) {
        let is_new = found.outcome == PollEnding::Changed;
        let lacks = |told: bool, before: &mut Option<Time>| {
            let known = if told { before.take() } else { *before };
            if is_new && !told {
                *before = Some(running.at);
            }
            let is_known =
                known.is_some_and(|known| (known..=known.plus(TOLD_LATER)).contains(&running.at));
            told && !is_new && !is_known
        };
        let unlisted = lacks(running.listed, &mut self.unlisted);
        let unpushed = lacks(running.pushed, &mut self.unpushed);
        self.not_found = unlisted || unpushed;
        if changed {
            self.futile = 0;
        } else if unpushed {
            self.futile = self.futile.saturating_add(1);
        }
    }
}

impl PollScheduler {
    /// Ends the cover of SUP documents that were not read in time, and asks for those that are due.
    pub(super) fn look_at_documents(&mut self) {
        for wanted in self.announced.lapse(Instant::now()) {
            self.want(&wanted);
        }
        if !self.may_begin() {
            return;
        }
        while let Some((address, begun)) =
            self.announced.take_due(Instant::now(), |url| self.settings.host(url).name().into())
        {
            // It is one more request to that host.
            let (host, at) = (self.settings.host(begun.address()), Instant::now());
            if let Err(left) = self.polite.ask_out_of_turn(&host, at) {
                for wanted in self.announced.put_off(&address, begun, left, at) {
                    self.want(&wanted);
                }
                continue;
            }
            let (fetch, now) = (self.bench.fetch.clone(), self.clock.now());
            let cancel = self.round_token();
            let task = self.looks.spawn(async move {
                tokio::select! {
                    () = cancel.cancelled() => None,
                    looked = begun.read_updates(&fetch, now) => Some(looked),
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
        if let Some(pause) = looked.as_ref().and_then(Looked::pause) {
            self.pause(&pause);
        }
        let least = self.settings.min_interval;
        let wanted = self.announced.looked(&address, looked, least, Instant::now());
        for wanted in wanted {
            self.want(&wanted);
        }
    }

    /// Polls a feed because its SUP document lists it, or because nobody tells of its changes any
    /// more.
    pub(super) fn want(&mut self, wanted: &AnnouncedFeed) {
        let Some(feed) = self.feeds.get_mut(&wanted.feed) else { return };
        feed.hearing.covered &= wanted.listed;
        feed.hearing.listed |= wanted.listed;
        let least = self.settings.bounds(&feed.record.options).min();
        // Feeds that all lose their cover are not polled all at once.
        let spread = if wanted.listed { 0 } else { phase(&wanted.feed) % least.as_secs().max(1) };
        self.bring_about(&wanted.feed, least, Duration::from_secs(spread), wanted.reason);
    }

    /// Polls a feed soon: `spread` from now, and not sooner after its last poll than `pause`.
    pub(super) fn bring_about(
        &mut self,
        name: &FeedName,
        pause: Duration,
        spread: Duration,
        reason: &'static str,
    ) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        // A round in flight sees to it when it is over; a feed in its host's line is polled soon.
        if feed.running.is_some() || feed.in_line {
            return;
        }
        // A publisher that fails, or has asked for a pause, is owed it all the same.
        if feed.memory.as_ref().is_some_and(|memory| memory.poll.failures > 0) {
            return;
        }
        // The clock may have been set back since.
        let earliest = feed.hearing.polled.map_or(now, |polled| polled.min(now).plus(pause));
        let at = earliest.max(now.plus(spread));
        if feed.due.is_none_or(|due| due > at) {
            self.schedule(name, PlannedPoll::new(at, reason));
        }
    }

    /// Takes in what a successful poll says of the feed's SUP document and of its hub; who tells of
    /// every change from now on.
    pub(super) fn heard(
        &mut self,
        name: &FeedName,
        found: &PollResult,
        running: &RunningErrand,
    ) -> Option<PushSource> {
        if let Some(place) = &found.announced {
            self.announced.attach(name, place.clone(), Instant::now());
        }
        let feed = self.feeds.get_mut(name)?;
        let new = [EventKind::Created, EventKind::Updated];
        let changed = new.iter().any(|kind| found.counts.get(kind).is_some_and(|n| *n > 0));
        let hearing = &mut feed.hearing;
        let retried = std::mem::take(&mut hearing.retried);
        let (listed, pushed) = (hearing.listed || running.listed, hearing.pushed || running.pushed);
        hearing.weigh(running, found, changed);
        let expected = hearing.expects;
        if changed && hearing.covered && !listed && !retried {
            self.announced.suspect(name);
        }
        let covered = self.announced.covers(name, running.since) && found.held.is_none();
        if let Some(feed) = self.feeds.get_mut(name) {
            feed.hearing.covered = covered;
        }
        let polled = Polled { changed, pushed: pushed || retried, expected };
        let by_hub = self.heard_of_hub(name, found, running.at, polled);
        // Where both do, the hub is sooner.
        if by_hub {
            return Some(PushSource::Hub);
        }
        covered.then_some(PushSource::Sup)
    }
}

/// When a feed is polled again of which a change was told and nothing was new: an old answer of a
/// cache may stand before the new one for a minute.
const RETRY_AFTER: Duration = Duration::from_secs(90);

impl ScheduledFeed {
    /// The poll that its SUP document or its hub makes of the one that was planned after a success.
    pub(super) fn replan(
        &mut self,
        planned: PlannedPoll,
        least: Duration,
        now: Time,
    ) -> PlannedPoll {
        let polled = self.hearing.polled.map_or(now, |polled| polled.min(now));
        let (at, reason) = if self.hearing.pushed {
            let pause = self.push_pause(least);
            (now.max(polled.plus(pause)), "its hub told of a change while it was polled")
        } else if self.hearing.listed {
            (now.max(polled.plus(least)), "its SUP document listed a change while it was polled")
        } else if self.hearing.not_found && (self.hearing.covered || self.hearing.by_hub) {
            self.hearing.retried = true;
            let reason = if self.hearing.covered {
                "its SUP document listed a change that was not found"
            } else {
                "its hub told of a change that was not found"
            };
            (now.plus(RETRY_AFTER.max(least)), reason)
        } else {
            return planned;
        };
        if at < planned.at { PlannedPoll::new(at, reason) } else { planned }
    }
}
