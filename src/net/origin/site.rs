//! The configuration of a site in front of which the gateway stands (`[[origin]]`).

use std::time::Duration;
use tidegate_core::model::FeedName;
use url::Url;

/// A site that the gateway stands in front of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginConfig {
    /// Its name in logs, metrics and the API.
    pub name: FeedName,
    /// Its address, without credentials, query and fragment; the path ends with a slash.
    pub url: Url,
    pub place: OriginPlace,
    pub passes: PassMode,
    /// Whether the site receives its public host in `Host`; needed by sites that redirect to their own name.
    pub sends_host: bool,
    /// How long a reader who requests a new feed waits for its judged document.
    pub first_wait: Duration,
    /// After this time without a request, its feeds are no longer polled.
    pub idle: Duration,
    /// The most on-demand feeds.
    pub feeds: u32,
    /// The most requests at the same time.
    pub requests: u32,
}

/// Where at this gateway an origin is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OriginPlace {
    /// Below a path that begins and ends with a slash.
    At(String),
    /// At a host name of its own, in lower case and without a port.
    Host(String),
}

/// How requests that are not for feeds are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PassMode {
    /// The client is redirected to the origin.
    #[default]
    Redirect,
    /// The request is passed on to the origin.
    Through,
}

impl OriginConfig {
    /// Whether the same address may give different feeds in both sites, because at least one receives its public host.
    pub fn shares_feeds(&self, other: &Self) -> bool {
        let (one, two) = (&self.url, &other.url);
        (self.sends_host || other.sends_host)
            && one.origin() == two.origin()
            && (one.path().starts_with(two.path()) || two.path().starts_with(one.path()))
    }
}

impl OriginPlace {
    /// Whether some requests would belong to both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            // Both end with a slash.
            (Self::At(one), Self::At(other)) => one.starts_with(other) || other.starts_with(one),
            (Self::Host(one), Self::Host(other)) => one == other,
            _ => false,
        }
    }

    /// Returns the path or the host name.
    pub fn text(&self) -> &str {
        match self {
            Self::At(text) | Self::Host(text) => text,
        }
    }
}
