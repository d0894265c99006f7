//! From the older formats to the two that are published: RSS 0.90 and 1.0 to RSS 2.0, Atom 0.3 and
//! JSON Feed to Atom 1.0, and heads and items from one family to the other.
//!
//! A conversion gives a [`Skeleton`] or [`Markup`] of the wanted format, which then goes the same
//! way as one that a publisher wrote. Ids are left out: the published id is spliced in.

mod atom03;
mod author;
mod element;
mod head;
mod json_feed;
mod rdf;
mod reading;

use super::Addresses;
use super::base::edited;
use super::references::{Base, absolute_edits};
use super::scope::base_of;
use crate::parse::collection;
use std::borrow::Cow;
use std::ops::Range;
use tidegate_core::model::{
    Card, Context, Family, Format, Markup, Skeleton, SkeletonSlots, Slots, Time,
};
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::ns::{ATOM, DC};
use tidegate_core::xml::tag::prefix_of;
use tidegate_core::xml::tree::{self, Element};
use tidegate_core::xml::{self, address};

pub use crate::parse::reading::Person;
pub use author::{authors, people};
pub use element::{Category, tags};
pub use reading::{Enclosure, Reading, Text};

/// What is converted to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The family of the document.
    pub family: Family,
    /// The namespace of its own elements: of Atom, or the default namespace of an RSS document,
    /// which has none as a rule.
    pub namespace: &'a str,
}

impl Target<'_> {
    /// The format that documents of this family are written in.
    pub const fn format(&self) -> Format {
        match self.family {
            Family::Atom => Format::Atom10,
            Family::Rss => Format::Rss20,
        }
    }

    /// The name of an entry.
    const fn entry(&self) -> &'static str {
        match self.family {
            Family::Atom => "entry",
            Family::Rss => "item",
        }
    }
}

/// A skeleton in a family's current format; as it is where it has that format, unless its
/// references are to be `absolute` and one is not.
pub fn skeleton<'a>(
    skeleton: &'a Skeleton,
    addresses: &Addresses,
    family: Family,
    absolute: bool,
) -> Cow<'a, Skeleton> {
    let is_current = matches!(skeleton.format, Format::Atom10 | Format::Rss20 | Format::Rss09x);
    if !is_current || skeleton.format.family() != family {
        return Cow::Owned(write_skeleton(skeleton, head(skeleton, addresses, family), family));
    }
    if !absolute {
        return Cow::Borrowed(skeleton);
    }
    absolute_skeleton(skeleton, addresses).map_or(Cow::Borrowed(skeleton), Cow::Owned)
}

/// A skeleton in XML with its references absolute; `None` where none is relative.
fn absolute_skeleton(skeleton: &Skeleton, addresses: &Addresses) -> Option<Skeleton> {
    let text = skeleton.link.as_deref().filter(|_| skeleton.context.base.is_none());
    let base = Base::new(&addresses.upstream).with_text(text);
    let edits = absolute_edits(Doc::read_whole(&skeleton.text)?.root()?, &base);
    if edits.is_empty() {
        return None;
    }
    let edits = Edits::new(0..skeleton.text.len(), edits);
    let moved = |range: &Range<usize>| edits.before(range.start)..edits.behind(range.end);
    let SkeletonSlots { root_attributes, version, entries, updated, id } = &skeleton.slots;
    let slots = SkeletonSlots {
        root_attributes: edits.before(*root_attributes),
        version: version.as_ref().map(moved),
        entries: edits.behind(*entries),
        updated: updated.as_ref().map(moved),
        id: id.as_ref().map(moved),
    };
    let text = edits.apply(&skeleton.text).into_owned();
    Some(Skeleton { text, slots, ..skeleton.clone() })
}

/// An entry as a tree; `None` where it cannot be read.
pub fn read_entry(markup: &Markup) -> Option<Element> {
    tree::read(&markup.xml, &markup.context)
}

/// The same in words that a feed has: those of an item of a collection are Atom's.
pub fn read_words(markup: &Markup) -> Option<Element> {
    match markup.format {
        Format::Collection => own_entry(markup, None),
        _ => read_entry(markup),
    }
}

/// The same of the document around the entries; without anything where it cannot be read.
pub fn read_skeleton(skeleton: &Skeleton) -> Element {
    tree::read(&skeleton.text, &Context::default()).unwrap_or_default()
}

/// What a skeleton says of its feed, as the feed or channel element of a family, without its
/// entries. All its references are absolute.
pub fn head(skeleton: &Skeleton, addresses: &Addresses, family: Family) -> Element {
    let absolute = absolute_skeleton(skeleton, addresses);
    let skeleton = absolute.as_ref().unwrap_or(skeleton);
    let root = own_head(skeleton, addresses);
    match family {
        Family::Rss if skeleton.format.family() != family => {
            head::atom_to_rss(&root, skeleton, addresses)
        }
        Family::Atom if skeleton.format.family() != family => head::rss_to_atom(&root, skeleton),
        _ => root,
    }
}

