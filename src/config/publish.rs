//! `[publish]`: how feeds are republished, and what is kept of them.

use super::declare::*;
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::model::EndpointId;
use tidegate_core::sync_markup::Dialect;
use tidegate_format::render::LinkForms;
use tidegate_judge::archive::Policy;
use tidegate_store::Retention;

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
/// The forms of links to archives: of the draft, `previous`; of RFC 5005, `prev-archive` and `next-archive`.
const DRAFT: &str = "draft-05";
const RFC: &str = "rfc5005";
/// The same, in words.
const LINKS_WANTED: &str = "a list of \"draft-05\" and \"rfc5005\"";

section! {
    /// How feeds are republished, and what is kept of them.
    pub struct Publish with KEYS {
        /// This gateway's SSE endpoint id; cannot be changed on a used store.
        ///
        /// It is the "by" of every version that the gateway makes. The default is kept in the store.
        endpoint: Option<EndpointId> = parsed("`A-Z`, `a-z`, `0-9`, `.`, `:`, `-`", EndpointId::own).optional(),
            Words("a random one", "\"feeds.example.org\"");
        /// The dialect of the sync markup where a request has no `?sx=`.
        dialect: Dialect = one_of(&[
            ("sse", Dialect::Sse),
            ("feedsync", Dialect::FeedSync),
            ("sse-0.91", Dialect::Sse091),
        ]), Preset("\"sse\"");
        /// The forms of the links between archives.
        history_links: LinkForms = list(LINKS_LIMIT, LINKS_WANTED, history_links).map(|forms| LinkForms {
            draft05: forms.contains(&DRAFT),
            rfc5005: forms.contains(&RFC),
        }), Preset("[\"draft-05\", \"rfc5005\"]");
        /// Relative references become absolute in reader views and archives.
        ///
        /// This is for readers that ignore xml:base, and concerns items and the feed's head. What is
        /// converted has no relative references in any case; the sync and the complete view keep the
        /// publisher's bytes.
        absolute_urls: bool = flag(), Preset("false");
        /// `itunes:new-feed-url` stays as the publisher wrote it.
        ///
        /// Podcast applications that meet one go to that address for ever. Else it says the address of
        /// the feed here.
        keep_new_feed_url: bool = flag(), Preset("false");
        /// The most versions outside archives, and the most entries of an archive.
        archive_entries => archives.entries = number(1..=10_000), Preset("20");
        /// The most updates of one item in a day that make a version each.
        ///
        /// Beyond them its newest state is shown, but makes no version until the day is over.
        versions_per_day: u32 = number(1..=10_000), Preset("24");
        /// How many archives of a feed are kept, how old, and how large in all on disk.
        ///
        /// The oldest go first, whole, and answer 410. The last state of an item that lives stays in
        /// an archive whatever the limits say.
        archives => archives.kept = number(1..=1_000_000), Preset("10000");
        archive_age => archives.age = lasting(KEEPING).optional(), Words("none", "\"3650d\"");
        archive_bytes => archives.bytes = bytes().optional(), Words("none", "\"512MiB\"");
        /// How many versions of an item are kept, how long after their successors came, and how large
        /// they and the past orders of the reader view may be on disk in a feed.
        ///
        /// The newest version of an item stays in any case.
        versions => past.versions = number(1..=1000), Preset("100");
        versions_age => past.age = lasting(VERSIONS_AGE), Words("none", "\"3650d\"");
        versions_bytes => past.bytes = bytes(), Preset("\"256MiB\"");
        /// How long changes stay in the sync view.
        ///
        /// A subscriber who was away longer reads everything anew.
        window: Duration = lasting(KEEPING), Preset("\"30d\"");
        /// How long tombstones are kept; at least the window.
        tombstones: Duration = lasting(KEEPING), Preset("\"180d\"");
        /// The most items of a feed in its complete view, tombstones included.
        ///
        /// Beyond them the oldest that slid off the publisher's window leave it, and are in the archives
        /// alone. One that comes back is the same item as before.
        items: usize = number(ITEMS), Preset("100000");
        /// Which views answer 226 with what changed alone, where a client asks for that (`A-IM:
        /// feed`): `"sync"`, or `"all"` for the reader view too.
        ///
        /// Some feed readers ask for it without knowing what 226 means, and lose posts. Write "all"
        /// only where you know every reader of your feeds.
        deltas: DeltaViews = one_of(&[("sync", DeltaViews::Sync), ("all", DeltaViews::All)]),
            Preset("\"sync\"");
    }
    fields {
        /// How archives are made and kept.
        archives: Policy = Policy::default();
        /// How much is kept of the past of a feed.
        past: Retention = Retention::default();
    }
}

/// Which views are answered with deltas (RFC 3229, `A-IM: feed`) where a client asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeltaViews {
    /// The sync view alone: libraries of feed readers send `A-IM: feed` of their own accord, and programs
    /// that use them take the status 226 for an error and lose what came with it.
    #[default]
    Sync,
    /// The reader view too.
    All,
}

fn history_links(text: &str) -> Result<&'static str, String> {
    let form = [DRAFT, RFC].into_iter().find(|form| *form == text);
    form.ok_or_else(|| format!("{text:?} is unknown; write {LINKS_WANTED}"))
}

/// Checks what is written against each other: a subscriber within the window must still be told of
/// every deletion in it.
pub(super) fn check(section: &mut Section<'_, '_, '_>, publish: &mut Publish) {
    let key = if section.is_read("tombstones") { "tombstones" } else { "window" };
    if publish.tombstones < publish.window && section.is_read(key) {
        let (kept, shown) = (written(publish.tombstones), written(publish.window));
        let message = format!(
            "tombstones are kept {kept:?}, less than the window of {shown:?}; keep them as long \
             as the window or longer"
        );
        section.fault(key, message);
    }
}
