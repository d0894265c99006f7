//! `GET /api/v1/openapi.json`: what this gateway answers, in OpenAPI 3.1, derived from the table of routes, the handlers
//! and the types of their answers and parameters.
//!
//! What holds for all operations and all types, and is therefore said of none of them: where a token is needed, what
//! is refused, which parts a path has, and that an object has the members that are described and no others.

use super::answers::ActedFeed;
use super::{Problem, SharedState, answers, event_streams, html, routes};
use axum::extract::State;
use axum::response::Response as Answer;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_status::schema;
use tidegate_status::schema::text;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};
use utoipa::{IntoResponses, OpenApi, PartialSchema};

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
pub(super) async fn document(State(app): State<SharedState>, request_headers: HeaderMap) -> Answer {
    let describe = || api_description(&app.site.at("")).to_string().into();
    let text = app.description.get_or_init(describe).clone();
    html::whole(&request_headers, "application/json", "public, max-age=3600", text)
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

/// Where the schemas are.
const SCHEMAS: &str = "#/components/schemas/";
/// Schemas that no operation refers to: OpenAPI 3.1 cannot say what each line of a body is.
const LINES: [&str; 1] = ["ChangeLine"];

/// Finishes the document of a gateway at this address.
pub(super) fn finish(document: &mut Value, base: &str) {
    if let Some(info) = document.get_mut("info").and_then(Value::as_object_mut) {
        let summary = "A gateway that gives plain Atom and RSS feeds memory";
        info.insert("summary".to_owned(), summary.into());
    }
    document["servers"] = json!([{ "url": base }]);
    document["security"] = json!([{ "token": [] }]);
    let mut paths = document["paths"].take();
    for (path, item) in paths.as_object_mut().into_iter().flatten() {
        finish_path(path, item);
    }
    let schemas = document.pointer_mut("/components/schemas");
    let mut schemas = schemas.map(Value::take).unwrap_or_default();
    if let Value::Object(schemas) = &mut schemas {
        finish_schemas(schemas, &mut paths);
    }
    each_object(&mut paths, &mut remove_integer_format);
    each_object(&mut schemas, &mut remove_integer_format);
    let responses = refusals().map(|(name, response)| (name.to_owned(), answers::value(&response)));
    document["paths"] = paths;
    document["components"] = json!({
        "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        "responses": Map::from_iter(responses),
        "schemas": schemas,
    });
}

/// The operations at a path: what names it, who may ask, and what else is answered.
fn finish_path(path: &str, item: &mut Value) {
    let is_open = !routes::needs_token(path);
    for operation in item.as_object_mut().into_iter().flatten().map(|(_, operation)| operation) {
        operation["tags"] = json!([if is_open { "reading" } else { "administration" }]);
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            // A parameter is absent or has a value, and is never null.
            forbid_null(&mut parameter["schema"]);
        }
        if let Some(content) = operation.pointer_mut("/requestBody/content") {
            let kinds = content.as_object_mut().into_iter().flatten();
            kinds.for_each(|(_, content)| forbid_null(&mut content["schema"]));
        }
        if is_open {
            operation["security"] = json!([]);
        }
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            let mut add = |code: &str, name| {
                let named = json!({ "$ref": format!("#/components/responses/{name}") });
                responses.insert(code.to_owned(), named);
            };
            add("default", "Problem");
            if !is_open {
                add("401", "Unauthorized");
            }
        }
    }
    let name = |schema| ("name", "The name of a feed.", schema);
    let mut parts = Vec::new();
    if path.contains("{name}") {
        parts.push(part(name(answers::value(&schema::FeedName::schema()))));
    }
    if path.contains("/archive/{id}") {
        let id = text().min_length(Some(1)).max_length(Some(64)).build();
        parts.push(part(("id", "The id of an archive, from a link.", answers::value(&id))));
    } else if path.contains("{id}") {
        let id = answers::value(&schema::SyncId::schema());
        parts.push(part(("id", "The sync id of an item.", id)));
    }
    if !parts.is_empty() {
        item["parameters"] = json!(parts);
    }
}

fn part((name, about, schema): (&str, &str, Value)) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

/// Takes null out of what a value may be.
fn forbid_null(schema: &mut Value) {
    if let Some(kinds) = schema.get("type").and_then(Value::as_array) {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned();
        schema["type"] = kind.unwrap_or_default();
    }
    let choices = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let mut others = choices.filter(|choice| choice["type"] != "null");
    if let (Some(one), None) = (others.next(), others.next()) {
        *schema = one.clone();
    }
}

