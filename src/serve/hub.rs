//! Hubs: requests to our own, and what the hubs of upstreams ask and deliver.
//!
//! `POST /websub` (WebSub section 5.1) and `POST /rsscloud/pleaseNotify` are requests to the hub here, which keeps
//! subscriptions and calls; what is asked, and of which document, is checked here, and administration sees it here.
//! `/websub/callback/TOKEN` (sections 5.3 and 7) is where other hubs call. What a hub may ask back, and whether a push is
//! believed, is for the side that subscribes to say; nothing of a push is taken but that there was one.

use super::answers::answer;
use super::feeds::unreadable;
use super::{Client, NotFound, OperatorError, Problem, Query, SharedState, TypedQuery, unkept};
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::BytesMut;
use data_encoding::HEXLOWER;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use serde::Serialize;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time, mask_token};
use tidegate_core::websub::{
    CallbackPurpose, FORM_TYPE, HubRequest, Manner, PendingRequest, SIGNATURE_HEADER, Subscription,
    Verification, cloud,
};
use tidegate_core::xml::push_attribute;
use tidegate_poll::hub::{AskError, SubscriptionCount};
use tidegate_status::schema::words;
use tidegate_status::{PushResult, describe, schema};
use tidegate_store::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

/// The most subscriptions that one answer lists.
const SHOWN: usize = 1000;

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        let detail = error.to_string();
        match error {
            AskError::Callback(_) => Self::new(StatusCode::BAD_REQUEST, detail),
            AskError::Unknown => Self::not_found(detail),
            AskError::Pending | AskError::Full { .. } => Self::later(detail),
            AskError::Store(error)
                if error.is_passing() || matches!(error, StoreError::LowSpace { .. }) =>
            {
                Self::later(detail)
            }
            AskError::Store(_) => {
                tracing::error!(error = detail, "the hub could not take a request");
                Self::later("the hub could not store the request")
            }
        }
    }
}

/// `POST /websub`.
pub(super) async fn request(
    State(app): State<SharedState>,
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let hub = app.hub.as_ref().ok_or_else(no_hub)?;
    if !is_form(&headers) {
        let detail = format!("a request to the hub has the content type {FORM_TYPE}");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let request = HubRequest::read(&body).map_err(|error| match error.parameter {
        Some(name) => Problem::parameter(name, error.to_string()),
        None => Problem::new(StatusCode::BAD_REQUEST, error.to_string()),
    })?;
    let (record, _) =
        app.topic(&request.topic, client).await.map_err(|problem| problem.about("hub.topic"))?;
    hub.ask(&record.name, Manner::WebSub, request, client.address()).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

fn no_hub() -> Problem {
    Problem::not_found("there is no hub here")
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(FORM_TYPE)
}

/// The hub's subscriptions, and what went wrong with them.
#[utoipa::path(get, path = "/api/v1/subscriptions", operation_id = "listSubscriptions",
    params(("feed" = Option<schema::FeedName>, Query, description = "Only those of this feed.")),
    responses((status = 200, description = "At most 1000.", body = SubscriptionList), NotFound))]
pub(super) async fn list(
    State(app): State<SharedState>,
    TypedQuery(query): TypedQuery<Query>,
) -> Result<Response, Problem> {
    let feed = query.get("feed")?.map(FeedName::new).transpose();
    let feed = feed.map_err(|error| Problem::parameter("feed", error.to_string()))?;
    let hub = app.hub.as_ref().ok_or_else(no_hub)?;
    let all = hub.subscriptions(feed.as_ref(), SHOWN);
    let subscriptions = all.iter().map(SubscriptionAnswer::from).collect();
    let SubscriptionCount { active, pending, delivered, failed } = hub.count();
    let list = SubscriptionList {
        active,
        pending,
        delivered,
        failed,
        shown_at_most: SHOWN,
        subscriptions,
    };
    Ok(answer(StatusCode::OK, &list))
}

#[derive(Serialize, ToSchema)]
struct SubscriptionList {
    /// Subscriptions in force.
    active: usize,
    /// Subscriptions that are not, or not any more.
    pending: usize,
    /// Deliveries that arrived since the start.
    delivered: u64,
    /// Deliveries that failed since the start.
    failed: u64,
    shown_at_most: usize,
    subscriptions: Vec<SubscriptionAnswer>,
}

