//! Collections as JSON (FeedSync for Collections; READINGS 1, row 34).
//!
//! Values are texts, numbers and booleans among them, as in the examples. What an item says stands
//! in plain members, and whole, with its markup, in `entry`. One that came as JSON has the members
//! that it came with.

use super::collection::{EnclosingFeed, ShownVersion};
use super::convert::{self, Category};
use super::head::{ViewBounds, links};
use super::{Page, PageWriter};
use crate::parse::collection::ItemMembers;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tidegate_core::model::{EndpointId, Version};
use tidegate_core::xml::tree;

/// Renders a page, and the items that follow those that it has.
pub fn write<E>(mut to: PageWriter<'_, '_, E>) -> Result<(), E> {
    let page = to.page;
    let authors = convert::authors(page.skeleton);
    let links = links(page).into_iter().map(|link| {
        object([
            ("rel", link.relation.into()),
            ("href", link.address.into()),
            ("type", link.media.into()),
        ])
    });
    let head = object([
        ("title", page.skeleton.title.clone().into()),
        ("id", page.addresses.reader.clone().into()),
        ("updated", page.state.updated_at.to_string().into()),
        ("author", (!authors.is_empty()).then(|| authors.join(", ")).into()),
        ("link", page.skeleton.link.clone().into()),
        ("links", links.collect()),
        ("sharing", sharing(page).into()),
    ]);
    let mut text = Value::from(head).to_string();
    text.pop();
    text.push_str(",\"items\":[");
    to.out.text().push_str(&text);
    write_items(&mut to, ",\n", |shown| Some(item(page.around(), shown)))?;
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

/// An object of those members that have a value.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    let said = members.into_iter().filter(|(_, value)| !value.is_null());
    said.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A list; nothing where it would be empty.
pub fn list(values: impl IntoIterator<Item = impl Into<Value>>) -> Value {
    let values: Vec<Value> = values.into_iter().map(Into::into).collect();
    if values.is_empty() { Value::Null } else { values.into() }
}

/// What `sx:sharing` says (section 2.2).
pub fn sharing(page: &Page<'_>) -> Map<String, Value> {
    let said = ViewBounds::of(page);
    let complete =
        said.has_complete.then(|| json!({ "link": page.addresses.complete, "type": "complete" }));
    let aggregated = page
        .addresses
        .aggregated
        .iter()
        .map(|(title, link)| json!({ "link": link, "type": "aggregated", "title": title }));
    object([
        ("since", said.bounds.map(|(since, _)| since.to_string()).into()),
        ("until", said.bounds.map(|(_, until)| until.to_string()).into()),
        ("expires", said.expires.map(|expires| expires.to_string()).into()),
        ("related", list(complete.into_iter().chain(aggregated))),
    ])
}

/// What a version says, with its sync.
pub fn item(around: EnclosingFeed<'_>, shown: &ShownVersion<'_>) -> Value {
    let conflicts = shown.conflicts.iter();
    let conflicts = conflicts.map(|version| self::item(around, &shown.conflict(version)));
    let sync = sync_object(shown.version, conflicts);
    let said = shown.markup_in(around);
    let others = match ItemMembers::of(&said.markup) {
        Some(ItemMembers::Whole(mut item)) => {
            item.insert("sync".to_owned(), sync);
            return Value::Object(item);
        }
        Some(ItemMembers::Others(others)) => others,
        None => Map::new(),
    };
    let mut alone = String::new();
    tree::write(&mut alone, &said.element(), &mut Vec::new());
    let said = said.reading();
    let own_id = || convert::own_id(&shown.version.data);
    let enclosures = said.enclosures.into_iter().map(|enclosure| {
        object([
            ("url", enclosure.address.into()),
            ("type", enclosure.media.into()),
            ("length", enclosure.length.into()),
        ])
    });
    let mut item = object([
        ("title", said.title.into()),
        ("id", shown.published_id.map(Cow::Borrowed).or_else(own_id).into()),
        ("link", said.link.into()),
        ("updated", said.updated.map(|time| time.to_string()).into()),
        ("published", said.published.map(|time| time.to_string()).into()),
        ("author", said.authors.into_iter().next().map(|author| author.name).into()),
        ("content", said.content.map(|content| content.html()).into()),
        ("categories", list(said.categories.iter().map(Category::shown))),
        ("enclosures", list(enclosures)),
    ]);
    for (name, value) in others {
        item.entry(name).or_insert(value);
    }
    item.insert("sync".to_owned(), sync);
    item.insert("entry".to_owned(), alone.into());
    Value::Object(item)
}

/// What `sx:sync` says (section 2.4).
pub fn sync_object<T>(version: &Version<T>, conflicts: impl IntoIterator<Item = Value>) -> Value {
    let history = version.history.iter().map(|update| {
        object([
            ("sequence", update.sequence.value().to_string().into()),
            ("when", update.stamp.when().map(|when| when.to_string()).into()),
            ("by", update.stamp.by().map(EndpointId::as_str).into()),
        ])
    });
    let sync = object([
        ("id", version.id.as_str().into()),
        ("updates", version.updates.value().to_string().into()),
        ("deleted", version.deleted.then_some("true").into()),
        ("noconflicts", version.noconflicts.map(|flag| flag.to_string()).into()),
        ("history", list(history)),
        ("conflicts", list(conflicts)),
    ]);
    sync.into()
}
