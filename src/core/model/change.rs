//! What one poll adds to the store: all of it or nothing.

use super::{
    Entry, FeedName, FeedState, Format, IndexUpdate, LedgerEntry, Markup, Revision, Seal, Skeleton,
    SyncId, Tick, Time, Version,
};
use serde::{Deserialize, Serialize};

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = EventWord))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It was seen for the first time.
    Created,
    /// What a reader would see of it changed.
    Updated,
    /// Its publisher took it away.
    Deleted,
    /// A deleted item is there again.
    Undeleted,
    /// It slid off the end of the upstream's window.
    Retired,
    /// A retired item is there again, unchanged.
    Returned,
    /// It goes by another native id from now on.
    Rekeyed,
    /// It was found in an older document of its publisher: it was never new to readers.
    Backfilled,
    /// Its publisher's complete feed does not list it any more, and this gateway had missed why.
    Discarded,
}

impl EventKind {
    /// What polls lead to, in the order of the contract.
    pub const ALL: [Self; 7] = [
        Self::Created,
        Self::Updated,
        Self::Deleted,
        Self::Undeleted,
        Self::Retired,
        Self::Returned,
        Self::Rekeyed,
    ];

    /// The contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Undeleted => "undeleted",
            Self::Retired => "retired",
            Self::Returned => "returned",
            Self::Rekeyed => "rekeyed",
            Self::Backfilled => "backfilled",
            Self::Discarded => "discarded",
        }
    }

    /// What happened, in the words of a reader.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Created => "new",
            Self::Updated => "edited",
            Self::Deleted => "deleted",
            Self::Undeleted => "restored",
            Self::Retired => "scrolled off",
            Self::Returned => "back",
            Self::Rekeyed => "renamed",
            Self::Backfilled => "older, taken in",
            Self::Discarded => "discarded",
        }
    }
}

/// Something that happened to an item, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which item.
    #[serde(rename = "sync_id")]
    pub id: SyncId,
    /// The item's native id as it now stands (CONTRACT, `replay`).
    pub native_id: String,
    /// The native id before, for [`EventKind::Rekeyed`].
    pub old_native_id: Option<String>,
    /// The item's title.
    pub title: String,
    /// The tick of the version that it made, where it made one.
    pub tick: Option<Tick>,
    /// Why, in words with the evidence.
    pub reason: String,
    /// When the gateway saw it.
    pub at: Time,
    /// When the item was first seen missing, for a deletion that was confirmed later.
    pub seen_gone: Option<Time>,
}

/// A new version of an item. Its `sx:sync` is that of the [`LedgerEntry`] of the same id in the
/// same [`Change`], whose tick it bears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// The item.
    pub id: SyncId,
    /// Its bytes; `None` where it keeps the newest bytes that the item had: a tombstone, and a
    /// change that waited for its version.
    pub markup: Option<Markup>,
    /// Why the version was made.
    pub reason: String,
}

/// The versions that are in conflict with an item's current one, after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicting {
    /// The item.
    pub id: SyncId,
    /// The versions; none where nothing is in conflict any more. One without bytes has the newest
    /// ones that the item had before the change, as whose current version it was shown until now.
    pub versions: Vec<Version<Option<Markup>>>,
}

impl Conflicting {
    /// The most versions in conflict with one item's current one.
    pub const LIMIT: usize = 100;
}

