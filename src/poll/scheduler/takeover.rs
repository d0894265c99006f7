//! What this gateway takes over: feeds of shards that it gained, and, where another gateway writes the store, what
//! the list of feeds says of those that it has.

use super::departure::Departure;
use super::handover::until_given_over;
use super::plans::{ResumeBasis, ResumedFeed, Spread};
use super::share::{FIRST_POLL_ELSEWHERE, Postponement, ShareEvent};
use super::survey::{ListChanges, StoredFeed, Survey};
use super::{PollScheduler, SLICE};
use crate::resume::PolledUntil;
use crate::shards::{is_polled, shard_of};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, Time};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often it is looked at whether the first poll of a feed by another gateway is stored.
const FIRST_POLL_LOOK: Duration = Duration::from_secs(5);
/// How the polls are spread that are due where others have polled: they have waited for long already, and no more are made
/// at the same time than ever, nor closer to each other at one host.
pub(super) const TAKEOVER_SPREAD: Spread =
    Spread { step: Duration::from_millis(5), most: Duration::from_secs(10) };

impl PollScheduler {
    /// Takes in what the share has to say.
    pub(super) fn take_in(&mut self, event: ShareEvent) {
        let Some(share) = &mut self.share else { return };
        match event {
            // What has changed is compared before anything else begins.
            ShareEvent::Changed => share.compare_soon(),
            ShareEvent::Freed(id) => self.free_place(id),
            ShareEvent::Surveyed(Ok(survey)) => self.take_over(survey),
            ShareEvent::Surveyed(Err(error)) => {
                tracing::warn!(
                    error,
                    "the feeds of this gateway could not be read; they are read again"
                );
                share.put_off_survey();
            }
        }
    }

    fn take_over(&mut self, survey: Survey) {
        let Survey { gained, list, changes, mut feeds, postponed, mut marks } = survey;
        // Those whose shard was gained are read from the store.
        self.part_with_guests();
        let Some(share) = &mut self.share else { return };
        let held = share.shards.held();
        if !gained.is_empty() {
            share.compare_soon();
        }
        share.taken.extend(gained.into_iter().filter(|(shard, fence)| {
            held.get(shard).is_some_and(|held| held.fence == *fence && !held.is_leaving)
        }));
        if share.is_follower() {
            share.list = Some(list);
        }
        let (waited, others): (BTreeMap<_, _>, _) = std::mem::take(&mut share.postponed)
            .into_iter()
            .partition(|(name, _)| postponed.contains(name));
        share.postponed = others;
        let meanwhile = std::mem::take(&mut share.meanwhile);
        self.follow_list(changes);
        feeds.retain(|stored| {
            let waited: Option<&Postponement> = waited.get(&stored.record.name);
            self.can_take_over(stored, waited.and_then(|waited| waited.left_until))
        });
        let taken: HashSet<&FeedName> = feeds.iter().map(|stored| &stored.record.name).collect();
        marks.retain(|mark| taken.contains(&mark.feed));
        self.bench.attempts.take_over(marks);
        let now = self.clock.now();
        let basis = ResumeBasis {
            now,
            back: Duration::ZERO,
            reason: "it was due when this gateway took it over",
        };
        let feeds: Vec<ResumedFeed> = feeds
            .into_iter()
            .filter_map(|stored| {
                let polled = self.polled_until(&stored.record, now);
                self.resume_feed(stored, polled, &basis)
            })
            .collect();
        let due = feeds.iter().filter(|feed| feed.is_spread(now)).count();
        let spread = TAKEOVER_SPREAD.over(due);
        for feed in feeds {
            self.go_on_with(feed, &basis, spread);
        }
        for (name, record) in meanwhile {
            match record {
                Some(record) if self.is_for_here(&record) => self.take_in_record(&record),
                Some(_) => {}
                None => self.depart(&name, Departure::Removed, oneshot::channel().0),
            }
        }
    }

