//! The merged feed: LOCAL's text with changed items replaced and new ones added.

use super::convert;
use super::item::{ReplicaItem, identity};
use super::merge::MergeOutcome;
use crate::parse::sse::{KeptConflict, Payload, SseDialect, SseFeed};
use tidegate_core::model::{Family, Stamp, SyncExtras, Time, Version};
use tidegate_core::sync::{Conflict091, Item091};
use tidegate_core::sync_markup::{Dialect, sx, sx091};
use tidegate_core::xml;
use tidegate_core::xml::ns::SSE_091;

/// The prefix of sync markup where LOCAL has none.
const PREFIX: &str = "sx";

/// Bindings, base and language where markup is put.
#[derive(Debug, Clone)]
pub(super) struct SpliceScope {
    bindings: Vec<(String, String)>,
    pub(super) base: Option<String>,
    lang: Option<String>,
}

/// What the merged feed is written in.
pub(super) struct SpliceTarget<'a> {
    pub(super) family: Family,
    /// Whether it is a collection as plain XML.
    pub(super) is_collection: bool,
    pub(super) rss: &'a str,
    pub(super) namespace: &'a str,
}

/// LOCAL's document with what the merge changed. The dialect is LOCAL's, else INCOMING's.
pub(super) fn merged(
    local: &SseFeed<'_>,
    incoming: &SseFeed<'_>,
    mut outcome: MergeOutcome,
) -> String {
    let scope = SpliceScope::of(local);
    let namespace = match local.dialect.or(incoming.dialect) {
        Some(SseDialect::FeedSync) => sx::namespace(Dialect::FeedSync),
        Some(SseDialect::Sse091) => SSE_091,
        Some(SseDialect::Sse) | None => sx::namespace(Dialect::Sse),
    };
    let is_collection = local.tree.name(0).1 == "collection";
    let target = SpliceTarget { family: local.family, is_collection, rss: &local.rss, namespace };
    let text = local.tree.text();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for item in &local.items {
        let mut changed = outcome.changed.remove(&item.element);
        // One document never mixes dialects (READINGS 1, row 1).
        if changed.is_none() && item.dialect.is_some() && item.dialect != local.dialect {
            changed = ReplicaItem::shared(item).map(|item| item.into_dialect(local.dialect));
        }
        if let Some(changed) = changed {
            out.push_str(local.tree.slice(done..item.span.start));
            push_item(&mut out, &changed, &target, &scope);
            done = item.span.end;
        }
    }
    let end = local.items.last().map_or_else(
        || local.tree.element(local.container).and_then(|e| e.inner.as_ref()).map(|i| i.end),
        |item| Some(item.span.end),
    );
    let end = end.unwrap_or(text.len());
    out.push_str(local.tree.slice(done..end));
    let indent = indent(local);
    for item in &outcome.new {
        out.push_str(indent);
        push_item(&mut out, item, &target, &scope);
    }
    out.push_str(local.tree.slice(end..text.len()));
    out
}

/// The white space in front of the last item, to be repeated in front of new ones.
fn indent<'a>(feed: &'a SseFeed<'_>) -> &'a str {
    let before = feed.items.last().map_or("", |item| feed.tree.slice(0..item.span.start));
    let kept = before.trim_end().len();
    before.get(kept..).unwrap_or_default()
}

pub(super) fn push_item(
    out: &mut String,
    item: &ReplicaItem,
    target: &SpliceTarget<'_>,
    scope: &SpliceScope,
) {
    match item {
        ReplicaItem::Sse(item) => {
            let extras = item.winner.data.extras.as_deref();
            push_version(out, (&item.winner, extras), &item.conflicts, target, scope);
        }
        ReplicaItem::Sse091(item) => push_091(out, item, target, scope),
        ReplicaItem::Plain(payload) => {
            let id = identity(payload);
            push_payload(out, payload, &id, payload.values.date, target, scope, &mut |_, _| {});
        }
    }
}

fn push_version(
    out: &mut String,
    (version, extras): (&Version<Payload>, Option<&SyncExtras>),
    conflicts: &[Version<Payload>],
    target: &SpliceTarget<'_>,
    scope: &SpliceScope,
) {
    let made = version.history.iter().find_map(|update| update.stamp.when());
    push_payload(
        out,
        &version.data,
        version.id.as_str(),
        made,
        target,
        scope,
        &mut |out, place| {
            let mut nested = |out: &mut String| {
                for conflict in conflicts {
                    push_version(out, (conflict, None), &[], target, place.scope);
                }
            };
            let nested: Option<&mut dyn FnMut(&mut String)> =
                if conflicts.is_empty() { None } else { Some(&mut nested) };
            sx::sync_element(out, place.prefix, place.declare, version, extras, nested);
        },
    );
}

