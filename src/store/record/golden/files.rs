//! The specimens in `tests/golden/store`: bytes as some build wrote them, which every later build
//! must read, and as long as the layout stands, write.
//!
//! A new layout gets specimens of its own beside the old ones: `TIDEGATE_GOLDEN=write cargo test
//! golden` writes those that are missing, and touches none that is there.

use super::super::sharing::Seconds;
use super::admin::{
    history_record, hub, identity, paused_poll, placed_feed, poll, poll_and_hub, subscription, walk,
};
use super::*;
use crate::store::floor::Floor;
use std::path::Path;

pub(super) const URL: &str = "https://example.org/";

pub(super) fn at(seconds: i64) -> Time {
    Time::from_unix(1_795_191_605 + seconds)
}

fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

fn history() -> History {
    let by = |by: &str| EndpointId::new(by).unwrap();
    let update = |sequence, stamp| Update { sequence: Count::new(sequence).unwrap(), stamp };
    History::from_newest_first([
        update(3, Stamp::Both { when: at(30), by: by("gate.example") }),
        update(2, Stamp::By(by("other:é"))),
        update(1, Stamp::When(at(-30))),
    ])
    .unwrap()
}

fn context() -> Context {
    Context {
        namespaces: vec![(String::new(), "http://www.w3.org/2005/Atom".to_owned())],
        base: Some(URL.to_owned()),
        lang: Some("de".to_owned()),
    }
}

pub(super) fn markup(xml: &str) -> MarkupRecord {
    MarkupRecord::from(&Markup {
        format: Format::Atom10,
        xml: xml.to_owned(),
        context: context(),
        slots: Slots { attributes: 6, inner: Some(7), id: Some(11..20), id_element: Some(7..25) },
        card: Card {
            title: "Über".to_owned(),
            link: Some(URL.to_owned()),
            author: Some("A".to_owned()),
            published: Some(at(0)),
            updated: Some(at(1)),
        },
    })
}

fn skeleton() -> SkeletonRecord {
    SkeletonRecord::from(&Skeleton {
        format: Format::Rss20,
        text: "<rss version='2.0'><channel></channel></rss>".to_owned(),
        slots: SkeletonSlots {
            root_attributes: 4,
            version: Some(14..17),
            entries: 28,
            updated: Some(20..21),
            id: Some(22..23),
        },
        context: context(),
        title: "T".to_owned(),
        link: Some(URL.to_owned()),
    })
}

pub(super) fn known(seen: &str, noise: Noise, touched: u64, probe: Option<Probe>) -> KnownRecord {
    KnownRecord::from(&item(seen, noise, touched, probe))
}

pub(super) fn item(seen: &str, noise: Noise, touched: u64, probe: Option<Probe>) -> Known {
    Known {
        id: id("gate.example.abc"),
        native: "urn:1#2".to_owned(),
        native_shown: "urn:1".to_owned(),
        published_id: "urn:0".to_owned(),
        aliases: vec!["urn:0".to_owned()],
        title: "Title".to_owned(),
        link: Some(URL.to_owned()),
        enclosure: Some("https://example.org/a.mp3".to_owned()),
        published: Some(at(2)),
        updated: Some(at(3)),
        updates: Count::new(3).unwrap(),
        history: history(),
        tick: Tick::at(at(30)),
        noconflicts: None,
        conflicts: 0,
        origin: Origin::Observed,
        first_seen: at(-31),
        came: at(-31),
        standing: Standing::Deleted { since: at(30) },
        absence: Some(Absence {
            evidence: Evidence::Hole,
            since: at(20),
            observations: 4,
            backfilled: true,
            doubts: Doubts::NONE,
            seen: seen.to_owned(),
            probe,
        }),
        prints: vec![(1, 2), (u64::MAX, 0)],
        bytes: 77,
        noise,
        sse091: None,
        extras: None,
        touched,
    }
}

pub(super) fn returned() -> Known {
    let item = item("gone while older items stay", noise(), 9, Some(probe()));
    Known { came: at(18), ..item }
}

fn probe() -> Probe {
    Probe {
        asked: 3,
        last: at(29),
        heard: Some(Heard { gone: true, status: 410, first: at(21), last: at(25) }),
        silence: Some("it answered 503".to_owned()),
    }
}

