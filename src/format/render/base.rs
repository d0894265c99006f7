//! Which `xml:base` the gateway adds where the publisher wrote none.
//!
//! None at the root: readers that resolve what stands in an item against the item's link (FreshRSS)
//! would take it for the publisher's word, and a footnote (`#fn1`) would lead to the feed. So an entry
//! gets one only where it has a relative reference that is more than a fragment, for readers that
//! resolve against the address they read (feedparser, newsboat), which is ours.
//!
//! Which one: the link of the entry, wherever the references of the format are the same against it
//! as against the publisher's document (RFC 3986 section 5.1.3). Then no reader sees a difference,
//! fragments included. Where readers differ already without a gateway, what stands in the text counts
//! as relative to the entry's page, if that is at the feed's or its channel's host, or has fragments:
//! such text is cut out of the page, and those that take it as relative to the feed lead nowhere.

use super::head::resolve;
use super::references::Base;
use crate::parse::references::{FormatReference, References};
use std::ops::Range;
use tidegate_core::model::{Format, Markup, Slots};
use tidegate_core::xml;
use tidegate_core::xml::doc::Doc;
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::tag;
use url::Url;

/// The addresses that a base can be made of.
#[derive(Debug, Clone, Copy)]
pub struct Bases<'a> {
    /// Of the publisher's document.
    pub document: &'a str,
    /// Of the page of the whole channel.
    pub channel: Option<&'a str>,
}

/// What an entry gets.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// On the entry itself.
    pub entry: Option<String>,
    /// On elements within, by where their names end.
    pub inside: Option<(Vec<usize>, String)>,
}

impl Bases<'_> {
    /// What an entry around which nobody names a base gets.
    pub fn add(&self, markup: &Markup) -> Added {
        if markup.slots.is_absolute {
            return Added::default();
        }
        let doc = Doc::read_in(&markup.xml, &markup.context);
        let references = References::of(doc.as_ref().and_then(Doc::root));
        let Ok(document) = Url::parse(self.document) else { return Added::default() };
        if references.is_empty() {
            return Added::default();
        }
        let page = match markup.card.link.as_deref() {
            Some(link) => page_address(link),
            None => references.page.as_ref().and_then(|link| document.join(link).ok()),
        };
        let channel = self.channel.and_then(page_address);
        let equal = |base: &Url, values: &[&str]| {
            values.iter().all(|value| base.join(value).ok() == document.join(value).ok())
        };
        let structural: Vec<&str> =
            references.structural.iter().map(|reference| reference.value.as_str()).collect();
        let content: Vec<&str> = references.content.iter().map(String::as_str).collect();
        let (structural, content) = (&*structural, &*content);
        let page = page.filter(|page| {
            equal(page, content)
                || references.has_fragments
                || is_of(page, &document)
                || channel.as_ref().is_some_and(|c| is_of(page, c))
        });
        let only = |entry: &Url| Added { entry: Some(entry.to_string()), inside: None };
        match page {
            Some(page) if equal(&page, structural) => only(&page),
            Some(page) if !content.is_empty() || references.has_fragments => {
                Added { inside: Some((references.places, page.into())), ..only(&document) }
            }
            _ => match channel
                .filter(|channel| equal(channel, structural) && equal(channel, content))
            {
                Some(channel) => only(&channel),
                None => only(&document),
            },
        }
    }

    /// Where the references of an entry lead, whatever they are written in: where an entry that is spliced
    /// leads them by what it is given.
    pub fn base(&self, markup: &Markup) -> Base {
        let around = markup.context.base.as_deref();
        let attributes = markup.xml.get(markup.slots.attributes..).unwrap_or_default();
        let is_json = markup.format == Format::JsonFeed;
        if is_json || around.is_some() || tag::find(attributes, "xml:base").is_some() {
            return Base::new(&resolve(self.document, around.unwrap_or_default()));
        }
        let Added { entry, inside } = self.add(markup);
        let text = inside.as_ref().map(|(_, base)| base.as_str());
        Base::new(entry.as_deref().unwrap_or(self.document)).with_text(text)
    }

    /// The base that an entry names itself, absolute.
    pub fn own(&self, markup: &Markup, written: &str) -> String {
        let outer = resolve(self.document, markup.context.base.as_deref().unwrap_or_default());
        resolve(&outer, &xml::plain_value(written))
    }

    /// The base that an entry is given where `around` is in force: what its publisher wrote around it,
    /// or what its references need.
    pub fn given(&self, markup: &Markup, attributes: &str, around: Option<&str>) -> Added {
        let own = markup.context.base.as_deref();
        if tag::find(attributes, "xml:base").is_some() || own.is_some() && own == around {
            return Added::default();
        }
        match own {
            Some(own) => Added { entry: Some(resolve(self.document, own)), inside: None },
            None => {
                let mut added = self.add(markup);
                if around.is_some() {
                    // It would inherit one which is not its own.
                    let own = || markup.card.link.as_deref().unwrap_or(self.document).to_owned();
                    added.entry.get_or_insert_with(own);
                }
                added
            }
        }
    }

    /// An entry whose references lead where they led in its document, wherever it stands.
    pub fn stand_alone(&self, mut markup: Markup) -> Markup {
        // References in JSON are found when it is converted.
        if markup.format == Format::JsonFeed {
            markup.context.base.get_or_insert_with(|| self.document.to_owned());
            return markup;
        }
        let attributes = markup.xml.get(markup.slots.attributes..).unwrap_or_default();
        let is_relative = relative_at_the_top(attributes, None).is_some();
        let Added { entry, inside } = self.given(&markup, attributes, None);
        if let Some((places, base)) = inside {
            markup = with_bases(&markup, &places, &base);
        }
        let around = || is_relative.then(|| self.document.to_owned());
        markup.context.base = entry.or_else(|| markup.context.base.take()).or_else(around);
        markup
    }

    /// What must be written otherwise in a head around which nobody names a base: references of the
    /// format absolute, for there are readers that heed `xml:base` only at the root; and a base on
    /// elements with text that has references. What an element within gives a base of its own stays.
    pub fn head_edits(&self, text: &str) -> Vec<Edit> {
        let doc = Doc::read_whole(text);
        let references = References::of(doc.as_ref().and_then(Doc::root));
        let mut edits = Vec::new();
        for FormatReference { place, value } in references.structural {
            let mut absolute = String::new();
            xml::push_value(&mut absolute, &resolve(self.document, &value));
            edits.push(Edit { range: place, with: absolute.into() });
        }
        if !references.content.is_empty() {
            let mut base = String::new();
            let own = self.channel.unwrap_or(self.document);
            xml::push_attribute(&mut base, "xml:base", own);
            let based = |at| Edit { range: at..at, with: base.clone().into() };
            edits.extend(references.places.into_iter().map(based));
        }
        edits
    }
}

