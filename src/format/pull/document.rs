//! One document, read for what a replica needs of it.

use super::error::{FeedFault, PullError};
use super::exchange::FetchedBody;
use super::item::ReplicaItem;
use crate::parse::collection::ITEM_LIMIT;
use crate::parse::sync_markup::bare;
use crate::parse::{self, FeedFrame, Limits};
use std::collections::HashSet;
use tidegate_core::model::{
    Completeness, FeedDocument, FeedLinks, Format, Older, Sharing, Skeleton,
};
use tidegate_core::sync_markup::Dialect;
use url::Url;

/// How much of a feed that is merged, or of a replica, is read.
pub(super) fn limits() -> Limits {
    Limits { entries: ITEM_LIMIT, ..Limits::default() }
}

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) head: ReplicaHead,
    /// What its `sx:sharing` says; `None` where nothing in it is shared.
    pub(super) sharing: Option<Sharing>,
    pub(super) history: HistoryHead,
    /// Its items; where it shares some, those.
    pub(super) items: Vec<ReplicaItem>,
    /// Whether it is a delta (226): then it says nothing by what is not in it.
    pub(super) is_delta: bool,
    /// What was wrong with it.
    pub(super) warnings: Vec<String>,
}

/// What goes around the items of a replica.
#[derive(Debug, Clone)]
pub(super) struct ReplicaHead {
    pub(super) skeleton: Skeleton,
    pub(super) dialect: Dialect,
    /// The namespace of its own elements.
    pub(super) namespace: String,
    /// The address that it came from.
    pub(super) url: Url,
}

/// What a head says of the feed's history.
#[derive(Debug, Default)]
pub(super) struct HistoryHead {
    /// `self`.
    pub(super) own: Option<Url>,
    /// `current`.
    pub(super) current: Option<Url>,
    /// The next older archive.
    pub(super) older: Option<Url>,
    /// Whether there are pages instead, which say nothing for certain.
    pub(super) has_pages: bool,
    /// `fh:complete`.
    pub(super) is_complete: bool,
    /// The ids of entries that are said to be deleted (RFC 6721).
    pub(super) deleted: HashSet<String>,
}

impl Document {
    /// Reads a document. `walked`: whether it is an archive that another one led to.
    pub(super) fn read(found: &FetchedBody, walked: Option<Older>) -> Result<Self, PullError> {
        let (url, limits) = (&found.url, limits());
        let no_feed = |source| PullError::NotAFeed { url: url.to_string(), source };
        let decoded = parse::decode(&found.bytes, found.content_type.as_deref(), &limits);
        let decoded = decoded.map_err(no_feed)?;
        let document = parse::document(&decoded.text, Some(url), &limits).map_err(no_feed)?;
        let is_kept = matches!(
            document.format,
            Format::Atom10 | Format::Rss20 | Format::Rss09x | Format::Opml
        );
        if !is_kept {
            return Err(PullError::Format { url: url.to_string(), found: document.format.name() });
        }
        let (mut warnings, mut sharing) = (Vec::new(), None);
        if shares(&document) {
            // What is broken may hide items, and its `until` says that they are there.
            if let Some(source) = FeedFault::of_broken(&document) {
                return Err(PullError::Markup { url: url.to_string(), source });
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
    pub(super) fn without_items(head: ReplicaHead) -> Self {
        let (history, items, warnings) = (HistoryHead::default(), Vec::new(), Vec::new());
        Self { head, sharing: None, history, items, is_delta: true, warnings }
    }

    /// Where the complete feed is, if that is another document (SSE 1.0 section 2.2.1).
    pub(super) fn complete(&self) -> Option<Url> {
        let complete = self.sharing.as_ref()?.complete.as_ref()?;
        Url::parse(complete).ok().filter(|complete| *complete != self.head.url)
    }

    /// `since` and `until` (SSE 1.0 section 2.2).
    pub(super) fn bounds(&self) -> Option<&(String, String)> {
        self.sharing.as_ref()?.bounds.as_ref()
    }
}

impl ReplicaHead {
    /// That of a document with this text, which came from `url`.
    pub(super) fn new(skeleton: Skeleton, text: &str, url: &Url) -> Self {
        let frame = FeedFrame::read(text).map(|frame| (frame.dialect, frame.namespace));
        let (dialect, namespace) = frame.unwrap_or_default();
        Self { skeleton, dialect: dialect.unwrap_or_default(), namespace, url: url.clone() }
    }
}

/// Whether a feed takes part in synchronization.
pub(super) fn shares(document: &FeedDocument<'_>) -> bool {
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
