//! The gateway before the publisher: its configuration, and where to look.

use super::{HARBOUR, LIGHTHOUSE};
use crate::config::{
    AllowPrivateSetting, Config, FeedConfig, HostPort, Polling, Publish, ServerSection,
};
use crate::config::{StoreKind, StoreSettings, SupConfig, Websub, written};
use crate::model::{Deletions, FeedName, FeedOptions, FeedSource};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// The feeds of the demonstration: name and path.
const FEEDS: [(&str, &str); 2] = [("lighthouse", LIGHTHOUSE), ("harbour", HARBOUR)];

/// The views of a feed: what follows its address, and what it shows.
const VIEWS: [(&str, &str); 3] = [
    ("", "for readers: histories, no tombstones"),
    ("/sync", "for subscribers: changes and tombstones"),
    ("/complete", "everything that lives or is remembered"),
];

/// The length of the longest path of a view.
const COLUMN: usize = "/feeds/lighthouse/complete".len();

/// How often the gateway polls the publisher: as often as it may, so that nothing is missed.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// The configuration of a gateway on `listen` before the publisher at `publisher`. Without a data
/// folder it keeps everything in memory. Deletions are taken at once, so that one can be seen
/// within a minute; only the publisher's address is allowed among private ones.
pub fn configuration(publisher: SocketAddr, listen: SocketAddr, data: Option<PathBuf>) -> Config {
    let address = HostPort { host: host(publisher), port: publisher.port() };
    let kind = if data.is_some() { StoreKind::Sled } else { StoreKind::Memory };
    let path = data.unwrap_or_else(|| StoreSettings::default().path);
    Config {
        server: ServerSection { listen, ..ServerSection::default() },
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
    }
}

fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}

fn feed(publisher: SocketAddr, name: &str, path: &str) -> Option<FeedConfig> {
    Some(FeedConfig {
        name: FeedName::new(name).ok()?,
        url: Some(Url::parse(&format!("http://{publisher}{path}")).ok()?),
        options: FeedOptions { deletions: Deletions::Eager, ..FeedOptions::default() },
        source: FeedSource::File,
        access: None,
    })
}

/// What to print: where to look, at the publisher and at the gateway, whose address is `gateway`
/// (`http://127.0.0.1:8080`).
pub fn places(publisher: SocketAddr, gateway: &str, every: Duration) -> String {
    let every = written(every);
    let mut text = format!("The publisher's own feeds, a step further every {every}:\n");
    for (_, path) in FEEDS {
        text.push_str(&format!("  curl http://{publisher}{path}\n"));
    }
    text.push_str("\nWhat the gateway makes of them:\n");
    for (name, _) in FEEDS {
        for (view, shows) in VIEWS {
            // The remarks stand in one column, whatever the names.
            let address = format!("{gateway}/feeds/{name}{view}");
            let column = gateway.len() + COLUMN;
            text.push_str(&format!("  curl {address:column$}  # {shows}\n"));
        }
    }
    text.push_str(&format!(
        "\nOnly what comes after the `until` of now, for instance a minute later:\n  \
         UNTIL=$(curl -s {gateway}/feeds/lighthouse/sync | grep -o 'until=\"[^\"]*\"' | cut -d'\"' -f2)\n  \
         curl \"{gateway}/feeds/lighthouse/sync?since=$UNTIL\"\n\
         \nThe first post is withdrawn at the fourth step. Ctrl-C ends it.\n"
    ));
    text
}