describe! {
    /// How a subscription stands.
    SubscriptionState: words(["active", "unverified", "ending", "denied", "over"]);
    /// What is asked.
    RequestMode: words(["subscribe", "unsubscribe", "denied"]);
}

/// A subscription without its secret, and of its callback the host only: the rest of such an address
/// is as good as a password.
#[derive(Serialize, ToSchema)]
#[schema(as = Subscription)]
pub(super) struct SubscriptionAnswer {
    id: String,
    feed: FeedName,
    topic: String,
    manner: &'static str,
    callback_host: Option<String>,
    #[schema(value_type = SubscriptionState)]
    state: &'static str,
    lease_ends: Option<Time>,
    since: Option<Time>,
    signed: bool,
    told: Option<Tick>,
    deliveries: u64,
    last_delivery: Option<Time>,
    failures: u32,
    trouble: Option<String>,
    next_attempt: Option<Time>,
    request: Option<RequestAnswer>,
}

impl From<&Subscription> for SubscriptionAnswer {
    fn from(of: &Subscription) -> Self {
        let state = of.active.as_ref();
        Self {
            id: HEXLOWER.encode(of.id().bytes()),
            feed: of.feed.clone(),
            topic: mask_token(&of.topic).into_owned(),
            manner: of.manner.name(),
            callback_host: of.callback.host_str().map(str::to_owned),
            state: of.standing(),
            // That of a webhook has no end.
            lease_ends: state.map(|active| active.until).filter(|until| *until != Time::MAX),
            since: state.map(|active| active.since),
            signed: state.is_some_and(|active| active.secret.is_some()),
            told: state.and_then(|active| active.told),
            deliveries: state.map_or(0, |active| active.deliveries),
            last_delivery: state.and_then(|active| active.delivered),
            failures: state.map_or(0, |active| active.failures),
            trouble: state.and_then(|active| active.trouble.clone()),
            next_attempt: state.and_then(|active| active.not_before),
            request: of.pending.as_ref().map(RequestAnswer::from),
        }
    }
}

/// A request of a subscriber that was not answered yet.
#[derive(Serialize, ToSchema)]
struct RequestAnswer {
    #[schema(value_type = RequestMode)]
    mode: &'static str,
    reason: Option<String>,
    asked: Time,
    attempts: u32,
    next_attempt: Time,
    trouble: Option<String>,
}

impl From<&PendingRequest> for RequestAnswer {
    fn from(pending: &PendingRequest) -> Self {
        let (mode, reason) = match &pending.wanted {
            CallbackPurpose::Subscribe { .. } => ("subscribe", None),
            CallbackPurpose::Unsubscribe => ("unsubscribe", None),
            CallbackPurpose::Denial { reason } => ("denied", Some(reason.clone())),
        };
        Self {
            mode,
            reason,
            asked: pending.asked,
            attempts: pending.attempts,
            next_attempt: pending.not_before.unwrap_or(pending.asked),
            trouble: pending.trouble.clone(),
        }
    }
}

/// Answers as rssCloud does: 200, and in a document whether it was taken.
pub(super) async fn register(
    State(app): State<SharedState>,
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let taken = register_topics(&app, client, &headers, body).await;
    let detail = "The callback will be asked; then it is told of changes for 25 hours.";
    let detail = taken.as_ref().err().map_or(detail, String::as_str);
    let success = taken.is_ok();
    let mut text = format!("<?xml version=\"1.0\"?>\n<notifyResult success=\"{success}\"");
    push_attribute(&mut text, "msg", detail);
    text.push_str("/>\n");
    unkept("text/xml; charset=utf-8", text)
}

