//! One item of a JSON Feed.

use super::{JsonReader, Limits, ObjectPart};
use crate::parse::entry::{FIELD_COST, too_much};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{Entry, Field};
use tidegate_core::xml::address::resolve;
use tidegate_core::xml::date;
use tidegate_core::xml::{collapsed, trimmed};
use url::Url;

/// How deep members of an item are looked into.
const DEPTH_LIMIT: usize = 32;

/// What another endpoint says of its versions. It is taken out, as `sx:*` is: were it a word of the
/// item, two gateways that read each other would never come to rest.
const SHARING: &str = "_sharing";

/// A text value, or a number as it is written (ids are numbers now and then).
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let written = value.get();
    match written.bytes().next()? {
        b'"' => {
            let plain = serde_json::from_str(written).map(Cow::Borrowed);
            plain.or_else(|_| serde_json::from_str(written).map(Cow::Owned)).ok()
        }
        b'-' | b'0'..=b'9' => Some(Cow::Borrowed(written)),
        _ => None,
    }
}

/// The values of a list; none where it is no list.
pub(super) fn list(value: &RawValue) -> Vec<&RawValue> {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// The members of an object in their order; none where it is no object.
pub(super) fn members(value: &RawValue) -> Vec<(String, &RawValue)> {
    let mut found = Vec::new();
    if value.get().starts_with('{') {
        let mut reader = JsonReader { text: value.get(), at: 1 };
        // A value that was read is whole.
        let _ = reader.object("", |part| {
            if let ObjectPart::Member(name, value) = part {
                found.push((name.into_owned(), value));
            }
            Ok::<_, String>(())
        });
    }
    found
}

/// An item, and what its projection costs.
pub(super) fn entry<'a>(
    value: &'a RawValue,
    span: Range<usize>,
    url: Option<&Url>,
    limits: &Limits,
) -> Result<(Entry<'a>, usize), String> {
    if !value.get().starts_with('{') {
        return Err("an item is no object".to_owned());
    }
    if span.len() > limits.entry {
        return Err(too_much("bytes", limits.entry));
    }
    let mut entry = Entry { span, markup: Cow::Borrowed(value.get()), ..Entry::default() };
    let mut external = None;
    let mut fields = Vec::new();
    let mut members = members(value);
    if members.iter().any(|(name, _)| name == SHARING) {
        members.retain(|(name, _)| name != SHARING);
        entry.markup = Cow::Owned(written(&members));
    }
    for (name, value) in members {
        member(&mut entry, &mut external, &name, value, url);
        let mut path = name;
        project(value, &mut path, 0, limits, &mut fields)?;
    }
    entry.link = entry.link.or(external);
    let cost = fields.iter().map(|field| FIELD_COST + field.path.len()).sum();
    entry.projection = fields.into();
    Ok((entry, cost))
}

/// An object of these members.
fn written(members: &[(String, &RawValue)]) -> String {
    let members = members.iter().map(|(name, value)| {
        let name = serde_json::Value::from(name.as_str());
        format!("{name}:{}", value.get())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn member<'a>(
    entry: &mut Entry<'a>,
    external: &mut Option<Cow<'a, str>>,
    name: &str,
    value: &'a RawValue,
    url: Option<&Url>,
) {
    let address = |text: Option<Cow<'a, str>>| text.and_then(|text| resolve(text, url));
    match name {
        "id" => entry.native_id = text(value).map(trimmed).filter(|id| !id.is_empty()),
        "url" => entry.link = address(text(value)),
        "external_url" => *external = address(text(value)),
        "title" => entry.title = text(value).map(collapsed).filter(|title| !title.is_empty()),
        "date_published" => entry.published = text(value).as_deref().and_then(date),
        "date_modified" => entry.updated = text(value).as_deref().and_then(date),
        // Version 1.1 has a list, version 1.0 one author.
        "authors" => {
            let first = list(value).into_iter().find_map(name_of);
            entry.author = first.or(entry.author.take());
        }
        "author" if entry.author.is_none() => entry.author = name_of(value),
        "attachments" => {
            for attachment in list(value) {
                let found = members(attachment).into_iter().find(|(name, _)| name == "url");
                entry.enclosures.extend(address(found.and_then(|(_, url)| text(url))));
            }
        }
        _ => {}
    }
}

pub(super) fn name_of(value: &RawValue) -> Option<Cow<'_, str>> {
    let found = members(value).into_iter().find(|(name, _)| name == "name");
    found.and_then(|(_, name)| text(name)).map(collapsed).filter(|name| !name.is_empty())
}

/// Writes a value and all in it as fields.
fn project<'a>(
    value: &'a RawValue,
    path: &mut String,
    depth: usize,
    limits: &Limits,
    out: &mut Vec<Field<'a>>,
) -> Result<(), String> {
    if path.len() > limits.path {
        return Err(too_much("bytes in a path", limits.path));
    }
    if out.len() >= limits.fields {
        return Err(too_much("fields", limits.fields));
    }
    let written = value.get();
    match written.bytes().next() {
        Some(b'{') if depth < DEPTH_LIMIT => {
            for (name, value) in members(value) {
                let length = path.len();
                path.push('/');
                path.push_str(&name);
                project(value, path, depth + 1, limits, out)?;
                path.truncate(length);
            }
        }
        Some(b'[') if depth < DEPTH_LIMIT => {
            for value in list(value) {
                project(value, path, depth + 1, limits, out)?;
            }
        }
        // No value says no more than no member.
        Some(b'n') | None => {}
        Some(_) => {
            let value = collapsed(text(value).unwrap_or(Cow::Borrowed(written)));
            out.push(Field { path: Cow::Owned(path.clone()), value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_gateway_says_of_its_versions_is_taken_out() {
        let text =
            r#"{"id": "1", "_sharing": {"updates": "7"}, "ti\u0074le": "a \"b\"", "_x": [1.0]}"#;
        let value: &RawValue = serde_json::from_str(text).unwrap();
        let (read, _) = entry(value, 0..text.len(), None, &Limits::default()).unwrap();
        assert_eq!(read.markup, r#"{"id":"1","title":"a \"b\"","_x":[1.0]}"#);
        assert!(read.fields().iter().all(|field| !field.path.contains("_sharing")));
        assert_eq!(read.fields().len(), 3);
    }
}
