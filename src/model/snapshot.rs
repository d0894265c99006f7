//! What the store knows of a feed.

use super::{
    ArchiveNote, Chain, Doubts, EndpointId, FeedName, FeedNoise, FlawHistory, Format, Gap,
    HeadHistory, HeldEntry, History, Lineage, Markup, Noise, Probe, Shared, SyncExtras, SyncId,
    Tick, Time, Version,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many commits a feed has seen; compared and set by every commit. Zero: none yet.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

/// Why an item is missing from a document (JUDGEMENT, Absence). Evidence, not yet a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It slid off the end of the window: everything that was below it is gone as well.
    Aged,
    /// It is gone while something that stood below it stays.
    Hole,
    /// It is gone from a document that lists everything.
    Complete,
    /// It is gone with many others from a feed that has kept everything so far.
    Mass,
    /// It is gone from the middle, and the window has gone past it since without bringing it back.
    Passed,
    /// The upstream says that it is gone.
    Said,
    /// It is gone and nothing can be concluded from where it stood.
    Unplaced,
}

impl Evidence {
    /// The word for it in reasons.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aged => "aged",
            Self::Hole => "hole",
            Self::Complete => "complete",
            Self::Mass => "mass",
            Self::Passed => "passed",
            Self::Said => "said",
            Self::Unplaced => "unplaced",
        }
    }
}

/// An item that is missing, and since when it has been seen missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Absence {
    pub evidence: Evidence,
    /// When it was first seen missing.
    pub since: Time,
    /// Full observations that agreed, the first one included, up to the last commit.
    pub observations: u32,
    /// Whether an older item came back at the end of the window when this one went.
    pub backfilled: bool,
    /// What has to be learned of the feed before the hole means anything; only of evidence
    /// [`Evidence::Unplaced`].
    pub doubts: Doubts,
    /// What was seen and what objects to a deletion, in words; at most [`Absence::SEEN_LIMIT`]
    /// bytes. Empty where an earlier program noted the evidence without them.
    pub seen: String,
    /// What the item's own address said, where it was asked.
    pub probe: Option<Probe>,
}

impl Absence {
    /// The most bytes of what was seen.
    pub const SEEN_LIMIT: usize = 300;

    /// What was seen, in words; the evidence's name where there are none.
    pub fn describe(&self) -> &str {
        if self.seen.is_empty() { self.evidence.name() } else { &self.seen }
    }
}

/// What an item is to its upstream now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ItemStatus {
    /// In the last full document, or missing from it for too short a time to conclude anything.
    Current,
    /// Slid off the end; lives on in the complete feed.
    Retired {
        /// Since when.
        since: Time,
    },
    /// Taken away by its publisher: a tombstone.
    Deleted {
        /// Since when.
        since: Time,
    },
    /// Its text was removed by the operator: a tombstone that stays one, whatever the upstream
    /// still lists.
    Redacted {
        /// Since when.
        since: Time,
    },
    /// Discarded: its publisher, who shares it, does not list it in its complete feed any more, and
    /// this gateway had missed why (SSE 1.0 section 4.1.2 step 2.a.ii). It is in no view and no
    /// tombstone; the ledger keeps it, so that it comes back under the same ids.
    Discarded {
        /// Since when.
        since: Time,
    },
}

/// Who keeps an item: what its versions come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Origin {
    /// Its publisher writes plain entries: this gateway compares them and makes the versions.
    #[default]
    Observed,
    /// Its publisher shares it: its versions come with it, and are merged (SSE 1.0 section 3.3).
    Upstream,
    /// It was made here, by a person or a program.
    Local,
    /// Another feed of this gateway, which it was taken over from. The first one owns its id: others
    /// change it only where the operator says that they share.
    Feed(FeedName),
}

impl Origin {
    /// Whether its versions come with it, so that nothing is concluded from how it looks or from its
    /// absence.
    pub const fn is_shared(&self) -> bool {
        !matches!(self, Self::Observed)
    }
}

