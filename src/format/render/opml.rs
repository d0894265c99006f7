//! Lists as OPML 2.0 with SSE 0.91: the items as outlines, those of a list in each other as they
//! stand there (SSE 0.91 sections 3.2 and 4.4.2).
//!
//! What an outline stands in is a part of what it says; its position is that in the order of the
//! page. The items of other feeds are links (OPML 2.0, `type="link"`), without their texts.

use super::collection::ShownVersion;
use super::convert::{self, Reading};
use super::entry::is_contested;
use super::head::push_sharing;
use super::{Addresses, Container, Dialect, HistoryPlace, Page, PageWriter, ViewKind};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{
    FeedState, Format, Item, Markup, OUTLINE_DEPTH, OUTLINE_ROOT, Shared, Skeleton, SyncId, Version,
};
use tidegate_core::sync::{By091, OutlineItem091, Outlines, PlacedOutline, break_cycles, in_order};
use tidegate_core::sync_markup::sx091;
use tidegate_core::xml::ns::{OUTLINE, OUTLINE_PREFIX, SSE_091};
use tidegate_core::xml::tree::{self, Attribute, Element};
use tidegate_core::xml::{self, push_attribute};

/// The prefix of sync markup.
const SX: &str = "sx";

/// Renders a page, and the items that follow those that it has: outlines stand in each other, so
/// that all are taken before any is written. There is one dialect of sync markup for lists.
pub fn write<E>(to: PageWriter<'_, '_, E>) -> Result<(), E> {
    let PageWriter { page, rest, out: to } = to;
    let page = &Page { dialect: Dialect::Sse091, ..*page };
    let rest: Vec<Vec<Item>> = rest.collect::<Result<_, E>>()?;
    let out = to.text();
    out.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<opml version=\"2.0\"");
    push_attribute(out, &format!("xmlns:{SX}"), SSE_091);
    push_attribute(out, &format!("xmlns:{OUTLINE_PREFIX}"), OUTLINE);
    out.push_str(">\n<head>\n");
    for (name, text) in head(page) {
        xml::push_element(out, &name, &text);
        out.push('\n');
    }
    push_sharing(out, page, SX);
    out.push_str("\n</head>\n<body>");
    let mut outlines = outlines(page, page.items.iter().chain(rest.iter().flatten()));
    break_cycles(&mut outlines);
    let mut open = 0;
    for (depth, outline) in in_order(&outlines) {
        // What would stand deeper than anybody reads stands beside.
        let depth = depth.min(OUTLINE_DEPTH - 1);
        close(out, &mut open, depth);
        out.push('\n');
        push(out, page, outline);
        open = depth + 1;
    }
    close(out, &mut open, 0);
    out.push_str("\n</body>\n</opml>\n");
    to.flush()
}

/// The outlines of a list that live, as a list of nothing else: to be read here, not to be
/// published.
pub fn living_outlines(state: &FeedState, skeleton: &Skeleton, items: &[Item]) -> String {
    super::document(&Page {
        kind: ViewKind::Reader,
        container: Container::Opml,
        dialect: Dialect::Sse091,
        addresses: &Addresses::default(),
        state,
        skeleton,
        items,
        deleted: &[],
        history: &HistoryPlace::default(),
        since: None,
        until: None,
        expires: None,
        window: None,
    })
}

fn close(out: &mut String, open: &mut usize, depth: usize) {
    while *open > depth {
        *open -= 1;
        out.push_str("</outline>");
    }
}

/// The elements of the head (OPML 2.0, "What is a `<head>`?").
fn head(page: &Page<'_>) -> Vec<(String, String)> {
    let mut head = vec![
        ("title".to_owned(), page.skeleton.title.clone()),
        ("dateModified".to_owned(), page.state.updated_at.rfc822()),
    ];
    let own = if page.skeleton.format == Format::Opml {
        let feed = convert::read_skeleton(page.skeleton);
        let own = feed.find(OUTLINE, "head").map(|own| own.attributes.clone());
        own.unwrap_or_default().into_iter().map(|a| (a.name, a.value)).collect()
    } else {
        let owner = convert::authors(page.skeleton).into_iter().next();
        owner.map(|name| ("ownerName".to_owned(), name)).into_iter().collect::<Vec<_>>()
    };
    head.extend(own);
    head
}