fn noise() -> Noise {
    Noise {
        unseen: Some(Unseen {
            classes: NoiseClasses::from_bits(0b1001),
            count: 3,
            since: at(31),
            last: at(33),
        }),
        traces: [1, 2, 3, 4, 5, 6, 7, u32::MAX],
        shape: u64::MAX,
        left: vec![(15, 16)],
        restless: vec![Restless {
            path: "title".to_owned(),
            forms: vec![8, 9],
            returns: 1,
            changes: 3,
            spans: vec![Span { before: 10, after: 11, value: 12, changes: 2, told: true }],
            last: at(33),
            pace: 60,
            masked: Some(at(33)),
        }],
        held: true,
        made: Some(Made { since: at(30), versions: 24 }),
        waiting: Some(Waiting {
            cause: WaitCause::Cap,
            since: at(31),
            due: at(90),
            fields: "title".to_owned(),
        }),
        few_references: true,
    }
}

pub(super) fn feed_noise() -> FeedNoise {
    FeedNoise {
        spans: vec![SharedSpan {
            path: "title".to_owned(),
            before: None,
            after: Some(" view".to_owned()),
            items: 3,
            stamped: true,
            since: at(31),
            last: at(33),
        }],
        fields: vec![SharedField {
            path: "media:keywords".to_owned(),
            digest: 13,
            documents: 4,
            since: at(31),
            last: at(33),
        }],
        ignored: 14,
    }
}

pub(super) fn state(noise: FeedNoise) -> FeedState {
    FeedState {
        revision: Revision(12),
        tick: Some(Tick::at(at(30))),
        window_start: Some(Tick::at(at(-31))),
        complete_start: Some(Tick::at(at(-32))),
        render: 9,
        shown: at(30),
        format: Format::Rss10,
        says_complete: true,
        wire: u128::MAX,
        body: 5,
        head: 6,
        site: Some(URL.to_owned()),
        source: 14,
        source_since: None,
        character: Character {
            documents: 1,
            largest: 2,
            kept_order: 3,
            reordered: 4,
            grew_above: 5,
            grew_below: 6,
            holes_returned: 7,
            left_middle: 8,
            left_end: 9,
            came_alone: 10,
            came_sliding: 11,
            came_swapping: 12,
            went_alone: 13,
        },
        noise,
        hold: Some(Hold {
            reason: "empty".to_owned(),
            kind: "empty".to_owned(),
            since: at(31),
            observations: 2,
            documents: 2,
            body: 3,
            source: 15,
            kept: 1,
            decision: Some(Decision::Drop),
        }),
        ripens: Some(at(60)),
        current: 10,
        living: 11,
        tombstones: 12,
        minted: 13,
        archives: Chain {
            sealed: Some(Tick::at(at(29))),
            unsealed: 2,
            newest: ArchiveId::new("abc123"),
            first: 3,
            next: 5,
            free: 4,
            bytes: 4096,
        },
        deltas_from: 8,
        upstream_until: None,
        updates_before: 0,
        gap: None,
        flaws: crate::model::FlawHistory::default(),
        told: crate::model::HeadHistory::default(),
        lineage: Lineage::new([
            Stretch { mark: 7, after: 0 },
            Stretch { mark: u32::MAX, after: 5 },
        ]),
    }
}

fn floor(updates: u32) -> FloorRecord {
    FloorRecord::new(&Floor::under(&state(FeedNoise::default()), updates, None), true)
}

fn kept() -> KeptRecord {
    let entry = Entry {
        span: 0..0,
        markup: "<entry><id>urn:x</id></entry>".into(),
        slots: Slots { attributes: 6, inner: Some(7), id: Some(11..16), id_element: Some(7..21) },
        context: context().into(),
        native_id: Some("urn:x".into()),
        id_is_permalink: true,
        link: Some(URL.into()),
        title: Some("Über".into()),
        author: Some("A".into()),
        published: Some(at(2)),
        updated: Some(at(3)),
        enclosures: vec!["https://example.org/a.mp3".into()],
        fields: vec![Field { path: "title".into(), value: "Über".into() }],
        sync: None,
    };
    KeptRecord::new(&[Kept { entry, format: Format::Atom03, since: at(31), foreign: true }])
}

fn event(kind: EventKind) -> EventRecord {
    EventRecord::from(&Event {
        kind,
        id: id("gate.example.abc"),
        native_id: "new".to_owned(),
        old_native_id: Some("old".to_owned()),
        title: "Title".to_owned(),
        tick: Some(Tick::at(at(30))),
        reason: "same link".to_owned(),
        at: at(30),
        seen_gone: Some(at(20)),
    })
}