/// The same in the current format of the skeleton's own family, its references as they are.
fn own_head(skeleton: &Skeleton, addresses: &Addresses) -> Element {
    match skeleton.format {
        Format::Atom10 | Format::Opml => read_skeleton(skeleton),
        Format::Rss20 | Format::Rss09x => head::channel(skeleton),
        Format::Atom03 => atom03::feed(skeleton),
        Format::Rss10 | Format::Rss090 => rdf::channel(skeleton, addresses),
        Format::JsonFeed => {
            json_feed::feed(skeleton, &Base::new(base_of(&skeleton.context, addresses)))
        }
        Format::Collection => collection::feed(&read_skeleton(skeleton)),
    }
}

/// An entry in the current format of the target's family; as it is where it has that format. What
/// is converted has no relative references: `base` says where they lead.
///
/// `seen` is when the gateway saw this version. It stands in where Atom requires `updated` and the
/// publisher names no date.
pub fn markup<'a>(
    markup: &'a Markup,
    target: &Target<'_>,
    seen: Option<Time>,
    base: impl FnOnce() -> Base,
) -> Cow<'a, Markup> {
    let is_current = matches!(markup.format, Format::Atom10 | Format::Rss20 | Format::Rss09x);
    let family = markup.format.family();
    if is_current && family == target.family {
        return Cow::Borrowed(markup);
    }
    let base = base();
    let converted = match (markup.format, target.family) {
        (Format::Rss10 | Format::Rss090, Family::Rss) => rdf::item(markup, target),
        (_, Family::Atom) if family == Family::Atom => own_entry(markup, seen),
        _ => Some(Reading::of(markup, &base).element(target, seen)),
    };
    let mut root =
        converted.unwrap_or_else(|| Reading::of_card(&markup.card).element(target, seen));
    // Who took the entry over may know an author that its markup does not name.
    if let (Family::Atom, None, Some(author)) =
        (target.family, root.find(ATOM, "author"), &markup.card.author)
    {
        root.push(Person::named(author).element(ATOM, "author"));
    }
    let written = write_entry(&root, target, &markup.card, &markup.context);
    let may_be_relative = family == target.family && markup.format != Format::Opml;
    let absolute = if may_be_relative { absolute(&written, &base) } else { None };
    Cow::Owned(absolute.unwrap_or(written))
}

/// An entry of a format that is republished as Atom, as an element of Atom without id.
fn own_entry(markup: &Markup, seen: Option<Time>) -> Option<Element> {
    match markup.format {
        Format::Atom03 => atom03::entry(markup, seen),
        Format::JsonFeed => json_feed::entry(markup, seen),
        Format::Opml => outline(markup, seen),
        Format::Collection => Some(collection::entry(&collection::item(markup)?, None, seen)),
        _ => read_entry(markup),
    }
}

/// An outline of a list as an entry: Atom already, but for what RFC 4287 wants of every entry.
fn outline(markup: &Markup, seen: Option<Time>) -> Option<Element> {
    let mut entry = read_entry(markup)?;
    entry.drop_all(ATOM, "id");
    if entry.find(ATOM, "updated").is_none()
        && let Some(seen) = seen.or(markup.card.published)
    {
        entry.push(Element::new(ATOM, "updated").text(&seen.to_string()));
    }
    Some(entry)
}

/// An entry of a family's current format with its references absolute; `None` where none is
/// relative, or the entry cannot be read.
pub fn absolute(markup: &Markup, base: &Base) -> Option<Markup> {
    let doc = Doc::read_in(&markup.xml, &markup.context)?;
    let entry = doc.root()?;
    let mut edits = absolute_edits(entry, base);
    let is_own = |name: &'static str| {
        move |child: &DocElement<'_, '_>| child.ns() == entry.ns() && child.local() == name
    };
    let is_rss = markup.format.family() == Family::Rss;
    let guid = entry.children().find(is_own("guid")).filter(|_| is_rss);
    if let Some((guid, address)) = guid.and_then(|guid| Some((guid, permalink(guid, base)?))) {
        // What the item is known by stays as it is; where it leads is said by a link.
        let behind_name = guid.span().start + 1 + guid.name().len();
        let says = guid.attributes().find(|attribute| attribute.name() == "isPermaLink");
        edits.push(match says {
            Some(says) => Edit { range: says.place(), with: "false".into() },
            None => {
                let with = " isPermaLink=\"false\"".into();
                Edit { range: behind_name..behind_name, with }
            }
        });
        if !entry.children().any(|child| is_own("link")(&child)) {
            let mut link = String::new();
            xml::push_element(&mut link, &format!("{}link", prefix_of(guid.name())), &address);
            let end = guid.span().end;
            edits.push(Edit { range: end..end, with: link.into() });
        }
    }
    (!edits.is_empty()).then(|| edited(markup, edits))
}

