//! The change log for programs: `/changes` as NDJSON with long poll, `/events` as server-sent events
//! (HTML Living Standard, section 9.2). Both read epochs, so nothing can be seen in one and missed
//! in the other, nor in the SUP documents.

pub(super) mod events;
mod line;
pub(super) mod poll;
mod position;

pub(super) use events::{ended, is_event_source};
pub(super) use line::EpochLine;

use super::AppState;
use super::audience::Audience;
use super::budget::{Budget, BudgetEnd, BudgetShares, HeldBudget};
use super::client::Client;
use super::directory::Listing;
use super::problem::Problem;
use super::query::Query;
use position::Position;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::FeedName;

/// Event streams at once, and long polls that wait: each a quarter of the connections that are served, and not more
/// than these.
pub(super) const STREAMS_AT_ONCE: usize = 256;
const PART: usize = 4;
/// Of each, those of one client.
const EACH: u64 = 32;
/// The most feeds that one request names.
const FEEDS_LIMIT: usize = 100;
/// The longest query that is read, in bytes.
const QUERY_LIMIT: usize = 8 * 1024;
/// How many epochs are read at once.
const EPOCHS: usize = 64;

/// How many event streams there may be, and how many requests that wait.
pub(super) struct EventStreams {
    streams: Arc<Budget>,
    waiting: Arc<Budget>,
}

impl EventStreams {
    /// None yet, of a gateway with so many connections.
    pub(super) fn new(connections: usize) -> Self {
        let limit = connections.div_ceil(PART).min(STREAMS_AT_ONCE);
        let all = u64::try_from(limit).unwrap_or(u64::MAX);
        let shares = BudgetShares { all, each: EACH, site: all };
        // What is waited for is a change: no connection is ended for another.
        let [streams, waiting] = [(); 2].map(|()| Budget::new(shares, Duration::MAX));
        Self { streams, waiting }
    }

    /// How many streams are open.
    #[cfg(test)]
    pub(super) fn open_streams(&self) -> usize {
        self.streams.held().0
    }
}

/// A permit for one more; where there is none, why.
fn enter(budget: &Arc<Budget>, client: Client, what: &str) -> Result<HeldBudget, String> {
    let shares = budget.shares;
    budget.take_one(client, None, false).map_err(|end| match end {
        BudgetEnd::Share => {
            format!("{} {what} of your address are open, which is the limit", shares.each)
        }
        BudgetEnd::All => format!("{} {what} are open, which is the limit", shares.all),
    })
}

/// What a client asks for.
#[derive(Debug, Clone)]
struct StreamQuery {
    /// Who asks; only feeds that it sees are told of.
    audience: Audience,
    /// `feed`, as often as it is given; none: every feed.
    feeds: BTreeSet<FeedName>,
    after: Option<Position>,
    /// `wait`, in seconds.
    wait: Option<u64>,
}

impl StreamQuery {
    /// Reads a query. Each feed must be one that is published; one that was deleted answers 410.
    async fn read(
        room: &AppState,
        audience: Audience,
        query: Option<&str>,
    ) -> Result<Self, Problem> {
        let query = Query::within(QUERY_LIMIT, query.unwrap_or_default())?;
        let mut feeds = BTreeSet::new();
        for name in query.all("feed") {
            feeds.insert(room.directory.served(name, &audience).await?.name.clone());
            if feeds.len() > FEEDS_LIMIT {
                let said = format!("more than {FEEDS_LIMIT} feeds are named");
                return Err(Problem::parameter("feed", said));
            }
        }
        let after = query.get("after")?.map(Position::read).transpose()?;
        let wait = query.parse("wait", "wait is a whole number of seconds", |value| {
            value.parse().ok().filter(|_| !value.starts_with('+'))
        })?;
        Ok(Self { audience, feeds, after, wait })
    }

    /// Whether a change of a feed is told; `listing`: of after it happened.
    fn wants(&self, feed: &FeedName, listing: &Listing) -> bool {
        let is_named = self.feeds.is_empty() || self.feeds.contains(feed);
        is_named && listing.is_seen(feed, &self.audience)
    }
}
