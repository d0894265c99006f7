//! What a version of an item says: its markup without the sync markup, able to stand elsewhere.

use super::values::{self, Values};
use super::{Id, StrictContent, Tree};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use tidegate_core::model::{Family, SyncExtras};
use tidegate_core::sync::Canonical;
use tidegate_core::xml::ns::is_rss;
use tidegate_core::xml::split_name;

/// An item's own markup, cut out of its document, and what it needs to stand elsewhere.
///
/// Two payloads are equal where a reader would see the same: the bytes may differ in prefixes, in
/// quotes, in the order of attributes, in white space between elements and in the namespace that RSS is
/// put in.
#[derive(Debug, Clone)]
pub struct Payload {
    /// The family that its markup belongs to.
    pub family: Family,
    /// The namespace of its element: Atom's, or the one that its RSS is in, as a rule none.
    pub namespace: String,
    /// The element from its `<` to its last `>`, without its `sx:sync`; never an empty-element tag.
    pub xml: String,
    /// Directly behind the name of the element, where attributes can be added.
    pub attributes: usize,
    /// Where its `sx:sync` stood.
    pub sync: usize,
    /// Bindings that it uses and does not make itself, as (prefix, URI); the URI `""` is no
    /// namespace.
    pub needs: Vec<(String, String)>,
    /// Bindings that its element makes itself.
    pub declares: Vec<(String, String)>,
    /// The `xml:base` in scope around it.
    pub base: Option<String>,
    /// The `xml:lang` in scope around it.
    pub lang: Option<String>,
    /// Whether its element has an `xml:lang` of its own.
    pub has_lang: bool,
    /// Whether its element has an `xml:base` of its own.
    pub has_base: bool,
    /// The values to convert it by.
    pub values: Values,
    /// What its `sx:sync` says beyond SSE (section 2.1.8), where it says anything.
    pub extras: Option<Arc<SyncExtras>>,
    canonical: String,
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for Payload {}

impl Canonical for Payload {
    fn canonical(&self) -> &[u8] {
        self.canonical.as_bytes()
    }
}

impl Payload {
    /// The payload of the element `item`, whose `sx:sync` is the element `sync`, where it has one.
    pub(super) fn cut(tree: &Tree<'_>, family: Family, item: Id, sync: Option<Id>) -> Option<Self> {
        let element = tree.element(item)?;
        let span = element.span.clone();
        let (xml, sync_at) = match (sync, &element.inner) {
            (Some(sync), _) => {
                let sync_span = tree.element(sync)?.span.clone();
                let before = tree.slice(span.start..sync_span.start);
                (format!("{before}{}", tree.slice(sync_span.end..span.end)), before.len())
            }
            (None, Some(inner)) => (tree.slice(span.clone()).to_owned(), inner.start - span.start),
            (None, None) => {
                let tag = tree.slice(span).strip_suffix("/>")?;
                (format!("{tag}></{}>", element.name), tag.len() + 1)
            }
        };
        let around = element.parent;
        let inherit = |name: &str| {
            let value = around.and_then(|id| tree.inherited(id, |e| e.attribute(name)));
            value.filter(|_| element.attribute(name).is_none()).map(str::to_owned)
        };
        Some(Self {
            family,
            namespace: tree.name(item).0.to_owned(),
            attributes: 1 + element.name.len(),
            sync: sync_at,
            needs: needs(tree, item, sync),
            declares: element
                .declarations
                .iter()
                .map(|declaration| (declaration.name.to_owned(), declaration.value.to_string()))
                .collect(),
            base: inherit("xml:base"),
            lang: inherit("xml:lang"),
            has_lang: element.attribute("xml:lang").is_some(),
            has_base: element.attribute("xml:base").is_some(),
            values: values::read(tree, family, item),
            extras: None,
            canonical: canonical(tree, item, sync),
            xml,
        })
    }

    /// What it takes in memory, in bytes, about.
    pub(super) fn weight(&self) -> usize {
        let bindings = self.needs.iter().chain(&self.declares);
        let bindings: usize = bindings.map(|(prefix, uri)| prefix.len() + uri.len()).sum();
        let around = [&self.base, &self.lang].into_iter().flatten().map(String::len);
        let own = self.xml.len() + self.canonical.len() + self.values.weight();
        own + bindings + around.sum::<usize>()
    }

