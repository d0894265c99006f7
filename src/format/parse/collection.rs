//! Collections of FeedSync (FeedSync for Collections): plain XML, and JSON, which is read as plain XML with the
//! members of each item in one element.
//!
//! The specification leaves open what an item says, so each item is kept as its publisher wrote it. What means the
//! same in Atom is read as that, and written so in feeds: `title` and `subject`, `content`, `body` and
//! `description`, ids, links, dates, authors, categories and enclosures. Elements of Atom stay as they are, and
//! everything else is foreign markup.

mod json;
#[cfg(test)]
mod tests;

use super::sync_markup::is_sync;
use super::{Limits, ParseError, alone, markup_of, without_garbage};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidegate_core::model::{Context, Entry, Format, Markup, Time};
use tidegate_core::xml::address::percent_encoded;
use tidegate_core::xml::date;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::{ATOM, CONTENT, DC, Ns};
use tidegate_core::xml::tree::{self, Element};

pub use json::ItemMembers;

/// The most items of a collection.
pub const ITEM_LIMIT: usize = 100_000;
/// What a collection is called that does not say it.
pub(super) const UNTITLED: &str = "Collection";

/// A collection as JSON as one in plain XML; `None` for whatever is no collection as JSON.
pub fn transcoded(text: &str) -> Result<Option<String>, ParseError> {
    within(text, &Limits::default())
}

/// The same within limits.
pub(super) fn within(text: &str, limits: &Limits) -> Result<Option<String>, ParseError> {
    let trimmed = without_garbage(text);
    if !trimmed.starts_with('{') {
        return Ok(None);
    }
    json::transcoded(text, text.len() - trimmed.len(), limits)
}

/// Whether a root that is called `collection` is that of a collection: it shares something, or has items, or
/// nothing yet (section 2.2).
pub(super) fn is_collection(root: DocElement<'_, '_>) -> bool {
    let is_part = |child: DocElement<'_, '_>| {
        child.ns().is_sync_markup() || child.local() == "item" && child.ns() == root.ns()
    };
    root.is_leaf()
        || root.children().any(is_part)
        || root.declarations().any(|declared| declared.ns().is_sync_markup())
}

/// The element with the id of an item.
pub(super) fn id_element<'t, 'a>(item: DocElement<'t, 'a>) -> Option<DocElement<'t, 'a>> {
    item.children().find(|child| match child.local() {
        "id" => child.ns() == item.ns() || child.ns() == Ns::Atom,
        "guid" => child.ns() == item.ns(),
        _ => false,
    })
}

/// What an item says, as an entry of Atom says it; `None` where it cannot be read. One that has no id goes by its
/// sync id, and one without a date was last updated when its history says so.
pub(super) fn read(item: DocElement<'_, '_>) -> Option<Entry<'static>> {
    let base = match item.parent() {
        Some(around) => around.base(),
        None => item.doc().base().map(Cow::Borrowed),
    };
    let base = base.map(|base| base.as_str().to_owned());
    let said = entry(&json::with_plain_elements(tree::of(item)?), None, None);
    let (text, context) = write_alone(&said, Context { base, ..Context::default() });
    let mut entry = alone(Format::Atom10, &text, &context)?;
    let sync = item.children().find(|child| is_sync(*child));
    let sync_id = || sync?.attribute("id");
    entry.native_id = entry.native_id.or_else(|| Some(id_of_sync(&sync_id()?).into()));
    let mut updates = sync.into_iter().flat_map(DocElement::children);
    let changed = || {
        let when =
            |update: DocElement<'_, '_>| Time::parse_rfc3339(&update.attribute("when")?).ok();
        updates.find_map(|update| when(update).filter(|_| update.local() == "history"))
    };
    entry.updated = entry.updated.or_else(changed);
    Some(entry)
}

/// The id of an item that is known by its sync id alone: an IRI (RFC 4287 section 4.2.6).
pub fn id_of_sync(sync_id: &str) -> String {
    format!("x-sync-id:{}", percent_encoded(sync_id))
}

