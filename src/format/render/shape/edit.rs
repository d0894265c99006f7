//! An edit that was made elsewhere, in the item's own terms: what its entry says by now and its shape
//! does not, under the names that the shape has for it.

use super::{ReadCollection, Shape};
use crate::render::Base;
use crate::render::convert::{self, Neutral, Target, Text};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tidegate_core::model::{Family, Markup, Time};
use tidegate_core::xml::html::{Piece, Pieces, TagRule};
use tidegate_core::xml::ns::{ATOM, FEED_SYNC};
use tidegate_core::xml::reference;
use tidegate_core::xml::tree::{self, Element, Node};

/// By what names a collection says the same, the one for what it does not say yet
/// first.
const TITLE: &[&str] = &["title", "subject"];
const LINK: &[&str] = &["link", "url"];
const AUTHOR: &[&str] = &["author", "creator"];
const CONTENT: &[&str] = &["content", "body", "encoded"];
const DESCRIPTION: &[&str] = &["description"];
const SUMMARY: &[&str] = &["summary"];
const PUBLISHED: &[&str] = &["published", "pubDate"];
const UPDATED: &[&str] = &["updated"];
const CATEGORIES: &[&str] = &["categories", "tags", "category"];
const ENCLOSURES: &[&str] = &["enclosures", "enclosure"];

/// The shape of an item that says what its entry does; `base` is where its references lead.
pub(super) fn edited(shape: Shape, entry: &Markup, base: &Base, read: ReadCollection) -> Shape {
    let Some(before) = read(&collection_of(&shape)) else { return shape };
    let is_plain = matches!(Neutral::of(&before, base).content, Some(Text::Plain(_)));
    // An entry that stands in a feed of another family says what that has words for.
    let target = Target { family: entry.format.family(), namespace: "" };
    let before = match target.family {
        Family::Atom => Cow::Borrowed(&before),
        Family::Rss => convert::markup(&before, &target, None, || base.clone()),
    };
    let [before, now] = [&before, entry].map(|markup| Says::of(&Neutral::of(markup, base)));
    match shape {
        Shape::Json(mut object) => {
            before.until(&now, &mut object, is_plain);
            Shape::Json(object)
        }
        Shape::Pox(nodes) => {
            let mut nodes = Nodes { own: own_namespace(&nodes), nodes };
            before.until(&now, &mut nodes, is_plain);
            Shape::Pox(nodes.nodes)
        }
    }
}

/// A collection of an item of this shape alone.
fn collection_of(shape: &Shape) -> String {
    match shape {
        Shape::Json(object) => json!({ "sharing": {}, "items": [object] }).to_string(),
        Shape::Pox(nodes) => {
            let own = own_namespace(nodes);
            let mut item = Element::new(&own, "item");
            item.children.clone_from(nodes);
            let sharing = Element::new(FEED_SYNC, "sharing");
            let collection = Element::new(&own, "collection").child(sharing).child(item);
            let mut text = String::new();
            tree::write(&mut text, &collection, &mut Vec::new());
            text
        }
    }
}

/// The namespace that the item's own elements are in.
fn own_namespace(nodes: &[Node]) -> String {
    let mut spaces = nodes.iter().filter_map(|node| match node {
        Node::Element(element) => Some(element.namespace.as_str()),
        Node::Text(_) => None,
    });
    spaces.find(|space| *space != ATOM).unwrap_or_default().to_owned()
}

/// What an entry says that a collection has words for.
#[derive(Debug, Default)]
struct Says {
    title: Option<String>,
    link: Option<String>,
    author: Option<String>,
    content: Option<Text>,
    summary: Option<String>,
    published: Option<Time>,
    updated: Option<Time>,
    categories: Vec<String>,
    enclosures: Vec<FileMembers>,
}

/// A file that belongs to an item: its address, type and length.
type FileMembers = [Option<String>; 3];

impl Says {
    fn of(entry: &Neutral) -> Self {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let html = |text: &Option<Text>| text.as_ref().and_then(|text| some(&text.html()));
        let authors: Vec<&str> = entry.authors.iter().map(|author| author.name.as_str()).collect();
        Self {
            title: some(&entry.title),
            link: entry.link.clone(),
            author: some(&authors.join(", ")),
            content: entry.content.clone(),
            summary: html(&entry.summary),
            published: entry.published,
            updated: entry.updated,
            categories: entry.categories.iter().map(|said| said.shown().to_owned()).collect(),
            enclosures: entry
                .enclosures
                .iter()
                .map(|file| [Some(file.address.clone()), file.media.clone(), file.length.clone()])
                .collect(),
        }
    }

