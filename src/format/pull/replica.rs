//! The replica as a file: the newest document's head around every item.

use super::BYTES_LIMIT;
use super::document::{ReplicaHead, limits};
use super::error::{FeedFault, PullError};
use super::item::{ReplicaItem, SharedItem};
use crate::parse;
use crate::parse::collection::ITEM_LIMIT;
use crate::render::{KeptItems, write_around};
use tidegate_core::model::Family;
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml::ns::ATOM;
use url::Url;

/// A replica that was written before: its head, which came from `url`, and its items.
pub(super) fn read(text: &str, url: &Url) -> Result<(ReplicaHead, Vec<ReplicaItem>), FeedFault> {
    let read = parse::document(text, None, &limits());
    let document = read.map_err(|error| FeedFault::of(text, &error))?;
    if let Some(fault) = FeedFault::of_broken(&document) {
        return Err(fault);
    }
    let items = ReplicaItem::all(&document, None).collect::<Result<_, _>>()?;
    Ok((ReplicaHead::new(document.skeleton, text, url), items))
}

/// Writes a replica.
///
/// What a publisher tells one reader is not for others (SSE 1.0 section 2.2), and what leads from
/// one document to the next means nothing here: a skeleton has neither.
pub(super) fn write(head: &ReplicaHead, items: &[ReplicaItem]) -> Result<String, PullError> {
    let refuse = |what, found, limit| Err(PullError::TooLarge { what, found, limit });
    if items.len() > ITEM_LIMIT {
        return refuse("items", items.len(), ITEM_LIMIT);
    }
    let ReplicaHead { skeleton, dialect, namespace, url } = head;
    let is_091 = items
        .iter()
        .any(|item| matches!(item, ReplicaItem::Shared(SharedItem { sse091: Some(_), .. })));
    let dialect = match dialect {
        _ if is_091 => Dialect::Sse091,
        Dialect::FeedSync => Dialect::FeedSync,
        Dialect::Sse | Dialect::Sse091 => Dialect::Sse,
    };
    let family = skeleton.format.family();
    let namespace = if family == Family::Atom { ATOM } else { namespace.as_str() };
    let kept = KeptItems::new((family, namespace), &skeleton.context, dialect);
    let out = write_around(skeleton, url.as_str(), |out| {
        for item in items {
            out.push('\n');
            item.push(out, &kept);
        }
    });
    if out.len() > BYTES_LIMIT {
        return refuse("bytes", out.len(), BYTES_LIMIT);
    }
    Ok(out)
}
