//! How long a connection may take for what it does.

use super::activity::Ending;
use std::time::Duration;

/// How many times connections are looked at within the shortest of their limits.
const LOOKS: u32 = 4;
/// They are looked at so often at least.
const PACE: Duration = Duration::from_secs(1);

/// The limits of one connection; tests take shorter times. They are checked every
/// [`ConnectionLimits::pace`], so a connection has as much longer at most, and never less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// From the accept until the head of the first request is there.
    pub(crate) first_request: Duration,
    /// Within which the head of a later request must come (HTTP/1.1).
    pub(crate) head: Duration,
    /// How long a client may take nothing of an answer (HTTP/1.1, and whole HTTP/2 connections).
    pub(crate) stall: Duration,
    /// How long a client may take nothing of its answers, or send nothing of its requests (streams of HTTP/2 as well).
    pub(crate) untaken: Duration,
    /// After which a connection is asked to end; a client opens a new one.
    pub(crate) lifetime: Duration,
    /// How long a connection that was asked to end may take for the answers in flight.
    pub(crate) drain: Duration,
}

/// How long a connection has done what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionAge {
    /// Since it was accepted.
    pub(super) open: Duration,
    /// Whether a request came.
    pub(super) has_asked: bool,
    /// Since the last answer went out, while no further request of HTTP/1.1 is there.
    pub(super) head: Option<Duration>,
    /// Since its client last took or sent something, while requests are in flight and all of them wait for that.
    pub(super) untaken: Option<Duration>,
    /// Since bytes of an answer wait for its client to take them.
    pub(super) stalled: Option<Duration>,
    /// Since it was asked to end.
    pub(super) ending: Option<Duration>,
}

impl ConnectionLimits {
    /// The limits of a running gateway.
    pub(crate) const USUAL: Self = Self {
        first_request: Duration::from_secs(15),
        head: Duration::from_secs(30),
        stall: Duration::from_secs(30),
        untaken: Duration::from_secs(60),
        lifetime: Duration::from_secs(15 * 60),
        drain: Duration::from_secs(10),
    };

    /// How far apart two looks at all connections are.
    pub(crate) fn pace(&self) -> Duration {
        let all =
            [self.first_request, self.head, self.stall, self.untaken, self.lifetime, self.drain];
        all.into_iter().fold(PACE, |pace, limit| pace.min(limit / LOOKS))
    }

    /// How a connection of this age is to end.
    pub(super) fn ending(&self, age: &ConnectionAge) -> Ending {
        // What began since the last look is counted from that one.
        let is_over = |time: Duration, limit: Duration| time >= limit.saturating_add(self.pace());
        if age.ending.is_some_and(|time| is_over(time, self.drain))
            || (!age.has_asked && is_over(age.open, self.first_request))
            || age.head.is_some_and(|time| is_over(time, self.head))
            || age.untaken.is_some_and(|time| is_over(time, self.untaken))
            || age.stalled.is_some_and(|time| is_over(time, self.stall))
        {
            Ending::Now
        } else if is_over(age.open, self.lifetime) {
            Ending::Graceful
        } else {
            Ending::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_what_is_older_and_nothing_before() {
        const NEW: ConnectionAge = ConnectionAge {
            open: Duration::ZERO,
            has_asked: true,
            head: None,
            untaken: None,
            stalled: None,
            ending: None,
        };
        let limits = ConnectionLimits::USUAL;
        let pace = limits.pace();
        assert_eq!(pace, PACE);
        type AgeAfter = fn(Duration) -> ConnectionAge;
        let of: [(AgeAfter, Duration, Ending); 6] = [
            (
                |open| ConnectionAge { open, has_asked: false, ..NEW },
                limits.first_request,
                Ending::Now,
            ),
            (|head| ConnectionAge { head: Some(head), ..NEW }, limits.head, Ending::Now),
            (|rests| ConnectionAge { untaken: Some(rests), ..NEW }, limits.untaken, Ending::Now),
            (|stalls| ConnectionAge { stalled: Some(stalls), ..NEW }, limits.stall, Ending::Now),
            (|open| ConnectionAge { open, ..NEW }, limits.lifetime, Ending::Graceful),
            (|ending| ConnectionAge { ending: Some(ending), ..NEW }, limits.drain, Ending::Now),
        ];
        for (age, limit, ending) in of {
            assert_eq!(limits.ending(&age(limit)), Ending::No);
            assert_eq!(limits.ending(&age(limit + pace)), ending);
        }
    }
}