    /// Says in the terms of an item, which say this, what is said now instead.
    /// `is_plain`: their content is a text without markup.
    fn until(&self, now: &Self, terms: &mut impl Terms, is_plain: bool) {
        let has_content = terms.text(CONTENT).is_some();
        let has_description = terms.text(DESCRIPTION).is_some();
        // A description alone is the content.
        let content = if has_description && !has_content { DESCRIPTION } else { CONTENT };
        let summary = if content == DESCRIPTION { SUMMARY } else { DESCRIPTION };
        for (names, before, now) in [
            (TITLE, &self.title, &now.title),
            (LINK, &self.link, &now.link),
            (AUTHOR, &self.author, &now.author),
            (summary, &self.summary, &now.summary),
        ] {
            if before != now {
                terms.say(names, now.as_deref());
            }
        }
        let html = |text: &Option<Text>| text.as_ref().map(|text| text.html().trim().to_owned());
        let (was, is) = (html(&self.content), html(&now.content));
        if was != is {
            // It stays one unless markup came into it.
            let plain = is.as_deref().filter(|_| is_plain).and_then(without_markup);
            terms.say(content, plain.or(is).as_deref());
        }
        // An item that says no date needs none.
        for (names, before, now) in
            [(PUBLISHED, self.published, now.published), (UPDATED, self.updated, now.updated)]
        {
            let written = terms.text(names).filter(|_| before != now);
            if let (Some(written), Some(now)) = (written, now) {
                let is_mail = Time::parse_rfc3339(written.trim()).is_err();
                let now = if is_mail { now.rfc822() } else { now.to_string() };
                terms.say(names, Some(&now));
            }
        }
        if self.categories != now.categories {
            terms.categorize(&now.categories);
        }
        if self.enclosures != now.enclosures {
            terms.enclose(&now.enclosures);
        }
    }
}

/// A text as it is written in HTML that has no tags; `None` where it has some.
fn without_markup(html: &str) -> Option<String> {
    let mut text = String::with_capacity(html.len());
    for piece in Pieces::new(html, TagRule::All) {
        match piece {
            Piece::Text(written) => text.push_str(written),
            Piece::Reference(name) => reference::push(&mut text, name),
            Piece::Tag(_) | Piece::Comment => return None,
        }
    }
    Some(text)
}

/// An item in its own terms.
trait Terms {
    /// What the first of these says that is there.
    fn text(&self, names: &[&str]) -> Option<String>;
    /// Lets the first of these that is there say a text, or takes it out; adds it where none is.
    fn say(&mut self, names: &[&str], text: Option<&str>);
    /// Makes these its categories.
    fn categorize(&mut self, categories: &[String]);
    /// Makes these its files.
    fn enclose(&mut self, enclosures: &[FileMembers]);
}

/// The member of an object that has a text in one.
fn within(name: &str) -> &'static str {
    if name == "author" { "name" } else { "href" }
}

impl Terms for Map<String, Value> {
    fn text(&self, names: &[&str]) -> Option<String> {
        self.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(name, value)| {
            let value = value.get(within(name)).unwrap_or(value);
            value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
        })
    }

    fn say(&mut self, names: &[&str], text: Option<&str>) {
        let name = self.keys().find(|name| names.contains(&name.as_str())).cloned();
        let Some(text) = text else {
            name.and_then(|name| self.remove(&name));
            return;
        };
        let name = name.or_else(|| names.first().map(ToString::to_string)).unwrap_or_default();
        let value = self.entry(name.clone()).or_insert(Value::Null);
        match value.get_mut(within(&name)) {
            Some(inner) => *inner = text.into(),
            None => *value = text.into(),
        }
    }

    fn categorize(&mut self, categories: &[String]) {
        let mut names = CATEGORIES.iter().filter(|name| self.contains_key(**name));
        let name = names.next().or(CATEGORIES.first()).copied().unwrap_or_default();
        let is_one = self.get(name).is_some_and(Value::is_string);
        CATEGORIES.iter().for_each(|name| drop(self.remove(*name)));
        match categories {
            [] => {}
            [only] if is_one => drop(self.insert(name.to_owned(), only.as_str().into())),
            all => drop(self.insert(name.to_owned(), all.to_vec().into())),
        }
    }

    fn enclose(&mut self, enclosures: &[FileMembers]) {
        let mut names = ENCLOSURES.iter().filter(|name| self.contains_key(**name));
        let name = names.next().or(ENCLOSURES.first()).copied().unwrap_or_default();
        ENCLOSURES.iter().for_each(|name| drop(self.remove(*name)));
        let files = enclosures.iter().map(|parts| {
            let parts = ["url", "type", "length"].into_iter().zip(parts);
            let said =
                parts.filter_map(|(name, said)| Some((name.to_owned(), said.clone()?.into())));
            Value::Object(said.collect())
        });
        let files: Vec<Value> = files.collect();
        if !files.is_empty() {
            self.insert(name.to_owned(), files.into());
        }
    }
}

