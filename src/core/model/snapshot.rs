//! What the store knows of a feed.

use super::{
    ArchiveNote, Doubts, FeedName, FeedState, Format, FoundItems, HeldEntry, History, IndexKey,
    Markup, Noise, Probe, SettledItems, SyncExtras, SyncId, Tick, Time, Version,
};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many commits a feed has seen; compared and set by every commit. Zero: none yet.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Revision(pub u64);

/// Why an item is missing from a document (JUDGEMENT, Absence). Evidence, not yet a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It slid off the end of the window: everything that was below it is gone as well.
    Aged,
    /// It is gone while something that stood below it stays.
    Hole,
    /// It is gone from a document that lists everything.
    Complete,
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
    /// What has to be learned of the feed before the hole means anything; only of evidence
    /// [`Evidence::Unplaced`].
    pub doubts: Doubts,
    /// What was seen and what objects to a deletion, in words; at most [`Absence::SEEN_LIMIT`]
    /// bytes.
    pub seen: String,
    /// What the item's own address said, where it was asked.
    pub probe: Option<Probe>,
}

impl Absence {
    /// The most bytes of what was seen.
    pub const SEEN_LIMIT: usize = 300;
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
    /// It left the ledger: a stub of it is kept ([`LedgerEntry::stub`]), apart from the ledger. That
    /// stands in a snapshot where a decision may take the item back.
    Evicted {
        /// When it left.
        since: Time,
        /// Whether it left as a tombstone.
        deleted: bool,
    },
    /// In the last full document, and older than all that was known when it came in below its old end: it
    /// lives in the complete feed, and readers are never shown it.
    Older {
        /// Since when; the time of its first sight.
        since: Time,
    },
}

impl ItemStatus {
    /// Whether its publisher lists it, or takes too short a time without it to conclude anything.
    pub const fn is_listed(&self) -> bool {
        matches!(self, Self::Current | Self::Older { .. })
    }

    /// Whether it is in the complete feed and no tombstone there.
    pub const fn lives(&self) -> bool {
        matches!(self, Self::Current | Self::Retired { .. } | Self::Older { .. })
    }

    /// Whether it left the ledger and was no tombstone then.
    pub const fn left_alive(&self) -> bool {
        matches!(self, Self::Evicted { deleted: false, .. })
    }
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
    /// Another feed of this gateway, which it was taken over from. The first one owns its id:
    /// others change it only where the operator says that they share.
    Feed(FeedName),
}

impl Origin {
    /// Whether its versions come with it, so that nothing is concluded from how it looks or from
    /// its absence.
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
    /// `title:` and the title (what `native_id` shows outside).
    pub native_shown: String,
    /// The id it is published with, for ever.
    pub published_id: String,
    /// Native identities it had before, newest first, at most [`LedgerEntry::ALIAS_LIMIT`].
    pub aliases: Vec<String>,
    /// The title, plain text.
    pub title: String,
    pub link: Option<String>,
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
    /// When it last came into the document: when it was first seen, or when it was there again
    /// after it had been missing from a whole document.
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

    /// Gives it another native identity. The one that it had is kept among its aliases if `keeps_old`.
    pub fn rename(&mut self, shown: &str, keeps_old: bool) {
        let old = std::mem::replace(&mut self.native_shown, shown.to_owned());
        self.aliases.retain(|alias| *alias != old && *alias != shown);
        if keeps_old {
            self.aliases.insert(0, old);
            self.aliases.truncate(Self::ALIAS_LIMIT);
        }
    }

    /// What is kept of the item once it leaves the ledger at `now`, so that it comes back as itself:
    /// under its ids, and with updates that go on above those it had. Its text is in archives alone.
    /// `history`: its own, cut to what conflicts are detected by.
    #[must_use]
    pub fn stub(&self, history: History, now: Time) -> Self {
        Self {
            history,
            title: String::new(),
            link: None,
            updated: None,
            conflicts: 0,
            extras: None,
            came: self.first_seen,
            standing: ItemStatus::Evicted { since: now, deleted: self.is_tombstone() },
            absence: None,
            prints: Vec::new(),
            noise: Noise::default(),
            touched: 0,
            ..self.clone()
        }
    }

    /// The names under which it is found once it left: its sync id, the native ids that it bears and
    /// bore, and its published id. Each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        let others = self.aliases.iter().chain([&self.native_shown, &self.published_id]);
        let names = std::iter::once(self.id.as_str()).chain(others.map(String::as_str));
        names.filter(move |name| seen.insert(*name))
    }

    /// Whether it does not live: its current version is a tombstone, or it is in no view.
    pub const fn is_deleted(&self) -> bool {
        self.is_tombstone() || self.is_hidden()
    }

    /// Why it is missing from the publisher's document, while nothing is decided about that.
    pub fn pending_absence(&self) -> Option<&Absence> {
        self.absence.as_ref().filter(|_| self.standing == ItemStatus::Current)
    }

    /// Whether its current version is a tombstone.
    pub const fn is_tombstone(&self) -> bool {
        matches!(self.standing, ItemStatus::Deleted { .. } | ItemStatus::Redacted { .. })
    }

    /// Whether it was discarded: no view shows it, and nothing says that it is deleted.
    pub const fn is_discarded(&self) -> bool {
        matches!(self.standing, ItemStatus::Discarded { .. })
    }

    /// Whether it left the ledger, and stands in a snapshot as what is left of it.
    pub const fn is_evicted(&self) -> bool {
        matches!(self.standing, ItemStatus::Evicted { .. })
    }

    /// Whether it is in no view: it was discarded, or left the ledger.
    pub const fn is_hidden(&self) -> bool {
        self.is_discarded() || self.is_evicted()
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = HoldDecision))]
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
    /// Since when documents were held in a row, those included that an operator dropped: what was
    /// first seen later was let in.
    pub row_since: Time,
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

