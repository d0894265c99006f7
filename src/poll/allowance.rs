//! How many missing items may be asked about in an hour. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tidegate_core::model::Time;

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

/// The allowances of hosts, by name.
#[derive(Debug, Default)]
pub struct HostAllowances {
    hosts: HashMap<String, Allowance>,
}

impl HostAllowances {
    /// How many more may be asked about now at a host, of so many within the hour. Hosts that were not
    /// asked are forgotten.
    pub fn room(&mut self, host: &str, limit: usize, now: Time) -> usize {
        self.hosts.retain(|_, asked| asked.room(HOST_ASKS_PER_HOUR, now) < HOST_ASKS_PER_HOUR);
        self.hosts.get_mut(host).map_or(limit, |asked| asked.room(limit, now))
    }

    /// Notes that so many are asked about.
    pub fn record_requests(&mut self, host: &str, count: usize, now: Time) {
        self.hosts.entry(host.to_owned()).or_default().record_requests(count, now);
    }

    /// Leaves a host no room for an hour.
    pub fn exhaust(&mut self, host: &str, now: Time) {
        self.hosts.entry(host.to_owned()).or_default().exhaust(HOST_ASKS_PER_HOUR, now);
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
        let mut hosts = HostAllowances::default();
        hosts.record_requests("a", 10, at(0));
        hosts.exhaust("b", at(10));
        assert_eq!(
            (
                hosts.room("a", HOST_ASKS_PER_HOUR, at(20)),
                hosts.room("b", HOST_ASKS_PER_HOUR, at(20))
            ),
            (2, 0)
        );
        assert_eq!(hosts.room("a", HOST_DOUBTS_PER_HOUR, at(20)), 0);
        assert_eq!(hosts.room("c", HOST_DOUBTS_PER_HOUR, at(20)), 1);
        assert_eq!(hosts.room("c", HOST_ASKS_PER_HOUR, at(20)), HOST_ASKS_PER_HOUR);
        assert_eq!(hosts.hosts.len(), 2);
        assert_eq!(hosts.room("a", HOST_ASKS_PER_HOUR, at(3610)), HOST_ASKS_PER_HOUR);
        assert_eq!(hosts.hosts.len(), 0);
    }
}
