//! `[polling]` and `[[host]]`: how often, how politely and whom.

use super::access::{note_sources, proxy_address};
use super::declare::*;
use super::value::Value;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_core::model::ProxyAddress;
use tidegate_net::fetch::{AllowPrivate, MAX_ALLOWED_HOSTS, host_and_port};

/// What the intervals between polls may be, in seconds.
pub(super) const INTERVALS: RangeInclusive<u64> = 1..=365 * 86_400;

/// Between two documents of a walk through older ones: each makes a tick, which is a second.
const WALK_PAUSE: Duration = Duration::from_secs(2);

/// What the spacing between requests to one host may be, in seconds.
pub(super) const SPACINGS: RangeInclusive<u64> = 0..=3600;

/// The longest `User-Agent`, in bytes.
const USER_AGENT_LIMIT: usize = 256;

section! {
    /// How often, how politely and whom the gateway polls.
    pub struct Polling with KEYS {
        /// Two polls of a feed are at least and at most this far apart.
        ///
        /// In between, the schedule follows the feed: how often it changes, and what it says itself
        /// (ttl, skipHours, Cache-Control and the like). Failures, and hosts that ask for a pause,
        /// may put a poll off further.
        min_interval: Duration = lasting(INTERVALS), Preset("\"5m\"");
        max_interval: Duration = lasting(INTERVALS), Preset("\"24h\"");
        /// Which upstreams may be at loopback or private addresses: `false` (none), `true` (all), or
        /// a list of `host:port`.
        ///
        /// The hosts and ports are those of the feeds' addresses, like `["intranet.example:80",
        /// "[::1]:8000"]`. Redirects and links lead to such a host from another one alone, never from a
        /// public address, and for feeds that requests make never out of their site.
        allow_private: AllowPrivate = private_addresses(), Preset("false");
        /// How the gateway names itself to upstreams. Publishers like to find a contact here.
        user_agent: String = parsed("1 to 256 visible ASCII characters", user_agent), Shown(
            concat!("\"tidegate/", env!("CARGO_PKG_VERSION"), "\""),
            "`tidegate/VERSION`",
            "\"tidegate/0.1.0 (+https://feeds.example.org/about)\"",
        );
        /// Two requests to one host are at least this far apart.
        ///
        /// Names below one registrable domain are one host; private suffixes such as github.io count
        /// as registries. Hosts of your own, which allow_private opens, are asked without a pause.
        host_spacing: Duration = lasting(SPACINGS), Preset("\"1s\"");
        /// The proxy that every outgoing request takes: an address, or
        /// `{ url = "…", user = "…", password = { file = "…" } }`.
        ///
        /// Of socks5 the names of hosts are resolved here, of http, https and socks5h by the proxy. Hosts
        /// that allow_private opens by name, and private addresses where it opens all, are reached
        /// directly. Secrets of a proxy are read when the gateway starts and at SIGHUP.
        proxy: Option<ProxyAddress> = proxy_address(), Words("none", "\"http://proxy.example:3128\"");
        /// Whether hosts whose names lead to no address here are left to the proxy.
        ///
        /// Names are looked up here too before a proxy is asked for them, and refused where they lead to
        /// no public address. In a network in which only the proxy knows names, say true. The proxy must
        /// then refuse private addresses itself.
        proxy_resolves: bool = flag(), Preset("false");
        /// A file with certificates (PEM) that are believed beside those of the system.
        ca_file: Option<PathBuf> = path("the file with the certificates").optional(),
            Words("none", "\"/etc/ssl/our-ca.pem\"");
        /// Whether feeds that are put through the API may take secrets from files and the environment.
        ///
        /// Who has the token could then read any of them, by sending it to a publisher of his own.
        api_secrets: bool = flag(), Preset("false");
    }
    fields {
        /// Two documents of a walk through older ones are at least this far apart, even at private
        /// addresses.
        walk_pause: Duration = WALK_PAUSE;
    }
}

