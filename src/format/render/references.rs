//! References of entries made absolute, in markup and in HTML within it (RFC 3986 section 5).
//!
//! A reference that names its scheme stays byte for byte. So does one to a place in the same document
//! (`#note`): readers lead it to where they show the text, and against the address of a feed it would
//! lead to the feed.

mod html;

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use tidegate_core::xml::address::{ADDRESS_LIMIT, behind_scheme};
use tidegate_core::xml::ns::{ATOM, CONTENT, MEDIA, RDF, WFW, XHTML, XLINK};
use tidegate_core::xml::tree::{Attribute, Element, Node};
use url::Url;

pub use html::{ATTRIBUTES as HTML_ATTRIBUTES, absolute as absolute_html};

/// Namespaces whose attributes hold a reference, with the attribute.
const LINKING: &[(&str, &str)] = &[(XLINK, "href"), (RDF, "resource")];

/// The most bytes of addresses that are made for one entry or head; further references stay relative. A
/// base of a few thousand bytes may stand before each of a million references.
const MADE_LIMIT: usize = 8 << 20;

/// Where references of an element lead: what its publisher wrote as `xml:base`, else the address that
/// the document came from.
#[derive(Debug, Clone)]
pub struct Base {
    url: Option<Url>,
    /// Where those in text and markup for people lead, where that is elsewhere.
    text: Option<Url>,
    /// How many bytes of addresses may still be made, here and with the bases within.
    left: Rc<Cell<usize>>,
}

impl Base {
    /// Nothing is resolved where the text is no address.
    pub fn new(address: &str) -> Self {
        let (url, left) = (Url::parse(address).ok(), Rc::new(Cell::new(MADE_LIMIT)));
        Self { url, text: None, left }
    }

    /// The same with another for text and markup for people.
    pub fn with_text(self, address: Option<&str>) -> Self {
        Self { text: address.and_then(|address| Url::parse(address).ok()), ..self }
    }

    /// The address itself; `None` where the text was none.
    pub fn address(&self) -> Option<&str> {
        self.url.as_ref().map(Url::as_str)
    }

    /// Whether text and markup for people has a base of its own.
    pub const fn has_text(&self) -> bool {
        self.text.is_some()
    }

    /// That of text and markup for people.
    fn of_text(&self) -> Cow<'_, Self> {
        match &self.text {
            None => Cow::Borrowed(self),
            Some(_) => {
                let (url, left) = (self.text.clone(), Rc::clone(&self.left));
                Cow::Owned(Self { url, text: None, left })
            }
        }
    }

    /// The base inside an element that names its own.
    fn within(&self, own: &str) -> Self {
        let left = Rc::clone(&self.left);
        let own = own.trim();
        if own.len() > ADDRESS_LIMIT {
            return Self { url: None, text: None, left };
        }
        let found = match &self.url {
            Some(outer) => self.join(outer, own),
            None => Url::parse(own).ok(),
        };
        let text = self.text.as_ref().and_then(|outer| self.join(outer, own));
        Self { url: found.or_else(|| self.url.clone()), text, left }
    }

    /// Joins two addresses while there is room for more.
    fn join(&self, outer: &Url, reference: &str) -> Option<Url> {
        let left = Some(self.left.get()).filter(|left| *left > 0)?;
        let joined = outer.join(reference).ok()?;
        self.left.set(left.saturating_sub(joined.as_str().len()));
        Some(joined)
    }

    /// The address that a relative reference leads to; `None` where it stays as it is.
    pub fn resolve(&self, reference: &str) -> Option<String> {
        let reference = reference.trim();
        if reference.len() > ADDRESS_LIMIT
            || ReferenceKind::of(reference) != ReferenceKind::Relative
        {
            return None;
        }
        self.join(self.url.as_ref()?, reference).map(Into::into)
    }

    /// The same of a reference that is not relative as well: as it is.
    pub fn absolute<'a>(&self, reference: &'a str) -> Cow<'a, str> {
        self.resolve(reference).map_or(Cow::Borrowed(reference), Cow::Owned)
    }
}

/// What a reference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Needs a base.
    Relative,
    /// A place in the document that it stands in.
    Fragment,
    /// Needs no base, or is no reference.
    Absolute,
}

