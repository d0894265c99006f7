//! Changes as JSON.

use super::Position;
use crate::address::Site;
use serde::Serialize;
use tidegate_format::render::ViewKind;
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use tidegate_store::{ClosedEpoch, LoggedChange};
use utoipa::ToSchema;

describe! {
    /// What changed: `items`, or the `feed` as a whole and no version of an item (its title, say).
    ChangeKind: words(["items", "feed"]);
}

/// A change of a feed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Change)]
pub(super) struct ChangeLine {
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
    pub(super) fn new(site: &Site, announced: &LoggedChange) -> Self {
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
pub(super) struct ChangeEvent {
    epoch: u64,
    at: String,
    #[serde(flatten)]
    change: ChangeLine,
}

impl ChangeEvent {
    /// A change of an epoch.
    pub(super) fn new(site: &Site, sealed: &ClosedEpoch, announced: &LoggedChange) -> Self {
        let change = ChangeLine::new(site, announced);
        Self { epoch: sealed.epoch.0, at: sealed.at.to_string(), change }
    }
}

/// A line of `/changes`: an epoch, or where the log stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChangeLine)]
pub(crate) struct EpochLine {
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
    pub(super) fn new(sealed: &ClosedEpoch, id: Position, changes: Vec<ChangeLine>) -> Self {
        let at = Some(sealed.at.to_string());
        Self { epoch: sealed.epoch.0, id: id.to_string(), at, changes }
    }

    /// A place in the log, and no change.
    pub(super) fn place(id: Position) -> Self {
        Self { epoch: id.whole().0, id: id.to_string(), at: None, changes: Vec::new() }
    }

    /// Adds the line to a text.
    pub(super) fn push(&self, out: &mut String) {
        // Texts, numbers and lists of them always serialise.
        out.push_str(&serde_json::to_string(self).unwrap_or_default());
        out.push('\n');
    }
}
