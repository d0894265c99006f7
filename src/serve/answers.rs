//! Answers in JSON: the contract's words, whatever the types are called that they are told from. Each is a type that
//! is written and described (OpenAPI) by its derives; an answer of one module alone has its type there.

mod feed;
mod options;

pub(super) use feed::{
    ActedFeed, BackfillAnswer, FeedAnswer, FeedDetail, FeedViews, HoldAnswer, UnseenChange, retired,
};
pub(super) use options::{
    FeedPatch, Interval, NewFeed, ShownOptions, TakenSettings, True, duration,
};

use axum::Json;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use tidegate_core::model::{Event, EventKind, Evidence, Probe, SyncId, Tick, Time};
use tidegate_judge::PendingAbsence;
use tidegate_status::describe;
use tidegate_status::schema::{self, words};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// An answer as a value, whose keys are in order. Texts, numbers, and lists and objects of them can always be written.
pub(super) fn value(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}

/// The text of an answer.
pub(super) fn text(answer: &impl Serialize) -> Bytes {
    value(answer).to_string().into()
}

/// An answer that nobody keeps.
pub(super) fn answer(status: StatusCode, answer: &impl Serialize) -> Response {
    let keep = [(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, keep, Json(value(answer))).into_response()
}

/// The description of an object that may have a member.
pub(super) fn optional(name: &str, value: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).property(name, value)
}

/// The description of an object that has a member.
pub(super) fn object(name: &str, value: impl Into<RefOr<Schema>>) -> ObjectBuilder {
    optional(name, value).required(name)
}

describe! {
    /// Whether the item is there.
    Heard: words(["gone", "there"]);
}

/// Something that happened to an item, with its reason.
#[derive(Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct EventAnswer {
    pub(super) kind: EventKind,
    pub(super) sync_id: SyncId,
    pub(super) native_id: String,
    /// Of an item that was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    old_native_id: Option<String>,
    pub(super) title: String,
    /// The tick of the version that it made, where it made one.
    tick: Option<Tick>,
    pub(super) reason: String,
    pub(super) at: Time,
    /// When the item was first seen missing, where its deletion was confirmed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schema::Time, required = false)]
    seen_gone: Option<Time>,
}

impl From<&Event> for EventAnswer {
    fn from(event: &Event) -> Self {
        let Event { kind, id, native_id, old_native_id, title, tick, reason, at, seen_gone } =
            event.clone();
        Self { kind, sync_id: id, native_id, old_native_id, title, tick, reason, at, seen_gone }
    }
}

/// An item that is missing with nothing concluded yet.
#[derive(Serialize, ToSchema)]
pub(super) struct PendingItem {
    pub(super) sync_id: SyncId,
    pub(super) native_id: String,
    pub(super) title: String,
    pub(super) evidence: Evidence,
    pub(super) reason: String,
    since: Time,
    observations: u32,
    needed: u32,
    decides_at: Time,
    would: &'static str,
    probe: Option<ProbeReport>,
    pub(super) words: String,
}

impl From<&PendingAbsence> for PendingItem {
    fn from(pending: &PendingAbsence) -> Self {
        Self {
            sync_id: pending.id.clone(),
            native_id: pending.native_id.clone(),
            title: pending.title.clone(),
            evidence: pending.evidence,
            reason: pending.seen.clone(),
            since: pending.since,
            observations: pending.observations,
            needed: pending.needed,
            decides_at: pending.decides_at,
            would: pending.would.name(),
            probe: pending.probe.as_ref().map(ProbeReport::from),
            words: pending.describe(),
        }
    }
}

/// What a missing item's own address said.
#[derive(Serialize, ToSchema)]
#[schema(as = ProbeAnswer)]
struct ProbeReport {
    asked: u32,
    last: Time,
    #[schema(value_type = Option<Heard>)]
    answer: Option<&'static str>,
    status: Option<u16>,
    since: Option<Time>,
    silence: Option<String>,
}

impl From<&Probe> for ProbeReport {
    fn from(probe: &Probe) -> Self {
        Self {
            asked: probe.asked,
            last: probe.last,
            answer: probe.heard.map(|heard| if heard.gone { "gone" } else { "there" }),
            status: probe.heard.map(|heard| heard.status),
            since: probe.heard.map(|heard| heard.first),
            silence: probe.silence.clone(),
        }
    }
}
