//! Items in conflict, of which both the page and the data are made.

use super::{COMPARED, ITEMS_SHOWN, LOSERS_SHOWN};
use crate::AppState;
use crate::address::{Site, item_page};
use crate::items::{self, CompareBudget, Differences, FieldDifference};
use crate::plain;
use crate::problem::Problem;
use serde::{Serialize, Serializer};
use tidegate_core::model::{EndpointId, FeedName, Item, Markup, SyncId, Time, Version};
use tidegate_core::xml::address::percent_encoded;
use tidegate_judge::record::local;
use utoipa::ToSchema;

/// Items in conflict.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConflictList {
    pub(super) feed: FeedName,
    pub(super) count: usize,
    pub(super) conflicts: Vec<ItemInConflict>,
    /// The address of the items behind these.
    next: Option<String>,
    /// The last of these, where there are more behind it.
    #[serde(skip)]
    pub(super) last: Option<SyncId>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ItemInConflict {
    pub(super) sync_id: SyncId,
    published_id: String,
    page: String,
    /// What it is known by at this moment.
    pub(super) etag: String,
    noconflicts: Option<bool>,
    pub(super) winner: ConflictVersion,
    pub(super) count: usize,
    pub(super) conflicts: Vec<LosingVersion>,
    /// What a version that somebody writes begins with.
    #[serde(skip)]
    pub(super) begins: Option<Markup>,
}

/// A version with its bytes.
#[derive(Serialize, ToSchema)]
pub(super) struct ConflictVersion {
    pub(super) updates: u32,
    sequence: u32,
    #[schema(value_type = Option<String>)]
    pub(super) when: Option<Time>,
    #[schema(value_type = Option<String>)]
    pub(super) by: Option<EndpointId>,
    pub(super) deleted: bool,
    pub(super) title: String,
    pub(super) link: Option<String>,
    pub(super) author: Option<String>,
    published: Option<Time>,
    updated: Option<Time>,
    format: &'static str,
    #[serde(serialize_with = "text_alone")]
    #[schema(value_type = String)]
    pub(super) markup: Markup,
}

#[derive(Serialize, ToSchema)]
pub(super) struct LosingVersion {
    #[serde(flatten)]
    pub(super) version: ConflictVersion,
    /// The number by which it is kept.
    pub(super) n: usize,
    /// What differs from the winner, where that can be told.
    #[serde(serialize_with = "fields_alone")]
    #[schema(value_type = Option<Vec<FieldDifference>>)]
    pub(super) differences: Option<Differences>,
    /// Whether it was compared: one answer compares so many.
    #[serde(skip)]
    pub(super) is_compared: bool,
}

fn text_alone<S: Serializer>(markup: &Markup, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&markup.xml)
}

fn fields_alone<S: Serializer>(told: &Option<Differences>, to: S) -> Result<S::Ok, S::Error> {
    told.as_ref().map(|told| &told.fields).serialize(to)
}

impl ConflictList {
    /// The items of a feed in conflict, those behind `after` where it is said.
    pub(super) async fn gather(
        room: &AppState,
        site: &Site,
        feed: &FeedName,
        after: Option<&SyncId>,
    ) -> Result<Self, Problem> {
        let all = room.store.contested(feed).await?;
        let behind = all.iter().filter(|id| after.is_none_or(|after| *id > after));
        let ids: Vec<&SyncId> = behind.take(ITEMS_SHOWN + 1).collect();
        let (mut compared, mut budget) = (0, CompareBudget::whole());
        let mut conflicts = Vec::new();
        for id in ids.iter().take(ITEMS_SHOWN) {
            let Some(item) = room.store.item(feed, id).await? else { continue };
            if item.shared.conflicts.is_empty() {
                continue;
            }
            let mut losers = Vec::new();
            for (n, loser) in item.shared.conflicts.iter().take(LOSERS_SHOWN).enumerate() {
                let is_compared = compared < COMPARED;
                compared += 1;
                let differences = match is_compared {
                    true => compare(room, &item, loser, &mut budget).await?,
                    false => None,
                };
                losers.push(LosingVersion { version: loser.into(), n, differences, is_compared });
            }
            conflicts.push(ItemInConflict::new(site.at(&item_page(feed, id)), &item, losers));
        }
        let last = ids.get(ITEMS_SHOWN.saturating_sub(1)).filter(|_| ids.len() > ITEMS_SHOWN);
        let last = last.map(|id| (*id).clone());
        let next = last.as_ref().map(|id| {
            site.at(&format!("/feeds/{feed}/conflicts?after={}", percent_encoded(id.as_str())))
        });
        Ok(Self { feed: feed.clone(), count: all.len(), conflicts, next, last })
    }
}

/// What differs between the winner of an item and another version. What a deletion says is not its bytes, which only
/// stand in for the item.
async fn compare(
    room: &AppState,
    item: &Item,
    loser: &Version<Markup>,
    budget: &mut CompareBudget,
) -> Result<Option<Differences>, Problem> {
    let winner = &item.shared.winner;
    if loser.deleted != winner.deleted {
        return Ok(None);
    }
    let mut told = items::compared(room, (winner.data.clone(), loser.data.clone()), budget).await?;
    if let Some(told) = &mut told {
        // An item keeps its own id whatever is decided.
        told.fields.retain(|field| field.name != "Id");
    }
    Ok(told)
}

impl ItemInConflict {
    fn new(page: String, item: &Item, conflicts: Vec<LosingVersion>) -> Self {
        let winner = &item.shared.winner;
        Self {
            sync_id: winner.id.clone(),
            published_id: item.published_id.clone(),
            page,
            etag: local::tag(&item.shared),
            noconflicts: winner.noconflicts,
            winner: winner.into(),
            count: item.shared.conflicts.len(),
            conflicts,
            begins: plain::begins(item).map(|version| version.data.clone()),
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
            markup: version.data.clone(),
        }
    }
}
