//! `POST /websub`: requests to the hub (WebSub section 5.1), and what administration sees of it.
//!
//! This module checks what is asked and of which document. The hub keeps subscriptions; nothing here calls anybody.

use super::SharedState;
use super::answers::answer;
use super::client::Client;
use super::extract::TypedQuery;
use super::openapi::NotFound;
use super::problem::{Problem, RETRY_SOON};
use super::query::Query;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use tidegate_core::model::{FeedName, Tick, Time, mask_token};
use tidegate_core::websub::{CallbackPurpose, FORM_TYPE, HubRequest, PendingRequest, Subscription};
use tidegate_poll::hub::{AskError, SubscriptionCount};
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use tidegate_store::StoreError;
use utoipa::ToSchema;

/// The most subscriptions that one answer lists.
const SHOWN: usize = 1000;

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        let said = error.to_string();
        match error {
            AskError::Callback(_) => Self::new(StatusCode::BAD_REQUEST, said),
            AskError::Unknown => Self::not_found(said),
            AskError::Pending | AskError::Full { .. } => Self::later(said, RETRY_SOON),
            AskError::Store(error)
                if error.is_passing() || matches!(error, StoreError::LowSpace { .. }) =>
            {
                Self::later(said, RETRY_SOON)
            }
            AskError::Store(_) => {
                tracing::error!(error = said, "the hub could not take a request");
                Self::later("the hub could not store the request", RETRY_SOON)
            }
        }
    }
}

/// `POST /websub`.
pub(super) async fn request(
    State(room): State<SharedState>,
    client: Client,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let Some(hub) = &room.hub else {
        return Err(Problem::not_found("there is no hub here"));
    };
    if !is_form(&headers) {
        let said = format!("a request to the hub has the content type {FORM_TYPE}");
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, said));
    }
    let body = body.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let request = HubRequest::read(&body).map_err(|error| match error.parameter() {
        Some(name) => Problem::parameter(name, error.to_string()),
        None => Problem::new(StatusCode::BAD_REQUEST, error.to_string()),
    })?;
    let (record, _) =
        room.topic(&request.topic, client).await.map_err(|problem| problem.about("hub.topic"))?;
    hub.ask(&record.name, request, client.address()).await?;
    Ok(StatusCode::ACCEPTED.into_response())
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
    State(room): State<SharedState>,
    TypedQuery(query): TypedQuery<Query>,
) -> Result<Response, Problem> {
    let feed = query.get("feed")?.map(FeedName::new).transpose();
    let feed = feed.map_err(|error| Problem::parameter("feed", error.to_string()))?;
    let Some(hub) = &room.hub else {
        return Err(Problem::not_found("there is no hub here"));
    };
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
    #[schema(value_type = schema::FeedName)]
    feed: FeedName,
    topic: String,
    manner: &'static str,
    callback_host: Option<String>,
    #[schema(value_type = SubscriptionState)]
    state: &'static str,
    #[schema(value_type = Option<schema::Time>)]
    lease_ends: Option<Time>,
    #[schema(value_type = Option<schema::Time>)]
    since: Option<Time>,
    signed: bool,
    #[schema(value_type = Option<schema::Time>)]
    told: Option<Tick>,
    deliveries: u64,
    #[schema(value_type = Option<schema::Time>)]
    last_delivery: Option<Time>,
    failures: u32,
    trouble: Option<String>,
    #[schema(value_type = Option<schema::Time>)]
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
            lease_ends: state.map(|active| active.until),
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
    #[schema(value_type = schema::Time)]
    asked: Time,
    attempts: u32,
    #[schema(value_type = schema::Time)]
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
