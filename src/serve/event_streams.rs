//! The change log for programs: `/changes` as NDJSON with long poll, `/events` as server-sent events
//! (HTML Living Standard, section 9.2). Both read epochs, so nothing can be seen in one and missed
//! in the other, nor in the SUP documents.

pub(super) mod events;
pub(super) mod poll;

pub(super) use events::{ended, is_event_source};

use super::AppState;
use super::address::Site;
use super::audience::Audience;
use super::budget::{Budget, BudgetEnd, BudgetShares, HeldBudget};
use super::client::Client;
use super::directory::Listing;
use super::log::ChangeLog;
use super::problem::Problem;
use super::query::Query;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_format::render::ViewKind;
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use tidegate_store::{ClosedEpoch, Epoch, LoggedChange};
use utoipa::ToSchema;

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

/// A place in the log: every epoch before `epoch` has been given out, and of that epoch the first
/// `part` changes, or all of them.
///
/// It is written `5f0c31ab-17.3`: before the dash an opening of the store that had reached it, so that
/// a log that went back to a copy, or another one, knows that it never gave this out. The beginning is
/// `0` in every log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    mark: Option<u32>,
    epoch: Epoch,
    part: Option<usize>,
}

impl Position {
    /// Behind a whole epoch of this log.
    fn behind(log: &ChangeLog, epoch: Epoch) -> Self {
        Self { mark: log.mark(epoch).filter(|_| epoch > Epoch(0)), epoch, part: None }
    }

    /// Behind the first `part` changes of this epoch.
    const fn within(self, part: usize) -> Self {
        Self { part: Some(part), ..self }
    }

    /// The last epoch of which something was given out.
    const fn begun(self) -> Epoch {
        self.epoch
    }

    /// Whether this log gave it out, or would have.
    fn is_of(self, log: &ChangeLog) -> bool {
        log.knows(self.mark, self.epoch)
    }

    /// The last epoch that was given out whole.
    const fn whole(self) -> Epoch {
        match self.part {
            None => self.epoch,
            Some(_) => Epoch(self.epoch.0.saturating_sub(1)),
        }
    }

    /// How many changes of this epoch were given out already.
    fn given(self, epoch: Epoch) -> usize {
        self.part.filter(|_| epoch == self.epoch).unwrap_or(0)
    }

    /// Reads a position: `5f0c31ab-17`, `5f0c31ab-17.3` or `0`.
    fn read(text: &str) -> Result<Self, Problem> {
        let said = "after is an id that was given out here, or 0";
        Self::parse(text).ok_or_else(|| Problem::parameter("after", said))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| {
            let number = text.parse::<u64>().ok();
            number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (mark, text) = match text.split_once('-') {
            None => (None, text),
            Some((mark, rest)) => {
                let is_one = mark.len() == 8 && mark.bytes().all(|b| b.is_ascii_hexdigit());
                (Some(u32::from_str_radix(mark, 16).ok().filter(|_| is_one)?), rest)
            }
        };
        let (epoch, part) = match text.split_once('.') {
            None => (text, None),
            Some((epoch, part)) => (epoch, Some(usize::try_from(number(part)?).ok()?)),
        };
        Some(Self { mark, epoch: Epoch(number(epoch)?), part })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(mark) = self.mark {
            write!(f, "{mark:08x}-")?;
        }
        match self.part {
            None => write!(f, "{}", self.epoch.0),
            Some(part) => write!(f, "{}.{part}", self.epoch.0),
        }
    }
}

describe! {
    /// What changed: `items`, or the `feed` as a whole and no version of an item (its title, say).
    ChangeKind: words(["items", "feed"]);
}

/// A change of a feed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
struct ChangeLine {
    #[schema(value_type = schema::FeedName)]
    feed: String,
    #[schema(value_type = ChangeKind)]
    kind: &'static str,
    /// The feed's document.
    url: String,
    /// `until` of the feed.
    #[schema(value_type = schema::Time)]
    tick: String,
    sup_id: Option<String>,
    update_id: String,
    revision: u64,
    /// How many versions of items the change made.
    versions: u32,
}

impl ChangeLine {
    /// A change of the log.
    fn new(site: &Site, announced: &LoggedChange) -> Self {
        let feed = &announced.feed;
        Self {
            feed: feed.to_string(),
            kind: if announced.versions == 0 { "feed" } else { "items" },
            url: site.view(feed, ViewKind::Reader, site.dialect(None, None)),
            tick: announced.tick.to_string(),
            sup_id: site.sup_id(feed).map(|id| id.to_string()),
            update_id: announced.tick.update_id(),
            revision: announced.revision.0,
            versions: announced.versions,
        }
    }
}

/// A change with its place, as the data of an event.
#[derive(Debug, Serialize)]
struct ChangeEvent {
    epoch: u64,
    at: String,
    #[serde(flatten)]
    change: ChangeLine,
}

impl ChangeEvent {
    /// A change of an epoch.
    fn new(site: &Site, sealed: &ClosedEpoch, announced: &LoggedChange) -> Self {
        let change = ChangeLine::new(site, announced);
        Self { epoch: sealed.epoch.0, at: sealed.at.to_string(), change }
    }
}

/// A line of `/changes`: an epoch, or where the log stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangeLine)]
pub(super) struct EpochLine {
    epoch: u64,
    /// Where the next request goes on.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Time, required = false)]
    at: Option<String>,
    changes: Vec<ChangeLine>,
}

impl EpochLine {
    /// An epoch with the changes that are wanted.
    fn new(sealed: &ClosedEpoch, id: Position, changes: Vec<ChangeLine>) -> Self {
        let at = Some(sealed.at.to_string());
        Self { epoch: sealed.epoch.0, id: id.to_string(), at, changes }
    }

    /// A place in the log, and no change.
    fn place(id: Position) -> Self {
        Self { epoch: id.whole().0, id: id.to_string(), at: None, changes: Vec::new() }
    }

    /// Adds the line to a text.
    fn push(&self, out: &mut String) {
        // Texts, numbers and lists of them always serialise.
        out.push_str(&serde_json::to_string(self).unwrap_or_default());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_read_back_and_nothing_else_is_read() {
        for text in
            ["0", "17", "17.0", "17.3", "18446744073709551615", "5f0c31ab-17", "00000000-17.3"]
        {
            assert_eq!(Position::read(text).unwrap().to_string(), text);
        }
        for bad in [
            "-",
            "1-2",
            "5f0c31ab-",
            "5f0c31ab--1",
            "+f0c31ab-1",
            "",
            ".",
            "1.",
            ".1",
            "-1",
            "+1",
            "1.x",
            "1.2.3",
            " 1",
            "18446744073709551616",
        ] {
            assert!(Position::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_part_of_an_epoch_leaves_the_rest_of_it() {
        let within = Position::read("17.3").unwrap();
        assert_eq!(
            (within.whole(), within.given(Epoch(17)), within.given(Epoch(18))),
            (Epoch(16), 3, 0)
        );
        let behind = Position::read("17").unwrap();
        assert_eq!((behind.whole(), behind.given(Epoch(17))), (Epoch(17), 0));
    }
}
