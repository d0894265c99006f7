//! What the elements of an entry mean.

// Texts are passed as `&Cow` because copying one that is borrowed copies nothing.
#![allow(clippy::ptr_arg)]

use super::super::dialect::{FeedDialect, page_rank, plain, relation, take_better};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{Context, Entry, Projection, Slots, Time};
use tidegate_core::xml::address::mail_and_name;
use tidegate_core::xml::address::{is_web, resolve};
use tidegate_core::xml::date;
use tidegate_core::xml::html::{plain_text, plain_text_if_html, without_section};
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::walker::{OpenElement, WalkedAttribute};
use tidegate_core::xml::{self, collapsed, trim};
use url::Url;

/// Most enclosures that are kept of one entry.
const ENCLOSURE_LIMIT: usize = 1000;

/// What is known of an entry so far.
#[derive(Debug, Default)]
pub(super) struct Meaning<'a> {
    /// `rdf:about` of the entry.
    pub about: Option<Cow<'a, str>>,
    /// The content and the whole of the element with the id; byte offsets into the document.
    pub id_place: Option<(Range<usize>, Range<usize>)>,
    /// The spelled name of that element.
    pub id_name: &'a str,
    id: Option<Cow<'a, str>>,
    is_permalink: bool,
    link: Option<Cow<'a, str>>,
    /// The language of the entry.
    pub lang: Option<String>,
    alternate: Option<((bool, bool), Cow<'a, str>)>,
    title: Option<Cow<'a, str>>,
    title_type: TitleType,
    author: [Option<Cow<'a, str>>; 4],
    published: [Option<Time>; 3],
    updated: [Option<Time>; 2],
    enclosures: Vec<Cow<'a, str>>,
    in_author: bool,
}

/// What a title says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum TitleType {
    /// Nothing, as in RSS.
    #[default]
    Unsaid,
    Plain,
    Html,
}

