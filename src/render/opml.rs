//! Lists as OPML 2.0 with SSE 0.91: the items as outlines, those of a list in each other as they stand
//! there (SSE 0.91 sections 3.2 and 4.4.2).
//!
//! What an outline stands in is a part of what it says; its position is that in the order of the page.
//! The items of other feeds are links (OPML 2.0, `type="link"`), without their texts.

use super::collection::Shown;
use super::convert::tree::{self, Attribute, Element};
use super::convert::{self, Neutral};
use super::entry::borrowed;
use super::escape::{self, push_attribute};
use super::head::push_sharing;
use super::{Dialect, Page, sx091};
use crate::model::{
    Format, Item, Markup, OUTLINE_DEPTH, OUTLINE_NAMESPACE, OUTLINE_PREFIX, Shared, SyncId, Version,
};
use crate::sync::{Item091, Node, Outlines, Placed, break_cycles, in_order, to_091};
use std::collections::{HashMap, HashSet};

/// The prefix of sync markup.
const SX: &str = "sx";

/// What an outline says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Said {
    attributes: Vec<Attribute>,
    /// Elements that are neither outlines nor sync markup.
    other: Vec<Element>,
}

type Outline<'a> = Node<Said, &'a Version<Markup>>;

/// Renders a page. There is one dialect of sync markup for lists.
pub fn document(page: &Page<'_>) -> String {
    let page = &Page { dialect: Dialect::Sse091, ..*page };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<opml version=\"2.0\"");
    push_attribute(&mut out, &format!("xmlns:{SX}"), sx091::NAMESPACE);
    push_attribute(&mut out, &format!("xmlns:{OUTLINE_PREFIX}"), OUTLINE_NAMESPACE);
    out.push_str(">\n<head>\n");
    for (name, text) in head(page) {
        out.push_str(&format!("<{name}>"));
        escape::text(&mut out, &text);
        out.push_str(&format!("</{name}>\n"));
    }
    push_sharing(&mut out, page, SX);
    out.push_str("\n</head>\n<body>");
    let mut outlines = outlines(page);
    break_cycles(&mut outlines);
    let mut open = 0;
    for (depth, outline) in in_order(&outlines) {
        // What would stand deeper than anybody reads stands beside.
        let depth = depth.min(OUTLINE_DEPTH - 1);
        close(&mut out, &mut open, depth);
        out.push('\n');
        push(&mut out, page, outline);
        open = depth + 1;
    }
    close(&mut out, &mut open, 0);
    out.push_str("\n</body>\n</opml>\n");
    out
}

fn close(out: &mut String, open: &mut usize, depth: usize) {
    while *open > depth {
        *open -= 1;
        out.push_str("</outline>");
    }
}

/// The elements of the head (OPML 2.0, "What is a <head>?").
fn head(page: &Page<'_>) -> Vec<(String, String)> {
    let mut head = vec![
        ("title".to_owned(), page.skeleton.title.clone()),
        ("dateModified".to_owned(), page.state.shown.rfc822()),
    ];
    let own = if page.skeleton.format == Format::Opml {
        let feed = convert::list(page.skeleton);
        let own = feed.find(OUTLINE_NAMESPACE, "head").map(|own| own.attributes.clone());
        own.unwrap_or_default().into_iter().map(|a| (a.name, a.value)).collect()
    } else {
        let owner = convert::authors(page.skeleton).into_iter().next();
        owner.map(|name| ("ownerName".to_owned(), name)).into_iter().collect::<Vec<_>>()
    };
    head.extend(own);
    head
}

/// The outlines of a page by their ids.
fn outlines<'a>(page: &Page<'a>) -> Outlines<Said, &'a Version<Markup>> {
    let items: Vec<(&Item, Place, Said)> = page
        .shown()
        .map(|item| {
            let (place, said) = said(page, &Shown::of(page, item));
            (item, place, said)
        })
        .collect();
    let mut ids: HashMap<(Option<&str>, &str), &SyncId> = HashMap::new();
    for (item, place, _) in items.iter().filter(|(item, ..)| !item.shared.winner.deleted) {
        let (winner, list) = (&item.shared.winner, place.list.as_deref());
        ids.entry((list, item.published_id.as_str())).or_insert(&winner.id);
        ids.extend(own_id(&winner.data).map(|id| ((list, id), &winner.id)));
    }
    let mut outlines = Outlines::new();
    for ((item, place, data), position) in items.iter().zip(0..) {
        let parent = place.parent.as_deref().map(|id| (place.list.as_deref(), id));
        let parent = parent.and_then(|parent| ids.get(&parent)).map(|id| (*id).clone());
        let shared = Shared {
            winner: borrowed(&item.shared.winner),
            conflicts: page.conflicts(item).iter().map(borrowed).collect(),
        };
        let Item091 { id, version, deleted, conflict, last, updates, conflicts, .. } =
            to_091(shared, |lost| lost.data);
        let data = Placed { parent, position, data: data.clone() };
        let node =
            Item091 { id: id.clone(), version, deleted, conflict, last, updates, conflicts, data };
        outlines.insert(id, node);
    }
    outlines
}

/// The native id that an entry's own markup names.
fn own_id(markup: &Markup) -> Option<&str> {
    markup.xml.get(markup.slots.id.clone()?).map(str::trim)
}

