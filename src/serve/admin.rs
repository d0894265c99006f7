//! `/api/v1`: administration of feeds (CONTRACT, Administration API). The token was checked before.

use super::actions::{self, FeedAction};
use super::answers::{
    ActedFeed, EventAnswer, FeedAnswer, FeedDetail, FeedViews, HoldAnswer, PendingItem, True,
    UnseenChange, answer, object, optional,
};
use super::conditional::add;
use super::holdings::{self, Discarded, KeptAnswer};
use super::life::FeedLife;
use super::openapi::ActedOn;
use super::operator::Redacted;
use super::{
    API, AppState, BadRequest, Conflict, FeedCall, ItemCall, JsonObject, NotFound, Operator,
    OperatorError, Problem, Query, Reply, SharedState, TypedQuery, Work, WorkKind, explain,
    kept_items, make_on_thread, put, unkept,
};
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use futures_util::stream::poll_fn;
use http::{StatusCode, header};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use tidegate_core::model::{
    FeedName, FeedState, InterruptionKind, Interruptions, SyncId, Tick, Time,
};
use tidegate_judge as judge;
use tidegate_status::schema::{text, words};
use tidegate_status::{FeedStatus, PollResponse, describe};
use utoipa::ToSchema;

/// How many events of a feed or an item are shown.
pub(super) const EVENTS_SHOWN: usize = 100;

/// All that is known of a feed.
#[utoipa::path(get, path = "/api/v1/feeds/{name}", operation_id = "showFeed", responses(
    (status = 200, description = "The feed.", body = FeedDetail),
    NotFound,
))]
pub(super) async fn show(FeedCall { app, client, name }: FeedCall) -> Reply {
    let state = app.store.state(&name).await?;
    let items = state.as_ref().map_or(0, kept_items);
    let work = Work::new(&name, WorkKind::Ledger);
    let cost = app.admission.cost_of(&work, items);
    // As it is when this is called: nobody shares what was made for another.
    let reading = Arc::clone(&app);
    let detail = async move { read_detail(&reading, &name).await };
    Ok(answer(StatusCode::OK, &app.admission.run(client, &work, cost, detail).await?))
}

/// All that is known of a feed without waiting for a turn, for who has just acted on the feed: a refusal would be taken for
/// one of the action, which was carried out. Where the store cannot be read just now, the name alone.
pub(super) async fn acted_feed(app: &SharedState, name: &FeedName) -> Result<ActedFeed, Problem> {
    match read_detail(app, name).await {
        Err(problem) if problem.status == StatusCode::SERVICE_UNAVAILABLE => {
            Ok(ActedFeed::Unread { name: name.clone() })
        }
        told => Ok(ActedFeed::Read(Box::new(told?))),
    }
}

pub(super) async fn read_detail(app: &SharedState, name: &FeedName) -> Result<FeedDetail, Problem> {
    let status = app.operator.status(name).await?;
    let state = app.store.state(name).await?;
    let events = app.store.events(name, EVENTS_SHOWN).await?;
    let snapshot = app.store.snapshot(name).await?;
    let now = app.clock.now();
    let interruptions = interruptions(&status, state.as_ref(), now);
    // On a blocking thread: the whole ledger is read and freed.
    let looking = make_on_thread("what is known of the feed", move || {
        let snapshot = snapshot.as_ref();
        let quiet = snapshot.map(judge::quiet).unwrap_or_default();
        let noise = snapshot.map(judge::never_rests);
        let oldest = snapshot.and_then(|snapshot| snapshot.archives.first()).cloned();
        let life = snapshot.map(|snapshot| FeedLife::new(snapshot, &events, interruptions));
        Ok((quiet, noise, oldest, life, Discarded::new(snapshot), events))
    });
    let (quiet, noise, oldest, life, discarded, events) = looking.await?;
    let listing = app.directory.listing().await?;
    let kept = holdings::count(app, name, state.as_ref()).await?;
    let is_private = listing.private.contains(name);
    let at = |view: &str| app.site.at(&format!("/feeds/{name}{view}"));
    let known = state.as_ref();
    let newest = known.and_then(|state| state.archives.newest.as_ref());
    Ok(FeedDetail {
        readers: is_private.then(|| app.readers.of_private(name)),
        events: events.iter().map(EventAnswer::from).collect(),
        why: explain::why(&status, known),
        why_beside_hold: explain::why_beside_hold(&status, known),
        pending: status.pending.iter().map(PendingItem::from).collect(),
        hold: known.and_then(|state| state.hold.as_ref()).map(HoldAnswer::from),
        character: known.map(|state| (&state.character).into()),
        noise,
        no_news: quiet.into_iter().map(UnseenChange::from).collect(),
        discarded,
        document: status.polling.document.clone(),
        views: FeedViews {
            reader: at(""),
            sync: at("/sync"),
            complete: at("/complete"),
            conflicts: at("/conflicts"),
            archive: newest.map(|id| at(&format!("/archive/{id}"))),
        },
        kept: KeptAnswer::new(&kept, known, oldest.as_ref(), &app.config.publish),
        feed: FeedAnswer::new(status, known, is_private, now),
        state,
        oldest,
        life,
    })
}

