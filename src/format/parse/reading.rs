//! What the elements of an entry mean: the one place that says so, for whoever asks.

use super::dialect::{FeedDialect, page_rank, relation, take_better};
use super::entry::{plain_title, prose};
use std::borrow::Cow;
use tidegate_core::model::Time;
use tidegate_core::xml::address::{is_web, mail_and_name, resolve};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::html::plain_text_if_html;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{collapsed, date, trimmed};

/// The most people of one kind that are told of a feed or an entry.
const PEOPLE_LIMIT: usize = 16;

/// What an element says of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Id,
    Title,
    /// The address of its page, as text.
    Page,
    /// A link in Atom's manner.
    Link,
    Author,
    /// `dc:creator`.
    Creator,
    /// `itunes:author`.
    Podcaster,
    Contributor,
    Published,
    /// When it was made, which stands in for when it was published.
    Created,
    /// The same dates by modules.
    ModulePublished,
    Updated,
    ModuleUpdated,
    /// Atom's content.
    Content,
    /// `content:encoded`.
    Encoded,
    /// RSS's description.
    Description,
    Summary,
    Category,
    Enclosure,
    /// The address of the page with its comments.
    Comments,
    /// `slash:comments`: how many there are.
    CommentCount,
    Rights,
    /// The feed that it was taken over from.
    Source,
    Language,
    /// Something of neither family.
    Foreign,
}

impl Meaning {
    /// What an element of an entry means; `None` where that is nothing that anybody asks for.
    fn of(element: DocElement<'_, '_>, dialect: FeedDialect) -> Option<Self> {
        let ns = element.ns();
        let own = dialect.owns(ns);
        let is_atom = matches!(ns, Ns::Atom | Ns::Atom03) || own && dialect.is_atom();
        let is_rss = own && !dialect.is_atom();
        Some(match (ns, element.local()) {
            _ if ns.is_sync_markup() => return None,
            _ if dialect.is_atom_link(element) => Self::Link,
            (Ns::Named("content"), "encoded") => Self::Encoded,
            (Ns::Named("dc"), "creator") => Self::Creator,
            (Ns::Named("dc"), "contributor") => Self::Contributor,
            (Ns::Named("dc"), "rights") => Self::Rights,
            (Ns::Named("dc"), "language") => Self::Language,
            (Ns::Named("dc"), "date") => Self::Created,
            (Ns::Named("dcterms"), "issued" | "created") => Self::ModulePublished,
            (Ns::Named("dcterms"), "modified") => Self::ModuleUpdated,
            (Ns::Named("itunes"), "author") => Self::Podcaster,
            (Ns::Named("slash"), "comments") => Self::CommentCount,
            (_, "id") if own && is_atom => Self::Id,
            (_, "guid") if is_rss && !dialect.is_rdf() => Self::Id,
            (_, "link") if is_rss => Self::Page,
            (_, "title") if own => Self::Title,
            (_, "author") if is_atom || is_rss => Self::Author,
            (_, "contributor") if is_atom => Self::Contributor,
            (_, "category") if is_atom || is_rss => Self::Category,
            (_, "content") if is_atom => Self::Content,
            (_, "summary") if is_atom => Self::Summary,
            (_, "rights") if is_atom => Self::Rights,
            (_, "source") if is_atom || is_rss => Self::Source,
            (_, "description") if is_rss => Self::Description,
            (_, "enclosure") if own => Self::Enclosure,
            (_, "comments") if is_rss => Self::Comments,
            (_, "published" | "issued" | "pubDate") if own => Self::Published,
            (_, "created") if own => Self::Created,
            (_, "updated" | "modified") if own => Self::Updated,
            (_, "published") if is_atom => Self::ModulePublished,
            (_, "updated") if is_atom => Self::ModuleUpdated,
            _ if is_atom || is_rss || ns == Ns::None => return None,
            _ => Self::Foreign,
        })
    }
}

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
    /// Someone of whom the name is known alone, as a text that may be HTML.
    pub fn named(name: &str) -> Self {
        Self { name: plain_text_if_html(name), ..Self::default() }
    }

    /// A person in Atom's manner; `None` without a name.
    fn of(element: DocElement<'_, '_>, dialect: FeedDialect) -> Option<Self> {
        let said = |name: &str| {
            let is_atom = |ns| dialect.owns(ns) || matches!(ns, Ns::Atom | Ns::Atom03);
            let mut parts = element.children().filter(|part| is_atom(part.ns()));
            let found =
                parts.find(|part| part.local() == name && !part.all_text().trim().is_empty());
            found.map(|part| collapsed(part.all_text().into()).into_owned())
        };
        Some(Self { name: said("name")?, uri: said("uri"), email: said("email") })
    }

    /// `mail@example.org (Name)`, as RSS 2.0 has authors and editors; a bare address or name as it is.
    pub fn of_rss(text: &str) -> Option<Self> {
        match mail_and_name(text) {
            Some((mail, name)) => Some(Self { email: Some(mail.to_owned()), ..Self::named(name) }),
            None => Some(Self::named(text)).filter(|person| !person.name.is_empty()),
        }
    }
}