fn note(shown: Time, size: u64) -> NoteRecord {
    NoteRecord::from(&VersionNote {
        updates: Count::new(3).unwrap(),
        update: history().topmost().clone(),
        deleted: true,
        tick: Tick::at(at(30)),
        title: "Title".to_owned(),
        reason: "hole".to_owned(),
        shown,
        size,
    })
}

fn log() -> LogRecord {
    let announced = crate::store::Announced {
        feed: FeedName::new("news").unwrap(),
        tick: Tick::at(at(30)),
        revision: Revision(12),
        versions: 2,
    };
    LogRecord::new(at(31), &announced)
}

/// The bytes in a file: hexadecimal, white space ignored.
pub(super) fn golden(name: &str, written: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store").join(name);
    if std::env::var_os("TIDEGATE_GOLDEN").is_some() && !path.exists() {
        let digits = data_encoding::HEXLOWER.encode(written);
        let lines: Vec<&str> =
            digits.as_bytes().chunks(80).map(|line| std::str::from_utf8(line).unwrap()).collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let digits: String = text.split_whitespace().collect();
    data_encoding::HEXLOWER.decode(digits.as_bytes()).unwrap()
}

macro_rules! specimens {
    ($($test:ident: $file:literal, $value:expr, $record:ty;)+) => {
        $(
            #[test]
            fn $test() {
                let value: $record = $value;
                let written = encode(&value).unwrap();
                let stored = golden($file, &written);
                assert_eq!(decode::<$record>(&stored).unwrap(), value);
                // Compressed bytes depend on the compressor's version, plain ones on nothing.
                if stored[1] == PLAIN {
                    assert_eq!(written, stored, "the layout changed without a new version");
                }
            }
        )+
    };
}

pub(super) use specimens;

specimens! {
    markup_1: "markup-1.hex", markup("<entry><id>urn:x</id></entry>"), MarkupRecord;
    markup_packed_1: "markup-packed-1.hex",
        markup(&format!("<entry>{}</entry>", "<p>text</p>".repeat(60))), MarkupRecord;
    skeleton_1: "skeleton-1.hex", skeleton(), SkeletonRecord;
    kept_1: "kept-1.hex", kept(), KeptRecord;
    archive_1: "archive-1.hex", ArchiveRecord::new(&archive_note(), 2), ArchiveRecord;
    archive_number_1: "archive-number-1.hex", ArchiveNumber(7), ArchiveNumber;
    segment_1: "segment-1.hex", segment("<entry><id>urn:x</id></entry>"), SegmentRecord;
    event_3: "event-3.hex", event(EventKind::Discarded), EventRecord;
    note_2: "note-2.hex", note(at(32), 770), NoteRecord;
    poll_8: "poll-8.hex", paused_poll(), PollRecord;
    feed_7: "feed-7.hex", placed_feed(), FeedRow;
    subscription_2: "subscription-2.hex", subscription(Some(at(90))), SubscriptionRecord;
    log_1: "log-1.hex", log(), LogRecord;
    order_1: "order-1.hex", OrderRecord::new(&[id("b"), id("a")]), OrderRecord;
    floor_2: "floor-2.hex", floor(6), FloorRecord;
    head_1: "head-1.hex", head(), HeadRecord;
    history_1: "history-1.hex", history_record(), HistoryRecord;
    identity_2: "identity-2.hex", identity(SupIdBasis::Name), IdentityRecord;
}

/// Layouts that are not written any more are still read.
#[test]
fn earlier_layouts_are_read() {
    let stored = golden("poll-1.hex", &[]);
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), poll("", None, None));
    let stored = golden("known-2.hex", &[]);
    let second = known("gone while older items stay", noise(), 9, None);
    assert_eq!(decode::<KnownRecord>(&stored).unwrap(), second);
    let stored = golden("known-3.hex", &[]);
    let third = known("gone while older items stay", noise(), 9, Some(probe()));
    assert_eq!(decode::<KnownRecord>(&stored).unwrap(), third);
    let stored = golden("note-1.hex", &[]);
    assert_eq!(decode::<NoteRecord>(&stored).unwrap(), note(at(30), 0));
    let stored = golden("poll-2.hex", &[]);
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), poll(URL, Some(u128::MAX - 1), None));
    let stored = golden("poll-3.hex", &[]);
    let third = Backfill { taken_bytes: 0, ..walk() };
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), poll(URL, Some(u128::MAX - 1), Some(third)));
    let stored = golden("poll-4.hex", &[]);
    let fourth = poll(URL, Some(u128::MAX - 1), Some(walk()));
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), fourth);
    let stored = golden("poll-5.hex", &[]);
    let fifth = poll_and_hub(URL, Some(u128::MAX - 1), Some(walk()), (Some(hub()), None));
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), fifth);
    let stored = golden("subscription-1.hex", &[]);
    assert_eq!(decode::<SubscriptionRecord>(&stored).unwrap(), subscription(None));
    assert_eq!(decode::<FloorRecord>(&golden("floor-1.hex", &[])).unwrap(), floor(0));
    let events = [("event-1.hex", EventKind::Rekeyed), ("event-2.hex", EventKind::Backfilled)];
    for (file, kind) in events {
        assert_eq!(decode::<EventRecord>(&golden(file, &[])).unwrap(), event(kind));
    }
    let stored = golden("state-2.hex", &[]);
    let mut second = state(feed_noise());
    second.archives.free = 0;
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), StateRecord::new(&second, 40));
    // Before there were archives: all that is known is still to be sealed.
    let stored = golden("state-1.hex", &[]);
    let mut first = FeedState {
        source: 0,
        deltas_from: 0,
        lineage: Lineage::default(),
        archives: Chain { unsealed: 11 + 12, ..Chain::default() },
        ..state(FeedNoise::default())
    };
    if let Some(hold) = &mut first.hold {
        (hold.source, hold.kept) = (0, 0);
    }
    let character = &mut first.character;
    (character.came_alone, character.came_sliding) = (0, 0);
    (character.came_swapping, character.went_alone) = (0, 0);
    assert_eq!(decode::<StateRecord>(&stored).unwrap(), StateRecord::new(&first, 40));
}