/// When the feed did not go on as usual, up to now: a poll may have still to see that a hold began or
/// was decided.
fn interruptions(status: &FeedStatus, state: Option<&FeedState>, now: Time) -> Interruptions {
    let mut all = status.polling.interruptions.clone();
    let hold = state.and_then(|state| state.hold.as_ref());
    let since = hold.map_or(now, |hold| hold.since.min(now));
    all.note(InterruptionKind::Held, status.held.as_deref().filter(|_| hold.is_some()), since);
    all
}

/// The answer about a feed that was just added.
pub(super) async fn created(app: &SharedState, name: &FeedName) -> Reply {
    let mut response = answer(StatusCode::CREATED, &acted_feed(app, name).await?);
    let at = app.site.at(&format!("{API}/feeds/{name}"));
    add(response.headers_mut(), header::LOCATION, &at);
    Ok(response)
}

/// Stops a feed, which answers 410 from then on.
#[utoipa::path(delete, path = "/api/v1/feeds/{name}", operation_id = "removeFeed",
    params(("purge" = Option<bool>, Query, description = "Whether its data are removed too.")),
    responses((status = 204, description = "Done."), NotFound, Conflict))]
pub(super) async fn delete(
    FeedCall { app, name, .. }: FeedCall,
    TypedQuery(query): TypedQuery<Query>,
) -> Reply {
    let purge = query.flag("purge")?.unwrap_or(false);
    app.act(|operator| async move { operator.delete(&name, purge).await }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Polls now, and answers when the result is durable.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/poll", operation_id = "pollFeed", responses(
    (status = 200, description = "What came of it; also of a poll that failed.", body = PollResponse),
    NotFound, Conflict,
))]
pub(super) async fn poll(FeedCall { app, name, .. }: FeedCall) -> Reply {
    let report = app.act(|operator| async move { operator.poll_now(&name).await }).await?;
    Ok(answer(StatusCode::OK, &report))
}

/// Decides about a held document.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/hold", operation_id = "decideHold", request_body = HoldAction,
    responses(ActedOn, BadRequest, NotFound, Conflict))]
pub(super) async fn hold(
    FeedCall { app, name, .. }: FeedCall,
    JsonObject(body): JsonObject,
) -> Reply {
    let words = [("release", FeedAction::Release), ("drop", FeedAction::Drop)];
    act(&app, &name, put::action(body, None, words)?, StatusCode::OK).await
}

/// Stops polling a feed, or goes on with it.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/pause", operation_id = "pauseFeed",
    request_body = Option<PauseAction>, responses(ActedOn, BadRequest, NotFound, Conflict))]
pub(super) async fn pause(
    FeedCall { app, name, .. }: FeedCall,
    JsonObject(body): JsonObject<true>,
) -> Reply {
    let words = [("pause", FeedAction::Pause), ("resume", FeedAction::Resume)];
    let action = put::action(body, Some(FeedAction::Pause), words)?;
    act(&app, &name, action, StatusCode::OK).await
}

/// Reads the publisher's older documents once, or stops that.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/backfill", operation_id = "backfillFeed",
    request_body = Option<BackfillAction>, responses(
        (status = 202, description = "The feed afterwards.", body = ActedFeed),
        BadRequest, NotFound, Conflict,
    ))]
pub(super) async fn backfill(
    FeedCall { app, name, .. }: FeedCall,
    JsonObject(body): JsonObject<true>,
) -> Reply {
    let words = [("start", FeedAction::Backfill), ("stop", FeedAction::StopBackfill)];
    let action = put::action(body, Some(FeedAction::Backfill), words)?;
    act(&app, &name, action, StatusCode::ACCEPTED).await
}

/// Does something with a feed; answers the feed afterwards.
async fn act(app: &SharedState, name: &FeedName, action: FeedAction, status: StatusCode) -> Reply {
    actions::carry_out(app, name, action).await?;
    Ok(answer(status, &acted_feed(app, name).await?))
}

