//! What an entry says as an element of Atom 1.0 or RSS 2.0.
//!
//! What the one family has no element of its own for is said by a module that readers of it know:
//! Dublin Core, `content:encoded`, `slash:comments`, and elements of Atom in RSS.

use super::Target;
use super::reading::{Enclosure, Reading, Text};
use crate::render::media;
use std::collections::HashSet;
use tidegate_core::model::{Family, Time};
use tidegate_core::xml::address::is_address;
use tidegate_core::xml::html::plain_text_if_html;
use tidegate_core::xml::ns::{ATOM, CONTENT, DC, SLASH, THREADING};
use tidegate_core::xml::tree::{Attribute, Element};

impl Reading {
    /// As the element of an entry in the target's format, without id.
    pub fn element(self, target: &Target<'_>, seen: Option<Time>) -> Element {
        let space = target.namespace;
        let mut entry = Element::new(space, target.entry());
        entry.attributes.clone_from(&self.attributes);
        if let (Some(language), None) = (&self.language, entry.own("lang")) {
            entry.attributes.push(Attribute::lang(language));
        }
        match target.family {
            Family::Atom => self.fill_atom(&mut entry, space, seen),
            Family::Rss => self.fill_rss(&mut entry, space),
        }
        self.foreign.into_iter().for_each(|foreign| entry.push(foreign));
        entry
    }

    fn fill_atom(&self, entry: &mut Element, space: &str, seen: Option<Time>) {
        let linked = |relation: &str, address: &str| link(space, relation, address);
        // RFC 4287 section 4.1.2 wants one, if an empty one.
        entry.push_text("title", Some(&self.title));
        if let Some(link) = self.link.as_deref().filter(|link| is_address(link)) {
            entry.push(linked("alternate", link));
        }
        let updated = self.updated.or(self.published).or(seen);
        entry.push_text("updated", updated.map(|time| time.to_string()));
        entry.push_text("published", self.published.map(|time| time.to_string()));
        for (kind, people) in [("author", &self.authors), ("contributor", &self.contributors)] {
            for person in people {
                entry.push(person.element(space, kind));
            }
        }
        for category in &self.categories {
            entry.push(category.element(space));
        }
        for link in self.address_links() {
            entry.push(Element { namespace: space.to_owned(), ..link.clone().prefixed("") });
        }
        if let Some((address, count)) =
            self.comments.as_ref().filter(|(address, _)| is_address(address))
        {
            let mut replies = linked("replies", address).with("type", "text/html");
            if let Some(count) = count.as_ref().filter(|count| is_number(count)) {
                replies.attributes.push(Attribute::of("thr", THREADING, "count", count));
            }
            entry.push(replies);
        }
        for enclosure in self.enclosures.iter().filter(|enclosure| is_address(&enclosure.address)) {
            entry.push(linked("enclosure", &enclosure.address).with_known(&[
                ("type", enclosure.media.as_deref()),
                ("length", enclosure.length.as_deref()),
                ("title", enclosure.title.as_deref()),
            ]));
        }
        entry.push_text("rights", self.rights.as_ref());
        if let Some((title, address)) = &self.source {
            let mut source = Element::new(space, "source");
            source.push_text("id", Some(address));
            source.push_text("title", Some(title));
            entry.push(source.child(linked("self", address)));
        }
        for (name, text) in [("summary", &self.summary), ("content", &self.content)] {
            if let Some(text) = text {
                entry.push(Element::new(space, name).text(&text.html()).with("type", "html"));
            }
        }
    }

    fn address_links(&self) -> impl Iterator<Item = &Element> {
        self.links.iter().filter(|link| link.attribute("href").is_some_and(is_address))
    }