impl ReferenceKind {
    /// What a value is whose references to characters are resolved (`xml::html::decoded_value`).
    pub fn of(value: &str) -> Self {
        let value = value.trim();
        // What still begins with a reference or a quote was escaped too often.
        if value.is_empty() || value.starts_with(['&', '"', '\'']) {
            return Self::Absolute;
        }
        if value.starts_with('#') {
            return Self::Fragment;
        }
        // Who follows it leaves these out (URL Standard section 4.4).
        let is_left_out = |c: char| matches!(c, '\t' | '\n' | '\r');
        let has_scheme = match value.contains(is_left_out) {
            true => behind_scheme(&value.replace(is_left_out, "")).is_some(),
            false => behind_scheme(value).is_some(),
        };
        if has_scheme { Self::Absolute } else { Self::Relative }
    }
}

/// Makes all references of an entry or a feed's head absolute, those in its HTML included. Answers
/// whether one was changed.
///
/// `own` is the namespace of the format's own elements: of Atom, or that of RSS.
pub fn make_absolute(root: &mut Element, own: &str, base: &Base) -> bool {
    let mut walk = ReferenceWalk { own, changed: false };
    walk.element(root, base, TextUse::Unsaid);
    walk.changed
}

/// What the text of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextUse {
    /// Nothing that leads anywhere.
    Unsaid,
    /// A reference.
    Reference,
    /// HTML.
    Html,
}

impl TextUse {
    const fn html_if(is_html: bool) -> Self {
        if is_html { Self::Html } else { Self::Unsaid }
    }
}

struct ReferenceWalk<'a> {
    own: &'a str,
    changed: bool,
}

