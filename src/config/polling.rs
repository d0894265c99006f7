//! `[polling]`: how often, how politely and whom.

use super::section::Section;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub(super) const KEYS: &[&str] =
    &["min_interval", "max_interval", "allow_private", "user_agent", "host_spacing"];

/// What the intervals between polls may be.
pub(super) const INTERVALS: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);

/// Between two documents of a walk through older ones: each makes a tick, which is a second.
const WALK_PAUSE: Duration = Duration::from_secs(2);

/// What the spacing between requests to one host may be.
const SPACINGS: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);

/// The most private addresses that can be allowed one by one.
pub const PRIVATE_LIMIT: usize = 1000;

/// The longest `User-Agent`, in bytes.
const USER_AGENT_LIMIT: usize = 256;

/// How often, how politely and whom the gateway polls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polling {
    /// Two polls of a feed are at least this far apart.
    pub min_interval: Duration,
    /// Two polls of a feed are at most this far apart, failures and wishes of the host excepted.
    pub max_interval: Duration,
    /// Which upstreams may be at loopback or private addresses.
    pub allow_private: AllowPrivateSetting,
    /// How the gateway names itself to upstreams.
    pub user_agent: String,
    /// Two requests to one host are at least this far apart.
    pub host_spacing: Duration,
    /// Two documents of a walk through older ones are at least this far apart, even at private
    /// addresses. No key of the file says otherwise.
    pub walk_pause: Duration,
}

impl Default for Polling {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_secs(5 * 60),
            max_interval: Duration::from_secs(24 * 3600),
            allow_private: AllowPrivateSetting::No,
            user_agent: concat!("tidegate/", env!("CARGO_PKG_VERSION")).to_owned(),
            host_spacing: Duration::from_secs(1),
            walk_pause: WALK_PAUSE,
        }
    }
}

/// Which upstreams may be at loopback or private addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowPrivateSetting {
    /// None.
    #[default]
    No,
    /// All: for a gateway inside a closed network.
    Yes,
    /// These, named in the address of the feed exactly so.
    Only(BTreeSet<HostPort>),
}

/// A host, as it stands in an address, and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The host in its canonical form: lower case, IPv6 in brackets.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is not a host with a port; write like \"127.0.0.1:8000\", \
                 \"[::1]:8000\" or \"intranet.example:80\""
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        // As the parser of addresses reads it, so that `0x7f.1` and `127.0.0.1` are one host.
        let host = url::Host::parse(host).map_err(|_| wrong())?.to_string();
        let port: u16 = port.parse().map_err(|_| wrong())?;
        if port == 0 { Err(wrong()) } else { Ok(Self { host, port }) }
    }
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Polling {
    let default = Polling::default();
    let least = section.duration("min_interval", &INTERVALS);
    let most = section.duration("max_interval", &INTERVALS);
    let min_interval = least.unwrap_or(default.min_interval);
    let max_interval = most.unwrap_or(default.max_interval);
    in_order(section, least, most, min_interval, max_interval);
    let user_agent = section.text("user_agent", |text| {
        let visible = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        let fits = (1..=USER_AGENT_LIMIT).contains(&text.len()) && text.trim() == text;
        if visible && fits {
            return Ok(text.to_owned());
        }
        Err(format!("is not a User-Agent; write 1 to {USER_AGENT_LIMIT} visible ASCII characters"))
    });
    let host_spacing = section.duration("host_spacing", &SPACINGS);
    Polling {
        min_interval,
        max_interval,
        allow_private: allow_private(section),
        user_agent: user_agent.unwrap_or(default.user_agent),
        host_spacing: host_spacing.unwrap_or(default.host_spacing),
        walk_pause: default.walk_pause,
    }
}

/// Notes a fault where the least interval is above the greatest: at the one that is written, or at
/// the least where both are. `least` and `most` are what is written here, the others what holds.
pub(super) fn in_order(
    section: &mut Section<'_, '_, '_>,
    least: Option<Duration>,
    most: Option<Duration>,
    min_interval: Duration,
    max_interval: Duration,
) {
    if min_interval <= max_interval || (least.is_none() && most.is_none()) {
        return;
    }
    let (min, max) = (super::written(min_interval), super::written(max_interval));
    if least.is_some() {
        let message = format!("{min:?} is above max_interval, {max:?}; write {max:?} or less");
        section.fault("min_interval", message);
    } else {
        let message = format!("{max:?} is below min_interval, {min:?}; write {min:?} or more");
        section.fault("max_interval", message);
    }
}

fn allow_private(section: &mut Section<'_, '_, '_>) -> AllowPrivateSetting {
    const KEY: &str = "allow_private";
    if section.is_boolean(KEY) {
        let all = section.boolean(KEY).unwrap_or_default();
        return if all { AllowPrivateSetting::Yes } else { AllowPrivateSetting::No };
    }
    let wanted = "true, false or a list of \"host:port\"";
    let Some(written) = section.list(KEY, PRIVATE_LIMIT, wanted) else {
        return AllowPrivateSetting::No;
    };
    let mut only = BTreeSet::new();
    for (span, text) in written {
        match text.parse::<HostPort>() {
            Ok(address) => {
                if !only.insert(address) {
                    section.fault_at(&span, KEY, format!("{text:?} stands here twice"));
                }
            }
            Err(message) => section.fault_at(&span, KEY, message),
        }
    }
    AllowPrivateSetting::Only(only)
}