/// The item that markup is, with all that plain XML can say of its members; `None` where it cannot be read.
pub fn item(markup: &Markup) -> Option<Element> {
    Some(json::with_plain_elements(tree::read(&markup.xml, &markup.context)?))
}

/// An item as markup of Atom, with this id where it has none, and when it was last changed where it has no date.
pub fn as_atom(markup: &Markup, id: Option<&str>, changed: Option<Time>) -> Option<Markup> {
    let entry = entry(&item(markup)?, id, changed);
    let (text, context) = write_alone(&entry, markup.context.clone());
    let atom = markup_of(Format::Atom10, &alone(Format::Atom10, &text, &context)?);
    Some(Markup { card: markup.card.clone(), ..atom })
}

/// An entry of Atom as text, and what it inherits in addition to base and language.
fn write_alone(entry: &Element, around: Context) -> (String, Context) {
    let (mut text, namespaces) = (String::new(), vec![(String::new(), ATOM.to_owned())]);
    tree::write(&mut text, entry, &mut namespaces.clone());
    (text, Context { namespaces, ..around })
}

/// An item as an entry of Atom, with this id where it has none, and when it was last changed where it has no date.
pub fn entry(item: &Element, id: Option<&str>, changed: Option<Time>) -> Element {
    let mut entry = Element::new(ATOM, "entry");
    entry.attributes.clone_from(&item.attributes);
    let mut words = AtomWords::take_from(item, &mut entry);
    if let Some(id) = id {
        words.texts.entry("id").or_insert_with(|| id.to_owned());
    }
    let updated = words.texts.get("published").cloned().or(changed.map(|time| time.to_string()));
    if let Some(updated) = updated {
        words.texts.entry("updated").or_insert(updated);
    }
    words.write(&mut entry);
    entry
}

/// What stands around the items of a collection as a feed of Atom.
pub fn feed(root: &Element) -> Element {
    let mut feed = Element::new(ATOM, "feed");
    feed.attributes.extend(root.inherited().cloned());
    let mut words = AtomWords::take_from(root, &mut feed);
    // A feed has a subtitle, and no content.
    words.texts.remove("content");
    if let Some(subtitle) = words.texts.remove("description")
        && feed.find(ATOM, "subtitle").is_none()
    {
        feed.push(html("subtitle", &subtitle));
    }
    // RFC 4287 section 4.1.1 wants a title, and an author where entries may name none.
    let title = words.texts.get("title").map_or("unknown", String::as_str).to_owned();
    words.texts.entry("author").or_insert(title);
    words.texts.entry("title").or_insert_with(|| UNTITLED.to_owned());
    words.write(&mut feed);
    feed
}

/// What an element of an item, or a member, says in Atom by its name.
fn atom_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "title" | "subject" => "title",
        "id" | "guid" => "id",
        "link" | "url" => "link",
        "author" | "creator" => "author",
        "published" | "pubDate" => "published",
        "updated" => "updated",
        "content" | "body" => "content",
        "description" => "description",
        "category" => "category",
        _ => return None,
    })
}

/// What an item or a collection says that means the same in Atom.
#[derive(Debug, Default)]
struct AtomWords {
    /// Texts that stand once, by [`atom_name`].
    texts: BTreeMap<&'static str, String>,
    /// Whether the content is HTML for certain.
    is_html: bool,
    /// A guid that is an address leads to the item's page, unless it says that it does not.
    page: Option<String>,
    categories: Vec<Element>,
    enclosures: Vec<Element>,
}

impl AtomWords {
    /// Takes what the elements of an item say. Those that say more, or something else, go to `rest` as they are.
    fn take_from(item: &Element, rest: &mut Element) -> Self {
        let mut words = Self::default();
        let is_sync = |e: &&Element| Ns::of(&e.namespace).is_some_and(Ns::is_sync_markup);
        for child in item.elements().filter(|child| !is_sync(child)) {
            if !words.take(child, &item.namespace) {
                rest.push(child.clone());
            }
        }
        words
    }

