//! From stored items to documents, by splicing into the publisher's own bytes.
//!
//! Atom 1.0 and RSS 0.91 to 2.0 are spliced: the skeleton up to its entries, our links and
//! `sx:sharing`, the entries with their `sx:sync` and what they inherit, the rest of the skeleton.
//! Nothing is parsed on that way but one start tag an entry. The other formats, and entries of the
//! other family, are first converted to a skeleton or markup that is then spliced like any other.

mod base;
mod change_feed;
mod collection;
mod convert;
mod entry;
mod head;
mod json;
mod json_feed;
mod kept;
mod media;
mod opml;
mod references;
mod scope;
mod tombstone;

#[cfg(test)]
mod tests;

pub use base::Bases;
pub use change_feed::{ChangeEntry, ChangeFeed};
pub use convert::authors;
pub use json::sync_object;
pub use kept::{KeptItem, KeptItems, in_feed, members, write_around};
pub use opml::living_outlines;
pub use tidegate_core::sync_markup::Dialect;

use collection::{EnclosingFeed, ShownVersion};
use convert::Target;
use entry::Entries;
use head::Surroundings;
use scope::{Extensions, Prefixes};
use std::convert::Infallible;
use std::time::Duration;
use tidegate_core::model::{
    Deletion, Family, FeedState, Format, Item, Markup, Skeleton, Tick, Version,
};
use tidegate_core::xml::ns::ATOM;

/// Which view of a feed (CONTRACT, Addresses).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewKind {
    /// What a feed reader is pointed at.
    Reader,
    /// The SSE partial feed.
    Sync,
    /// Every item that lives and every tombstone kept.
    Complete,
}

/// The container of a document (`?as=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    Atom,
    Rss,
    /// A collection as plain XML (FeedSync for Collections).
    Pox,
    /// A collection as JSON (FeedSync for Collections).
    Json,
    JsonFeed,
    Opml,
}

impl Container {
    /// The container that documents of a format are republished in.
    pub const fn of(format: Format) -> Self {
        match (format, format.family()) {
            (Format::Opml, _) => Self::Opml,
            (_, Family::Atom) => Self::Atom,
            (_, Family::Rss) => Self::Rss,
        }
    }

    /// The family, where it is one of feeds in XML.
    pub const fn family(self) -> Option<Family> {
        match self {
            Self::Atom => Some(Family::Atom),
            Self::Rss => Some(Family::Rss),
            Self::Pox | Self::Json | Self::JsonFeed | Self::Opml => None,
        }
    }

    /// Its media type, without charset.
    pub fn media_range(self) -> &'static str {
        self.media_type().split(';').next().unwrap_or_default()
    }

    /// Its media type as it is sent. JSON is UTF-8 and has no charset (RFC 8259 section 11).
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Atom => "application/atom+xml; charset=utf-8",
            Self::Rss => "application/rss+xml; charset=utf-8",
            Self::Pox => "application/xml; charset=utf-8",
            Self::Json => "application/json",
            Self::JsonFeed => "application/feed+json",
            Self::Opml => "text/x-opml; charset=utf-8",
        }
    }
}

/// The addresses that a document names; all absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    /// Of the reader view.
    pub reader: String,
    /// Of the sync view.
    pub sync: String,
    /// Of the complete view.
    pub complete: String,
    /// What references are relative to where the publisher says nothing else: the upstream's, as
    /// far as it may be shown.
    pub upstream: String,
    /// Of the upstream (`via`); `None` where there is none, or it is secret.
    pub via: Option<String>,
    /// Of the SUP document with the feed's fragment; `None` while there is none.
    pub sup: Option<String>,
    /// Of the WebSub hub; `None` while there is none.
    pub hub: Option<String>,
    /// Whether the reader view writes the publisher's relative references as absolute addresses
    /// (`publish.absolute_urls`).
    pub absolute: bool,
    /// Whether the publisher's word that its feed has moved (`itunes:new-feed-url`) leads to where it
    /// says, not to the reader view (`publish.keep_new_feed_url`).
    pub keeps_new_feed_url: bool,
    /// Of the feeds whose items this one takes over (SSE 1.0 section 2.2.1): each one's name, and
    /// its address.
    pub aggregated: Vec<(String, String)>,
    /// Where readers of RSS register to be told of changes; `None` while they cannot.
    pub cloud: Option<Cloud>,
}

/// Where readers of RSS register (RSS 2.0, element `cloud`), over `http-post`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloud {
    /// The host.
    pub domain: String,
    pub port: u16,
    pub path: String,
}

