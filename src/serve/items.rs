//! The page of an item: its versions, each with its reason, its bytes, and what differs between two
//! of them. HTML for people, JSON when asked for.

mod bytes;
mod compare;
mod decide;
mod described;
mod difference;
mod evicted;
mod page;
mod query;
mod text_diff;

pub(super) use self::compare::{Differences, FieldDifference};
pub(super) use self::decide::act;
pub(super) use self::described::ItemDetail;
pub(super) use self::page::{ItemContent, fields as differing};
pub(super) use self::query::ItemQuery;
pub(super) use self::text_diff::CompareBudget;

use self::described::{ItemDifference, ItemFacts};
use self::query::VersionChoice;
use super::address::{Site, item_page};
use super::admission::{Work, WorkKind};
use super::documents::{DocumentKey, DocumentKind, ServedDocument};
use super::extract::{ServedItem, TypedQuery, Viewer, unknown_item};
use super::openapi::{Gone, NotFound, Unchanged};
use super::problem::{Problem, RETRY_SOON};
use super::{AppState, answers, html};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Count, FeedName, Item, ItemStatus, LedgerEntry, Markup, Revision, SyncId, Time,
};
use tidegate_judge::{PendingAbsence, diff};
use tidegate_store::{StoreError, VersionNote};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How many versions are shown, newest first.
const VERSIONS_SHOWN: usize = 200;
/// How much memory all comparisons of versions may take at once, in KiB.
pub(super) const COMPARISONS_KIB: usize = 192 * 1024;
/// How long a comparison waits for it.
const TURN_WAIT: Duration = Duration::from_secs(15);

/// How many times an item is in memory while two of its versions are compared.
const TIMES: u64 = 8;

/// An item with everything that is said of it, without its bytes.
struct Subject {
    feed: FeedName,
    item: Item,
    known: LedgerEntry,
    versions: Vec<VersionNote>,
}

impl Subject {
    /// What it is called.
    fn title(&self) -> &str {
        let title = self.item.shared.winner.data.card.title.as_str();
        match (title.is_empty(), self.known.is_redacted()) {
            (false, _) => title,
            (true, false) => self.known.id.as_str(),
            (true, true) => "An item whose text was removed",
        }
    }

    /// The address of the page, without query.
    fn address(&self) -> String {
        item_page(&self.feed, &self.known.id)
    }

    /// How many bytes a version has, as far as it was noted; else as many as the newest.
    fn size(&self, which: VersionChoice) -> u64 {
        let noted = match which {
            VersionChoice::Newest => None,
            VersionChoice::Number(updates) => {
                self.versions.iter().find(|note| note.updates == updates)
            }
        };
        noted.map(|note| note.size).filter(|size| *size > 0).unwrap_or(self.known.bytes)
    }

    /// Whether a version's own bytes can be had.
    fn has_bytes(&self, note: &VersionNote) -> bool {
        !note.deleted && !self.known.is_redacted()
    }

    /// The newest kept version before this one that has bytes.
    fn before(&self, note: &VersionNote) -> Option<&VersionNote> {
        let mut older = self.versions.iter().filter(|other| other.updates < note.updates);
        older.find(|other| self.has_bytes(other))
    }
}

/// An item with its versions: a page, data with `Accept: application/json`, the bytes of a version, or a difference.
#[utoipa::path(get, path = "/feeds/{name}/items/{id}", operation_id = "readItem",
    params(
        ("version" = Option<String>, Query, description = "The bytes of this version.",
            pattern = "^([1-9][0-9]{0,8}|newest)$"),
        ("diff" = Option<String>, Query, description = "What differs between two versions, the older first.",
            pattern = r"^[1-9][0-9]{0,8}\.\.([1-9][0-9]{0,8}|newest)$"),
    ),
    responses(
        (status = 200, description = "The item, a version or a difference.", content(
            (serde_json::Value = "application/json"),
            (String = "text/html"),
            (String = "application/atom+xml"),
            (String = "application/rss+xml"),
            (String = "application/xml"),
            (serde_json::Value = "application/feed+json"),
            (String = "text/x-opml"),
            (String = "text/plain"),
        )),
        Unchanged,
        NotFound,
        Gone,
    ))]
