//! Whether this gateway reaches publishers, by what came of its polls, where several gateways poll the feeds of one
//! store: one that is cut off leaves its part to the others for a while.

use crate::error::RoundError;
use crate::polling::PollResult;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_store::{PublisherReach, Shard};
use tokio::time::Instant;

/// For how long most publishers must have been out of reach.
const CUT_OFF_AFTER: Duration = Duration::from_secs(120);
/// What is older says nothing any more; also how long all must have been well until that counts as over.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Fewer publishers out of reach say nothing of this gateway, and fewer within reach nothing against it.
const FEWEST: usize = 10;
/// For how long polling is left to others, at first and at most.
const AWAY: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(3600));

/// Which publishers this gateway reached last.
pub(super) struct ReachedPublishers {
    /// By shard: when its publisher was asked last, and whether that reached it.
    last: BTreeMap<Shard, (Instant, bool)>,
    state: ReachState,
    /// For how long polling is left to others the next time.
    away_for: Duration,
}

/// Since when it is how.
enum ReachState {
    Well {
        since: Instant,
    },
    /// Most publishers were out of reach lately; `is_tried`: after polling was left to others.
    Doubtful {
        since: Instant,
        is_tried: bool,
    },
    /// It polls again, and has reached nothing yet.
    Tried,
    Away {
        until: Instant,
    },
}

impl ReachedPublishers {
    /// Nothing is known yet.
    pub(super) fn new(now: Instant) -> Self {
        Self { last: BTreeMap::new(), state: ReachState::Well { since: now }, away_for: AWAY.0 }
    }

    /// Takes in what came of a poll.
    pub(super) fn note(
        &mut self,
        shard: Shard,
        result: &Result<PollResult, RoundError>,
        now: Instant,
    ) {
        let is_reached = match result {
            Ok(_) | Err(RoundError::Judge(_)) => true,
            Err(RoundError::Fetch(error)) => !error.is_unreached(),
            // That says nothing of the publisher.
            Err(_) => return,
        };
        self.last.insert(shard, (now, is_reached));
    }

    /// Forgets the publishers of all shards but those that are polled here: what others find there since is not known.
    pub(super) fn keep<T>(&mut self, polled: &BTreeMap<Shard, T>) {
        self.last.retain(|shard, _| polled.contains_key(shard));
    }

    /// How many publishers were within reach and out of it, as the polls of the last two minutes have it, or the last
    /// ten of them where those are fewer: what was found before a line broke says nothing of it.
    fn counts(&self, now: Instant) -> (usize, usize) {
        let is_late = |at: &Instant| now.saturating_duration_since(*at) < CUT_OFF_AFTER;
        let lately = self.since(is_late);
        if lately.0 + lately.1 >= FEWEST {
            return lately;
        }
        let mut times: Vec<Instant> = self.last.values().map(|(at, _)| *at).collect();
        times.sort_unstable();
        let first = times.iter().rev().take(FEWEST).next_back();
        first.map_or((0, 0), |first| self.since(|at| at >= first))
    }

    /// The same of polls that ended then.
    fn since(&self, is_meant: impl Fn(&Instant) -> bool) -> (usize, usize) {
        let meant = self.last.values().filter(|(at, _)| is_meant(at));
        meant.fold((0, 0), |(reached, unreached), (_, is_reached)| match is_reached {
            true => (reached + 1, unreached),
            false => (reached, unreached + 1),
        })
    }

