//! What the configuration says of how the gateway shows itself.

use super::{AdminToken, ReaderAccess};
use tidegate_config::{Config, PageAudience, Publish, ServerSection, SupConfig, Websub};

/// How this gateway shows itself: what the configuration says, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSettings {
    pub server: ServerSection,
    pub publish: Publish,
    pub sup: SupConfig,
    pub websub: Websub,
    /// The address under which readers reach it, absolute; a slash at the end makes no difference.
    pub public_url: String,
    /// How many connections are served at once.
    pub connections: usize,
    /// What administration must bring along.
    pub admin_token: AdminToken,
    /// Who may read private feeds.
    pub readers: Vec<ReaderAccess>,
}

impl ServeSettings {
    pub fn new(
        config: &Config,
        public_url: String,
        connections: usize,
        (admin_token, readers): (AdminToken, Vec<ReaderAccess>),
    ) -> Self {
        let Config { server, publish, sup, websub, .. } = config.clone();
        Self { server, publish, sup, websub, public_url, connections, admin_token, readers }
    }

    /// Whether administration has a listener of its own.
    pub(super) const fn operators_apart(&self) -> bool {
        self.server.admin_listen.is_some()
    }

    /// Whether pages are for operators alone.
    pub(super) fn pages_are_closed(&self) -> bool {
        self.server.pages == PageAudience::Operators
    }

    /// Whether documents of RSS lead to the cloud, which needs a hub.
    pub(super) const fn has_cloud(&self) -> bool {
        self.websub.hub && self.websub.rsscloud
    }

    /// Whether documents come out as under `before`, so that cached ones survive a reload.
    pub(super) fn writes_like(&self, before: &Self) -> bool {
        let shown = |of: &Self| {
            let ServerSection { memory, pages, indexed, challenge, .. } = of.server;
            let publish = Publish {
                archives: self.publish.archives,
                past: self.publish.past,
                ..of.publish.clone()
            };
            let server = (memory, pages, indexed, challenge, of.operators_apart());
            (server, publish, of.sup.clone(), of.websub.hub, of.has_cloud(), of.public_url.clone())
        };
        shown(self) == shown(before)
    }
}