/// The base that an entry names itself where nothing around it names one and it is not absolute.
pub fn relative_at_the_top<'a>(
    attributes: &'a str,
    around: Option<&str>,
) -> Option<tag::TagAttribute<'a>> {
    let own = tag::find(attributes, "xml:base").filter(|_| around.is_none())?;
    Url::parse(&xml::plain_value(own.value)).is_err().then_some(own)
}

/// Markup with a base on elements within, at places in the order of the text.
pub fn with_bases(markup: &Markup, places: &[usize], base: &str) -> Markup {
    let mut attribute = String::new();
    xml::push_attribute(&mut attribute, "xml:base", base);
    let places = places.iter().filter(|place| markup.xml.is_char_boundary(**place));
    let edits = places.map(|place| Edit { range: *place..*place, with: attribute.clone().into() });
    edited(markup, edits.collect())
}

/// Markup with edits within.
pub fn edited(markup: &Markup, edits: Vec<Edit>) -> Markup {
    let edits = Edits::new(0..markup.xml.len(), edits);
    let moved = |range: &Range<usize>| edits.before(range.start)..edits.before(range.end);
    let slots = &markup.slots;
    Markup {
        xml: edits.apply(&markup.xml).into_owned(),
        slots: Slots {
            attributes: slots.attributes,
            inner: slots.inner.map(|inner| edits.before(inner)),
            id: slots.id.as_ref().map(moved),
            id_element: slots.id_element.as_ref().map(moved),
            is_absolute: slots.is_absolute,
        },
        format: markup.format,
        context: markup.context.clone(),
        card: markup.card.clone(),
    }
}

/// An address of a page.
fn page_address(address: &str) -> Option<Url> {
    Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Whether two addresses have the same host, `www.` aside.
fn is_of(page: &Url, other: &Url) -> bool {
    let host = |url: &Url| url.host_str().map(|host| host.trim_start_matches("www.").to_owned());
    host(page).is_some() && host(page) == host(other)
}
