//! The gateway before the publisher: its configuration, and where to look.

use super::{HARBOUR, LIGHTHOUSE, PILOTS};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::{
    AdminTokenSetting, AllowPrivateSetting, Config, FeedConfig, HostPort, Polling, Publish,
    ServerSection,
};
use tidegate_config::{StoreKind, StoreSettings, SupConfig, Websub, written};
use tidegate_core::model::{Deletions, FeedName, FeedOptions, FeedSource, SharingOptions};
use url::Url;

/// The feed whose items are made here as well.
pub const PILOTS_FEED: &str = "pilots";

/// The feeds of the demonstration: name and path.
const FEEDS: [(&str, &str); 3] =
    [("lighthouse", LIGHTHOUSE), ("harbour", HARBOUR), (PILOTS_FEED, PILOTS)];

/// The step at which everything that the product is for was to be seen once.
pub const ALL_SHOWN_AT: u32 = 30;

/// How often the gateway polls the publisher: as often as it may, so that nothing is missed.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The configuration of a gateway on `listen` before the publisher at `publisher`. Without a data
/// folder it keeps everything in memory. Deletions are taken at once, so that one can be seen
/// within a minute; only the publisher's address is allowed among private ones.
pub fn configuration(
    publisher: SocketAddr,
    listen: SocketAddr,
    data: Option<PathBuf>,
    admin_token: AdminTokenSetting,
) -> Config {
    let address = HostPort { host: host(publisher), port: publisher.port() };
    let kind = if data.is_some() { StoreKind::Sled } else { StoreKind::Memory };
    let path = data.unwrap_or_else(|| StoreSettings::default().path);
    Config {
        server: ServerSection { listen, admin_token, ..ServerSection::default() },
        store: StoreSettings { kind, path, ..StoreSettings::default() },
        polling: Polling {
            min_interval: POLL_EVERY,
            max_interval: POLL_EVERY,
            host_spacing: Duration::ZERO,
            allow_private: AllowPrivateSetting::Only(BTreeSet::from([address])),
            ..Polling::default()
        },
        publish: Publish::default(),
        sup: SupConfig::default(),
        websub: Websub::default(),
        hosts: std::collections::BTreeMap::new(),
        feeds: FEEDS.iter().filter_map(|(name, path)| feed(publisher, name, path)).collect(),
        aggregates: Vec::new(),
        readers: Vec::new(),
        origins: Vec::new(),
        allow: Vec::new(),
    }
}

fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}

fn feed(publisher: SocketAddr, name: &str, path: &str) -> Option<FeedConfig> {
    let is_shared = name == PILOTS_FEED;
    let title = is_shared.then(|| "The tide board of the pilots".to_owned());
    let sharing = SharingOptions { local: is_shared, title, ..SharingOptions::default() };
    Some(FeedConfig {
        name: FeedName::new(name).ok()?,
        url: Some(Url::parse(&format!("http://{publisher}{path}")).ok()?),
        options: FeedOptions { deletions: Deletions::Eager, sharing, ..FeedOptions::default() },
        source: FeedSource::File,
        access: None,
        webhook: None,
        private: false,
        adds_feeds: false,
        path: None,
    })
}

/// What is printed at the start: what runs, and where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The publisher's address.
    pub publisher: SocketAddr,
    /// The gateway's: `http://127.0.0.1:8080`.
    pub gateway: &'a str,
    /// How often the publisher's feeds change.
    pub every: Duration,
    /// The administration token as a shell is to be given it.
    pub token: &'a str,
}

impl std::fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { publisher, gateway, every, token } = self;
        let all = written(every.saturating_mul(ALL_SHOWN_AT));
        writeln!(f, "Open {gateway}/ in a browser: the dashboard of this gateway.")?;
        writeln!(
            f,
            "Behind it, a publisher changes its feeds every {}: http://{publisher}{LIGHTHOUSE}",
            written(*every)
        )?;
        writeln!(f, "Pages and API ask for the administration token {token}")?;
        writeln!(
            f,
            "  curl -X POST -H \"Authorization: Bearer {token}\" {gateway}/api/v1/feeds/harbour/poll"
        )?;
        writeln!(f, "What happens is told below, everything once in about {all}. Ctrl-C ends it.")
    }
}
