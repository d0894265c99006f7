//! The values of an item that survive a move between Atom and RSS.

use super::{Id, Tree};
use tidegate_core::model::{Family, Time};
use tidegate_core::xml::address::{ADDRESS_LIMIT, has_scheme, resolve};
use tidegate_core::xml::ns::{ATOM, CONTENT, DC};
use url::Url;

/// What is converted when an item moves to a feed of the other family.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Its own id: `atom:id`, `guid`.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The address of its page, absolute where what is around it says a base.
    pub link: Option<String>,
    /// Its content or description.
    pub text: Option<String>,
    /// Whether [`Values::text`] is HTML.
    pub html: bool,
    /// The name or address of its author.
    pub author: Option<String>,
    /// When it was updated, else when it was published.
    pub date: Option<Time>,
    /// When it was published.
    pub published: Option<Time>,
    /// The base of what is in it, its own `xml:base` included, where one is absolute.
    pub base: Option<String>,
}

impl Values {
    /// What they take in memory, in bytes, about.
    pub(super) fn weight(&self) -> usize {
        let of = [&self.id, &self.title, &self.link, &self.text, &self.author, &self.base];
        of.into_iter().flatten().map(String::len).sum()
    }
}

/// Reads the values of an item.
pub(super) fn read(tree: &Tree<'_>, family: Family, item: Id) -> Values {
    let base = base_of(tree, item).map(String::from);
    let mut values = Values { base, ..Values::default() };
    match family {
        Family::Atom => read_atom(tree, item, &mut values),
        Family::Rss => read_rss(tree, item, &mut values),
    }
    if tree.name(0).1 == "collection" {
        read_collected(tree, item, &mut values);
    }
    values
}

fn read_atom(tree: &Tree<'_>, item: Id, values: &mut Values) {
    for (id, element) in tree.children(item) {
        let (ATOM, local) = tree.name(id) else { continue };
        match local {
            "id" => set(&mut values.id, &tree.plain(id)),
            "title" => set(&mut values.title, &tree.plain(id)),
            "link" if element.attribute("rel").is_none_or(|rel| rel == "alternate") => {
                let link = element.attribute("href").unwrap_or_default();
                set(&mut values.link, &resolved(tree, id, link));
            }
            // Content outranks a summary, whichever comes first.
            "content" => {
                values.text = None;
                read_text(tree, id, values);
            }
            "summary" => read_text(tree, id, values),
            "author" => {
                let name = tree.children(id).find(|(child, _)| tree.name(*child) == (ATOM, "name"));
                set(&mut values.author, &name.map(|(id, _)| tree.plain(id)).unwrap_or_default());
            }
            "updated" => values.date = Time::parse_rfc3339(&tree.plain(id)).ok(),
            "published" => values.published = Time::parse_rfc3339(&tree.plain(id)).ok(),
            _ => {}
        }
    }
    values.date = values.date.or(values.published);
}

/// The base that the `xml:base` of an element and of those around it make (XML Base section 3). One that
/// is longer than an address may be is none: each item has a copy.
fn base_of(tree: &Tree<'_>, id: Id) -> Option<Url> {
    let mut bases = Vec::new();
    let mut next = tree.element(id);
    while let Some(element) = next {
        let base = element.attribute("xml:base").map(str::trim);
        bases.extend(base.filter(|base| base.len() <= ADDRESS_LIMIT));
        next = element.parent.and_then(|parent| tree.element(parent));
    }
    let outermost_first = bases.iter().rev();
    outermost_first.fold(None::<Url>, |base, inner| {
        let made = match &base {
            Some(base) => base.join(inner),
            None => Url::parse(inner),
        };
        made.ok().filter(|made| made.as_str().len() <= ADDRESS_LIMIT).or(base)
    })
}

/// A reference made absolute by the `xml:base` in scope of an element, as far as that says one.
fn resolved(tree: &Tree<'_>, id: Id, reference: &str) -> String {
    let base = if has_scheme(reference.trim()) { None } else { base_of(tree, id) };
    resolve(reference.into(), base.as_ref()).unwrap_or_default().into_owned()
}