/// Which forms of links between archive documents are written (`publish.history_links`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkForms {
    /// Of the draft: `previous`.
    pub draft05: bool,
    /// Of RFC 5005: `prev-archive` and `next-archive`.
    pub rfc5005: bool,
}

impl Default for LinkForms {
    fn default() -> Self {
        Self { draft05: true, rfc5005: true }
    }
}

/// An archive document among its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveDocument {
    /// Its own address, absolute.
    pub own: String,
    /// The address of the archive sealed after it, absolute.
    pub next: Option<String>,
}

/// Where a document stands in its feed's history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPlace {
    /// Which forms of links are written.
    pub forms: LinkForms,
    /// Whether the document lists every entry of its feed: `fh:complete`.
    pub complete: bool,
    /// The address of the archive of what came before: of the newest archive in the subscription
    /// document, of the one before it in an archive.
    pub previous: Option<String>,
    /// For an archive document.
    pub archive: Option<ArchiveDocument>,
}

impl HistoryPlace {
    /// The links as relation and address; `current` is the address of the subscription document.
    ///
    /// RFC 5005 calls the next older archive `prev-archive`, the draft calls it `previous`, which
    /// RFC 5005 has for paged feeds: both may stand together (READINGS 3, row 1).
    pub fn links<'a>(&'a self, current: &'a str) -> Vec<(&'static str, &'a str)> {
        let LinkForms { draft05, rfc5005 } = self.forms;
        let mut links = Vec::new();
        // Both require it of an archive.
        if self.archive.is_some() {
            links.push(("current", current));
        }
        if let Some(previous) = &self.previous {
            let forms = [(rfc5005, "prev-archive"), (draft05, "previous")];
            let forms = forms.into_iter().filter(|(written, _)| *written);
            links.extend(forms.map(|(_, relation)| (relation, previous.as_str())));
        }
        let next = self.archive.as_ref().and_then(|archive| archive.next.as_deref());
        if let Some(next) = next.filter(|_| rfc5005) {
            links.push(("next-archive", next));
        }
        links
    }

    /// The element that marks the document, where it is marked (section 5 of the draft; RFC 5005
    /// sections 2 and 4).
    pub const fn mark(&self) -> Option<&'static str> {
        match (&self.archive, self.complete) {
            (Some(_), _) => Some("archive"),
            (None, true) => Some("complete"),
            (None, false) => None,
        }
    }
}

/// What to render.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The view.
    pub kind: ViewKind,
    pub container: Container,
    /// The dialect; JSON has but one, that of FeedSync for Collections, and OPML, SSE 0.91.
    pub dialect: Dialect,
    /// The addresses to name.
    pub addresses: &'a Addresses,
    /// The feed's state.
    pub state: &'a FeedState,
    /// The document around the entries.
    pub skeleton: &'a Skeleton,
    /// The items, in the order to show; in the sync and complete view tombstones are among them.
    /// The first of them, where others follow ([`write()`]).
    pub items: &'a [Item],
    /// Deletions to tell as `at:deleted-entry` (in Atom; not in the complete view).
    /// Left out where the document is RSS, which has no such element.
    pub deleted: &'a [Deletion],
    /// Where the document stands in its feed's history. An archive document is rendered as a reader
    /// view that is one.
    pub history: &'a HistoryPlace,
    /// `sx:sharing/@since` (sync and complete view).
    pub since: Option<Tick>,
    /// `sx:sharing/@until` (sync and complete view).
    pub until: Option<Tick>,
    /// `sx:sharing/@expires` (sync view).
    pub expires: Option<tidegate_core::model::Time>,
    /// How long changes stay in the sync view (`sx:sharing/@window` of SSE 0.91).
    pub window: Option<Duration>,
}

/// The items that follow those of a page, a portion at a time. An error ends the document.
pub type ItemPortions<'a, E> = &'a mut dyn Iterator<Item = Result<Vec<Item>, E>>;

/// Where the text of a document goes.
pub trait TextSink<E> {
    /// What was written and is not taken yet, to write behind it.
    fn text(&mut self) -> &mut String;
    /// A portion of the document is written: the text may be taken.
    fn flush(&mut self) -> Result<(), E>;
}

impl<E> TextSink<E> for String {
    fn text(&mut self) -> &mut String {
        self
    }

    fn flush(&mut self) -> Result<(), E> {
        Ok(())
    }
}

