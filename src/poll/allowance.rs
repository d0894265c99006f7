//! Limits the probes for missing items per hour. Pure.

use std::collections::HashMap;
use std::time::Duration;
use tidegate_core::model::{FeedName, Probing, Time};

/// Missing items probed per feed and hour. Each probe round also asks for a listed item and a made-up address, and
/// requests may be repeated with GET.
pub const FEED_ASKS_PER_HOUR: usize = 4;
/// Missing items probed per host and hour, over all its feeds.
pub const HOST_ASKS_PER_HOUR: usize = 12;
/// The same for feeds with `probe = "doubts"`, the default.
pub const HOST_DOUBTS_PER_HOUR: usize = 1;

const HOUR: Duration = Duration::from_secs(3600);

/// What an allowance belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum AskedOf {
    Host(String),
    Feed(FeedName),
    /// A feed whose ledger is searched for items in doubt.
    Doubts(FeedName),
}

/// The times of probes within the last hour.
#[derive(Debug, Default)]
pub struct Allowances(HashMap<AskedOf, Vec<Time>>);

impl Allowances {
    /// Returns how many more may be probed now; forgets probes older than an hour.
    fn room(&mut self, of: &AskedOf, limit: usize, now: Time) -> usize {
        self.0.retain(|_, asked| {
            // After a clock was set back, times in the future must not block for longer than an hour.
            asked.iter_mut().for_each(|at| *at = (*at).min(now));
            asked.retain(|at| now.since(*at) < HOUR);
            !asked.is_empty()
        });
        limit.saturating_sub(self.0.get(of).map_or(0, Vec::len))
    }

    /// Records `count` probes.
    fn record_requests(&mut self, of: AskedOf, count: usize, now: Time) {
        if count > 0 {
            self.0.entry(of).or_default().extend(std::iter::repeat_n(now, count));
        }
    }

    /// Returns how many items of a feed may be probed.
    pub fn room_of_feed(&mut self, feed: &FeedName, probing: Probing, now: Time) -> usize {
        match probing {
            Probing::Off => 0,
            Probing::All => self.room(&AskedOf::Feed(feed.clone()), FEED_ASKS_PER_HOUR, now),
            // Doubts last for days: searching once an hour suffices.
            Probing::Doubts => {
                let of = AskedOf::Doubts(feed.clone());
                let room = self.room(&of, 1, now);
                self.record_requests(of, room, now);
                room
            }
        }
    }

    /// Reserves probes at a host, at most `wanted`; returns their number and counts them for the host and the feed.
    pub fn take(
        &mut self,
        (feed, host): (&FeedName, &str),
        probing: Probing,
        wanted: usize,
        now: Time,
    ) -> usize {
        let limit = match probing {
            Probing::Off => 0,
            Probing::All => HOST_ASKS_PER_HOUR,
            Probing::Doubts => HOST_DOUBTS_PER_HOUR,
        };
        let of_host = AskedOf::Host(host.to_owned());
        let count = self.room(&of_host, limit, now).min(wanted);
        self.record_requests(of_host, count, now);
        self.record_requests(AskedOf::Feed(feed.clone()), count, now);
        count
    }

    /// Uses up the allowance of a feed and its host for an hour, because the host refused.
    pub fn exhaust(&mut self, feed: &FeedName, host: &str, now: Time) {
        let of_host = (AskedOf::Host(host.to_owned()), HOST_ASKS_PER_HOUR);
        for (of, limit) in [of_host, (AskedOf::Feed(feed.clone()), FEED_ASKS_PER_HOUR)] {
            let left = self.room(&of, limit, now);
            self.record_requests(of, left, now);
        }
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
        let (mut all, of) = (Allowances::default(), AskedOf::Host("one".to_owned()));
        // A clock that goes back blocks for an hour at most.
        for (asked, second, room) in
            [(3, 0, 4), (0, 1800, 1), (1, 1800, 1), (0, 3599, 0), (0, 3600, 3), (4, 5400, 4)]
                .into_iter()
                .chain([(0, 0, 0), (0, 3599, 0), (0, 3600, 4)])
        {
            assert_eq!(all.room(&of, 4, at(second)), room, "{second}");
            all.record_requests(of.clone(), asked, at(second));
        }
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
        assert_eq!(all.room(&AskedOf::Host("one".to_owned()), 1, at(7300)), 1);
        assert!(all.0.is_empty());
    }
}
