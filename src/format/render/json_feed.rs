//! JSON Feed 1.1, for feed readers: no tombstones in any view, and no conflicts.
//!
//! An item of a publisher's own JSON Feed keeps its members, those of extensions included.

use super::collection::ShownVersion;
use super::convert::{self, Enclosure, Person, Reading, Text};
use super::head::own_address;
use super::json::{self, list, object};
use super::media::of_address;
use super::references::{Base, absolute_html};
use super::scope::base_of;
use super::{Page, PageWriter};
use serde_json::{Map, Value, json};
use tidegate_core::model::{Family, Format, Time};
use tidegate_core::xml::address::is_address;
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::{ATOM, DC, FEED_SYNC, ITUNES, MEDIA};
use tidegate_core::xml::tree::Element;

/// The version that is written.
pub const VERSION: &str = "https://jsonfeed.org/version/1.1";
/// The member that has the items.
const ITEMS: &str = "items";

/// Renders a page, and the items that follow those that it has.
pub fn write<E>(mut to: PageWriter<'_, '_, E>) -> Result<(), E> {
    let page = to.page;
    let mut sharing = json::sharing(page);
    sharing.insert("about".to_owned(), FEED_SYNC.into());
    let hub = page.addresses.hub.as_ref().filter(|_| page.history.archive.is_none());
    let mut feed = head(page);
    feed.extend(object([
        ("version", VERSION.into()),
        ("title", page.skeleton.title.clone().into()),
        ("feed_url", own_address(page).clone().into()),
        ("home_page_url", page.skeleton.link.clone().into()),
        // Archives hold what came before.
        ("next_url", page.history.previous.clone().into()),
        ("hubs", list(hub.map(|hub| json!({ "type": "WebSub", "url": hub })))),
        ("_sharing", sharing.into()),
    ]));
    feed.insert(ITEMS.to_owned(), Value::Null);
    let mut before = '{';
    for (name, value) in &feed {
        to.out.text().push(std::mem::replace(&mut before, ','));
        to.out.text().push_str(&Value::from(name.as_str()).to_string());
        to.out.text().push(':');
        if name != ITEMS {
            to.out.text().push_str(&value.to_string());
            continue;
        }
        to.out.text().push('[');
        let lives = |shown: &ShownVersion<'_>| !shown.version.deleted;
        let value = |shown: &ShownVersion<'_>| lives(shown).then(|| item(page, shown));
        json::write_items(&mut to, ",", value)?;
        to.out.text().push(']');
    }
    to.out.text().push_str("}\n");
    to.out.flush()
}

/// What the feed says of itself.
fn head(page: &Page<'_>) -> Map<String, Value> {
    let base = Base::new(base_of(&page.skeleton.context, page.addresses));
    let mut feed = match page.skeleton.format {
        Format::JsonFeed => own_feed(&page.skeleton.text, &base),
        _ => Map::new(),
    };
    let said = convert::head(page.skeleton, page.addresses, Family::Atom);
    let text = |name| said.words_of(ATOM, name);
    let lang = page.skeleton.context.lang.as_deref().or(said.own("lang"));
    let members = [
        ("description", text("subtitle").map(|subtitle| plain_text(&subtitle).trim().to_owned())),
        ("icon", text("logo")),
        ("favicon", text("icon")),
        ("language", lang.map(|lang| lang.trim().to_owned())),
    ];
    put_texts(&mut feed, members);
    put_authors(&mut feed, &convert::people(page.skeleton), &base);
    feed
}

/// Adds texts that are not there yet.
fn put_texts(
    object: &mut Map<String, Value>,
    texts: impl IntoIterator<Item = (&'static str, Option<String>)>,
) {
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            object.entry(name).or_insert_with(|| text.into());
        }
    }
}

fn put_authors(object: &mut Map<String, Value>, people: &[Person], base: &Base) {
    let authors = people.iter().map(|person| {
        // The mail of somebody is an address of theirs as well (version 1.1, `authors`).
        let mail = || person.email.as_ref().map(|mail| format!("mailto:{mail}"));
        let url = person.uri.as_deref().map(|uri| base.absolute(uri).into_owned()).or_else(mail);
        json::object([("name", person.name.clone().into()), ("url", url.into())])
    });
    put_list(object, "authors", list(authors));
}

/// Adds a list, where it has anything and there is none.
fn put_list(object: &mut Map<String, Value>, name: &str, values: Value) {
    if !values.is_null() {
        object.entry(name).or_insert(values);
    }
}