pub(super) fn user_agent(text: &str) -> Result<String, String> {
    let visible = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    let fits = (1..=USER_AGENT_LIMIT).contains(&text.len()) && text.trim() == text;
    if visible && fits {
        return Ok(text.to_owned());
    }
    Err(format!("is not a User-Agent; write 1 to {USER_AGENT_LIMIT} visible ASCII characters"))
}

/// `true`, `false`, or a list of hosts with ports.
pub(super) fn private_addresses() -> Kind<AllowPrivate> {
    let wanted = "true, false or a list of \"host:port\"";
    let hosts = list(MAX_ALLOWED_HOSTS, wanted, host_and_port);
    Kind::of_many("`true`, `false`, a list", move |node, mistakes| match node.value {
        Value::Boolean(true) => Some(AllowPrivate::All),
        Value::Boolean(false) => Some(AllowPrivate::No),
        _ => (hosts.read)(node, mistakes).map(|all| AllowPrivate::Only(all.into_iter().collect())),
    })
}

/// Checks what is written against each other, and notes what is to be found elsewhere.
pub(super) fn check(section: &mut Section<'_, '_, '_>, polling: &mut Polling) {
    in_order(section, polling.min_interval, polling.max_interval);
    if let Some(path) = &polling.ca_file {
        section.refer("ca_file", External::Certificates(path.clone()));
    }
    let secrets = polling.proxy.iter().flat_map(ProxyAddress::secrets).collect();
    note_sources(section, secrets, External::Secret);
}

/// Notes a fault where the least interval is above the greatest: at the one that is written, or at
/// the least where both are.
pub(super) fn in_order(
    section: &mut Section<'_, '_, '_>,
    min_interval: Duration,
    max_interval: Duration,
) {
    let least = section.is_read("min_interval");
    if min_interval <= max_interval || !(least || section.is_read("max_interval")) {
        return;
    }
    let (min, max) = (written(min_interval), written(max_interval));
    if least {
        let message = format!("{min:?} is above max_interval, {max:?}; write {max:?} or less");
        section.fault("min_interval", message);
    } else {
        let message = format!("{max:?} is below min_interval, {min:?}; write {min:?} or more");
        section.fault("max_interval", message);
    }
}

/// The most hosts that may have a pace of their own.
pub const HOST_LIMIT: usize = 10_000;

/// How politely a host, and the names below it, are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostPace {
    /// Two requests are at least this far apart; `None`: `polling.host_spacing`.
    pub spacing: Option<Duration>,
    /// So many requests at the same time.
    pub parallel: usize,
}

section! {
    /// A table of the file.
    pub struct HostTable with HOST_KEYS {
        /// The host; the names below it are meant too.
        name: Option<String> = parsed("a host without a port", host).optional(),
            Words("required", "\"feeds.example.org\"");
        /// Two requests are at least this far apart.
        spacing: Option<Duration> = lasting(SPACINGS).optional(),
            Words("`polling.host_spacing`", "\"1s\"");
        /// How many requests there may be at the same time.
        parallel: usize = number(1..=64), Preset("1");
    }
}

/// Reads the hosts that have a pace of their own.
pub(super) fn read_hosts(top: &mut Section<'_, '_, '_>) -> BTreeMap<String, HostPace> {
    let mut hosts = BTreeMap::new();
    top.tables("host", &HOST_KEYS, HOST_LIMIT, |section, HostTable { name, spacing, parallel }| {
        section.demand("name", "each [[host]] has its own name");
        let Some(name) = name else { return };
        let message = format!("{name:?} has a table already");
        if hosts.insert(name, HostPace { spacing, parallel }).is_some() {
            section.fault("name", message);
        }
    });
    hosts
}

/// A host as addresses have it: in lower case, international names in their form for DNS.
fn host(text: &str) -> Result<String, String> {
    let read = url::Host::parse(text.strip_suffix('.').unwrap_or(text));
    read.map(|host| host.to_string())
        .map_err(|_| format!("{text:?} is no host; write one like \"example.org\", without a port"))
}