pub(super) async fn item(
    viewer: Viewer,
    ServedItem { feed: record, id }: ServedItem,
    TypedQuery(asked): TypedQuery<ItemQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Viewer { room, client, .. } = &viewer;
    let revision = revision(room, &record.name).await?;
    // What an item takes is known once it was read.
    let work = Work::new(&record.name, WorkKind::Item(id.clone()));
    let ask = room.admission.request(*client, work, 1);
    let is_json = viewer.wants_json;
    let kind = DocumentKind::Item { id: id.clone(), query: asked, is_json };
    let key = DocumentKey {
        audience: record.site.key(),
        feed: record.name.clone(),
        revision: Some(revision),
        kind,
    };
    let make = || {
        let (room, site) = (Arc::clone(room), Arc::clone(&record.site));
        let (feed, id) = (record.name.clone(), id.clone());
        async move { made(&room, &site, (&feed, &id), (asked, is_json)).await }
    };
    let document = room.documents.get(key, ask, make).await?;
    let content = match &*document {
        ServedDocument::Item(content) => content,
        ServedDocument::Encoded(rendition) => return Ok(bytes::answer(rendition, &headers)),
        page if !is_json => return Ok(html::whole_page(page.text())),
        data => return Ok(html::data(data.text())),
    };
    let acting = decide::part(&viewer, &record, &id).await?;
    Ok(viewer.page(&content.title, &content.with(&record.name, &acting)))
}

/// The revision of a feed that has items.
async fn revision(room: &AppState, feed: &FeedName) -> Result<Revision, Problem> {
    let state = room.store.state(feed).await?;
    state.map(|state| state.revision).ok_or_else(|| unknown_item(feed))
}

/// Makes what an address answers.
async fn made(
    room: &AppState,
    site: &Site,
    item: (&FeedName, &SyncId),
    (asked, is_json): (ItemQuery, bool),
) -> Result<ServedDocument, Problem> {
    let subject = subject(room, site, item).await?;
    Ok(match asked {
        ItemQuery::Page if is_json => {
            let facts = ItemFacts::new(&site.at(""), &subject);
            answers::text(&facts.into_answer(&subject.known)).into()
        }
        ItemQuery::Page => {
            let pending = pending(room, &subject).await;
            ServedDocument::Item(page::item(&subject, pending.as_ref()))
        }
        ItemQuery::Version(which) => {
            let (note, markup) = bytes_of(room, &subject, which).await?;
            bytes::document(&subject, note.as_ref(), markup).into()
        }
        ItemQuery::Difference(old, new) => {
            let difference = difference::compare_versions(room, &subject, old, new).await?;
            if is_json {
                answers::text(&ItemDifference::new(&subject, &difference)).into()
            } else {
                let content = page::difference(&subject, &difference);
                html::document(&html::text(subject.title()), &content).into()
            }
        }
    })
}

/// What is to come of an item that is missing.
async fn pending(room: &AppState, subject: &Subject) -> Option<PendingAbsence> {
    subject.known.pending_absence()?;
    let status = room.operator.status(&subject.feed).await.ok()?;
    PendingAbsence::new(&subject.known, &status.options, status.polling.same)
}

async fn subject(
    room: &AppState,
    site: &Site,
    (feed, id): (&FeedName, &SyncId),
) -> Result<Subject, Problem> {
    let Some(mut item) = room.store.item(feed, id).await? else {
        return Err(evicted::missing(room, site, (feed, id)).await);
    };
    let known = room.store.known(feed, id).await?.ok_or_else(|| unknown_item(feed))?;
    let versions = room.store.versions(feed, id, VERSIONS_SHOWN).await?;
    // What is said of an item needs none of its bytes, which may be many.
    let shared = &mut item.shared;
    let mut bytes = 0_u64;
    for version in std::iter::once(&mut shared.winner).chain(&mut shared.conflicts) {
        let text = std::mem::take(&mut version.data.xml);
        bytes = bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
    }
    let work = Work::new(feed, WorkKind::Item(id.clone()));
    room.admission.took(work, bytes.saturating_mul(TIMES));
    Ok(Subject { feed: feed.clone(), item, known, versions })
}

