//! Every record reads back as it was written, also one of another day.

use super::specimen::specimen;
use super::*;
use crate::{AppliedOrigins, LoggedChange, VersionNote};
use bytes::Bytes;
use proptest::prelude::*;
use std::fmt::Debug;
use std::path::Path;
use tidegate_core::model::*;
use tidegate_core::websub::Subscription;

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
fn check_golden<R: Record + Debug>(name: &str) {
    let plain = |record: &R| encode_plain(record, VALUE_LIMIT).unwrap();
    let (bytes, said) = golden(name, || {
        // One of several that says much.
        let any = (0..16).map(specimen::<R>);
        let richest = any.max_by_key(|record| plain(record).len().min(2000)).unwrap();
        (plain(&richest), format!("{richest:?}"))
    });
    let read: R = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(format!("{read:?}"), said, "{name}");
    assert_eq!(plain(&read), bytes, "{name}: the layout is another one");
}

macro_rules! records {
    ($($file:literal: $record:ty;)+) => {
        #[test]
        fn every_record_is_written_as_it_was() {
            $(check_golden::<$record>($file);)+
        }

        proptest! {
            #[test]
            fn every_record_is_read_back(seed in any::<u64>()) {
                $(
                    let record: $record = specimen(seed);
                    let read = decode::<$record>(&encode(&record).unwrap()).unwrap();
                    prop_assert_eq!(read, record, "{}", $file);
                )+
            }
        }
    };
}

records! {
    "markup.hex": Markup;
    "frame.hex": FrameRecord;
    "item.hex": ItemRecord;
    "held.hex": Vec<HeldEntry>;
    "unsettled.hex": Vec<SyncId>;
    "events.hex": Vec<Event>;
    "note.hex": VersionNote;
    "poll.hex": PollState;
    "feed.hex": FeedRecord;
    "subscription.hex": Subscription;
    "log.hex": LoggedChange;
    "state.hex": StateRecord;
    "purge-mark.hex": PurgeRecord;
    "stub.hex": LedgerEntry;
    "attempt.hex": Attempt;
    "archive.hex": ArchiveRecord;
    "segment.hex": SegmentRecord;
    "identity.hex": IdentityRecord;
    "applied-origins.hex": AppliedOrigins;
}

/// A version stands before its bytes, which are a record of their own; bytes that are packed, or a difference, are read
/// as they were written, whatever the compressor makes of the same today.
#[test]
fn a_text_is_read_as_it_was_written() {
    let at = Time::from_unix(1_795_191_605);
    let markup = |seed| Markup { xml: "<p>text</p>".repeat(60), ..specimen::<Markup>(seed) };
    let (old, new) = (markup(1), encode(&markup(2)).unwrap());
    let difference = packing::against(&encode(&old).unwrap(), at, &new).unwrap().unwrap();
    let payload =
        |body: &[u8], base: Option<&[u8]>| packing::payload(body, base).unwrap().into_owned();
    let of = |name: &str, body: &[u8], base: Option<&[u8]>| {
        let said = |text: &TextRecord| {
            let payload = payload(text.body.as_deref().unwrap(), base);
            format!("{:?} {:?}", text.note, read_fields::<Markup>(&payload).unwrap())
        };
        let (bytes, expected) = golden(name, || {
            let body = Some(Bytes::copy_from_slice(body));
            let text = TextRecord { note: Some(specimen(1)), body };
            (text.encode().unwrap(), said(&text))
        });
        let read = TextRecord::decode(&bytes.clone().into()).unwrap();
        assert_eq!(said(&read), expected);
        let note = encode_plain(&read.note, VALUE_LIMIT).unwrap();
        assert!(bytes.starts_with(&note), "the layout is another one");
        for cut in 0..note.len() {
            assert!(TextRecord::decode(&bytes[..cut].to_vec().into()).is_err(), "{cut}");
        }
        read.body.unwrap()
    };
    let newer = of("text.hex", &new, None);
    let older = of("text-difference.hex", &difference, Some(&payload(&newer, None)));
    assert_eq!(packing::base(&older).unwrap(), Some(at));
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
        for packing in 0..4 {
            let bytes = [&[1, packing], bytes.as_slice()].concat();
            let _ = decode::<Vec<HeldEntry>>(&bytes);
            let _ = decode::<Markup>(&bytes);
            let _ = decode::<StateRecord>(&bytes);
            let _ = packing::base(&bytes);
            let _ = packing::payload(&bytes, Some(b"a base that is not the right one"));
        }
    }
}

#[test]
fn other_layouts_and_ways_of_packing_are_refused() {
    let markup = specimen::<Markup>(1);
    let mut bytes = encode(&markup).unwrap();
    let packed = encode(&Markup { xml: "text ".repeat(200), ..markup }).unwrap();
    for whole in [&bytes, &packed] {
        for cut in 0..whole.len() {
            assert!(decode::<Markup>(&whole[..cut]).is_err(), "{cut}");
        }
    }
    bytes[0] = 9;
    let said = decode::<Markup>(&bytes).unwrap_err().to_string();
    assert_eq!(said, "it has layout 9, this program knows 1 alone");
    (bytes[0], bytes[1]) = (1, 7);
    assert!(matches!(decode::<Markup>(&bytes), Err(RecordError::Packing(7))));
    let order: Vec<SyncId> = Vec::new();
    let longer = [encode(&order).unwrap(), vec![0]].concat();
    assert!(matches!(decode::<Vec<SyncId>>(&longer), Err(RecordError::Trailing(1))));
}
