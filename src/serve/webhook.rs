//! What the hub delivers: to subscribers the very bytes and headers that a reader gets, to the webhook of a feed its changes as
//! JSON. And how administration sets a webhook.

use super::answers::{EventAnswer, answer, object};
use super::audience::Revoked;
use super::auth::too_many_tokens;
use super::change_feed::compared_versions;
use super::hub::SubscriptionAnswer;
use super::operator::refuse_if_filed;
use super::query::is_plain;
use super::{
    AppState, Audience, BadRequest, BodyContent, Client, Conflict, Encoding, FeedCall, JsonFields,
    JsonObject, NotFound, OperatorError, Problem, ProblemCause, Reply, RequestedView, ServedFeed,
    SharedState, TOKEN_PATH, ViewQuery, ViewRequest, answers,
};
use axum::body::Bytes;
use data_encoding::BASE64;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;
use tidegate_core::model::{Event, EventKind, FeedName, FeedRecord, FeedStanding, Tick};
use tidegate_core::websub::{Manner, Secret, webhook};
use tidegate_format::render::ViewKind;
use tidegate_poll::hub::{Hub, HubDocument, NoHubDocument, TopicRequest};
use tidegate_status::describe;
use tidegate_status::schema::text;
use tidegate_store::{EVENTS_KEPT, KnownGateway, StoreError};
use url::Url;
use utoipa::ToSchema;

/// How many changes one delivery has, about: those of one tick stay together.
const CHANGES: usize = 100;
/// How many versions of an item are looked at for the two that differ.
const VERSIONS_READ: usize = 20;
/// The detail of the problem for an address that is no topic, also for one below an unknown token.
const NO_TOPIC: &str = "the topic is no feed of this gateway";
/// Random bytes of a secret that is made here.
const SECRET_BYTES: usize = 32;

/// The oldest changes of a feed after a tick as JSON, and the tick up to which they go. What a store keeps of
/// the events of a feed is bounded: where some are gone, the sync view has what they led to, and the message
/// says so.
pub(super) async fn message(
    app: &AppState,
    record: &FeedRecord,
    after: Option<Tick>,
) -> Result<(Bytes, Option<Tick>), StoreError> {
    let name = &record.name;
    let newest = app.store.state(name).await?.and_then(|state| state.tick);
    let events = app.store.events(name, EVENTS_KEPT).await?;
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
        changes.push(change(app, name, event).await?);
    }
    let since = after.map(|after| format!("?since={after}")).unwrap_or_default();
    let site = &app.site;
    let message = Message {
        feed: name,
        title: record.shown_title(),
        url: site.view(name, ViewKind::Reader, site.form(None, None)),
        since: after,
        until,
        more,
        incomplete: is_cut,
        sync: format!("{}{since}", site.view(name, ViewKind::Sync, site.form(None, None))),
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
    app: &AppState,
    feed: &FeedName,
    event: &Event,
) -> Result<MessageChange, StoreError> {
    let known = app.store.known(feed, &event.id).await?;
    let known = known.filter(|known| !known.is_redacted());
    let page = app.site.at(&super::item_page(feed, &event.id));
    let mut compared = None;
    if let (EventKind::Updated | EventKind::Undeleted, Some(tick)) = (event.kind, event.tick) {
        let versions = app.store.versions(feed, &event.id, VERSIONS_READ).await?;
        compared = compared_versions(&versions, tick).map(|(old, new)| {
            format!("{page}?diff={}..{}", old.updates.value(), new.updates.value())
        });
    }
    Ok(MessageChange {
        event: event.into(),
        id: event.tick.map(|tick| app.site.change_entry_id(feed, &event.id, tick)),
        link: known.as_ref().and_then(|known| known.link.clone()),
        published_id: known.map(|known| known.published_id),
        versions: page,
        what_changed: compared,
    })
}

