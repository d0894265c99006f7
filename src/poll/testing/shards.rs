//! Shares of the feeds of one store.

use super::double::record;
use crate::shard_of;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::{PollShards, Shard};

/// A lease that does not end within a test.
pub const LONG: Duration = Duration::from_secs(3600);

pub fn shard(feed: &str) -> Shard {
    shard_of(&record(feed).url)
}

/// The shards of these feeds, given out for this time.
pub fn held(feeds: &[&str], fence: i64) -> BTreeMap<Shard, i64> {
    feeds.iter().map(|feed| (shard(feed), fence)).collect()
}

/// Confirms shards for good.
pub fn give(shards: &PollShards, held: BTreeMap<Shard, i64>) {
    shards.confirm(Duration::MAX, held);
}

pub fn writer() -> Arc<PollShards> {
    Arc::new(PollShards::new(LONG, true))
}

pub fn follower() -> Arc<PollShards> {
    Arc::new(PollShards::new(LONG, false))
}
