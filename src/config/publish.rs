//! `[publish]`: how feeds are republished, and what is kept of them.

use super::section::Section;
use super::size::size;
use crate::model::{EndpointId, VERSIONS_PER_DAY};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

pub(super) const KEYS: &[&str] = &[
    "endpoint",
    "dialect",
    "history_links",
    "absolute_urls",
    "archive_entries",
    "versions_per_day",
    "archives",
    "archive_age",
    "archive_bytes",
    "versions",
    "versions_age",
    "versions_bytes",
    "window",
    "tombstones",
    "deltas",
];

/// What the window and the keeping of tombstones may be.
const KEEPING: RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(3650 * 86_400);

/// How many versions may stay unsealed.
const ARCHIVE_ENTRIES: RangeInclusive<u32> = 1..=10_000;
/// How many archives may be kept of a feed.
const ARCHIVES: RangeInclusive<u32> = 1..=1_000_000;

/// How many versions may be kept of an item.
const VERSIONS: RangeInclusive<u32> = 1..=1000;
/// How long what lost its place may be kept: up to a hundred years.
const VERSIONS_AGE: RangeInclusive<Duration> =
    Duration::from_secs(3600)..=Duration::from_secs(36_525 * 86_400);

/// How many updates of one item in a day may make a version each.
const VERSIONS_PER_DAY_RANGE: RangeInclusive<u32> = 1..=10_000;

/// How feeds are republished, and what is kept of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// This gateway's SSE endpoint id; `None`: a random one, kept in the store.
    pub endpoint: Option<EndpointId>,
    /// The dialect of the sync markup where a request names none.
    pub dialect: SyncDialect,
    /// Which forms of archive links are written.
    pub history_links: BTreeSet<HistoryLinks>,
    /// Whether reader views write relative references as absolute addresses.
    pub absolute_urls: bool,
    /// The most versions that stay unsealed.
    pub archive_entries: u32,
    /// The most archives kept of a feed.
    pub archives: u32,
    /// How long an archive is kept; `None`: for ever.
    pub archive_age: Option<Duration>,
    /// The most bytes that a feed's archives may take on disk; `None`: no limit.
    pub archive_bytes: Option<u64>,
    /// The most versions kept of an item.
    pub versions: u32,
    /// How long a version, or an order of the reader view, is kept after another took its place;
    /// `None`: for ever.
    pub versions_age: Option<Duration>,
    /// The most bytes that the versions and past orders of a feed may take on disk.
    pub versions_bytes: u64,
    /// How long changes stay in the sync view.
    pub window: Duration,
    /// How long tombstones are kept.
    pub tombstones: Duration,
    /// The most updates of one item in a day that make a version each.
    pub versions_per_day: u32,
    /// Which views are answered with deltas where a client asks for them.
    pub deltas: Deltas,
}

impl Default for Publish {
    fn default() -> Self {
        Self {
            endpoint: None,
            dialect: SyncDialect::Sse,
            history_links: BTreeSet::from([HistoryLinks::Draft05, HistoryLinks::Rfc5005]),
            absolute_urls: false,
            archive_entries: 20,
            archives: 10_000,
            archive_age: None,
            archive_bytes: None,
            versions: 100,
            versions_age: None,
            versions_bytes: 256 << 20,
            window: Duration::from_secs(30 * 86_400),
            tombstones: Duration::from_secs(180 * 86_400),
            versions_per_day: VERSIONS_PER_DAY,
            deltas: Deltas::Sync,
        }
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

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Publish {
    let default = Publish::default();
    let endpoint = section.text("endpoint", EndpointId::own);
    let dialect = section.choice(
        "dialect",
        &[
            ("sse", SyncDialect::Sse),
            ("feedsync", SyncDialect::FeedSync),
            ("sse-0.91", SyncDialect::Sse091),
        ],
    );
    let history_links = history_links(section);
    let absolute_urls = section.boolean("absolute_urls");
    let archive_entries = section.number("archive_entries", &ARCHIVE_ENTRIES);
    let versions_per_day = section.number("versions_per_day", &VERSIONS_PER_DAY_RANGE);
    let archives = section.number("archives", &ARCHIVES);
    let archive_age = section.duration("archive_age", &KEEPING);
    let archive_bytes = section.text("archive_bytes", size);
    let versions = section.number("versions", &VERSIONS);
    let versions_age = section.duration("versions_age", &VERSIONS_AGE);
    let versions_bytes = section.text("versions_bytes", size);
    let window_written = section.duration("window", &KEEPING);
    let tombstones_written = section.duration("tombstones", &KEEPING);
    let deltas = section.choice("deltas", &[("sync", Deltas::Sync), ("all", Deltas::All)]);
    let window = window_written.unwrap_or(default.window);
    let tombstones = tombstones_written.unwrap_or(default.tombstones);
    // A subscriber within the window must still be told of every deletion in it.
    if tombstones < window && (window_written.is_some() || tombstones_written.is_some()) {
        let key = if tombstones_written.is_some() { "tombstones" } else { "window" };
        let (kept, shown) = (super::written(tombstones), super::written(window));
        let message = format!(
            "tombstones are kept {kept:?}, less than the window of {shown:?}; keep them as long \
             as the window or longer"
        );
        section.fault(key, message);
    }
    Publish {
        endpoint,
        dialect: dialect.unwrap_or(default.dialect),
        history_links: history_links.unwrap_or(default.history_links),
        absolute_urls: absolute_urls.unwrap_or(default.absolute_urls),
        archive_entries: archive_entries.unwrap_or(default.archive_entries),
        archives: archives.unwrap_or(default.archives),
        archive_age,
        archive_bytes,
        versions: versions.unwrap_or(default.versions),
        versions_age,
        versions_bytes: versions_bytes.unwrap_or(default.versions_bytes),
        window,
        tombstones,
        versions_per_day: versions_per_day.unwrap_or(default.versions_per_day),
        deltas: deltas.unwrap_or(default.deltas),
    }
}

fn history_links(section: &mut Section<'_, '_, '_>) -> Option<BTreeSet<HistoryLinks>> {
    const KEY: &str = "history_links";
    const WANTED: &str = "a list of \"draft-05\" and \"rfc5005\"";
    // Longer than any right answer, so that every wrong word is named.
    const LIMIT: usize = 16;
    let mut links = BTreeSet::new();
    for (span, text) in section.list(KEY, LIMIT, WANTED)? {
        let link = match text {
            "draft-05" => HistoryLinks::Draft05,
            "rfc5005" => HistoryLinks::Rfc5005,
            _ => {
                section.fault_at(&span, KEY, format!("{text:?} is unknown; write {WANTED}"));
                continue;
            }
        };
        if !links.insert(link) {
            section.fault_at(&span, KEY, format!("{text:?} stands here twice"));
        }
    }
    Some(links)
}
