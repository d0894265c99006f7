//! `[websub]`: the hub, and hubs of upstreams.

use super::keys::{
    Preset::{Value as Preset, Words},
    section,
};
use super::kinds::{flag, lasting, number};
use super::polling::private_addresses;
use super::section::Section;
use super::written;
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
        hub: bool = flag(), Preset("true"), at restart;
        /// Whether RSS feeds name it as a cloud too.
        ///
        /// Readers register there (rssCloud) to be told that something, and not what, has changed.
        rsscloud: bool = flag(), Preset("true"), at restart;
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
        /// address, only hubs at private hosts that polling.allow_private allows are.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, check};

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
        assert_eq!((long.leases.usual, long.leases.most), (days(60), days(60)));
        let short = read("lease_max = \"2d\"").unwrap();
        assert_eq!((short.leases.usual, short.leases.most), (days(2), days(2)));
        let brief = read("lease = \"2m\"").unwrap();
        let two = Duration::from_secs(120);
        assert_eq!((brief.leases.usual, brief.leases.least), (two, two));
        let few = read("subscriptions = 5\nsubscriptions_per_host = 2").unwrap();
        assert_eq!((few.subscriptions, few.subscriptions_per_host), (5, 2));
        assert!(
            !read("").unwrap().http_secrets && read("http_secrets = true").unwrap().http_secrets
        );
        assert_eq!(read("subscribe = true").unwrap().subscribe, Some(true));
        let private = |text: &str| read(text).unwrap().private_callbacks;
        assert_eq!(private(""), AllowPrivate::No);
        let listed = AllowPrivate::only(["localhost:81"]).unwrap();
        assert_eq!(private("private_callbacks = [\"LocalHost:81\"]"), listed);
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
            ("private_callbacks = [\"localhost\"]", "not a host with a port"),
            ("leases = \"1d\"", "did you mean lease?"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
