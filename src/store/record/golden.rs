//! Every record reads back as it was written.

use super::specimen::*;
use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tidegate_core::model::*;
use tidegate_core::websub::Subscription;

fn through<R: Record>(record: &R) -> R {
    decode(&encode(record).unwrap()).unwrap()
}

macro_rules! round_trips {
    ($($test:ident: $strategy:expr;)+) => {
        proptest! {
            $(
                #[test]
                fn $test(value in $strategy) {
                    prop_assert_eq!(through(&value), value);
                }
            )+
        }
    };
}

round_trips! {
    markup_round_trips: any_markup();
    frames_round_trip: (any_skeleton(), any_order(), time(), any::<u32>()).prop_map(
        |(skeleton, order, since, run)| FrameRecord { since, run, order, skeleton: Some(skeleton) },
    );
    items_round_trip: (any_known(), any::<bool>(), any::<u32>(), time()).prop_map(
        |(known, has_latest, kept, body)| {
            let body = Tick::at(body);
            ItemRecord { has_latest, kept, body, ..ItemRecord::new(known) }
        },
    );
    events_round_trip: any_event();
    versions_round_trip: any_note();
    poll_states_round_trip: any_poll();
    feeds_round_trip: any_feed();
    kept_entries_round_trip: any_kept();
    log_round_trips: any_announced();
    states_round_trip: (any_state(), any::<u64>(), any::<u64>(), proptest::option::of(time()))
        .prop_map(|(state, next_event, write, asked_at)| StateRecord {
            state, next_event, write, asked_at,
        });
    floors_round_trip: (any_floor(), any::<bool>())
        .prop_map(|(floor, sweeping)| FloorRecord { floor, sweeping });
}

proptest! {
    #[test]
    fn subscriptions_round_trip(value in any_subscription()) {
        prop_assert_eq!(through(&value), value);
    }

    #[test]
    fn attempts_round_trip(entries in any::<u32>(), kills in any::<u32>(), is_open in any::<bool>()) {
        let feed = FeedName::new("news").unwrap();
        let begun = Time::from_unix(1_795_191_605);
        let attempt = Attempt { feed, entries, begun, kills, is_open };
        prop_assert_eq!(through(&attempt), attempt);
    }

    /// Whatever stands on disk, reading it answers; a panic would take the gateway down.
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode::<ItemRecord>(&bytes);
        let _ = TextRecord::decode(&bytes.clone().into());
        let _ = decode::<Vec<HeldEntry>>(&[&[1, 0], bytes.as_slice()].concat());
        let _ = decode::<Markup>(&[&[1, 0], bytes.as_slice()].concat());
        let _ = decode::<StateRecord>(&[&[1, 1], bytes.as_slice()].concat());
    }

    #[test]
    fn a_record_cut_short_is_refused(markup in any_markup(), keep in 0.0..1.0f64) {
        let bytes = encode(&markup).unwrap();
        let cut = (bytes.len() as f64 * keep) as usize;
        prop_assert!(decode::<Markup>(&bytes[..cut]).is_err());
    }
}

#[test]
fn other_layouts_and_ways_of_packing_are_refused() {
    let markup = fixed(any_markup(), 1);
    let mut bytes = encode(&markup).unwrap();
    bytes[0] = 9;
    let said = decode::<Markup>(&bytes).unwrap_err().to_string();
    assert_eq!(said, "it has layout 9, this program knows 1 alone");
    (bytes[0], bytes[1]) = (1, 7);
    assert!(matches!(decode::<Markup>(&bytes), Err(RecordError::Packing(7))));
    let order: Vec<SyncId> = Vec::new();
    let longer = [encode(&order).unwrap(), vec![0]].concat();
    assert!(matches!(decode::<Vec<SyncId>>(&longer), Err(RecordError::Trailing(1))));
}

#[test]
fn a_bomb_is_refused_before_it_is_opened() {
    let size = u32::MAX.to_le_bytes();
    let bytes = [&[1, 1], size.as_slice(), &[0; 40]].concat();
    assert!(matches!(decode::<Markup>(&bytes), Err(RecordError::TooLarge { .. })));
}

/// A value that is the same in every run.
fn fixed<S: Strategy>(strategy: S, seed: u8) -> S::Value {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).unwrap().current()
}

mod admin;
mod files;
mod ledger;