    fn fill_rss(&self, item: &mut Element, space: &str) {
        // RSS 2.0 wants a title or a description.
        let is_titled = !self.title.trim().is_empty() || self.content.is_none();
        item.push_text("title", is_titled.then_some(&self.title));
        item.push_text("link", self.link.as_ref().filter(|link| is_address(link)));
        item.push_text("pubDate", self.published.or(self.updated).map(Time::rfc822));
        let updated = self.updated.filter(|_| self.published.is_some());
        if let Some(updated) = updated.filter(|updated| Some(*updated) != self.published) {
            item.push(module("atom", ATOM, "updated", &updated.to_string()));
        }
        // RSS wants an electronic mail address in `author`.
        let names = |people: &[super::Person]| -> Vec<String> {
            people.iter().map(|person| person.name.clone()).collect()
        };
        let core = [
            ("creator", names(&self.authors)),
            ("contributor", names(&self.contributors)),
            ("rights", self.rights.iter().cloned().collect()),
            ("language", self.language.iter().cloned().collect()),
        ];
        for (name, texts) in core {
            for text in texts {
                item.push(module("dc", DC, name, &text));
            }
        }
        for category in &self.categories {
            category.push_rss(item, space);
        }
        if let Some((address, count)) = &self.comments {
            item.push_text("comments", Some(address));
            let is_counted = self.foreign.iter().any(|other| other.is(SLASH, "comments"));
            if let Some(count) = count.as_ref().filter(|count| is_number(count) && !is_counted) {
                item.push(module("slash", SLASH, "comments", count));
            }
        }
        for enclosure in self.enclosures.iter().filter(|enclosure| is_address(&enclosure.address)) {
            item.push(enclosure.rss(space));
        }
        self.address_links().for_each(|link| item.push(link.clone()));
        if let Some((title, address)) = &self.source {
            item.push(Element::new(space, "source").text(title).with("url", address));
        }
        let [content, summary] =
            [&self.content, &self.summary].map(|text| text.as_ref().map(Text::html));
        item.push_text("description", summary.as_ref().or(content.as_ref()));
        if let (Some(_), Some(content)) = (&summary, &content) {
            item.push(module("content", CONTENT, "encoded", content));
        }
    }
}

impl Category {
    /// Of an element of Atom.
    pub fn of_atom(element: &Element) -> Self {
        let term = element.value("term").unwrap_or_default();
        Self { term, scheme: element.value("scheme"), label: element.value("label") }
    }

    /// Of an element of RSS.
    pub fn of_rss(element: &Element) -> Self {
        let term = plain_text_if_html(&element.content());
        Self { term, scheme: element.value("domain"), label: None }
    }

    /// As Atom's.
    pub fn element(&self, space: &str) -> Element {
        // RFC 4287 section 4.2.2.2: a scheme is an IRI.
        let scheme = self.scheme.as_deref().filter(|scheme| is_address(scheme));
        Element::new(space, "category")
            .with("term", &self.term)
            .with_known(&[("scheme", scheme), ("label", self.label.as_deref())])
    }

    /// As that of RSS, which has one text: what people read. Where that is not the term, Atom's own
    /// element stands beside it.
    pub fn push_rss(&self, item: &mut Element, space: &str) {
        let category = Element::new(space, "category").text(self.shown());
        item.push(category.with_known(&[("domain", self.scheme.as_deref())]));
        if self.label.is_some() {
            item.push(self.element(ATOM).prefixed("atom"));
        }
    }
}

impl Enclosure {
    /// The media type, as it is said or as the address shows it.
    pub fn media_type(&self) -> &str {
        let said = self.media.as_deref().map(str::trim).filter(|media| media.contains('/'));
        said.unwrap_or_else(|| media::of_address(&self.address))
    }

    /// Its length in bytes, where that is a number which says something.
    pub fn size(&self) -> Option<u64> {
        self.length.as_deref()?.trim().parse().ok().filter(|size| *size > 0)
    }

