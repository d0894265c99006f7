//! One document, read for what a replica needs of it.

use super::error::PullError;
use super::item::ReplicaItem;
use super::text::{is_json, labelled_utf8};
use crate::parse::sse::{self, Payload, SseFeed, SseSharing, bare, mentions_sync_markup};
use crate::parse::{self, Limits};
use crate::render::References;
use std::collections::HashSet;
use tidegate_core::model::{Completeness, FeedDocument, FeedLinks, Format, Older};
use url::Url;

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    /// The address that it came from.
    pub(super) url: Url,
    /// Its text, well-formed as far as this room knows.
    pub(super) text: String,
    /// What it is.
    pub(super) kind: DocumentKind,
    /// Whether it is a delta (226): then it says nothing by what is not in it.
    pub(super) is_delta: bool,
    /// What was wrong with it.
    pub(super) warnings: Vec<String>,
}

/// What a document is.
#[derive(Debug)]
pub(super) enum DocumentKind {
    /// A feed with sync markup.
    Sse(SharingBounds, Vec<ReplicaItem>),
    /// A feed without.
    Plain(HistoryHead, Vec<Payload>),
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

/// Reads a document. `walked`: whether it is an archive that another one led to.
pub(super) fn read(
    bytes: &[u8],
    content_type: Option<&str>,
    url: &Url,
    is_delta: bool,
    walked: Option<Older>,
) -> Result<Document, PullError> {
    let limits = Limits::default();
    let no_feed = |source| PullError::NotAFeed { url: url.to_string(), source };
    let decoded = parse::decode(bytes, content_type, &limits).map_err(no_feed)?;
    let mut text = decoded.text.into_owned();
    labelled_utf8(&mut text);
    match sse::read(&text) {
        Ok(feed) if shares(&feed) => return Ok(shared(&feed, url, is_delta)),
        // What is broken and has sync markup is not taken for a plain feed.
        Err(source) if mentions_sync_markup(&text) && !is_json(&text) => {
            return Err(PullError::Markup { url: url.to_string(), source });
        }
        _ => {}
    }
    let document = parse::document(&text, Some(url), &limits).map_err(no_feed)?;
    plain(&document, url, is_delta, walked)
}

/// Whether a feed takes part in synchronization.
pub(super) fn shares(feed: &SseFeed<'_>) -> bool {
    feed.items.iter().any(|item| item.dialect.is_some()) || feed.sharing().is_some()
}

fn shared(feed: &SseFeed<'_>, url: &Url, is_delta: bool) -> Document {
    let mut warnings = Vec::new();
    let mut items = Vec::new();
    for item in &feed.items {
        items.extend(ReplicaItem::shared(item).map(|item| based(item, url)));
        let error = match (&item.shared, &item.shared_091) {
            (Some(Err(error)), _) | (None, Some(Err(error))) => error,
            _ => continue,
        };
        // An item with invalid markup does not cost the others theirs (READINGS 1, row 18).
        warnings.push(format!("{url}: {error}; the item is left out"));
    }
    let sharing = feed.sharing().map(|said| sharing(&said, url)).unwrap_or_default();
    Document {
        url: url.clone(),
        text: feed.tree.text().to_owned(),
        kind: DocumentKind::Sse(sharing, items),
        is_delta,
        warnings,
    }
}

fn sharing(said: &SseSharing<'_>, url: &Url) -> SharingBounds {
    SharingBounds { bounds: said.bounds(), complete: said.complete(Some(url)) }
}

/// References in what is taken elsewhere are relative to where it came from.
fn based(mut item: ReplicaItem, url: &Url) -> ReplicaItem {
    match &mut item {
        ReplicaItem::Sse(shared) => {
            for version in shared.conflicts.iter_mut().chain([&mut shared.winner]) {
                base(&mut version.data, url);
            }
        }
        // What is kept of its conflicts stands in it, and so has its base.
        ReplicaItem::Sse091(item) => base(&mut item.data, url),
        ReplicaItem::Plain(payload) => base(payload, url),
    }
    item
}

fn base(payload: &mut Payload, url: &Url) {
    if payload.has_base && payload.base.is_none() {
        return;
    }
    // The same item stands in documents at several addresses, and says the same in each.
    if payload.base.is_none() && References::of(&payload.xml).is_empty() {
        return;
    }
    let base = payload.base.as_deref().and_then(|base| url.join(base).ok());
    payload.base = Some(base.unwrap_or_else(|| url.clone()).into());
    if payload.values.base.is_none() {
        payload.values.base.clone_from(&payload.base);
    }
}

fn plain(
    document: &FeedDocument<'_>,
    url: &Url,
    is_delta: bool,
    walked: Option<Older>,
) -> Result<Document, PullError> {
    let is_kept =
        matches!(document.format, Format::Atom10 | Format::Rss20 | Format::Rss09x | Format::Opml);
    if !is_kept {
        return Err(PullError::Format { url: url.to_string(), found: document.format.name() });
    }
    let text = repaired(document);
    let markup = |source| PullError::Markup { url: url.to_string(), source };
    let feed = sse::read(&text).map_err(markup)?;
    let payloads = feed.items.iter().filter_map(|item| feed.plain(item));
    let payloads = payloads.map(|mut payload| {
        base(&mut payload, url);
        payload
    });
    let payloads = payloads.collect();
    let mut warnings = Vec::new();
    if let Completeness::Salvaged(why) = &document.completeness {
        warnings.push(format!("{url} is damaged: {why}; what is whole was taken"));
    }
    Ok(Document {
        url: url.clone(),
        kind: DocumentKind::Plain(history(document, walked), payloads),
        is_delta,
        warnings,
        text,
    })
}

/// The document with the repairs that make it well-formed, without what it says of its neighbours.
fn repaired(document: &FeedDocument<'_>) -> String {
    let skeleton = &document.skeleton;
    let (before, after) =
        skeleton.text.split_at_checked(skeleton.slots.entries).unwrap_or((&skeleton.text, ""));
    let mut text = before.to_owned();
    for entry in &document.entries {
        text.push_str(&entry.markup);
        text.push('\n');
    }
    text.push_str(after);
    text
}

fn history(document: &FeedDocument<'_>, walked: Option<Older>) -> HistoryHead {
    let links: &FeedLinks = &document.head.links;
    let parsed = |at: &str| Url::parse(at).ok().map(bare);
    let address = |link: &Option<String>| link.as_deref().and_then(parsed);
    let older = links.older(walked);
    HistoryHead {
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
