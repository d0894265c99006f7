//! The documents that a replica is made of, and the replica as a file: the newest document's head
//! around every item.

use super::item::{ReplicaItem, SharedItem};
use super::{BYTES_LIMIT, FeedFault, FetchedBody, PullError};
use crate::parse::collection::ITEM_LIMIT;
use crate::parse::sync_markup::bare;
use crate::parse::{self, FeedFrame, Limits};
use crate::render::{KeptItems, in_feed, write_around};
use std::collections::HashSet;
use tidegate_core::model::{
    Completeness, Family, FeedDocument, FeedLinks, Format, Older, Sharing, Skeleton,
};
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml::ns::ATOM;
use url::Url;

/// How much of a feed that is merged, or of a replica, is read.
pub fn limits() -> Limits {
    Limits { entries: ITEM_LIMIT, ..Limits::default() }
}

/// A document.
#[derive(Debug)]
pub struct Document {
    pub head: ReplicaHead,
    /// What its `sx:sharing` says; `None` where nothing in it is shared.
    pub sharing: Option<Sharing>,
    pub history: HistoryHead,
    /// Its items; where it shares some, those.
    pub items: Vec<ReplicaItem>,
    /// Whether it is a delta (226): then it says nothing by what is not in it.
    pub is_delta: bool,
    /// What was wrong with it.
    pub warnings: Vec<String>,
}

/// What goes around the items of a replica.
#[derive(Debug, Clone)]
pub struct ReplicaHead {
    pub skeleton: Skeleton,
    pub dialect: Dialect,
    /// The namespace of its own elements.
    pub namespace: String,
    /// The address that it came from.
    pub url: Url,
}

/// What a head says of the feed's history.
#[derive(Debug, Default)]
pub struct HistoryHead {
    /// `self`.
    pub own: Option<Url>,
    /// `current`.
    pub current: Option<Url>,
    /// The next older archive.
    pub older: Option<Url>,
    /// Whether there are pages instead, which say nothing for certain.
    pub has_pages: bool,
    /// `fh:complete`.
    pub is_complete: bool,
    /// The ids of entries that are said to be deleted (RFC 6721).
    pub deleted: HashSet<String>,
}

impl Document {
    /// Reads a document. `walked`: whether it is an archive that another one led to.
    pub fn read(found: &FetchedBody, walked: Option<Older>) -> Result<Self, PullError> {
        let (url, limits) = (&found.url, limits());
        let no_feed = |error| PullError(format!("{url} is no feed: {error}"));
        let decoded = parse::decode(&found.bytes, found.content_type.as_deref(), &limits);
        let decoded = decoded.map_err(no_feed)?;
        let document = parse::document(&decoded.text, Some(url), &limits).map_err(no_feed)?;
        let is_kept = matches!(
            document.format,
            Format::Atom10 | Format::Rss20 | Format::Rss09x | Format::Opml | Format::Collection
        );
        if !is_kept {
            let found = document.format.name();
            let why = "and replicas are kept of Atom 1.0 and RSS 2.0";
            return Err(PullError(format!("{url} is {found}, {why}")));
        }
        let (mut warnings, mut sharing) = (Vec::new(), None);
        if shares(&document) {
            // What is broken may hide items, and its `until` says that they are there.
            if let Some(fault) = FeedFault::of_broken(&document) {
                return Err(PullError(format!("{url}: {fault}")));
            }
            sharing = Some(document.sharing.clone().unwrap_or_default());
        } else if let Completeness::Salvaged(why) = &document.completeness {
            warnings.push(format!("{url} is damaged: {why}; what is whole was taken"));
        }
        let mut items = Vec::new();
        for item in ReplicaItem::all(&document, Some(url)) {
            match item {
                Ok(ReplicaItem::Plain { .. }) if sharing.is_some() => {}
                Ok(item) => items.push(item),
                // An item with invalid markup does not cost the others theirs (READINGS 1, row 18).
                Err(fault) => warnings.push(format!("{url}: {fault}; the item is left out")),
            }
        }
        let history = HistoryHead::new(&document, walked);
        let head = ReplicaHead::new(document.skeleton, &decoded.text, url);
        Ok(Self { head, sharing, history, items, is_delta: found.is_delta, warnings })
    }

    /// A document that says nothing.
    pub fn without_items(head: ReplicaHead) -> Self {
        let (history, items, warnings) = (HistoryHead::default(), Vec::new(), Vec::new());
        Self { head, sharing: None, history, items, is_delta: true, warnings }
    }

    /// Where the complete feed is, if that is another document (SSE 1.0 section 2.2.1).
    pub fn complete(&self) -> Option<Url> {
        let complete = self.sharing.as_ref()?.complete.as_ref()?;
        Url::parse(complete).ok().filter(|complete| *complete != self.head.url)
    }

    /// `since` and `until` (SSE 1.0 section 2.2).
    pub fn bounds(&self) -> Option<&(String, String)> {
        self.sharing.as_ref()?.bounds.as_ref()
    }
}

impl ReplicaHead {
    /// That of a document with this text, which came from `url`.
    pub fn new(skeleton: Skeleton, text: &str, url: &Url) -> Self {
        let frame = FeedFrame::read(text).map(|frame| (frame.dialect, frame.namespace));
        let (dialect, namespace) = frame.unwrap_or_default();
        let skeleton = in_feed(skeleton, url.as_str());
        Self { skeleton, dialect: dialect.unwrap_or_default(), namespace, url: url.clone() }
    }
}

/// Whether a feed takes part in synchronization.
pub fn shares(document: &FeedDocument<'_>) -> bool {
    document.sharing.is_some() || document.entries.iter().any(|entry| entry.sync.is_some())
}

impl HistoryHead {
    fn new(document: &FeedDocument<'_>, walked: Option<Older>) -> Self {
        let links: &FeedLinks = &document.head.links;
        let parsed = |at: &str| Url::parse(at).ok().map(bare);
        let address = |link: &Option<String>| link.as_deref().and_then(parsed);
        let older = links.older(walked);
        Self {
            own: address(&links.own),
            current: address(&links.current),
            older: older
                .filter(|(layout, _)| *layout == Older::Archives)
                .and_then(|(_, at)| parsed(at)),
            has_pages: older.is_some_and(|(layout, _)| layout == Older::Pages),
            is_complete: document.head.complete,
            deleted: document.tombstones.iter().map(|gone| gone.native_id.clone()).collect(),
        }
    }
}

/// A replica that was written before: its head, which came from `url`, and its items.
pub fn read_replica(text: &str, url: &Url) -> Result<(ReplicaHead, Vec<ReplicaItem>), FeedFault> {
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
pub fn write_replica(head: &ReplicaHead, items: &[ReplicaItem]) -> Result<String, PullError> {
    let refuse = |what, found, limit| {
        Err(PullError(format!("the replica would be {found} {what}, the limit is {limit}")))
    };
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