async fn register_topics(
    app: &SharedState,
    client: Client,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<(), String> {
    let hub =
        app.hub.as_ref().filter(|_| app.config.has_cloud()).ok_or("there is no cloud here")?;
    if !is_form(headers) {
        return Err(format!("a registration has the content type {FORM_TYPE}"));
    }
    let body = body.map_err(|error| error.body_text())?;
    let requests = cloud::read_registration(&body).map_err(|error| error.to_string())?;
    // All of them are known before any is taken.
    let mut feeds = Vec::new();
    for request in requests {
        let found = app.topic(&request.topic, client).await;
        let (record, _) = found.map_err(|problem| problem.detail)?;
        feeds.push((record, request));
    }
    for (record, request) in feeds {
        let registered = hub.ask(&record.name, Manner::RssCloud, request, client.address()).await;
        // What failed here is for the operator's log.
        registered.map_err(|error| Problem::from(error).detail)?;
    }
    Ok(())
}

/// The longest push, in bytes. A longer one cannot be checked, and counts as none.
pub(super) const PUSH_LIMIT: usize = 8 * 1024 * 1024;

/// How many pushes longer than [`SHORT_PUSH`] are read at the same time.
pub(super) const PUSHES_AT_ONCE: usize = 8;

/// The longest push that needs no permit, in bytes. Most are shorter, so they are read even while slow long ones hold
/// all permits.
pub(super) const SHORT_PUSH: usize = 64 * 1024;

/// How long the body of a push may take, including the wait for a permit.
pub(super) const PUSH_TIME: Duration = Duration::from_secs(5);

/// The route, as it is counted and logged: its last step is a secret.
pub(super) const CALLBACK: &str = "/websub/callback/{token}";

/// The longest token that is looked at, in bytes.
const TOKEN_LIMIT: usize = 128;

type CallbackToken = Result<Path<String>, PathRejection>;

/// `GET`: the hub asks whether a request was meant, or says no.
pub(super) async fn verify(
    State(app): State<SharedState>,
    token: CallbackToken,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let token = find_token(&app, token).await.ok_or_else(unasked)?;
    let verification = Verification::read(&query.unwrap_or_default()).map_err(|_| unasked())?;
    let answer =
        app.operator.poller.called(&token, verification).await.map_err(OperatorError::from)?;
    let answer = answer.ok_or_else(unasked)?;
    // Never anything that a browser would show as a page.
    Ok(unkept("text/plain; charset=utf-8", answer))
}

/// `POST`: the hub delivers. Right or wrong, it is answered the same (section 7.1); a hub that
/// delivers for a subscription that is over may end it (410, section 7).
pub(super) async fn push(
    State(app): State<SharedState>,
    token: CallbackToken,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let token = find_token(&app, token).await.ok_or_else(over)?;
    // Refused, not answered 202: the other push may turn out to be forged, and this one would be lost.
    let own_push = app.pushing.try_take(&token, 1);
    let _own_push = own_push.ok_or_else(|| Problem::later("another push is being read here"))?;
    let (body, _permit) = read(&app.pushes, body).await?;
    let signature = headers.get(SIGNATURE_HEADER).and_then(|value| value.to_str().ok());
    match app.operator.poller.pushed(&token, signature.map(str::to_owned), body).await {
        PushResult::Unknown => Err(over()),
        PushResult::Busy => Err(Problem::later("too much waits to be polled")),
        PushResult::Disbelieved | PushResult::Taken => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// The token, where a callback has it.
async fn find_token(app: &SharedState, token: CallbackToken) -> Option<String> {
    let token = token.map_err(unreadable).ok()?.0;
    (token.len() <= TOKEN_LIMIT && app.operator.poller.is_callback(&token).await).then_some(token)
}

/// Reads a push within [`PUSH_TIME`]; a long one with its permit. Only long pushes wait for a permit, so that slow
/// senders of long ones keep no short push out.
async fn read(
    permits: &Semaphore,
    body: Body,
) -> Result<(Bytes, Option<SemaphorePermit<'_>>), Problem> {
    let until = Instant::now() + PUSH_TIME;
    let (mut body, mut read, mut permit) = (body, BytesMut::new(), None);
    loop {
        let frame = timeout_at(until, body.frame()).await.map_err(|_| {
            let detail = format!("a push takes {} seconds at most", PUSH_TIME.as_secs());
            Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
        })?;
        let Some(frame) = frame else { return Ok((read.freeze(), permit)) };
        let frame =
            frame.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
        // Trailers say nothing here.
        let Ok(data) = frame.into_data() else { continue };
        let length = read.len().saturating_add(data.len());
        if length > PUSH_LIMIT {
            let detail = format!("a push has {PUSH_LIMIT} bytes at most");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        if length > SHORT_PUSH && permit.is_none() {
            let free = timeout_at(until, permits.acquire()).await.ok().and_then(Result::ok);
            let later = || Problem::later("too many long pushes come at once");
            permit = Some(free.ok_or_else(later)?);
        }
        read.extend_from_slice(&data);
    }
}

fn unasked() -> Problem {
    Problem::not_found("nothing of the kind was asked of a hub")
}

fn over() -> Problem {
    Problem::new(StatusCode::GONE, "this subscription is over")
}
