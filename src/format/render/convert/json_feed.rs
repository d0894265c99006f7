//! JSON Feed 1.0 and 1.1 to Atom 1.0.

use super::element::{link, module, tags};
use super::{Person, atom_date};
use crate::render::references::Base;
use serde_json::Value;
use tidegate_core::model::{Card, Markup, Skeleton, Time};
use tidegate_core::xml::address::is_address;
use tidegate_core::xml::ns::{ATOM, ITUNES, MEDIA};
use tidegate_core::xml::tree::{Attribute, Element};

/// The feed element of a skeleton, its references absolute.
pub fn feed(skeleton: &Skeleton, base: &Base) -> Element {
    let json: Value = serde_json::from_str(&skeleton.text).unwrap_or_default();
    let mut feed = Element::new(ATOM, "feed");
    let title = string(&json, "title").unwrap_or(&skeleton.title);
    feed.push_text("title", Some(title));
    if let Some(language) = string(&json, "language") {
        feed.attributes.push(Attribute::lang(language));
    }
    // RFC 4287 section 4.2.6: an id is an IRI.
    feed.push_text("id", string(&json, "feed_url").filter(|id| is_address(id)));
    if let Some(page) = string(&json, "home_page_url").or(skeleton.link.as_deref()) {
        feed.push(link(ATOM, "alternate", &base.absolute(page)));
    }
    feed.push_text("subtitle", string(&json, "description"));
    for (from, to) in [("favicon", "icon"), ("icon", "logo")] {
        feed.push_text(to, string(&json, from).map(|address| base.absolute(address)));
    }
    push_authors(&mut feed, &json, base);
    // RFC 4287 section 4.1.1 wants an author somewhere.
    if feed.find(ATOM, "author").is_none() {
        feed.push(Person { name: title.to_owned(), ..Person::default() }.element(ATOM, "author"));
    }
    feed
}

/// The feed element of a skeleton with nothing but the authors that it names.
pub fn people(skeleton: &Skeleton) -> Element {
    let json: Value = serde_json::from_str(&skeleton.text).unwrap_or_default();
    let mut feed = Element::new(ATOM, "feed");
    push_authors(&mut feed, &json, &Base::new(""));
    feed
}

/// An item; `None` where its markup cannot be read.
pub fn entry(markup: &Markup, seen: Option<Time>) -> Option<Element> {
    let json: Value = serde_json::from_str(&markup.xml).ok()?;
    json.as_object()?;
    let card: &Card = &markup.card;
    let mut entry = Element::new(ATOM, "entry");
    if let Some(language) = string(&json, "language") {
        entry.attributes.push(Attribute::lang(language));
    }
    entry.push_text("title", Some(string(&json, "title").unwrap_or_default()));
    let page = string(&json, "url").or(card.link.as_deref());
    for (relation, address) in [("alternate", page), ("related", string(&json, "external_url"))] {
        address.iter().for_each(|address| entry.push(link(ATOM, relation, address)));
    }
    let date = |name, read| atom_date(string(&json, name).unwrap_or_default(), read);
    let published = date("date_published", card.published);
    let updated = date("date_modified", card.updated)
        .or_else(|| published.clone())
        .or_else(|| seen.map(|time| time.to_string()));
    entry.push_text("published", published);
    entry.push_text("updated", updated);
    push_authors(&mut entry, &json, &Base::new(""));
    for tag in tags(list(&json, "tags").filter_map(Value::as_str)) {
        entry.push(Element::new(ATOM, "category").with("term", &tag));
    }
    entry.push_text("summary", string(&json, "summary"));
    let html = string(&json, "content_html").map(|html| ("html", html));
    if let Some((kind, text)) = html.or_else(|| Some(("text", string(&json, "content_text")?))) {
        entry.push(Element::new(ATOM, "content").text(text).with("type", kind));
    }
    let media = |name: &str, address: &str| {
        Element::new(MEDIA, name).with("url", address).prefixed("media")
    };
    // Some readers look for the one, some for the other.
    let (image, banner) = (string(&json, "image"), string(&json, "banner_image"));
    if let Some(image) = image.or(banner) {
        entry.push(media("thumbnail", image));
        entry.push(media("content", image).with("medium", "image"));
    }
    if let Some(banner) = banner.filter(|banner| image.is_some_and(|image| image != *banner)) {
        entry.push(media("content", banner).with("medium", "image"));
    }
    for attachment in list(&json, "attachments") {
        push_attachment(&mut entry, attachment);
    }
    let mut durations =
        list(&json, "attachments").filter_map(|one| one.get("duration_in_seconds")?.as_f64());
    if let Some(seconds) = durations.next().filter(|seconds| *seconds > 0.0) {
        entry.push(module("itunes", ITUNES, "duration", &format!("{seconds:.0}")));
    }
    Some(entry)
}

fn push_attachment(entry: &mut Element, attachment: &Value) {
    let Some(address) = string(attachment, "url") else { return };
    let size = attachment.get("size_in_bytes").and_then(Value::as_u64);
    entry.push(link(ATOM, "enclosure", address).with_known(&[
        ("type", string(attachment, "mime_type")),
        ("title", string(attachment, "title")),
        ("length", size.map(|size| size.to_string()).as_deref()),
    ]));
}

/// Authors of version 1.1 (`authors`), else the one of 1.0 (`author`).
fn push_authors(element: &mut Element, json: &Value, base: &Base) {
    let many: Vec<&Value> = list(json, "authors").collect();
    let authors = if many.is_empty() { json.get("author").into_iter().collect() } else { many };
    for author in authors {
        let (name, address) = (string(author, "name"), string(author, "url"));
        let Some(shown) = name.or(address) else { continue };
        let uri = address.map(|address| base.absolute(address).into_owned());
        let name = shown.to_owned();
        element.push(Person { name, uri, email: None }.element(ATOM, "author"));
    }
}

/// A value that is a text and not empty.
fn string<'a>(json: &'a Value, name: &str) -> Option<&'a str> {
    json.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn list<'a>(json: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    json.get(name).and_then(Value::as_array).into_iter().flatten()
}
