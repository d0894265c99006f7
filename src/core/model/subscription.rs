//! What is remembered of a subscription to the WebSub hub of an upstream.

use super::Time;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What only the hub and this gateway know of a subscription. It is never shown.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SubscriptionKeys {
    /// The last step of the callback's address, which nobody can guess.
    pub token: String,
    /// The secret under which the hub signs what it pushes.
    pub secret: String,
}

impl fmt::Debug for SubscriptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubscriptionKeys(…)")
    }
}

/// What is being done about a subscription. Whether the hub delivers is told by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum SubscriptionStanding {
    /// The hub is asked at a later time.
    #[default]
    Waiting,
    /// It was asked, and has not yet asked back whether that was meant.
    Asked,
    /// It has asked back; it is asked again when its lease is nearly over.
    Verified,
    /// It said no; it is asked again after a long time.
    Denied,
}

/// For how long a hub said that it delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// Since when it does so without a break.
    pub since: Time,
    /// Until when.
    pub until: Time,
}

/// How long after a poll found a change its push may still come.
pub const FAIR_TIME: Duration = Duration::from_secs(10 * 60);
/// How many changes in a row may be missing before who pushes is not relied on.
const MISSED_LIMIT: u32 = 2;
/// How long it is not relied on then.
pub const DISTRUST_TIME: Duration = Duration::from_secs(7 * 86_400);

/// A successful poll of a feed whose changes somebody pushes: its hub, or its SUP document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PushedPoll {
    /// Whether it found something new or changed.
    pub changed: bool,
    /// Whether it was told of: the poll was made because of a push, or one came meanwhile.
    pub told: bool,
    /// Whether it should have been: who pushes was relied on when the poll before this one began.
    pub expected: bool,
}

/// Whether a change of a feed was told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToldChange {
    #[default]
    None,
    /// One that a poll has found before.
    Known,
    New,
}

/// Whether who pushes a feed's changes is relied on. It is, until polls find two changes in a row of which nobody
/// tells within a fair time; then it is not for a week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PushTrust {
    /// When a poll found a change of which a push may still tell.
    pub awaited: Option<Time>,
    /// Changes in a row that no push told of.
    pub missed: u32,
    /// Until when it is not relied on.
    pub distrusted_until: Option<Time>,
}

impl PushTrust {
    /// Whether it is relied on.
    pub fn is_relied_on(&self, now: Time) -> bool {
        self.distrusted_until.is_none_or(|until| until <= now)
    }

    /// Takes in a push; what it tells of. `fair`: how long after a poll found a change the push of it may come.
    pub fn pushed(&mut self, fair: Duration, now: Time) -> ToldChange {
        self.settle(fair, now);
        if self.awaited.take().is_none() {
            return ToldChange::New;
        }
        self.missed = 0;
        ToldChange::Known
    }

    /// Takes in a poll; whether anything is to be remembered.
    pub fn polled(&mut self, poll: PushedPoll, fair: Duration, now: Time) -> bool {
        let before = *self;
        self.settle(fair, now);
        if poll.changed && poll.told {
            (self.awaited, self.missed) = (None, 0);
        } else if poll.changed && poll.expected {
            self.awaited.get_or_insert(now);
        }
        *self != before
    }

    /// Counts a change that no push has told of in time, and forgets a distrust that is over.
    fn settle(&mut self, fair: Duration, now: Time) {
        self.distrusted_until = self.distrusted_until.filter(|until| now < *until);
        if self.awaited.is_some_and(|found| now.since(found) > fair) {
            self.awaited = None;
            self.missed += 1;
            if self.missed >= MISSED_LIMIT {
                (self.missed, self.distrusted_until) = (0, Some(now.plus(DISTRUST_TIME)));
            }
        }
    }

    /// Moved along with a clock that was set back.
    pub fn set_back(&mut self, by: Duration) {
        self.awaited = self.awaited.map(|at| at.minus(by));
        self.distrusted_until = self.distrusted_until.map(|at| at.minus(by));
    }
}

