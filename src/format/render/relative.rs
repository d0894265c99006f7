//! Where an element has relative references, found without reading what they stand in: a document
//! whose publisher wrote no `xml:base` needs one only there.
//!
//! A reference is *structural* where the format itself has it (`link`, `enclosure`, `logo`), and
//! *content* where it stands in text or markup for people. Readers resolve the two differently.

use super::references::{HTML_ATTRIBUTES, ReferenceKind};
use std::ops::Range;
use tidegate_core::xml::cut;
use tidegate_core::xml::doc::{Doc, DocElement, WalkStep};
use tidegate_core::xml::html::{self, Piece, Pieces, TagRule, decoded_value};
use tidegate_core::xml::ns::Ns;

/// The most references of one element that are looked at, of each kind, and places that are noted.
const REFERENCE_LIMIT: usize = 1_000;
/// The longest value of an attribute in text that is read as one, in bytes.
const VALUE_LIMIT: usize = 4_096;
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

/// The relative references in one element. Below an inner `xml:base` only that base counts, and only if
/// it is relative itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct References {
    /// Those of the format that are more than a fragment.
    pub structural: Vec<FormatReference>,
    /// Those in text or markup for people that are more than a fragment, as they read.
    pub content: Vec<String>,
    /// Whether text or markup has a reference that is a fragment alone.
    pub has_fragments: bool,
    /// The first link to the entry's page, where that is relative.
    pub page: Option<String>,
    /// Directly behind the names of the elements whose text or markup has either, in order.
    pub places: Vec<usize>,
}

/// A relative reference of the format.
#[derive(Debug, PartialEq, Eq)]
pub struct FormatReference {
    /// Where it is written: the value of an attribute, or all that stands in an element.
    pub place: Range<usize>,
    pub value: String,
}

impl References {
    /// Finds those of an element or a document. What cannot be read as XML ends the search.
    pub fn of(xml: &str) -> Self {
        let mut found = Self::default();
        let Some(doc) = Doc::read_whole(xml) else { return found };
        // The next element, and the first behind the outermost one that names a base.
        let (mut next, mut unbased) = (0, 0);
        while let Some(element) = doc.element(next) {
            next += 1;
            let has_base = element.id < unbased || found.take_base(element);
            if has_base {
                unbased = unbased.max(element.behind());
            } else {
                let known = found.structural.len();
                found.take_attributes(element);
                if element.local() == "link" && leads_to_page(element) {
                    found.note_page(known);
                }
            }
            if element.is_empty_tag() {
                continue;
            }
            let local = element.local();
            if CONTENT.contains(&local) {
                next = element.behind();
                // What has a base of its own needs none.
                if !has_base {
                    found.take_content(element);
                }
            } else if !has_base
                && element.is_leaf()
                && (ADDRESSES.contains(&local) || is_permalink(element))
            {
                let known = found.structural.len();
                found.take_address(element);
                if local == "link" {
                    found.note_page(known);
                }
            }
        }
        found
    }

    /// Whether there is none that is more than a fragment.
    pub fn is_empty(&self) -> bool {
        self.structural.is_empty() && self.content.is_empty()
    }

    /// Notes the structural reference at `index`, where there is one, as that to the page.
    fn note_page(&mut self, index: usize) {
        let found = self.structural.get(index);
        self.page = self.page.take().or_else(|| Some(found?.value.clone()));
    }

    /// Takes the `xml:base` of an element; answers whether it has one.
    fn take_base(&mut self, element: DocElement<'_, '_>) -> bool {
        let mut attributes = element.attributes();
        let Some(base) = attributes.find(|a| a.ns() == Ns::Xml && a.local() == "base") else {
            return false;
        };
        let value = base.value();
        // An empty one is the base around it.
        if value.trim().is_empty() || ReferenceKind::of(&value) == ReferenceKind::Relative {
            let (place, value) = (base.place(), value.into_owned());
            push(&mut self.structural, FormatReference { place, value });
        }
        true
    }

    /// Takes the attributes of an element of the format.
    fn take_attributes(&mut self, element: DocElement<'_, '_>) {
        for attribute in element.attributes() {
            if STRUCTURAL.contains(&attribute.local()) {
                self.take(attribute.place(), &attribute.value());
            }
        }
    }

    /// Takes a reference of the format.
    fn take(&mut self, place: Range<usize>, value: &str) {
        if ReferenceKind::of(value) == ReferenceKind::Relative {
            push(&mut self.structural, FormatReference { place, value: value.to_owned() });
        }
    }

    fn take_address(&mut self, element: DocElement<'_, '_>) {
        let text = element.text();
        let value = text.trim();
        // Words where an address is wanted lead nowhere. In an id they count: the address that a
        // reader makes of it is what it knows the item by.
        let is_word = value.contains(char::is_whitespace) || !value.contains(['/', '.']);
        if !value.is_empty() && (!is_word || element.local() == "guid") {
            self.take(element.content(), value);
        }
    }

    /// Takes the markup in an element for people: its elements, and what is markup in its text.
    fn take_content(&mut self, element: DocElement<'_, '_>) {
        let (mut text, mut has_any) = (String::new(), false);
        for step in element.walk() {
            match step {
                WalkStep::Text(piece) => text.push_str(&piece),
                WalkStep::Open(inner) if inner.id != element.id => {
                    for attribute in inner.attributes() {
                        has_any |= self.take_value(attribute.name(), &attribute.value());
                    }
                }
                WalkStep::Open(_) | WalkStep::Close(_) => {}
            }
        }
        for piece in Pieces::new(&text, TagRule::All) {
            let Piece::Tag(tag) = piece else { continue };
            for attribute in html::attributes(tag) {
                let value = cut(tag, attribute.value);
                has_any |= self.take_value(attribute.name, &decoded_value(value));
            }
        }
        if has_any {
            push(&mut self.places, element.span().start + 1 + element.name().len());
        }
    }

