//! Every record reads back as it was written, also one of another day.

use super::specimen::*;
use super::*;
use crate::{AppliedOrigins, Epoch};
use bytes::Bytes;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;
use tidegate_core::model::*;

fn through<R: Record>(record: &R) -> R {
    decode(&encode(record).unwrap()).unwrap()
}

/// A value that is the same in every run.
fn fixed<S: Strategy>(strategy: S, seed: u8) -> S::Value {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    strategy.new_tree(&mut runner).unwrap().current()
}

/// The bytes in a file of `tests/golden/store`, so that no layout changes by accident, and what they say, each with a
/// line of its own. `TIDEGATE_GOLDEN=write cargo test -p tidegate-store golden` writes them anew.
fn golden(name: &str, written: impl FnOnce() -> (Vec<u8>, String)) -> (Vec<u8>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/store").join(name);
    if std::env::var_os("TIDEGATE_GOLDEN").is_some() {
        let (bytes, said) = written();
        let text = format!("{}\n{said}\n", data_encoding::HEXLOWER.encode(&bytes));
        std::fs::write(&path, text).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (digits, said) = text.trim_end().split_once('\n').unwrap();
    (data_encoding::HEXLOWER.decode(digits.as_bytes()).unwrap(), said.to_owned())
}

/// What is stored of a record of each kind is read as what it was, and written as it was.
fn check_golden<R: Record + Debug>(name: &str, strategy: impl Strategy<Value = R>) {
    let plain = |record: &R| encode_plain(record, VALUE_LIMIT).unwrap();
    let (bytes, said) = golden(name, || {
        // One of several that says much.
        let any = (0..16).map(|seed| fixed(&strategy, seed));
        let richest = any.max_by_key(|record| plain(record).len().min(2000)).unwrap();
        (plain(&richest), format!("{richest:?}"))
    });
    let read: R = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(format!("{read:?}"), said, "{name}");
    assert_eq!(plain(&read), bytes, "{name}: the layout is another one");
}

macro_rules! records {
    ($($test:ident $file:literal: $strategy:expr;)+) => {
        proptest! {
            $(
                #[test]
                fn $test(value in $strategy) {
                    prop_assert_eq!(through(&value), value);
                }
            )+
        }

        #[test]
        fn every_record_is_written_as_it_was() {
            $(check_golden($file, $strategy);)+
        }
    };
}

records! {
    markup_round_trips "markup.hex": any_markup();
    frames_round_trip "frame.hex": (any_skeleton(), any_order(), time(), any::<u32>()).prop_map(
        |(skeleton, order, since, run)| FrameRecord { since, run, order, skeleton: Some(skeleton) },
    );
    items_round_trip "item.hex": any_item();
    held_entries_round_trip "held.hex": any_kept();
    orders_round_trip "unsettled.hex": any_order();
    events_round_trip "events.hex": proptest::collection::vec(any_event(), 1..4);
    notes_round_trip "note.hex": any_note();
    poll_states_round_trip "poll.hex": any_poll();
    feeds_round_trip "feed.hex": any_feed();
    subscriptions_round_trip "subscription.hex": any_subscription();
    log_round_trips "log.hex": any_announced();
    states_round_trip "state.hex":
        (any_state(), any::<u64>(), any::<u64>(), proptest::option::of(time())).prop_map(
            |(state, next_event, write, asked_at)| {
                StateRecord { state, next_event, write, asked_at }
            },
        );
    floors_round_trip "floor.hex": (any_floor(), any::<bool>())
        .prop_map(|(floor, sweeping)| FloorRecord { floor, sweeping });
    stubs_round_trip "stub.hex": (any_known(), time())
        .prop_map(|(known, left)| known.stub(known.history.clone(), left));
    attempts_round_trip "attempt.hex": (any_announced(), any::<u32>(), time(), any::<bool>())
        .prop_map(|(of, kills, begun, is_open)| {
            Attempt { feed: of.feed, entries: of.versions, begun, kills, is_open }
        });
    archives_round_trip "archive.hex": (any_state(), any_floor(), any::<bool>(), 0..9_u32)
        .prop_map(|(state, floor, dropped, blocks)| ArchiveRecord {
            note: ArchiveNote {
                number: floor.render,
                id: ArchiveId::new("abc123").unwrap(),
                previous: state.archives.newest,
                sealed: state.updated_at,
                until: Tick::at(floor.shown),
                entries: floor.updates,
                deletions: 1,
                bytes: 2048,
                redacted: state.tick.map(Tick::time),
                dropped,
            },
            blocks,
        });
    segments_round_trip "segment.hex": (any_skeleton(), any_item(), any_markup(), time())
        .prop_map(|(skeleton, item, newest, when)| {
            let deleted = Deletion {
                id: item.known.id.clone(),
                published_id: item.known.published_id.clone(),
                when,
            };
            let items = vec![crate::assemble(item.known, newest, item.conflicts)];
            let upstream = "https://example.org/".to_owned();
            let archive = Archive { upstream, skeleton, items, deleted: vec![deleted] };
            SegmentRecord::blocks(&archive, 1 << 20).remove(0)
        });
    identities_round_trip "identity.hex": (any::<u64>(), any::<(u32, u32)>(), time()).prop_map(
        |(fence, (mark, after), running)| {
            let mut log_ages = LogAges::default();
            log_ages.note(Duration::from_secs(3600), Epoch(mark.into()));
            log_ages.note(Duration::from_secs(7200), Epoch(u64::from(mark) + u64::from(after)));
            IdentityRecord {
                endpoint: EndpointId::own("gate.example").unwrap(),
                fence,
                sup_ids: SupIdBasis::Name,
                lineage: Lineage::new([Stretch { mark, after: after.into() }]),
                running: Some(running),
                log_ages,
            }
        },
    );
    applied_origins_round_trip "applied-origins.hex": any_feed()
        .prop_map(|feed| AppliedOrigins([(feed.name, feed.url)].into()));
}

fn any_item() -> impl Strategy<Value = ItemRecord> {
    let conflict = (any_known(), any_markup()).prop_map(|(known, data)| Version {
        id: known.id,
        updates: known.updates,
        deleted: true,
        noconflicts: known.noconflicts,
        history: known.history,
        data,
    });
    let conflicts = proptest::collection::vec(conflict, 0..2);
    (any_known(), any::<bool>(), any::<u32>(), tick(), conflicts).prop_map(
        |(known, has_latest, kept, body, conflicts)| ItemRecord {
            has_latest,
            kept,
            body,
            conflicts,
            ..ItemRecord::new(known)
        },
    )
}

/// A version stands before its bytes, which are a record of their own; bytes that are packed, or a difference, are read
/// as they were written, whatever the compressor makes of the same today.
#[test]
fn a_text_is_read_as_it_was_written() {
    let markup = |seed| {
        let markup = fixed(any_markup(), seed);
        Markup { xml: "<p>text</p>".repeat(60), ..markup }
    };
    let (one, two) = (markup(1), markup(2));
    let newer = encode(&two).unwrap();
    let text =
        |body| TextRecord { note: Some(fixed(any_note(), 1)), body: Some(Bytes::from(body)) };
    let of = |name: &str, body: Vec<u8>| {
        let text = text(body);
        let written = || (text.encode().unwrap(), format!("{:?}", text.note));
        let (bytes, said) = golden(name, written);
        let note = encode_plain(&text.note, VALUE_LIMIT).unwrap();
        assert!(bytes.starts_with(&note), "the layout is another one");
        for cut in 0..note.len() {
            assert!(TextRecord::decode(&bytes[..cut].to_vec().into()).is_err(), "{cut}");
        }
        let read = TextRecord::decode(&bytes.into()).unwrap();
        assert_eq!(format!("{:?}", read.note), said);
        read.body.unwrap()
    };
    assert_eq!(decode::<Markup>(&of("text.hex", newer.clone())).unwrap(), two);
    let at = Time::from_unix(1_795_191_605);
    let old = packing::against(&encode(&one).unwrap(), at, &newer).unwrap().unwrap();
    let old = of("text-difference.hex", old);
    assert_eq!(packing::base(&old).unwrap(), Some(at));
    let base = packing::payload(&newer, None).unwrap();
    let payload = packing::payload(&old, Some(&base)).unwrap();
    assert_eq!(read_fields::<Markup>(&payload).unwrap(), one);
}

/// The number of each variant is part of the layout.
#[test]
fn variants_keep_their_numbers() {
    fn numbers<T: serde::Serialize>(values: &[T]) {
        for (number, value) in (0_u8..).zip(values) {
            assert_eq!(postcard::to_stdvec(value).unwrap().first(), Some(&number));
        }
    }
    let since = Time::from_unix(0);
    numbers(&[
        ItemStatus::Current,
        ItemStatus::Retired { since },
        ItemStatus::Deleted { since },
        ItemStatus::Redacted { since },
        ItemStatus::Discarded { since },
        ItemStatus::Evicted { since, deleted: true },
        ItemStatus::Older { since },
    ]);
    let feed = Origin::Feed(FeedName::new("news").unwrap());
    numbers(&[Origin::Observed, Origin::Upstream, Origin::Local, feed]);
    use EventKind::*;
    numbers(&[
        Created, Updated, Deleted, Undeleted, Retired, Returned, Rekeyed, Backfilled, Discarded,
    ]);
    use Format::*;
    numbers(&[Atom10, Atom03, Rss20, Rss09x, Rss10, Rss090, JsonFeed, Opml, Collection]);
    use Evidence::*;
    numbers(&[Aged, Hole, Complete, Passed, Said, Unplaced]);
    numbers(&[Order::Auto, Order::NewestFirst, Order::OldestFirst, Order::Updated, Order::None]);
    numbers(&[Deletions::Safe, Deletions::Eager, Deletions::Off]);
    numbers(&[FeedSource::File, FeedSource::CommandLine, FeedSource::Api]);
    numbers(&[FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone]);
}

proptest! {
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
