//! Specimens of what is kept of shared items.

use super::files::{self, at, golden, specimens};
use super::*;
use crate::store::record::ConflictsRecord;

fn contested() -> KnownRecord {
    KnownRecord::from(&Known {
        noconflicts: Some(false),
        conflicts: 2,
        origin: Origin::Feed(FeedName::new("news").unwrap()),
        ..files::returned()
    })
}

fn known_by_091() -> Known {
    let attributes = vec![(Some("urn:x".to_owned()), "a".to_owned(), "1".to_owned())];
    let extra = Extra { attributes, elements: "<x xmlns=\"urn:x\"/>".to_owned() };
    let by = EndpointId::new("JEO2000").unwrap();
    let update = Update { sequence: Count::ONE, stamp: Stamp::By(by) };
    let extras = SyncExtras { sync: extra.clone(), updates: vec![(update, extra)] };
    let extras = Some(Box::new(extras));
    Known { origin: Origin::Upstream, sse091: Some(true), extras, ..files::returned() }
}

/// Looked at since all references are resolved.
fn known_by_all() -> KnownRecord {
    let mut item = known_by_091();
    item.noise.few_references = false;
    let record = KnownRecord::from(&item);
    assert_eq!(Known::try_from(record.clone()).unwrap(), item);
    record
}

fn caught_up() -> StateRecord {
    let until = Some("2026-11-20T16:20:05Z".to_owned());
    StateRecord::new(&FeedState { upstream_until: until, ..files::state(files::feed_noise()) }, 40)
}

fn purged_once() -> FeedState {
    let until = Some("2026-11-20T16:20:05Z".to_owned());
    let gap = Some(Gap { since: at(70), until: at(80) });
    let state = files::state(files::feed_noise());
    FeedState { upstream_until: until, updates_before: 300, gap, ..state }
}

fn formed() -> StateRecord {
    let charset = Some("UTF-8".to_owned());
    let flaws = FlawHistory { rows: [0, 1, 2, 3, 0, 1], doubted: vec![4, 5], body: 6, charset };
    let made = Some(Made { since: at(90), versions: 2 });
    let told = HeadHistory { told: 7, latest: 8, shape: 9, row: 1, last: Some(at(91)), made };
    StateRecord::new(&FeedState { flaws, told, ..purged_once() }, 40)
}

fn moved_once() -> StateRecord {
    let state = files::state(files::feed_noise());
    StateRecord::new(&FeedState { source_since: Some(at(90)), ..state }, 40)
}

fn conflicts() -> ConflictsRecord {
    let by = EndpointId::new("JEO2000").unwrap();
    let update = Update { sequence: Count::ONE, stamp: Stamp::Both { when: at(1), by } };
    ConflictsRecord::new(&[Version {
        id: SyncId::new("gate.example.abc").unwrap(),
        updates: Count::ONE,
        deleted: true,
        noconflicts: Some(false),
        history: History::new(update),
        data: Markup::try_from(files::markup("<entry/>")).unwrap(),
    }])
}

specimens! {
    known_7: "known-7.hex", known_by_all(), KnownRecord;
    state_7: "state-7.hex", formed(), StateRecord;
    conflicts_1: "conflicts-1.hex", conflicts(), ConflictsRecord;
}

/// Layouts of before items were shared are still read.
#[test]
fn what_nobody_shared_is_read() {
    let stored = golden("known-1.hex", &[]);
    let few = Noise { few_references: true, ..Noise::default() };
    assert_eq!(decode::<KnownRecord>(&stored).unwrap(), files::known("", few, 0, None));
    let stored = golden("known-4.hex", &[]);
    let fourth = KnownRecord::from(&files::returned());
    assert_eq!(decode::<KnownRecord>(&stored).unwrap(), fourth);
    let stored = golden("known-5.hex", &[]);
    assert_eq!(decode::<KnownRecord>(&stored).unwrap(), contested());
    let stored = golden("known-6.hex", &[]);
    let sixth = decode::<KnownRecord>(&stored).unwrap();
    assert_eq!(Known::try_from(sixth).unwrap(), known_by_091());
    let stored = golden("state-3.hex", &[]);
    let third = StateRecord::new(&files::state(files::feed_noise()), 40);
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), third);
    let stored = golden("state-4.hex", &[]);
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), caught_up());
    let stored = golden("state-5.hex", &[]);
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), StateRecord::new(&purged_once(), 40));
    let stored = golden("state-6.hex", &[]);
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), moved_once());
}

/// The number of each origin is part of the layout.
#[test]
fn origins_keep_their_numbers() {
    let feed = Origin::Feed(FeedName::new("news").unwrap());
    for (number, origin) in
        [(0, Origin::Observed), (1, Origin::Upstream), (2, Origin::Local), (3, feed)]
    {
        let plain = KnownRecord::from(&Known { origin: Origin::Observed, ..files::returned() });
        let other = KnownRecord::from(&Known { origin, ..files::returned() });
        let (plain, other) =
            (postcard::to_stdvec(&plain).unwrap(), postcard::to_stdvec(&other).unwrap());
        // It is followed by five fields of one byte each.
        let place = plain.len() - 6;
        assert_eq!((plain[place], other[place]), (0, number));
    }
}
