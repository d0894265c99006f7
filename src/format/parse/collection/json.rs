//! Collections as JSON (READINGS 1, row 34).

use super::{CollectionFile, Fields, HTML, ITEM_LIMIT, ItemWriter};
use crate::parse::json::{ITEMS, JsonReader, ObjectPart, Stop};
use crate::parse::out::{Lines, Out};
use crate::parse::{Limits, ParseError};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::ops::Range;
use tidegate_core::model::Time;
use tidegate_core::sync_markup::collection_item;
use tidegate_core::xml::doc::Doc;
use tidegate_core::xml::ns::{ATOM, FEED_SYNC, Ns};

/// The namespace of members that mean nothing in Atom, kept as they are.
const MEMBER: &str = "urn:tidegate:json";
/// How deep conflicts are read within conflicts. Deeper ones are left out.
const CONFLICT_DEPTH: usize = 16;

/// Writes the collection that the object at `start` is; `false` where it is none.
pub fn write(out: &mut Out, text: &str, start: usize, limits: &Limits) -> Result<bool, ParseError> {
    let limit = ITEM_LIMIT.min(limits.entries);
    let (mut head, mut items) = (Vec::new(), Vec::new());
    // `is_other`: it is no collection.
    let (mut has_items, mut is_other) = (false, false);
    let mut reader = JsonReader { text, at: start + 1 };
    let read = reader.object(ITEMS, |part| {
        match part {
            ObjectPart::Member(name, value) => {
                is_other = name == "version" && value.get().contains("jsonfeed.org")
                    || head.len() >= limits.head_values;
                if is_other {
                    return Err(Stop::Fault(String::new()));
                }
                head.push((name.into_owned(), value));
            }
            ObjectPart::Items(_) => has_items = true,
            ObjectPart::Item(_, Range { start: at, .. }) if items.len() >= limit => {
                return Err(Stop::Refuse(ParseError::Limit { what: "items", limit, at }));
            }
            ObjectPart::Item(value, _) => items.push(value),
        }
        Ok(())
    });
    let torn = match read {
        Ok(()) => None,
        Err(Stop::Refuse(error)) => return Err(error),
        Err(Stop::Fault(_)) if is_other => return Ok(false),
        Err(Stop::Fault(_)) => Some(reader.at),
    };
    let place = |value: &RawValue| value.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let value = |raw: &RawValue| {
        let said = |error: serde_json::Error| ParseError::NothingWhole {
            reason: format!("a member cannot be read: {error}"),
            at: place(raw),
        };
        serde_json::from_str::<Value>(raw.get()).map_err(said)
    };
    // A collection need not have items yet (section 2.2).
    let is_empty = torn.is_none() && has_items && items.is_empty();
    let mut shares = is_empty || head.iter().any(|(name, _)| name == "sharing");
    // Items are read twice, so that no more than one of them is in memory as values.
    for item in &items {
        shares = shares || value(item)?.get("sync").is_some_and(Value::is_object);
    }
    if !shares {
        return Ok(false);
    }
    // Its items would be taken for plain ones of a JSON Feed.
    if let Some(at) = torn {
        let reason = "the collection is broken or ends early".to_owned();
        return Err(ParseError::NothingWhole { reason, at });
    }
    let all = head.iter().map(|(_, value)| value).chain(&items);
    if let Some(large) = all.into_iter().find(|value| value.get().len() > limits.entry) {
        let (limit, at) = (limits.entry, place(large));
        return Err(ParseError::Limit { what: "bytes in one member", limit, at });
    }
    let lines = Lines::of(text);
    out.push(&format!("<feed xmlns=\"{ATOM}\">"));
    let mut fields = Fields::default();
    for (name, raw) in &head {
        push_member(out, &mut fields, name, &value(raw)?);
    }
    fields.write_head(out);
    for raw in &items {
        out.at(lines.line(place(raw)));
        if let Value::Object(item) = value(raw)? {
            entry(out, &item, 0);
        }
    }
    out.push("</feed>");
    Ok(true)
}

/// A text, or a number or boolean where one is expected.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What stands in a list, or the one thing that stands in its place.
fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    let many = value.and_then(Value::as_array).map(Vec::as_slice);
    let one = value.filter(|value| !value.is_array() && !value.is_null());
    many.unwrap_or_default().iter().chain(one)
}

/// Adds a member of the collection, or takes it as a field.
fn push_member(out: &mut Out, fields: &mut Fields, name: &str, value: &Value) {
    match (name, plain(value)) {
        ("sharing", _) => sharing(out, value),
        ("links", _) => {
            for link in list(Some(value)) {
                let part = |name| link.get(name).and_then(Value::as_str);
                if let (Some(rel), Some(href)) = (part("rel"), part("href")) {
                    out.link(&[("rel", rel), ("href", href)]);
                }
            }
        }
        ("description", Some(text)) => out.element("subtitle", HTML, &text),
        (name, Some(text)) if fields.take(name, &text) => {}
        (name, _) => member(out, name, value),
    }
}