fn item(page: &Page<'_>, shown: &ShownVersion<'_>) -> Value {
    let data = &shown.version.data;
    let base = page.around().bases.base(data);
    let own = (data.format == Format::JsonFeed).then(|| own_item(&data.xml, &base)).flatten();
    let mut item = own.unwrap_or_default();
    let said = shown.markup_in(page.around()).reading();
    let files = Files::of(&said);
    // One of the two has to be there.
    if !["content_html", "content_text"].iter().any(|name| item.contains_key(*name)) {
        let content = said.content.clone().or_else(|| files.description.clone());
        let (name, text) = match content {
            Some(Text::Html(html)) => ("content_html", html),
            Some(Text::Plain(text)) => ("content_text", text),
            None => ("content_text", said.title.clone()),
        };
        item.insert(name.to_owned(), text.into());
    }
    let summary = said.summary.as_ref().map(|summary| summary.plain().trim().to_owned());
    // As in Atom, an item without a date has the time at which the gateway saw this version.
    let seen = || shown.version.history.topmost().stamp.when();
    let modified = said.updated.or_else(|| if said.published.is_none() { seen() } else { None });
    let texts = [
        ("url", said.link.clone()),
        ("title", Some(said.title.clone())),
        ("summary", summary),
        ("image", files.image.clone()),
        ("date_published", said.published.map(|time| time.to_string())),
        ("date_modified", modified.map(|time| time.to_string())),
        ("language", said.language.clone()),
    ];
    put_texts(&mut item, texts);
    put_authors(&mut item, &said.authors, &base);
    let subjects = said.foreign.iter().filter(|element| element.is(DC, "subject"));
    let categories = said.categories.iter().map(|category| category.shown().to_owned());
    let tags = convert::tags(categories.chain(subjects.map(Element::content)));
    put_list(&mut item, "tags", list(tags));
    put_list(&mut item, "attachments", list(files.attachments.into_iter().map(attachment)));
    item.insert("id".to_owned(), shown.published_id.unwrap_or_default().into());
    item.insert("_sharing".to_owned(), json::sync_object(shown.version, []));
    Value::Object(item)
}

// The members that a publisher's own JSON Feed has, as JSON Feed 1.1 has them: version 1.0 had one
// `author`. All references are absolute.

/// Members of the feed that are this gateway's to say.
const OURS_OF_FEED: &[&str] =
    &["version", "title", "feed_url", "next_url", "hubs", "items", "author", "expired", "_sharing"];
/// Members of an item that are this gateway's to say.
const OURS: &[&str] = &["id", "author", "_sharing"];
/// Members that hold a reference.
const REFERENCES: &[&str] =
    &["home_page_url", "icon", "favicon", "url", "external_url", "image", "banner_image"];

/// What a feed says of itself.
fn own_feed(text: &str, base: &Base) -> Map<String, Value> {
    let Ok(Value::Object(mut feed)) = serde_json::from_str(text) else { return Map::new() };
    authors(&mut feed, base);
    feed.retain(|name, value| !OURS_OF_FEED.contains(&name.as_str()) && is_said(value));
    resolve(&mut feed, REFERENCES, base);
    feed
}

/// What an item says; `None` where it cannot be read.
fn own_item(text: &str, base: &Base) -> Option<Map<String, Value>> {
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
    put_list(&mut item, "tags", list(convert::tags(written.filter_map(Value::as_str))));
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
    put_list(object, "authors", list(authors));
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
        let media = of_address(address);
        if !attachment.get("mime_type").is_some_and(|media| media.is_string() && is_said(media)) {
            attachment.insert("mime_type".to_owned(), media.into());
        }
    }
    put_list(item, "attachments", list(attachments));
}

// The files and images of an entry: its enclosures, and what Media RSS and the podcasts' module say.

/// The most attachments of one entry.
const ATTACHMENT_LIMIT: usize = 100;
/// How deep elements of Media RSS are looked for: in a group, and within a content.
const DEPTH_LIMIT: usize = 3;

/// What an entry has beside its text.
struct Files {
    /// The address of its main image.
    image: Option<String>,
    /// `media:description` or `itunes:summary`, which stands in where there is no text.
    description: Option<Text>,
    attachments: Vec<Enclosure>,
}

/// A file as an attachment (JSON Feed 1.1, "Attachments").
fn attachment(file: Enclosure) -> Map<String, Value> {
    let (media, size) = (file.media_type().to_owned(), file.size());
    object([
        ("url", file.address.into()),
        ("mime_type", media.into()),
        ("title", file.title.into()),
        ("size_in_bytes", size.into()),
        ("duration_in_seconds", file.seconds.into()),
    ])
}

