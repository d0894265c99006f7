//! A feed's webhook: what is delivered to it, and how administration sets it. The hub delivers.

use super::answers::{self, EventAnswer, answer, object};
use super::change_feed::compared_versions;
use super::extract::{FeedInPath, JsonFields, JsonObject};
use super::hub::SubscriptionAnswer;
use super::openapi::{BadRequest, Conflict, NotFound};
use super::operator::OperatorError;
use super::problem::Problem;
use super::{AppState, SharedState};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use data_encoding::BASE64;
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{
    Event, EventKind, FeedName, FeedRecord, FeedSource, FeedStanding, Tick,
};
use tidegate_core::websub::{Manner, Secret, webhook};
use tidegate_format::render::ViewKind;
use tidegate_poll::hub::Hub;
use tidegate_status::describe;
use tidegate_status::schema::{self, text};
use tidegate_store::{EVENTS_KEPT, StoreError};
use url::Url;
use utoipa::ToSchema;

/// How many changes one delivery has, about: those of one tick stay together.
const CHANGES: usize = 100;
/// How many versions of an item are looked at for the two that differ.
const VERSIONS_READ: usize = 20;
/// Random bytes of a secret that is made here.
const SECRET_BYTES: usize = 32;

/// The oldest changes of a feed after a tick as JSON, and the tick up to which they go. What a store keeps of
/// the events of a feed is bounded: where some are gone, the sync view has what they led to, and the message
/// says so.
pub(super) async fn message(
    room: &AppState,
    record: &FeedRecord,
    after: Option<Tick>,
) -> Result<(Bytes, Option<Tick>), StoreError> {
    let name = &record.name;
    let newest = room.store.state(name).await?.and_then(|state| state.tick);
    let events = room.store.events(name, EVENTS_KEPT).await?;
    let is_cut = events.len() >= EVENTS_KEPT && events.iter().all(|event| event.tick > after);
    let later = |event: &&Event| event.tick.is_some() && event.tick > after && event.tick <= newest;
    let mut told: Vec<&Event> = events.iter().rev().filter(later).collect();
    told.sort_by_key(|event| event.tick);
    let last = told.get(CHANGES.saturating_sub(1)).and_then(|event| event.tick);
    let more = last.is_some_and(|last| told.iter().any(|event| event.tick > Some(last)));
    if more {
        told.retain(|event| event.tick <= last);
    }
    let until = if more { last } else { newest };
    let mut changes = Vec::with_capacity(told.len());
    for event in told {
        changes.push(change(room, name, event).await?);
    }
    let since = after.map(|after| format!("?since={after}")).unwrap_or_default();
    let site = &room.site;
    let message = Message {
        feed: name,
        title: record.shown_title(),
        url: site.view(name, ViewKind::Reader, site.dialect(None, None)),
        since: after,
        until,
        more,
        incomplete: is_cut,
        sync: format!("{}{since}", site.view(name, ViewKind::Sync, site.dialect(None, None))),
        changes,
    };
    Ok((answers::text(&message), until))
}

/// What a webhook is told.
#[derive(Serialize)]
struct Message<'a> {
    feed: &'a FeedName,
    title: String,
    url: String,
    since: Option<Tick>,
    until: Option<Tick>,
    /// Whether more changes follow in another delivery.
    more: bool,
    /// Whether changes are missing that only the sync view has.
    incomplete: bool,
    sync: String,
    changes: Vec<MessageChange>,
}

/// A change as a webhook is told it.
#[derive(Serialize)]
struct MessageChange {
    #[serde(flatten)]
    event: EventAnswer,
    id: Option<String>,
    published_id: Option<String>,
    link: Option<String>,
    versions: String,
    what_changed: Option<String>,
}

async fn change(
    room: &AppState,
    feed: &FeedName,
    event: &Event,
) -> Result<MessageChange, StoreError> {
    let known = room.store.known(feed, &event.id).await?;
    let known = known.filter(|known| !known.is_redacted());
    let page = room.site.at(&super::item_page(feed, &event.id));
    let mut compared = None;
    if let (EventKind::Updated | EventKind::Undeleted, Some(tick)) = (event.kind, event.tick) {
        let versions = room.store.versions(feed, &event.id, VERSIONS_READ).await?;
        compared = compared_versions(&versions, tick).map(|(old, new)| {
            format!("{page}?diff={}..{}", old.updates.value(), new.updates.value())
        });
    }
    Ok(MessageChange {
        event: event.into(),
        id: event.tick.map(|tick| room.site.change_entry_id(feed, &event.id, tick)),
        link: known.as_ref().and_then(|known| known.link.clone()),
        published_id: known.map(|known| known.published_id),
        versions: page,
        what_changed: compared,
    })
}

/// The hub, and the feed that a request is about, where its webhook can be changed.
async fn found(room: &SharedState, name: FeedName) -> Result<(Hub, Arc<FeedRecord>), Problem> {
    let Some(hub) = &room.hub else {
        let said = "webhooks are delivered by the hub, and there is none here: websub.hub is false";
        return Err(Problem::not_found(said));
    };
    let listing = room.directory.listing().await?;
    let record = listing.get(&name).filter(|record| record.standing != FeedStanding::Gone);
    let record = record.ok_or(OperatorError::UnknownFeed(name))?;
    Ok((hub.clone(), Arc::clone(record)))
}

