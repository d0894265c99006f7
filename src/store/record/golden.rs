//! Every record reads back as it was written, in this build and in the builds before it.

use super::specimen::*;
use super::*;
use crate::model::*;
use crate::store::VersionNote;
use crate::websub::Subscription;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn through<R: Record>(record: &R) -> R {
    decode(&encode(record).unwrap()).unwrap()
}

macro_rules! round_trips {
    ($($test:ident: $strategy:expr, $model:ty as $record:ty;)+) => {
        proptest! {
            $(
                #[test]
                fn $test(value in $strategy) {
                    let record = through(&<$record>::from(&value));
                    prop_assert_eq!(<$model>::try_from(record).unwrap(), value);
                }
            )+
        }
    };
}

round_trips! {
    markup_round_trips: any_markup(), Markup as MarkupRecord;
    skeletons_round_trip: any_skeleton(), Skeleton as SkeletonRecord;
    ledger_entries_round_trip: any_known(), Known as KnownRecord;
    events_round_trip: any_event(), Event as EventRecord;
    versions_round_trip: any_note(), VersionNote as NoteRecord;
    poll_states_round_trip: any_poll(), PollState as PollRecord;
    subscriptions_round_trip: any_subscription(), Subscription as SubscriptionRecord;
    feeds_round_trip: any_feed(), FeedRecord as FeedRow;
}

proptest! {
    #[test]
    fn attempts_round_trip(entries in any::<u32>(), kills in any::<u32>(), is_open in any::<bool>()) {
        let feed = FeedName::new("news").unwrap();
        let begun = Time::from_unix(1_795_191_605);
        let attempt = Attempt { feed, entries, begun, kills, is_open };
        let record = through(&AttemptRecord::from(&attempt));
        prop_assert_eq!(Attempt::try_from(record).unwrap(), attempt);
    }

    #[test]
    fn states_round_trip(state in any_state(), next in any::<u64>()) {
        let record = through(&StateRecord::new(&state, next));
        prop_assert_eq!(record.next_event, next);
        prop_assert_eq!(FeedState::try_from(record).unwrap(), state);
    }

    #[test]
    fn floors_round_trip(floor in any_floor(), sweeping in any::<bool>()) {
        let record = through(&FloorRecord::new(&floor, sweeping));
        prop_assert_eq!((record.floor(), record.sweeping), (floor, sweeping));
    }

    #[test]
    fn log_and_order_round_trip(said in any_announced(), at in time(), order in any_order()) {
        let record = through(&LogRecord::new(at, &said));
        prop_assert_eq!(record.read().unwrap(), (at, said));
        prop_assert_eq!(through(&OrderRecord::new(&order)).read().unwrap(), order);
    }

    #[test]
    fn kept_entries_round_trip(kept in any_kept()) {
        prop_assert_eq!(through(&KeptRecord::new(&kept)).read().unwrap(), kept);
    }

    /// Whatever stands on disk, reading it answers; a panic would take the gateway down.
    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode::<KnownRecord>(&bytes);
        let _ = decode::<KeptRecord>(&[&[1, 0], bytes.as_slice()].concat()).map(KeptRecord::read);
        let _ = decode::<MarkupRecord>(&[&[1, 0], bytes.as_slice()].concat());
        let _ = decode::<StateRecord>(&[&[1, 1], bytes.as_slice()].concat());
    }

    #[test]
    fn a_record_cut_short_is_refused(markup in any_markup(), keep in 0.0..1.0f64) {
        let bytes = encode(&MarkupRecord::from(&markup)).unwrap();
        let cut = (bytes.len() as f64 * keep) as usize;
        prop_assert!(decode::<MarkupRecord>(&bytes[..cut]).is_err());
    }
}

#[test]
fn other_layouts_and_ways_of_packing_are_refused() {
    let markup = fixed(any_markup(), 1);
    let mut bytes = encode(&MarkupRecord::from(&markup)).unwrap();
    bytes[0] = 9;
    let said = decode::<MarkupRecord>(&bytes).unwrap_err().to_string();
    assert_eq!(said, "its layout has version 9, this program knows 1");
    (bytes[0], bytes[1]) = (1, 7);
    assert!(matches!(decode::<MarkupRecord>(&bytes), Err(RecordError::Packing(7))));
    let order = OrderRecord::new(&[]);
    let longer = [encode(&order).unwrap(), vec![0]].concat();
    assert!(matches!(decode::<OrderRecord>(&longer), Err(RecordError::Trailing(1))));
}

#[test]
fn a_bomb_is_refused_before_it_is_opened() {
    let size = u32::MAX.to_le_bytes();
    let bytes = [&[1, 1], size.as_slice(), &[0; 40]].concat();
    assert!(matches!(decode::<MarkupRecord>(&bytes), Err(RecordError::TooLarge { .. })));
}

/// A value that is the same in every run.
fn fixed<S: Strategy>(strategy: S, seed: u8) -> S::Value {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).unwrap().current()
}

mod admin;
mod files;
mod sharing;