impl AppState {
    /// Has the operator act, to the end even when the caller goes away or the time for the answer is up:
    /// half an action is worse than one whose end nobody waited for.
    pub(super) async fn act<T: Send + 'static, F>(
        &self,
        action: impl FnOnce(Arc<Operator>) -> F,
    ) -> Result<T, Problem>
    where
        F: Future<Output = Result<T, OperatorError>> + Send + 'static,
    {
        match tokio::spawn(action(Arc::clone(&self.operator))).await {
            Ok(done) => Ok(done?),
            Err(error) => {
                tracing::error!(%error, "an action broke off");
                let detail = "the action broke off; the gateway's log says why";
                Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
            }
        }
    }
}

/// Hands over the whole state of the gateway as one file, while it goes on; one at a time.
///
/// The file proves itself whole; an answer that breaks off is of no use.
#[utoipa::path(get, path = "/api/v1/export", operation_id = "exportState", responses(
    (status = 200, description = "The file, as `tidegate export` writes it.", body = serde_json::Value,
        content_type = "application/vnd.tidegate.export", headers(("Content-Disposition"))),
    Conflict,
))]
pub(super) async fn export(State(app): State<SharedState>) -> Reply {
    let mut stream = app.operator.export().await?;
    let mut closing = Box::pin(app.ended());
    let pieces = poll_fn(move |context| match closing.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Some(Err(io::Error::other("the gateway is shutting down")))),
        Poll::Pending => stream.poll_recv(context),
    });
    let mut response = unkept("application/vnd.tidegate.export", Body::from_stream(pieces));
    add(response.headers_mut(), header::CONTENT_DISPOSITION, "attachment; filename=\"gateway.tg\"");
    Ok(response)
}

describe! {
    /// What becomes of a held document.
    HoldAction: object("action", words(["release", "drop"]));
    /// What becomes of the polling of a feed.
    PauseAction: optional("action", words(["pause", "resume"]).default(Some("pause".into())));
    /// What becomes of the reading of older documents.
    BackfillAction: optional("action", words(["start", "stop"]).default(Some("start".into())));
}

// Items of a publisher: what an operator decides about them.

/// The longest reason for a redaction, in bytes.
pub(super) const REASON_LIMIT: usize = 500;

/// What a redaction does not reach by itself.
pub(super) const REDACTION_LEAVES: &str = "what is served and kept has the text no more; its old bytes stay in the \
     data folder until the gateway is stopped and `tidegate compact` was run, and in backups, exports and \
     what readers fetched";

/// The reason for a redaction; `None` where none was given.
pub(super) fn redaction_reason(text: &str) -> Result<Option<String>, Problem> {
    let text = text.trim();
    if text.len() > REASON_LIMIT {
        let detail = format!("reason is a text of at most {REASON_LIMIT} bytes");
        return Err(Problem::parameter("reason", detail));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// Redacts an item in a task of its own, so that it completes even if the client leaves.
pub(super) async fn redact_item(
    app: &SharedState,
    feed: &FeedName,
    id: &SyncId,
    reason: Option<String>,
) -> Result<Redacted, Problem> {
    let (of, which) = (feed.clone(), id.clone());
    let done = app.act(|operator| async move { operator.redact(&of, &which, reason).await }).await;
    // Even what failed may have been stored, and no copy of the text may be served on.
    app.documents.forget(feed);
    done
}

/// Deletes a publisher's missing item in a task of its own, so that it completes even if the client leaves. `None`: it
/// was deleted before.
pub(super) async fn delete_missing_item(
    app: &SharedState,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Tick>, Problem> {
    let (feed, id) = (feed.clone(), id.clone());
    app.act(|operator| async move { operator.delete_missing(&feed, &id).await }).await
}

/// Takes the text of an item out of everything that is kept.
#[utoipa::path(post, path = "/api/v1/feeds/{name}/items/{id}/redact", operation_id = "redactItem",
    request_body = Option<Redaction>, responses(
        (status = 200, description = "Its text is gone.", body = RedactedItem),
        NotFound, Conflict,
    ))]
pub(super) async fn redact(
    ItemCall { app, feed: name, id }: ItemCall,
    JsonObject(mut body): JsonObject<true>,
) -> Reply {
    let reason = body.text("reason")?.map(|reason| redaction_reason(&reason)).transpose()?;
    body.finish()?;
    let done = redact_item(&app, &name, &id, reason.flatten()).await?;
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
    NotFound, Conflict,
))]
pub(super) async fn delete_missing(ItemCall { app, feed: name, id }: ItemCall) -> Reply {
    let tick = delete_missing_item(&app, &name, &id).await?;
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
