//! Collections as JSON (READINGS 1, row 34) as plain XML, and what their items say in both.

use super::{ITEM_LIMIT, atom_name};
use crate::parse::json::{ITEMS, JsonReader, ObjectPart, Stop};
use crate::parse::out::{LineCounter, Lines, check_length, push_binding, push_copy};
use crate::parse::{Limits, ParseError};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::ops::Range;
use tidegate_core::model::{Format, Markup};
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::ns::{ATOM, FEED_SYNC, Ns};
use tidegate_core::xml::tree::{Element, Node};
use tidegate_core::xml::{push_attribute, push_element, push_empty, push_text, split_name};

/// The namespace of what JSON says and plain XML does not, as it is written in JSON.
const JSON: &str = "urn:tidegate:json";
/// The element with all members of an item but `sync`.
const OBJECT: &str = "object";
/// How deep conflicts are read within conflicts. Deeper ones are left out.
const CONFLICT_DEPTH: usize = 16;

/// The collection in plain XML that says what the object at `start` says; `None` where that is no collection.
pub fn transcoded(text: &str, start: usize, limits: &Limits) -> Result<Option<String>, ParseError> {
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
        Err(Stop::Fault(_)) if is_other => return Ok(None),
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
        return Ok(None);
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
    let (mut out, lines, mut counter) = (String::new(), Lines::of(text), LineCounter::new());
    out.push_str(&format!("<collection xmlns:sx=\"{FEED_SYNC}\" xmlns:json=\"{JSON}\">"));
    for (name, raw) in &head {
        push_member(&mut out, name, &value(raw)?);
    }
    for raw in &items {
        check_length(&out, limits)?;
        counter.reach(&mut out, lines.line(place(raw)));
        if let Value::Object(item) = value(raw)? {
            push_item(&mut out, item, 0);
        }
    }
    out.push_str("</collection>");
    check_length(&out, limits)?;
    Ok(Some(out))
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

/// Adds a member of the collection: as an element of its name where that is known, else as it is.
fn push_member(out: &mut String, name: &str, value: &Value) {
    match (name, plain(value)) {
        (_, None) if value.is_null() => {}
        ("sharing", _) => push_sharing(out, value),
        ("links", _) => {
            for link in list(Some(value)) {
                let part = |name| link.get(name).and_then(Value::as_str);
                if let (Some(rel), Some(href)) = (part("rel"), part("href")) {
                    let said = [("xmlns", Some(ATOM)), ("rel", Some(rel)), ("href", Some(href))];
                    push_empty(out, "link", &said);
                }
            }
        }
        (name, Some(text)) if atom_name(name).is_some() => push_element(out, name, &text),
        (name, _) => {
            out.push_str("<json:member");
            push_attribute(out, "name", name);
            out.push('>');
            push_text(out, &value.to_string());
            out.push_str("</json:member>");
        }
    }
}

/// `sharing` (section 2.2).
fn push_sharing(out: &mut String, value: &Value) {
    push_tag(out, "sx:sharing", value, &["since", "until", "expires"], ">");
    for related in list(value.get("related")) {
        push_tag(out, "sx:related", related, &["link", "title", "type"], "/>");
    }
    out.push_str("</sx:sharing>");
}

/// Adds a tag with those members of a value as attributes that are texts.
fn push_tag(out: &mut String, name: &str, value: &Value, names: &[&str], end: &str) {
    out.push('<');
    out.push_str(name);
    for name in names {
        if let Some(text) = value.get(name).and_then(plain) {
            push_attribute(out, name, &text);
        }
    }
    out.push_str(end);
}

/// Adds an item.
fn push_item(out: &mut String, mut item: Map<String, Value>, depth: usize) {
    let sync = item.remove("sync").filter(Value::is_object);
    // The item's own markup says all that the plain members do.
    let markup = item.get("entry").and_then(Value::as_str).and_then(Doc::read_whole);
    // A member of somebody else may be called so as well.
    let is_ours = |root: &DocElement<'_, '_>| match root.local() {
        "item" => true,
        "entry" => root.ns() == Ns::Atom || root.attribute_of(Ns::Xml, "base").is_some(),
        _ => false,
    };
    let own = markup.as_ref().and_then(Doc::root).filter(is_ours);
    out.push_str("<item");
    if let Some(root) = own {
        push_attributes(out, root);
    }
    out.push('>');
    if let Some(sync) = &sync {
        push_sync(out, sync, depth);
    }
    match own {
        Some(root) => {
            let is_sync = |child: &DocElement<'_, '_>| child.ns().is_sync_markup();
            root.children()
                .filter(|child| !is_sync(child))
                .for_each(|child| push_copy(out, child, ""));
        }
        None => {
            out.push_str("<json:object>");
            push_text(out, &serde_json::to_string(&item).unwrap_or_default());
            out.push_str("</json:object>");
        }
    }
    out.push_str("</item>");
}

/// Adds the attributes of an element, with the bindings of their prefixes.
fn push_attributes(out: &mut String, element: DocElement<'_, '_>) {
    let mut bound: Vec<&str> = Vec::new();
    for attribute in element.attributes() {
        let (prefix, _) = split_name(attribute.name());
        if !prefix.is_empty() && !bound.contains(&prefix) {
            bound.push(prefix);
            push_binding(out, prefix, &element.binding(prefix).unwrap_or_default());
        }
        push_attribute(out, attribute.name(), &attribute.value());
    }
}

/// Adds `sync` (sections 2.4 to 2.6).
fn push_sync(out: &mut String, value: &Value, depth: usize) {
    push_tag(out, "sx:sync", value, &["id", "updates", "deleted", "noconflicts"], ">");
    for update in list(value.get("history")) {
        push_tag(out, "sx:history", update, &["sequence", "when", "by"], "/>");
    }
    let conflicts = list(value.get("conflicts")).filter_map(Value::as_object);
    let mut conflicts = conflicts.filter(|_| depth < CONFLICT_DEPTH).peekable();
    if conflicts.peek().is_some() {
        out.push_str("<sx:conflicts>");
        conflicts.for_each(|conflict| push_item(out, conflict.clone(), depth + 1));
        out.push_str("</sx:conflicts>");
    }
    out.push_str("</sx:sync>");
}

/// The members that an item has as JSON.
#[derive(Debug, Clone)]
pub enum ItemMembers {
    /// All, where the item says what they say.
    Whole(Map<String, Value>),
    /// Of an item that was edited in other words since: those that it has no other words for.
    Others(Map<String, Value>),
}

impl ItemMembers {
    /// Those of an item, or of an entry that was made of one; `None` where it never was JSON.
    pub fn of(markup: &Markup) -> Option<Self> {
        if !markup.xml.contains(OBJECT) {
            return None;
        }
        let item = super::item(markup)?;
        let mut members = object(item.find(JSON, OBJECT)?)?;
        let plain = plain_elements(&members, &item.namespace);
        if markup.format == Format::Collection && other_elements(&item).eq(&plain) {
            return Some(Self::Whole(members));
        }
        members.retain(|name, value| elements_of(name, value, "").is_none());
        Some(Self::Others(members))
    }
}

fn object(element: &Element) -> Option<Map<String, Value>> {
    serde_json::from_str(&element.content()).ok()
}

/// An item with what plain XML can say of its members, where it has nothing but these.
pub fn with_plain_elements(mut item: Element) -> Element {
    let members = item.find(JSON, OBJECT).and_then(object);
    if let Some(members) = members.filter(|_| other_elements(&item).next().is_none()) {
        let plain = plain_elements(&members, &item.namespace).into_iter().map(Node::Element);
        item.children.splice(0..0, plain);
    }
    item
}

/// What an item has beside its members. An aggregate adds the source of each of its items.
fn other_elements(item: &Element) -> impl Iterator<Item = &Element> {
    let is_sync = |e: &Element| Ns::of(&e.namespace).is_some_and(Ns::is_sync_markup);
    let is_other = move |e: &&Element| !e.is(JSON, OBJECT) && !e.is(ATOM, "source") && !is_sync(e);
    item.elements().filter(is_other)
}

/// What members say in elements of plain XML.
fn plain_elements(members: &Map<String, Value>, namespace: &str) -> Vec<Element> {
    members
        .iter()
        .filter_map(|(name, value)| elements_of(name, value, namespace))
        .flatten()
        .collect()
}

/// The same of one; `None` where it says something else, or more.
fn elements_of(name: &str, value: &Value, namespace: &str) -> Option<Vec<Element>> {
    let part = |value: &Value, name| value.get(name).and_then(plain);
    let only =
        |name| value.as_object().filter(|all| all.len() == 1).and_then(|_| part(value, name));
    let element = |name, text: String| Element::new(namespace, name).text(&text);
    let text = match name {
        "categories" | "tags" | "category" => {
            let texts = list(Some(value)).map(plain);
            return texts.map(|text| Some(element("category", text?))).collect();
        }
        "enclosures" | "enclosure" => {
            let file = |one: &Value| {
                let url = part(one, "url")?;
                let (kind, length) = (part(one, "type"), part(one, "length"));
                let known = [("type", kind.as_deref()), ("length", length.as_deref())];
                Some(Element::new(namespace, "enclosure").with("url", &url).with_known(&known))
            };
            return list(Some(value)).map(file).collect();
        }
        "author" if value.is_object() => only("name"),
        "link" if value.is_object() => only("href"),
        name if atom_name(name).is_some() => plain(value),
        _ => None,
    };
    // An element without text is none that can be told from another.
    text.filter(|text| !text.is_empty()).map(|text| vec![element(name, text)])
}
