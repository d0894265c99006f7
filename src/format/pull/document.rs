//! One document, read for what a replica needs of it.

use super::error::{FeedFault, PullError};
use super::exchange::FetchedBody;
use super::item::{ReplicaItem, SharedItem};
use crate::parse::sse::bare;
use crate::parse::{self, FeedFrame, Limits};
use std::collections::HashSet;
use tidegate_core::model::{
    Completeness, EntrySync, FeedDocument, FeedLinks, Format, Older, Skeleton,
};
use tidegate_core::sync_markup::Dialect;
use url::Url;

/// The most items of a feed that is merged, or of a replica.
pub(super) const ITEM_LIMIT: usize = 100_000;

/// How much of a feed that is merged, or of a replica, is read.
pub(super) fn limits() -> Limits {
    Limits { entries: ITEM_LIMIT, ..Limits::default() }
}

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) head: ReplicaHead,
    /// What it is.
    pub(super) kind: DocumentKind,
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
    /// The address that it came from.
    pub(super) url: Url,
}

/// What a document is.
#[derive(Debug)]
pub(super) enum DocumentKind {
    /// A feed with sync markup.
    Sse(SharingBounds, Vec<SharedItem>),
    /// A feed without.
    Plain(HistoryHead, Vec<ReplicaItem>),
}

/// What `sx:sharing` says (SSE 1.0 section 2.2).
#[derive(Debug, Default)]
pub(super) struct SharingBounds {
    /// `since` and `until`.
    pub(super) bounds: Option<(String, String)>,
    /// Where the complete feed is.
    pub(super) complete: Option<Url>,
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
        let (mut warnings, mut dialect) = (Vec::new(), Dialect::default());
        let kind = if shares(&document) {
            // What is broken has items that nobody can tell, and its `until` says that they are there.
            let frame = FeedFrame::read(&decoded.text, &limits).map_err(|error| {
                let source = FeedFault::of(&decoded.text, &error);
                PullError::Markup { url: url.to_string(), source }
            })?;
            dialect = frame.dialect.unwrap_or_default();
            shared(&document, url, &mut warnings)
        } else {
            if let Completeness::Salvaged(why) = &document.completeness {
                warnings.push(format!("{url} is damaged: {why}; what is whole was taken"));
            }
            let entries = document.entries.iter();
            let items = entries.map(|entry| ReplicaItem::plain(&document, entry, Some(url)));
            DocumentKind::Plain(HistoryHead::new(&document, walked), items.collect())
        };
        let head = ReplicaHead { skeleton: document.skeleton, dialect, url: url.clone() };
        Ok(Self { head, kind, is_delta: found.is_delta, warnings })
    }
}

/// Whether a feed takes part in synchronization.
pub(super) fn shares(document: &FeedDocument<'_>) -> bool {
    document.sharing.is_some() || document.entries.iter().any(|entry| entry.sync.is_some())
}

fn shared(document: &FeedDocument<'_>, url: &Url, warnings: &mut Vec<String>) -> DocumentKind {
    let mut items = Vec::new();
    for entry in &document.entries {
        match &entry.sync {
            Some(EntrySync::Valid(said)) => {
                items.push(SharedItem::new(document, entry, said, Some(url)));
            }
            // An item with invalid markup does not cost the others theirs (READINGS 1, row 18).
            Some(EntrySync::Invalid) => {
                let fault = FeedFault::of_entry(document, entry);
                warnings.push(format!("{url}: {fault}; the item is left out"));
            }
            None => {}
        }
    }
    let said = document.sharing.clone().unwrap_or_default();
    let complete = said.complete.and_then(|complete| Url::parse(&complete).ok());
    DocumentKind::Sse(SharingBounds { bounds: said.bounds, complete }, items)
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