/// The address that a `guid` is, where it is a relative one: said to be a permalink, or a path.
fn permalink(guid: DocElement<'_, '_>, base: &Base) -> Option<String> {
    let written = guid.text();
    let is_path = ["/", "./", "../"].iter().any(|start| written.trim().starts_with(start));
    let is_permalink = match guid.attribute("isPermaLink") {
        Some(says) => says.trim().eq_ignore_ascii_case("true"),
        // By the text it would be one, but many write nothing and mean any text.
        None => is_path,
    };
    base.resolve(&written).filter(|_| is_permalink)
}

/// What the card of an entry says that cannot be read: that is still worth showing.
pub fn write_card(markup: &Markup, target: &Target<'_>, seen: Option<Time>) -> Markup {
    let element = Reading::of_card(&markup.card).element(target, seen);
    write_entry(&element, target, &markup.card, &markup.context)
}

/// Writes an entry's element as markup of the target's format that stands alone.
pub fn write_entry(root: &Element, target: &Target<'_>, card: &Card, context: &Context) -> Markup {
    let mut scope = tree::bindings(root);
    if !target.namespace.is_empty() {
        scope.insert(0, (String::new(), target.namespace.to_owned()));
    }
    let mut xml = String::new();
    let id_name = if target.family == Family::Atom { "id" } else { "guid" };
    let is_id = |child: &Element| child.is(target.namespace, id_name) && !child.children.is_empty();
    let id_element = tree::write_noting(&mut xml, root, &mut scope.clone(), is_id);
    let id = id_element.clone().and_then(|element| {
        let written = xml.get(element.clone())?;
        let open = end_of_tag(written)?;
        Some(element.start + open..element.start + written.rfind("</")?)
    });
    let attributes = 1 + root.name.len();
    let inner = (!root.children.is_empty())
        .then(|| xml.get(attributes..).and_then(end_of_tag).map(|end| attributes + end))
        .flatten();
    Markup {
        format: target.format(),
        xml,
        context: Context {
            namespaces: scope,
            base: context.base.clone(),
            lang: context.lang.clone(),
        },
        slots: Slots {
            attributes,
            inner,
            id_element: id_element.filter(|_| id.is_some()),
            id,
            is_absolute: false,
        },
        card: card.clone(),
    }
}

/// The id that an entry has on its own.
pub fn own_id(markup: &Markup) -> Option<Cow<'_, str>> {
    let id = xml::plain(markup.xml.get(markup.slots.id.clone()?)?);
    Some(xml::trimmed(id)).filter(|id| !id.is_empty())
}

/// The id to add to an entry as it came where it is converted to a family: its own, if that takes
/// it. An id of Atom is an IRI (RFC 4287 section 4.2.6) and has to be there: else it is made of
/// `known`. Empty where nothing is to be added.
pub fn kept_id(markup: &Markup, family: Family, known: &str) -> String {
    let has_own = markup.format != Format::Collection || markup.slots.id.is_some();
    if markup.format.family() == family && has_own {
        return String::new();
    }
    let own = own_id(markup).unwrap_or_default();
    match family {
        Family::Atom if !address::is_address(&own) => collection::id_of_sync(known),
        _ => own.into_owned(),
    }
}

/// What `dc:identifier` an item of RSS has.
pub fn identifier(markup: &Markup) -> Option<String> {
    if !markup.xml.contains("identifier") {
        return None;
    }
    let item = read_entry(markup)?;
    item.words_of(DC, "identifier")
}

/// An entry whole, as a tree in the current format of its family: with the id that it is published
/// with, if that is another than its own, and base and language on its root. References are
/// absolute where one base does not do for all.
///
/// `namespace` is the one that RSS elements of this tree are in: none.
pub fn whole(markup: &Markup, published: Option<&str>, base: &Base) -> Element {
    let family = markup.format.family();
    let is_collected = markup.format == Format::Collection;
    let absolute = if base.has_text() { absolute(markup, base) } else { None };
    let markup = absolute.as_ref().unwrap_or(markup);
    let root = if is_collected { collection::item(markup) } else { read_entry(markup) };
    let mut root = root.unwrap_or_default();
    let old = root.namespace.clone();
    if is_collected || family == Family::Rss && !old.is_empty() {
        tree::move_namespace(&mut root, &old, "");
    }
    let space = if family == Family::Atom { ATOM } else { "" };
    if family == Family::Atom {
        tree::move_prefix(&mut root, ATOM, "");
    }
    if let Some(published) = published.filter(|_| !is_collected) {
        set_id(&mut root, (family, space), published);
    }
    let base = base.address().unwrap_or_default();
    let own = root.own("base");
    let base = own.map_or_else(|| base.to_owned(), |own| super::head::resolve(base, own));
    let lang = root.own("lang").or(markup.context.lang.as_deref()).map(str::to_owned);
    root.attributes.retain(|attribute| attribute.prefix != "xml");
    root.attributes.insert(0, tree::Attribute::base(&base));
    root.attributes.extend(lang.map(|lang| tree::Attribute::lang(&lang)));
    root
}

