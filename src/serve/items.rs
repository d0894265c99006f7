//! The page of an item: its versions, each with its reason. HTML for people, JSON when asked for.

use super::Shared;
use super::feeds::{NameInPath, unreadable};
use super::html::{self, text};
use super::json;
use super::negotiate::wants_json;
use super::problem::Problem;
use crate::model::{EndpointId, FeedName, Item, Standing, SyncId, Time};
use crate::store::VersionNote;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, header};
use maud::{Markup, html};
use serde_json::{Value, json};

/// How many versions are shown, newest first.
pub(super) const VERSIONS_SHOWN: usize = 200;

/// `GET /feeds/NAME/items/SYNC_ID`.
pub(super) async fn item(
    State(room): State<Shared>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let record = room.directory.served(&name).await?;
    let unknown = || Problem::not_found(format!("the feed {name} has no item of that sync id"));
    let id = SyncId::new(&id).map_err(|_| unknown())?;
    let item = room.store.item(&record.name, &id).await?.ok_or_else(unknown)?;
    let versions = room.store.versions(&record.name, &id, VERSIONS_SHOWN).await?;
    if wants_json(&headers) {
        Ok(as_json(described(&record.name, &item, &versions)))
    } else {
        let title = &item.shared.winner.data.card.title;
        let title = if title.is_empty() { id.as_str() } else { title };
        Ok(html::page(&text(title), &shown(&record.name, &item, &versions)))
    }
}

/// `GET /feeds/NAME/conflicts`: this version takes in nothing that could be in conflict.
pub(super) async fn conflicts(
    State(room): State<Shared>,
    name: NameInPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = name.map_err(unreadable)?.0;
    let record = room.directory.served(&name).await?;
    if wants_json(&headers) {
        return Ok(as_json(json!({ "feed": record.name.as_str(), "conflicts": [] })));
    }
    let content = html! { p { "No item of this feed is in conflict." } };
    Ok(html::page(&format!("Conflicts in {}", record.name), &content))
}

fn as_json(value: Value) -> Response {
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (headers, Json(value)).into_response()
}

fn standing(standing: &Standing) -> (&'static str, Option<Time>) {
    match standing {
        Standing::Current => ("current", None),
        Standing::Retired { since } => ("retired", Some(*since)),
        Standing::Deleted { since } => ("deleted", Some(*since)),
    }
}

/// The item with its versions, as JSON.
pub(super) fn described(feed: &FeedName, item: &Item, versions: &[VersionNote]) -> Value {
    let winner = &item.shared.winner;
    let (word, since) = standing(&item.standing);
    let history = winner.history.iter().map(|update| {
        json!({
            "sequence": update.sequence.value(),
            "when": json::time(update.stamp.when()),
            "by": update.stamp.by().map(EndpointId::as_str),
        })
    });
    json!({
        "feed": feed.as_str(),
        "sync_id": winner.id.as_str(),
        "published_id": item.published_id,
        "title": winner.data.card.title,
        "link": winner.data.card.link,
        "standing": word,
        "standing_since": json::time(since),
        "updates": winner.updates.value(),
        "deleted": winner.deleted,
        "tick": json::tick(Some(item.tick)),
        "history": history.collect::<Vec<_>>(),
        "conflicts": item.shared.conflicts.len(),
        "versions": versions.iter().map(json::version).collect::<Vec<_>>(),
    })
}

fn shown(feed: &FeedName, item: &Item, versions: &[VersionNote]) -> Markup {
    let winner = &item.shared.winner;
    let card = &winner.data.card;
    let (word, since) = standing(&item.standing);
    html! {
        p {
            "In " a href={ "/feeds/" (feed) } { (feed) } ": " (word)
            @if let Some(since) = since { " since " time { (since) } }
            ", " (winner.updates.value()) " updates."
        }
        p { (html::outward(card.link.as_deref(), card.link.as_deref().unwrap_or("no address"))) }
        p.quiet { "sync id " code { (winner.id) } ", published as " code { (text(&item.published_id)) } }
        h2 { "Versions" }
        div.wide { table {
            thead { tr {
                th { "Update" } th { "Tick" } th { "When, by" } th { "What" } th { "Title" }
                th { "Why" }
            } }
            tbody { @for note in versions { tr {
                td.number { (note.updates.value()) }
                td { time { (note.tick) } }
                td {
                    @if let Some(when) = note.update.stamp.when() { time { (when) } " " }
                    @if let Some(by) = note.update.stamp.by() { span.quiet { (by) } }
                }
                td { @if note.deleted { span.bad { "tombstone" } } @else { "live" } }
                td { (text(&note.title)) }
                td { (text(&note.reason)) }
            } } }
        } }
        @if versions.len() >= VERSIONS_SHOWN {
            p.quiet { "The newest " (VERSIONS_SHOWN) " versions are shown." }
        }
    }
}