/// What Media RSS and the podcasts' module say, in order.
#[derive(Default)]
struct MediaElements<'a> {
    thumbnails: Vec<&'a str>,
    contents: Vec<&'a Element>,
    descriptions: Vec<&'a Element>,
    image: Option<&'a str>,
    duration: Option<u64>,
}

impl<'a> MediaElements<'a> {
    fn look(&mut self, element: &'a Element, depth: usize) {
        if element.namespace == MEDIA {
            match element.name.as_str() {
                "thumbnail" => self.thumbnails.extend(element.attribute("url")),
                "content" => self.contents.push(element),
                "description" => self.descriptions.push(element),
                _ => {}
            }
            if depth < DEPTH_LIMIT {
                element.elements().for_each(|child| self.look(child, depth + 1));
            }
        } else if element.namespace == ITUNES {
            match element.name.as_str() {
                "image" => self.image = self.image.or_else(|| element.attribute("href")),
                "summary" => self.descriptions.push(element),
                "duration" => self.duration = self.duration.or_else(|| seconds(&element.content())),
                _ => {}
            }
        }
    }
}

impl Files {
    /// Of an entry.
    fn of(entry: &Reading) -> Self {
        let mut said = MediaElements::default();
        entry.foreign.iter().for_each(|element| said.look(element, 0));
        let mut attachments: Vec<Enclosure> = Vec::new();
        let contents = said.contents.iter().filter_map(|content| {
            let title = content.elements().find(|child| child.name == "title");
            Some(Enclosure {
                address: content.value("url")?,
                media: content.value("type"),
                length: content.value("fileSize"),
                title: title.and_then(Element::words),
                seconds: content.attribute("duration").and_then(seconds),
            })
        });
        let files = entry.enclosures.iter().cloned().chain(contents);
        files.for_each(|file| add(&mut attachments, file));
        // The episode's own length, where there is one file to play.
        let is_played = |file: &&mut Enclosure| {
            ["audio/", "video/"].iter().any(|kind| file.media_type().starts_with(kind))
        };
        let mut played = attachments.iter_mut().filter(is_played);
        if let (Some(only), None) = (played.next(), played.next()) {
            only.seconds = only.seconds.or(said.duration);
        }
        let pictures = said.contents.iter().filter(|content| is_image(content));
        let enclosed = entry.enclosures.iter().filter(|one| one.media_type().starts_with("image/"));
        let mut images = said
            .thumbnails
            .iter()
            .copied()
            .chain(said.image)
            .chain(pictures.filter_map(|picture| picture.attribute("url")))
            .chain(enclosed.map(|enclosure| enclosure.address.as_str()));
        let image = images.find(|address| is_address(address)).map(ToOwned::to_owned);
        let description = said.descriptions.iter().find_map(|description| {
            let is_html = description.attribute("type") == Some("html");
            description.words().map(if is_html { Text::Html } else { Text::Plain })
        });
        Self { image, description, attachments }
    }
}

/// Adds a file, or what is known of it in addition.
fn add(files: &mut Vec<Enclosure>, new: Enclosure) {
    if let Some(known) = files.iter_mut().find(|known| known.address == new.address) {
        known.title = known.title.take().or(new.title);
        if known.size().is_none() {
            known.length = new.length;
        }
        known.seconds = known.seconds.or(new.seconds);
    } else if is_address(&new.address) && files.len() < ATTACHMENT_LIMIT {
        files.push(new);
    }
}

fn is_image(content: &Element) -> bool {
    let media = content.attribute("type");
    content.attribute("medium") == Some("image")
        || media.is_some_and(|media| media.starts_with("image/"))
}

/// A duration as `H:MM:SS`, `M:SS` or seconds; a fraction of a second is left out.
fn seconds(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.trim().split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    parts.iter().try_fold(0_u64, |sum, part| {
        let whole = part.trim().split('.').next().unwrap_or_default();
        sum.checked_mul(60)?.checked_add(whole.parse().ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds() {
        for (text, read) in [
            ("1:02:03", Some(3723)),
            ("62:03", Some(3723)),
            (" 3723 ", Some(3723)),
            ("3723.9", Some(3723)),
            ("1:2:3:4", None),
            ("soon", None),
            ("", None),
            ("99999999999999999999:0", None),
        ] {
            assert_eq!(seconds(text), read, "{text:?}");
        }
    }
}
