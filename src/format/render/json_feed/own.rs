//! The members that a publisher's own JSON Feed has, as JSON Feed 1.1 has them: version 1.0 had one
//! `author`. All references are absolute.

use crate::render::convert::tags;
use crate::render::media;
use crate::render::references::{Base, absolute_html};
use serde_json::{Map, Value};
use tidegate_core::model::Time;

/// Members of the feed that are this gateway's to say.
const OURS_OF_FEED: &[&str] =
    &["version", "title", "feed_url", "next_url", "hubs", "items", "author", "expired", "_sharing"];
/// Members of an item that are this gateway's to say.
const OURS: &[&str] = &["id", "author", "_sharing"];
/// Members that hold a reference.
const REFERENCES: &[&str] =
    &["home_page_url", "icon", "favicon", "url", "external_url", "image", "banner_image"];

/// What a feed says of itself.
pub fn feed(text: &str, base: &Base) -> Map<String, Value> {
    let Ok(Value::Object(mut feed)) = serde_json::from_str(text) else { return Map::new() };
    authors(&mut feed, base);
    feed.retain(|name, value| !OURS_OF_FEED.contains(&name.as_str()) && is_said(value));
    resolve(&mut feed, REFERENCES, base);
    feed
}

/// What an item says; `None` where it cannot be read.
pub fn item(text: &str, base: &Base) -> Option<Map<String, Value>> {
    let Ok(Value::Object(mut item)) = serde_json::from_str(text) else { return None };
    authors(&mut item, base);
    item.retain(|name, value| !OURS.contains(&name.as_str()) && is_said(value));
    resolve(&mut item, REFERENCES, base);
    for name in ["date_published", "date_modified"] {
        // What cannot be read as the specification wants it is told as it was understood.
        let is_date =
            |value: &Value| value.as_str().is_some_and(|date| Time::parse_rfc3339(date).is_ok());
        if item.get(name).is_some_and(|value| !is_date(value)) {
            item.remove(name);
        }
    }
    if let Some(Value::String(html)) = item.get_mut("content_html")
        && let Some(absolute) = absolute_html(html, base)
    {
        *html = absolute;
    }
    let written = item.remove("tags");
    let written = written.iter().filter_map(Value::as_array).flatten();
    let tags = tags(written.filter_map(Value::as_str));
    if !tags.is_empty() {
        item.insert("tags".to_owned(), tags.into());
    }
    attachments(&mut item, base);
    Some(item)
}

fn is_said(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(values) => !values.is_empty(),
        _ => true,
    }
}

/// Makes the references in members of these names absolute.
fn resolve(object: &mut Map<String, Value>, names: &[&str], base: &Base) {
    for name in names {
        if let Some(Value::String(reference)) = object.get_mut(*name)
            && let Some(absolute) = base.resolve(reference)
        {
            *reference = absolute;
        }
    }
}

/// `authors`, or the `author` of version 1.0 as one.
fn authors(object: &mut Map<String, Value>, base: &Base) {
    let mut authors = match object.remove("authors") {
        Some(Value::Array(authors)) => authors,
        _ => Vec::new(),
    };
    if authors.is_empty() {
        authors.extend(object.get("author").cloned());
    }
    authors.retain(|author| author.as_object().is_some_and(|author| author.values().any(is_said)));
    for author in authors.iter_mut().filter_map(Value::as_object_mut) {
        resolve(author, &["url", "avatar"], base);
    }
    if !authors.is_empty() {
        object.insert("authors".to_owned(), authors.into());
    }
}

/// Attachments have an address and a type.
fn attachments(item: &mut Map<String, Value>, base: &Base) {
    let Some(Value::Array(mut attachments)) = item.remove("attachments") else { return };
    attachments.retain(|attachment| {
        attachment.get("url").is_some_and(|url| url.is_string() && is_said(url))
    });
    for attachment in attachments.iter_mut().filter_map(Value::as_object_mut) {
        resolve(attachment, REFERENCES, base);
        let address = attachment.get("url").and_then(Value::as_str).unwrap_or_default();
        let media = media::of_address(address);
        if !attachment.get("mime_type").is_some_and(|media| media.is_string() && is_said(media)) {
            attachment.insert("mime_type".to_owned(), media.into());
        }
    }
    if !attachments.is_empty() {
        item.insert("attachments".to_owned(), attachments.into());
    }
}