    /// RSS 2.0 wants all three attributes; a length of zero is how it says that none is known.
    fn rss(&self, space: &str) -> Element {
        let length = self.length.as_deref().map(str::trim).filter(|length| is_number(length));
        Element::new(space, "enclosure")
            .with("url", &self.address)
            .with("type", self.media_type())
            .with("length", length.unwrap_or("0"))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A link of Atom.
pub fn link(space: &str, relation: &str, address: &str) -> Element {
    Element::new(space, "link").with("rel", relation).with("href", address)
}

/// An element of a module, with its customary prefix.
pub fn module(prefix: &str, namespace: &str, name: &str, text: &str) -> Element {
    Element::new(namespace, name).text(text).prefixed(prefix)
}

/// A category (RFC 4287 section 4.2.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Category {
    /// What it is.
    pub term: String,
    /// Of what scheme.
    pub scheme: Option<String>,
    /// What to show instead of the term.
    pub label: Option<String>,
}

impl Category {
    /// What people read.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.term)
    }
}

/// The categories of an entry that say something, in its order. One that only shows the text of
/// another of its scheme is that other's: a converted feed has both.
#[derive(Debug, Default)]
pub(super) struct Categories(Vec<Category>);

impl Categories {
    /// Adds one.
    pub(super) fn add(&mut self, new: Category) {
        self.0.push(Category {
            term: new.term.trim().to_owned(),
            label: new.label.filter(|label| !label.trim().is_empty() && *label != new.term),
            ..new
        });
    }

    /// Each once.
    pub(super) fn into_vec(mut self) -> Vec<Category> {
        let named = |one: &Category| (one.scheme.clone(), one.shown().to_owned());
        let labelled: HashSet<_> =
            self.0.iter().filter(|one| one.label.is_some()).map(named).collect();
        let mut known = HashSet::new();
        self.0.retain(|one| {
            let is_shown = one.label.is_none() && labelled.contains(&named(one));
            !one.shown().is_empty() && !is_shown && known.insert(one.clone())
        });
        self.0
    }
}

/// The tags that say something, in their order, each once.
pub fn tags<T: AsRef<str>>(tags: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut known = HashSet::new();
    let tags = tags.into_iter().map(|tag| tag.as_ref().trim().to_owned());
    tags.filter(|tag| !tag.is_empty() && known.insert(tag.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_is_there_once() {
        let category = |term: &str, scheme: Option<&str>, label: Option<&str>| Category {
            term: term.to_owned(),
            scheme: scheme.map(str::to_owned),
            label: label.map(str::to_owned),
        };
        let (plain, labelled) = (category("a", None, None), category("x", None, Some("a")));
        let (other, third) = (category("a", Some("urn:x"), None), category("y", None, Some("a")));
        for (all, found) in [
            (vec![plain.clone(), plain.clone()], vec![plain.clone()]),
            // What shows the text of another of its scheme is that other, whichever comes first.
            (vec![plain.clone(), labelled.clone()], vec![labelled.clone()]),
            (vec![labelled.clone(), plain.clone()], vec![labelled.clone()]),
            (vec![labelled.clone(), other.clone()], vec![labelled.clone(), other]),
            (vec![third.clone(), labelled.clone()], vec![third, labelled]),
            (vec![category(" a ", None, Some(" "))], vec![plain.clone()]),
            (vec![category("a", None, Some("a"))], vec![plain]),
            (vec![category(" ", None, None)], vec![]),
        ] {
            let mut categories = Categories::default();
            all.iter().for_each(|one| categories.add(one.clone()));
            assert_eq!(categories.into_vec(), found, "{all:?}");
        }
        assert_eq!(tags([" a", "", "b", "a", " "]), ["a", "b"]);
    }

    #[test]
    fn categories_are_told_however_many_there_are() {
        let mut categories = Categories::default();
        let named = |n: usize| Category { term: n.to_string(), ..Category::default() };
        (0..100_000).chain(0..100_000).for_each(|n| categories.add(named(n)));
        assert!(categories.into_vec().into_iter().eq((0..100_000).map(named)));
    }
}