fn refuse_if_filed(record: &FeedRecord) -> Result<(), Problem> {
    match record.source {
        FeedSource::Api => Ok(()),
        FeedSource::File | FeedSource::CommandLine => {
            Err(OperatorError::ConfiguredByFile(record.name.clone()).into())
        }
    }
}

describe! {
    /// Where changes go.
    WebhookSettings: object("url", text().description(Some("An absolute address, http or https."))).property(
        "secret",
        text()
            .min_length(Some(1))
            .max_length(Some(199))
            .description(Some("What deliveries are signed with; one is made where it is left out.")),
    );
}

/// A webhook as it is then, without its address.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
struct WebhookAnswer {
    #[schema(value_type = schema::FeedName)]
    feed: FeedName,
    webhook: Option<SubscriptionAnswer>,
    /// The secret that was made, in this answer alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    secret: Option<String>,
}

impl WebhookAnswer {
    fn new(hub: &Hub, feed: &FeedName) -> Self {
        let all = hub.subscriptions(Some(feed), usize::MAX);
        let webhook = all.iter().find(|of| of.manner == Manner::Webhook);
        Self { feed: feed.clone(), webhook: webhook.map(SubscriptionAnswer::from), secret: None }
    }
}

/// How deliveries to a feed's webhook go.
#[utoipa::path(get, path = "/api/v1/feeds/{name}/webhook", operation_id = "showWebhook", responses(
    (status = 200, description = "The webhook as it is then, without its address and its secret.", body = WebhookAnswer),
    NotFound,
    Conflict,
))]
pub(super) async fn show(
    State(room): State<SharedState>,
    FeedInPath(name): FeedInPath,
) -> Result<Response, Problem> {
    let (hub, record) = found(&room, name).await?;
    Ok(answer(StatusCode::OK, &WebhookAnswer::new(&hub, &record.name)))
}

/// Has a feed's changes delivered to an address.
#[utoipa::path(put, path = "/api/v1/feeds/{name}/webhook", operation_id = "putWebhook", request_body = WebhookSettings, responses(
    (status = 200, description = "The webhook as it is then, without its address. A secret that was made is told in this answer alone.", body = WebhookAnswer),
    BadRequest,
    NotFound,
    Conflict,
))]
pub(super) async fn put(
    State(room): State<SharedState>,
    FeedInPath(name): FeedInPath,
    JsonObject(body): JsonObject,
) -> Result<Response, Problem> {
    let (hub, record) = found(&room, name).await?;
    refuse_if_filed(&record)?;
    let (url, secret) = read(body)?;
    let made = match &secret {
        Some(_) => None,
        None => Some(random_secret()?),
    };
    let Some(signing) = secret.or_else(|| made.clone()) else {
        return Err(Problem::parameter("secret", "secret is missing"));
    };
    hub.set_webhook(&record.name, Some((url, signing))).await?;
    let secret = made.map(|made| made.reveal().to_owned());
    let webhook = WebhookAnswer::new(&hub, &record.name);
    Ok(answer(StatusCode::OK, &WebhookAnswer { secret, ..webhook }))
}

/// Ends the deliveries.
#[utoipa::path(delete, path = "/api/v1/feeds/{name}/webhook", operation_id = "deleteWebhook", responses(
    (status = 200, description = "The webhook as it is then, without its address and its secret.", body = WebhookAnswer),
    NotFound,
    Conflict,
))]
pub(super) async fn delete(
    State(room): State<SharedState>,
    FeedInPath(name): FeedInPath,
) -> Result<Response, Problem> {
    let (hub, record) = found(&room, name).await?;
    refuse_if_filed(&record)?;
    hub.set_webhook(&record.name, None).await?;
    Ok(answer(StatusCode::OK, &WebhookAnswer::new(&hub, &record.name)))
}

fn read(mut body: JsonFields) -> Result<(Url, Option<Secret>), Problem> {
    let missing = || Problem::parameter("url", "url, where changes go, is missing");
    let url = tidegate_config::feed_address(&body.text("url")?.ok_or_else(missing)?);
    let url = url.map_err(|error| Problem::parameter("url", error.to_string()))?;
    let secret = body.text("secret")?.map(|secret| Secret::new(&secret)).transpose();
    let secret = secret.map_err(|error| Problem::parameter("secret", error.to_string()))?;
    body.finish()?;
    Ok((url, secret))
}

fn random_secret() -> Result<Secret, Problem> {
    let mut random = [0; SECRET_BYTES];
    let made = getrandom::fill(&mut random).ok();
    let made = made.and_then(|()| webhook::secret_from(&BASE64.encode(&random)).ok());
    made.ok_or_else(|| {
        Problem::later(
            "this machine gives no random numbers for a secret",
            super::problem::RETRY_SOON,
        )
    })
}
