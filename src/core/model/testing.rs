//! Values for tests, of this crate and of others.

use super::{
    Absence, Change, Count, Doubts, Evidence, FeedName, FeedState, History, IndexUpdate,
    Interruption, Interruptions, ItemStatus, LedgerEntry, Markup, Noise, Origin, Revision, Stamp,
    SyncId, Tick, Time, Update,
};

impl Absence {
    /// What was seen once of a missing item, and never asked about, for tests.
    pub const fn seen_once(evidence: Evidence, since: Time) -> Self {
        Self {
            evidence,
            since,
            observations: 1,
            doubts: Doubts::NONE,
            seen: String::new(),
            probe: None,
        }
    }
}

impl LedgerEntry {
    /// What is left of an observed item of that native id, for tests.
    #[allow(clippy::unwrap_used)]
    pub fn left(name: &str) -> Self {
        let at = Time::from_unix(1_767_225_600);
        let update = Update { sequence: Count::ONE, stamp: Stamp::When(at) };
        Self {
            id: SyncId::new("gate.a").unwrap(),
            native_shown: name.to_owned(),
            published_id: name.to_owned(),
            aliases: Vec::new(),
            title: String::new(),
            link: None,
            published: Some(at),
            updated: None,
            updates: Count::ONE,
            history: History::new(update),
            noconflicts: None,
            conflicts: 0,
            sse091: None,
            extras: None,
            origin: Origin::Observed,
            tick: Tick::at(at),
            first_seen: at,
            came: at,
            standing: ItemStatus::Evicted { since: at, deleted: false },
            absence: None,
            prints: Vec::new(),
            bytes: 1,
            noise: Noise::default(),
            touched: 0,
        }
    }
}

impl crate::sync::Canonical for Markup {
    fn canonical(&self) -> &[u8] {
        self.xml.as_bytes()
    }
}

impl FromIterator<Interruption> for Interruptions {
    fn from_iter<I: IntoIterator<Item = Interruption>>(all: I) -> Self {
        Self(all.into_iter().take(Self::LIMIT).collect())
    }
}

impl Change {
    /// A change to this state and of nothing else.
    pub const fn of_state(feed: FeedName, base: Revision, at: Time, state: FeedState) -> Self {
        Self {
            feed,
            base,
            at,
            asked_at: None,
            tick: None,
            state,
            skeleton: None,
            order: None,
            known: Vec::new(),
            index: IndexUpdate::NONE,
            versions: Vec::new(),
            latest: Vec::new(),
            conflicts: Vec::new(),
            kept: None,
            redacted: Vec::new(),
            evicted: Vec::new(),
            reinstated: Vec::new(),
            events: Vec::new(),
            seals: Vec::new(),
        }
    }
}
