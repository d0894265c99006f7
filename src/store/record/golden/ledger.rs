//! Specimens of what stands beside ledger entries.

use super::files::{at, history, id, known, markup, skeleton};
use super::*;

pub(super) fn conflicts() -> Vec<Version<Markup>> {
    let by = EndpointId::new("JEO2000").unwrap();
    let update = Update { sequence: Count::ONE, stamp: Stamp::Both { when: at(1), by } };
    vec![Version {
        id: id("gate.example.abc"),
        updates: Count::ONE,
        deleted: true,
        noconflicts: Some(false),
        history: History::new(update),
        data: markup("<entry/>"),
    }]
}

pub(super) fn stub() -> Stub {
    Stub {
        id: id("gate.example.abc"),
        native: "urn:1##2".to_owned(),
        native_shown: "urn:1".to_owned(),
        published_id: "urn:0".to_owned(),
        aliases: vec!["urn:0".to_owned()],
        published: Some(at(2)),
        updates: Count::new(3).unwrap(),
        history: history(),
        noconflicts: Some(true),
        sse091: Some(false),
        origin: Origin::Upstream,
        tick: Tick::at(at(30)),
        first_seen: at(1),
        bytes: 7,
        deleted: true,
        since: at(31),
    }
}

pub(super) fn frame() -> FrameRecord {
    let order = vec![id("b"), id("a")];
    FrameRecord { since: at(3), run: 2, order, skeleton: Some(skeleton()) }
}

pub(super) fn item() -> ItemRecord {
    let item = ItemRecord { kept: 3, has_latest: true, ..ItemRecord::new(known()) };
    ItemRecord { body: Tick::at(at(29)), conflicts: conflicts(), ..item }
}