/// An item as the ledger knows it: identity, fingerprints, history; no body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Its sync id; minted once.
    pub id: SyncId,
    /// Its native identity as it now stands: Atom id, guid or `rdf:about`, else link, else
    /// `title:` and the title; with a suffix where a document repeats it.
    pub native: String,
    /// The native id as the document writes it, without suffix (what `native_id` shows outside).
    pub native_shown: String,
    /// The id it is published with, for ever.
    pub published_id: String,
    /// Native identities it had before, newest first, at most [`LedgerEntry::ALIAS_LIMIT`].
    pub aliases: Vec<String>,
    /// The title, plain text.
    pub title: String,
    pub link: Option<String>,
    /// The first enclosure.
    pub enclosure: Option<String>,
    /// When its publisher says that it was published.
    pub published: Option<Time>,
    /// When its publisher says that it was updated.
    pub updated: Option<Time>,
    /// How many updates were applied, and by whom and when; the topmost is the current version's.
    pub updates: super::Count,
    /// The update history of the current version.
    pub history: History,
    /// `noconflicts` as its creator set it (SSE 1.0 section 2.4).
    pub noconflicts: Option<bool>,
    /// How many versions are in conflict with the current one.
    pub conflicts: u32,
    /// Where it is known by SSE 0.91 alone, so that it is merged by that (its section 4.4): its
    /// `conflict` attribute.
    pub sse091: Option<bool>,
    /// What its `sx:sync` says beyond SSE; `None` where that is nothing.
    pub extras: Option<Box<SyncExtras>>,
    /// Who keeps it.
    pub origin: Origin,
    /// The tick of the current version.
    pub tick: Tick,
    /// When it was first seen.
    pub first_seen: Time,
    /// When it last came into the document: when it was first seen, or when it was there again after
    /// it had been missing from a whole document.
    pub came: Time,
    /// What it is to its upstream now.
    pub standing: ItemStatus,
    /// Since when and why it is missing, while it is current and missing.
    pub absence: Option<Absence>,
    /// Fingerprint of each field of the projection of its newest bytes: (path, value).
    pub prints: Vec<(u64, u64)>,
    /// Fingerprint of its newest bytes as they stood in the document.
    pub bytes: u64,
    /// How it changes without making versions.
    pub noise: Noise,
    /// The render revision since which it is shown as it is: that of its newest bytes, of its
    /// version, or of its coming (back) into the reader view, whichever is the latest.
    pub touched: u64,
}

impl LedgerEntry {
    /// The most former identities kept of an item.
    pub const ALIAS_LIMIT: usize = 8;

    /// Whether it does not live: its current version is a tombstone, or it was discarded.
    pub const fn is_deleted(&self) -> bool {
        self.is_tombstone() || self.is_discarded()
    }

    /// Whether its current version is a tombstone.
    pub const fn is_tombstone(&self) -> bool {
        matches!(self.standing, ItemStatus::Deleted { .. } | ItemStatus::Redacted { .. })
    }

    /// Whether it was discarded: no view shows it, and nothing says that it is deleted.
    pub const fn is_discarded(&self) -> bool {
        matches!(self.standing, ItemStatus::Discarded { .. })
    }

    /// Whether its text was removed by the operator.
    pub const fn is_redacted(&self) -> bool {
        matches!(self.standing, ItemStatus::Redacted { .. })
    }

    /// What `sx:sync` says of its current version, with `data` for what it says itself.
    pub fn version<D>(&self, data: D) -> Version<D> {
        Version {
            id: self.id.clone(),
            updates: self.updates,
            deleted: self.is_tombstone(),
            noconflicts: self.noconflicts,
            history: self.history.clone(),
            data,
        }
    }
}

/// What an operator decides about a held document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It is taken in at the next look.
    Release,
    /// It is not taken in; another document is judged anew.
    Drop,
}

