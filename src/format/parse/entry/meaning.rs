//! What the elements of an entry mean.

use super::super::dialect::{FeedDialect, page_rank, relation, take_better};
use super::projection::prose;
use std::borrow::Cow;
use tidegate_core::model::{Entry, Time};
use tidegate_core::xml::address::{is_web, mail_and_name, resolve};
use tidegate_core::xml::date;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::html::{plain_text, plain_text_if_html, without_section};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{self, collapsed};

/// Most enclosures that are kept of one entry.
const ENCLOSURE_LIMIT: usize = 1000;

/// What is known of an entry so far.
#[derive(Debug, Default)]
pub(super) struct Meaning<'t, 'a> {
    /// The element with the id.
    pub id_element: Option<DocElement<'t, 'a>>,
    id: Option<Cow<'a, str>>,
    is_permalink: bool,
    link: Option<Cow<'a, str>>,
    alternate: Option<((bool, bool), Cow<'a, str>)>,
    title: Option<Cow<'a, str>>,
    author: [Option<Cow<'a, str>>; 4],
    published: [Option<Time>; 3],
    updated: [Option<Time>; 2],
    enclosures: Vec<Cow<'a, str>>,
}

/// The title in an element, as plain text: it is HTML where its type says so (RFC 4287 section 3.1;
/// Atom 0.3 section 3.1), or may be where the format knows no type. `is_markup`: the text is.
pub(in crate::parse) fn plain_title<'a>(
    kind: &str,
    dialect: FeedDialect,
    (text, is_markup): (Cow<'a, str>, bool),
) -> Cow<'a, str> {
    match without_section(&text) {
        _ if !text.contains(['<', '&']) => collapsed(text),
        _ if is_markup || dialect.is_atom() && kind.contains("html") => plain_text(&text).into(),
        _ if !dialect.is_atom() => plain_text_if_html(&text).into(),
        inside if inside.len() < text.len() => collapsed(Cow::Owned(inside.to_owned())),
        _ => collapsed(text),
    }
}

impl<'t, 'a> Meaning<'t, 'a> {
    /// Reads what the elements of an entry mean.
    pub fn read(entry: DocElement<'t, 'a>, dialect: FeedDialect) -> Self {
        let mut meaning = Self::default();
        for element in entry.children().filter(|element| !element.ns().is_sync_markup()) {
            meaning.element(element, dialect, entry);
        }
        meaning
    }

    fn element(
        &mut self,
        element: DocElement<'t, 'a>,
        dialect: FeedDialect,
        entry: DocElement<'t, 'a>,
    ) {
        let (ns, local) = (element.ns(), element.local());
        let own = dialect.owns(ns);
        if dialect.is_atom_link(element) {
            self.atom_link(element, entry);
        } else if own && local == "enclosure" {
            self.enclosure(element.attribute("url"), element);
        } else if local == "author" {
            let is_name = |name: &DocElement<'_, '_>| {
                let is_atom = dialect.owns(name.ns()) || matches!(name.ns(), Ns::Atom | Ns::Atom03);
                is_atom && name.local() == "name"
            };
            element
                .children()
                .filter(is_name)
                .for_each(|name| set(&mut self.author[0], name.text()));
        }
        let text = || prose(element, dialect).0;
        match (own, ns, local) {
            (true, _, "id") if dialect.is_atom() => self.identify(element),
            (true, _, "guid") if !dialect.is_atom() && !dialect.is_rdf() => self.identify(element),
            (true, _, "link") if self.link.is_none() => {
                self.link = resolve(text(), entry.base().as_deref());
            }
            (true, _, "title") if self.title.is_none() => {
                let kind = element.attribute("type").unwrap_or_default().to_ascii_lowercase();
                let plain = plain_title(&kind, dialect, prose(element, dialect));
                self.title = (!plain.is_empty()).then_some(plain);
            }
            (true, _, "author") if !dialect.is_atom() => {
                let text = text();
                let name = mail_and_name(&text).map_or(&*text, |(_, name)| name);
                set(&mut self.author[2], Cow::Owned(name.to_owned()));
            }
            (_, Ns::Named("dc"), "creator") => set(&mut self.author[1], text()),
            (_, Ns::Named("itunes"), "author") => set(&mut self.author[3], text()),
            (true, _, "published" | "pubDate" | "issued") => first(&mut self.published[0], text),
            (true, _, "created") | (_, Ns::Named("dc"), "date") => {
                first(&mut self.published[1], text);
            }
            (_, Ns::Named("dcterms"), "issued" | "created") | (_, Ns::Atom, "published") => {
                first(&mut self.published[2], text);
            }
            (true, _, "updated" | "modified") => first(&mut self.updated[0], text),
            (_, Ns::Named("dcterms"), "modified") | (_, Ns::Atom, "updated") => {
                first(&mut self.updated[1], text);
            }
            _ => {}
        }
    }

