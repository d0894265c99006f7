//! What is told of subscriptions to hubs of upstreams: nothing that only the two know.

use serde::Serialize;
use tidegate_core::model::{HubSubscription, ShownAddress, Time};
use tidegate_core::websub::subscriber;
use utoipa::ToSchema;

/// How the subscription to a hub stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubReport {
    pub subscription: HubSubscription,
    /// Pushes that were not believed, since the start.
    pub disbelieved: RejectedPushes,
}

/// Pushes that were not believed since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct RejectedPushes {
    #[serde(rename = "disbelieved_pushes")]
    pub count: u64,
    #[serde(rename = "last_disbelieved")]
    pub last: Option<RejectedPush>,
}

/// A push that was not believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RejectedPush {
    /// When it came.
    pub at: Time,
    /// Why it was not believed.
    pub why: String,
}

/// A subscription to the hub of an upstream, without what only the two know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = UpstreamHub)]
pub struct HubNote {
    /// The word for how it stands.
    pub state: &'static str,
    /// How it stands and why, in words.
    pub words: String,
    /// The address of the hub.
    #[schema(value_type = String)]
    pub hub: ShownAddress,
    /// Further hubs that the feed names.
    #[schema(value_type = Vec<String>)]
    pub others: Vec<ShownAddress>,
    /// The address under which the hub knows the feed.
    #[schema(value_type = String)]
    pub topic: ShownAddress,
    /// Until when it delivers, where it does.
    #[serde(rename = "lease_until")]
    pub until: Option<Time>,
    /// When the next request to it is due.
    #[serde(rename = "next_request")]
    pub next: Time,
    /// Changes in a row that it did not tell of.
    #[serde(rename = "missed_in_a_row")]
    pub missed: u32,
    /// Until when it is not relied on for that.
    pub distrusted_until: Option<Time>,
    /// How often it pushed something.
    pub pushes: u64,
    /// When it last did.
    pub last_push: Option<Time>,
    #[serde(flatten)]
    pub disbelieved: RejectedPushes,
}

impl HubNote {
    /// What may be told of a subscription; `secret` is what the operator says of the feed's address.
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
