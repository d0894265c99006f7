//! `/api/v1`: administration (CONTRACT, Administration API). The token was checked before.

use super::admission::{Work, WorkKind};
use super::client::Client;
use super::conditional::{add, unkept};
use super::edit::{item as item_in, whole};
use super::feeds::{NameInPath, unreadable};
use super::operator::{OperatorError, Put, PutFeed, Redacted};
use super::problem::Problem;
use super::query::Query;
use super::{
    API, AppState, REQUEST_BODY_LIMIT, SharedState, discarded, explain, item_list, items, json,
    keeping, put,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tidegate_core::model::{Decision, FeedName, FeedState, SyncId, Tick};
use tidegate_judge::{self as judge, PendingAbsence};
use tidegate_status::{self as status, WalkOrder};
use tidegate_store::EVENTS_KEPT;

/// How many events of a feed or an item are shown.
pub(super) const EVENTS_SHOWN: usize = 100;

/// The longest reason for a redaction, in bytes.
pub(super) const REASON_LIMIT: usize = 500;

/// What a redaction does not reach by itself.
pub(super) const REDACTION_LEAVES: &str = "what is served and kept has the text no more; its old bytes stay in the \
     data folder until the gateway is stopped and `tidegate compact` was run, and in backups, exports and \
     what readers fetched";

pub(super) type RequestJson = Result<Bytes, BytesRejection>;

/// By how many seconds a feed's tick is ahead of the clock, where that is much.
pub(super) fn tick_lead(room: &SharedState, state: Option<&FeedState>) -> Value {
    let lead = status::tick_lead(state.and_then(|state| state.tick), room.clock.now());
    json!({ "tick_lead": lead.map(|lead| lead.as_secs()) })
}

/// `GET /api/v1/feeds/NAME`.
pub(super) async fn show(
    State(room): State<SharedState>,
    client: Client,
    name: NameInPath,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    Ok(answer(StatusCode::OK, described(&room, client, &name).await?))
}

/// What is said of a feed, as it is when this is called: nobody shares what was made for another.
async fn described(room: &SharedState, client: Client, name: &FeedName) -> Result<Value, Problem> {
    let state = room.store.state(name).await?;
    let items = state.map_or(0, |state| u64::from(state.living) + u64::from(state.tombstones));
    let work = Work::new(name, WorkKind::Ledger);
    let cost = room.admission.cost_of(&work, items);
    let (telling, of) = (Arc::clone(room), name.clone());
    let told = async move { feed_json(&telling, &of).await };
    room.admission.run(client, &work, cost, told).await
}

/// The same without waiting for a turn, for who has just acted on the feed: a refusal would be taken for
/// one of the action, which was carried out. Where the store cannot be read just now, the name alone.
pub(super) async fn acted_feed(room: &SharedState, name: &FeedName) -> Result<Value, Problem> {
    match feed_json(room, name).await {
        Err(problem) if problem.status() == StatusCode::SERVICE_UNAVAILABLE => {
            Ok(json!({ "name": name }))
        }
        told => told,
    }
}

async fn feed_json(room: &SharedState, name: &FeedName) -> Result<Value, Problem> {
    let status = room.operator.status(name).await?;
    let state = room.store.state(name).await?;
    let state = state.as_ref();
    let events = room.store.events(name, EVENTS_SHOWN).await?;
    let at = |view: &str| room.site.at(&format!("/feeds/{name}{view}"));
    let newest = state.and_then(|state| state.archives.newest.as_ref());
    let snapshot = room.store.snapshot(name).await?;
    let snapshot = snapshot.as_ref();
    let oldest = snapshot.and_then(|snapshot| snapshot.archives.first());
    let listing = room.directory.listing().await?;
    let record = listing.get(name).map(|record| &**record);
    let contested = room.contested.count(name).await?;
    let is_private = listing.private().contains(name);
    let readers = is_private.then(|| room.readers.of_private(name));
    let more = json!({
        "private": is_private,
        "readers": readers.map(|readers| readers.described(name)),
        "events": events.iter().map(json::event).collect::<Vec<_>>(),
        "why": explain::why(&status, state),
        "pending": status.pending.iter().map(json::pending).collect::<Vec<_>>(),
        "hold": state.and_then(|state| state.hold.as_ref()).map(json::hold),
        "character": state.map(|state| json::character(&state.character)),
        "noise": state.map(|state| state.noise.describe()),
        "no_news": snapshot.map(judge::quiet).unwrap_or_default(),
        "discarded": discarded::described(snapshot),
        "document": status.polling.document,
        "views": {
            "reader": at(""),
            "sync": at("/sync"),
            "complete": at("/complete"),
            "conflicts": at("/conflicts"),
            "archive": newest.map(|id| at(&format!("/archive/{id}"))),
        },
        "kept": keeping::described(room, name, state, oldest).await?,
    });
    let told = json::with(json::feed(&status, record, state, Some(contested)), more);
    Ok(json::with(told, tick_lead(room, state)))
}

/// `GET /api/v1/feeds/NAME/items`, page by page.
pub(super) async fn items(
    State(room): State<SharedState>,
    client: Client,
    name: NameInPath,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    if !room.directory.listing().await?.contains_key(&name) {
        return Err(OperatorError::UnknownFeed(name).into());
    }
    let listed = item_list::answered(&room, client, &name, (query.as_deref(), true)).await?;
    Ok(unkept("application/json", Bytes::clone(&listed)))
}

/// `GET /api/v1/feeds/NAME/items/SYNC_ID`: all that is known of an item.
pub(super) async fn item(
    State(room): State<SharedState>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Problem> {
    let (name, id) = path.map_err(unreadable)?.0;
    let name = feed(Ok(Path(name)))?;
    let status = room.operator.status(&name).await?;
    let (item, known) = items::described(&room, &name, &id).await?;
    let events = room.store.events(&name, EVENTS_KEPT).await?;
    let events = events.iter().filter(|event| event.id == known.id).take(EVENTS_SHOWN);
    let pending = PendingAbsence::new(&known, &status.options, status.polling.same);
    let more = json!({
        "events": events.map(json::event).collect::<Vec<_>>(),
        "pending": pending.as_ref().map(json::pending),
    });
    let item = json::with(json::with(item, json::known(&known)), more);
    let mut response = answer(StatusCode::OK, item);
    // What `If-Match` of a change says.
    let tag = format!("\"{}\"", known.updates.value());
    add(response.headers_mut(), header::ETAG, &tag);
    Ok(response)
}

/// `PUT /api/v1/feeds/NAME`.
pub(super) async fn put(
    State(room): State<SharedState>,
    name: NameInPath,
    body: RequestJson,
) -> Result<Response, Problem> {
    // Here a name that no feed can have is the caller's mistake, not an unknown feed.
    let name = name.map_err(unreadable)?.0;
    let name = FeedName::new(&name).map_err(|e| Problem::parameter("name", e.to_string()))?;
    let wanted = put::read(&whole(body, REQUEST_BODY_LIMIT)?)?;
    match put_feed(&room, &name, wanted).await? {
        Put::Created => created(&room, &name).await,
        Put::Changed => Ok(answer(StatusCode::OK, acted_feed(&room, &name).await?)),
    }
}

/// The answer about a feed that was just added.
pub(super) async fn created(room: &SharedState, name: &FeedName) -> Result<Response, Problem> {
    let mut response = answer(StatusCode::CREATED, acted_feed(room, name).await?);
    let at = room.site.at(&format!("{API}/feeds/{name}"));
    add(response.headers_mut(), header::LOCATION, &at);
    Ok(response)
}

/// Adds a feed or changes it, to its end, whoever waits for it.
pub(super) async fn put_feed(
    room: &SharedState,
    feed: &FeedName,
    wanted: PutFeed,
) -> Result<Put, Problem> {
    let (acting, feed) = (Arc::clone(room), feed.clone());
    let done = to_the_end(async move {
        let done = acting.operator.put(&feed, wanted).await;
        // Even what failed may have been stored.
        acting.feeds_changed();
        done
    });
    done.await
}

/// Stops a feed for good, and tells who subscribed to it.
pub(super) async fn remove(
    room: &AppState,
    feed: &FeedName,
    purge: bool,
) -> Result<(), OperatorError> {
    let done = room.operator.delete(feed, purge).await;
    room.feeds_changed();
    if let Some(hub) = &room.hub
        && done.is_ok()
        && let Err(error) = hub.set_webhook(feed, None).await
    {
        tracing::warn!(%feed, %error, "the webhook of a feed that was deleted could not be ended");
    }
    done
}

/// Stops polling a feed, or goes on with it.
pub(super) async fn set_paused(
    room: &AppState,
    feed: &FeedName,
    paused: bool,
) -> Result<(), OperatorError> {
    let done = room.operator.pause(feed, paused).await;
    room.directory.changed();
    done
}

/// `DELETE /api/v1/feeds/NAME`, with `?purge=true` for its data too.
pub(super) async fn delete(
    State(room): State<SharedState>,
    name: NameInPath,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    let purge = Query::read(query.as_deref().unwrap_or_default())?.flag("purge")?.unwrap_or(false);
    to_the_end(async move { remove(&room, &name, purge).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /api/v1/feeds/NAME/poll`.
pub(super) async fn poll(
    State(room): State<SharedState>,
    name: NameInPath,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    let report = to_the_end(async move { room.operator.poll_now(&name).await }).await?;
    Ok(answer(StatusCode::OK, json::value(&report)))
}

/// `POST /api/v1/feeds/NAME/hold`.
pub(super) async fn hold(
    State(room): State<SharedState>,
    name: NameInPath,
    body: RequestJson,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    let words = [("release", Decision::Release), ("drop", Decision::Drop)];
    let action = put::action(&whole(body, REQUEST_BODY_LIMIT)?, None, words)?;
    let (acting, feed) = (Arc::clone(&room), name.clone());
    to_the_end(async move { acting.operator.hold(&feed, action).await }).await?;
    Ok(answer(StatusCode::OK, acted_feed(&room, &name).await?))
}

/// `POST /api/v1/feeds/NAME/pause`, with `{"action":"resume"}` to poll it again.
pub(super) async fn pause(
    State(room): State<SharedState>,
    name: NameInPath,
    body: RequestJson,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    let words = [("pause", true), ("resume", false)];
    let paused = put::action(&whole(body, REQUEST_BODY_LIMIT)?, Some(true), words)?;
    let (acting, feed) = (Arc::clone(&room), name.clone());
    to_the_end(async move { set_paused(&acting, &feed, paused).await }).await?;
    Ok(answer(StatusCode::OK, acted_feed(&room, &name).await?))
}

/// `POST /api/v1/feeds/NAME/backfill`, with `{"action":"stop"}` to stop one.
pub(super) async fn backfill(
    State(room): State<SharedState>,
    name: NameInPath,
    body: RequestJson,
) -> Result<Response, Problem> {
    let name = feed(name)?;
    let words = [("start", WalkOrder::Start), ("stop", WalkOrder::Stop)];
    let body = whole(body, REQUEST_BODY_LIMIT)?;
    let action = put::action(&body, Some(WalkOrder::Start), words)?;
    let (acting, feed) = (Arc::clone(&room), name.clone());
    to_the_end(async move { acting.operator.backfill(&feed, action).await }).await?;
    Ok(answer(StatusCode::ACCEPTED, acted_feed(&room, &name).await?))
}

fn unfit_reason() -> Problem {
    Problem::parameter("reason", format!("reason is a text of at most {REASON_LIMIT} bytes"))
}

/// The reason for a redaction; `None` where none was given.
pub(super) fn redaction_reason(text: &str) -> Result<Option<String>, Problem> {
    let text = text.trim();
    match text.len() > REASON_LIMIT {
        true => Err(unfit_reason()),
        false => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
    }
}

/// Takes the text of an item out of everything, to its end, whoever waits for it.
pub(super) async fn redact_item(
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
pub(super) async fn delete_missing_item(
    room: &SharedState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Tick>, Problem> {
    let (acting, of, which) = (Arc::clone(room), feed.clone(), id.clone());
    to_the_end(async move { acting.operator.delete_missing(&of, &which).await }).await
}

/// `POST /api/v1/feeds/NAME/items/SYNC_ID/redact`, with `{"reason":"…"}` or an empty body.
pub(super) async fn redact(
    State(room): State<SharedState>,
    path: Result<Path<(String, String)>, PathRejection>,
    body: RequestJson,
) -> Result<Response, Problem> {
    let (name, id) = item_in(path)?;
    let body = whole(body, REQUEST_BODY_LIMIT)?;
    let mut reason = None;
    for (key, value) in if body.is_empty() { Map::new() } else { put::object(&body)? } {
        match key.as_str() {
            "reason" => reason = redaction_reason(value.as_str().ok_or_else(unfit_reason)?)?,
            _ => return Err(put::unknown_key(&key)),
        }
    }
    let done = redact_item(&room, &name, &id, reason).await?;
    let more = json!({
        "feed": name,
        "sync_id": id,
        "standing": "redacted",
        "deleted": true,
        "kept_out": true,
        "left": REDACTION_LEAVES,
    });
    Ok(answer(StatusCode::OK, json::with(json::value(&done), more)))
}

/// `POST /api/v1/feeds/NAME/items/SYNC_ID/delete`.
pub(super) async fn delete_missing(
    State(room): State<SharedState>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, Problem> {
    let (name, id) = item_in(path)?;
    let tick = delete_missing_item(&room, &name, &id).await?;
    let value = json!({
        "feed": name,
        "sync_id": id,
        "deleted": true,
        "was_deleted": tick.is_none(),
        "tick": tick,
    });
    Ok(answer(StatusCode::OK, value))
}

/// Lets an action run to its end even when the caller goes away or the time for the answer is up:
/// half an action is worse than one whose end nobody waited for.
pub(super) async fn to_the_end<T: Send + 'static>(
    action: impl Future<Output = Result<T, OperatorError>> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::spawn(action).await {
        Ok(done) => Ok(done?),
        Err(error) => {
            Err(OperatorError::Internal(format!("the action did not end: {error}")).into())
        }
    }
}

/// The name of a feed in an address.
pub(super) fn feed(name: NameInPath) -> Result<FeedName, Problem> {
    let name = name.map_err(unreadable)?.0;
    FeedName::new(&name).map_err(|_| Problem::not_found("there is no feed of that name"))
}

/// An answer that nobody keeps.
pub(super) fn answer(status: StatusCode, value: Value) -> Response {
    let keep = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, keep, Json(value)).into_response()
}
