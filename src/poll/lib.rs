//! Polls the feeds: one feed's round, the schedule, politeness to hosts.
//!
//! Deciding is pure (`schedule`, `politeness`, `memory`); acting is one task that owns every feed
//! that is polled and starts a round for each one that is due and whose host may be asked. Rounds
//! end in the store; nobody else is told of a change. What is absent: who reads the feeds.

mod allowance;
mod attempts;
mod backfill;
mod callbacks;
mod decide;
mod decision;
mod domains;
mod error;
mod feeds;
mod host_queue;
pub mod hub;
mod judge;
mod memory;
mod overlap;
mod politeness;
mod poll_log;
mod poller;
mod polling;
mod probe;
mod reason;
mod schedule;
mod scheduler;
mod sharing;
mod silence;
mod skip;
mod subscribe;
mod sup;
mod turns;
mod walk;

pub use callbacks::Reach;
pub use decide::{DecisionContext, MAX_COMMIT_ATTEMPTS};
pub use domains::owns_feed;
pub use error::{PollError, RoundError};
pub use host_queue::HostQueue;
pub use judge::{DocumentJudge, JudgeError, Judged, LedgerReader, ParseAndRecord, SharingContext};
pub use politeness::Pace;
pub use poller::{FirstPoll, Poller, PollerConfig};
pub use schedule::{Bounds, UpdateRate, replay_interval};
pub use sup::{SupNews, SupReader};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::FeedOptions;
use tidegate_judge::archive;
use tidegate_net::fetch::{AllowPrivate, read_url};

/// How feeds are polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollSettings {
    /// Polls of a feed are at least this far apart (`polling.min_interval`).
    pub min_interval: Duration,
    /// Polls of a feed are at most this far apart (`polling.max_interval`).
    pub max_interval: Duration,
    /// The pause between two requests to a host.
    pub spacing: Duration,
    /// Hosts with a pace of their own, by name.
    pub paces: Arc<BTreeMap<String, Pace>>,
    /// The least pause between two documents of a walk, whatever its host is owed: each of them
    /// makes a tick, and ticks are whole seconds that must not run ahead of the clock.
    pub walk_pause: Duration,
    /// Requests at the same time.
    pub at_once: usize,
    /// Which hosts are the operator's own and are owed no pause (`polling.allow_private`).
    pub allow_private: AllowPrivate,
    /// How long changes stay in the sync view (`publish.window`).
    pub window: Duration,
    /// How long tombstones are kept (`publish.tombstones`).
    pub tombstones: Duration,
    /// The most updates of one item in a day that make a version each
    /// (`publish.versions_per_day`).
    pub versions_per_day: u32,
    /// The most items that the ledger of a feed keeps (`publish.items`).
    pub items: usize,
    /// How archives are made and kept (`publish.archive_entries` and what follows it).
    pub archives: archive::Policy,
    /// Where hubs reach this gateway; `None`: none is subscribed to.
    pub reach: Option<Reach>,
}

impl Default for PollSettings {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_secs(5 * 60),
            max_interval: Duration::from_secs(24 * 3600),
            spacing: Duration::from_secs(1),
            paces: Arc::default(),
            walk_pause: Duration::from_secs(2),
            at_once: 64,
            allow_private: AllowPrivate::No,
            window: Duration::from_secs(30 * 86_400),
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            versions_per_day: tidegate_core::model::VERSIONS_PER_DAY,
            items: tidegate_judge::record::ITEMS_KEPT,
            archives: archive::Policy::default(),
            reach: None,
        }
    }
}

impl PollSettings {
    /// The bounds of one feed.
    pub fn bounds(&self, options: &FeedOptions) -> Bounds {
        Bounds::new(self.min_interval, self.max_interval).of(options)
    }

    /// Whether a hub may be given a secret: over plain http whoever listens learns it.
    fn may_share_secret(&self, hub: &str) -> bool {
        let Ok(url) = read_url(hub) else { return false };
        url.scheme() == "https"
            || self.allow_private.is_own_host(&url)
            || self.reach.as_ref().is_some_and(|reach| reach.http_secrets)
    }

    /// Whether a hub can reach this gateway.
    fn is_reached_by(&self, hub: &str) -> bool {
        let is_own = || read_url(hub).is_ok_and(|url| self.allow_private.is_own_host(&url));
        self.reach.as_ref().is_some_and(|reach| !reach.own_hosts || is_own())
    }

    fn host_rules(&self) -> politeness::HostRules {
        let (allow_private, paces) = (self.allow_private.clone(), Arc::clone(&self.paces));
        politeness::HostRules { spacing: self.spacing, allow_private, paces }
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