    /// Takes a value of an attribute of HTML; answers whether it is a reference that needs a base.
    fn take_value(&mut self, name: &str, value: &str) -> bool {
        if value.len() > VALUE_LIMIT
            || !HTML_ATTRIBUTES.iter().any(|a| a.eq_ignore_ascii_case(name))
        {
            return false;
        }
        match ReferenceKind::of(value) {
            ReferenceKind::Relative => push(&mut self.content, value.to_owned()),
            ReferenceKind::Fragment => self.has_fragments = true,
            ReferenceKind::Absolute => return false,
        }
        true
    }
}

fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() < REFERENCE_LIMIT {
        list.push(one);
    }
}

/// Whether an element is a `guid` that counts as an address: one that does not say that it is none
/// (RSS 2.0). Some readers know an item by the address that it makes with the base (feedparser).
fn is_permalink(element: DocElement<'_, '_>) -> bool {
    element.local() == "guid"
        && element
            .attribute("isPermaLink")
            .is_none_or(|said| !said.trim().eq_ignore_ascii_case("false"))
}

/// Whether a `link` of Atom leads to the entry's page (RFC 4287 section 4.2.7.2).
fn leads_to_page(link: DocElement<'_, '_>) -> bool {
    link.attribute("rel").is_none_or(|relation| relation == "alternate")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The references of the format, those in its content, and whether there are fragments.
    fn found(xml: &str) -> (String, String, bool) {
        let found = References::of(xml);
        let structural: Vec<&str> = found.structural.iter().map(|r| r.value.as_str()).collect();
        (structural.join(" "), found.content.join(" "), found.has_fragments)
    }

    #[test]
    fn references_are_found_where_they_stand() {
        let xml = "<entry><link href='/a'/><link href='https://x.example/'/><id>/no</id>\
                   <content type='html'>&lt;a href=&quot;b.html&quot;&gt;&lt;img src='#c'&gt; \
                   href=&quot;text&quot; &lt;a data-src=&quot;n&quot; SRC = /d&gt;</content>\
                   <summary type='xhtml'><div><a href=\"?e=1\"/></div></summary></entry>";
        assert_eq!(found(xml), ("/a".to_owned(), "b.html /d ?e=1".to_owned(), true));
        let xml = "<item><link>/a</link><guid isPermaLink='false'>1/2</guid><guid>/b</guid>\
                   <enclosure url='c.mp3'/><description><![CDATA[<a href=\"#d\">]]></description>\
                   <link><![CDATA[ e/f ]]></link><comments>none</comments></item>";
        assert_eq!(found(xml), ("/a /b c.mp3 e/f".to_owned(), String::new(), true));
    }

    #[test]
    fn a_bare_id_needs_a_base_where_it_counts_as_an_address() {
        let guid =
            |attributes: &str| found(&format!("<item><guid{attributes}>CC400CDF</guid></item>")).0;
        assert_eq!(
            ["", " isPermaLink='true'", " isPermaLink='false'"].map(guid),
            ["CC400CDF", "CC400CDF", ""]
        );
    }

    #[test]
    fn what_needs_no_base_is_none() {
        for xml in [
            "<item><description>&lt;a href=&quot;mailto:a@b&quot;&gt; &lt;a href=''&gt;</description></item>",
            "<item><description>&lt;a href=&quot;&amp;#109;ailto:x&quot;&gt;</description></item>",
            "<item><description><![CDATA[<a href='mailto&#58;x'><a href='&#35;n'>]]></description></item>",
            "<item><link>https&#58;//x.example/</link><enclosure url='https&#58;//x.example/'/></item>",
            "<entry xml:base='https://x.example/'><link href='a'/><logo>b</logo><title/></entry>",
            "<entry><content xml:base='https://x.example/' type='html'>&lt;a href='/b'&gt;</content></entry>",
            "<entry><content xml:base='https://x.example/' type='xhtml'><a href='/b'><img src='#c'/></a></content></entry>",
            "<entry><title>a href=/b</title><category scheme='/x' term='href=/y'/></entry>",
            "<item><description>&lt;a href=&quot;https://x.example/?src=/b&quot;&gt;</description></item>",
            "<item><link>https://x.example/</link><description>1 &lt; x and y=/2</description></item>",
        ] {
            assert!(References::of(xml).is_empty(), "{xml}: {:?}", found(xml));
        }
        // Relative to what the publisher says, which is relative itself.
        let xml = "<entry><content xml:base='b/'>&lt;a href='c'&gt;</content></entry>";
        assert_eq!(found(xml), ("b/".to_owned(), String::new(), false));
        let xml = "<feed><entry xml:base='b/'><link xml:base='c/' href='d'/><icon>/e.f</icon></entry>\
                   <link href='g'/><title xml:base=''>&lt;a href='h'></title><logo>/i</logo></feed>";
        assert_eq!(found(xml), ("b/ g  /i".to_owned(), String::new(), false));
        assert!(References::of(xml).places.is_empty());
    }

    #[test]
    fn no_more_places_are_noted_than_references() {
        let xml = format!("<entry>{}</entry>", "<title>&lt;a href='#a'></title>".repeat(2_000));
        assert_eq!(References::of(&xml).places.len(), REFERENCE_LIMIT);
    }

    #[test]
    fn what_is_broken_ends_the_search() {
        for xml in
            ["", "<", "<a", "<item><description>&lt;a href=", "<a href='\u{e9}", "<item></x>"]
        {
            assert!(References::of(xml).is_empty(), "{xml}");
        }
    }
}
