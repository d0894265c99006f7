//! Values for tests, of this crate and of others.

#![allow(clippy::unwrap_used)]

use super::{
    Absence, Change, Context, Count, Doubts, Event, EventKind, Evidence, FeedName, FeedRecord,
    FeedSource, FeedState, Format, History, Hold, IndexUpdate, Interruption, Interruptions,
    ItemStatus, LedgerEntry, Markup, Noise, Origin, Revision, Skeleton, SkeletonSlots, Stamp,
    SyncId, Tick, Time, Update,
};

/// When most tests begin: Friday, 20 November 2026, 16:20:05.
pub const NOW: Time = Time::from_unix(1_795_191_605);

/// A time so many seconds after [`NOW`].
pub const fn at(seconds: i64) -> Time {
    Time::from_unix(NOW.unix() + seconds)
}

pub const fn tick(seconds: i64) -> Tick {
    Tick::at(at(seconds))
}

pub fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

/// A feed of the API with an address of its own.
pub fn record(feed: &str) -> FeedRecord {
    FeedRecord::new(name(feed), format!("http://{feed}.example/feed"), FeedSource::Api)
}

/// Nothing around the entries, but a title.
pub fn skeleton(format: Format, title: &str) -> Skeleton {
    Skeleton {
        format,
        text: String::new(),
        slots: SkeletonSlots::default(),
        context: Context::default(),
        title: title.to_owned(),
        link: None,
    }
}

/// The hold of an empty document that was seen once.
pub fn hold(since: Time) -> Hold {
    Hold {
        reason: "it is empty".into(),
        kind: "empty".into(),
        since,
        row_since: since,
        observations: 1,
        documents: 1,
        body: 0,
        source: 0,
        kept: 0,
        decision: None,
    }
}

/// An event of the item `here.x`.
pub fn event(kind: EventKind, tick: Option<Tick>) -> Event {
    Event {
        kind,
        id: SyncId::new("here.x").unwrap(),
        native_id: "x".into(),
        old_native_id: None,
        title: "X".into(),
        tick,
        reason: "because".into(),
        at: NOW,
        seen_gone: None,
    }
}

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