    fn atom_link(&mut self, link: DocElement<'_, 'a>, entry: DocElement<'_, 'a>) {
        let href = link.attribute("href");
        match &*relation(link) {
            "alternate" => {
                let rank = page_rank(link, || entry.lang());
                let address = || resolve(href?, link.base().as_deref());
                take_better(&mut self.alternate, rank, address);
            }
            "enclosure" => self.enclosure(href, link),
            _ => {}
        }
    }

    fn enclosure(&mut self, address: Option<Cow<'a, str>>, element: DocElement<'_, 'a>) {
        if self.enclosures.len() < ENCLOSURE_LIMIT {
            let base = element.base();
            self.enclosures.extend(address.and_then(|address| resolve(address, base.as_deref())));
        }
    }

    fn identify(&mut self, element: DocElement<'t, 'a>) {
        if self.id_element.is_none() {
            self.id_element = Some(element);
            let says = element.attribute("isPermaLink").map(xml::trimmed);
            self.is_permalink = !says.is_some_and(|says| says.eq_ignore_ascii_case("false"));
            let text = xml::trimmed(element.text());
            self.id = (!text.is_empty()).then_some(text);
        }
    }

    /// The entry, from what is known.
    pub fn entry(self, element: DocElement<'_, 'a>, dialect: FeedDialect) -> Entry<'a> {
        let guid_is_permalink =
            self.is_permalink && self.id.as_deref().is_some_and(is_web) && !dialect.is_atom();
        let about = element.attribute_of(Ns::Rdf, "about").map(xml::trimmed);
        let about = about.filter(|about| !about.is_empty());
        let (native_id, id_is_permalink) = match (self.id, about) {
            (Some(id), _) => (Some(id), guid_is_permalink),
            (None, Some(about)) => {
                let permalink = is_web(&about);
                (Some(about), permalink)
            }
            (None, None) => (None, false),
        };
        let link = if dialect.is_atom() { None } else { self.link };
        let link = link
            .or(self.alternate.map(|(_, link)| link))
            .or_else(|| native_id.clone().filter(|_| id_is_permalink));
        let [first, second, third, fourth] = self.author;
        let author = first.or(second).or(third).or(fourth);
        let published = self.published.into_iter().flatten().next();
        let updated = self.updated.into_iter().flatten().next();
        Entry {
            span: element.span(),
            native_id,
            id_is_permalink,
            link,
            title: self.title,
            author,
            published,
            updated,
            enclosures: self.enclosures,
            ..Entry::default()
        }
    }
}

fn set<'a>(place: &mut Option<Cow<'a, str>>, text: Cow<'a, str>) {
    if place.is_none() {
        let text = collapsed(text);
        *place = (!text.is_empty()).then_some(text);
    }
}

fn first<'a>(place: &mut Option<Time>, text: impl FnOnce() -> Cow<'a, str>) {
    if place.is_none() {
        *place = date(&text());
    }
}
