//! Collections as plain XML (FeedSync for Collections, section 1.4.0).
//!
//! The specification leaves open what an item says and how: here it has the elements that it has in
//! its feed, in their namespaces. RSS's own are in none, Atom's in that of Atom. One that came as
//! plain XML has what it came with.

use super::base::Bases;
use super::convert::{self, Reading, Target, read_entry};
use super::entry::{is_contested, push_sync};
use super::head::{push_links, push_sharing};
use super::references::Base;
use super::scope::base_of;
use super::{Dialect, Page, PageWriter, tombstone};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write;
use tidegate_core::model::{Family, Item, ItemStatus, Markup, Skeleton, SyncExtras, Version};
use tidegate_core::sync_markup::collection_item::{JSON, NAMESPACE, OF, POX, WORDS, words_hash};
use tidegate_core::sync_markup::sx;
use tidegate_core::xml::ns::{ATOM, HISTORY};
use tidegate_core::xml::tree::{self, Element, Node};
use tidegate_core::xml::{self, push_attribute};

/// The prefixes of sync markup and of what is Atom's.
const SX: &str = "sx";
const ATOM_PREFIX: &str = "atom";

/// Renders a page, and the items that follow those that it has.
pub fn write<E>(mut to: PageWriter<'_, '_, E>) -> Result<(), E> {
    let page = to.page;
    let namespace = sx::namespace(page.dialect);
    let base = base_of(&page.skeleton.context, page.addresses);
    let lang = page.skeleton.context.lang.as_deref();
    let mut scope: Vec<(String, String)> = Vec::new();
    let out = to.out.text();
    out.push_str("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<collection");
    let mark = page.history.mark();
    let marked = mark.map(|_| ("fh", HISTORY));
    for (prefix, name) in [(SX, namespace), (ATOM_PREFIX, ATOM)].into_iter().chain(marked) {
        push_attribute(out, &format!("xmlns:{prefix}"), name);
        scope.push((prefix.to_owned(), name.to_owned()));
    }
    push_attribute(out, "xml:base", base);
    if let Some(lang) = lang {
        push_attribute(out, "xml:lang", lang);
    }
    out.push_str(">\n");
    xml::push_element(out, "atom:title", &page.skeleton.title);
    xml::push_element(out, "atom:id", &page.addresses.reader);
    xml::push_element(out, "atom:updated", &page.state.updated_at.to_string());
    for author in convert::authors(page.skeleton) {
        out.push_str("<atom:author>");
        xml::push_element(out, "atom:name", &author);
        out.push_str("</atom:author>");
    }
    if let Some(link) = &page.skeleton.link {
        let said = [("rel", Some("alternate")), ("href", Some(link.as_str()))];
        xml::push_empty(out, "atom:link", &said);
    }
    if let Some(mark) = mark {
        let _ = write!(out, "<fh:{mark}/>");
    }
    push_links(out, page, "atom:link");
    push_sharing(out, page, SX);
    out.push('\n');
    let (around, dialect, sharing) = (page.around(), page.dialect, (SX, None));
    let items = CollectionItems { around, dialect, base, lang, scope, sharing, namespace: "" };
    to.write_items(|out, item| {
        items.push(out, &ShownVersion::of(page, item));
        out.push('\n');
    })?;
    to.out.text().push_str("</collection>\n");
    to.out.flush()
}

/// A version to show, and what is shown with it.
#[derive(Clone, Copy)]
pub struct ShownVersion<'a> {
    /// The version.
    pub version: &'a Version<Markup>,
    /// The id that it is published with; `None` where it is shown as it came: with its own id, and
    /// whole where it is deleted.
    pub published_id: Option<&'a str>,
    /// Its conflicts.
    pub conflicts: &'a [Version<Markup>],
    pub is_redacted: bool,
    /// Whether something is in conflict with it, shown or not.
    pub is_contested: bool,
    /// What its `sx:sync` says beyond SSE.
    pub extras: Option<&'a SyncExtras>,
}

impl<'a> ShownVersion<'a> {
    /// An item of a page.
    pub fn of(page: &Page<'a>, item: &'a Item) -> Self {
        Self {
            version: &item.shared.winner,
            published_id: Some(&item.published_id),
            conflicts: page.conflicts(item),
            is_redacted: matches!(item.standing, ItemStatus::Redacted { .. }),
            is_contested: is_contested(item),
            extras: item.extras.as_deref(),
        }
    }

    /// A version that has neither conflicts nor an id of its own.
    pub const fn alone(version: &'a Version<Markup>) -> Self {
        Self {
            version,
            published_id: Some(""),
            conflicts: &[],
            is_redacted: false,
            is_contested: false,
            extras: None,
        }
    }

    /// One of the conflicts. The list is flat (SSE 1.0 section 3.3).
    pub const fn conflict(&self, version: &'a Version<Markup>) -> Self {
        Self { version, conflicts: &[], is_contested: false, extras: None, ..*self }
    }

    /// What it says, in the current format of its own family; a shell where it is deleted.
    pub fn markup_in(&self, around: EnclosingFeed<'_>) -> VersionMarkup<'a> {
        let data = &self.version.data;
        let target = own_target(data);
        let seen = self.version.history.topmost().stamp.when();
        let markup = if self.version.deleted && self.published_id.is_some() {
            Cow::Owned(tombstone::shell(self.version, &target, around.title, self.is_redacted))
        } else {
            convert::markup(data, &target, seen, || around.bases.base(data))
        };
        let base = around.bases.base(&markup);
        VersionMarkup { shown: *self, markup, base }
    }
}

/// The document around items: its title, and where its references lead.
#[derive(Debug, Clone, Copy)]
pub struct EnclosingFeed<'a> {
    pub title: &'a str,
    pub bases: Bases<'a>,
}