fn push_091(
    out: &mut String,
    item: &Item091<Payload, KeptConflict>,
    target: &SpliceTarget<'_>,
    scope: &SpliceScope,
) {
    let made = std::iter::once(&item.last).chain(&item.updates).find_map(Stamp::when);
    push_payload(out, &item.data, item.id.as_str(), made, target, scope, &mut |out, place| {
        let mut kept = |out: &mut String, conflict: &Conflict091<KeptConflict>| match &conflict.data
        {
            KeptConflict::Markup { xml, needs, .. } => {
                let mut inside = place.scope.clone();
                push_bindings(out, needs, &mut inside);
                out.push('>');
                out.push_str(xml);
            }
            KeptConflict::Item(item) => {
                out.push('>');
                push_091(out, item, target, place.scope);
            }
        };
        sx091::sync_element(out, place.prefix, place.declare, item, &mut kept);
    });
}

/// Where an `sx:sync` is written: with which prefix, whether that must be declared, and what is in
/// scope inside.
struct SyncPlace<'a> {
    prefix: &'a str,
    declare: Option<&'a str>,
    scope: &'a SpliceScope,
}

/// Adds an item's markup with the sync markup in its place.
fn push_payload(
    out: &mut String,
    payload: &Payload,
    id: &str,
    made: Option<Time>,
    target: &SpliceTarget<'_>,
    scope: &SpliceScope,
    sync: &mut dyn FnMut(&mut String, SyncPlace<'_>),
) {
    let converted;
    let payload = match convert::to(target, payload, id, made) {
        Some(written) => {
            converted = written;
            &converted
        }
        None => payload,
    };
    let mut inside = scope.clone();
    let (name, rest, after) = payload.parts();
    out.push_str(name);
    push_bindings(out, &payload.needs, &mut inside);
    if payload.base.is_some() && payload.base != scope.base {
        let base = payload.base.as_deref().unwrap_or_default();
        xml::push_attribute(out, "xml:base", base);
        inside.base = Some(base.to_owned());
    }
    if payload.lang != scope.lang && !payload.has_lang {
        let lang = payload.lang.as_deref().unwrap_or_default();
        xml::push_attribute(out, "xml:lang", lang);
        inside.lang = Some(lang.to_owned());
    }
    for (prefix, uri) in &payload.declares {
        inside.bind(prefix, uri);
    }
    out.push_str(rest);
    let (prefix, declare) = match inside.prefix_of(target.namespace) {
        Some(prefix) => (prefix.to_owned(), None),
        None => (PREFIX.to_owned(), Some(target.namespace)),
    };
    inside.bind(&prefix, target.namespace);
    sync(out, SyncPlace { prefix: &prefix, declare, scope: &inside });
    out.push_str(after);
}

/// Declares the bindings that are needed and not in scope, and takes them into it.
fn push_bindings(out: &mut String, needs: &[(String, String)], scope: &mut SpliceScope) {
    for (prefix, uri) in needs {
        if scope.binding(prefix).unwrap_or_default() != uri {
            xml::push_namespace(out, prefix, uri);
            scope.bind(prefix, uri);
        }
    }
}

impl SpliceScope {
    /// What is in scope where the items of a feed stand.
    pub(super) fn of(feed: &SseFeed<'_>) -> Self {
        let tree = &feed.tree;
        let mut scope = Self { bindings: Vec::new(), base: None, lang: None };
        for id in [0, feed.container] {
            for declaration in tree.element(id).map_or(&[][..], |e| &e.declarations) {
                scope.bind(declaration.name, &declaration.value);
            }
        }
        let inherit = |name| tree.inherited(feed.container, |e| e.attribute(name));
        scope.base = inherit("xml:base").map(str::to_owned);
        scope.lang = inherit("xml:lang").map(str::to_owned);
        scope
    }

    fn binding(&self, prefix: &str) -> Option<&str> {
        self.bindings.iter().find(|(bound, _)| bound == prefix).map(|(_, uri)| uri.as_str())
    }

    fn bind(&mut self, prefix: &str, uri: &str) {
        self.bindings.retain(|(bound, _)| bound != prefix);
        self.bindings.push((prefix.to_owned(), uri.to_owned()));
    }

    /// A prefix bound to a namespace; the default namespace is none, for the markup around it
    /// needs that.
    fn prefix_of(&self, namespace: &str) -> Option<&str> {
        let bound =
            self.bindings.iter().find(|(prefix, uri)| uri == namespace && !prefix.is_empty());
        bound.map(|(prefix, _)| prefix.as_str())
    }
}
