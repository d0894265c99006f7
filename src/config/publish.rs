//! `[publish]`: how feeds are republished, and what is kept of them.

use super::keys::{
    Preset::{Value as Preset, Words},
    section,
};
use super::kinds::{Flag, Lasting, List, Mapped, Maybe, Number, OneOf, Parsed, Size};
use super::section::Section;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::model::EndpointId;

/// What the window and the keeping of tombstones and archives may be, in seconds.
const KEEPING: RangeInclusive<u64> = 60..=3650 * 86_400;
/// How many items a feed may keep: no fewer than make sense, and so many that the largest document
/// fits beside them into a ledger.
pub(super) const ITEMS: RangeInclusive<u32> = 1000..=150_000;
/// How long what lost its place may be kept, in seconds: up to a hundred years.
const VERSIONS_AGE: RangeInclusive<u64> = 3600..=36_525 * 86_400;
/// The most words in the list of link forms: longer than any right answer, so that every wrong one is
/// named.
const LINKS_LIMIT: usize = 16;
/// The forms of links to archives, in words.
const LINKS_WANTED: &str = "a list of \"draft-05\" and \"rfc5005\"";

section! {
    /// How feeds are republished, and what is kept of them.
    pub struct Publish {
        /// This gateway's SSE endpoint id; cannot be changed on a used store.
        ///
        /// It is the "by" of every version that the gateway makes. The default is kept in the store.
        endpoint: Option<EndpointId> = Maybe(Parsed(
            "`A-Z`, `a-z`, `0-9`, `.`, `:`, `-`",
            EndpointId::own,
        )), Words("a random one", "\"feeds.example.org\""), at restart;
        /// The dialect of the sync markup where a request has no `?sx=`.
        dialect: SyncDialect = OneOf(&[
            ("sse", SyncDialect::Sse),
            ("feedsync", SyncDialect::FeedSync),
            ("sse-0.91", SyncDialect::Sse091),
        ]), Preset("\"sse\""), at restart;
        /// The forms of the links between archives.
        history_links: BTreeSet<HistoryLinks> = Mapped(
            List { limit: LINKS_LIMIT, wanted: LINKS_WANTED, read: history_links },
            BTreeSet::from_iter,
        ), Preset("[\"draft-05\", \"rfc5005\"]"), at restart;
        /// Relative references become absolute in reader views and archives.
        ///
        /// This is for readers that ignore xml:base, and concerns items and the feed's head. What is
        /// converted has no relative references in any case; the sync and the complete view keep the
        /// publisher's bytes.
        absolute_urls: bool = Flag, Preset("false"), at restart;
        /// The most versions outside archives, and the most entries of an archive.
        archive_entries: u32 = Number(1..=10_000), Preset("20");
        /// The most updates of one item in a day that make a version each.
        ///
        /// Beyond them its newest state is shown, but makes no version until the day is over.
        versions_per_day: u32 = Number(1..=10_000), Preset("24");
        /// How many archives of a feed are kept, how old, and how large in all on disk.
        ///
        /// The oldest go first, whole, and answer 410. The last state of an item that lives stays in
        /// an archive whatever the limits say.
        archives: u32 = Number(1..=1_000_000), Preset("10000");
        archive_age: Option<Duration> = Maybe(Lasting(KEEPING)), Words("none", "\"3650d\"");
        archive_bytes: Option<u64> = Maybe(Size), Words("none", "\"512MiB\"");
        /// How many versions of an item are kept, how long after their successors came, and how large
        /// they and the past orders of the reader view may be on disk in a feed.
        ///
        /// The newest version of an item stays in any case.
        versions: u32 = Number(1..=1000), Preset("100");
        versions_age: Option<Duration> = Maybe(Lasting(VERSIONS_AGE)), Words("none", "\"3650d\"");
        versions_bytes: u64 = Size, Preset("\"256MiB\"");
        /// How long changes stay in the sync view.
        ///
        /// A subscriber who was away longer reads everything anew.
        window: Duration = Lasting(KEEPING), Preset("\"30d\""), at restart;
        /// How long tombstones are kept; at least the window.
        tombstones: Duration = Lasting(KEEPING), Preset("\"180d\""), at restart;
        /// The most items of a feed in its complete view, tombstones included.
        ///
        /// Beyond them the oldest that slid off the publisher's window leave it, and are in the archives
        /// alone. One that comes back is the same item as before.
        items: u32 = Number(ITEMS), Preset("100000");
        /// Which views answer 226 with what changed alone, where a client asks for that (`A-IM:
        /// feed`): `"sync"`, or `"all"` for the reader view too.
        ///
        /// Some feed readers ask for it without knowing what 226 means, and lose posts. Write "all"
        /// only where you know every reader of your feeds.
        deltas: Deltas = OneOf(&[("sync", Deltas::Sync), ("all", Deltas::All)]),
            Preset("\"sync\""), at restart;
    }
}

/// Which views are answered with deltas (RFC 3229, `A-IM: feed`) where a client asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Deltas {
    /// The sync view alone: libraries of feed readers send `A-IM: feed` of their own accord, and programs
    /// that use them take the status 226 for an error and lose what came with it.
    #[default]
    Sync,
    /// The reader view too.
    All,
}

/// A dialect of the sync markup (`?sx=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SyncDialect {
    /// SSE 1.0.
    #[default]
    Sse,
    /// FeedSync.
    FeedSync,
    Sse091,
}

/// A form of the links between archive documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistoryLinks {
    /// Of the draft, `previous`.
    Draft05,
    /// Of RFC 5005, `prev-archive` and `next-archive`.
    Rfc5005,
}

fn history_links(text: &str) -> Result<HistoryLinks, String> {
    match text {
        "draft-05" => Ok(HistoryLinks::Draft05),
        "rfc5005" => Ok(HistoryLinks::Rfc5005),
        _ => Err(format!("{text:?} is unknown; write {LINKS_WANTED}")),
    }
}

/// Checks what is written against each other: a subscriber within the window must still be told of
/// every deletion in it.
pub(super) fn check(section: &mut Section<'_, '_, '_>, publish: &mut Publish) {
    let key = if section.is_read("tombstones") { "tombstones" } else { "window" };
    if publish.tombstones < publish.window && section.is_read(key) {
        let (kept, shown) = (super::written(publish.tombstones), super::written(publish.window));
        let message = format!(
            "tombstones are kept {kept:?}, less than the window of {shown:?}; keep them as long \
             as the window or longer"
        );
        section.fault(key, message);
    }
}
