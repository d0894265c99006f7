//! `[[origin]]` and `[[allow]]`: sites whose feeds become feeds of this gateway when somebody asks for them.

use crate::model::FeedName;
use std::time::Duration;
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
    /// How long the first answer of a new feed waits for the judged document.
    pub first_wait: Duration,
    /// After how long without a request its feeds are not polled any more.
    pub idle: Duration,
    /// The most feeds that it gets by itself.
    pub feeds: u32,
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

/// A site whose feeds readers may subscribe to by `/subscribe`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowConfig {
    /// Its feeds have addresses below this one: no credentials, query or fragment; the path ends with a slash.
    pub url: Url,
    /// After how long without a request its feeds are not polled any more.
    pub idle: Duration,
    /// The most feeds that readers add.
    pub feeds: u32,
}
