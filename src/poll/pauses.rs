//! Pauses that hosts have asked for (429, 503 with `Retry-After`, or no requests left). Pure; the time is told.
//!
//! One feed that is told to wait speaks for all of its host, and two hosts of a domain speak for the
//! domain: what limits requests stands before all of them.

use super::politeness::PoliteHost;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Within what time two hosts of a domain must have asked for a pause for the domain to have one.
pub const DOMAIN_WITHIN: Duration = Duration::from_secs(3600);
/// The longest pause of a host, whatever it asks for.
pub const MAX_HOST_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// The most hosts whose pauses are remembered.
const MAX_PAUSED_HOSTS: usize = 10_000;

#[derive(Debug)]
struct DomainPause {
    domain: String,
    at: Instant,
    until: Instant,
}

/// Which hosts have asked for a pause, by their whole names.
#[derive(Debug, Default)]
pub struct Pauses {
    hosts: HashMap<String, DomainPause>,
    domains: HashMap<String, Instant>,
}

impl Pauses {
    /// Takes in that a host asks to be left alone for so long.
    pub fn ask(&mut self, host: &PoliteHost, wait: Duration, now: Instant) {
        self.hosts.retain(|_, asked| {
            asked.until > now || now.saturating_duration_since(asked.at) < DOMAIN_WITHIN
        });
        self.domains.retain(|_, until| *until > now);
        if self.hosts.len() >= MAX_PAUSED_HOSTS && !self.hosts.contains_key(host.full()) {
            return;
        }
        let until = now + wait.min(MAX_HOST_PAUSE);
        let other = self.hosts.iter().any(|(name, asked)| {
            let recent = now.saturating_duration_since(asked.at) < DOMAIN_WITHIN;
            recent && name != host.full() && asked.domain == host.domain()
        });
        if other {
            let domain = self.domains.entry(host.domain().to_owned()).or_insert(until);
            *domain = until.max(*domain);
        }
        let asked = DomainPause { domain: host.domain().to_owned(), at: now, until };
        self.hosts.insert(host.full().to_owned(), asked);
    }

    /// How long a host is still to be left alone.
    pub fn left(&self, host: &PoliteHost, now: Instant) -> Option<Duration> {
        let own = self.hosts.get(host.full()).map(|asked| asked.until);
        let until = own.max(self.domains.get(host.domain()).copied())?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::politeness::HostRules;

    fn host(name: &str) -> PoliteHost {
        HostRules::default().host(&format!("https://{name}/"))
    }

    #[test]
    fn a_host_speaks_for_itself_and_two_for_their_domain() {
        let (mut pauses, start) = (Pauses::default(), Instant::now());
        let minutes = |n: u64| Duration::from_secs(60 * n);
        pauses.ask(&host("a.news.example"), minutes(30), start);
        assert_eq!(pauses.left(&host("a.news.example"), start), Some(minutes(30)));
        assert_eq!(pauses.left(&host("c.news.example"), start), None);
        // The same one again says nothing of others, nor does one an hour later.
        pauses.ask(&host("a.news.example"), minutes(30), start + minutes(1));
        assert_eq!(pauses.left(&host("c.news.example"), start + minutes(1)), None);
        let late = start + minutes(62);
        pauses.ask(&host("b.news.example"), minutes(5), late);
        assert_eq!(pauses.left(&host("c.news.example"), late), None);
        pauses.ask(&host("a.news.example"), minutes(20), late + minutes(2));
        assert_eq!(pauses.left(&host("c.news.example"), late + minutes(2)), Some(minutes(20)));
        assert_eq!(pauses.left(&host("b.news.example"), late + minutes(2)), Some(minutes(20)));
        assert_eq!(pauses.left(&host("c.news.example"), late + minutes(22)), None);
        assert_eq!(pauses.left(&host("news.other.example"), late), None);
    }

    #[test]
    fn a_pause_is_no_longer_than_a_day() {
        let (mut pauses, now) = (Pauses::default(), Instant::now());
        pauses.ask(&host("a.example"), MAX_HOST_PAUSE * 9, now);
        assert_eq!(pauses.left(&host("a.example"), now), Some(MAX_HOST_PAUSE));
    }
}