/// The outlines of a page by their ids, of these items those that it shows.
fn outlines<'a>(
    page: &Page<'a>,
    items: impl Iterator<Item = &'a Item>,
) -> Outlines<ListedOutline<'a>> {
    let shown = items.filter(|item| page.shows(item));
    let shown = shown.map(|item| (item, said(page, &ShownVersion::of(page, item))));
    let items: Vec<(&Item, (ListPosition, Element))> = shown.collect();
    // Two lists may call their folders alike: one of the same list is meant, the nearest in front,
    // else the first behind.
    let mut behind: HashMap<(Option<&str>, &str), &SyncId> = HashMap::new();
    for (item, (place, _)) in items.iter().rev() {
        behind.extend(ids(item).map(|(name, id)| ((place.list.as_deref(), name), id)));
    }
    let mut before: HashMap<(Option<&str>, &str), &SyncId> = HashMap::new();
    let mut outlines = Outlines::new();
    for ((item, (place, data)), position) in items.iter().zip(0..) {
        let list = place.list.as_deref();
        let parent = place.parent.as_deref().filter(|id| *id != OUTLINE_ROOT).map(|id| (list, id));
        let found = parent.and_then(|key| before.get(&key).or_else(|| behind.get(&key)));
        let parent = found.map(|id| (*id).clone());
        before.extend(ids(item).map(|(name, id)| ((list, name), id)));
        let data = ListedOutline { said: data.clone(), lost: page.conflicts(item) };
        let winner = item.shared.winner.with(PlacedOutline { parent, position, data });
        let (id, conflict) = (winner.id.clone(), is_contested(item));
        outlines.insert(id, By091 { item: Shared::new(winner), conflict });
    }
    outlines
}

/// An outline of a page.
struct ListedOutline<'a> {
    said: Element,
    /// The versions that lost, which are made outlines only as they are written.
    lost: &'a [Version<Markup>],
}

/// What a version that lost says, with what it stood in.
fn lost_outline(page: &Page<'_>, lost: &Version<Markup>) -> Element {
    let (place, mut data) = said(page, &ShownVersion::alone(lost));
    let parent = place.parent.map(|id| Attribute::of(OUTLINE_PREFIX, OUTLINE, "parent", &id));
    data.attributes.extend(parent);
    data
}

/// The ids that an entry is known by, those of the outlines in it name one of them; a tombstone has
/// nothing in it.
fn ids(item: &Item) -> impl Iterator<Item = (&str, &SyncId)> {
    let winner = &item.shared.winner;
    let own = || winner.data.xml.get(winner.data.slots.id.clone()?).map(str::trim);
    let names = own().into_iter().chain([item.published_id.as_str()]);
    names.filter(|_| !winner.deleted).map(|name| (name, &winner.id))
}

/// Where an outline stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ListPosition {
    /// The list that it was taken over from, in an aggregate.
    list: Option<String>,
    /// The id of the entry that it stands in.
    parent: Option<String>,
}

/// What an item says as an outline, and where it stands.
fn said(page: &Page<'_>, shown: &ShownVersion<'_>) -> (ListPosition, Element) {
    let data = &shown.version.data;
    let entry = (!shown.version.deleted && data.xml.contains("outline"))
        .then(|| convert::read_words(data))
        .flatten();
    let own = entry.as_ref().and_then(|entry| Some((entry, entry.find(OUTLINE, "outline")?)));
    let (place, said) = match own {
        Some((entry, own)) => {
            (ListPosition::of(entry), outline(entry, own, data.card.link.as_deref()))
        }
        None if shown.version.deleted => {
            let title = &shown.markup_in(page.around()).markup.card.title;
            (ListPosition::default(), outline_of(title))
        }
        None => (ListPosition::default(), link(&shown.markup_in(page.around()).reading())),
    };
    (place, with_id(said, shown.published_id.unwrap_or_default()))
}

