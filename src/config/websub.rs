//! `[websub]`: the hub, and hubs of upstreams.

use super::section::Section;
use super::written;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(super) const KEYS: &[&str] = &[
    "hub",
    "rsscloud",
    "lease",
    "lease_min",
    "lease_max",
    "subscriptions",
    "subscriptions_per_host",
    "subscribe",
    "http_secrets",
];

/// How long a subscription may last.
const LEASES: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(365 * 86_400);
/// How many subscriptions there may be.
const SUBSCRIPTIONS: RangeInclusive<u32> = 1..=1_000_000;

/// The hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Websub {
    /// Whether there is one.
    pub hub: bool,
    /// Whether readers of RSS may register by rssCloud as well.
    pub rsscloud: bool,
    /// How long a subscription lasts where the subscriber does not say.
    pub lease: Duration,
    /// At least.
    pub lease_min: Duration,
    /// At most.
    pub lease_max: Duration,
    /// The most subscriptions.
    pub subscriptions: u32,
    /// The most subscriptions with callbacks of one host.
    pub subscriptions_per_host: u32,
    /// Whether hubs of upstreams are subscribed to; `None`: where they can reach this gateway, as
    /// far as its public address tells.
    pub subscribe: Option<bool>,
    /// Whether hubs of upstreams that are asked over plain http are given secrets.
    pub http_secrets: bool,
}

impl Default for Websub {
    fn default() -> Self {
        Self {
            hub: true,
            rsscloud: true,
            lease: Duration::from_secs(10 * 86_400),
            lease_min: Duration::from_secs(300),
            lease_max: Duration::from_secs(30 * 86_400),
            subscriptions: 100_000,
            subscriptions_per_host: 10_000,
            subscribe: None,
            http_secrets: false,
        }
    }
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Websub {
    let default = Websub::default();
    let hub = section.boolean("hub").unwrap_or(default.hub);
    let rsscloud = section.boolean("rsscloud").unwrap_or(default.rsscloud);
    let usual = section.duration("lease", &LEASES);
    let least = section.duration("lease_min", &LEASES);
    let most = section.duration("lease_max", &LEASES);
    let lease = usual.unwrap_or(default.lease);
    // What is not written gives way to what is.
    let lease_min = least.unwrap_or(default.lease_min.min(lease).min(most.unwrap_or(lease)));
    let lease_max = most.unwrap_or(default.lease_max.max(lease).max(lease_min));
    let lease = if usual.is_some() { lease } else { lease.min(lease_max).max(lease_min) };
    if !(lease_min..=lease_max).contains(&lease) {
        let (least, most) = (written(lease_min), written(lease_max));
        let key = if usual.is_some() { "lease" } else { "lease_min" };
        let message = format!(
            "a lease of {:?} does not lie between lease_min, {least:?}, and lease_max, {most:?}",
            written(lease)
        );
        section.fault(key, message);
    }
    let subscriptions = section.number("subscriptions", &SUBSCRIPTIONS);
    let per_host = section.number("subscriptions_per_host", &SUBSCRIPTIONS);
    Websub {
        hub,
        rsscloud,
        lease,
        lease_min,
        lease_max,
        subscriptions: subscriptions.unwrap_or(default.subscriptions),
        subscriptions_per_host: per_host.unwrap_or(default.subscriptions_per_host),
        subscribe: section.boolean("subscribe"),
        http_secrets: section.boolean("http_secrets").unwrap_or(default.http_secrets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, check};

    fn read(text: &str) -> Result<Websub, String> {
        let checked = check("f", &format!("[websub]\n{text}"));
        checked.map(|checked| checked.config.websub).map_err(|faults| faults.to_string())
    }

    #[test]
    fn what_is_not_written_has_its_default_or_gives_way() {
        assert_eq!(read(""), Ok(Config::default().websub));
        assert!(!read("hub = false").unwrap().hub);
        let days = |days: u64| Duration::from_secs(days * 86_400);
        let long = read("lease = \"60d\"").unwrap();
        assert_eq!((long.lease, long.lease_max), (days(60), days(60)));
        let short = read("lease_max = \"2d\"").unwrap();
        assert_eq!((short.lease, short.lease_max), (days(2), days(2)));
        let brief = read("lease = \"2m\"").unwrap();
        assert_eq!((brief.lease, brief.lease_min), (brief.lease_min, Duration::from_secs(120)));
        let few = read("subscriptions = 5\nsubscriptions_per_host = 2").unwrap();
        assert_eq!((few.subscriptions, few.subscriptions_per_host), (5, 2));
        assert!(
            !read("").unwrap().http_secrets && read("http_secrets = true").unwrap().http_secrets
        );
        assert_eq!(read("subscribe = true").unwrap().subscribe, Some(true));
    }

    #[test]
    fn mistakes_are_named() {
        for (bad, said) in [
            ("hub = \"yes\"", "true or false"),
            ("subscribe = \"yes\"", "true or false"),
            ("lease = \"1s\"", "out of bounds"),
            ("lease = \"1d\"\nlease_min = \"2d\"", "does not lie between"),
            ("lease = \"3d\"\nlease_max = \"2d\"", "does not lie between"),
            ("lease_min = \"3d\"\nlease_max = \"2d\"", "does not lie between"),
            ("subscriptions = 0", "out of bounds"),
            ("leases = \"1d\"", "did you mean lease?"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
