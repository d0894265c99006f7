//! `[sup]` and `[websub]`: how others are told of changes, and hubs of upstreams.

use super::declare::*;
use super::polling::private_addresses;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::websub::Leases;
use tidegate_net::fetch::AllowPrivate;

/// How long a subscription may last, in seconds.
const LEASES: RangeInclusive<u64> = 60..=365 * 86_400;
/// How many subscriptions there may be.
const SUBSCRIPTIONS: RangeInclusive<u32> = 1..=1_000_000;

section! {
    /// The hub, and hubs of upstreams.
    pub struct Websub with KEYS {
        /// Whether there is a hub at `/websub`.
        ///
        /// It tells subscribers of each change.
        hub: bool = flag(), Preset("true");
        /// Whether RSS feeds name it as a cloud too.
        ///
        /// Readers register there (rssCloud) to be told that something, and not what, has changed.
        rsscloud: bool = flag(), Preset("true");
        /// How long a subscription lasts: where the subscriber does not say, at least, at most.
        lease => leases.usual = lasting(LEASES), Preset("\"10d\"");
        lease_min => leases.least = lasting(LEASES), Preset("\"5m\"");
        lease_max => leases.most = lasting(LEASES), Preset("\"30d\"");
        /// The most subscriptions, in all and with callbacks of one host.
        subscriptions: usize = number(SUBSCRIPTIONS), Preset("100000");
        subscriptions_per_host: usize = number(SUBSCRIPTIONS), Preset("10000");
        /// Which callbacks may be at loopback or private addresses: `false` (none), `true` (all), or a
        /// list of `host:port`.
        ///
        /// Anybody can subscribe a callback, and so have the gateway ask for any path of these hosts.
        private_callbacks: AllowPrivate = private_addresses(), Preset("false");
        /// Whether hubs of upstreams are subscribed to.
        ///
        /// A push makes the gateway poll at once. Hubs call back under server.public_url. Where
        /// nothing is written they are subscribed to if that looks public. If it is a private
        /// address, only hubs at private hosts that polling.allow_private allows are. A hub is found when
        /// a changed document is read, so one that was passed over is subscribed to with its feed's next change.
        subscribe: Option<bool> = flag().optional(), Words("whether `public_url` looks public", "true");
        /// Whether hubs over plain HTTP are given a secret.
        ///
        /// They sign with it, and everybody on the way learns it. Hubs at private hosts that
        /// polling.allow_private allows always are.
        http_secrets: bool = flag(), Preset("false");
    }
    fields {
        /// How long subscriptions last.
        leases: Leases =
            Leases { usual: Duration::ZERO, least: Duration::ZERO, most: Duration::ZERO };
    }
}

/// Checks what is written against each other. What is not written gives way to what is.
pub(super) fn check(section: &mut Section<'_, '_, '_>, websub: &mut Websub) {
    let [is_usual, is_least, is_most] =
        ["lease", "lease_min", "lease_max"].map(|key| section.is_read(key));
    let Leases { usual, least, most } = &mut websub.leases;
    if !is_least {
        *least = (*least).min(*usual).min(if is_most { *most } else { *usual });
    }
    if !is_most {
        *most = (*most).max(*usual).max(*least);
    }
    if !is_usual {
        *usual = (*usual).min(*most).max(*least);
    }
    if !(*least..=*most).contains(usual) {
        let key = if is_usual { "lease" } else { "lease_min" };
        let [usual, least, most] = [*usual, *least, *most].map(written);
        let message = format!(
            "a lease of {usual:?} does not lie between lease_min, {least:?}, and lease_max, {most:?}"
        );
        section.fault(key, message);
    }
}

/// The most periods.
const PERIODS_LIMIT: usize = 16;
/// The fewest: the validator of the protocol wants two.
const PERIODS_LEAST: usize = 2;
/// The longest period, in seconds; the change log is kept for twice as long.
const PERIOD_LIMIT: u32 = 86_400;
/// Periods, in words.
const PERIODS: &str = "a list of durations, like [\"60s\", \"5m\", \"24h\"]";

section! {
    /// The documents that tell which feeds have changed.
    pub struct SupConfig with SUP_KEYS {
        /// The periods of `/sup.json?seconds=N` in seconds, two or more, `"1s"` to `"24h"`.
        ///
        /// The documents tell consumers of many feeds which of them have changed. The period "60s" is
        /// what /sup.json alone answers.
        periods: Vec<u32> = list(PERIODS_LIMIT, PERIODS, period),
            Preset("[\"60s\", \"5m\", \"10m\", \"1h\", \"24h\"]");
    }
}

fn period(text: &str) -> Result<u32, String> {
    let period = duration(text)?;
    let seconds = u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
    if (1..=PERIOD_LIMIT).contains(&seconds) {
        return Ok(seconds);
    }
    let most = written(Duration::from_secs(u64::from(PERIOD_LIMIT)));
    Err(format!("{text:?} is out of bounds; write \"1s\" to {most:?}"))
}

/// Puts the shortest period first, and notes where there are too few.
pub(super) fn check_sup(section: &mut Section<'_, '_, '_>, sup: &mut SupConfig) {
    if sup.periods.len() < PERIODS_LEAST {
        section.fault("periods", format!("write {PERIODS_LEAST} periods or more, {PERIODS}"));
    }
    sup.periods.sort_unstable();
}
