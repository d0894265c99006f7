//! The replica as a file: the newest document's head around every item.

use super::error::PullError;
use super::item::ReplicaItem;
use super::splice::{SpliceScope, SpliceTarget, push_item};
use crate::parse::is_of_the_document;
use crate::parse::sse::{self, BYTES_LIMIT, ITEM_LIMIT, SseDialect, SseError, SseFeed};
use std::ops::Range;
use tidegate_core::sync_markup::{Dialect, sx};
use tidegate_core::xml;
use tidegate_core::xml::ns::{ATOM, HISTORY, SSE_091, TOMBSTONES};
use url::Url;

/// The items of a replica that was written before.
pub(super) fn read(text: &str) -> Result<Vec<ReplicaItem>, SseError> {
    let feed = sse::read(text)?;
    let mut items = Vec::with_capacity(feed.items.len());
    for item in &feed.items {
        let read = match (&item.shared, &item.shared_091) {
            (Some(shared), _) => Some(ReplicaItem::Sse(shared.clone()?)),
            (None, Some(shared)) => Some(ReplicaItem::Sse091(shared.clone()?)),
            (None, None) => feed.plain(item).map(ReplicaItem::Plain),
        };
        items.extend(read);
    }
    Ok(items)
}

/// Writes a replica: `head` is a document's text, read from `url`, whose own items do not count.
///
/// What a publisher tells one reader is not for others (SSE 1.0 section 2.2), and what leads from
/// one document to the next means nothing here: both are left out.
pub(super) fn write(head: &str, url: &Url, items: &[ReplicaItem]) -> Result<String, PullError> {
    if items.len() > ITEM_LIMIT {
        let found = items.len();
        return Err(PullError::TooLarge { what: "items", found, limit: ITEM_LIMIT });
    }
    let markup = |source| PullError::Markup { url: url.to_string(), source };
    let feed = sse::read(head).map_err(markup)?;
    let mut scope = SpliceScope::of(&feed);
    let is_091 = items.iter().any(|item| matches!(item, ReplicaItem::Sse091(_)));
    let namespace = match feed.dialect {
        _ if is_091 => SSE_091,
        Some(SseDialect::FeedSync) => sx::namespace(Dialect::FeedSync),
        _ => sx::namespace(Dialect::Sse),
    };
    let is_collection = feed.tree.name(0).1 == "collection";
    let target = SpliceTarget { family: feed.family, is_collection, rss: &feed.rss, namespace };
    let (mut before, after) = around(&feed);
    if scope.base.is_none() {
        // The file stands elsewhere, and references are to lead where they led.
        if let Some(root) = feed.tree.root() {
            let at = root.span.start + 1 + root.name.len();
            let mut base = String::new();
            xml::push_attribute(&mut base, "xml:base", url.as_str());
            if before.is_char_boundary(at) {
                before.insert_str(at, &base);
            }
        }
        scope.base = Some(url.to_string());
    }
    let mut out = before;
    for item in items {
        out.push('\n');
        push_item(&mut out, item, &target, &scope);
    }
    out.push('\n');
    out.push_str(&after);
    if out.len() > BYTES_LIMIT {
        let found = out.len();
        return Err(PullError::TooLarge { what: "bytes", found, limit: BYTES_LIMIT });
    }
    Ok(out)
}

/// What stands before and behind the items, without what is left out.
fn around(feed: &SseFeed<'_>) -> (String, String) {
    let tree = &feed.tree;
    let end = tree.element(feed.container).and_then(|e| e.inner.as_ref()).map_or(0, |i| i.end);
    let first = feed.items.first().map_or(end, |item| item.span.start);
    let mut cuts: Vec<Range<usize>> = feed.items.iter().map(|item| item.span.clone()).collect();
    // The root of RSS may have an `sx:sharing` as well (READINGS 2, row 11).
    let outside = tree.children(0).filter(|_| feed.container != 0);
    let left_out = tree.children(feed.container).chain(outside).filter(|(id, element)| {
        let (namespace, local) = tree.name(*id);
        match namespace {
            TOMBSTONES | HISTORY => true,
            ATOM if local == "link" => element.attribute("rel").is_some_and(is_of_the_document),
            other => local == "sharing" && SseDialect::of(other).is_some(),
        }
    });
    cuts.extend(left_out.map(|(_, element)| element.span.clone()));
    cuts.sort_by_key(|cut| cut.start);
    let (mut before, mut after) = (String::new(), String::new());
    let mut at = 0;
    for cut in cuts {
        copy(tree.slice(at..cut.start), at, first, &mut before, &mut after);
        at = cut.end;
    }
    let text = tree.text();
    copy(tree.slice(at..text.len()), at, first, &mut before, &mut after);
    (before.trim_end().to_owned(), after.trim_start().to_owned())
}

/// Adds a piece of text that stands at `at`; white space in front of what is cut goes along with it.
fn copy(piece: &str, at: usize, first: usize, before: &mut String, after: &mut String) {
    let (to_before, to_after) =
        piece.split_at_checked(first.saturating_sub(at).min(piece.len())).unwrap_or((piece, ""));
    push(before, to_before);
    push(after, to_after);
}

fn push(out: &mut String, piece: &str) {
    if !piece.trim().is_empty() {
        out.push_str(piece);
    }
}
