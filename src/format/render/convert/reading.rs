//! What an entry says, in no format: what is written of it in other formats, and shown.

use super::author;
use super::element::{Categories, Category};
use super::{Target, absolute, own_entry, write_entry};
use crate::parse::dialect::FeedDialect;
use crate::parse::reading::{EntryReading, Meaning, Person, add_person};
use crate::render::references::Base;
use std::borrow::Cow;
use tidegate_core::model::{Card, Family, Format, Markup, Time};
use tidegate_core::xml;
use tidegate_core::xml::address;
use tidegate_core::xml::doc::Doc;
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::{ATOM, DC, THREADING};
use tidegate_core::xml::tree::{self, Attribute, Element};

/// An entry without its format. All its references are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The title as plain text; empty where there is none.
    pub title: String,
    /// The address of its page.
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Time>,
    /// When it was updated.
    pub updated: Option<Time>,
    /// Its authors.
    pub authors: Vec<Person>,
    /// Who else had a part in it.
    pub contributors: Vec<Person>,
    /// Its content, else its summary.
    pub content: Option<Text>,
    /// Its summary, where that is not its content.
    pub summary: Option<Text>,
    /// Its categories.
    pub categories: Vec<Category>,
    /// Its enclosures.
    pub enclosures: Vec<Enclosure>,
    /// The address of the page with its comments, and how many there are.
    pub comments: Option<(String, Option<String>)>,
    /// Whose rights are in it.
    pub rights: Option<String>,
    /// The language of its own.
    pub language: Option<String>,
    /// The feed that it was taken over from: its title, and its address.
    pub source: Option<(String, String)>,
    /// Its links that are none of those above, as elements of Atom.
    pub links: Vec<Element>,
    /// Attributes of neither family on the entry itself.
    pub attributes: Vec<Attribute>,
    /// Elements of neither family, as they are.
    pub foreign: Vec<Element>,
}

/// A text with its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// HTML.
    Html(String),
    /// Without markup.
    Plain(String),
}

impl Text {
    /// As HTML.
    pub fn html(&self) -> String {
        match self {
            Self::Html(html) => html.clone(),
            Self::Plain(text) => {
                let mut html = String::new();
                xml::push_text(&mut html, text.trim());
                // Lines that are indented are those of the document.
                let is_indented = html.contains("\n ") || html.contains("\n\t");
                if is_indented { html } else { html.replace('\n', "<br>\n") }
            }
        }
    }

    /// Without markup.
    pub fn plain(&self) -> String {
        match self {
            Self::Html(html) => plain_text(html),
            Self::Plain(text) => text.clone(),
        }
    }

    fn is_blank(&self) -> bool {
        let (Self::Html(text) | Self::Plain(text)) = self;
        text.trim().is_empty()
    }
}

/// A file that belongs to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Enclosure {
    /// Its address.
    pub address: String,
    /// Its media type.
    pub media: Option<String>,
    /// Its length in bytes, as the publisher wrote it.
    pub length: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// For how many seconds it plays.
    pub seconds: Option<u64>,
}

impl Reading {
    /// Of an entry in any format; `base` is where its relative references lead.
    pub fn of(markup: &Markup, base: &Base) -> Self {
        let card = Self::of_card(&markup.card);
        let converted = match markup.format {
            Format::JsonFeed | Format::Atom03 | Format::Collection => {
                let target = Target { family: Family::Atom, namespace: ATOM };
                let Some(entry) = own_entry(markup, None) else { return card };
                Some(write_entry(&entry, &target, &markup.card, &markup.context))
            }
            _ => None,
        };
        let markup = converted.as_ref().unwrap_or(markup);
        let absolute = absolute(markup, base);
        let markup = absolute.as_ref().unwrap_or(markup);
        let doc = Doc::read_in(&markup.xml, &markup.context);
        let Some(entry) = doc.as_ref().and_then(Doc::root) else { return card };
        let dialect = FeedDialect { format: markup.format, root: entry.ns() };
        card.with(&EntryReading::new(entry, dialect))
    }

