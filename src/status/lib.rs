//! What the API, pages, metrics and logs say of feeds, polls and subscriptions.
//!
//! Polling fills these values in, `app` puts them together, and `serve` shows them. How each is written
//! as JSON stands here, in its derive (CONTRACT, Administration API).

mod hub;
mod list;
mod polling;
pub mod schema;
mod stored;
mod ticks;

pub use hub::{HubNote, HubReport, RejectedPush, RejectedPushes};
pub use list::{ListNote, MemberNote, RefusedFeed};
pub use polling::{
    EventCounts, FinishedPoll, FinishedProbe, POLLS_KEPT, PROBES_KEPT, ParsedNote, PollEnding,
    PollFailure, PollGaps, PollResponse, PollStatus, PollTotals, PushResult, ScheduledPoll,
    WalkOrder,
};
pub use ticks::{TICK_LEAD_LIMIT, TicksAhead, tick_lead};
pub use tidegate_net::fetch::FetchBlame;

use serde::{Serialize, Serializer};
use std::time::Duration;
use tidegate_core::model::{
    FeedAccess, FeedName, FeedOptions, FeedRecord, FeedSource, FeedStanding, Time,
};
use tidegate_judge::PendingAbsence;
use tidegate_judge::record::LeftOut;
use utoipa::ToSchema;

/// A feed, what the operator says of it, and how its polling stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedStatus {
    pub name: FeedName,
    /// The upstream's address, as configured; empty where there is none.
    #[serde(serialize_with = "none_if_empty")]
    #[schema(value_type = Option<String>)]
    pub url: String,
    /// Who added it.
    pub source: FeedSource,
    /// Whether it is polled and served.
    pub standing: FeedStanding,
    /// What the operator says of it.
    #[serde(skip)]
    pub options: FeedOptions,
    /// What its publisher is asked with.
    #[serde(skip)]
    pub access: Option<Box<FeedAccess>>,
    /// Whether only readers with a token may read it.
    #[serde(skip)]
    pub private: bool,
    #[serde(flatten)]
    pub polling: PollStatus,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// Items that are missing upstream with nothing concluded yet, at most
    /// [`tidegate_judge::PENDING_SHOWN`], what is decided first first.
    #[serde(skip)]
    pub pending: Vec<PendingAbsence>,
    /// How many there are in all.
    pub pending_absences: u32,
    /// The subscription to the hub that the upstream names, where there is one.
    pub hub: Option<HubNote>,
    /// The gateway that polls it, as it calls itself, where that is another one over the same store.
    pub polled_by: Option<String>,
    /// What an aggregate could not gather; `None` for other feeds.
    pub gathered: Option<GatherNote>,
    /// Whether it is a subscription list whose feeds are added.
    #[serde(skip)]
    pub adds_feeds: bool,
    /// What came of the feeds of such a list; `None` for other feeds.
    pub feeds_of_list: Option<ListNote>,
    /// The list that added it, where one did.
    pub list: Option<MemberNote>,
}

/// What a list of all feeds says of the polling of one. Nothing of it is read from a ledger, so that
/// thousands can be listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedSummary {
    /// When the last poll began.
    pub last_poll: Option<Time>,
    /// When the next one is due; in the past while it waits for its host, `None` while one is in flight.
    pub next_poll: Option<Time>,
    /// Whether a request is being made.
    pub is_in_flight: bool,
    /// When the feed was last read without a failure; since when it is polled where it was not read yet,
    /// which is the start at the earliest.
    pub read: Option<Time>,
    /// The time after which it is [stale](FeedSummary::STALE_AGE) unless it is read before.
    pub stale_after: Option<Time>,
    /// Whether another gateway polls it, so that all of this is what that gateway stored.
    pub is_elsewhere: bool,
    /// Failures in a row.
    pub failures: u32,
    /// What the last failure was, if the last poll failed.
    pub error: Option<String>,
    /// Where items may have been missed.
    pub gaps: PollGaps,
    /// Where permanent redirects lead.
    pub moved_to: Option<String>,
    /// Whether its hub is not believed, so that it is polled as if there were none.
    pub is_hub_distrusted: bool,
}

impl FeedSummary {
    /// Whether its polls fail: only of a feed that is polled.
    pub fn is_failing(&self, record: &FeedRecord) -> bool {
        record.standing == FeedStanding::Active && record.has_upstream() && self.failures > 0
    }

    /// A feed is stale when it was not read for so many of its intervals,
    pub const STALE_INTERVALS: u32 = 3;
    /// and for so long.
    pub const STALE_AGE: Duration = Duration::from_secs(86_400);

    /// The time after which a feed is stale that was read at `read`, to be polled again after `interval`.
    pub fn stale_after(read: Time, interval: Duration) -> Time {
        read.plus(interval.saturating_mul(Self::STALE_INTERVALS).max(Self::STALE_AGE))
    }
}

/// What of its sources an aggregate does not have, and why. What it has of them stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = Gathered)]
pub struct GatherNote {
    /// Sources from which nothing new comes, in the operator's order; at most [`GatherNote::LIMIT`].
    pub troubles: Vec<SourceTrouble>,
    /// How many there are in all.
    #[serde(rename = "troubled_sources")]
    pub troubled: usize,
    /// Items that were not taken over since the start, or not whole, the newest last; at most
    /// [`GatherNote::LIMIT`].
    #[schema(value_type = Vec<Object>)]
    pub left_out: Vec<LeftOut>,
    /// Why it could not be brought up to date when that was tried last.
    pub error: Option<String>,
}

impl GatherNote {
    /// The most of each that is shown.
    pub const LIMIT: usize = 20;
}

/// A source from which nothing new comes, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SourceTrouble {
    pub source: FeedName,
    pub why: String,
}

fn none_if_empty<S: Serializer>(text: &String, to: S) -> Result<S::Ok, S::Error> {
    Some(text).filter(|text| !text.is_empty()).serialize(to)
}
