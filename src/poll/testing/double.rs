//! An in-memory store and a judge with scripted behaviour.

mod judge;

pub use judge::JudgeDouble;
pub use tidegate_store::testing::{ScriptedStore, StoreFault};

use std::sync::Arc;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::*;

pub const NOW: Time = Time::from_unix(1_795_191_605);

pub fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub fn record(feed: &str) -> FeedRecord {
    FeedRecord::new(name(feed), format!("http://{feed}.example/feed"), FeedSource::Api)
}

/// Creates a store with these feeds.
pub fn store_of(feeds: &[&str]) -> Arc<ScriptedStore> {
    let store = ScriptedStore::new("here", Arc::new(ManualClock::at(NOW)));
    feeds.iter().for_each(|feed| store.set_record(&record(feed)));
    Arc::new(store)
}

pub fn state(base: Option<&Snapshot>, prints: BodyPrints, now: Time) -> FeedState {
    let tick = Tick::next(now, base.and_then(|base| base.state.tick));
    FeedState {
        revision: Revision(0),
        tick: Some(tick),
        window_start: Some(tick),
        complete_start: None,
        render_revision: base.map_or(0, |base| base.state.render_revision) + 1,
        updated_at: now,
        format: Format::Atom10,
        says_complete: false,
        wire: prints.wire,
        body: prints.body,
        head: 0,
        site: None,
        source: 0,
        character: Character::default(),
        hold: None,
        next_decision_at: None,
        current: 1,
        living: 1,
        tombstones: 0,
        contested: 0,
        evictions: tidegate_core::model::Evictions::default(),
        archives: Chain::default(),
        deltas_from: 0,
        source_since: None,
        upstream_until: None,
        updates_before: 0,
        gap: None,
        flaws: tidegate_core::model::FlawHistory::default(),
        told: tidegate_core::model::HeadHistory::default(),
        lineage: tidegate_core::model::Lineage::default(),
    }
}

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