/// The type of a text construct in Atom (RFC 4287 section 3.1; Atom 0.3 section 3.1).
fn title_type(dialect: FeedDialect, attributes: &[WalkedAttribute<'_>]) -> TitleType {
    let kind = plain(attributes, "type").unwrap_or("text").trim().to_ascii_lowercase();
    if !dialect.is_atom() {
        TitleType::Unsaid
    } else if kind.contains("html") {
        TitleType::Html
    } else {
        TitleType::Plain
    }
}

impl<'a> Meaning<'a> {
    /// An element opened; `level` is 1 for the entry's own children.
    pub fn open(
        &mut self,
        dialect: FeedDialect,
        level: usize,
        frame: &OpenElement<'a>,
        attributes: &[WalkedAttribute<'a>],
        base: Option<&Url>,
    ) {
        if level != 1 {
            return;
        }
        let own = dialect.owns(frame.ns);
        self.in_author = frame.local == "author";
        if dialect.is_atom_link(frame.ns, frame.local, attributes) {
            self.atom_link(attributes, base);
        } else if own && frame.local == "enclosure" {
            self.enclosure(value(attributes, "url"), base);
        } else if own && frame.local == "guid" && self.id_place.is_none() {
            let says = plain(attributes, "isPermaLink").map(trim);
            self.is_permalink = !says.is_some_and(|says| says.eq_ignore_ascii_case("false"));
        } else if own && frame.local == "title" && self.title.is_none() {
            self.title_type = title_type(dialect, attributes);
        }
    }

    fn atom_link(&mut self, attributes: &[WalkedAttribute<'a>], base: Option<&Url>) {
        let Some(href) = value(attributes, "href") else { return };
        match relation(attributes) {
            "alternate" => {
                let rank = page_rank(attributes, self.lang.as_deref());
                take_better(&mut self.alternate, rank, || resolve(href, base));
            }
            "enclosure" => self.enclosure(Some(href), base),
            _ => {}
        }
    }

    fn enclosure(&mut self, address: Option<Cow<'a, str>>, base: Option<&Url>) {
        if self.enclosures.len() < ENCLOSURE_LIMIT {
            self.enclosures.extend(address.and_then(|address| resolve(address, base)));
        }
    }

    /// An element closed; `level` is 1 for the entry's own children.
    #[allow(clippy::too_many_arguments)]
    pub fn close(
        &mut self,
        dialect: FeedDialect,
        level: usize,
        frame: &OpenElement<'a>,
        text: &Cow<'a, str>,
        is_markup: bool,
        place: &(Range<usize>, Range<usize>),
        base: Option<&Url>,
    ) {
        let own = dialect.owns(frame.ns);
        if level == 2 {
            let atom = own || matches!(frame.ns, Ns::Atom | Ns::Atom03);
            if atom && frame.local == "name" && self.in_author {
                set(&mut self.author[0], text);
            }
            return;
        }
        if level != 1 {
            return;
        }
        match (own, frame.ns, frame.local) {
            (true, _, "id") if dialect.is_atom() => self.identify(frame, text, place),
            (true, _, "guid") if !dialect.is_atom() && !dialect.is_rdf() => {
                self.identify(frame, text, place);
            }
            (true, _, "link") if self.link.is_none() => self.link = resolve(text.clone(), base),
            (true, _, "title") if self.title.is_none() => self.title(text, is_markup),
            (true, _, "author") if !dialect.is_atom() => {
                let name = mail_and_name(text).map_or(&**text, |(_, name)| name);
                set(&mut self.author[2], &Cow::Owned(name.to_owned()));
            }
            (_, Ns::Named("dc"), "creator") => set(&mut self.author[1], text),
            (_, Ns::Named("itunes"), "author") => set(&mut self.author[3], text),
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

    fn identify(
        &mut self,
        frame: &OpenElement<'a>,
        text: &Cow<'a, str>,
        place: &(Range<usize>, Range<usize>),
    ) {
        if self.id_place.is_none() {
            self.id_place = Some(place.clone());
            self.id_name = frame.name;
            let text = xml::trimmed(text.clone());
            self.id = (!text.is_empty()).then_some(text);
        }
    }

    fn title(&mut self, text: &Cow<'a, str>, is_markup: bool) {
        let html = is_markup || self.title_type == TitleType::Html;
        let plain = match self.title_type {
            _ if !text.contains(['<', '&']) => collapsed(text.clone()),
            _ if html => Cow::Owned(plain_text(text)),
            TitleType::Unsaid => Cow::Owned(plain_text_if_html(text)),
            _ => match without_section(text) {
                inside if inside.len() < text.len() => collapsed(Cow::Owned(inside.to_owned())),
                _ => collapsed(text.clone()),
            },
        };
        self.title = (!plain.is_empty()).then_some(plain);
    }

    /// The entry, from what is known.
    pub fn entry(
        self,
        dialect: FeedDialect,
        span: Range<usize>,
        markup: Cow<'a, str>,
        slots: Slots,
        context: Arc<Context>,
        projection: Projection<'a>,
    ) -> Entry<'a> {
        let about = self.about.map(xml::trimmed).filter(|about| !about.is_empty());
        let guid_is_permalink =
            self.is_permalink && self.id.as_deref().is_some_and(is_web) && !dialect.is_atom();
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
            span,
            markup,
            slots,
            context,
            native_id,
            id_is_permalink,
            link,
            title: self.title,
            author,
            published,
            updated,
            enclosures: self.enclosures,
            projection,
            sync: None,
        }
    }
}

fn value<'a>(attributes: &[WalkedAttribute<'a>], local: &str) -> Option<Cow<'a, str>> {
    attributes.iter().find(|a| a.ns == Ns::None && a.local == local).map(|a| a.value.clone())
}

fn set<'a>(place: &mut Option<Cow<'a, str>>, text: &Cow<'a, str>) {
    if place.is_none() {
        let text = collapsed(text.clone());
        *place = (!text.is_empty()).then_some(text);
    }
}

fn first(place: &mut Option<Time>, text: &str) {
    if place.is_none() {
        *place = date(text);
    }
}
