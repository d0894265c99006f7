//! Conflicts as data.

use super::{Contest, Contests, LOSERS_SHOWN};
use crate::address::item_page;
use crate::items::{self, DifferentField};
use serde::Serialize;
use tidegate_core::model::{EndpointId, FeedName, Markup, SyncId, Time, Version};
use tidegate_core::xml::address::percent_encoded;
use tidegate_status::schema;
use utoipa::ToSchema;

/// Items in conflict.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConflictList {
    #[schema(value_type = schema::FeedName)]
    feed: FeedName,
    count: usize,
    conflicts: Vec<ItemInConflict>,
    /// The address of the items behind these.
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct ItemInConflict {
    #[schema(value_type = schema::SyncId)]
    sync_id: SyncId,
    published_id: String,
    page: String,
    etag: String,
    noconflicts: Option<bool>,
    winner: ConflictVersion,
    count: usize,
    conflicts: Vec<LosingVersion>,
}

/// A version with its bytes.
#[derive(Serialize, ToSchema)]
struct ConflictVersion {
    updates: u32,
    sequence: u32,
    #[schema(value_type = Option<String>)]
    when: Option<Time>,
    #[schema(value_type = Option<String>)]
    by: Option<EndpointId>,
    deleted: bool,
    title: String,
    link: Option<String>,
    author: Option<String>,
    #[schema(value_type = Option<schema::Time>)]
    published: Option<Time>,
    #[schema(value_type = Option<schema::Time>)]
    updated: Option<Time>,
    format: &'static str,
    markup: String,
}

#[derive(Serialize, ToSchema)]
struct LosingVersion {
    #[serde(flatten)]
    version: ConflictVersion,
    /// The number by which it is kept.
    n: usize,
    /// What differs from the winner, where that can be told.
    differences: Option<Vec<DifferentField>>,
}

impl ConflictList {
    /// Items in conflict; `base`: the address of this gateway.
    pub(super) fn new(base: &str, contests: &Contests) -> Self {
        let feed = &contests.feed;
        let item = |contest| ItemInConflict::new(base, feed, contest);
        let address = |id: &SyncId| {
            format!("{base}/feeds/{feed}/conflicts?after={}", percent_encoded(id.as_str()))
        };
        Self {
            feed: feed.clone(),
            count: contests.all,
            conflicts: contests.shown.iter().map(item).collect(),
            next: contests.more.as_ref().map(address),
        }
    }
}

impl ItemInConflict {
    fn new(base: &str, feed: &FeedName, contest: &Contest) -> Self {
        let shared = &contest.item.shared;
        let losers = shared.conflicts.iter().take(LOSERS_SHOWN).enumerate().map(|(n, loser)| {
            let differences = contest.differences.get(n).and_then(Option::as_ref);
            LosingVersion { version: loser.into(), n, differences: differences.map(items::told) }
        });
        let id = &shared.winner.id;
        Self {
            sync_id: id.clone(),
            published_id: contest.item.published_id.clone(),
            page: format!("{base}{}", item_page(feed, id)),
            etag: contest.tag.clone(),
            noconflicts: shared.winner.noconflicts,
            winner: (&shared.winner).into(),
            count: shared.conflicts.len(),
            conflicts: losers.collect(),
        }
    }
}

impl From<&Version<Markup>> for ConflictVersion {
    fn from(version: &Version<Markup>) -> Self {
        let topmost = version.history.topmost();
        let card = &version.data.card;
        Self {
            updates: version.updates.value(),
            sequence: topmost.sequence.value(),
            when: topmost.stamp.when(),
            by: topmost.stamp.by().cloned(),
            deleted: version.deleted,
            title: card.title.clone(),
            link: card.link.clone(),
            author: card.author.clone(),
            published: card.published,
            updated: card.updated,
            format: version.data.format.name(),
            markup: version.data.xml.to_string(),
        }
    }
}
