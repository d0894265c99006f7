//! Administration of items: what is known of them, and what an operator decides about those of a publisher.

use super::{EVENTS_SHOWN, to_the_end};
use crate::answers::{EventAnswer, True, answer, optional};
use crate::client::Client;
use crate::conditional::{add, unkept};
use crate::extract::{FeedInPath, ItemInPath, JsonObject, TypedQuery};
use crate::item_list::{ItemList, ItemListQuery};
use crate::items::ItemDetail;
use crate::openapi::{BadRequest, Conflict, NotFound};
use crate::operator::{OperatorError, Redacted};
use crate::problem::Problem;
use crate::{SharedState, item_list, items};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{FeedName, SyncId, Tick};
use tidegate_judge::PendingAbsence;
use tidegate_status::describe;
use tidegate_status::schema::{text, words};
use tidegate_store::EVENTS_KEPT;
use utoipa::ToSchema;

/// The longest reason for a redaction, in bytes.
pub(crate) const REASON_LIMIT: usize = 500;

/// What a redaction does not reach by itself.
pub(crate) const REDACTION_LEAVES: &str = "what is served and kept has the text no more; its old bytes stay in the \
     data folder until the gateway is stopped and `tidegate compact` was run, and in backups, exports and \
     what readers fetched";

/// Lists items, the newest first, 50 a page.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/items", operation_id = "listItems", params(ItemListQuery), responses(
    (status = 200, description = "A page of items; the last where the page is behind it.", body = ItemList),
    BadRequest,
    NotFound,
))]
pub(crate) async fn list(
    State(room): State<SharedState>,
    client: Client,
    FeedInPath(name): FeedInPath,
    TypedQuery(query): TypedQuery<ItemListQuery>,
) -> Result<Response, Problem> {
    if !room.directory.listing().await?.contains_key(&name) {
        return Err(OperatorError::UnknownFeed(name).into());
    }
    let listed = item_list::answered(&room, client, &name, (query, true)).await?;
    Ok(unkept("application/json", Bytes::clone(&listed)))
}

/// All that is known of an item.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/items/{id}", operation_id = "showItem", responses(
    (status = 200, description = "The item.", body = ItemDetail, headers(("ETag", description = "What `If-Match` of a change says."))),
    NotFound,
))]
pub(crate) async fn show(
    State(room): State<SharedState>,
    ItemInPath(name, id): ItemInPath,
) -> Result<Response, Problem> {
    let status = room.operator.status(&name).await?;
    let (item, known) = items::detail(&room, &name, &id).await?;
    let events = room.store.events(&name, EVENTS_KEPT).await?;
    let events = events.iter().filter(|event| event.id == known.id).take(EVENTS_SHOWN);
    let pending = PendingAbsence::new(&known, &status.options, status.polling.same);
    let updates = known.updates;
    let item = item.into_detail(&known, pending.as_ref(), events.map(EventAnswer::from).collect());
    let mut response = answer(StatusCode::OK, &item);
    let tag = format!("\"{}\"", updates.value());
    add(response.headers_mut(), header::ETAG, &tag);
    Ok(response)
}

/// The reason for a redaction; `None` where none was given.
pub(crate) fn redaction_reason(text: &str) -> Result<Option<String>, Problem> {
    let text = text.trim();
    match text.len() > REASON_LIMIT {
        true => Err(Problem::parameter(
            "reason",
            format!("reason is a text of at most {REASON_LIMIT} bytes"),
        )),
        false => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
    }
}

/// Takes the text of an item out of everything, to its end, whoever waits for it.
pub(crate) async fn redact_item(
    room: &SharedState,
    feed: &FeedName,
    id: &SyncId,
    reason: Option<String>,
) -> Result<Redacted, Problem> {
    let (acting, of, which) = (Arc::clone(room), feed.clone(), id.clone());
    let done = to_the_end(async move { acting.operator.redact(&of, &which, reason).await }).await;
    // Even what failed may have been stored, and no copy of the text may be served on.
    room.shelf.forget(feed);
    done
}

/// Deletes a publisher's missing item, to its end, whoever waits for it; `None` where it was deleted before.
pub(crate) async fn delete_missing_item(
    room: &SharedState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Tick>, Problem> {
    let (acting, of, which) = (Arc::clone(room), feed.clone(), id.clone());
    to_the_end(async move { acting.operator.delete_missing(&of, &which).await }).await
}

/// Takes the text of an item out of everything that is kept.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items/{id}/redact", operation_id = "redactItem",
    request_body = Option<Redaction>, responses(
        (status = 200, description = "Its text is gone.", body = RedactedItem),
        NotFound,
        Conflict,
    ))]
pub(crate) async fn redact(
    State(room): State<SharedState>,
    ItemInPath(name, id): ItemInPath,
    JsonObject(mut body): JsonObject<true>,
) -> Result<Response, Problem> {
    let reason = body.text("reason")?.map(|reason| redaction_reason(&reason)).transpose()?;
    body.finish()?;
    let done = redact_item(&room, &name, &id, reason.flatten()).await?;
    let (feed, sync_id) = (name, id);
    let item = RedactedItem {
        feed,
        sync_id,
        standing: "redacted",
        deleted: true,
        kept_out: true,
        left: REDACTION_LEAVES,
        done,
    };
    Ok(answer(StatusCode::OK, &item))
}

/// Deletes an item of a publisher that is missing from its document.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items/{id}/delete", operation_id = "deleteMissingItem", responses(
    (status = 200, description = "It is deleted.", body = DeletedItem),
    NotFound,
    Conflict,
))]
pub(crate) async fn delete_missing(
    State(room): State<SharedState>,
    ItemInPath(name, id): ItemInPath,
) -> Result<Response, Problem> {
    let tick = delete_missing_item(&room, &name, &id).await?;
    let (feed, sync_id, was_deleted) = (name, id, tick.is_none());
    Ok(answer(StatusCode::OK, &DeletedItem { feed, sync_id, deleted: true, was_deleted, tick }))
}

describe! {
    /// Why a text is taken out.
    Redaction: optional("reason", text().max_length(Some(REASON_LIMIT)));
    /// Always `redacted`.
    RedactedWord: words(["redacted"]);
}

/// An item whose text was taken out.
#[derive(Serialize, ToSchema)]
#[schema(as = ItemRedacted)]
struct RedactedItem {
    feed: FeedName,
    sync_id: SyncId,
    #[schema(value_type = RedactedWord)]
    standing: &'static str,
    #[schema(value_type = True)]
    deleted: bool,
    #[schema(value_type = True)]
    kept_out: bool,
    /// What a redaction does not reach by itself.
    left: &'static str,
    #[serde(flatten)]
    done: Redacted,
}

/// An item that is deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = ItemDeleted)]
struct DeletedItem {
    feed: FeedName,
    sync_id: SyncId,
    #[schema(value_type = True)]
    deleted: bool,
    was_deleted: bool,
    tick: Option<Tick>,
}
