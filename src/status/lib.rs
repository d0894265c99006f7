//! What the API, pages, metrics and logs report about feeds, polls and subscriptions.
//!
//! Polling provides these values, `app` combines them, and `serve` shows them. Their derives define their JSON form
//! (CONTRACT, Administration API).

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

use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, Time};
use tidegate_judge::PendingAbsence;
use tidegate_judge::record::LeftOut;
use utoipa::ToSchema;

/// A feed with its settings, and its polling status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedStatus {
    #[serde(skip)]
    pub record: Arc<FeedRecord>,
    #[serde(flatten)]
    pub polling: PollStatus,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// Missing items whose fate is undecided, at most [`tidegate_judge::PENDING_SHOWN`], earliest decision first.
    #[serde(skip)]
    pub pending: Vec<PendingAbsence>,
    /// The number of all such items.
    pub pending_absences: u32,
    /// The subscription to the upstream's hub, if there is one.
    pub hub: Option<HubNote>,
    /// The name of the gateway that polls it, if that is another one on the same store.
    pub polled_by: Option<String>,
    /// The problems of an aggregate; `None` for other feeds.
    pub gathered: Option<GatherNote>,
    /// The feeds of a subscription list whose feeds are added; `None` for other feeds.
    pub feeds_of_list: Option<ListNote>,
    /// The list that added it, if one did.
    pub list: Option<MemberNote>,
}

/// The polling status of a feed in a list of all feeds. Computed without reading ledgers, so that thousands can be
/// listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedSummary {
    /// When the last poll began.
    pub last_poll: Option<Time>,
    /// When the next poll is due; in the past while it waits for its host, `None` while a poll is in flight.
    pub next_poll: Option<Time>,
    /// Whether a poll is in flight.
    pub is_in_flight: bool,
    /// When the feed was last read successfully; if never, when its polling began, at the earliest the start.
    pub read: Option<Time>,
    /// When it becomes [stale](FeedSummary::STALE_AGE) unless it is read before.
    pub stale_after: Option<Time>,
    /// Whether another gateway polls it; then all values are as stored by that gateway.
    pub is_elsewhere: bool,
    /// Consecutive failures.
    pub failures: u32,
    /// The failure of the last poll; `None` if it succeeded.
    pub error: Option<String>,
    /// Gaps in which items may have been missed.
    pub gaps: PollGaps,
    /// The target of permanent redirects.
    pub moved_to: Option<String>,
    /// Whether its hub is not trusted, so that it is polled as if it had none.
    pub is_hub_distrusted: bool,
}

impl FeedSummary {
    /// Whether its polls fail; `false` if it is not polled.
    pub fn is_failing(&self, record: &FeedRecord) -> bool {
        record.standing == FeedStanding::Active && record.has_upstream() && self.failures > 0
    }

    /// Stale after this many intervals without a successful poll, but see [`FeedSummary::STALE_AGE`].
    pub const STALE_INTERVALS: u32 = 3;
    /// The shortest time without a successful poll after which a feed is stale.
    pub const STALE_AGE: Duration = Duration::from_secs(86_400);

    /// Returns when a feed becomes stale that was read at `read` and has this `interval`.
    pub fn stale_after(read: Time, interval: Duration) -> Time {
        read.plus(interval.saturating_mul(Self::STALE_INTERVALS).max(Self::STALE_AGE))
    }
}

/// What an aggregate is missing from its sources, and why. What it has from them is retained.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[schema(as = Gathered)]
pub struct GatherNote {
    /// Sources that currently provide nothing new, in the operator's order; at most [`GatherNote::LIMIT`].
    pub troubles: Vec<SourceTrouble>,
    /// The number of all such sources.
    #[serde(rename = "troubled_sources")]
    pub troubled: usize,
    /// Items that were left out, wholly or in part, since the start; newest last, at most [`GatherNote::LIMIT`].
    #[schema(value_type = Vec<Object>)]
    pub left_out: Vec<LeftOut>,
    /// Why the last update failed, if it did.
    pub error: Option<String>,
}

impl GatherNote {
    /// The most sources and the most items that are shown.
    pub const LIMIT: usize = 20;

    /// Notes that a source provides nothing new, if there is a reason why.
    pub fn note_trouble(&mut self, source: &FeedName, why: Option<String>) {
        let Some(why) = why else { return };
        self.troubled += 1;
        if self.troubles.len() < Self::LIMIT {
            self.troubles.push(SourceTrouble { source: source.clone(), why });
        }
    }
}

/// A source that currently provides nothing new, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SourceTrouble {
    pub source: FeedName,
    pub why: String,
}
