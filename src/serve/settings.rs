//! What the configuration says of how the gateway shows itself.

use super::{AdminToken, Keeping, ReaderAccess};
use ipnet::IpNet;
use std::time::Duration;
use tidegate_config::DeltaViews;
use tidegate_format::render::{Dialect, LinkForms};

/// How this gateway shows itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSettings {
    /// The address under which readers reach it, absolute; a slash at the end makes no difference.
    pub public_url: String,
    /// How many connections are served at once.
    pub connections: usize,
    /// Bytes of answers that are kept, that are made, and that are on their way, each (`server.memory`).
    pub memory: u64,
    /// Whose word is taken for who the client is (`server.trusted_proxies`).
    pub trusted_proxies: Vec<IpNet>,
    /// What administration must bring along.
    pub admin_token: AdminToken,
    /// The dialect of sync markup when nobody asks for another (`publish.dialect`).
    pub dialect: Dialect,
    /// How long changes stay in the sync view (`publish.window`); `expires` follows from it.
    pub window: Duration,
    /// Which forms of links lead to archives (`publish.history_links`).
    pub history: LinkForms,
    /// Whether reader views write relative references as absolute addresses.
    pub absolute_urls: bool,
    /// Whether `itunes:new-feed-url` stays as the publisher wrote it.
    pub keep_new_feed_url: bool,
    /// Which views are answered with deltas (`publish.deltas`).
    pub deltas: DeltaViews,
    /// The periods of the SUP documents, in seconds (`sup.periods`); where there are none, no
    /// document leads to them.
    pub periods: Vec<u32>,
    /// Whether documents lead to the WebSub hub.
    pub hub: bool,
    /// Whether documents of RSS lead to the cloud, which needs a hub.
    pub cloud: bool,
    /// How much is kept of every feed; to be shown.
    pub keeping: Keeping,
    /// Who may read private feeds.
    pub readers: Vec<ReaderAccess>,
    /// Whether a feed that is not there is answered with 401, so that readers send their tokens
    /// (`server.challenge`).
    pub challenge: bool,
    /// Whether pages are for operators alone (`server.pages`).
    pub pages_are_closed: bool,
    /// Whether search engines may list pages (`server.indexed`).
    pub is_indexed: bool,
    /// Whether administration has a listener of its own (`server.admin_listen`).
    pub operators_apart: bool,
}

impl ServeSettings {
    /// Whether documents are written as before: what is kept of them is handed on then.
    pub(super) fn write_as(&self, before: &Self) -> bool {
        let same = Self {
            connections: self.connections,
            trusted_proxies: self.trusted_proxies.clone(),
            admin_token: self.admin_token.clone(),
            keeping: self.keeping,
            readers: self.readers.clone(),
            ..before.clone()
        };
        *self == same
    }
}