/// A subscription to the hub of an upstream (WebSub, W3C Recommendation of 23 January 2018).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HubSubscription {
    /// The address under which the hub knows the feed.
    pub topic: String,
    /// The hubs that the feed names, in its order; never empty.
    pub hubs: Vec<String>,
    /// Which of them it is about.
    pub hub: u32,
    /// What only the hub and this gateway know.
    pub keys: SubscriptionKeys,
    /// The address of callbacks that the hub was given, to which the token is added.
    pub callbacks: String,
    /// What is being done about it.
    pub standing: SubscriptionStanding,
    /// When the next thing is to be done.
    pub next: Time,
    /// For how long the hub delivers, where it does.
    pub lease: Option<Lease>,
    /// Requests in a row that led to nothing.
    pub failures: u32,
    /// Up to when the requests for the feed, of which each takes its share of a day, have used the time up.
    pub spent: Option<Time>,
    /// Why the last request led to nothing, in words.
    pub note: Option<String>,
    /// Whether the hub is relied on to tell of every change.
    pub trust: PushTrust,
    /// When it last told of something.
    pub last_push: Option<Time>,
    /// How often it did.
    pub pushes: u64,
}

impl HubSubscription {
    /// The address of the hub.
    pub fn address(&self) -> &str {
        let at = usize::try_from(self.hub).unwrap_or(usize::MAX);
        self.hubs.get(at).or_else(|| self.hubs.first()).map_or("", String::as_str)
    }

    /// Whether the hub delivers at that time.
    pub fn is_held(&self, now: Time) -> bool {
        self.lease.is_some_and(|lease| now < lease.until)
    }

    /// The word for how it stands at that time.
    pub fn state(&self, now: Time) -> &'static str {
        match self.standing {
            SubscriptionStanding::Denied => "denied",
            SubscriptionStanding::Asked if self.is_held(now) => "renewing",
            _ if self.is_held(now) => "subscribed",
            SubscriptionStanding::Asked => "asked",
            SubscriptionStanding::Waiting | SubscriptionStanding::Verified => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: PushedPoll = PushedPoll { changed: true, told: false, expected: true };
    const QUIET: PushedPoll = PushedPoll { changed: false, told: false, expected: true };

    const fn at(second: i64) -> Time {
        Time::from_unix(second)
    }

    #[test]
    fn two_changes_in_a_row_that_nobody_told_of_end_it_for_a_week() {
        let mut trust = PushTrust::default();
        assert!(trust.polled(FOUND, FAIR_TIME, at(0)));
        assert!(!trust.polled(QUIET, FAIR_TIME, at(600)), "the push may still come");
        assert!(trust.polled(QUIET, FAIR_TIME, at(601)));
        assert!(trust.is_relied_on(at(601)), "one may be lost");
        trust.polled(FOUND, FAIR_TIME, at(1000));
        trust.pushed(FAIR_TIME, at(1601));
        assert!(!trust.is_relied_on(at(1601)), "it came too late");
        assert!(trust.is_relied_on(at(1601).plus(DISTRUST_TIME)));
        trust.set_back(Duration::from_secs(601));
        assert!(trust.is_relied_on(at(1000).plus(DISTRUST_TIME)));
    }

    #[test]
    fn a_push_in_time_and_a_change_that_was_told_of_excuse_the_one_before() {
        for is_late in [true, false] {
            let mut trust = PushTrust::default();
            trust.polled(FOUND, FAIR_TIME, at(0));
            trust.polled(PushedPoll { told: !is_late, ..FOUND }, FAIR_TIME, at(1000));
            if is_late {
                trust.pushed(FAIR_TIME, at(1500));
            }
            trust.polled(FOUND, FAIR_TIME, at(2000));
            trust.polled(QUIET, FAIR_TIME, at(3000));
            assert!(trust.is_relied_on(at(3000)) && trust.missed == 1, "{trust:?}");
            trust.polled(PushedPoll { expected: false, ..FOUND }, FAIR_TIME, at(4000));
            assert_eq!(trust.awaited, None, "nobody could have told of it");
        }
    }
}
