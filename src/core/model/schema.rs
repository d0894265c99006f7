//! How values are written in the description of the API (OpenAPI): each under one name, with its form.

use super::{FeedName, SyncId, Tick, Time};
use std::borrow::Cow;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

fn text(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(about))
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        text("UTC.").format(Some(format)).examples(["2026-11-20T16:20:05Z"]).into()
    }
}

impl ToSchema for Time {}

impl PartialSchema for Tick {
    fn schema() -> RefOr<Schema> {
        Time::schema()
    }
}

impl ToSchema for Tick {
    fn name() -> Cow<'static, str> {
        Time::name()
    }
}

impl PartialSchema for FeedName {
    fn schema() -> RefOr<Schema> {
        let pattern = Some("^[a-z0-9][a-z0-9-]{0,63}$");
        text("The name under which a feed is published.").pattern(pattern).examples(["news"]).into()
    }
}

impl ToSchema for FeedName {}

impl PartialSchema for SyncId {
    fn schema() -> RefOr<Schema> {
        let about = "The sync id of an item, which never changes.";
        text(about).min_length(Some(1)).max_length(Some(500)).into()
    }
}

impl ToSchema for SyncId {}