    /// Its parts around the place of `sx:sync`, attributes to be added in front of the first:
    /// the tag's beginning, the rest before the place, what comes after it.
    pub fn parts(&self) -> (&str, &str, &str) {
        let part = |range: Range<usize>| self.xml.get(range).unwrap_or_default();
        (
            part(0..self.attributes),
            part(self.attributes..self.sync),
            part(self.sync..self.xml.len()),
        )
    }
}

/// The bindings that an element and what is in it use and do not make themselves.
pub(in crate::parse) fn needs(
    tree: &Tree<'_>,
    item: Id,
    without: Option<Id>,
) -> Vec<(String, String)> {
    let mut needs: Vec<(String, String)> = Vec::new();
    // Elements to visit, each with the prefixes declared between it and the item.
    let mut open = vec![item];
    while let Some(id) = open.pop() {
        let Some(element) = tree.element(id) else { continue };
        for prefix in element.prefixes() {
            if prefix == "xml" || needs.iter().any(|(known, _)| known == prefix) {
                continue;
            }
            if !made_within(tree, item, id, prefix) {
                let uri = tree.binding(id, prefix).unwrap_or_default();
                needs.push((prefix.to_owned(), uri.to_owned()));
            }
        }
        open.extend(
            tree.children(id).map(|(child, _)| child).filter(|child| Some(*child) != without),
        );
    }
    needs.sort();
    needs
}

/// Whether `prefix` is declared by `id` or an element around it, up to `item`.
fn made_within(tree: &Tree<'_>, item: Id, id: Id, prefix: &str) -> bool {
    let mut next = Some(id);
    while let Some(id) = next {
        let Some(element) = tree.element(id) else { return false };
        if element.declaration(prefix).is_some() {
            return true;
        }
        next = element.parent.filter(|_| id != item);
    }
    false
}

/// The element as names with namespaces, sorted attributes and character data: no prefixes, no
/// comments, no white space between elements.
fn canonical(tree: &Tree<'_>, item: Id, sync: Option<Id>) -> String {
    enum TreeStep<'t> {
        Open(Id),
        Text(&'t str),
        Close,
    }
    // An item of RSS says the same in whatever namespace its own elements are.
    let own = tree.name(item).0;
    let print = |namespace: &str| match namespace {
        namespace if namespace == own && is_rss(own) => print(""),
        namespace => print(namespace),
    };
    let mut out = String::new();
    let mut steps = vec![TreeStep::Open(item)];
    while let Some(step) = steps.pop() {
        match step {
            TreeStep::Close => out.push_str("</>"),
            TreeStep::Text(text) => {
                let _ = write!(out, "{:?}", text);
            }
            TreeStep::Open(id) => {
                let (namespace, local) = tree.name(id);
                let _ = write!(out, "<{{{:x}}}{local}", print(namespace));
                for (name, value) in attributes(tree, id) {
                    let _ = write!(out, " {name}={value:?}");
                }
                out.push('>');
                steps.push(TreeStep::Close);
                let before = steps.len();
                for content in tree.contents(id) {
                    match content {
                        StrictContent::Element(child) if Some(*child) == sync => {}
                        StrictContent::Element(child) => steps.push(TreeStep::Open(*child)),
                        StrictContent::Text(text) if text.trim().is_empty() => {}
                        StrictContent::Text(text) => steps.push(TreeStep::Text(text)),
                    }
                }
                if let Some(inside) = steps.get_mut(before..) {
                    inside.reverse();
                }
            }
        }
    }
    out
}

/// What stands for a namespace where names are compared: however long it is, it takes a few bytes.
fn print(namespace: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(namespace.as_bytes())
}

fn attributes<'t>(tree: &'t Tree<'_>, id: Id) -> Vec<(String, &'t str)> {
    let mut attributes: Vec<(String, &str)> = Vec::new();
    for attribute in tree.element(id).map_or(&[][..], |element| &element.attributes) {
        let (prefix, local) = split_name(attribute.name);
        let namespace = match prefix {
            "" => "",
            prefix => tree.binding(id, prefix).unwrap_or_default(),
        };
        attributes.push((format!("{{{:x}}}{local}", print(namespace)), &attribute.value));
    }
    attributes.sort();
    attributes
}
