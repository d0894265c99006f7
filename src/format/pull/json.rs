//! The merged feed where LOCAL is a collection in JSON: what is not concerned keeps its members.

use super::item::ReplicaItem;
use super::merge::MergeOutcome;
use crate::parse::sse::{Payload, SseFeed};
use crate::render::{self, collection_item::CollectionItem};
use serde_json::{Map, Value};
use tidegate_core::model::{Shared, Version};
use tidegate_core::xml;

/// LOCAL's `collection`, which was read as `feed`, with what the merge changed.
pub(super) fn merged(
    mut collection: Value,
    feed: &SseFeed<'_>,
    mut outcome: MergeOutcome,
) -> String {
    let mut items = collection.get_mut("items").map(Value::take).unwrap_or_default();
    let old = items.as_array_mut().map(std::mem::take).unwrap_or_default();
    // What is no object was no item.
    let (objects, rest): (Vec<_>, Vec<_>) = old.into_iter().partition(Value::is_object);
    let mut new = Vec::with_capacity(objects.len());
    for (object, read) in objects.into_iter().zip(&feed.items) {
        let changed = outcome.changed.remove(&read.element).and_then(ReplicaItem::into_sse);
        new.push(match changed {
            Some(changed) => {
                let shared = read.any().and_then(Result::ok);
                item(&changed, shared.as_ref().map(|shared| (&object, shared)))
            }
            None => object,
        });
    }
    let added = outcome.new.into_iter().filter_map(ReplicaItem::into_sse);
    new.extend(added.map(|shared| item(&shared, None)));
    new.extend(rest);
    if let Some(collection) = collection.as_object_mut() {
        collection.insert("items".to_owned(), Value::Array(new));
    }
    let mut out = collection.to_string();
    out.push('\n');
    out
}

/// A shared item. `before`: the one that it takes the place of, and what that shared. A version that
/// was there keeps its members.
fn item(shared: &Shared<Payload>, before: Option<(&Value, &Shared<Payload>)>) -> Value {
    let known = |version: &Version<Payload>| -> Option<Value> {
        let (object, shared) = before?;
        if shared.winner.data == version.data {
            return Some(object.clone());
        }
        let place = shared.conflicts.iter().position(|lost| lost.data == version.data)?;
        object.get("sync")?.get("conflicts")?.get(place).cloned()
    };
    let one = |version: &Version<Payload>, conflicts: Vec<Value>| {
        let mut object = match known(version) {
            Some(Value::Object(object)) => object,
            _ => plain(&version.data),
        };
        object.insert("sync".to_owned(), render::sync_object(version, conflicts));
        Value::Object(object)
    };
    let conflicts = shared.conflicts.iter().map(|lost| one(lost, Vec::new())).collect();
    one(&shared.winner, conflicts)
}

/// What a payload says: its values, and its markup.
fn plain(payload: &Payload) -> Map<String, Value> {
    // What came out of a collection goes into one as it came.
    let markup = super::convert::markup(payload);
    if let Some(CollectionItem::Json(members)) = CollectionItem::from_entry(&markup) {
        return members;
    }
    let values = &payload.values;
    let mut object = Map::new();
    let date = values.date.map(|date| date.to_string());
    for (name, value) in [
        ("title", &values.title),
        ("id", &values.id),
        ("link", &values.link),
        ("author", &values.author),
        ("updated", &date),
    ] {
        if let Some(value) = value {
            object.insert(name.to_owned(), value.clone().into());
        }
    }
    if let Some(text) = &values.text {
        let name = if values.html { "description" } else { "content" };
        object.insert(name.to_owned(), text.clone().into());
    }
    object.insert("entry".to_owned(), alone(payload).into());
    object
}

/// The markup of a payload with all that it needs.
fn alone(payload: &Payload) -> String {
    let (name, rest, after) = payload.parts();
    let mut out = name.to_owned();
    for (prefix, uri) in &payload.needs {
        // Nothing is around it that would have to be undone.
        if !uri.is_empty() {
            xml::push_namespace(&mut out, prefix, uri);
        }
    }
    let inherited = [("xml:base", &payload.base), ("xml:lang", &payload.lang)];
    let own = [payload.has_base, payload.has_lang];
    for ((name, value), _) in inherited.iter().zip(own).filter(|(_, own)| !own) {
        if let Some(value) = value {
            xml::push_attribute(&mut out, name, value);
        }
    }
    out.push_str(rest);
    out.push_str(after);
    out
}
