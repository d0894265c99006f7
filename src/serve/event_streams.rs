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
use super::client::Client;
use super::directory::Listing;
use super::problem::Problem;
use super::query::Query;
use super::shares::{FairShares, Share};
use position::Position;
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegate_core::model::FeedName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Event streams at once, and long polls that wait: each a quarter of the connections that are served, and not more
/// than these.
pub(super) const STREAMS_AT_ONCE: usize = 256;
const PART: usize = 4;
/// Of each, those of one client.
const EACH: u32 = 32;
/// The most feeds that one request names.
const FEEDS_LIMIT: usize = 100;
/// The longest query that is read, in bytes.
const QUERY_LIMIT: usize = 8 * 1024;
/// How many epochs are read at once.
const EPOCHS: usize = 64;

/// How many may stand in the doors.
pub(super) struct EventStreams {
    streams: StreamDoor,
    waiting: StreamDoor,
}

/// A door in which so many may stand, and of one client a few.
struct StreamDoor {
    limit: usize,
    all: Arc<Semaphore>,
    clients: FairShares<Client>,
}

/// A place in a door, until it is dropped.
struct StreamPlace {
    _permit: OwnedSemaphorePermit,
    _share: Share<Client>,
}

impl StreamDoor {
    fn new(limit: usize) -> Self {
        Self { limit, all: Arc::new(Semaphore::new(limit)), clients: FairShares::new(EACH) }
    }

    /// A place in it; where there is none, why.
    fn enter(&self, client: Client, what: &str) -> Result<StreamPlace, String> {
        let share = self.clients.try_take(&client, 1);
        let share = share
            .ok_or_else(|| format!("{EACH} {what} of your address are open, which is the limit"))?;
        let permit = Arc::clone(&self.all).try_acquire_owned();
        let permit =
            permit.map_err(|_| format!("{} {what} are open, which is the limit", self.limit))?;
        Ok(StreamPlace { _permit: permit, _share: share })
    }
}

impl EventStreams {
    /// Doors in which nobody stands, of a gateway with so many connections.
    pub(super) fn new(connections: usize) -> Self {
        let limit = connections.div_ceil(PART).min(STREAMS_AT_ONCE);
        Self { streams: StreamDoor::new(limit), waiting: StreamDoor::new(limit) }
    }

    /// How many streams are open.
    #[cfg(test)]
    pub(super) fn open_streams(&self) -> usize {
        self.streams.limit - self.streams.all.available_permits()
    }
}

/// What a client asks of a door.
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