/// One commit to one feed: applied whole or not at all, durable before it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub feed: FeedName,
    /// The revision that the change was computed from. The commit fails if it is not the feed's.
    pub base: Revision,
    /// When the observation was made.
    pub at: Time,
    /// When the document was asked for that the change comes from; `None` where it comes from no
    /// poll.
    pub asked_at: Option<Time>,
    /// The tick of the versions, or of a change of the head that is told; `None` where there are
    /// neither.
    pub tick: Option<Tick>,
    /// The feed's new state (the store sets its revision).
    pub state: FeedState,
    /// The new skeleton, where it changed.
    pub skeleton: Option<Skeleton>,
    /// The new order of the reader view, where it changed.
    pub order: Option<Vec<SyncId>>,
    /// Ledger entries that are new or changed.
    pub known: Vec<LedgerEntry>,
    /// What becomes of the index of the ledger.
    pub index: IndexUpdate,
    /// New versions; each item at most once.
    pub versions: Vec<NewVersion>,
    /// Newest bytes of items that did not make a version; each item at most once, and none that is
    /// in `versions`.
    pub latest: Vec<(SyncId, Markup)>,
    /// What is in conflict, of items of which that changes. Each has a ledger entry here that bears
    /// the number of them.
    pub conflicts: Vec<Conflicting>,
    /// What is kept of held documents, where it changed. Without a hold in `state` nothing is kept.
    pub kept: Option<Vec<HeldEntry>>,
    /// Items whose text goes: all bytes that are kept of them but those in this change, the titles
    /// of their versions and events, and what archives that are kept have of them: these are
    /// changed in place, under the same addresses, and a deletion stands in its place. Each has a
    /// ledger entry here, and bytes to stand in for those that go: in its version, else in
    /// `latest`.
    pub redacted: Vec<SyncId>,
    /// What is left of items that leave the ledger ([`LedgerEntry::stub`]), and all that is kept of them
    /// but in archives.
    /// None of them changes in this change, and none is in the order.
    pub evicted: Vec<LedgerEntry>,
    /// Items that had left the ledger and come back: their stubs go. Each has a version here, with
    /// bytes.
    pub reinstated: Vec<SyncId>,
    /// What happened, for people.
    pub events: Vec<Event>,
    /// Segments to seal, in order of their numbers; the last of them is `state.archives.newest`.
    /// Archives whose numbers are below `state.archives.first` are dropped.
    pub seals: Vec<Seal>,
}

// Entries that were seen only in documents that are held back.

/// An entry of a held document that is no known item. It is no item yet: it becomes one when the
/// hold ends, if the document that ends it does not have it (JUDGEMENT, Brakes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldEntry {
    /// The entry, as it was last seen.
    pub entry: Entry<'static>,
    /// The format of the document that it stood in.
    pub format: Format,
    /// When it was first seen.
    pub since: Time,
    /// Whether it was seen only in documents that are held for being another feed's.
    pub foreign: bool,
}

impl HeldEntry {
    /// The most entries kept of one feed.
    pub const ENTRIES_LIMIT: usize = 200;
    /// The most bytes of markup and values kept of one feed.
    pub const BYTES_LIMIT: usize = 1 << 20;

    /// How many bytes of markup and values it takes.
    pub fn size(&self) -> usize {
        let entry = &self.entry;
        let texts = [&entry.native_id, &entry.link, &entry.title, &entry.author];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        let fields = entry.fields().iter().map(|f| f.path.len() + f.value.len());
        entry.markup.len() + texts.chain(fields).sum::<usize>()
    }
}

// What a missing item's own address said when it was asked.

/// What a missing item's own address said. It is evidence beside that of the documents, kept as
/// long as the item is missing, so that a restart does not ask again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// How often it was asked, answered or not.
    pub asked: u32,
    /// When it was asked last.
    pub last: Time,
    /// What it said, where any answer said something.
    pub heard: Option<ProbeAnswer>,
    /// Why the last answer said nothing, where it did not; at most [`Probe::SILENCE_LIMIT`] bytes.
    pub silence: Option<String>,
}

/// An answer that says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeAnswer {
    /// That the item is gone; otherwise that it is there.
    pub gone: bool,
    /// The status of the newest such answer.
    pub status: u16,
    /// When it was said first; nothing to the contrary was said since.
    pub first: Time,
    /// When it was said last.
    pub last: Time,
}

impl Probe {
    /// The longest reason for an answer that says nothing, in bytes.
    pub const SILENCE_LIMIT: usize = 200;
}
