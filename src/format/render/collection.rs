//! Collections as plain XML (FeedSync for Collections, section 1.4.0).
//!
//! The specification leaves open what an item says and how: here it has the elements that it has in
//! its feed, in their namespaces. RSS's own are in none, Atom's in that of Atom. One that came in a
//! collection has what it came with.

use super::base::Bases;
use super::convert::{self, Reading, Target};
use super::entry::{is_contested, push_sync};
use super::head::{push_links, push_sharing};
use super::references::Base;
use super::scope::base_of;
use super::{Dialect, Page, PageWriter, tombstone};
use std::borrow::Cow;
use std::fmt::Write;
use tidegate_core::model::{
    Family, Format, Item, ItemStatus, Markup, Skeleton, SyncExtras, Version,
};
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

    /// What stands for it in a feed of this title where it is deleted, and not shown as it came.
    pub fn shell(&self, target: &Target<'_>, title: &str) -> Option<Markup> {
        let is_shell = self.version.deleted && self.published_id.is_some();
        is_shell.then(|| tombstone::shell(self.version, target, title, self.is_redacted))
    }

    /// What it says, in the current format of its own family, or as it came in a collection; a shell where it is
    /// deleted.
    pub fn markup_in(&self, around: EnclosingFeed<'_>) -> VersionMarkup<'a> {
        let data = &self.version.data;
        let target = own_target(data);
        let seen = self.version.history.topmost().stamp.when();
        let markup = match self.shell(&target, around.title) {
            Some(shell) => Cow::Owned(shell),
            None if data.format == Format::Collection => Cow::Borrowed(data),
            None => convert::markup(data, &target, seen, || around.bases.base(data)),
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