/// `sharing` (section 2.2).
fn sharing(out: &mut Out, value: &Value) {
    out.push("<sx:sharing");
    out.attribute("xmlns:sx", FEED_SYNC);
    attributes(out, value, &["since", "until", "expires"]);
    out.push(">");
    for related in list(value.get("related")) {
        out.push("<sx:related");
        attributes(out, related, &["link", "title", "type"]);
        out.push("/>");
    }
    out.push("</sx:sharing>");
}

fn attributes(out: &mut Out, value: &Value, names: &[&str]) {
    for name in names {
        if let Some(text) = value.get(name).and_then(plain) {
            out.attribute(name, &text);
        }
    }
}

/// Adds an item.
fn entry(out: &mut Out, item: &Map<String, Value>, depth: usize) {
    let start = out.len();
    let sync = item.get("sync").filter(|sync| sync.is_object());
    let sync_id = sync.and_then(|sync| sync.get("id")).and_then(plain);
    // The item's own markup says all that the plain members do.
    let markup = item.get("entry").and_then(Value::as_str);
    if let Some(doc) = markup.and_then(Doc::read_whole)
        && let Some(root) = doc.root()
    {
        // A member of somebody else may be called so as well.
        let is_ours = root.local() == "item"
            || root.local() == "entry"
                && (root.ns() == Ns::Atom || root.attribute_of(Ns::Xml, "base").is_some());
        if is_ours {
            let own = if root.ns() == Ns::Atom { Ns::None } else { root.ns() };
            let mut writer = ItemWriter { out, own, lines: None };
            writer.begin(root);
            push_sync(writer.out, sync, depth);
            writer.content(root, Fields::default(), sync_id.as_deref(), false);
            writer.out.push("</entry>");
            return;
        }
    }
    out.push("<entry>");
    push_sync(out, sync, depth);
    let changed = sync.and_then(changed);
    let mut fields = Fields { changed, ..Fields::default() };
    let mut own = item.clone();
    own.remove("sync");
    let mut words = own.clone();
    words.retain(|name, value| takes(&mut fields, name, value));
    fields.write(out, sync_id.as_deref());
    let words: Vec<&str> = words.keys().map(String::as_str).collect();
    let mut text = String::new();
    tidegate_core::xml::push_text(&mut text, &Value::Object(own).to_string());
    out.keep(start, collection_item::JSON, &words, &text);
    out.push("</entry>");
}

/// When an item was last changed, as its history says.
fn changed(sync: &Value) -> Option<Time> {
    let mut times = list(sync.get("history")).filter_map(|update| update.get("when")?.as_str());
    times.find_map(|when| Time::parse_rfc3339(when).ok())
}

/// Whether a member of an item was taken as a field.
fn takes(fields: &mut Fields, name: &str, value: &Value) -> bool {
    let part = |value: &Value, name| value.get(name).and_then(plain);
    let only =
        |name| value.as_object().filter(|all| all.len() == 1).and_then(|_| part(value, name));
    match name {
        "categories" | "tags" | "category" => {
            let names: Option<Vec<String>> = list(Some(value)).map(plain).collect();
            let is_taken = names.is_some();
            fields.categories.extend(names.into_iter().flatten());
            is_taken
        }
        "enclosures" | "enclosure" => {
            let read = |one: &Value| {
                let (kind, length) = (part(one, "type"), part(one, "length"));
                Some(CollectionFile { url: part(one, "url")?, kind, length })
            };
            let files: Option<Vec<CollectionFile>> = list(Some(value)).map(read).collect();
            let is_taken = files.is_some();
            fields.enclosures.extend(files.into_iter().flatten());
            is_taken
        }
        "author" if value.is_object() => only("name").is_some_and(|text| fields.take(name, &text)),
        "link" if value.is_object() => only("href").is_some_and(|text| fields.take(name, &text)),
        name => plain(value).is_some_and(|text| fields.take(name, &text)),
    }
}

/// Adds `sync` (sections 2.4 to 2.6), where there is one.
fn push_sync(out: &mut Out, sync: Option<&Value>, depth: usize) {
    let Some(value) = sync else { return };
    out.push("<sx:sync");
    out.attribute("xmlns:sx", FEED_SYNC);
    attributes(out, value, &["id", "updates", "deleted", "noconflicts"]);
    out.push(">");
    for update in list(value.get("history")) {
        out.push("<sx:history");
        attributes(out, update, &["sequence", "when", "by"]);
        out.push("/>");
    }
    let conflicts = list(value.get("conflicts")).filter_map(Value::as_object);
    let mut conflicts = conflicts.filter(|_| depth < CONFLICT_DEPTH).peekable();
    if conflicts.peek().is_some() {
        out.push("<sx:conflicts>");
        for conflict in conflicts {
            entry(out, conflict, depth + 1);
        }
        out.push("</sx:conflicts>");
    }
    out.push("</sx:sync>");
}

/// Adds a member as foreign markup: its name and its value as JSON.
fn member(out: &mut Out, name: &str, value: &Value) {
    if value.is_null() {
        return;
    }
    out.push("<json:member");
    out.attribute("xmlns:json", MEMBER);
    out.attribute("name", name);
    out.push(">");
    out.text(&value.to_string());
    out.push("</json:member>");
}