    /// Of what a card says: no content.
    pub fn of_card(card: &Card) -> Self {
        Self {
            title: card.title.clone(),
            link: card.link.clone(),
            published: card.published,
            updated: card.updated,
            authors: card.author.as_deref().map(Person::named).into_iter().collect(),
            ..Self::default()
        }
    }

    /// With all that the elements of the entry say beyond its card.
    fn with(mut self, entry: &EntryReading<'_, '_>) -> Self {
        let shown = tree::shallow(entry.entry);
        self.language = shown.own("lang").map(str::to_owned);
        self.attributes =
            shown.attributes.into_iter().filter(|one| !one.namespace.is_empty()).collect();
        let link = || entry.link().filter(|link| address::has_scheme(link));
        self.link = self.link.or_else(|| link().map(Cow::into_owned));
        let (mut categories, mut source_authors) = (Categories::default(), Vec::new());
        let (mut count, mut language) = (None, None);
        for (meaning, element) in &entry.elements {
            let is_text = match meaning {
                Meaning::Encoded | Meaning::Description | Meaning::Summary => true,
                Meaning::Content => element.attribute("src").is_none(),
                _ => false,
            };
            let child = if is_text { None } else { tree::of(*element) };
            let Some(child) = child else { continue };
            match meaning {
                Meaning::Link => self.take_link(child),
                Meaning::Contributor if child.namespace == DC => {
                    add_person(&mut self.contributors, Person::named(&child.content()));
                }
                Meaning::Contributor => self.contributors.extend(Person::of_atom(&child)),
                Meaning::Category => categories.add(match child.attribute("term") {
                    Some(_) => Category::of_atom(&child),
                    None => Category::of_rss(&child),
                }),
                Meaning::Content => {
                    let (address, media) = (child.value("src"), child.value("type"));
                    let address = address.unwrap_or_default();
                    self.enclosures.push(Enclosure { address, media, ..Enclosure::default() });
                }
                Meaning::Enclosure => {
                    let (media, length) = (child.value("type"), child.value("length"));
                    let address = child.value("url").unwrap_or_default();
                    let file = Enclosure { address, media, length, ..Enclosure::default() };
                    self.enclosures.push(file);
                }
                Meaning::Comments => {
                    self.comments = child.words().map(|address| (address, None));
                }
                Meaning::Rights if child.namespace == DC => {
                    self.rights = self.rights.take().or_else(|| child.words());
                }
                Meaning::Rights => self.rights = text(&child).map(|rights| rights.plain()),
                Meaning::Source if child.namespace == ATOM => {
                    self.source = atom_source(&child);
                    source_authors = author::named(&child, "author");
                }
                Meaning::Source => {
                    let title = child.words().unwrap_or_default();
                    self.source = child.value("url").map(|address| (title, address));
                }
                Meaning::Language => language = child.words(),
                Meaning::CommentCount => {
                    count = child.words();
                    self.foreign.push(child);
                }
                Meaning::Foreign | Meaning::Podcaster => self.foreign.push(child),
                Meaning::ModulePublished | Meaning::ModuleUpdated if child.namespace != ATOM => {
                    self.foreign.push(child);
                }
                _ => {}
            }
        }
        // RFC 4287 section 4.2.1: the source's authors are those of an entry without any.
        let known = [entry.authors(), self.authors, source_authors];
        self.authors = known.into_iter().find(|known| !known.is_empty()).unwrap_or_default();
        self.categories = categories.into_vec();
        self.language = self.language.or(language);
        if let (Some((_, counted)), Some(said)) = (&mut self.comments, count) {
            counted.get_or_insert(said);
        }
        (self.content, self.summary) = texts(entry);
        self.encode_addresses();
        self
    }

