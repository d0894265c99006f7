//! The page of an item: its versions, each with its reason, its bytes, and what differs between two
//! of them. HTML for people, JSON when asked for.

mod asked;
mod bytes;
mod compare;
mod described;
mod difference;
mod page;
mod words;

pub(super) use self::compare::Differences;
pub(super) use self::described::fields as told;
pub(super) use self::page::fields as differing;

use self::asked::{Asked, Which};
use super::feeds::unreadable;
use super::negotiate::wants_json;
use super::problem::Problem;
use super::{Room, Shared, html};
use crate::model::{Count, FeedName, Item, Known, Markup, Standing, SyncId, Time};
use crate::store::VersionNote;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::sync::Arc;

/// How many versions are shown, newest first.
const VERSIONS_SHOWN: usize = 200;
/// How many pairs of versions are compared at once.
pub(super) const COMPARISONS_AT_ONCE: usize = 2;

/// An item with everything that is said of it.
struct Subject {
    feed: FeedName,
    item: Item,
    known: Known,
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
        let id = url::form_urlencoded::byte_serialize(self.known.id.as_str().as_bytes());
        format!("/feeds/{}/items/{}", self.feed, id.collect::<String>())
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

/// `GET /feeds/NAME/items/SYNC_ID`, with `?version=N` for bytes and `?diff=A..B` for differences.
pub(super) async fn item(
    State(room): State<Shared>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = room.directory.served(&name).await?;
    let asked = Asked::read(query.as_deref().unwrap_or_default())?;
    let subject = subject(&room, &record.name, &id).await?;
    match asked {
        Asked::Page if wants_json(&headers) => {
            Ok(as_json(described::item(&room.site.at(""), &subject)))
        }
        Asked::Page => Ok(html::page(&html::text(subject.title()), &page::item(&subject))),
        Asked::Version(which) => {
            let (note, markup) = bytes_of(&room, &subject, which).await?;
            Ok(bytes::answer(&subject, note.as_ref(), &markup, &headers))
        }
        Asked::Difference(old, new) => {
            let difference = difference::of(&room, &subject, old, new).await?;
            if wants_json(&headers) {
                Ok(as_json(described::difference(&subject, &difference)))
            } else {
                let title = html::text(subject.title());
                Ok(html::page(&title, &page::difference(&subject, &difference)))
            }
        }
    }
}

async fn subject(room: &Room, feed: &FeedName, id: &str) -> Result<Subject, Problem> {
    let feed = feed.clone();
    let unknown = || Problem::not_found(format!("the feed {feed} has no item of that sync id"));
    let id = SyncId::new(id).map_err(|_| unknown())?;
    let item = room.store.item(&feed, &id).await?.ok_or_else(unknown)?;
    let known = room.store.known(&feed, &id).await?.ok_or_else(unknown)?;
    let versions = room.store.versions(&feed, &id, VERSIONS_SHOWN).await?;
    Ok(Subject { feed, item, known, versions })
}

/// An item of a feed with its versions, as the administration shows it, and its ledger entry.
pub(super) async fn described(
    room: &Room,
    feed: &FeedName,
    id: &str,
) -> Result<(Value, Known), Problem> {
    let subject = subject(room, feed, id).await?;
    Ok((described::item(&room.site.at(""), &subject), subject.known))
}

/// The bytes of a version, or the newest ones.
async fn bytes_of(
    room: &Room,
    subject: &Subject,
    which: Which,
) -> Result<(Option<VersionNote>, Markup), Problem> {
    if subject.known.is_redacted() {
        let said = "the text of this item was removed, that of all its versions with it";
        return Err(Problem::new(StatusCode::GONE, said));
    }
    let updates = match which {
        Which::Newest => return Ok((None, subject.item.shared.winner.data.clone())),
        Which::Number(updates) => updates,
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

/// What differs between two versions, where both can be read.
pub(super) async fn compared(
    room: &Room,
    old: Markup,
    new: Markup,
) -> Result<Option<Differences>, Problem> {
    aside(room, move || compare::versions(&old, &new)).await
}

fn as_json(value: Value) -> Response {
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (headers, Json(value)).into_response()
}

/// The word for what an item is to its upstream, and since when.
fn standing(standing: &Standing) -> (&'static str, Option<Time>) {
    match standing {
        Standing::Current => ("current", None),
        Standing::Retired { since } => ("retired", Some(*since)),
        Standing::Deleted { since } => ("deleted", Some(*since)),
        Standing::Redacted { since } => ("redacted", Some(*since)),
        Standing::Discarded { since } => ("discarded", Some(*since)),
    }
}

/// Runs a comparison where it may take its time, a few at once.
async fn aside<T: Send + 'static>(
    room: &Room,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let failed = || Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the comparison broke off");
    let turn = Arc::clone(&room.comparisons).acquire_owned().await.map_err(|_| failed())?;
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    done.await.map_err(|_| failed())
}
