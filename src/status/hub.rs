//! The status of subscriptions to upstreams' hubs, without their secrets.

use serde::Serialize;
use tidegate_core::model::{HubSubscription, ShownAddress, Time};
use tidegate_core::websub::subscriber;
use utoipa::ToSchema;

/// A subscription to a hub and its rejected pushes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubReport {
    pub subscription: HubSubscription,
    /// Pushes that failed verification since the start.
    pub disbelieved: RejectedPushes,
}

/// Pushes that failed verification since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct RejectedPushes {
    #[serde(rename = "disbelieved_pushes")]
    pub count: u64,
    #[serde(rename = "last_disbelieved")]
    pub last: Option<RejectedPush>,
}

/// A push that failed verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectedPush {
    /// When it arrived.
    pub at: Time,
    /// Why it was rejected.
    pub why: String,
}

/// A subscription to the hub of an upstream, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = UpstreamHub)]
pub struct HubNote {
    /// The status in a word.
    pub state: &'static str,
    /// The status and its reason in words.
    pub words: String,
    /// The address of the hub.
    #[schema(value_type = String)]
    pub hub: ShownAddress,
    /// Other hubs that the feed names.
    #[schema(value_type = Vec<String>)]
    pub others: Vec<ShownAddress>,
    /// The address under which the hub knows the feed.
    #[schema(value_type = String)]
    pub topic: ShownAddress,
    /// The end of the lease, if there is one.
    #[serde(rename = "lease_until")]
    pub until: Option<Time>,
    /// When the next request to the hub is due.
    #[serde(rename = "next_request")]
    pub next: Time,
    /// Consecutive changes that it did not push.
    #[serde(rename = "missed_in_a_row")]
    pub missed: u32,
    /// Until when it is not trusted to push every change.
    pub distrusted_until: Option<Time>,
    /// The number of pushes.
    pub pushes: u64,
    /// The time of the last push.
    pub last_push: Option<Time>,
    #[serde(flatten)]
    pub disbelieved: RejectedPushes,
}

impl HubNote {
    /// Builds the status without secrets; `secret`: whether the operator marked the feed's address as secret.
    pub fn new(report: &HubReport, now: Time, secret: Option<bool>) -> Self {
        let it = &report.subscription;
        let others = it.hubs.iter().filter(|hub| *hub != it.address());
        Self {
            state: it.state(now),
            words: subscriber::describe(it, now),
            hub: ShownAddress::new(it.address(), None),
            others: others.map(|hub| ShownAddress::new(hub, None)).collect(),
            topic: ShownAddress::new(&it.topic, secret),
            until: it.lease.filter(|_| it.is_held(now)).map(|lease| lease.until),
            next: it.next,
            missed: it.trust.missed,
            distrusted_until: it.trust.distrusted_until,
            pushes: it.pushes,
            last_push: it.last_push,
            disbelieved: report.disbelieved.clone(),
        }
    }
}