impl<'a> Page<'a> {
    /// The document around its items.
    fn around(&self) -> EnclosingFeed<'a> {
        EnclosingFeed::new(self.skeleton, &self.addresses.upstream)
    }

    /// Whether the view shows an item: a reader would show a tombstone, or blank a saved copy
    /// (CONTRACT, Addresses).
    fn shows(&self, item: &Item) -> bool {
        self.kind != ViewKind::Reader || !item.shared.winner.deleted
    }

    /// The conflicts of an item that the view shows. Programs that look for entries at any depth
    /// would take those for entries of the feed, so what readers read has none.
    fn conflicts(&self, item: &'a Item) -> &'a [Version<Markup>] {
        if self.kind == ViewKind::Reader { &[] } else { &item.shared.conflicts }
    }
}

/// A page that is being written, with the items that follow its own.
struct PageWriter<'w, 'a, E> {
    page: &'w Page<'a>,
    rest: ItemPortions<'w, E>,
    out: &'w mut dyn TextSink<E>,
}

impl<E> PageWriter<'_, '_, E> {
    /// Writes each item that the view shows.
    fn write_items(&mut self, mut write: impl FnMut(&mut String, &Item)) -> Result<(), E> {
        let Self { page, rest, out } = self;
        let mut portion = |items: &[Item]| {
            let text = out.text();
            text.reserve(items.iter().map(estimate_size).sum());
            items.iter().filter(|item| page.shows(item)).for_each(|item| write(text, item));
            out.flush()
        };
        portion(page.items)?;
        for items in rest {
            portion(&items?)?;
        }
        Ok(())
    }
}

/// What one item takes beside its own bytes, about: `sx:sync` with a short history.
const ITEM_OVERHEAD: usize = 320;
/// What one update in a history takes, about.
const UPDATE_OVERHEAD: usize = 96;

/// Renders a page in its container; feeds in the current format of their family, Atom 1.0 or RSS
/// 2.0.
///
/// A pure function of the page: the same page gives the same bytes.
pub fn document(page: &Page<'_>) -> String {
    let mut out = String::new();
    let Ok(()) = write::<Infallible>(page, &mut std::iter::empty(), &mut out);
    out
}

/// The same of a page with more items than are to be in memory at a time: those of `rest` follow
/// the ones that it has. The same items give the same bytes, however they come.
///
/// # Errors
///
/// What `rest` or `out` failed with; the document is to be dropped.
pub fn write<E>(
    page: &Page<'_>,
    rest: ItemPortions<'_, E>,
    out: &mut dyn TextSink<E>,
) -> Result<(), E> {
    let to = PageWriter { page, rest, out };
    match page.container {
        Container::Atom => feed(to, Family::Atom),
        Container::Rss => feed(to, Family::Rss),
        Container::Pox => collection::write(to),
        Container::Json => json::write(to),
        Container::JsonFeed => json_feed::write(to),
        Container::Opml => opml::write(to),
    }
}

fn feed<E>(mut to: PageWriter<'_, '_, E>, family: Family) -> Result<(), E> {
    let page = to.page;
    let absolute = page.addresses.absolute && page.kind == ViewKind::Reader;
    let skeleton = convert::skeleton(page.skeleton, page.addresses, family, absolute);
    let deleted = if family == Family::Atom { page.deleted } else { &[] };
    let extensions = Extensions {
        has_tombstones: !deleted.is_empty(),
        has_history: page.history.mark().is_some(),
    };
    let prefixes = Prefixes::choose(&skeleton.context, family, page.dialect, extensions);
    let surroundings = Surroundings::new(page, &skeleton, &prefixes);
    let scope = prefixes.scope(&skeleton.context);
    let namespace = match family {
        Family::Atom => ATOM,
        Family::Rss => scope.default_namespace(),
    };
    let entries = Entries {
        target: Target { family, namespace },
        prefixes: &prefixes,
        around: page.around(),
        language: skeleton.context.lang.as_deref().filter(|_| page.skeleton.context.lang.is_none()),
        absolute,
    };

    let text = to.out.text();
    text.push_str(&surroundings.before);
    if let Some(prefix) = &prefixes.tombstones {
        for deletion in deleted {
            tombstone::push_deleted_entry(text, prefix, deletion);
            text.push('\n');
        }
    }
    to.write_items(|text, item| {
        entries.push_version(text, ShownVersion::of(page, item), &scope);
        text.push('\n');
    })?;
    to.out.text().push_str(&surroundings.after);
    to.out.flush()
}

/// How many bytes an item will take, about.
fn estimate_size(item: &Item) -> usize {
    let winner = &item.shared.winner;
    winner.data.xml.len() + ITEM_OVERHEAD + winner.history.len() * UPDATE_OVERHEAD
}
