//! Collections as JSON (FeedSync for Collections; READINGS 1, row 34).
//!
//! Values are texts, numbers and booleans among them, as in the examples. What an item says stands
//! in plain members, and whole, with its markup, in `entry`. One that came as JSON has the members
//! that it came with.

use super::collection::{CollectionItem, ShownVersion};
use super::convert;
use super::head::{ViewBounds, links};
use super::{Page, PageWriter};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tidegate_core::model::{Update, Version};
use tidegate_core::xml::tree;

/// Renders a page, and the items that follow those that it has.
pub fn write<E>(mut to: PageWriter<'_, '_, E>) -> Result<(), E> {
    let page = to.page;
    let mut head = Map::new();
    head.insert("title".to_owned(), page.skeleton.title.clone().into());
    head.insert("id".to_owned(), page.addresses.reader.clone().into());
    head.insert("updated".to_owned(), page.state.updated_at.to_string().into());
    let authors = convert::authors(page.skeleton);
    put(&mut head, "author", (!authors.is_empty()).then(|| authors.join(", ")));
    put(&mut head, "link", page.skeleton.link.clone());
    head.insert("links".to_owned(), links(page).iter().map(link).collect());
    head.insert("sharing".to_owned(), sharing(page));
    let mut text = Value::Object(head).to_string();
    text.pop();
    text.push_str(",\"items\":[");
    to.out.text().push_str(&text);
    write_items(&mut to, ",\n", |shown| Some(item(page, shown)))?;
    to.out.text().push_str("\n]}\n");
    to.out.flush()
}

/// Writes the values that are made of the items, with `between` between them.
pub fn write_items<E>(
    to: &mut PageWriter<'_, '_, E>,
    between: &str,
    value: impl Fn(&ShownVersion<'_>) -> Option<Value>,
) -> Result<(), E> {
    let page = to.page;
    let mut separator = between.trim_start_matches(',');
    to.write_items(|text, item| {
        if let Some(value) = value(&ShownVersion::of(page, item)) {
            text.push_str(std::mem::replace(&mut separator, between));
            text.push_str(&value.to_string());
        }
    })
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value.into());
    }
}

fn link(link: &super::head::Link<'_>) -> Value {
    let mut object = Map::new();
    object.insert("rel".to_owned(), link.relation.into());
    object.insert("href".to_owned(), link.address.into());
    put(&mut object, "type", link.media);
    Value::Object(object)
}

/// What `sx:sharing` says (section 2.2).
pub fn sharing(page: &Page<'_>) -> Value {
    let said = ViewBounds::of(page);
    let mut sharing = Map::new();
    put(&mut sharing, "since", said.bounds.map(|(since, _)| since.to_string()));
    put(&mut sharing, "until", said.bounds.map(|(_, until)| until.to_string()));
    put(&mut sharing, "expires", said.expires.map(|expires| expires.to_string()));
    let complete =
        said.has_complete.then(|| json!({ "link": page.addresses.complete, "type": "complete" }));
    let aggregated = page
        .addresses
        .aggregated
        .iter()
        .map(|(title, link)| json!({ "link": link, "type": "aggregated", "title": title }));
    let related: Vec<Value> = complete.into_iter().chain(aggregated).collect();
    if !related.is_empty() {
        sharing.insert("related".to_owned(), related.into());
    }
    Value::Object(sharing)
}

/// What a version says, with its sync.
pub fn item(page: &Page<'_>, shown: &ShownVersion<'_>) -> Value {
    let conflicts = shown.conflicts.iter();
    let conflicts = conflicts.map(|version| self::item(page, &shown.conflict(version)));
    let sync = sync_object(shown.version, conflicts.collect());
    let others = match shown.collection_item(page) {
        Some(CollectionItem::Json(mut item)) => {
            item.insert("sync".to_owned(), sync);
            return Value::Object(item);
        }
        Some(CollectionItem::OtherMembers(others)) => others,
        Some(CollectionItem::Pox(_)) | None => Map::new(),
    };
    let said = shown.says(page);
    let mut item = Map::new();
    item.insert("title".to_owned(), said.title.into());
    let own_id = || convert::own_id(&shown.version.data);
    put(&mut item, "id", shown.published_id.map(Cow::Borrowed).or_else(own_id));
    put(&mut item, "link", said.link);
    put(&mut item, "updated", said.updated.map(|time| time.to_string()));
    put(&mut item, "published", said.published.map(|time| time.to_string()));
    put(&mut item, "author", said.authors.into_iter().next().map(|author| author.name));
    put(&mut item, "content", said.content.map(|content| content.html()));
    if !said.categories.is_empty() {
        let shown = said.categories.iter().map(|category| category.shown().to_owned());
        item.insert("categories".to_owned(), shown.collect());
    }
    let enclosures = said.enclosures.into_iter().map(|enclosure| {
        let mut object = Map::new();
        object.insert("url".to_owned(), enclosure.address.into());
        put(&mut object, "type", enclosure.media);
        put(&mut object, "length", enclosure.length);
        Value::Object(object)
    });
    let enclosures: Vec<Value> = enclosures.collect();
    if !enclosures.is_empty() {
        item.insert("enclosures".to_owned(), enclosures.into());
    }
    for (name, value) in others {
        item.entry(name).or_insert(value);
    }
    item.insert("sync".to_owned(), sync);
    item.insert("entry".to_owned(), alone(page, shown).into());
    Value::Object(item)
}

/// The markup of an item, which stands alone.
fn alone(page: &Page<'_>, shown: &ShownVersion<'_>) -> String {
    let element = shown.element(page);
    let mut out = String::new();
    tree::write(&mut out, &element, &mut Vec::new());
    out
}

/// What `sx:sync` says (section 2.4).
pub fn sync_object<T>(version: &Version<T>, conflicts: Vec<Value>) -> Value {
    let mut sync = Map::new();
    sync.insert("id".to_owned(), version.id.as_str().into());
    sync.insert("updates".to_owned(), version.updates.value().to_string().into());
    if version.deleted {
        sync.insert("deleted".to_owned(), "true".into());
    }
    put(&mut sync, "noconflicts", version.noconflicts.map(|flag| flag.to_string()));
    sync.insert("history".to_owned(), version.history.iter().map(update).collect());
    if !conflicts.is_empty() {
        sync.insert("conflicts".to_owned(), conflicts.into());
    }
    Value::Object(sync)
}

fn update(update: &Update) -> Value {
    let mut object = Map::new();
    object.insert("sequence".to_owned(), update.sequence.value().to_string().into());
    put(&mut object, "when", update.stamp.when().map(|when| when.to_string()));
    put(&mut object, "by", update.stamp.by().map(tidegate_core::model::EndpointId::as_str));
    Value::Object(object)
}