    /// Takes an element of an item whose own elements are in a namespace; `false` where that is not all that the
    /// element says.
    fn take(&mut self, element: &Element, own: &str) -> bool {
        let is_leaf = element.elements().next().is_none();
        let word = match (element.namespace.as_str(), element.name.as_str()) {
            (CONTENT, "encoded") if !self.is_html => "encoded",
            (DC, "creator") => "author",
            (namespace, _) if namespace != own || own == ATOM => return false,
            (_, "enclosure") => return self.take_enclosure(element),
            // What has elements in it is more than a text, but for texts that are HTML.
            (_, name) => match atom_name(name) {
                Some(word @ ("title" | "content" | "description")) => word,
                Some(word) if is_leaf => word,
                _ => return false,
            },
        };
        let text = match word {
            "title" => element.content(),
            "published" | "updated" => {
                date(&element.content()).map(|time| time.to_string()).unwrap_or_default()
            }
            _ => tree::escaped_html(element),
        };
        let text = text.trim();
        if text.is_empty() || self.texts.contains_key(word) {
            return false;
        }
        let has = |name, value| element.attribute(name) == Some(value);
        match word {
            "category" => {
                self.categories.push(Element::new(ATOM, "category").with("term", text));
                return true;
            }
            "encoded" => {
                self.is_html = true;
                self.texts.insert("content", text.to_owned());
                return true;
            }
            "content" => self.is_html = is_html(text),
            "id" if text.starts_with("http") && !has("isPermaLink", "false") => {
                self.page = Some(text.to_owned()).filter(|_| element.name == "guid");
            }
            _ => {}
        }
        self.texts.insert(word, text.to_owned());
        // What attributes say beside is kept with the element.
        element.attributes.iter().all(|a| matches!(a.name.as_str(), "isPermaLink" | "type"))
    }

    fn take_enclosure(&mut self, element: &Element) -> bool {
        let Some(url) = element.attribute("url") else { return false };
        let link = Element::new(ATOM, "link").with("rel", "enclosure").with("href", url);
        let (kind, length) = (element.attribute("type"), element.attribute("length"));
        self.enclosures.push(link.with_known(&[("type", kind), ("length", length)]));
        true
    }

    /// Writes what is not said in elements of Atom already.
    fn write(mut self, to: &mut Element) {
        let mut take = |word| self.texts.remove(word);
        let plain = |name, text: String| Element::new(ATOM, name).text(&text);
        let page = self.page.filter(|_| to.find(ATOM, "link").is_none());
        let link =
            |to: String| Element::new(ATOM, "link").with("rel", "alternate").with("href", &to);
        let content = take("content");
        let has_content = content.is_some() || to.find(ATOM, "content").is_some();
        // A description beside a content is a summary of it.
        let description = if has_content { "summary" } else { "content" };
        let head = [
            Some(plain("title", take("title").unwrap_or_default())),
            take("id").map(|id| plain("id", id)),
            take("link").or(page).map(link),
            take("published").map(|date| plain("published", date)),
            take("updated").map(|date| plain("updated", date)),
            take("author").map(|name| Element::new(ATOM, "author").child(plain("name", name))),
        ];
        let texts = [
            take("description").map(|text| html(description, &text)),
            content.map(
                |text| if self.is_html { html("content", &text) } else { plain("content", text) },
            ),
        ];
        let elements = head.into_iter().flatten().chain(self.categories).chain(self.enclosures);
        for element in elements.chain(texts.into_iter().flatten()) {
            let is_repeated = matches!(element.name.as_str(), "link" | "category");
            if is_repeated || to.find(ATOM, &element.name).is_none() {
                to.push(element);
            }
        }
    }
}

fn html(name: &str, text: &str) -> Element {
    Element::new(ATOM, name).with("type", "html").text(text)
}

/// Whether a text of no stated kind is HTML: it has a tag that ends, or one that needs no end.
fn is_html(text: &str) -> bool {
    ["</", "/>", "<br>", "<img ", "<p>"].iter().any(|tag| text.contains(tag))
}
