//! How many missing items may be asked about in an hour. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tidegate_core::model::{FeedName, Probing, Time};

/// Items of one feed that are asked about in an hour. With each round of asking go an item that is
/// listed and a made-up address, and where a site does not take HEAD a second request for each.
pub const FEED_ASKS_PER_HOUR: usize = 4;
/// Items of one host, of all its feeds.
pub const HOST_ASKS_PER_HOUR: usize = 12;
/// The same where doubts alone are asked about, as nobody said that they should not.
pub const HOST_DOUBTS_PER_HOUR: usize = 1;

const HOUR: Duration = Duration::from_secs(3600);

/// What was asked within the last hour, at most so much as the limit allows.
#[derive(Debug, Clone, Default)]
pub struct Allowance {
    asked: VecDeque<Time>,
}

impl Allowance {
    /// How many more may be asked about now.
    pub fn room(&mut self, limit: usize, now: Time) -> usize {
        // A clock that went back must not forbid for longer than an hour.
        self.asked.iter_mut().for_each(|at| *at = (*at).min(now));
        self.asked.retain(|at| now.since(*at) < HOUR);
        limit.saturating_sub(self.asked.len())
    }

    fn is_used(&mut self, now: Time) -> bool {
        self.room(usize::MAX, now) < usize::MAX
    }

    /// Notes that so many are asked about.
    pub fn record_requests(&mut self, count: usize, now: Time) {
        self.asked.extend(std::iter::repeat_n(now, count));
    }

    /// Leaves no room for an hour.
    pub fn exhaust(&mut self, limit: usize, now: Time) {
        let left = self.room(limit, now);
        self.record_requests(left, now);
    }
}

/// The allowances of hosts and of feeds, by name.
#[derive(Debug, Default)]
pub struct Allowances {
    hosts: HashMap<String, Allowance>,
    feeds: HashMap<FeedName, Allowance>,
    /// The feeds that were looked through for items in doubt.
    looked: HashMap<FeedName, Allowance>,
}

impl Allowances {
    /// Forgets whoever was not asked within the hour.
    fn sweep(&mut self, now: Time) {
        self.hosts.retain(|_, asked| asked.is_used(now));
        self.feeds.retain(|_, asked| asked.is_used(now));
        self.looked.retain(|_, asked| asked.is_used(now));
    }

    /// How many items of a feed may be asked about.
    pub fn room_of_feed(&mut self, feed: &FeedName, probing: Probing, now: Time) -> usize {
        self.sweep(now);
        match probing {
            Probing::Off => 0,
            Probing::All => {
                let asked = self.feeds.get_mut(feed);
                asked.map_or(FEED_ASKS_PER_HOUR, |asked| asked.room(FEED_ASKS_PER_HOUR, now))
            }
            // Doubts last for days: to look for them once an hour is enough.
            Probing::Doubts => {
                let looked = self.looked.entry(feed.clone()).or_default();
                let room = looked.room(1, now);
                looked.record_requests(room, now);
                room
            }
        }
    }

    /// How many items of so many may be asked about at a host, which are then noted for it and the feed.
    pub fn take(
        &mut self,
        (feed, host): (&FeedName, &str),
        probing: Probing,
        wanted: usize,
        now: Time,
    ) -> usize {
        self.sweep(now);
        let limit = match probing {
            Probing::Off => 0,
            Probing::All => HOST_ASKS_PER_HOUR,
            Probing::Doubts => HOST_DOUBTS_PER_HOUR,
        };
        let room = self.hosts.get_mut(host).map_or(limit, |asked| asked.room(limit, now));
        let count = room.min(wanted);
        if count > 0 {
            self.hosts.entry(host.to_owned()).or_default().record_requests(count, now);
            self.feeds.entry(feed.clone()).or_default().record_requests(count, now);
        }
        count
    }

    /// Leaves a feed and its host no room for an hour: the host refuses to answer more.
    pub fn exhaust(&mut self, feed: &FeedName, host: &str, now: Time) {
        self.hosts.entry(host.to_owned()).or_default().exhaust(HOST_ASKS_PER_HOUR, now);
        self.feeds.entry(feed.clone()).or_default().exhaust(FEED_ASKS_PER_HOUR, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_unix(seconds)
    }

    #[test]
    fn a_few_within_any_hour() {
        let mut feed = Allowance::default();
        assert_eq!(feed.room(4, at(0)), 4);
        feed.record_requests(3, at(0));
        assert_eq!(feed.room(4, at(1800)), 1);
        feed.record_requests(1, at(1800));
        assert_eq!(feed.room(4, at(3599)), 0);
        assert_eq!(feed.room(4, at(3600)), 3);
        assert_eq!(feed.room(4, at(5400)), 4);
        feed.exhaust(4, at(5400));
        assert_eq!((feed.room(4, at(5401)), feed.asked.len()), (0, 4));
    }

    #[test]
    fn a_clock_that_goes_back_forbids_for_an_hour_at_most() {
        let mut feed = Allowance::default();
        feed.record_requests(4, at(1_000_000));
        assert_eq!(feed.room(4, at(0)), 0);
        assert_eq!(feed.room(4, at(3600)), 4);
    }

    #[test]
    fn hosts_have_their_own_and_are_forgotten() {
        let mut all = Allowances::default();
        let feed = |name: &str| FeedName::new(name).unwrap();
        let (a, b) = (feed("a"), feed("b"));
        let mut take = |feed, host, probing, now| all.take((feed, host), probing, 10, at(now));
        assert_eq!(take(&a, "one", Probing::All, 0), 10);
        assert_eq!(take(&b, "one", Probing::All, 20), 2);
        assert_eq!(take(&b, "one", Probing::Doubts, 20), 0);
        assert_eq!(take(&b, "two", Probing::Doubts, 20), HOST_DOUBTS_PER_HOUR);
        all.exhaust(&b, "two", at(30));
        assert_eq!(all.take((&a, "two"), Probing::All, 10, at(40)), 0);
        assert_eq!(all.room_of_feed(&b, Probing::All, at(40)), 0);
        assert_eq!(all.room_of_feed(&feed("c"), Probing::All, at(40)), FEED_ASKS_PER_HOUR);
        assert_eq!(all.room_of_feed(&feed("c"), Probing::Doubts, at(40)), 1);
        assert_eq!(all.room_of_feed(&feed("c"), Probing::Doubts, at(3639)), 0);
        assert_eq!(all.room_of_feed(&feed("c"), Probing::Off, at(3640)), 0);
        assert_eq!((all.hosts.len(), all.feeds.len(), all.looked.len()), (0, 0, 0));
    }
}
