//! What holds for all operations and all types, and is therefore said of none of them: where a token is needed, what
//! is refused, which parts a path has, and that an object has the members that are described and no others.

use super::refusals;
use crate::{answers, routes};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tidegate_status::schema::{self, text};
use utoipa::PartialSchema;

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
    each_object(&mut paths, &mut widen);
    each_object(&mut schemas, &mut widen);
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
            // It is left out or has a value.
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
    let mut taken = BTreeSet::new();
    for operation in paths.as_object().into_iter().flatten().flat_map(|(_, item)| item.as_object())
    {
        let bodies = operation.values().filter_map(|operation| operation.get("requestBody"));
        bodies.for_each(|body| add_references(body, schemas, &mut taken));
    }
    for (name, schema) in schemas.iter_mut() {
        let is_taken = taken.contains(name);
        each_object(schema, &mut |object| close(object, is_taken));
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

/// Takes the width of an integer away: that of the type which it is told from may be narrower than what is written.
fn widen(object: &mut Map<String, Value>) {
    let is_integer = |kind: &Value| kind == "integer";
    let kinds = object.get("type").and_then(Value::as_array).map(Vec::as_slice);
    let is_one = kinds.is_some_and(|kinds| kinds.iter().any(is_integer));
    if is_one || object.get("type").is_some_and(is_integer) {
        object.remove("format");
    }
}

/// Says of an object that it has no other members, and of an answer, which is no part of what is `taken` from clients,
/// that it has those that may be null: as null.
fn close(object: &mut Map<String, Value>, is_taken: bool) {
    let Some(Value::Object(members)) = object.get("properties") else { return };
    let nullable = members.iter().filter(|(_, member)| is_nullable(member));
    let mut required: BTreeSet<String> = nullable.map(|(name, _)| name.clone()).collect();
    if is_taken {
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