/// A document that is held back by the brake.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hold {
    /// Why, in words with the evidence.
    pub reason: String,
    /// Which rule holds it: `empty`, `shrunken`, `other-feed`, `re-keyed`, `mass-changed`.
    pub kind: String,
    /// Since when.
    pub since: Time,
    /// Full observations that agreed, the first one included, up to the last commit.
    pub observations: u32,
    /// How many different documents were held in a row, up to the last commit.
    pub documents: u32,
    /// Fingerprint of the last of them.
    pub body: u64,
    /// Fingerprint of the address that sent them; 0 where it is unknown.
    pub source: u64,
    /// How many entries that were seen only in held documents are kept.
    pub kept: u32,
    /// What the operator decided about it.
    pub decision: Option<Decision>,
}

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
    /// Transitions in which items left from the middle and nothing came.
    pub went_alone: u32,
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
    /// The greatest tick of a purged tombstone, or the first window start: the complete view's
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
    /// out, so that a poll that finds the document unchanged needs the ledger only then.
    pub next_decision_at: Option<Time>,
    /// Items in the last document, in its order.
    pub current: u32,
    /// Items that live, retired ones included.
    pub living: u32,
    /// Tombstones kept.
    pub tombstones: u32,
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

/// Everything that judging a document needs: the state, the ledger, the order of the reader view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The feed's state.
    pub state: FeedState,
    /// Every known item, in order of sync id: what is judged must not depend on chance.
    pub known: Vec<LedgerEntry>,
    /// The items of the last document that was taken in, in its order.
    pub order: Vec<SyncId>,
    /// Entries that were seen only in held documents, while one is held.
    pub kept: Vec<HeldEntry>,
    /// The oldest archives kept, oldest first, at most [`Snapshot::OLDEST_ARCHIVES`].
    pub archives: Vec<ArchiveNote>,
    /// The versions in conflict with the current one, of the items that have any.
    pub conflicts: BTreeMap<SyncId, Vec<Version<Markup>>>,
}

impl Snapshot {
    /// How many of the oldest archives a snapshot shows. What is not shown is not dropped for its
    /// age.
    pub const OLDEST_ARCHIVES: usize = 16;

    /// A feed that nothing was committed to.
    pub fn untouched(format: Format, now: Time) -> Self {
        Self {
            state: FeedState::untouched(format, now),
            known: Vec::new(),
            order: Vec::new(),
            kept: Vec::new(),
            archives: Vec::new(),
            conflicts: BTreeMap::new(),
        }
    }

    /// The same with other items, in this order of the reader view. Its own are not copied.
    pub fn with_items(&self, known: Vec<LedgerEntry>, order: Vec<SyncId>) -> Self {
        Self {
            state: self.state.clone(),
            known,
            order,
            kept: self.kept.clone(),
            archives: self.archives.clone(),
            conflicts: self.conflicts.clone(),
        }
    }
}

/// An item with its bytes, as views need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The current version, with the newest bytes (for a tombstone: the last ones), and conflicts.
    pub shared: Shared<Markup>,
    /// The id it is published with.
    pub published_id: String,
    /// The tick of the current version.
    pub tick: Tick,
    /// What it is to its upstream.
    pub standing: ItemStatus,
    /// As [`LedgerEntry::sse091`].
    pub sse091: Option<bool>,
    /// As [`LedgerEntry::extras`].
    pub extras: Option<Box<SyncExtras>>,
    /// The render revision since which it is shown as it is ([`LedgerEntry::touched`]).
    pub touched: u64,
}

impl Item {
    /// Whether it was discarded.
    pub const fn is_discarded(&self) -> bool {
        matches!(self.standing, ItemStatus::Discarded { .. })
    }

    /// The endpoint that made the current version, where it is known.
    pub const fn by(&self) -> Option<&EndpointId> {
        self.shared.winner.history.topmost().stamp.by()
    }
}
