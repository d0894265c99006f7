//! What tests of several rules stand on.

#![allow(clippy::unwrap_used)]

use crate::archive;
use crate::record::{ITEMS_KEPT, Observation, TOMBSTONES_KEPT};
use std::time::Duration;
use tidegate_core::model::{
    EndpointId, FeedDocument, FeedName, FeedOptions, Snapshot, Time, VERSIONS_PER_DAY,
};
use tidegate_format::parse::{self, Limits};

pub fn rss(items: &str) -> String {
    format!("<rss version='2.0'><channel><title>T</title>{items}</channel></rss>")
}

pub fn read(text: &str) -> FeedDocument<'_> {
    parse::document(text, None, &Limits::default()).unwrap()
}

/// An observation with the limits that feeds usually have.
pub fn observation<'a>(
    feed: &'a FeedName,
    endpoint: &'a EndpointId,
    options: &'a FeedOptions,
    snapshot: Option<&'a Snapshot>,
    now: Time,
) -> Observation<'a> {
    Observation {
        feed,
        url: "",
        endpoint,
        options,
        snapshot,
        now,
        running_now: now,
        tombstones: TOMBSTONES_KEPT,
        window: Duration::from_secs(30 * 86_400),
        versions_per_day: VERSIONS_PER_DAY,
        items: ITEMS_KEPT,
        archives: archive::Policy::default(),
    }
}

/// The same of a feed of which the operator says nothing.
pub fn with_observation<T>(
    snapshot: &Snapshot,
    now: Time,
    look: impl FnOnce(&Observation<'_>) -> T,
) -> T {
    let (feed, endpoint) = (FeedName::new("news").unwrap(), EndpointId::own("gate").unwrap());
    look(&observation(&feed, &endpoint, &FeedOptions::default(), Some(snapshot), now))
}
