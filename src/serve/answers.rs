//! Answers in JSON: the contract's words, whatever the types are called that they are told from. Each is a type that
//! is written and described (OpenAPI) by its derives; an answer of one module alone has its type there.

mod event;
mod feed;
mod options;

pub(super) use event::{EventAnswer, PendingItem};
pub(super) use feed::{
    ActedFeed, FeedAnswer, FeedDetail, FeedViews, HoldAnswer, UnseenChange, retired,
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