impl ListPosition {
    fn of(entry: &Element) -> Self {
        let source = entry.find(&entry.namespace, "source");
        let list = source.and_then(|source| source.find(&entry.namespace, "id"));
        let parent = entry.find(OUTLINE, "parent");
        Self {
            list: list.map(Element::content),
            parent: parent.and_then(|parent| parent.attribute("ref")).map(str::to_owned),
        }
    }
}

fn outline_of(text: &str) -> Element {
    Element::new("", "outline").with("text", text)
}

/// What the entry of an outline says. `link`: where it leads.
fn outline(entry: &Element, own: &Element, link: Option<&str>) -> Element {
    let title = entry.find(&entry.namespace, "title").map(Element::content).unwrap_or_default();
    let mut said = outline_of(&title);
    let has_site = own.attributes.iter().any(|a| a.name.eq_ignore_ascii_case("htmlUrl"));
    if let Some(site) = link.filter(|link| !has_site && Some(*link) != address(&own.attributes)) {
        said.set("htmlUrl", site);
    }
    let is_text = |a: &&Attribute| !a.namespace.is_empty() || a.name != "text";
    said.attributes.extend(own.attributes.iter().filter(is_text).cloned());
    // What only looks like an outline would be read as one that nobody listed.
    own.elements().filter(|other| !has_outlines(other)).for_each(|other| said.push(other.clone()));
    said
}

/// What an item says that is no outline.
fn link(item: &Reading) -> Element {
    let has_title = !item.title.trim().is_empty();
    let text = Some(item.title.as_str()).filter(|_| has_title).or(item.link.as_deref());
    let mut said = outline_of(text.unwrap_or_default());
    if let Some(link) = &item.link {
        said.set("type", "link");
        said.set("url", link);
    }
    if let Some(published) = item.published {
        said.set("created", &published.rfc822());
    }
    if !item.categories.is_empty() {
        // A slash would make a hierarchy of a name (OPML 2.0, `category`), and a comma two of one.
        let name = |category: &convert::Category| {
            category.shown().replace('/', "\u{2044}").replace(',', "\u{201A}")
        };
        said.set("category", &item.categories.iter().map(name).collect::<Vec<_>>().join(","));
    }
    said
}

/// Whether an element would be read as an outline or as sync markup, or has any in it.
fn has_outlines(element: &Element) -> bool {
    ["outline", "sync"].iter().any(|name| element.name.eq_ignore_ascii_case(name))
        || element.elements().any(has_outlines)
}

/// The address that an outline is known by.
fn address(attributes: &[Attribute]) -> Option<&str> {
    let names = ["xmlUrl", "url"];
    let find = |name: &&str| attributes.iter().find(|a| a.name.eq_ignore_ascii_case(name));
    names.iter().find_map(find).map(|attribute| attribute.value.trim())
}

/// With the id that its entry has in feeds, where nothing else tells it.
fn with_id(mut said: Element, published: &str) -> Element {
    if !published.is_empty() && address(&said.attributes) != Some(published) {
        said.attributes.push(Attribute::of(OUTLINE_PREFIX, OUTLINE, "id", published));
    }
    said
}

/// Adds the start tag of an outline and all in it but other outlines. What it says is its element, with
/// what that has beside outlines and sync markup.
fn push(out: &mut String, page: &Page<'_>, outline: &OutlineItem091<ListedOutline<'_>>) {
    let ListedOutline { said, lost } = &outline.outline().data;
    push_said(out, said);
    let shown = (&outline.item.winner, outline.conflict);
    sx091::sync_element(out, SX, None, shown, lost, &mut |out, lost| {
        out.push('>');
        push_said(out, &lost_outline(page, lost));
        sx091::sync_element::<_, ()>(out, SX, None, (lost, false), &[], &mut |_, _| {});
        out.push_str("</outline>");
    });
    for child in said.elements() {
        tree::write(out, child, &mut scope());
    }
}

/// What is bound at the root.
fn scope() -> Vec<(String, String)> {
    vec![(SX.to_owned(), SSE_091.to_owned()), (OUTLINE_PREFIX.to_owned(), OUTLINE.to_owned())]
}

/// Adds the start tag.
fn push_said(out: &mut String, said: &Element) {
    out.push_str("<outline");
    let mut bound = scope();
    let mut names: HashSet<(&str, &str)> = HashSet::new();
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
    out.push('>');
}
