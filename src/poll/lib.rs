//! Polls feeds: one round per poll, the schedule, and politeness towards hosts.
//!
//! Decisions are pure functions (`schedule`, `politeness`, `memory`). One task owns every polled feed and begins a
//! round when the feed is due and its host may be asked. A round ends with a commit to the store, through which readers
//! learn of the change; nothing here knows the readers.

mod decide;
mod domains;
mod error;
mod feeds;
mod host_queue;
pub mod hub;
mod judge;
mod memory;
mod permits;
mod politeness;
mod poller;
mod polling;
mod probe;
mod schedule;
mod scheduler;
mod sharing;
mod silence;
mod subscribe;
mod sup;
mod walk;

pub use decide::{DecisionContext, MAX_COMMIT_ATTEMPTS};
pub use domains::owns_feed;
pub use error::{PollError, RoundError};
pub use host_queue::HostQueue;
pub use judge::JudgeError;
pub use politeness::{HostRules, Pace};
pub use poller::{FirstPoll, Poller, PollerConfig};
pub use schedule::{Bounds, UpdateRate, replay_interval};
pub use subscribe::Reach;
pub use sup::{SupNews, SupReader};

use std::sync::Arc;
use std::time::Duration;
use tidegate_judge::archive;
use tidegate_net::fetch::read_url;
use tidegate_net::origin::OriginSite;

/// The settings of polling, from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollSettings {
    /// The shortest and longest interval between polls of a feed (`polling.min_interval`, `polling.max_interval`).
    pub bounds: Bounds,
    /// How hosts are asked (`polling.allow_private` among them).
    pub hosts: HostRules,
    /// The shortest pause between two documents of a walk through older documents, whatever the host's pace. Each
    /// document takes one tick, and ticks are whole seconds that must not run ahead of the clock.
    pub walk_pause: Duration,
    /// How long changes stay in the sync view (`publish.window`).
    pub window: Duration,
    /// How long tombstones are kept (`publish.tombstones`).
    pub tombstones: Duration,
    /// The most updates of one item within a day that each create a version (`publish.versions_per_day`).
    pub versions_per_day: u32,
    /// The most items in the ledger of a feed (`publish.items`).
    pub items: usize,
    /// How archive documents are built and retained (`publish.archive_entries` and the keys after it).
    pub archives: archive::Policy,
    /// Where hubs reach this gateway; `None`: the gateway subscribes to no hub.
    pub reach: Option<Reach>,
    /// The sites in front of which this gateway stands.
    pub sites: Vec<Arc<OriginSite>>,
}

impl PollSettings {
    /// Whether the address of `hub` protects a secret: over plain HTTP an eavesdropper learns it.
    fn may_share_secret(&self, hub: &str) -> bool {
        let Ok(url) = read_url(hub) else { return false };
        url.scheme() == "https"
            || self.hosts.allow_private.is_own_host(&url)
            || self.reach.as_ref().is_some_and(|reach| reach.http_secrets)
    }

    /// Whether a hub can reach this gateway.
    fn is_reached_by(&self, hub: &str) -> bool {
        let is_own = || read_url(hub).is_ok_and(|url| self.hosts.allow_private.is_own_host(&url));
        self.reach.as_ref().is_some_and(|reach| !reach.own_hosts || is_own())
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