/// An Atom text construct (RFC 4287 section 3.1): XHTML comes as its markup.
fn read_text(tree: &Tree<'_>, id: Id, values: &mut Values) {
    if values.text.is_some() {
        return;
    }
    let kind = tree.element(id).and_then(|element| element.attribute("type")).unwrap_or("text");
    let text = if kind == "xhtml" {
        let division = tree.children(id).next().and_then(|(_, element)| element.inner.clone());
        division.map(|inner| tree.slice(inner).to_owned()).unwrap_or_default()
    } else {
        tree.plain(id)
    };
    set(&mut values.text, &text);
    values.html = matches!(kind, "html" | "xhtml" | "text/html");
}

fn read_rss(tree: &Tree<'_>, item: Id, values: &mut Values) {
    let own = tree.name(item).0;
    values.html = true;
    let mut description = None;
    for (id, _) in tree.children(item) {
        let plain = || tree.plain(id);
        match tree.name(id) {
            (CONTENT, "encoded") => set(&mut values.text, &plain()),
            (DC, "creator") => set(&mut values.author, &plain()),
            (DC, "date") => {
                values.published = values.published.or(Time::parse_rfc3339(&plain()).ok());
            }
            (ATOM, "updated") => values.date = Time::parse_rfc3339(&plain()).ok(),
            (namespace, local) if namespace == own => match local {
                "guid" => set(&mut values.id, &plain()),
                "title" => set(&mut values.title, &plain()),
                "link" => set(&mut values.link, &resolved(tree, id, &plain())),
                "description" => set(&mut description, &plain()),
                "author" => set(&mut values.author, &plain()),
                "pubDate" => values.published = Time::parse_rfc2822(&plain()).or(values.published),
                _ => {}
            },
            _ => {}
        }
    }
    values.text = values.text.take().or(description);
    values.date = values.date.or(values.published);
}

/// The words of FeedSync for Collections, and elements of Atom, which may stand there as well.
fn read_collected(tree: &Tree<'_>, item: Id, values: &mut Values) {
    let own = tree.name(item).0;
    let mut said = Values::default();
    read_atom(tree, item, &mut said);
    for (id, _) in tree.children(item) {
        match tree.name(id) {
            (namespace, "subject") if namespace == own => set(&mut said.title, &tree.plain(id)),
            (namespace, "body") if namespace == own => set(&mut said.text, &tree.plain(id)),
            _ => {}
        }
    }
    if values.text.is_none() {
        (values.text, values.html) = (said.text, said.html);
    }
    let slots = [
        (&mut values.id, said.id),
        (&mut values.title, said.title),
        (&mut values.link, said.link),
        (&mut values.author, said.author),
    ];
    for (slot, said) in slots {
        *slot = slot.take().or(said);
    }
    values.date = values.date.or(said.date);
    values.published = values.published.or(said.published);
}

fn set(value: &mut Option<String>, text: &str) {
    let text = text.trim();
    if value.is_none() && !text.is_empty() {
        *value = Some(text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::sse::{Payload, read};

    fn payload(root: &str, item: &str) -> Payload {
        let text = format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"{root}\"><entry xml:base=\"{item}\">\
             <title>t</title></entry></feed>"
        );
        let feed = read(&text).unwrap();
        feed.plain(&feed.items[0]).unwrap()
    }

    /// Each item would have a copy of it.
    #[test]
    fn a_base_that_is_too_long_is_none() {
        let base = |root: &str, item: &str| payload(root, item).values.base;
        let long = "x".repeat(ADDRESS_LIMIT);
        assert_eq!(base(&format!("http://a/{long}/"), ""), None);
        assert_eq!(base("http://a/b/", "c/").as_deref(), Some("http://a/b/c/"));
        assert_eq!(base("http://a/b/", &format!("{long}/")).as_deref(), Some("http://a/b/"));
        // Nor does one become too long step by step.
        let half = format!("{}/", "é".repeat(ADDRESS_LIMIT / 4));
        assert_eq!(base("http://a/b/", &half).as_deref(), Some("http://a/b/"));
    }

    #[test]
    fn values_count_in_the_weight() {
        let (near, far) = (payload("http://a/", ""), payload("http://a/", "http://a/longer/"));
        assert_eq!(near.values.weight(), "t".len() + "http://a/".len());
        // Its markup and the print of that have the longer base as well.
        let markup = 2 * "http://a/longer/".len();
        assert_eq!(far.weight(), near.weight() + markup + "longer/".len());
    }
}