/// Where an outline stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Place {
    /// The list that it was taken over from, in an aggregate: folders of two lists may have one name.
    list: Option<String>,
    /// The id of the entry that it stands in.
    parent: Option<String>,
}

/// What an item says as an outline, and where it stands.
fn said(page: &Page<'_>, shown: &Shown<'_>) -> (Place, Said) {
    let markup = shown.markup(page);
    let neutral = Neutral::of(&markup);
    let entry = tree::read(&markup.xml, &markup.context).unwrap_or_default();
    let mut said = Said::default();
    let mut put = |name: &str, value: &str| {
        said.attributes.extend(Element::default().with(name, value).attributes);
    };
    let title = entry.find(&entry.namespace, "title").map(Element::content);
    let own = entry.find(OUTLINE_NAMESPACE, "outline").filter(|_| !shown.version.deleted);
    let title = title.filter(|_| own.is_some()).unwrap_or(neutral.title);
    if shown.version.deleted {
        put("text", &title);
        return (Place::default(), with_id(said, shown.published_id));
    }
    let Some(own) = own else {
        let text = if title.trim().is_empty() { neutral.link.clone() } else { Some(title) };
        put("text", text.as_deref().unwrap_or_default());
        if let Some(link) = &neutral.link {
            put("type", "link");
            put("url", link);
        }
        if let Some(published) = neutral.published {
            put("created", &published.rfc822());
        }
        if !neutral.categories.is_empty() {
            put("category", &neutral.categories.join(",").replace('/', "\u{2044}"));
        }
        return (Place::default(), with_id(said, shown.published_id));
    };
    put("text", &title);
    let address = address(&own.attributes);
    let site = neutral.link.filter(|link| Some(link.as_str()) != address);
    let is_said = own.attributes.iter().any(|a| a.name.eq_ignore_ascii_case("htmlUrl"));
    if let Some(site) = site.filter(|_| !is_said) {
        put("htmlUrl", &site);
    }
    let is_text = |a: &&Attribute| !a.namespace.is_empty() || a.name != "text";
    said.attributes.extend(own.attributes.iter().filter(is_text).cloned());
    said.other = own.elements().cloned().collect();
    let parent = entry.find(OUTLINE_NAMESPACE, "parent").and_then(|parent| parent.attribute("ref"));
    let source = entry.find(&entry.namespace, "source");
    let list = source.and_then(|source| source.find(&entry.namespace, "id")).map(Element::content);
    (Place { list, parent: parent.map(str::to_owned) }, with_id(said, shown.published_id))
}

/// The address that an outline is known by.
fn address(attributes: &[Attribute]) -> Option<&str> {
    let names = ["xmlUrl", "url"];
    let find = |name: &&str| attributes.iter().find(|a| a.name.eq_ignore_ascii_case(name));
    names.iter().find_map(find).map(|attribute| attribute.value.trim())
}

/// With the id that its entry has in feeds, where nothing else tells it. A version that lost has none of
/// its own.
fn with_id(mut said: Said, published: &str) -> Said {
    if !published.is_empty() && address(&said.attributes) != Some(published) {
        said.attributes.push(Attribute {
            prefix: OUTLINE_PREFIX.to_owned(),
            namespace: OUTLINE_NAMESPACE.to_owned(),
            name: "id".to_owned(),
            value: published.to_owned(),
        });
    }
    said
}

/// Adds the start tag of an outline and all in it but other outlines.
fn push(out: &mut String, page: &Page<'_>, outline: &Outline<'_>) {
    push_said(out, &outline.data.data, None);
    sx091::sync_element(out, SX, None, outline, &mut |out, kept| {
        out.push('>');
        let lost = kept.data;
        let item =
            to_091(Shared { winner: borrowed(lost), conflicts: Vec::new() }, |lost| lost.data);
        let shown = Shown::alone(lost);
        let (place, said) = said(page, &shown);
        push_said(out, &said, place.parent.as_deref());
        sx091::sync_element(out, SX, None, &item, &mut |_, _| {});
        out.push_str("</outline>");
    });
    for child in &outline.data.data.other {
        tree::write(out, child, &mut scope());
    }
}

/// What is bound at the root.
fn scope() -> Vec<(String, String)> {
    vec![
        (SX.to_owned(), sx091::NAMESPACE.to_owned()),
        (OUTLINE_PREFIX.to_owned(), OUTLINE_NAMESPACE.to_owned()),
    ]
}

/// Adds the start tag. `parent`: what a version that lost stood in.
fn push_said(out: &mut String, said: &Said, parent: Option<&str>) {
    out.push_str("<outline");
    let mut bound = scope();
    let mut names = HashSet::new();
    for attribute in &said.attributes {
        let Attribute { prefix, namespace, name, value } = attribute;
        if !names.insert((namespace, name)) {
            continue;
        }
        if namespace.is_empty() {
            push_attribute(out, name, value);
            continue;
        }
        let binding = (prefix.clone(), namespace.clone());
        if prefix != "xml" && !bound.contains(&binding) {
            // A prefix means one thing in a tag.
            if prefix.is_empty() || bound.iter().any(|(known, _)| known == prefix) {
                continue;
            }
            push_attribute(out, &format!("xmlns:{prefix}"), namespace);
            bound.push(binding);
        }
        push_attribute(out, &format!("{prefix}:{name}"), value);
    }
    if let Some(parent) = parent {
        push_attribute(out, &format!("{OUTLINE_PREFIX}:parent"), parent);
    }
    out.push('>');
}
