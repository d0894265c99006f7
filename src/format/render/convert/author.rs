//! People: the authors of a feed or an entry, and who helped.

use super::{json_feed, own_head};
use crate::parse::reading::{Person, add_person};
use crate::render::Addresses;
use tidegate_core::model::{Family, Format, Skeleton};
use tidegate_core::xml::ns::{ATOM, DC, ITUNES};
use tidegate_core::xml::tree::Element;

impl Person {
    /// A person of Atom; `None` without a name.
    pub fn of_atom(element: &Element) -> Option<Self> {
        let said = |name| element.words_of(ATOM, name);
        Some(Self { name: said("name")?, uri: said("uri"), email: said("email") })
    }

    /// As an element of Atom.
    pub fn element(&self, namespace: &str, kind: &str) -> Element {
        let mut person = Element::new(namespace, kind);
        person.push_text("name", Some(&self.name));
        person.push_text("uri", self.uri.as_ref());
        person.push_text("email", self.email.as_ref());
        person
    }
}

/// The authors of a feed (RFC 4287 section 4.2.1 and its like in the other formats); none where it
/// names nobody.
pub fn people(skeleton: &Skeleton) -> Vec<Person> {
    if skeleton.format == Format::JsonFeed {
        return named(&json_feed::people(skeleton), "author");
    }
    let head = own_head(skeleton, &Addresses::default());
    match skeleton.format.family() {
        Family::Atom => named(&head, "author"),
        Family::Rss => of_channel(&head),
    }
}

/// The names of a feed's authors.
pub fn authors(skeleton: &Skeleton) -> Vec<String> {
    people(skeleton).into_iter().map(|person| person.name).collect()
}

/// The people in an element of Atom (a feed, an entry or a source), of a kind: `author`, `contributor`.
pub fn named(element: &Element, kind: &str) -> Vec<Person> {
    let mut found = Vec::new();
    for person in element.elements().filter(|child| child.is(ATOM, kind)) {
        if let Some(person) = Person::of_atom(person) {
            add_person(&mut found, person);
        }
    }
    found
}

/// Who a channel of RSS names as its authors: `dc:creator`, else its editor, else who makes the podcast.
pub fn of_channel(channel: &Element) -> Vec<Person> {
    let mut found = Vec::new();
    for creator in channel.elements().filter(|child| child.is(DC, "creator")) {
        add_person(&mut found, Person::named(&creator.content()));
    }
    let editor = channel.find(&channel.namespace, "managingEditor").map(Element::content);
    if let Some(editor) = editor.filter(|_| found.is_empty()).as_deref().and_then(Person::of_rss) {
        add_person(&mut found, editor);
    }
    let podcaster = channel.find(ITUNES, "author").filter(|_| found.is_empty());
    podcaster.iter().for_each(|name| add_person(&mut found, Person::named(&name.content())));
    found
}
