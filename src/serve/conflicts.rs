//! `/feeds/NAME/conflicts`: versions that are in conflict, side by side with their winners, and
//! what can be done about them (SSE 1.0 section 3.4). HTML for people, JSON when asked for.

mod page;

pub(super) use page::{excerpt, first_living_version, is_outline, resolve};

use super::items::{self, CompareBudget, Differences, FieldDifference};
use super::{
    AppState, Client, DocumentKey, DocumentKind, FeedCall, Gone, NotFound, Problem, Query,
    ReadQuery, Reply, ServedFeed, SharedState, Site, TypedQuery, Viewer, Work, WorkKind,
    WorkRequest, answers, html, item_page, unkept,
};
use axum::body::Bytes;
use maud::{PreEscaped, html};
use serde::{Serialize, Serializer};
use std::sync::Arc;
use tidegate_core::model::{EndpointId, FeedName, Item, Markup, SyncId, Time, Version};
use tidegate_core::xml::address::percent_encoded;
use tidegate_judge::record::local;
use tidegate_status::schema;
use utoipa::ToSchema;

/// How many items in conflict one answer shows.
const ITEMS_SHOWN: usize = 20;
/// How many losing versions of an item one answer shows.
const LOSERS_SHOWN: usize = 12;
/// How many losing versions one answer compares with their winners.
const COMPARED: usize = 40;
/// In which form conflicts are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ConflictsForm {
    is_json: bool,
    /// Whether who looks need not send the token.
    is_signed_in: bool,
    /// Whether it can be decided from here.
    may_decide: bool,
}

impl ConflictsForm {
    const JSON: Self = Self { is_json: true, is_signed_in: false, may_decide: false };
}

/// Unresolved conflicts: a page, or data with `Accept: application/json`.
#[utoipa::path(get, path = "/feeds/{name}/conflicts", operation_id = "readConflicts",
    params(("after" = Option<schema::SyncId>, Query, description = "Only items behind this one.")),
    responses(
        (status = 200, description = "The conflicts.", content(
            (ConflictList = "application/json"),
            (String = "text/html"),
        )),
        NotFound, Gone,
    ))]
pub(super) async fn show(
    viewer: Viewer,
    record: ServedFeed,
    TypedQuery(query): TypedQuery<ConflictsQuery>,
) -> Reply {
    let form = match viewer.wants_json {
        true => ConflictsForm::JSON,
        false => {
            let (is_signed_in, may_decide) = (viewer.is_signed_in, viewer.audience.may_sign_in);
            ConflictsForm { is_json: false, is_signed_in, may_decide }
        }
    };
    let of = (&record.name, &record.site);
    let answer = load_conflict_list(&viewer.app, viewer.client, of, (query.after, form)).await?;
    if form.is_json {
        return Ok(html::data(&viewer.headers, answer));
    }
    // It was written as text here.
    let list = PreEscaped(String::from_utf8_lossy(&answer));
    let content = html! { (html::trail(&record.name, None, "Conflicts")) (list) };
    Ok(viewer.form_page(&format!("Conflicts in {}", record.name), &content))
}

/// Which items in conflict are asked for.
pub(super) struct ConflictsQuery {
    /// Only those behind this one, in the order of sync ids.
    after: Option<SyncId>,
}

impl ReadQuery for ConflictsQuery {
    fn read(query: &str) -> Result<Self, Problem> {
        let read = |id: &str| SyncId::new(id).ok();
        Ok(Self { after: Query::read(query)?.parse("after", "after is a sync id", read)? })
    }
}

/// Lists items with unresolved conflicts.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/conflicts", operation_id = "listConflicts",
    params(("after" = Option<schema::SyncId>, Query, description = "Only items behind this one.")),
    responses((status = 200, description = "The conflicts.", body = ConflictList), NotFound))]