impl ReferenceWalk<'_> {
    /// A tree that was read has a bounded depth.
    fn element(&mut self, element: &mut Element, outer: &Base, text: TextUse) {
        let own = element.own("base");
        let base = own.map_or(Cow::Borrowed(outer), |own| Cow::Owned(outer.within(own)));
        let names = self.attributes_of(element);
        let is_text = element.namespace == XHTML;
        let around = if is_text { base.of_text() } else { Cow::Borrowed(&*base) };
        for attribute in &mut element.attributes {
            self.attribute(attribute, names, &around);
        }
        if element.children.iter().all(|node| matches!(node, Node::Text(_))) {
            self.text(element, text, &base);
            return;
        }
        let kinds: Vec<TextUse> =
            element.elements().map(|child| self.kind(element, child)).collect();
        let mut kinds = kinds.into_iter();
        for node in &mut element.children {
            if let Node::Element(child) = node {
                let kind = kinds.next().unwrap_or(TextUse::Unsaid);
                self.element(child, &base, kind);
            }
        }
    }

    /// The attributes without a namespace that hold references in an element.
    fn attributes_of(&self, element: &Element) -> &'static [&'static str] {
        match element.namespace.as_str() {
            XHTML => html::ATTRIBUTES,
            ATOM => match element.name.as_str() {
                "link" => &["href"],
                "content" => &["src"],
                "generator" => &["uri"],
                _ => &[],
            },
            space if space == self.own => match element.name.as_str() {
                "enclosure" | "source" => &["url"],
                _ => &[],
            },
            "" => &[],
            _ => &["url", "href", "src"],
        }
    }

    fn attribute(&mut self, attribute: &mut Attribute, names: &[&str], base: &Base) {
        let space = attribute.namespace.as_str();
        let name = attribute.name.as_str();
        let holds = if space.is_empty() {
            names.contains(&name)
        } else {
            LINKING.iter().any(|(linking, local)| *linking == space && *local == name)
        };
        let found = if !holds {
            None
        } else if name == "srcset" {
            html::absolute_candidates(&attribute.value, base)
        } else {
            base.resolve(&attribute.value)
        };
        if let Some(absolute) = found {
            attribute.value = absolute;
            self.changed = true;
        }
    }

    /// What the text of a child is.
    fn kind(&self, parent: &Element, child: &Element) -> TextUse {
        let name = child.name.as_str();
        match child.namespace.as_str() {
            ATOM => match name {
                "icon" | "logo" | "uri" => TextUse::Reference,
                "title" | "subtitle" | "summary" | "content" | "rights" => {
                    let kind = child.attribute("type").unwrap_or("text").to_ascii_lowercase();
                    TextUse::html_if(matches!(kind.as_str(), "html" | "text/html"))
                }
                _ => TextUse::Unsaid,
            },
            space if space == self.own => match (parent.name.as_str(), name) {
                (_, "link" | "comments" | "docs") | ("image", "url") => TextUse::Reference,
                (_, "description") => TextUse::Html,
                _ => TextUse::Unsaid,
            },
            CONTENT if name == "encoded" => TextUse::Html,
            WFW => TextUse::Reference,
            MEDIA if name == "description" => {
                TextUse::html_if(child.attribute("type") == Some("html"))
            }
            _ => TextUse::Unsaid,
        }
    }

    fn text(&mut self, element: &mut Element, kind: TextUse, base: &Base) {
        if kind == TextUse::Unsaid || element.children.is_empty() {
            return;
        }
        let whole = element.content();
        let found = match kind {
            TextUse::Unsaid => None,
            TextUse::Reference => base.resolve(&whole),
            TextUse::Html => html::absolute(&whole, &base.of_text()),
        };
        if let Some(absolute) = found {
            element.children = vec![Node::Text(absolute)];
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Context;
    use tidegate_core::xml::tree;

    fn made(xml: &str) -> String {
        let mut root = tree::read(xml, &Context::default()).unwrap();
        let own = root.namespace.clone();
        make_absolute(&mut root, &own, &Base::new("https://pub.example/blog/feed"));
        let mut out = String::new();
        tree::write(&mut out, &root, &mut Vec::new());
        out
    }

    #[test]
    fn references_lead_where_they_led() {
        for (old, new) in [
            (
                "<item><link>/1</link><comments>1#c</comments><guid>1</guid></item>",
                "<item><link>https://pub.example/1</link>\
                 <comments>https://pub.example/blog/1#c</comments><guid>1</guid></item>",
            ),
            (
                "<item><enclosure url='a b.mp3' x='y'/><description>&lt;img src=i.png></description></item>",
                "<item><enclosure url=\"https://pub.example/blog/a%20b.mp3\" x=\"y\"/><description>\
                 &lt;img src=\"https://pub.example/blog/i.png\"&gt;</description></item>",
            ),
            (
                "<item xml:base='https://o.example/d/'><link>x</link><e url='x'/></item>",
                "<item xml:base=\"https://o.example/d/\"><link>https://o.example/d/x</link>\
                 <e url=\"x\"/></item>",
            ),
            (
                "<item><m:t xmlns:m='http://search.yahoo.com/mrss/' url='t.png'/></item>",
                "<item><m:t xmlns:m=\"http://search.yahoo.com/mrss/\" \
                 url=\"https://pub.example/blog/t.png\"/></item>",
            ),
        ] {
            assert_eq!(made(old), new);
        }
    }

    #[test]
    fn atom_says_what_is_a_reference() {
        let text = made(
            "<entry xmlns='http://www.w3.org/2005/Atom' xml:base='p/'><id>x</id><link href='1'/>\
             <content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><a href='2'>a</a>\
             <a href='#n'>n</a><img srcset='3 1x, 4 2x'/></div></content>\
             <summary type='html'>&lt;a href='5'></summary><title>&lt;a href='6'></title></entry>",
        );
        for address in ["1", "2", "3", "4", "5"] {
            let absolute = format!("https://pub.example/blog/p/{address}");
            assert!(text.contains(&absolute), "{absolute} in {text}");
        }
        assert!(text.contains("href=\"#n\"") && text.contains("href='6'"), "{text}");
        assert!(text.contains("<id>x</id>"), "{text}");
    }

    #[test]
    fn what_is_absolute_is_not_touched() {
        let xml = "<item><link>HTTP://a/ü</link><description>&lt;a href=mailto:x&gt;</description></item>";
        let mut root = tree::read(xml, &Context::default()).unwrap();
        assert!(!make_absolute(&mut root, "", &Base::new("https://pub.example/")));
        assert!(!make_absolute(&mut root, "", &Base::new("no address")));
    }
}