/// Gives an entry an id.
fn set_id(root: &mut Element, (family, space): (Family, &str), published: &str) {
    let name = if family == Family::Atom { "id" } else { "guid" };
    let mut id = Element::new(space, name).text(published);
    if family == Family::Rss {
        let written = root.find(space, name);
        let same = written.filter(|written| written.content().trim() == published);
        let kind = same.and_then(|written| written.attribute("isPermaLink"));
        match (same, kind) {
            (Some(_), None) => {}
            (_, kind) => id.set("isPermaLink", kind.unwrap_or("false")),
        }
    }
    let place = root
        .children
        .iter()
        .position(|node| matches!(node, tree::Node::Element(element) if element.is(space, name)));
    match place.and_then(|at| root.children.get_mut(at)) {
        Some(node) => *node = tree::Node::Element(id),
        None => root.push(id),
    }
}

/// Where the start tag that goes on in `text` ends. Our own writer lets no `>` into a value.
fn end_of_tag(text: &str) -> Option<usize> {
    text.find('>').map(|at| at + 1)
}

/// Writes a feed's element as a skeleton: an Atom feed, or an RSS channel that is put into `rss`.
fn write_skeleton(old: &Skeleton, mut root: Element, family: Family) -> Skeleton {
    let format = match family {
        Family::Atom => Format::Atom10,
        Family::Rss => Format::Rss20,
    };
    // What the publisher's root declares is declared again, so that entries need not.
    let mut namespaces = tree::bindings(&root);
    for (prefix, name) in &old.context.namespaces {
        let known = namespaces.iter().any(|(bound, _)| bound == prefix);
        if !prefix.is_empty() && !known && !rdf::is_own(name) {
            namespaces.push((prefix.clone(), name.clone()));
        }
    }
    namespaces.sort();
    if family == Family::Atom {
        namespaces.insert(0, (String::new(), ATOM.to_owned()));
    }
    let outer = if family == Family::Atom { "feed" } else { "rss" };
    let mut text = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<{outer}");
    let mut slots = SkeletonSlots { root_attributes: text.len(), ..SkeletonSlots::default() };
    for (prefix, name) in &namespaces {
        tidegate_core::xml::push_namespace(&mut text, prefix, name);
    }
    let lang = old.context.lang.as_deref().or(root.own("lang")).map(str::to_owned);
    let context = Context { namespaces, base: old.context.base.clone(), lang };
    if let Some(base) = &context.base {
        tidegate_core::xml::push_attribute(&mut text, "xml:base", base);
    }
    if let Some(lang) = &context.lang {
        tidegate_core::xml::push_attribute(&mut text, "xml:lang", lang);
    }
    text.push('>');
    if family == Family::Rss {
        text.push_str("<channel>");
    }
    let own = if family == Family::Atom { ATOM } else { "" };
    // Our own dates replace those; an id is kept.
    root.children.retain(|node| match node {
        tree::Node::Element(e) => !e.is(own, "updated") && !e.is(own, "lastBuildDate"),
        tree::Node::Text(_) => false,
    });
    let mut scope = context.namespaces.clone();
    for element in root.elements() {
        let start = text.len();
        tree::write(&mut text, element, &mut scope);
        if element.is(ATOM, "id") && family == Family::Atom {
            let open = text.get(start..).and_then(end_of_tag).map(|end| start + end);
            let close = text.len() - "</id>".len();
            slots.id = open.filter(|open| *open <= close).map(|open| open..close);
        }
    }
    slots.entries = text.len();
    text.push_str(if family == Family::Atom { "</feed>\n" } else { "</channel></rss>\n" });
    Skeleton { format, text, slots, context, title: old.title.clone(), link: old.link.clone() }
}

/// A date as Atom wants it: what is written where that is RFC 3339, else what was read of it.
fn atom_date(written: &str, read: Option<Time>) -> Option<String> {
    let written = written.trim();
    if Time::parse_rfc3339(written).is_ok() {
        return Some(written.to_owned());
    }
    read.map(|time| time.to_string())
}
