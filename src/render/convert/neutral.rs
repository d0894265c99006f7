//! What an entry says, in no format: the step between two families.

use super::tree::{self, Element};
use super::{Target, atom03, json_feed};
use crate::model::{Card, Family, Format, Markup, Time};
use crate::render::escape;
use crate::render::scope::ATOM;

/// The namespace of Dublin Core.
pub const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
/// The namespace of `content:encoded`.
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";

/// An entry without its format. What has no equivalent on the other side is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neutral {
    /// The title as plain text.
    pub title: String,
    /// The address of its page.
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Time>,
    /// When it was updated.
    pub updated: Option<Time>,
    /// The name of its author.
    pub author: Option<String>,
    /// Its content, else its summary, as HTML.
    pub content: Option<String>,
}

impl Neutral {
    /// Of an entry in any format.
    pub fn of(markup: &Markup) -> Self {
        Self { content: content(markup), ..Self::of_card(&markup.card) }
    }

    /// Of what a card says: no content.
    pub fn of_card(card: &Card) -> Self {
        Self {
            title: card.title.clone(),
            link: card.link.clone(),
            published: card.published,
            updated: card.updated,
            author: card.author.clone(),
            content: None,
        }
    }

    /// As the element of an entry in the target's format, without id.
    pub fn element(&self, target: &Target<'_>, seen: Option<Time>) -> Element {
        let space = target.namespace;
        let mut entry = Element::new(space, target.entry());
        entry.push(Element::new(space, "title").text(&self.title));
        match target.family {
            Family::Atom => {
                if let Some(link) = &self.link {
                    let element = Element::new(space, "link").with("rel", "alternate");
                    entry.push(element.with("href", link));
                }
                if let Some(updated) = self.updated.or(self.published).or(seen) {
                    entry.push(Element::new(space, "updated").text(&updated.to_string()));
                }
                if let Some(published) = self.published {
                    entry.push(Element::new(space, "published").text(&published.to_string()));
                }
                if let Some(author) = &self.author {
                    let name = Element::new(space, "name").text(author);
                    entry.push(Element::new(space, "author").child(name));
                }
                if let Some(content) = &self.content {
                    entry.push(Element::new(space, "content").with("type", "html").text(content));
                }
            }
            Family::Rss => {
                if let Some(link) = &self.link {
                    entry.push(Element::new(space, "link").text(link));
                }
                if let Some(date) = self.published.or(self.updated) {
                    entry.push(Element::new(space, "pubDate").text(&date.rfc822()));
                }
                if let Some(author) = &self.author {
                    let mut creator = Element::new(DUBLIN_CORE, "creator").text(author);
                    creator.prefix = "dc".to_owned();
                    entry.push(creator);
                }
                if let Some(content) = &self.content {
                    entry.push(Element::new(space, "description").text(content));
                }
            }
        }
        entry
    }
}

fn content(markup: &Markup) -> Option<String> {
    match markup.format {
        Format::JsonFeed => json_feed::entry(markup, None).and_then(|entry| atom_content(&entry)),
        Format::Atom03 => atom03::entry(markup, None).and_then(|entry| atom_content(&entry)),
        Format::Atom10 => {
            tree::read(&markup.xml, &markup.context).and_then(|entry| atom_content(&entry))
        }
        Format::Rss20 | Format::Rss09x | Format::Rss10 | Format::Rss090 => {
            let item = tree::read(&markup.xml, &markup.context)?;
            let whole = item.find(CONTENT, "encoded");
            let found = whole.or_else(|| item.find(&item.namespace, "description"))?;
            Some(found.content())
        }
    }
}

/// The content, else the summary, of an Atom 1.0 entry (RFC 4287 sections 3.1.1 and 4.1.3).
fn atom_content(entry: &Element) -> Option<String> {
    let found = entry
        .find(ATOM, "content")
        .filter(|content| content.attribute("src").is_none())
        .or_else(|| entry.find(ATOM, "summary"))?;
    match found.attribute("type").unwrap_or("text") {
        "html" | "text/html" => Some(found.content()),
        "xhtml" => Some(tree::html(found)),
        "text" | "text/plain" => {
            let mut html = String::new();
            escape::text(&mut html, &found.content());
            Some(html)
        }
        _ => None,
    }
}