/// The elements of an item.
struct Nodes {
    nodes: Vec<Node>,
    own: String,
}

impl Nodes {
    fn find_mut(&mut self, names: &[&str]) -> Option<&mut Element> {
        self.nodes.iter_mut().find_map(|node| match node {
            Node::Element(element) if names.contains(&element.name.as_str()) => Some(element),
            Node::Element(_) | Node::Text(_) => None,
        })
    }

    fn take_out(&mut self, is_out: impl Fn(&Element) -> bool) {
        self.nodes.retain(|node| !matches!(node, Node::Element(element) if is_out(element)));
    }

    fn push(&mut self, element: Element) {
        self.nodes.push(Node::Element(element));
    }
}

impl Terms for Nodes {
    fn text(&self, names: &[&str]) -> Option<String> {
        self.nodes.iter().find_map(|node| match node {
            Node::Element(element) if names.contains(&element.name.as_str()) => {
                Some(element.content())
            }
            Node::Element(_) | Node::Text(_) => None,
        })
    }

    fn say(&mut self, names: &[&str], text: Option<&str>) {
        let Some(text) = text else {
            let mut is_first = true;
            let is_it = |element: &Element| names.contains(&element.name.as_str());
            self.nodes.retain(|node| {
                let is_out = is_first && matches!(node, Node::Element(element) if is_it(element));
                is_first &= !is_out;
                !is_out
            });
            return;
        };
        let own = self.own.clone();
        let Some(element) = self.find_mut(names) else {
            let name = names.first().copied().unwrap_or_default();
            return self.push(Element::new(&own, name).text(text));
        };
        let is_atom = element.namespace == ATOM;
        let part = within(&element.name);
        if let Some(href) = element.attributes.iter_mut().find(|a| is_atom && a.name == part) {
            text.clone_into(&mut href.value);
        } else if let Some(Node::Element(name)) = element
            .children
            .iter_mut()
            .find(|node| matches!(node, Node::Element(child) if child.name == part))
        {
            name.children = vec![Node::Text(text.to_owned())];
        } else {
            element.children = vec![Node::Text(text.to_owned())];
            // Markup that stood in it is text now.
            for kind in element.attributes.iter_mut().filter(|a| is_atom && a.value == "xhtml") {
                "html".clone_into(&mut kind.value);
            }
        }
    }

    fn categorize(&mut self, categories: &[String]) {
        let said = |element: &Element| {
            let term = element.attribute("label").or_else(|| element.attribute("term"));
            term.map_or_else(|| element.content().trim().to_owned(), ToOwned::to_owned)
        };
        let there: Vec<String> = self
            .nodes
            .iter()
            .filter_map(|node| match node {
                Node::Element(element) if element.name == "category" => Some(said(element)),
                Node::Element(_) | Node::Text(_) => None,
            })
            .collect();
        let left: std::collections::HashSet<&String> = categories.iter().collect();
        self.take_out(|element| element.name == "category" && !left.contains(&said(element)));
        let there: std::collections::HashSet<String> = there.into_iter().collect();
        for new in categories.iter().filter(|category| !there.contains(*category)) {
            let own = self.own.clone();
            self.push(Element::new(&own, "category").text(new));
        }
    }

    fn enclose(&mut self, enclosures: &[FileMembers]) {
        let is_link = |element: &Element| {
            element.namespace == ATOM && element.attribute("rel") == Some("enclosure")
        };
        self.take_out(|element| element.name == "enclosure" || is_link(element));
        for parts in enclosures {
            let mut file = Element::new(&self.own, "enclosure");
            for (name, said) in ["url", "type", "length"].into_iter().zip(parts) {
                if let Some(said) = said {
                    file.set(name, said);
                }
            }
            self.push(file);
        }
    }
}