/// An item of a feed with its versions, as the administration shows it, and its ledger entry.
pub(super) async fn detail(
    room: &AppState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<(ItemFacts, LedgerEntry), Problem> {
    let subject = subject(room, &room.site, (feed, id)).await?;
    Ok((ItemFacts::new(&room.site.at(""), &subject), subject.known))
}

/// The bytes of a version, or the newest ones.
async fn bytes_of(
    room: &AppState,
    subject: &Subject,
    which: VersionChoice,
) -> Result<(Option<VersionNote>, Markup), Problem> {
    if subject.known.is_redacted() {
        let said = "the text of this item was removed, that of all its versions with it";
        return Err(Problem::new(StatusCode::GONE, said));
    }
    let updates = match which {
        VersionChoice::Newest => {
            let item = room.store.item(&subject.feed, &subject.known.id).await?;
            let item = item.ok_or_else(|| unknown_item(&subject.feed))?;
            return Ok((None, item.shared.winner.data));
        }
        VersionChoice::Number(updates) => updates,
    };
    let version = room.store.version(&subject.feed, &subject.known.id, updates).await?;
    let version = version.ok_or_else(|| not_kept(subject, updates))?;
    match version.markup {
        Some(markup) => Ok((Some(version.note), markup)),
        None => Err(Problem::not_found(format!(
            "version {} is a tombstone, which has no bytes of its own",
            updates.value()
        ))),
    }
}

fn not_kept(subject: &Subject, updates: Count) -> Problem {
    let kept = subject.versions.iter().map(|note| note.updates.value());
    let (first, last) = (kept.clone().min(), kept.max());
    Problem::not_found(match (first, last) {
        (Some(first), Some(last)) => format!(
            "version {} of this item is not kept; those from {first} to {last} are",
            updates.value()
        ),
        _ => format!("version {} of this item is not kept", updates.value()),
    })
}

/// What differs between two versions, where both can be read, within what is left of a budget.
pub(super) async fn compared(
    room: &AppState,
    (old, new): (Markup, Markup),
    budget: &mut CompareBudget,
) -> Result<Option<Differences>, Problem> {
    let bytes = |markup: &Markup| u64::try_from(markup.xml.len()).unwrap_or(u64::MAX);
    let turn = turn(room, compare::cost(bytes(&old), bytes(&new))).await?;
    let mut left = *budget;
    let compare = move || (compare::versions(&old, &new, &mut left), left);
    let (differences, left) = aside(turn, compare).await?;
    *budget = left;
    Ok(differences)
}

/// What an item without a title is called: by the beginning of its text, where it has any.
pub(super) async fn stand_in_title(
    room: &AppState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<String, StoreError> {
    let item = room.store.item(feed, id).await?;
    let title = item.map(|item| diff::stand_in_title(&item.shared.winner.data));
    Ok(title.unwrap_or_default())
}

/// The same for people: an item that left the publisher's document is missing until that is decided about.
pub(super) fn shown_standing(known: &LedgerEntry) -> (&'static str, Option<Time>) {
    match known.pending_absence() {
        Some(absence) => ("missing", Some(absence.since)),
        None => standing(&known.standing),
    }
}

/// The word for what an item is to its upstream, and since when.
pub(super) fn standing(standing: &ItemStatus) -> (&'static str, Option<Time>) {
    match standing {
        ItemStatus::Current => ("current", None),
        ItemStatus::Retired { since } => ("retired", Some(*since)),
        ItemStatus::Deleted { since } => ("deleted", Some(*since)),
        ItemStatus::Redacted { since } => ("redacted", Some(*since)),
        ItemStatus::Discarded { since } => ("discarded", Some(*since)),
        ItemStatus::Evicted { since, .. } => ("evicted", Some(*since)),
    }
}

/// Waits until so many bytes of memory may be taken, at most [`TURN_WAIT`]; the whole budget is enough for anything.
async fn turn(room: &AppState, cost: u64) -> Result<OwnedSemaphorePermit, Problem> {
    let kib = usize::try_from(cost / 1024).unwrap_or(usize::MAX).clamp(1, COMPARISONS_KIB);
    let kib = u32::try_from(kib).unwrap_or(u32::MAX);
    let turn = Arc::clone(&room.comparisons).acquire_many_owned(kib);
    let busy =
        |_| Problem::later("too many versions are compared just now; ask again soon", RETRY_SOON);
    timeout(TURN_WAIT, turn).await.map_err(busy)?.map_err(|_| broken_off())
}

fn broken_off() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the comparison broke off")
}

/// Runs a comparison where it may take its time.
async fn aside<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await.map_err(|_| broken_off())
}
