//! Items as they came, each with its own id, written into the document of somebody else: what is
//! merged, and what is kept of a feed.

use super::base::Bases;
use super::collection::{CollectionItems, EnclosingFeed, ShownVersion};
use super::convert::{self, Target, write_entry};
use super::entry::Entries;
use super::head::Surroundings;
use super::scope::{Extensions, Prefixes, Scope, borrow};
use super::{Addresses, Dialect, json};
use serde_json::Value;
use std::borrow::Cow;
use tidegate_core::model::{
    Context, Family, Format, Markup, Shared, Skeleton, SyncExtras, Time, Version,
};
use tidegate_core::xml::tree;

/// Items in a document, each whole and with its own id, tombstones too.
#[derive(Debug)]
pub struct KeptItems<'a> {
    target: Target<'a>,
    context: &'a Context,
    prefixes: Prefixes,
}

/// A shared item as it came.
#[derive(Debug)]
pub struct KeptItem {
    pub shared: Shared<Markup>,
    /// What its `sx:sync` says beyond SSE.
    pub extras: Option<SyncExtras>,
    /// Whether it bears a conflict by SSE 0.91, whose details may be lost.
    pub is_contested: bool,
}

impl KeptItem {
    fn shown(&self) -> ShownVersion<'_> {
        ShownVersion {
            published_id: None,
            conflicts: &self.shared.conflicts,
            is_contested: self.is_contested,
            extras: self.extras.as_ref(),
            ..ShownVersion::alone(&self.shared.winner)
        }
    }
}

impl<'a> KeptItems<'a> {
    /// Items where `context` is in scope, in a document of a family whose own elements are in
    /// `namespace`.
    pub fn new(
        (family, namespace): (Family, &'a str),
        context: &'a Context,
        dialect: Dialect,
    ) -> Self {
        let prefixes = Prefixes::choose(context, family, dialect, Extensions::default());
        Self { target: Target { family, namespace }, context, prefixes }
    }

    /// Adds an item to a feed.
    pub fn push(&self, out: &mut String, item: &KeptItem) {
        self.entries().push_version(out, item.shown(), &self.scope());
    }

    /// Adds an item without sync markup, which is known by `id`.
    pub fn push_plain(&self, out: &mut String, markup: &Markup, id: &str, date: Option<Time>) {
        self.entries().push_plain(out, markup, (id, date), &self.scope());
    }

    /// Adds an item to a collection as plain XML.
    pub fn push_collected(&self, out: &mut String, skeleton: &Skeleton, item: &KeptItem) {
        let sharing = (self.prefixes.sharing.as_str(), Some(self.prefixes.sharing_namespace));
        let base = self.context.base.as_deref().unwrap_or_default();
        let (around, dialect) = (EnclosingFeed::new(skeleton, ""), self.prefixes.dialect);
        let lang = self.context.lang.as_deref();
        let scope = self.context.namespaces.clone();
        let namespace = self.target.namespace;
        CollectionItems { around, dialect, base, lang, scope, sharing, namespace }
            .push(out, &item.shown());
    }

    fn entries(&self) -> Entries<'_> {
        Entries {
            target: self.target,
            prefixes: &self.prefixes,
            around: EnclosingFeed { title: "", bases: Bases { document: "", channel: None } },
            language: None,
            absolute: false,
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            namespaces: borrow(&self.context.namespaces).collect(),
            base: self.context.base.as_deref().map(Cow::Borrowed),
            lang: self.context.lang.as_deref(),
        }
    }
}

/// What a version says as an item of a collection as JSON.
pub fn members(skeleton: &Skeleton, version: &Version<Markup>) -> Value {
    let shown = ShownVersion { published_id: None, ..ShownVersion::alone(version) };
    json::item(EnclosingFeed::new(skeleton, ""), &shown)
}

/// A skeleton of a collection, which came from `document`, as one of Atom; another as it is.
pub fn in_feed(skeleton: Skeleton, document: &str) -> Skeleton {
    if skeleton.format != Format::Collection {
        return skeleton;
    }
    let addresses = Addresses { upstream: document.to_owned(), ..Addresses::default() };
    let mut feed = convert::skeleton(&skeleton, &addresses, Family::Atom, false).into_owned();
    // As it will read when it is read again.
    feed.text = feed.text.replacen("utf-8", "UTF-8", 1);
    feed
}

/// A skeleton that stands by itself around items, each of which is to begin a line. Its references
/// lead where they led in `document`.
pub fn write_around(
    skeleton: &Skeleton,
    document: &str,
    write_items: impl FnOnce(&mut String),
) -> String {
    let Surroundings { before: mut out, after } = Surroundings::alone(skeleton, document);
    out.truncate(out.trim_end().len());
    write_items(&mut out);
    out.push('\n');
    out.push_str(after.trim_start());
    out
}

/// An item of RSS with its own elements in the namespace of another document's; `None` where they
/// are.
pub(super) fn move_to_namespace(markup: &Markup, target: &Target<'_>) -> Option<Markup> {
    let namespace = markup.namespace();
    if target.family != Family::Rss || namespace == target.namespace {
        return None;
    }
    let mut root = tree::read(&markup.xml, &markup.context)?;
    tree::move_namespace(&mut root, &namespace, target.namespace);
    Some(write_entry(&root, target, &markup.card, &markup.context))
}