pub(super) async fn list(
    FeedCall { app, client, name: feed }: FeedCall,
    TypedQuery(query): TypedQuery<ConflictsQuery>,
) -> Reply {
    app.directory.check_known(&feed).await?;
    let of = (&feed, &app.site);
    let listed = load_conflict_list(&app, client, of, (query.after, ConflictsForm::JSON)).await?;
    Ok(unkept("application/json", listed))
}

/// What is told of a feed's conflicts, made once for each revision and all who ask.
async fn load_conflict_list(
    app: &SharedState,
    client: Client,
    (feed, site): (&FeedName, &Arc<Site>),
    (after, form): (Option<SyncId>, ConflictsForm),
) -> Result<Bytes, Problem> {
    let state = app.store.state(feed).await?;
    let revision = state.as_ref().map(|state| state.revision);
    let shown = u64::from(state.map_or(0, |state| state.contested))
        .min(u64::try_from(ITEMS_SHOWN).unwrap_or(u64::MAX));
    let work = Work::new(feed, WorkKind::Conflicts);
    let work_request =
        WorkRequest { records_cost: true, ..app.admission.request(client, work, shown) };
    let kind = DocumentKind::Conflicts { after: after.clone(), form };
    let key = DocumentKey { audience: site.key(), feed: Some(feed.clone()), kind };
    let make = || {
        let (app, feed, site) = (Arc::clone(app), feed.clone(), Arc::clone(site));
        async move {
            let list = ConflictList::gather(&app, &site, &feed, after.as_ref()).await?;
            Ok::<Bytes, Problem>(match form.is_json {
                true => answers::text(&list),
                false => page::conflicts(&list, form).into_string().into(),
            })
        }
    };
    Ok(app.documents.get(key, revision, work_request, make).await?.text())
}

/// Items in conflict.
#[derive(Serialize, ToSchema)]
pub(super) struct ConflictList {
    pub(super) feed: FeedName,
    pub(super) count: usize,
    conflicts: Vec<ItemInConflict>,
    /// The address of the items behind these.
    next: Option<String>,
    /// The last of these, where there are more behind it.
    #[serde(skip)]
    pub(super) last: Option<SyncId>,
}

#[derive(Serialize, ToSchema)]
struct ItemInConflict {
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
struct ConflictVersion {
    pub(super) updates: u32,
    sequence: u32,
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
struct LosingVersion {
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
        app: &AppState,
        site: &Site,
        feed: &FeedName,
        after: Option<&SyncId>,
    ) -> Result<Self, Problem> {
        let all = app.store.contested(feed).await?;
        let behind = all.iter().filter(|id| after.is_none_or(|after| *id > after));
        let ids: Vec<&SyncId> = behind.take(ITEMS_SHOWN + 1).collect();
        let (mut compared, mut budget) = (0, CompareBudget::WHOLE);
        let mut conflicts = Vec::new();
        for id in ids.iter().take(ITEMS_SHOWN) {
            let Some(item) = app.store.item(feed, id).await? else { continue };
            if item.shared.conflicts.is_empty() {
                continue;
            }
            let mut losers = Vec::new();
            for (n, loser) in item.shared.conflicts.iter().take(LOSERS_SHOWN).enumerate() {
                let is_compared = compared < COMPARED;
                compared += 1;
                let differences = match is_compared {
                    true => compare(app, &item, loser, &mut budget).await?,
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

/// What differs between the winner of an item and another version; `None` if one of them is a deletion, whose bytes
/// only stand in for the item.
async fn compare(
    app: &AppState,
    item: &Item,
    loser: &Version<Markup>,
    budget: &mut CompareBudget,
) -> Result<Option<Differences>, Problem> {
    let winner = &item.shared.winner;
    if loser.deleted != winner.deleted {
        return Ok(None);
    }
    let mut told = items::compared(app, (winner.data.clone(), loser.data.clone()), budget).await?;
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
            begins: first_living_version(item).map(|version| version.data.clone()),
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
