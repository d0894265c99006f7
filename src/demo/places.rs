//! The gateway before the publisher: its configuration, and where to look.

use super::{HARBOUR, LIGHTHOUSE, PILOTS};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::{
    AdminTokenSetting, Config, FeedConfig, Polling, ServerSection, StoreKind, StoreSettings,
    written,
};
use tidegate_core::model::{Deletions, FeedName, FeedOptions, FeedSource, SharingOptions};
use tidegate_net::fetch::AllowPrivate;
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
    let kind = if data.is_some() { StoreKind::Sled } else { StoreKind::Memory };
    let path = data.unwrap_or_else(|| StoreSettings::default().path);
    Config {
        server: ServerSection { listen, admin_token, ..ServerSection::default() },
        store: StoreSettings { kind, path, ..StoreSettings::default() },
        polling: Polling {
            min_interval: POLL_EVERY,
            max_interval: POLL_EVERY,
            host_spacing: Duration::ZERO,
            allow_private: AllowPrivate::only([publisher.to_string().as_str()]).unwrap_or_default(),
            ..Polling::default()
        },
        feeds: FEEDS.iter().filter_map(|(name, path)| feed(publisher, name, path)).collect(),
        ..Config::default()
    }
}

fn feed(publisher: SocketAddr, name: &str, path: &str) -> Option<FeedConfig> {
    let is_shared = name == PILOTS_FEED;
    let title = is_shared.then(|| "The tide board of the pilots".to_owned());
    let sharing = SharingOptions { local: is_shared, title, ..SharingOptions::default() };
    let url = Url::parse(&format!("http://{publisher}{path}")).ok()?;
    Some(FeedConfig {
        options: FeedOptions { deletions: Deletions::Eager, sharing, ..FeedOptions::default() },
        ..FeedConfig::new(FeedName::new(name).ok()?, Some(url), FeedSource::File)
    })
}

/// What is printed at the start: what runs, and where to look. `gateway`: its address, `http://127.0.0.1:8080`;
/// `every`: how often the publisher's feeds change; `token`: that of administration as a shell is to be given it.
pub fn welcome(publisher: SocketAddr, gateway: &str, every: Duration, token: &str) -> String {
    let (every, all) = (written(every), written(every.saturating_mul(ALL_SHOWN_AT)));
    format!(
        "Open {gateway}/ in a browser: the dashboard of this gateway.\n\
         Behind it, a publisher changes its feeds every {every}: http://{publisher}{LIGHTHOUSE}\n\
         Pages and API ask for the administration token {token}\n  \
         curl -X POST -H \"Authorization: Bearer {token}\" {gateway}/api/v1/feeds/harbour/poll\n\
         What happens is told below, everything once in about {all}. Ctrl-C ends it.\n"
    )
}
