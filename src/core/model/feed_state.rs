//! What a feed is in all: where it stands, and what was learned of it.

use super::{
    Chain, Evictions, FeedNoise, FlawHistory, Format, Gap, HeadHistory, Hold, Lineage, Revision,
    Tick, Time,
};
use serde::{Deserialize, Serialize};

/// What has been learned of how a feed behaves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Character {
    /// Full documents that were compared.
    pub documents: u32,
    /// The most entries that one had.
    pub largest: u32,
    /// Transitions whose common items kept their relative order.
    pub kept_order: u32,
    /// Transitions whose common items changed it.
    pub reordered: u32,
    /// Transitions in which new items came only above the old ones.
    pub grew_above: u32,
    /// Transitions in which new items came below old ones.
    pub grew_below: u32,
    /// Items that were missing with something below them and came back.
    pub holes_returned: u32,
    /// Transitions in which items left from the middle, while others below them stayed.
    pub left_middle: u32,
    /// Transitions in which items left at the end.
    pub left_end: u32,
    /// Transitions in which new items came at the head and nothing left.
    pub came_alone: u32,
    /// Transitions in which new items came at the head and items left at the end alone.
    pub came_sliding: u32,
    /// Transitions in which new items came and others left from the middle.
    pub came_swapping: u32,
}

/// The state of a feed; small.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FeedState {
    /// How many commits it has seen. Set by the store on commit.
    pub revision: Revision,
    /// The last tick, `until`.
    pub tick: Option<Tick>,
    /// The start of the sync view's window: all changes with a greater tick are in it (`since`;
    /// READINGS 1, row 26).
    pub window_start: Option<Tick>,
    /// The greatest tick of an item that left the ledger, or the first window start: the complete view's
    /// lower bound.
    pub complete_start: Option<Tick>,
    /// Raised by every stored change to what is shown.
    pub render_revision: u64,
    /// When what is shown last changed; strictly increasing with `render_revision`. The feed-level
    /// `updated` and `Last-Modified`.
    pub updated_at: Time,
    /// The format of the last document taken in.
    pub format: Format,
    /// Whether the last document said that it lists every entry (`fh:complete`).
    pub says_complete: bool,
    /// Fingerprint of the body as it came over the wire, still compressed.
    pub wire: u128,
    /// Fingerprint of the decompressed body.
    pub body: u128,
    /// Fingerprint of the skeleton.
    pub head: u64,
    /// The site that the feed belongs to: its `Head::link`, else its id.
    pub site: Option<String>,
    /// Fingerprint of the address that the last whole document came from, as configured; 0 where
    /// it is unknown.
    pub source: u64,
    /// When the first whole document came from that address, where another one was polled before: what
    /// was first seen earlier came from elsewhere.
    pub source_since: Option<Time>,
    /// What has been learned of it.
    pub character: Character,
    /// What has been learned of changes that are no news.
    pub noise: FeedNoise,
    /// The document that is held back, if one is.
    pub hold: Option<Hold>,
    /// The earliest time at which evidence that is pending can ripen or a change that waits comes
    /// out, so that a poll that finds the document unchanged needs the ledger only then. By running time, as
    /// all that it follows from.
    pub next_decision_at: Option<Time>,
    /// Items in the last document, in its order.
    pub current: u32,
    /// Items that live, retired ones included.
    pub living: u32,
    /// Tombstones kept.
    pub tombstones: u32,
    /// How many items left the ledger.
    pub evictions: Evictions,
    /// How many sync ids were minted in this feed.
    pub sync_ids_issued: u64,
    /// The archives of its change log.
    pub archives: Chain,
    /// The earliest render revision from which a delta of the reader view tells all that changed
    /// since: before it something changed that no list of entries can say, such as the order of
    /// entries that stayed as they were.
    pub deltas_from: u64,
    /// Up to where the upstream's shared items are known: its `sx:sharing/@until` as it stood when
    /// its items were last merged (SSE 1.0 section 4.1). Never parsed.
    pub upstream_until: Option<String>,
    /// How often an item of a purged feed of this name was updated at most: what is made here begins
    /// above that, for its ids were published before. 0 where nothing was purged.
    pub updates_before: u32,
    /// What is missing of its past, where its store was brought back from a copy.
    pub gap: Option<Gap>,
    /// How far it is known for ill-formed documents.
    pub flaws: FlawHistory,
    /// What was told of its head.
    pub told: HeadHistory,
    /// Under which openings of the store it changed. Set by the store on commit.
    pub lineage: Lineage,
}

impl FeedState {
    /// The state of a feed before its first commit.
    pub fn untouched(format: Format, now: Time) -> Self {
        Self {
            revision: Revision::default(),
            tick: None,
            window_start: None,
            complete_start: None,
            render_revision: 0,
            updated_at: now,
            format,
            says_complete: false,
            wire: 0,
            body: 0,
            head: 0,
            site: None,
            source: 0,
            source_since: None,
            character: Character::default(),
            noise: FeedNoise::default(),
            hold: None,
            next_decision_at: None,
            current: 0,
            living: 0,
            tombstones: 0,
            evictions: Evictions::default(),
            sync_ids_issued: 0,
            archives: Chain::default(),
            deltas_from: 0,
            upstream_until: None,
            updates_before: 0,
            gap: None,
            flaws: FlawHistory::default(),
            told: HeadHistory::default(),
            lineage: Lineage::default(),
        }
    }
}
