//! A site that the gateway stands in front of, as its operator describes it (`[[origin]]`).

use std::time::Duration;
use tidegate_core::model::FeedName;
use url::Url;

/// A site that the gateway stands in front of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginConfig {
    /// Its name in logs, metrics and the API.
    pub name: FeedName,
    /// Its address: no credentials, query or fragment; the path ends with a slash.
    pub url: Url,
    pub place: OriginPlace,
    pub passes: PassMode,
    /// Whether the site is told the gateway's host for it in `Host`, as a site is that redirects to its own name.
    pub sends_host: bool,
    /// How long the first answer of a new feed waits for the judged document.
    pub first_wait: Duration,
    /// After how long without a request its feeds are not polled any more.
    pub idle: Duration,
    /// The most feeds that it gets by itself.
    pub feeds: u32,
    /// The most requests that it has at once.
    pub requests: u32,
}

/// Where an origin is reached at this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OriginPlace {
    /// Below a path that begins and ends with a slash.
    At(String),
    /// At a host name of its own, in lower case and without a port.
    Host(String),
}

/// What becomes of a request for what is no feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PassMode {
    /// It is redirected to the origin.
    #[default]
    Redirect,
    /// It is passed on to the origin.
    Through,
}

impl OriginConfig {
    /// Whether a feed may be at one address in both and be another one, since one of them is told its host.
    pub fn shares_feeds(&self, other: &Self) -> bool {
        let (one, two) = (&self.url, &other.url);
        (self.sends_host || other.sends_host)
            && one.origin() == two.origin()
            && (one.path().starts_with(two.path()) || two.path().starts_with(one.path()))
    }
}

impl OriginPlace {
    /// Whether some requests would be for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            // Both end with a slash.
            (Self::At(one), Self::At(other)) => one.starts_with(other) || other.starts_with(one),
            (Self::Host(one), Self::Host(other)) => one == other,
            _ => false,
        }
    }

    /// The path, or the name of the host.
    pub fn text(&self) -> &str {
        match self {
            Self::At(text) | Self::Host(text) => text,
        }
    }
}
