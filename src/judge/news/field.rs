//! A field of an entry, and what it weighs: the fixed list of what is noise.

use super::{RULES, addresses};
use tidegate_core::model::NoiseClass;

/// What a field weighs in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldWeight {
    /// Text that a reader sees.
    Text,
    /// An address that a reader can follow.
    Address,
    /// Nothing: a date, a counter, a preview image, the entry's identity, markup.
    Noise(NoiseClass),
}

/// What the field at `path` weighs.
pub fn weight(path: &str, value: &str) -> FieldWeight {
    let field = FieldPath::new(path);
    let noise = RULES.iter().find(|rule| (rule.is_noise)(&field, value));
    match noise {
        Some(rule) => FieldWeight::Noise(rule.class),
        None if addresses::is_address(&field, value) => FieldWeight::Address,
        None => FieldWeight::Text,
    }
}

/// The path of a field, taken apart.
pub(super) struct FieldPath<'a> {
    pub(super) path: &'a str,
    /// The path of the element that it is, or is an attribute of.
    pub(super) element: &'a str,
    /// The name of that element.
    pub(super) name: &'a str,
    /// That name, or the name of the outline's attribute that it is, without prefix and in small letters.
    local: String,
    pub(super) kind: FieldKind<'a>,
}

/// What a field is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind<'a> {
    /// An element that is the entry itself, or leads to it, whatever it looks like.
    Core,
    /// Another element.
    Element,
    /// An attribute of a `link` of Atom.
    Link,
    /// An attribute of an outline, in which stands all that it says.
    Outline,
    /// Another attribute.
    Attribute(&'a str),
}

impl<'a> FieldPath<'a> {
    pub(super) fn new(path: &'a str) -> Self {
        let (element, attribute) = match path.rsplit_once('@') {
            Some((element, attribute)) => (element, Some(attribute)),
            None => (path, None),
        };
        let name = element_name(element);
        let kind = match attribute {
            Some(_) if element.starts_with("outline:") => FieldKind::Outline,
            Some(_) if element.starts_with("link[") => FieldKind::Link,
            Some(attribute) => FieldKind::Attribute(attribute),
            None if is_core_text(name) || addresses::LINKS.contains(&name) => FieldKind::Core,
            None => FieldKind::Element,
        };
        let called = attribute.filter(|_| kind == FieldKind::Outline).unwrap_or(name);
        let local = called.rsplit(['}', ':']).next().unwrap_or(called).to_ascii_lowercase();
        Self { path, element, name, local, kind }
    }

    /// Whether it is an element whose name alone says little, or an attribute of an outline, and one of these parts
    /// is in its name.
    pub(super) fn is_called(&self, parts: &[&str]) -> bool {
        matches!(self.kind, FieldKind::Element | FieldKind::Outline)
            && parts.iter().any(|part| self.local.contains(part))
    }

    /// Whether its name, without `-` and `_`, is one of these.
    pub(super) fn is_named(&self, names: &[&str]) -> bool {
        names.contains(&self.local.replace(['-', '_'], "").as_str())
    }

    /// Whether it is an attribute of an outline that is called one of these.
    pub(super) fn is_outline(&self, names: &[&str]) -> bool {
        self.kind == FieldKind::Outline && self.is_named(names)
    }
}

/// The name of the last element of a path.
pub(super) fn element_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Elements whose text is the entry itself, whatever it looks like.
pub(super) fn is_core_text(name: &str) -> bool {
    matches!(name, "title" | "description" | "summary" | "content" | "content:encoded" | "category")
}

/// Parts of the names of elements that hold what an entry says.
const TEXTS: [&str; 6] = ["content", "summary", "description", "text", "body", "subtitle"];

/// Whether an element holds what an entry says.
pub(crate) fn is_a_text(path: &str) -> bool {
    let name = element_name(path).to_ascii_lowercase();
    !name.contains('@') && TEXTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::FieldWeight::Noise;
    use super::*;
    use tidegate_core::model::NoiseClass::*;

    #[test]
    fn the_fixed_list() {
        for (path, value, expected) in [
            ("title", "12", FieldWeight::Text),
            ("description", "2026-11-20T00:00:00Z", FieldWeight::Text),
            ("pubDate", "1 May", Noise(Dates)),
            ("updated", "1", Noise(Dates)),
            ("dc:date", "1", Noise(Dates)),
            ("dcterms:modified", "1", Noise(Dates)),
            ("{http://source.example/}localTime", "12:05", Noise(Dates)),
            ("{urn:x}candidate", "Ada", FieldWeight::Text),
            ("{urn:x}country", "Iceland", FieldWeight::Text),
            ("ev:startdate", "2026-11-20T00:00:00Z", FieldWeight::Text),
            ("{urn:x}end_time", "2026-11-20T00:00:00Z", FieldWeight::Text),
            ("{urn:x}rank", "#4", Noise(Counters)),
            ("{http://x.example/}stamp", "Wed, 22 Apr 2020 02:22:13 +1200", Noise(Dates)),
            ("slash:comments", "4", Noise(Counters)),
            ("thr:total", "4", Noise(Counters)),
            ("media:group/media:community/media:statistics@views", "4", Noise(Counters)),
            ("media:group/media:thumbnail@url", "https://e.org/a", Noise(Images)),
            ("media:group/media:title", "A", FieldWeight::Text),
            ("enclosure@url", "https://e.org/a.mp3", FieldWeight::Address),
            ("enclosure@url", "https://e.org/a.jpg?x=1", Noise(Images)),
            ("enclosure@length", "1", Noise(Markup)),
            ("link[alternate]@href", "https://e.org/a", FieldWeight::Address),
            ("link[edit]@href", "https://e.org/a", Noise(Machinery)),
            ("link", "https://e.org/a", FieldWeight::Address),
            ("guid", "https://e.org/a", Noise(Ids)),
            ("outline:outline@xmlUrl", "https://e.org/feed", FieldWeight::Address),
            ("outline:outline@type", "rss", FieldWeight::Text),
            ("outline:outline@isOpen", "true", Noise(Machinery)),
            ("outline:outline@lastUpdate", "1", Noise(Dates)),
            ("outline:outline@{urn:x}downloads", "1", Noise(Counters)),
            ("outline:parent@ref", "x-outline:a", FieldWeight::Text),
            ("category@term", "a", FieldWeight::Text),
            ("author/name", "a", FieldWeight::Text),
            ("wfw:commentRss", "https://e.org/a", Noise(Machinery)),
            ("comments", "https://e.org/a#comments", Noise(Machinery)),
            ("content@type", "html", Noise(Markup)),
            ("{urn:tidegate:json}object", "{}", FieldWeight::Text),
        ] {
            assert_eq!(weight(path, value), expected, "{path} = {value}");
        }
    }
}