/// The hub, and the feed that a request is about, where its webhook can be changed.
async fn find_hub_and_feed(
    app: &SharedState,
    name: FeedName,
) -> Result<(Hub, Arc<FeedRecord>), Problem> {
    let Some(hub) = &app.hub else {
        let detail =
            "webhooks are delivered by the hub, and there is none here: websub.hub is false";
        return Err(Problem::not_found(detail));
    };
    let listing = app.directory.listing().await?;
    let record = listing.get(&name).filter(|record| record.standing != FeedStanding::Gone);
    let record = record.ok_or_else(|| OperatorError::unknown_feed(&name))?;
    Ok((hub.clone(), Arc::clone(record)))
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
pub(super) async fn show(FeedCall { app, name, .. }: FeedCall) -> Reply {
    let (hub, record) = find_hub_and_feed(&app, name).await?;
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
    FeedCall { app, name, .. }: FeedCall,
    JsonObject(body): JsonObject,
) -> Reply {
    let (hub, record) = find_hub_and_feed(&app, name).await?;
    refuse_if_filed(&record)?;
    let (url, given) = read(body)?;
    let made = if given.is_none() { Some(random_secret()?) } else { None };
    let secret = made.as_ref().map(|made| made.reveal().to_owned());
    if let Some(signs) = given.or(made) {
        hub.set_webhook(&record.name, Some((url, signs))).await?;
    }
    let webhook = WebhookAnswer::new(&hub, &record.name);
    Ok(answer(StatusCode::OK, &WebhookAnswer { secret, ..webhook }))
}

/// Ends the deliveries.
#[utoipa::path(delete, path = "/api/v1/feeds/{name}/webhook", operation_id = "deleteWebhook", responses(
    (status = 200, description = "The webhook as it is then, without its address and its secret.", body = WebhookAnswer),
    NotFound,
    Conflict,
))]
pub(super) async fn delete(FeedCall { app, name, .. }: FeedCall) -> Reply {
    let (hub, record) = find_hub_and_feed(&app, name).await?;
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
    made.ok_or_else(|| Problem::later("this machine gives no random numbers for a secret"))
}

/// What the directory says of a feed: one that is unknown or was removed has gone.
fn gone_or_later(problem: &Problem) -> NoHubDocument {
    match problem.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => NoHubDocument::Gone(problem.detail.clone()),
        _ => later(problem),
    }
}

/// Everything else may be mended: another public address, a view that is not available now.
fn later(problem: &Problem) -> NoHubDocument {
    NoHubDocument::Later(problem.detail.clone())
}

impl AppState {
    /// Answers the hub.
    pub(super) async fn hub_document(
        self: &Arc<Self>,
        request: TopicRequest,
    ) -> Result<HubDocument, NoHubDocument> {
        match request {
            TopicRequest::Exists(topic) => {
                self.hub_topic(&topic).await.map(|_| HubDocument::default())
            }
            TopicRequest::Document(topic) => self.document_of(&topic).await,
            TopicRequest::Changes(feed, after) => self.changes_of(&feed, after).await,
        }
    }

    /// The document at this address as it is now, never an earlier one.
    async fn document_of(self: &Arc<Self>, topic: &str) -> Result<HubDocument, NoHubDocument> {
        let (record, request) = self.hub_topic(topic).await?;
        let newest = async {
            let state = self.store.state(&record.name).await?.ok_or_else(Problem::unread_feed)?;
            self.view(&RequestedView::new(&record, request, &state, Client::Own)?).await
        };
        let rendition = newest.await.map_err(|problem| later(&problem))?;
        let mut headers = HeaderMap::new();
        for link in rendition.head.get_all(header::LINK) {
            headers.append(header::LINK, link.clone());
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(rendition.media_type));
        match &rendition.body(Encoding::Identity).content {
            BodyContent::Memory(body) => {
                Ok(HubDocument { headers, body: body.clone(), until: None })
            }
            BodyContent::File(file) => Err(NoHubDocument::TooLarge(file.len())),
        }
    }