/// Adds someone who is not among them yet; what more is known of one who is, is added to them.
pub fn add_person(people: &mut Vec<Person>, person: Person) {
    if let Some(known) = people.iter_mut().find(|known| known.name == person.name) {
        known.uri = known.uri.take().or(person.uri);
        known.email = known.email.take().or(person.email);
    } else if people.len() < PEOPLE_LIMIT && !person.name.is_empty() {
        people.push(person);
    }
}

/// Whether a `guid` does not say that it is no address (RSS 2.0).
pub fn may_be_permalink(guid: DocElement<'_, '_>) -> bool {
    let says = guid.attribute("isPermaLink");
    says.is_none_or(|says| !says.trim().eq_ignore_ascii_case("false"))
}

/// The elements of an entry, by what they mean.
#[derive(Debug)]
pub struct EntryReading<'t, 'a> {
    pub entry: DocElement<'t, 'a>,
    dialect: FeedDialect,
    /// In order.
    pub elements: Vec<(Meaning, DocElement<'t, 'a>)>,
}

impl<'t, 'a> EntryReading<'t, 'a> {
    pub fn new(entry: DocElement<'t, 'a>, dialect: FeedDialect) -> Self {
        let elements =
            entry.children().filter_map(|element| Some((Meaning::of(element, dialect)?, element)));
        Self { entry, dialect, elements: elements.collect() }
    }

    pub fn is_atom(&self) -> bool {
        self.dialect.is_atom()
    }

    /// The elements of a meaning.
    pub fn all(&self, meaning: Meaning) -> impl Iterator<Item = DocElement<'t, 'a>> {
        let found = self.elements.iter().filter(move |(known, _)| *known == meaning);
        found.map(|(_, element)| *element)
    }

    /// The first element with a text in it, or else without, where readers look for the text of the
    /// entry first.
    pub fn text(&self) -> Option<DocElement<'t, 'a>> {
        let places = [Meaning::Content, Meaning::Encoded, Meaning::Description, Meaning::Summary];
        let places = places.into_iter().filter_map(|place| self.all(place).next());
        let mut said = places.clone().filter(|place| !place.all_text().trim().is_empty());
        said.next().or_else(|| places.clone().next())
    }

    /// The id, trimmed, and whether it is also the address of the entry (RSS).
    pub fn native_id(&self) -> (Option<Cow<'a, str>>, bool) {
        let element = self.all(Meaning::Id).next();
        let text = element.map(|id| trimmed(id.text())).filter(|text| !text.is_empty());
        let may_be = element.is_none_or(may_be_permalink) && !self.dialect.is_atom();
        let is_permalink = text.is_none() || may_be;
        let about = || self.entry.attribute_of(Ns::Rdf, "about").map(trimmed);
        let id = text.or_else(|| about().filter(|about| !about.is_empty()));
        let is_permalink = is_permalink && id.as_deref().is_some_and(is_web);
        (id, is_permalink)
    }