    /// Until when somebody polled a feed that is taken over.
    fn polled_until(&self, record: &FeedRecord, now: Time) -> PolledUntil {
        let shards = self.share.as_ref().map(|share| &share.shards);
        let unpolled = shards.and_then(|shards| shards.unpolled_for(shard_of(&record.url)));
        match unpolled {
            Some(unpolled) => PolledUntil::Seen(now.minus(unpolled)),
            None => until_given_over(now, now),
        }
    }

    /// Whether a feed that was read is taken over now. It may have to wait: for the end of what was begun before
    /// its shard was lost, or for its first poll by the gateway that made it, at most until `left_until`.
    fn can_take_over(&mut self, stored: &StoredFeed, left_until: Option<Instant>) -> bool {
        let record = &stored.record;
        let is_busy = self.is_in_flight(&record.name);
        let is_here = self.feeds.contains_key(&record.name);
        let Some(share) = &mut self.share else { return false };
        // A guest stays, once its shard is here.
        let is_guest = is_here && share.guests.contains_key(&record.name);
        if !share.takes(shard_of(&record.url)) || is_guest {
            return false;
        }
        if is_busy {
            let at = Instant::now() + SLICE;
            share.postponed.insert(record.name.clone(), Postponement { at, left_until });
            return false;
        }
        let is_taken_over = !is_here && !self.is_left_to_others(stored, left_until);
        if is_taken_over && let Some(share) = &mut self.share {
            // What its poll as a guest left to be written is gone on with.
            share.guests.remove(&record.name);
        }
        is_taken_over
    }

    /// Leaves a feed alone that a request has made and another gateway may be polling: until what came of that is
    /// stored, and at most until `left_until`; where that is not given, for [`FIRST_POLL_ELSEWHERE`]. Answers whether it
    /// is such a feed. A gateway that adds a feed in another way does not poll it.
    pub(super) fn is_left_to_others(
        &mut self,
        stored: &StoredFeed,
        left_until: Option<Instant>,
    ) -> bool {
        let record = &stored.record;
        let is_new = stored.state.is_none() && is_polled(record) && record.on_demand.is_some();
        let Some(share) = self.share.as_mut().filter(|it| is_new && it.is_follower()) else {
            return false;
        };
        let now = Instant::now();
        let until = left_until.unwrap_or(now + FIRST_POLL_ELSEWHERE);
        if until <= now {
            return false;
        }
        let at = until.min(now + FIRST_POLL_LOOK);
        let postponement = Postponement { at, left_until: Some(until) };
        share.postponed.insert(record.name.clone(), postponement);
        true
    }

    /// Follows the list of feeds, where another gateway writes it.
    fn follow_list(&mut self, changes: ListChanges) {
        let ListChanges { changed, same, left } = changes;
        for name in left {
            let is_lost = self.feeds.get(&name).is_some_and(|feed| feed.is_lost());
            if !is_lost && self.is_known_here(&name) {
                self.depart(&name, Departure::Removed, oneshot::channel().0);
            }
        }
        self.share_records(same);
        for record in changed {
            self.take_in_record(&record);
        }
    }

    fn is_known_here(&self, name: &FeedName) -> bool {
        self.feeds.contains_key(name) || self.paused.contains_key(name)
    }

    /// Takes in a record that another gateway put, or that was put while its shard was being taken over.
    fn take_in_record(&mut self, record: &Arc<FeedRecord>) {
        let name = &record.name;
        match self.feeds.get(name) {
            Some(feed) if feed.is_lost() => {}
            Some(feed) if is_polled(record) && feed.follows_alike(record) => {
                self.share_records(vec![Arc::clone(record)]);
            }
            // Its new address is another gateway's, of which nothing is known here.
            _ if self.is_known_here(name) && !self.is_for_here(record) => {
                self.depart(name, Departure::Removed, oneshot::channel().0);
            }
            _ if self.is_known_here(name) => {
                self.put(Arc::clone(record), oneshot::channel().0);
            }
            _ if is_polled(record) => {
                let Some(share) = &mut self.share else { return };
                let soon = Postponement { at: Instant::now(), left_until: None };
                share.postponed.entry(name.clone()).or_insert(soon);
            }
            _ => {}
        }
    }
}