    /// The oldest changes of a feed after a tick, as its webhook is told them.
    async fn changes_of(
        &self,
        feed: &FeedName,
        after: Option<Tick>,
    ) -> Result<HubDocument, NoHubDocument> {
        // The operator said where they go.
        let served = self.served_feed(feed.as_str(), &Audience::operator(self)).await;
        let record = served.map_err(|problem| gone_or_later(&problem))?;
        let message = message(self, &record, after).await;
        let (body, until) = message.map_err(|error| NoHubDocument::Later(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(HubDocument { headers, body, until })
    }

    async fn hub_topic(&self, topic: &str) -> Result<(ServedFeed, ViewRequest), NoHubDocument> {
        // While another gateway has other readers configured, its configuration may be the newer one and know this
        // token.
        let differ = |gateway: &KnownGateway| gateway.differing.iter().any(|key| key == "reader");
        let is_readers = topic.starts_with(&self.site.at(TOKEN_PATH));
        let is_unsure = is_readers && self.store.condition().gateways.iter().any(differ);
        self.find_topic(topic).await.map_err(|problem| match problem.cause {
            ProblemCause::RevokedToken | ProblemCause::UnknownFeed if is_unsure => {
                let detail =
                    "the token of its address may be in the configuration of another gateway";
                NoHubDocument::Later(detail.to_owned())
            }
            ProblemCause::RevokedToken => {
                NoHubDocument::Gone("the token of its address is revoked".to_owned())
            }
            ProblemCause::ForeignTopic => later(&problem),
            _ => gone_or_later(&problem),
        })
    }
}

impl AppState {
    /// The view that a topic is the address of: a reader, sync or complete view, in any container and
    /// dialect that it has. An answer to `?since=` or `?as-of=` is nothing to subscribe to.
    pub(super) async fn topic(
        &self,
        topic: &str,
        client: Client,
    ) -> Result<(ServedFeed, ViewRequest), Problem> {
        let found = self.find_topic(topic).await;
        // Another way to guess at tokens.
        let is_guess = |problem: &Problem| problem.cause == ProblemCause::RevokedToken;
        match found.as_ref().is_err_and(is_guess) && !self.readers.hold_back(client).await {
            true => Err(too_many_tokens()),
            false => found,
        }
    }

    async fn find_topic(&self, topic: &str) -> Result<(ServedFeed, ViewRequest), Problem> {
        let (audience, name, kind, query) = self.parse_topic(topic)?;
        let record = self.served_feed(&name, &audience).await?;
        let foreign = |problem: Problem| problem.with_cause(ProblemCause::ForeignTopic);
        let view_query = ViewQuery::read(kind, query.unwrap_or_default()).map_err(foreign)?;
        let detail = if view_query.since.is_some() || view_query.as_of.is_some() {
            "a topic has neither since nor as-of: subscribe to the view itself"
        } else if query.is_some_and(|query| !is_plain(query)) {
            "a topic has no parameters but as and sx, unescaped: subscribe to the view itself"
        } else {
            let form = self.site.form(view_query.dialect, view_query.container);
            return Ok((record, ViewRequest { kind, form, seen: None }));
        };
        Err(foreign(Problem::new(StatusCode::BAD_REQUEST, detail)))
    }

    /// Parses the address of a topic into audience, feed name, view and query.
    fn parse_topic<'a>(
        &self,
        topic: &'a str,
    ) -> Result<(Audience, String, ViewKind, Option<&'a str>), Problem> {
        let places = self.site.places.load();
        if let Some(name) = places.feed_at(topic) {
            let query = places.is_json(name).then_some("as=jsonfeed");
            return Ok((Audience::public(self), name.to_string(), ViewKind::Reader, query));
        }
        let none = |cause| Problem::not_found(NO_TOPIC).with_cause(cause);
        let foreign = || none(ProblemCause::ForeignTopic);
        let found = Audience::of_address(self, topic).ok_or_else(foreign)?;
        let (audience, path) = found.map_err(|Revoked| none(ProblemCause::RevokedToken))?;
        let path = path.strip_prefix("/feeds/").ok_or_else(foreign)?;
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let (name, kind) = match path.split_once('/') {
            None => (path, ViewKind::Reader),
            Some((name, "sync")) => (name, ViewKind::Sync),
            Some((name, "complete")) => (name, ViewKind::Complete),
            Some(_) => return Err(foreign()),
        };
        Ok((audience, name.to_owned(), kind, query))
    }
}
