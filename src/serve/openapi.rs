//! `GET /api/v1/openapi.json`: what this gateway answers, in OpenAPI 3.1, derived from the table of routes, the handlers
//! and the types of their answers and parameters.

use super::address::Site;
use super::answers::{self, ActedFeed};
use super::problem::Problem;
use super::{SharedState, event_streams, html, routes};
use axum::extract::State;
use axum::response::Response as Answer;
use bytes::Bytes;
use finish::finish;
use http::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tidegate_status::schema::text;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};
use utoipa::{IntoResponses, OpenApi};

mod finish;

/// Where it is. Anybody may read it.
pub(super) const ROUTE: &str = "/api/v1/openapi.json";

/// What is described: all but pages for people and what specifications of their own say.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidegate",
        description = "Administration and what programs read. Addresses of people's pages and of the protocols \
                       WebSub and rssCloud are not described here. HEAD is answered where GET is.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "administration", description = "Needs the admin token."),
        (name = "reading", description = "For everybody.")
    ),
    components(schemas(Problem, event_streams::EpochLine))
)]
struct Api;

/// The document of this gateway, once somebody has asked for it.
pub(super) struct ApiDescription {
    base: String,
    text: OnceLock<Bytes>,
}

impl ApiDescription {
    /// The document of a gateway at this address.
    pub(super) fn new(site: &Site) -> Self {
        Self { base: site.at(""), text: OnceLock::new() }
    }

    fn text(&self) -> Bytes {
        self.text.get_or_init(|| api_description(&self.base).to_string().into()).clone()
    }
}

/// What a gateway at this address answers, in OpenAPI.
pub fn api_description(base: &str) -> Value {
    let mut document = Api::openapi();
    routes::describe(&mut document);
    let mut document = answers::value(&document);
    finish(&mut document, base);
    document
}

/// This document.
#[utoipa::path(get, path = ROUTE, operation_id = "describeApi", responses(
    (status = 200, description = "OpenAPI 3.1.", body = Object),
    Unchanged,
))]
pub(super) async fn document(State(room): State<SharedState>, asked: HeaderMap) -> Answer {
    html::whole(&asked, "application/json", "public, max-age=3600", room.description.text())
}

type Responses = BTreeMap<String, RefOr<Response>>;

/// Answers that several operations give, each with its status.
macro_rules! responses {
    ($($name:ident: $status:literal $response:expr;)*) => { $(
        pub(super) struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                BTreeMap::from([(stringify!($status).to_owned(), $response.into())])
            }
        }
    )* };
}

responses! {
    ActedOn: 200 answer_of::<ActedFeed>("The feed afterwards.");
    Unchanged: 304 ResponseBuilder::new().description("It is as it was.");
    BadRequest: 400 Ref::from_response_name("Problem");
    NotFound: 404 Ref::from_response_name("Problem");
    Conflict: 409 Ref::from_response_name("Problem");
    Gone: 410 Ref::from_response_name("Problem");
    Stale: 412 Ref::from_response_name("Problem");
    Unprocessable: 422 Ref::from_response_name("Problem");
    Later: 503 Ref::from_response_name("Later");
    ReaderDocument: 200 feed_document("The current items in the publisher's order.")
        .content("text/html", content(text()));
    SyncDocument: 200 feed_document("Items and tombstones within the window.");
    CompleteDocument: 200 feed_document("The complete feed.");
    ArchivedDocument: 200 feed_document("The archive.");
    Delta: 226 feed_document("What changed since the representation of `If-None-Match` (RFC 3229).");
}

fn content(schema: impl Into<RefOr<utoipa::openapi::Schema>>) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

fn answer_of<T: utoipa::ToSchema>(about: &str) -> ResponseBuilder {
    let schema = Ref::from_schema_name(T::name());
    ResponseBuilder::new().description(about).content("application/json", content(schema))
}

/// A feed document in any container.
fn feed_document(about: &str) -> ResponseBuilder {
    let object = || ObjectBuilder::new().schema_type(Type::Object);
    let response = ResponseBuilder::new()
        .description(about)
        .content("application/json", content(object()))
        .content("application/feed+json", content(object()));
    let kinds = ["application/atom+xml", "application/rss+xml", "application/xml", "text/x-opml"];
    let response =
        kinds.iter().fold(response, |response, kind| response.content(*kind, content(text())));
    let headers = ["ETag", "Last-Modified", "X-SUP-ID", "Link"];
    headers.iter().fold(response, |response, name| {
        response.header(*name, HeaderBuilder::new().schema(Some(text())).build())
    })
}

/// What is answered instead, whatever is asked.
fn refusals() -> [(&'static str, Response); 3] {
    let problem = |about: &str| {
        let schema = Ref::from_schema_name("Problem");
        let response = ResponseBuilder::new().description(about);
        response.content("application/problem+json", content(schema))
    };
    let header = |about: Option<&str>, schema: ObjectBuilder| {
        HeaderBuilder::new().schema(Some(schema)).description(about).build()
    };
    let later = "Not now: what is asked for is not there yet, or cannot be read just now.";
    let seconds = header(Some("In seconds."), text().pattern(Some("^[0-9]+$")));
    let unauthorized = problem("The token is missing or wrong.");
    [
        ("Problem", problem("What went wrong.").build()),
        ("Later", problem(later).header("Retry-After", seconds).build()),
        ("Unauthorized", unauthorized.header("WWW-Authenticate", header(None, text())).build()),
    ]
}