/// A record stored as a difference is read as long as its base is.
#[test]
fn a_difference_is_read() {
    let xml = |edit: &str| format!("<entry>{edit}{}</entry>", "<p>text</p>".repeat(60));
    let newer = encode(&markup(&xml("two"))).unwrap();
    let written = encode(&markup(&xml("one"))).unwrap();
    let written = delta::against(&written, at(40), &newer).unwrap().unwrap();
    let stored = golden("markup-difference-1.hex", &written);
    assert_eq!(delta::base(&stored).unwrap(), Some(at(40)));
    let base = delta::payload(&newer, None).unwrap();
    let payload = delta::payload(&stored, Some(&base)).unwrap();
    assert_eq!(delta::read::<MarkupRecord>(&stored, &payload).unwrap(), markup(&xml("one")));
}

fn archive_note() -> ArchiveNote {
    ArchiveNote {
        number: 4,
        id: ArchiveId::new("abc123").unwrap(),
        previous: ArchiveId::new("abc122"),
        sealed: at(30),
        until: Tick::at(at(29)),
        entries: 19,
        deletions: 1,
        bytes: 2048,
        redacted: Some(at(40)),
        dropped: true,
    }
}

fn segment(xml: &str) -> SegmentRecord {
    let version = |sequence, conflict: bool| Version {
        id: id("gate.example.abc"),
        updates: Count::new(sequence).unwrap(),
        deleted: conflict,
        noconflicts: conflict.then_some(false),
        history: history(),
        data: Markup::try_from(markup(xml)).unwrap(),
    };
    let item = Item {
        shared: Shared { winner: version(3, false), conflicts: vec![version(2, true)] },
        published_id: "urn:0".to_owned(),
        tick: Tick::at(at(30)),
        standing: Standing::Retired { since: at(31) },
        sse091: None,
        extras: None,
        touched: 0,
    };
    let deletion = Deletion { id: id("d"), published_id: "urn:d".to_owned(), when: at(20) };
    let archive = Archive {
        upstream: URL.to_owned(),
        skeleton: Skeleton::try_from(skeleton()).unwrap(),
        items: vec![item],
        deleted: vec![deletion],
    };
    let mut blocks = SegmentRecord::blocks(&archive, 1 << 20);
    assert_eq!(SegmentRecord::join(blocks.clone()).unwrap(), archive);
    blocks.remove(0)
}

fn head() -> HeadRecord {
    let mut head = HeadRecord::new(Tick::at(at(0)));
    head.set_tick(Tick::at(at(30)));
    (head.latest, head.kept) = (true, 3);
    assert_eq!(Time::from(Seconds::from(at(0))), head.body().time());
    head
}
