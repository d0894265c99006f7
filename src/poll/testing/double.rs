//! An in-memory store and a judge with scripted behaviour.

mod judge;

pub use judge::JudgeDouble;
pub use tidegate_store::testing::{ScriptedStore, StoreFault};

use crate::testing::idle::CALLBACKS;
use crate::{Bounds, HostQueue, HostRules, PollSettings, PollerConfig};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::{Clock, ManualClock};
pub use tidegate_core::model::testing::{NOW, event, hold, name, record};
use tidegate_core::model::*;
use tidegate_core::websub::{Discovery, subscriber};
use tidegate_judge::archive;
use tidegate_net::fetch::Services;
use tidegate_store::Store;
use tokio_util::sync::CancellationToken;

pub fn store_of(feeds: &[&str]) -> Arc<ScriptedStore> {
    let store = ScriptedStore::new("here", Arc::new(ManualClock::at(NOW)));
    feeds.iter().for_each(|feed| store.set_record(&record(feed)));
    Arc::new(store)
}

impl Default for PollSettings {
    fn default() -> Self {
        Self {
            bounds: Bounds::new(Duration::from_secs(5 * 60), Duration::from_secs(24 * 3600)),
            hosts: HostRules { spacing: Duration::from_secs(1), ..HostRules::default() },
            walk_pause: Duration::from_secs(2),
            window: Duration::from_secs(30 * 86_400),
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            versions_per_day: tidegate_core::model::VERSIONS_PER_DAY,
            items: tidegate_judge::record::ITEMS_KEPT,
            archives: archive::Policy::default(),
            reach: None,
            sites: Vec::new(),
        }
    }
}

pub fn poller_config(
    store: Arc<Store>,
    clock: &Arc<dyn Clock>,
    services: Services,
) -> PollerConfig {
    PollerConfig {
        settings: PollSettings::default(),
        store,
        clock: Arc::clone(clock),
        running: Arc::clone(clock),
        services,
        judge: Arc::new(JudgeDouble::default()),
        hosts: HostQueue::new(),
        cancel: CancellationToken::new(),
    }
}

/// A subscription of a feed to the hub that its document names, which was not asked yet.
pub fn hub_subscription(feed: &str, keys: SubscriptionKeys) -> HubSubscription {
    let hubs = vec!["https://hub.example/".to_owned()];
    let found = Discovery { hubs, topic: record(feed).url };
    subscriber::begin(&found, keys, CALLBACKS, None, NOW)
}

pub fn state(base: Option<&Snapshot>, prints: BodyPrints, now: Time) -> FeedState {
    let tick = Tick::next(now, base.and_then(|base| base.state.tick));
    FeedState {
        tick: Some(tick),
        window_start: Some(tick),
        render_revision: base.map_or(0, |base| base.state.render_revision) + 1,
        wire: prints.wire,
        body: prints.body,
        current: 1,
        living: 1,
        ..FeedState::untouched(Format::Atom10, now)
    }
}
