//! What the configuration says of how the gateway shows itself, and what of that changes when it is read again.

use super::client::Proxies;
use super::{AdminToken, AppState, Keeping, ReaderAccess, SharedState};
use ipnet::IpNet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::DeltaViews;
use tidegate_format::render::{Dialect, LinkForms};

/// How this gateway shows itself.
#[derive(Debug, Clone)]
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

/// What a site goes on with.
#[derive(Debug, Clone)]
pub struct ReloadableSettings {
    /// Whose word is taken for who the client is (`server.trusted_proxies`).
    pub trusted_proxies: Vec<IpNet>,
    /// What administration must bring along; `None`: as before.
    pub admin_token: Option<AdminToken>,
    /// How much is kept of every feed; to be shown.
    pub keeping: Keeping,
    /// Who may read private feeds.
    pub readers: Vec<ReaderAccess>,
}

/// What every handler reads of it.
#[derive(Debug)]
pub(super) struct SiteSettings {
    pub(super) proxies: Proxies,
    pub(super) admin_token: AdminToken,
    pub(super) keeping: Keeping,
}

impl SiteSettings {
    /// Those that a site begins with.
    pub(super) fn new(settings: &ServeSettings) -> Self {
        Self {
            proxies: Proxies::new(settings.trusted_proxies.clone()),
            admin_token: settings.admin_token.clone(),
            keeping: settings.keeping,
        }
    }
}

impl AppState {
    /// Takes these readers in the place of those before: streams, long polls and subscriptions end whose
    /// token is revoked. Which feeds are private is read anew as well.
    pub(super) fn replace_readers(&self, readers: Vec<ReaderAccess>) {
        self.readers.replace(readers);
        self.operator.feeds_changed();
    }
}

/// A handle on a site that is served.
#[derive(Clone)]
pub struct SiteControl(SharedState);

impl SiteControl {
    pub(super) const fn new(room: SharedState) -> Self {
        Self(room)
    }

    /// Goes on with other settings. Another token ends who is signed in with the one before.
    pub fn reconfigure(&self, settings: ReloadableSettings) {
        let ReloadableSettings { trusted_proxies, admin_token, keeping, readers } = settings;
        let before = self.0.settings.load_full();
        let token = admin_token.unwrap_or_else(|| before.admin_token.clone());
        if token != before.admin_token {
            self.0.sessions.end_all(&token);
        }
        let (proxies, admin_token) = (Proxies::new(trusted_proxies), token);
        self.0.settings.store(Arc::new(SiteSettings { proxies, admin_token, keeping }));
        self.0.replace_readers(readers);
    }
}