impl Hold {
    /// Why, as it is told and noted: the rule and its evidence.
    pub fn describe(&self) -> String {
        format!("{}: {}", self.kind, self.reason)
    }
}

/// Everything that judging a document needs: the state, the ledger, the order of the reader view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// The feed's state.
    pub state: FeedState,
    /// Every known item, or those of them that were read, in order of sync id: what is judged must
    /// not depend on chance.
    pub known: Vec<LedgerEntry>,
    /// The settled items that `known` lacks; `None` where it has every item.
    pub settled: Option<SettledItems>,
    /// The items outside `order` that are not settled; `None` where the ledger has no index yet.
    pub unsettled: Option<Vec<SyncId>>,
    /// The items of the last document that was taken in, in its order.
    pub order: Vec<SyncId>,
    /// Entries that were seen only in held documents, while one is held.
    pub kept: Vec<HeldEntry>,
    /// The oldest archives kept, oldest first, at most [`Snapshot::OLDEST_ARCHIVES`].
    pub archives: Vec<ArchiveNote>,
    /// The versions in conflict with the current one, of the items that have any.
    pub conflicts: BTreeMap<SyncId, Vec<Version<Markup>>>,
    /// The keys, as the store has them, of the items whose fingerprints were made anew since they were read.
    pub outdated: Vec<(SyncId, Vec<IndexKey>)>,
}

impl Snapshot {
    /// How many of the oldest archives a snapshot shows. What is not shown is not dropped for its
    /// age.
    pub const OLDEST_ARCHIVES: usize = 16;

    /// The items that it has, the newest first. Those that were first seen together are in the
    /// order of the document, then of publication.
    pub fn newest_first(&self) -> Vec<&LedgerEntry> {
        let places: HashMap<&SyncId, usize> =
            self.order.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let mut known: Vec<&LedgerEntry> = self.known.iter().collect();
        known.sort_by_key(|known| {
            let place = places.get(&known.id).copied().unwrap_or(usize::MAX);
            (Reverse(known.first_seen), place, Reverse(known.published), &known.id)
        });
        known
    }

    /// A feed that nothing was committed to.
    pub fn untouched(format: Format, now: Time) -> Self {
        Self { state: FeedState::untouched(format, now), ..Self::default() }
    }

    /// The same with items that left the ledger among the known ones, so that what comes back is
    /// known.
    #[must_use]
    pub fn with_stubs(mut self, stubs: impl IntoIterator<Item = LedgerEntry>) -> Self {
        self.add(stubs.into_iter());
        self
    }

    /// The same with items that were found; `None` where it has all of them already, and they say nothing of
    /// others.
    #[must_use]
    pub fn with_found(&self, found: FoundItems) -> Option<Self> {
        let is_there = |item: &LedgerEntry| self.find(&item.id).is_some();
        if found.oldest_to.is_none() && found.items.iter().all(is_there) {
            return None;
        }
        let mut more = self.clone();
        let (living, tombstones) = more.add(found.items.into_iter());
        if let Some(settled) = &mut more.settled {
            settled.living = settled.living.saturating_sub(living);
            settled.tombstones = settled.tombstones.saturating_sub(tombstones);
            settled.after = settled.after.max(found.oldest_to);
        }
        Some(more)
    }

    /// The same with the items of `other` that had left the ledger.
    #[must_use]
    pub fn with_evicted(mut self, other: &Self) -> Self {
        self.add(other.known.iter().filter(|known| known.is_evicted()).cloned());
        self
    }

    /// How many items the ledger has, those included that were not read.
    pub fn size(&self) -> usize {
        let settled = self.settled.map_or(0, |s| s.living.saturating_add(s.tombstones));
        self.known.len().saturating_add(usize::try_from(settled).unwrap_or(usize::MAX))
    }

    /// The item with an id, where it was read.
    pub fn find(&self, id: &SyncId) -> Option<&LedgerEntry> {
        self.known.get(self.position(id)?)
    }

    /// The index of the item with an id in `known`.
    pub fn position(&self, id: &SyncId) -> Option<usize> {
        self.known.binary_search_by(|known| known.id.cmp(id)).ok()
    }

    /// Adds items that are not there; how many of them live, and how many are tombstones.
    fn add(&mut self, items: impl Iterator<Item = LedgerEntry>) -> (u32, u32) {
        let mut new: Vec<LedgerEntry> =
            items.filter(|item| self.find(&item.id).is_none()).collect();
        if new.is_empty() {
            return (0, 0);
        }
        new.sort_by(|one, other| one.id.cmp(&other.id));
        new.dedup_by(|one, other| one.id == other.id);
        let (mut living, mut tombstones) = (0_u32, 0_u32);
        for item in new.iter().filter(|item| !item.is_hidden()) {
            let count = if item.is_deleted() { &mut tombstones } else { &mut living };
            *count = count.saturating_add(1);
        }
        self.known.extend(new);
        self.known.sort_by(|one, other| one.id.cmp(&other.id));
        (living, tombstones)
    }

    /// The same with other items, in this order of the reader view. Its own are not copied.
    pub fn with_items(&self, known: Vec<LedgerEntry>, order: Vec<SyncId>) -> Self {
        Self {
            state: self.state.clone(),
            known,
            settled: self.settled,
            unsettled: self.unsettled.clone(),
            order,
            kept: self.kept.clone(),
            archives: self.archives.clone(),
            conflicts: self.conflicts.clone(),
            outdated: self.outdated.clone(),
        }
    }
}