/// Makes one object of what is flattened into it, says which members are always there, and leaves out what nothing
/// refers to.
fn finish_schemas(schemas: &mut Map<String, Value>, paths: &mut Value) {
    let parts = schemas.clone();
    for value in schemas.values_mut().chain([&mut *paths]) {
        each_object(value, &mut |object| flatten(object, &parts));
    }
    let mut sent = BTreeSet::new();
    for operation in paths.as_object().into_iter().flatten().flat_map(|(_, item)| item.as_object())
    {
        let bodies = operation.values().filter_map(|operation| operation.get("requestBody"));
        bodies.for_each(|body| add_references(body, schemas, &mut sent));
    }
    for (name, schema) in schemas.iter_mut() {
        let is_sent = sent.contains(name);
        each_object(schema, &mut |object| close_object(object, is_sent));
    }
    let mut named = BTreeSet::new();
    let lines = LINES.map(|name| json!({ "$ref": format!("{SCHEMAS}{name}") }));
    lines.iter().chain([&*paths]).for_each(|value| add_references(value, schemas, &mut named));
    named.insert("Problem".to_owned());
    schemas.retain(|name, _| named.contains(name));
}

/// Does something with each object of a value, those within it first.
fn each_object(value: &mut Value, act: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| each_object(value, act)),
        Value::Object(object) => {
            object.values_mut().for_each(|value| each_object(value, act));
            act(object);
        }
        _ => {}
    }
}

/// The name of the schema that a value refers to.
fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()?.strip_prefix(SCHEMAS)
}

/// Adds the schemas that a value refers to, and those to which they refer.
fn add_references(value: &Value, schemas: &Map<String, Value>, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|it| add_references(it, schemas, found)),
        Value::Object(object) => {
            if let Some(name) = reference(value)
                && found.insert(name.to_owned())
                && let Some(schema) = schemas.get(name)
            {
                add_references(schema, schemas, found);
            }
            object.values().for_each(|value| add_references(value, schemas, found));
        }
        _ => {}
    }
}

/// Puts the members of all parts of an object (`allOf`) together.
fn flatten(object: &mut Map<String, Value>, schemas: &Map<String, Value>) {
    let Some(Value::Array(parts)) = object.remove("allOf") else { return };
    for mut part in parts {
        if let Some(named) = reference(&part).and_then(|name| schemas.get(name)) {
            part = named.clone();
            each_object(&mut part, &mut |object| flatten(object, schemas));
            part.as_object_mut().map(|part| part.remove("description"));
        }
        for (key, value) in part.as_object().into_iter().flatten() {
            match (object.get_mut(key), value) {
                (Some(Value::Object(all)), Value::Object(more)) => all.extend(more.clone()),
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more.iter().cloned()),
                (Some(_), _) => {}
                (None, value) => drop(object.insert(key.clone(), value.clone())),
            }
        }
    }
}

/// Removes the `format` of an integer: the width of the Rust type may be narrower than the numbers that are written.
fn remove_integer_format(object: &mut Map<String, Value>) {
    let is_integer = |kind: &Value| kind == "integer";
    let kinds = object.get("type").and_then(Value::as_array).map(Vec::as_slice);
    let is_one = kinds.is_some_and(|kinds| kinds.iter().any(is_integer));
    if is_one || object.get("type").is_some_and(is_integer) {
        object.remove("format");
    }
}

/// Sets `additionalProperties: false` on an object. In answers (not `is_sent`: never sent by clients) also makes
/// nullable members `required`, since they are written as null.
fn close_object(object: &mut Map<String, Value>, is_sent: bool) {
    let Some(Value::Object(members)) = object.get("properties") else { return };
    let nullable = members.iter().filter(|(_, member)| is_nullable(member));
    let mut required: BTreeSet<String> = nullable.map(|(name, _)| name.clone()).collect();
    if is_sent {
        required.clear();
    }
    let others = object.get("required").and_then(Value::as_array);
    required.extend(others.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    object.entry("additionalProperties").or_insert(json!(false));
}

fn is_nullable(schema: &Value) -> bool {
    let has_null = |key: &str| {
        let choices = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        choices.into_iter().any(|choice| choice == "null" || choice["type"] == "null")
    };
    has_null("type") || has_null("oneOf")
}
