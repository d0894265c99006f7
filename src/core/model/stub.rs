//! What is left of an item that left the ledger.

use super::{Count, History, ItemStatus, LedgerEntry, Noise, Origin, SyncId, Tick, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What is kept of an item that left the ledger, so that it comes back as itself: under its sync id and
/// its published id, and with updates that go on above those it had. Its text is in archives alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stub {
    pub id: SyncId,
    /// As [`LedgerEntry::native`].
    pub native: String,
    /// As [`LedgerEntry::native_shown`].
    pub native_shown: String,
    /// As [`LedgerEntry::published_id`].
    pub published_id: String,
    /// As [`LedgerEntry::aliases`].
    pub aliases: Vec<String>,
    pub published: Option<Time>,
    pub updates: Count,
    /// The topmost update, and the one with the greatest sequence of each endpoint: what conflicts are
    /// detected by, and what the next update counts on from.
    pub history: History,
    /// As [`LedgerEntry::noconflicts`].
    pub noconflicts: Option<bool>,
    /// As [`LedgerEntry::sse091`].
    pub sse091: Option<bool>,
    pub origin: Origin,
    /// The tick of its last version.
    pub tick: Tick,
    pub first_seen: Time,
    /// Fingerprint of its newest bytes as they stood in the document.
    pub bytes: u64,
    /// Whether its last version is a tombstone.
    pub deleted: bool,
    /// When it left the ledger.
    pub since: Time,
}

impl Stub {
    /// What is left of an item that leaves the ledger at `now`. `history`: its own, cut down to what is
    /// needed.
    pub fn new(known: &LedgerEntry, history: History, now: Time) -> Self {
        Self {
            id: known.id.clone(),
            native: known.native.clone(),
            native_shown: known.native_shown.clone(),
            published_id: known.published_id.clone(),
            aliases: known.aliases.clone(),
            published: known.published,
            updates: known.updates,
            history,
            noconflicts: known.noconflicts,
            sse091: known.sse091,
            origin: known.origin.clone(),
            tick: known.tick,
            first_seen: known.first_seen,
            bytes: known.bytes,
            deleted: known.is_tombstone(),
            since: now,
        }
    }

    /// One of an observed item of that native id, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[allow(clippy::unwrap_used)]
    pub fn named(name: &str) -> Self {
        use super::{Stamp, Update};
        let at = Time::from_unix(1_767_225_600);
        let update = Update { sequence: Count::ONE, stamp: Stamp::When(at) };
        Self {
            id: SyncId::new("gate.a").unwrap(),
            native: name.to_owned(),
            native_shown: name.to_owned(),
            published_id: name.to_owned(),
            aliases: Vec::new(),
            published: Some(at),
            updates: Count::ONE,
            history: History::new(update),
            noconflicts: None,
            sse091: None,
            origin: Origin::Observed,
            tick: Tick::at(at),
            first_seen: at,
            bytes: 1,
            deleted: false,
            since: at,
        }
    }

    /// The names under which it is found, but for its sync id: the native ids that it bears and bore, and
    /// the id that it was published with. Each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let mut seen = HashSet::new();
        let names = self.aliases.iter().chain([&self.native_shown, &self.published_id]);
        names.map(String::as_str).filter(move |name| seen.insert(*name))
    }

    /// The item as a decision sees it: no view shows it, and whatever makes a version of it takes it back
    /// into the ledger.
    pub fn into_known(self) -> LedgerEntry {
        LedgerEntry {
            id: self.id,
            native: self.native,
            native_shown: self.native_shown,
            published_id: self.published_id,
            aliases: self.aliases,
            title: String::new(),
            link: None,
            enclosure: None,
            published: self.published,
            updated: None,
            updates: self.updates,
            history: self.history,
            noconflicts: self.noconflicts,
            conflicts: 0,
            sse091: self.sse091,
            extras: None,
            origin: self.origin,
            tick: self.tick,
            first_seen: self.first_seen,
            came: self.first_seen,
            standing: ItemStatus::Evicted { since: self.since, deleted: self.deleted },
            absence: None,
            prints: Vec::new(),
            bytes: self.bytes,
            noise: Noise::default(),
            touched: 0,
        }
    }
}

/// How many items left a feed's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = EvictedItems))]
pub struct Evictions {
    /// How many of them are not back.
    pub count: u64,
    /// When the first one left.
    pub since: Option<Time>,
    /// When the last one left.
    pub latest: Option<Time>,
}

impl Evictions {
    /// Notes that `left` items left at `now`, and that `back` ones came back.
    pub fn note(&mut self, left: usize, back: usize, now: Time) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.count = self.count.saturating_add(number(left)).saturating_sub(number(back));
        if left > 0 {
            self.since.get_or_insert(now);
            self.latest = self.latest.max(Some(now));
        }
    }
}
