//! Polls caused by SUP documents and hubs that announce changes.

use super::PollScheduler;
use super::feed::{LiveFeed, RunningPoll};
use super::hub::PUSH_PAUSE;
use crate::feeds::FeedCell;
use crate::polling::PollResult;
use crate::schedule::{IntervalReason, PlannedPoll, phase};
use crate::sup::{self, AnnouncedFeeds};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{EventKind, FeedName, PushedPoll, Time, ToldChange};
use tidegate_status::PollEnding;

impl PollScheduler {
    /// Polls the feeds that a SUP document names to be polled.
    pub(crate) fn poll_announced(&mut self, wanted: &AnnouncedFeeds) {
        let now = self.context.clock.now();
        for name in &wanted.feeds {
            if let Some(reason) = wanted.lost {
                self.with_feed(name, |feed| feed.live.covered = false);
                self.poll_uncovered(name, reason);
                continue;
            }
            let pause = self.with_feed(name, |feed| {
                let told = feed.live.followed.as_mut().map(|it| it.listed(now));
                feed.live.told = feed.live.told.max(told.unwrap_or_default());
                feed.live.push_pause(self.bounds(&feed.record).min())
            });
            if let Some(pause) = pause {
                self.poll_soon(name, pause, Duration::ZERO, "its SUP document lists a change");
            }
        }
    }

    /// Polls a feed whose changes are no longer announced. Many may lose what announces them at once, so their polls
    /// are spread.
    pub(super) fn poll_uncovered(&mut self, name: &FeedName, reason: &'static str) {
        let least = self.with_feed(name, |feed| self.bounds(&feed.record).min());
        if let Some(least) = least {
            let spread = Duration::from_secs(phase(name) % least.as_secs().max(1));
            self.poll_soon(name, least, spread, reason);
        }
    }

    /// Schedules a poll after `spread`, but no sooner than `pause` after the feed's last poll.
    pub(super) fn poll_soon(
        &mut self,
        name: &FeedName,
        pause: Duration,
        spread: Duration,
        reason: &'static str,
    ) {
        let now = self.context.clock.now();
        let at = self.with_feed(name, |feed| {
            // A poll in flight handles the push when it ends, and a feed in its host's line is polled soon anyway. A
            // feed that fails, or whose host asked for a pause, keeps its planned time.
            let is_soon = feed.live.running.is_some() || feed.live.in_line.is_some();
            if is_soon || feed.memory.state.failures > 0 {
                return None;
            }
            // The clock may have been set back since.
            let polled = feed.live.polled;
            let earliest = polled.map_or(now, |polled| polled.min(now).plus(pause));
            let at = earliest.max(now.plus(spread));
            feed.live.next.as_ref().is_none_or(|next| next.at > at).then_some(at)
        });
        if let Some(at) = at.flatten() {
            self.schedule(name, PlannedPoll::new(at, reason));
        }
    }

    /// Applies the links of a successful poll to the feed's SUP document and hub. Returns which of them is expected to
    /// announce every further change.
    pub(super) fn apply_links(
        &mut self,
        (name, cell): (&FeedName, &FeedCell),
        found: &PollResult,
        running: &RunningPoll,
    ) -> Option<IntervalReason> {
        let context = &self.context;
        let begin = |reader, source| {
            let following = sup::follow(Arc::clone(context), reader, source);
            context.spawn_background(|cancel| async move {
                cancel.run_until_cancelled(following).await;
            })
        };
        let mut feed = cell.lock();
        if let Some(announcement) = found.announced.clone() {
            let before = feed.live.followed.take();
            feed.live.followed =
                announcement.and_then(|it| self.followed_documents.follow(name, before, it, begin));
        }
        let new = [EventKind::Created, EventKind::Updated];
        let changed = new.iter().any(|kind| found.poll.counts.get(kind).is_some_and(|n| *n > 0));
        let is_vain = running.told == ToldChange::New && found.poll.outcome != PollEnding::Changed;
        if changed {
            feed.live.futile = 0;
        } else if is_vain {
            feed.live.futile = feed.live.futile.saturating_add(1);
        }
        let was_retried = std::mem::replace(&mut feed.live.retried, is_vain);
        let told = was_retried || feed.live.told.max(running.told) != ToldChange::None;
        let poll = PushedPoll { changed, told, expected: feed.live.covered };
        let now = self.context.clock.now();
        let followed = feed.live.followed.as_mut();
        let covered = followed.is_some_and(|it| it.polled(poll, running.since, now));
        let covered = covered && found.held.is_none();
        feed.live.covered = covered;
        let poll = PushedPoll { expected: feed.live.by_hub, ..poll };
        drop(feed);
        let by_hub = self.update_hub_trust((name, cell), found, running.at, poll);
        // If both do, the hub is faster.
        if by_hub {
            return Some(IntervalReason::ByHub);
        }
        covered.then_some(IntervalReason::BySup)
    }
}

/// The pause before the second poll for an announcement that led to nothing new: a cache may serve the old document for
/// about a minute.
const RETRY_AFTER: Duration = Duration::from_secs(90);

impl LiveFeed {
    /// Returns the shortest time between the feed's last poll and a poll caused by a push.
    pub(super) fn push_pause(&self, least: Duration) -> Duration {
        PUSH_PAUSE.after(self.futile.saturating_add(1)).min(least)
    }

    /// Moves the poll planned after a success forward if an announcement calls for an earlier one.
    pub(super) fn replan(&self, planned: PlannedPoll, least: Duration, now: Time) -> PlannedPoll {
        let polled = self.polled.map_or(now, |polled| polled.min(now));
        let (at, reason) = if self.told != ToldChange::None {
            let at = now.max(polled.plus(self.push_pause(least)));
            (at, "a change was told of while it was polled")
        } else if self.retried && (self.covered || self.by_hub) {
            (now.plus(RETRY_AFTER.max(least)), "a change that was told of was not found")
        } else {
            return planned;
        };
        if at < planned.at { PlannedPoll::new(at, reason) } else { planned }
    }
}
