//! Which relative references an element has: a document whose publisher wrote no `xml:base` needs one
//! only there.

pub mod places;

use places::{Holds, ReferencePlace, each_place};
use std::ops::Range;
use tidegate_core::xml::address::behind_scheme;
use tidegate_core::xml::cut;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::html::{self, Piece, Pieces, TagRule, decoded_value};

/// The attribute whose value is several references.
pub const CANDIDATES: &str = "srcset";
/// Attributes whose value is a reference, or several.
pub const HTML_ATTRIBUTES: &[&str] = &[
    "href",
    "src",
    CANDIDATES,
    "poster",
    "cite",
    "action",
    "formaction",
    "longdesc",
    "background",
    "data",
];

/// The most references of one element that are looked at, of each kind, and places that are noted.
const REFERENCE_LIMIT: usize = 1_000;
/// The longest value of an attribute in text that is read as one, in bytes.
const VALUE_LIMIT: usize = 4_096;

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
    /// Finds those of an element; none where there is no whole one.
    pub fn of(root: Option<DocElement<'_, '_>>) -> Self {
        let mut found = Self::default();
        // The number behind the outermost element around that names a base.
        let mut unbased = 0;
        if let Some(root) = root {
            each_place(root, |place| {
                if place.element.id >= unbased {
                    match place.holds {
                        Holds::Base => {
                            unbased = place.element.behind();
                            found.take_base(place);
                        }
                        _ => found.take(place),
                    }
                }
            });
        }
        found
    }

    /// Whether there is none that is more than a fragment.
    pub fn is_empty(&self) -> bool {
        self.structural.is_empty() && self.content.is_empty()
    }

    fn take_base(&mut self, found: ReferencePlace<'_, '_>) {
        let ReferencePlace { place, value, .. } = found;
        // An empty one is the base around it.
        if value.trim().is_empty() || ReferenceKind::of(&value) == ReferenceKind::Relative {
            push(&mut self.structural, FormatReference { place, value: value.into_owned() });
        }
    }

    fn take(&mut self, found: ReferencePlace<'_, '_>) {
        let is_word = found.is_word();
        let ReferencePlace { element, content, holds, place, value } = found;
        if let Some(content) = content {
            let has_any = match holds {
                Holds::Html | Holds::Text => self.take_html(&value),
                Holds::Candidates => self.take_candidates(&value),
                _ => self.take_value(&value),
            };
            let at = content.span().start + 1 + content.name().len();
            if has_any && self.places.last() != Some(&at) {
                push(&mut self.places, at);
            }
            return;
        }
        let value = value.trim();
        if is_word || ReferenceKind::of(value) != ReferenceKind::Relative {
            return;
        }
        if element.local() == "link" && (holds == Holds::Address || leads_to_page(element)) {
            self.page.get_or_insert_with(|| value.to_owned());
        }
        push(&mut self.structural, FormatReference { place, value: value.to_owned() });
    }

    /// Takes what is markup in a text; answers whether it has a reference that needs a base.
    fn take_html(&mut self, text: &str) -> bool {
        let mut has_any = false;
        for piece in Pieces::new(text, TagRule::All) {
            let Piece::Tag(tag) = piece else { continue };
            let is_reference =
                |name: &str| HTML_ATTRIBUTES.iter().any(|known| known.eq_ignore_ascii_case(name));
            for attribute in html::attributes(tag).filter(|one| is_reference(one.name)) {
                let value = decoded_value(cut(tag, attribute.value));
                has_any |= match attribute.name.eq_ignore_ascii_case(CANDIDATES) {
                    true => self.take_candidates(&value),
                    false => self.take_value(&value),
                };
            }
        }
        has_any
    }

    /// Takes the value of a `srcset`; answers whether one of its candidates needs a base.
    fn take_candidates(&mut self, srcset: &str) -> bool {
        candidates(srcset).fold(false, |has_any, (address, _)| self.take_value(address) || has_any)
    }

    /// Takes a value of an attribute of HTML; answers whether it is a reference that needs a base.
    fn take_value(&mut self, value: &str) -> bool {
        if value.len() > VALUE_LIMIT {
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

/// The candidates of a `srcset`: the address and the descriptor of each (HTML section 4.8.4.2.1).
pub fn candidates(srcset: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let length = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (whole, behind) =
            rest.split_at_checked(length).filter(|(whole, _)| !whole.is_empty())?;
        let address = whole.trim_end_matches(',');
        let (descriptor, next) = match address.len() < whole.len() {
            true => ("", behind),
            false => behind.split_once(',').unwrap_or((behind, "")),
        };
        rest = next;
        Some((address, descriptor.trim()))
    })
}

fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() < REFERENCE_LIMIT {
        list.push(one);
    }
}

/// Whether a `link` of Atom leads to the entry's page (RFC 4287 section 4.2.7.2).
fn leads_to_page(link: DocElement<'_, '_>) -> bool {
    link.attribute("rel").is_none_or(|relation| relation == "alternate")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{self, Limits};
    use tidegate_core::xml::doc::Doc;

    fn references(xml: &str) -> References {
        References::of(Doc::read_whole(xml).as_ref().and_then(Doc::root))
    }

    /// The references of the format, those in its content, and whether there are fragments.
    fn found(xml: &str) -> (String, String, bool) {
        let found = references(xml);
        let structural: Vec<&str> = found.structural.iter().map(|r| r.value.as_str()).collect();
        (structural.join(" "), found.content.join(" "), found.has_fragments)
    }

    #[test]
    fn references_are_found_where_they_stand() {
        let xml = "<entry><link href='/a'/><link href='https://x.example/'/><id>/no</id>\
                   <content type='html'>&lt;a href=&quot;b.html&quot;&gt;&lt;img src='#c'&gt; \
                   href=&quot;text&quot; &lt;a data-src=&quot;n&quot; SRC = /d&gt;\
                   &lt;img srcset='https://x.example/1 1x, f.png 2x'&gt;</content>\
                   <summary type='xhtml'><div><a href=\"?e=1\"/>\
                   <img srcset='https://x.example/1 1x, g.png 2x'/></div></summary></entry>";
        let in_content = "b.html /d f.png ?e=1 g.png";
        assert_eq!(found(xml), ("/a".to_owned(), in_content.to_owned(), true));
        // A long value is read where its candidates are short.
        let long = "https://x.example/1 1x, ".repeat(VALUE_LIMIT / 20);
        assert_eq!(found(&xml.replace("g.png", &format!("{long}g.png"))).1, in_content);
        let xml = "<item><link>/a</link><guid isPermaLink='false'>1/2</guid><guid>/b</guid>\
                   <enclosure url='c.mp3'/><description><![CDATA[<a href=\"#d\">]]></description>\
                   <link><![CDATA[ e/f ]]></link><comments>none</comments></item>";
        assert_eq!(found(xml), ("/a /b c.mp3 e/f".to_owned(), String::new(), true));
    }

    #[test]
    fn a_bare_id_needs_a_base_where_it_counts_as_an_address() {
        let guid =
            |attributes: &str| found(&format!("<item><guid{attributes}>CC400CDF</guid></item>")).0;
        let found = ["", " isPermaLink='true'", " isPermaLink='false'"].map(guid);
        assert_eq!(found, ["CC400CDF", "CC400CDF", ""]);
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
            // What is broken ends the search.
            "",
            "<",
            "<a",
            "<item><description>&lt;a href=",
            "<a href='\u{e9}",
            "<item></x>",
        ] {
            assert!(references(xml).is_empty(), "{xml}: {:?}", found(xml));
        }
        // Relative to what the publisher says, which is relative itself.
        let xml = "<entry><content xml:base='b/'>&lt;a href='c'&gt;</content></entry>";
        assert_eq!(found(xml), ("b/".to_owned(), String::new(), false));
        let xml = "<feed><entry xml:base='b/'><link xml:base='c/' href='d'/><icon>/e.f</icon></entry>\
                   <link href='g'/><title xml:base=''>&lt;a href='h'></title><logo>/i</logo></feed>";
        assert_eq!(found(xml), ("b/ g  /i".to_owned(), String::new(), false));
        assert!(references(xml).places.is_empty());
    }

    #[test]
    fn an_entry_as_written_is_known_to_need_no_base() {
        let is_known = |content: &str| {
            let item = format!("<item><description>{content}</description></item>");
            let text = format!("<rss version='2.0'><channel>{item}</channel></rss>");
            let document = parse::document(&text, None, &Limits::default()).unwrap();
            parse::own(&document, &document.entries[0]).slots.is_absolute
        };
        assert!(is_known("&lt;a href='https://x.example/'>"));
        for unknown in ["&lt;a href='/b'>", "<![CDATA[<img src='c'>]]>", "repaired & so read again"]
        {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn no_more_places_are_noted_than_references() {
        let xml = format!("<entry>{}</entry>", "<title>&lt;a href='#a'></title>".repeat(2_000));
        assert_eq!(references(&xml).places.len(), REFERENCE_LIMIT);
    }
}
