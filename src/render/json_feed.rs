//! JSON Feed 1.1, for feed readers: no tombstones in any view, and no conflicts.

use super::collection::Shown;
use super::convert::{self, Neutral};
use super::head::own_address;
use super::{Page, json};
use serde_json::{Map, Value, json};

/// The version that is written.
const VERSION: &str = "https://jsonfeed.org/version/1.1";
/// What an attachment is whose publisher does not say, since it has to be said.
const ANY_MEDIA: &str = "application/octet-stream";
/// The specification of what stands in `_sharing`.
const ABOUT: &str = "http://feedsync.org/2007/feedsync";

/// Renders a page.
pub fn document(page: &Page<'_>) -> String {
    let mut feed = Map::new();
    let mut put = |name: &str, value: Value| feed.insert(name.to_owned(), value);
    put("version", VERSION.into());
    put("title", page.skeleton.title.clone().into());
    put("feed_url", own_address(page).clone().into());
    if let Some(link) = &page.skeleton.link {
        put("home_page_url", link.clone().into());
    }
    if let Some(language) = &page.skeleton.context.lang {
        put("language", language.clone().into());
    }
    let authors = convert::authors(page.skeleton);
    if !authors.is_empty() {
        put("authors", authors.iter().map(|name| json!({ "name": name })).collect());
    }
    // Archives hold what came before.
    if let Some(next) = &page.history.previous {
        put("next_url", next.clone().into());
    }
    if let Some(hub) = page.addresses.hub.as_ref().filter(|_| page.history.archive.is_none()) {
        put("hubs", json!([{ "type": "WebSub", "url": hub }]));
    }
    let mut sharing = json::sharing(page);
    if let Some(sharing) = sharing.as_object_mut() {
        sharing.insert("about".to_owned(), ABOUT.into());
    }
    put("_sharing", sharing);
    let lives = page.shown().filter(|item| !item.shared.winner.deleted);
    put("items", lives.map(|item| self::item(page, &Shown::of(page, item))).collect());
    let mut out = Value::Object(feed).to_string();
    out.push('\n');
    out
}

fn item(page: &Page<'_>, shown: &Shown<'_>) -> Value {
    let said = Neutral::of(&shown.markup(page));
    let mut item = Map::new();
    let mut put = |name: &str, value: Value| item.insert(name.to_owned(), value);
    put("id", shown.published_id.into());
    if let Some(link) = said.link {
        put("url", link.into());
    }
    // One of the two has to be there.
    match said.content {
        Some(content) => put("content_html", content.into()),
        None => put("content_text", said.title.clone().into()),
    };
    if !said.title.is_empty() {
        put("title", said.title.into());
    }
    if let Some(published) = said.published {
        put("date_published", published.to_string().into());
    }
    if let Some(updated) = said.updated {
        put("date_modified", updated.to_string().into());
    }
    if let Some(author) = said.author {
        put("authors", json!([{ "name": author }]));
    }
    if !said.categories.is_empty() {
        put("tags", said.categories.into());
    }
    let attachments = said.enclosures.into_iter().map(|enclosure| {
        let media = enclosure.media.unwrap_or_else(|| ANY_MEDIA.to_owned());
        let mut attachment = json!({ "url": enclosure.address, "mime_type": media });
        let length: Option<u64> = enclosure.length.and_then(|length| length.trim().parse().ok());
        if let (Some(length), Some(object)) = (length, attachment.as_object_mut()) {
            object.insert("size_in_bytes".to_owned(), length.into());
        }
        attachment
    });
    let attachments: Vec<Value> = attachments.collect();
    if !attachments.is_empty() {
        put("attachments", attachments.into());
    }
    put("_sharing", json::sync(shown.version, Vec::new()));
    Value::Object(item)
}
