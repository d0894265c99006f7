//! Whether this gateway reaches publishers, by what came of its polls, where several gateways poll the feeds of one
//! store: one that is cut off leaves its part to the others for a while.

use crate::poll::error::RoundError;
use crate::poll::polling::PollResult;
use crate::store::Shard;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// For how long most publishers must have been out of reach.
const CUT_OFF_AFTER: Duration = Duration::from_secs(120);
/// What is older says nothing any more.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Fewer publishers out of reach say nothing of this gateway.
const FEWEST: usize = 3;
/// For how long polling is left to others, at first and at most.
const AWAY: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(3600));

/// Which publishers this gateway reached last.
pub(super) struct Reach {
    /// By shard: when its publisher was asked last, and whether that reached it.
    last: BTreeMap<Shard, (Instant, bool)>,
    /// Since when most were out of reach.
    cut_off_since: Option<Instant>,
    /// Until when polling is left to others.
    away_until: Option<Instant>,
    /// For how long it is the next time.
    away_for: Duration,
}

impl Default for Reach {
    fn default() -> Self {
        let (last, cut_off_since, away_until) = (BTreeMap::new(), None, None);
        Self { last, cut_off_since, away_until, away_for: AWAY.0 }
    }
}

impl Reach {
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

    /// Whether this gateway reaches publishers.
    pub(super) fn reaches(&mut self, now: Instant) -> bool {
        self.last.retain(|_, (at, _)| now.saturating_duration_since(*at) < REMEMBERED);
        let reached = self.last.values().filter(|(_, is_reached)| *is_reached).count();
        let unreached = self.last.len() - reached;
        let is_cut_off = unreached >= FEWEST && unreached > reached;
        if let Some(until) = self.away_until {
            // Who polls meanwhile since nobody else does may find that it works again.
            if now < until && (is_cut_off || reached == 0) {
                return false;
            }
            *self = Self { away_for: self.away_for, ..Self::default() };
            return true;
        }
        if !is_cut_off {
            self.cut_off_since = None;
            // All is well for a while.
            if reached > unreached {
                self.away_for = AWAY.0;
            }
            return true;
        }
        let since = *self.cut_off_since.get_or_insert(now);
        if now.saturating_duration_since(since) < CUT_OFF_AFTER {
            return true;
        }
        self.away_until = Some(now + self.away_for);
        self.away_for = self.away_for.saturating_mul(2).min(AWAY.1);
        tracing::warn!(
            publishers = unreached,
            seconds = self.away_for.as_secs() / 2,
            "most publishers are out of reach; where other gateways reach them, they are to poll"
        );
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::FetchError;

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

    #[test]
    fn who_reaches_few_publishers_for_two_minutes_leaves_them_to_others_for_a_while() {
        let (mut reach, start) = (Reach::default(), Instant::now());
        assert!(reach.reaches(start));
        for number in 1..=4 {
            reach.note(shard(number), &unreached(), start);
        }
        // As many that answer, if only with an error.
        for number in 5..=8 {
            reach.note(shard(number), &answered(), start);
        }
        assert!(reach.reaches(start + seconds(290)));
        let mut now = start + seconds(290);
        for number in 1..=4 {
            reach.note(shard(number), &unreached(), now);
        }
        now += seconds(11);
        assert!(reach.reaches(now) && reach.reaches(now + seconds(119)));
        assert!(!reach.reaches(now + seconds(120)));
        now += seconds(120);
        assert!(!reach.reaches(now + seconds(299)));
        // Then it is tried again, and left for longer.
        now += seconds(300);
        assert!(reach.reaches(now));
        for number in 1..=4 {
            reach.note(shard(number), &unreached(), now);
        }
        assert!(reach.reaches(now) && !reach.reaches(now + seconds(120)));
        assert!(!reach.reaches(now + seconds(719)) && reach.reaches(now + seconds(720)));
    }

    #[test]
    fn few_publishers_and_the_stores_trouble_say_nothing() {
        let (mut reach, start) = (Reach::default(), Instant::now());
        reach.note(shard(1), &unreached(), start);
        reach.note(shard(2), &unreached(), start);
        for number in 3..100 {
            reach.note(shard(number), &Err(RoundError::Fenced), start);
        }
        assert!(reach.reaches(start) && reach.reaches(start + seconds(200)));
    }

    #[test]
    fn who_reaches_them_again_meanwhile_polls_again() {
        let (mut reach, start) = (Reach::default(), Instant::now());
        for number in 1..=3 {
            reach.note(shard(number), &unreached(), start);
        }
        assert!(reach.reaches(start) && !reach.reaches(start + seconds(121)));
        for number in 1..=2 {
            reach.note(shard(number), &answered(), start + seconds(130));
        }
        assert!(reach.reaches(start + seconds(131)));
    }
}
