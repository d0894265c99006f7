//! People: the authors of a feed or an entry, and who helped.

use super::{json_feed, own_head};
use crate::render::Addresses;
use tidegate_core::model::{Family, Format, Skeleton};
use tidegate_core::xml::address::mail_and_name;
use tidegate_core::xml::ns::{ATOM, DC};
use tidegate_core::xml::tree::Element;

/// The most people of one kind that are told of a feed or an entry.
const PEOPLE_LIMIT: usize = 16;

/// A person (RFC 4287 section 3.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Person {
    /// The name; never empty.
    pub name: String,
    /// An address of a page about them.
    pub uri: Option<String>,
    /// An electronic mail address.
    pub email: Option<String>,
}

impl Person {
    /// Someone of whom the name is known alone.
    pub fn named(name: &str) -> Self {
        Self { name: name.trim().to_owned(), ..Self::default() }
    }

    /// A person of Atom; `None` without a name.
    pub fn of_atom(element: &Element) -> Option<Self> {
        let said = |name| element.words_of(ATOM, name);
        Some(Self { name: said("name")?, uri: said("uri"), email: said("email") })
    }

    /// `mail@example.org (Name)`, as RSS 2.0 has authors and editors; a bare address or name as it is.
    pub fn of_rss(text: &str) -> Option<Self> {
        match mail_and_name(text) {
            Some((mail, name)) => Some(Self { email: Some(mail.to_owned()), ..Self::named(name) }),
            None => Some(Self::named(text)).filter(|person| !person.name.is_empty()),
        }
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

/// Adds someone who is not among them yet; what more is known of one who is, is added to them.
pub fn add(people: &mut Vec<Person>, person: Person) {
    if let Some(known) = people.iter_mut().find(|known| known.name == person.name) {
        known.uri = known.uri.take().or(person.uri);
        known.email = known.email.take().or(person.email);
    } else if people.len() < PEOPLE_LIMIT && !person.name.is_empty() {
        people.push(person);
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
            add(&mut found, person);
        }
    }
    found
}

/// Who a channel of RSS names as its authors: `dc:creator`, else its editor.
pub fn of_channel(channel: &Element) -> Vec<Person> {
    let mut found = Vec::new();
    for creator in channel.elements().filter(|child| child.is(DC, "creator")) {
        add(&mut found, Person::named(&creator.content()));
    }
    let editor = channel.find(&channel.namespace, "managingEditor").map(Element::content);
    if let Some(editor) = editor.filter(|_| found.is_empty()).as_deref().and_then(Person::of_rss) {
        add(&mut found, editor);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_of_rss_have_names_and_mail() {
        let person = Person::of_rss(" a@example.org (Ada L.) ").unwrap();
        assert_eq!((&*person.name, person.email.as_deref()), ("Ada L.", Some("a@example.org")));
        assert_eq!(Person::of_rss("Ada (the first)"), Some(Person::named("Ada (the first)")));
        assert_eq!(Person::of_rss(" "), None);
    }

    #[test]
    fn one_person_is_told_once() {
        let mut people = vec![Person::named("A")];
        add(&mut people, Person { email: Some("a@x".to_owned()), ..Person::named("A") });
        add(&mut people, Person::named(" "));
        (0..99).for_each(|n| add(&mut people, Person::named(&n.to_string())));
        assert_eq!((people.len(), people[0].email.as_deref()), (PEOPLE_LIMIT, Some("a@x")));
    }
}