    fn take_link(&mut self, mut link: Element) {
        let Some(address) = link.value("href") else { return };
        let media = link.value("type");
        let is_page = media.as_deref().is_none_or(|media| media.contains("html"));
        match link.attribute("rel").unwrap_or("alternate") {
            "enclosure" => {
                let (length, title) = (link.value("length"), link.value("title"));
                let file = Enclosure { address, media, length, title, seconds: None };
                self.enclosures.push(file);
            }
            "replies" if is_page && self.comments.is_none() => {
                let counted =
                    link.attributes.iter().find(|a| a.namespace == THREADING && a.name == "count");
                self.comments = Some((address, counted.map(|a| a.value.clone())));
            }
            // Where this very entry is had as Atom.
            "self" => {}
            _ => {
                if link.attribute("rel").is_none() {
                    link.set("rel", "alternate");
                }
                self.links.push(Element { namespace: ATOM.to_owned(), ..link.prefixed("atom") });
            }
        }
    }

    /// Writes addresses as such, and leaves the link to the page out of the others.
    fn encode_addresses(&mut self) {
        let parts = self.links.iter_mut().flat_map(|link| &mut link.attributes);
        let links = parts.filter(|part| part.namespace.is_empty() && part.name == "href");
        let addresses = (self.link.iter_mut())
            .chain(links.map(|part| &mut part.value))
            .chain(self.enclosures.iter_mut().map(|enclosure| &mut enclosure.address))
            .chain(self.comments.iter_mut().map(|(address, _)| address));
        for address in addresses {
            *address = address::encoded(std::mem::take(address));
        }
        let page = self.link.as_deref();
        self.links.retain(|other| {
            other.attribute("rel") != Some("alternate") || other.attribute("href") != page
        });
    }
}

/// The content of an entry, and its summary, where that is not its content. In Atom a module's word
/// for the content comes second.
fn texts(entry: &EntryReading<'_, '_>) -> (Option<Text>, Option<Text>) {
    let first = |meaning| {
        let mut elements = entry.all(meaning).filter_map(tree::of);
        elements.find_map(|element| match meaning {
            Meaning::Content | Meaning::Summary if element.attribute("src").is_some() => None,
            Meaning::Content | Meaning::Summary => text(&element),
            _ => Some(Text::Html(tree::escaped_html(&element))),
        })
    };
    let mut places = [Meaning::Encoded, Meaning::Content, Meaning::Description, Meaning::Summary];
    if entry.is_atom() {
        places.swap(0, 1);
    }
    let mut texts = places.into_iter().filter_map(first).filter(|text| !text.is_blank());
    let content = texts.next();
    // A plain text and the same as HTML differ in how their lines end.
    let words = |text: &Text| text.html().replace("<br>\n", "\n").trim().to_owned();
    let content_words = content.as_ref().map(words);
    let summary = texts.find(|text| content_words != Some(words(text)));
    (content, summary)
}

/// The feed that an entry was taken over from (RFC 4287 section 4.2.11).
fn atom_source(source: &Element) -> Option<(String, String)> {
    let mut links = source.elements().filter(|child| child.is(ATOM, "link"));
    let own = links.find(|link| link.attribute("rel") == Some("self"));
    let address = own.and_then(|link| link.value("href"));
    let address = address.or_else(|| source.find(ATOM, "id").map(Element::content))?;
    let title = source.find(ATOM, "title").map(Element::content).unwrap_or_default();
    Some((title, address))
}

/// A text of Atom 1.0 (RFC 4287 sections 3.1.1 and 4.1.3); `None` where it is of a media type that
/// no other format has a place for.
fn text(element: &Element) -> Option<Text> {
    let media = element.attribute("type").unwrap_or("text").to_ascii_lowercase();
    match media.split(';').next().unwrap_or_default().trim() {
        "html" | "text/html" => Some(Text::Html(tree::escaped_html(element))),
        "xhtml" | "application/xhtml+xml" => Some(Text::Html(tree::html(element))),
        "text" | "" => Some(Text::Plain(element.content())),
        text if text.starts_with("text/") && !text.ends_with("xml") => {
            Some(Text::Plain(element.content()))
        }
        _ => None,
    }
}
