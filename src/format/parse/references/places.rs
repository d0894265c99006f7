//! Where an element has references: the one table of the elements and attributes that hold them.
//!
//! A reference is *structural* where the format itself has it (`link`, `enclosure`, `logo`), and
//! *content* where it stands in text or markup for people. Readers resolve the two differently.

use super::{CANDIDATES, HTML_ATTRIBUTES};
use crate::parse::reading::may_be_permalink;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;

/// Elements that contain text or markup for people, by local name.
const CONTENT: [&str; 12] = [
    "body",
    "content",
    "copyright",
    "description",
    "encoded",
    "info",
    "rights",
    "subtitle",
    "summary",
    "tagline",
    "text",
    "title",
];
/// Elements whose text is an address, by local name.
const ADDRESSES: [&str; 9] =
    ["commentRss", "comments", "docs", "icon", "link", "logo", "origLink", "uri", "url"];
/// Attributes of the formats that are addresses, by local name.
const STRUCTURAL: [&str; 4] = ["href", "src", "uri", "url"];

/// What stands in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The value of `xml:base`.
    Base,
    /// The value of an attribute that is an address.
    Attribute,
    /// The value of `srcset`.
    Candidates,
    /// All that is in an element: an address.
    Address,
    /// All that is in a `guid` which does not say that it is no address (RSS 2.0). Some readers know
    /// an item by the address that it makes with the base (feedparser).
    Permalink,
    /// All that is in an element: HTML.
    Html,
    /// The same of one that does not say so, which many readers take for HTML all the same.
    Text,
}

/// A place that may hold references.
#[derive(Debug)]
pub struct ReferencePlace<'t, 'a> {
    pub element: DocElement<'t, 'a>,
    /// The outermost element around it, or itself, that contains text or markup for people.
    pub content: Option<DocElement<'t, 'a>>,
    pub holds: Holds,
    /// As it is written, without quotes and tags.
    pub place: Range<usize>,
    pub value: Cow<'a, str>,
}

impl ReferencePlace<'_, '_> {
    /// Whether words stand where an address is wanted: they lead nowhere.
    pub fn is_word(&self) -> bool {
        let value = self.value.trim();
        self.holds == Holds::Address
            && (value.contains(char::is_whitespace) || !value.contains(['/', '.']))
    }
}

/// Visits the places in an element, in order; of each element its `xml:base` first.
pub fn each_place<'t, 'a>(root: DocElement<'t, 'a>, mut visit: impl FnMut(ReferencePlace<'t, 'a>)) {
    let mut content: Option<DocElement<'t, 'a>> = None;
    for element in root.descendants() {
        content = content.filter(|around| element.id < around.behind());
        let mut note = |content, holds, place, value| {
            visit(ReferencePlace { element, content, holds, place, value });
        };
        let mut attributes = element.attributes();
        if let Some(base) = attributes.find(|a| a.ns() == Ns::Xml && a.local() == "base") {
            note(content, Holds::Base, base.place(), base.value());
        }
        for attribute in element.attributes() {
            let holds = match (attribute.ns(), attribute.local()) {
                (Ns::None, CANDIDATES) if content.is_some() => Holds::Candidates,
                (Ns::None, name) if content.is_some() && HTML_ATTRIBUTES.contains(&name) => {
                    Holds::Attribute
                }
                (Ns::None, name) if content.is_none() && STRUCTURAL.contains(&name) => {
                    Holds::Attribute
                }
                // A fragment is another part of the same drawing or document.
                (Ns::Named("xlink"), "href") | (Ns::Rdf, "resource")
                    if !attribute.value().trim_start().starts_with('#') =>
                {
                    Holds::Attribute
                }
                _ => continue,
            };
            note(content, holds, attribute.place(), attribute.value());
        }
        if content.is_some() || element.is_empty_tag() {
            continue;
        }
        let holds = if is_content(element) {
            content = Some(element);
            if is_html(element) { Holds::Html } else { Holds::Text }
        } else if ADDRESSES.contains(&element.local()) {
            Holds::Address
        } else if element.local() == "guid" && may_be_permalink(element) && !is_module(element) {
            Holds::Permalink
        } else {
            continue;
        };
        if element.is_leaf() {
            note(content, holds, element.content(), with_line_feeds(element.text()));
        }
    }
}

/// Whether an element is of a module, as the name of a podcast is (`podcast:guid`).
fn is_module(element: DocElement<'_, '_>) -> bool {
    matches!(element.ns(), Ns::Named(_))
}

/// A text with line ends as XML has them (section 2.11).
fn with_line_feeds(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => text,
    }
}

/// Whether an element contains text or markup for people. `media:content` is a file.
fn is_content(element: DocElement<'_, '_>) -> bool {
    CONTENT.contains(&element.local())
        && !(element.ns() == Ns::Named("media") && element.local() == "content")
}

/// Whether the text of an element for people is HTML: in Atom and Media RSS where it says so.
fn is_html(element: DocElement<'_, '_>) -> bool {
    let says = |name, value: &str| {
        element.attribute(name).is_some_and(|said| said.to_ascii_lowercase().contains(value))
    };
    match element.ns() {
        Ns::Atom | Ns::Named("media") => says("type", "html"),
        Ns::Atom03 => says("type", "html") || says("mode", "escaped"),
        _ => true,
    }
}