impl<'a> EnclosingFeed<'a> {
    /// The document around a skeleton, which came from an address.
    pub fn new(skeleton: &'a Skeleton, document: &'a str) -> Self {
        let bases = Bases { document, channel: skeleton.link.as_deref() };
        Self { title: &skeleton.title, bases }
    }
}

/// What a version says in its document.
pub struct VersionMarkup<'a> {
    shown: ShownVersion<'a>,
    pub markup: Cow<'a, Markup>,
    base: Base,
}

impl VersionMarkup<'_> {
    /// The same in no format.
    pub fn reading(&self) -> Reading {
        Reading::of(&self.markup, &self.base)
    }

    /// The item of a collection that it was made from.
    pub fn collection_item(&self) -> Option<CollectionItem> {
        CollectionItem::from_entry(&self.markup)
    }

    /// The same as an element that stands alone.
    pub fn element(&self) -> Element {
        let ShownVersion { version, published_id, .. } = self.shown;
        if convert::read_entry(&self.markup).is_some() {
            return convert::whole(&self.markup, published_id, &self.base);
        }
        let seen = version.history.topmost().stamp.when();
        let written = convert::write_card(&self.markup, &own_target(&self.markup), seen);
        convert::whole(&written, published_id, &self.base)
    }
}

fn own_target(markup: &Markup) -> Target<'static> {
    let family = markup.format.family();
    Target { family, namespace: if family == Family::Atom { ATOM } else { "" } }
}

/// What all items of a collection have in common.
pub struct CollectionItems<'a> {
    pub around: EnclosingFeed<'a>,
    pub dialect: Dialect,
    /// Base and language around them.
    pub base: &'a str,
    pub lang: Option<&'a str>,
    /// The bindings around them.
    pub scope: Vec<(String, String)>,
    /// The prefix of the sync markup, and its namespace where that is to be declared.
    pub sharing: (&'a str, Option<&'static str>),
    /// The namespace of the collection's own elements.
    pub namespace: &'a str,
}

impl CollectionItems<'_> {
    /// Adds an item.
    pub fn push(&self, out: &mut String, shown: &ShownVersion<'_>) {
        let said = shown.markup_in(self.around);
        let mut element = said.element();
        if let Some(CollectionItem::Pox(nodes)) = said.collection_item() {
            element.children = nodes;
        }
        tree::move_namespace(&mut element, "", self.namespace);
        tree::move_prefix(&mut element, ATOM, ATOM_PREFIX);
        let mut scope = self.scope.clone();
        out.push_str("<item");
        let default = scope.iter().rev().find(|(prefix, _)| prefix.is_empty());
        if default.map_or("", |(_, name)| name) != self.namespace {
            xml::push_namespace(out, "", self.namespace);
            scope.push((String::new(), self.namespace.to_owned()));
        }
        self.push_attributes(out, &element);
        out.push('>');
        let mut nested = |out: &mut String, version: &Version<Markup>| {
            self.push(out, &shown.conflict(version));
        };
        push_sync(out, self.dialect, self.sharing, shown, &mut nested);
        for node in &element.children {
            match node {
                Node::Text(text) => xml::push_text(out, text),
                Node::Element(child) => tree::write(out, child, &mut scope),
            }
        }
        out.push_str("</item>");
    }

    /// Adds base and language where they are not those of the collection.
    fn push_attributes(&self, out: &mut String, element: &Element) {
        if let Some(base) = element.own("base").filter(|base| *base != self.base) {
            push_attribute(out, "xml:base", base);
        }
        if element.own("lang") != self.lang {
            push_attribute(out, "xml:lang", element.own("lang").unwrap_or_default());
        }
    }
}

// The item of a collection that an entry was made from goes with the entry (FeedSync for
// Collections, section 2.1.7).

/// An item in its publisher's terms, without its sync markup.
#[derive(Debug, Clone)]
pub enum CollectionItem {
    /// The members that it has as JSON.
    Json(Map<String, Value>),
    /// What it has as plain XML.
    Pox(Vec<Node>),
    /// Of an item as JSON whose entry was edited since: the members that the entry has no words
    /// for.
    OtherMembers(Map<String, Value>),
}

impl CollectionItem {
    /// The item of an entry; `None` where it has none, or where the entry says all that there is.
    pub fn from_entry(markup: &Markup) -> Option<Self> {
        let declares = |xml: &str| xml.contains(NAMESPACE);
        if !declares(&markup.xml) && !markup.context.namespaces.iter().any(|(_, n)| declares(n)) {
            return None;
        }
        let entry = read_entry(markup)?;
        let kept = entry.elements().find(|child| child.namespace == NAMESPACE)?;
        // The hash is that of an entry of Atom: a feed of RSS says other words.
        let is_as_made = markup.format.family() == Family::Atom
            && kept.attribute(OF) == Some(&words_hash(&entry));
        match (kept.name.as_str(), is_as_made) {
            (POX, true) => Some(Self::Pox(kept.children.clone())),
            (JSON, true) => Some(Self::Json(members(kept)?)),
            (JSON, false) => {
                let words = kept.attribute(WORDS).unwrap_or_default();
                let mut members = members(kept)?;
                members.retain(|name, _| !words.split(' ').any(|word| word == name));
                Some(Self::OtherMembers(members))
            }
            _ => None,
        }
    }
}

fn members(kept: &Element) -> Option<Map<String, Value>> {
    serde_json::from_str(&kept.content()).ok()
}