    /// The title as plain text.
    pub fn title(&self) -> Option<Cow<'a, str>> {
        let plain = |element: DocElement<'_, 'a>| {
            let kind = element.attribute("type").unwrap_or_default().to_ascii_lowercase();
            plain_title(&kind, self.dialect, prose(element, self.dialect))
        };
        self.all(Meaning::Title).map(plain).find(|title| !title.is_empty())
    }

    /// The address of the page: what a text says, else the best link, else the id where that is one.
    pub fn link(&self) -> Option<Cow<'a, str>> {
        let base = self.entry.base();
        let text = |page: DocElement<'_, 'a>| prose(page, self.dialect).0;
        if let Some(page) = self.all(Meaning::Page).find_map(|p| resolve(text(p), base.as_deref()))
        {
            return Some(page);
        }
        let mut best = None;
        for link in self.all(Meaning::Link).filter(|link| relation(*link) == "alternate") {
            let rank = page_rank(link, || self.entry.lang());
            let address = || resolve(link.attribute("href")?, link.base().as_deref());
            take_better(&mut best, rank, address);
        }
        best.map(|(_, link)| link).or_else(|| {
            let (id, is_permalink) = self.native_id();
            id.filter(|_| is_permalink)
        })
    }

    /// The authors: those with parts, `dc:creator`, those of RSS, else the one of a podcast.
    pub fn authors(&self) -> Vec<Person> {
        let mut people = Vec::new();
        let authors = || self.all(Meaning::Author).chain(self.all(Meaning::Podcaster));
        let with_parts = authors().filter_map(|author| Person::of(author, self.dialect));
        let text = |element| Person::named(&prose(element, self.dialect).0);
        for person in with_parts.chain(self.all(Meaning::Creator).map(text)) {
            add_person(&mut people, person);
        }
        let is_named = !people.is_empty();
        let is_text =
            |author: &DocElement<'_, '_>| !self.dialect.is_atom() && self.dialect.owns(author.ns());
        for author in self.all(Meaning::Author).filter(is_text) {
            // The bare address of somebody who has a name already says nothing new.
            let person = Person::of_rss(&author.text());
            let is_new = |one: &Person| !is_named || one.email.is_some() || !one.name.contains('@');
            person.filter(is_new).into_iter().for_each(|one| add_person(&mut people, one));
        }
        if people.is_empty() {
            let podcaster = self.all(Meaning::Podcaster).map(text).next();
            podcaster.into_iter().for_each(|one| add_person(&mut people, one));
        }
        people
    }

    /// When it was published, where the publisher says so and it can be read.
    pub fn published(&self) -> Option<Time> {
        self.first_date([Meaning::Published, Meaning::Created, Meaning::ModulePublished])
    }

    /// When it was updated, likewise.
    pub fn updated(&self) -> Option<Time> {
        self.first_date([Meaning::Updated, Meaning::ModuleUpdated])
    }

    fn first_date<const N: usize>(&self, meanings: [Meaning; N]) -> Option<Time> {
        let elements = meanings.into_iter().flat_map(|meaning| self.all(meaning));
        elements.filter_map(|element| date(&prose(element, self.dialect).0)).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_is_told_once() {
        let mut people = vec![Person::named("A")];
        add_person(&mut people, Person { email: Some("a@x".to_owned()), ..Person::named("A") });
        add_person(&mut people, Person::named(" "));
        (0..99).for_each(|n| add_person(&mut people, Person::named(&n.to_string())));
        assert_eq!((people.len(), people[0].email.as_deref()), (PEOPLE_LIMIT, Some("a@x")));
        assert_eq!(Person::of_rss("Ada (the first)"), Some(Person::named("Ada (the first)")));
        assert_eq!(Person::of_rss(" "), None);
    }
}