    /// Whether this gateway reaches publishers.
    pub(super) fn decide(&mut self, now: Instant) -> PublisherReach {
        self.last.retain(|_, (at, _)| now.saturating_duration_since(*at) < REMEMBERED);
        let (reached, unreached) = self.counts(now);
        let has_come_back = || {
            let (reached, unreached) = self.since(|_| true);
            reached >= FEWEST && reached > unreached
        };
        let is_cut_off = unreached >= FEWEST && unreached > reached;
        let elapsed = |since: Instant| now.saturating_duration_since(since);
        match self.state {
            ReachState::Well { since } if !is_cut_off => {
                if elapsed(since) >= REMEMBERED {
                    self.away_for = AWAY.0;
                }
            }
            ReachState::Well { .. } => {
                self.state = ReachState::Doubtful { since: now, is_tried: false };
            }
            ReachState::Tried if is_cut_off => {
                self.state = ReachState::Doubtful { since: now, is_tried: true };
            }
            ReachState::Tried if reached > unreached => {
                self.state = ReachState::Well { since: now };
            }
            ReachState::Doubtful { is_tried, .. } if !is_cut_off => {
                self.state = match is_tried && reached <= unreached {
                    true => ReachState::Tried,
                    false => ReachState::Well { since: now },
                };
            }
            ReachState::Doubtful { since, .. } if elapsed(since) >= CUT_OFF_AFTER => {
                tracing::warn!(
                    publishers = unreached,
                    seconds = self.away_for.as_secs(),
                    "most publishers are out of reach; where other gateways reach them, they are to poll"
                );
                self.state = ReachState::Away { until: now + self.away_for };
                self.away_for = self.away_for.saturating_mul(2).min(AWAY.1);
                // What came of polls before says nothing of when it is over.
                self.last.clear();
            }
            // It polls meanwhile, since nobody else does, and finds that it works again.
            ReachState::Away { .. } if has_come_back() => {
                self.state = ReachState::Well { since: now };
            }
            ReachState::Away { until } if now >= until => {
                self.last.clear();
                self.state = ReachState::Tried;
            }
            ReachState::Tried | ReachState::Doubtful { .. } | ReachState::Away { .. } => {}
        }
        match self.state {
            ReachState::Well { .. } | ReachState::Doubtful { is_tried: false, .. } => {
                PublisherReach::Reached
            }
            ReachState::Tried | ReachState::Doubtful { is_tried: true, .. } => {
                PublisherReach::Tried
            }
            ReachState::Away { .. } => PublisherReach::CutOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_net::fetch::FetchError;

    fn shard(number: i32) -> Shard {
        Shard::numbered(number).unwrap()
    }

    fn unreached() -> Result<PollResult, RoundError> {
        let (host, why) = ("a.example".to_owned(), "refused".to_owned());
        Err(RoundError::Fetch(FetchError::Connect { host, why }))
    }

    fn answered() -> Result<PollResult, RoundError> {
        let (retry_after, redirected_to) = (None, None);
        Err(RoundError::Fetch(FetchError::Status { code: 500, retry_after, redirected_to }))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Polls of these shards.
    fn note(
        reach: &mut ReachedPublishers,
        shards: std::ops::RangeInclusive<i32>,
        made: fn() -> Result<PollResult, RoundError>,
        now: Instant,
    ) {
        for number in shards {
            reach.note(shard(number), &made(), now);
        }
    }

    #[test]
    fn a_gateway_that_reaches_few_publishers_leaves_them_to_others_for_longer_each_time() {
        let start = Instant::now();
        let mut reach = ReachedPublishers::new(start);
        assert_eq!(reach.decide(start), PublisherReach::Reached);
        note(&mut reach, 1..=12, unreached, start);
        // As many answer, if only with an error.
        note(&mut reach, 13..=24, answered, start);
        assert_eq!(reach.decide(start + seconds(590)), PublisherReach::Reached);
        let mut now = start + seconds(600);
        note(&mut reach, 1..=12, unreached, now);
        note(&mut reach, 13..=20, answered, now);
        assert_eq!(reach.decide(now), PublisherReach::Reached);
        assert_eq!(reach.decide(now + seconds(119)), PublisherReach::Reached);
        now += seconds(120);
        assert_eq!(reach.decide(now), PublisherReach::CutOff);
        // One that was in flight, and results that grow old, end nothing.
        note(&mut reach, 30..=30, answered, now);
        assert_eq!(reach.decide(now + seconds(299)), PublisherReach::CutOff);
        now += seconds(300);
        assert_eq!(reach.decide(now), PublisherReach::Tried);
        assert_eq!(reach.decide(now + seconds(60)), PublisherReach::Tried);
        note(&mut reach, 1..=12, unreached, now);
        assert_eq!(reach.decide(now), PublisherReach::Tried);
        now += seconds(120);
        assert_eq!(reach.decide(now), PublisherReach::CutOff);
        assert_eq!(reach.decide(now + seconds(599)), PublisherReach::CutOff);
        now += seconds(600);
        assert_eq!(reach.decide(now), PublisherReach::Tried);
        note(&mut reach, 1..=1, answered, now);
        assert_eq!(reach.decide(now), PublisherReach::Reached);
        // That it works was short: the next time is longer still.
        note(&mut reach, 1..=12, unreached, now);
        assert_eq!(reach.decide(now), PublisherReach::Reached);
        now += seconds(120);
        assert_eq!(reach.decide(now), PublisherReach::CutOff);
        assert_eq!(reach.decide(now + seconds(1199)), PublisherReach::CutOff);
    }

    /// When a gateway that reached 340 publishers, and has reached none since, leaves them to others, by how often one
    /// of its polls ends.
    fn left_after(pace: i32) -> Option<i32> {
        let start = Instant::now();
        let mut reach = ReachedPublishers::new(start);
        note(&mut reach, 1..=340, answered, start);
        (0..=800).find(|second| {
            let now = start + seconds(u64::try_from(*second).unwrap());
            if second % pace == 0 {
                note(&mut reach, 1 + second / pace..=1 + second / pace, unreached, now);
            }
            reach.decide(now) == PublisherReach::CutOff
        })
    }

    #[test]
    fn what_was_reached_before_hides_nothing() {
        for (pace, after) in [(5, 240), (12, 240), (13, 250), (30, 420), (60, 720)] {
            assert_eq!(left_after(pace), Some(after), "{pace}");
        }
    }

    #[test]
    fn few_publishers_and_the_stores_trouble_say_nothing() {
        let start = Instant::now();
        let mut reach = ReachedPublishers::new(start);
        note(&mut reach, 1..=9, unreached, start);
        note(&mut reach, 10..=100, || Err(RoundError::Fenced), start);
        for later in [0, 200, 500] {
            assert_eq!(reach.decide(start + seconds(later)), PublisherReach::Reached);
        }
    }

    #[test]
    fn what_others_poll_since_says_nothing() {
        let start = Instant::now();
        let mut reach = ReachedPublishers::new(start);
        note(&mut reach, 1..=40, unreached, start);
        note(&mut reach, 41..=60, answered, start);
        assert_eq!(reach.decide(start), PublisherReach::Reached);
        reach.keep(&(31..=60).map(|number| (shard(number), number)).collect());
        let later = start + seconds(121);
        assert_eq!(reach.decide(later), PublisherReach::Reached);
        assert_eq!(reach.last.len(), 30);
    }

    #[test]
    fn a_gateway_that_reaches_them_again_meanwhile_polls_again() {
        let start = Instant::now();
        let mut reach = ReachedPublishers::new(start);
        note(&mut reach, 1..=10, unreached, start);
        assert_eq!(reach.decide(start), PublisherReach::Reached);
        let now = start + seconds(121);
        assert_eq!(reach.decide(now), PublisherReach::CutOff);
        note(&mut reach, 1..=9, answered, now);
        assert_eq!(reach.decide(now), PublisherReach::CutOff);
        note(&mut reach, 10..=10, answered, now);
        assert_eq!(reach.decide(now), PublisherReach::Reached);
    }
}
