//! The specimens in `tests/golden/store`: bytes of each kind of record, so that no layout changes by accident.
//!
//! `TIDEGATE_GOLDEN=write cargo test -p tidegate-store golden` writes them anew.

use super::admin::feed as feed_record;
use super::admin::{identity, poll, subscription};
use super::ledger::{frame, item, stub};
use super::*;
use crate::purge_mark::PurgeMark;
use crate::{AppliedOrigins, Epoch, LoggedChange, VersionNote};
use std::path::Path;

pub(super) const URL: &str = "https://example.org/";

pub(super) fn at(seconds: i64) -> Time {
    Time::from_unix(1_795_191_605 + seconds)
}

pub(super) fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

pub(super) fn history() -> History {
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

pub(super) fn markup(xml: &str) -> Markup {
    Markup {
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
    }
}

pub(super) fn skeleton() -> Skeleton {
    Skeleton {
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
    }
}

pub(super) fn known() -> LedgerEntry {
    let by = EndpointId::new("JEO2000").unwrap();
    let attributes = vec![(Some("urn:x".to_owned()), "a".to_owned(), "1".to_owned())];
    let extra = Extra { attributes, elements: "<x xmlns=\"urn:x\"/>".to_owned() };
    let update = Update { sequence: Count::ONE, stamp: Stamp::By(by) };
    LedgerEntry {
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
        noconflicts: Some(false),
        conflicts: 2,
        origin: Origin::Feed(FeedName::new("news").unwrap()),
        first_seen: at(-31),
        came: at(18),
        standing: ItemStatus::Deleted { since: at(30) },
        absence: Some(Absence {
            evidence: Evidence::Hole,
            since: at(20),
            observations: 4,
            doubts: Doubts::NONE,
            seen: "gone while older items stay".to_owned(),
            probe: Some(probe()),
        }),
        prints: vec![(1, 2), (u64::MAX, 0)],
        bytes: 77,
        noise: noise(),
        sse091: Some(true),
        extras: Some(Box::new(SyncExtras { sync: extra.clone(), updates: vec![(update, extra)] })),
        touched: 9,
    }
}

fn probe() -> Probe {
    Probe {
        asked: 3,
        last: at(29),
        heard: Some(ProbeAnswer { gone: true, status: 410, first: at(21), last: at(25) }),
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
            value: 8,
            changes: 3,
            spans: vec![Span { before: 10, after: 11, value: 12, changes: 2, told: true }],
            last: at(33),
            pace: 60,
            masked: Some(at(33)),
        }],
        held: true,
        made: Some(DayVersions { since: at(30), versions: 24 }),
        waiting: Some(WaitingChange {
            cause: WaitCause::Cap,
            since: at(31),
            due: at(90),
            fields: "title".to_owned(),
        }),
        scheme: 1,
    }
}

fn feed_noise() -> FeedNoise {
    FeedNoise {
        spans: vec![SharedSpan {
            path: "title".to_owned(),
            before: None,
            after: Some(" view".to_owned()),
            items: 3,
            since: at(31),
            last: at(33),
        }],
        ignored: 14,
    }
}

fn state() -> StateRecord {
    let state = FeedState {
        revision: Revision(12),
        tick: Some(Tick::at(at(30))),
        window_start: Some(Tick::at(at(-31))),
        complete_start: Some(Tick::at(at(-32))),
        render_revision: 9,
        updated_at: at(30),
        format: Format::Rss10,
        says_complete: true,
        wire: u128::MAX,
        body: 5,
        head: 6,
        site: Some(URL.to_owned()),
        source: 14,
        source_since: Some(at(90)),
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
        },
        noise: feed_noise(),
        hold: Some(Hold {
            reason: "empty".to_owned(),
            kind: "empty".to_owned(),
            since: at(31),
            row_since: at(30),
            observations: 2,
            documents: 2,
            body: 3,
            source: 15,
            kept: 1,
            decision: Some(Decision::Drop),
        }),
        next_decision_at: Some(at(60)),
        current: 10,
        living: 11,
        tombstones: 12,
        evictions: Evictions { count: 14, since: Some(at(81)), latest: Some(at(82)) },
        sync_ids_issued: 13,
        archives: Chain {
            sealed: Some(Tick::at(at(29))),
            unsealed: 2,
            newest: ArchiveId::new("abc123").ok(),
            first: 3,
            next: 5,
            free: 4,
            bytes: 4096,
        },
        deltas_from: 8,
        upstream_until: Some("2026-11-20T16:20:05Z".to_owned()),
        updates_before: 300,
        gap: Some(Gap { since: at(70), until: at(80) }),
        flaws: FlawHistory {
            rows: [0, 1, 2, 3, 0, 1],
            doubted: vec![4, 5],
            body: 6,
            charset: Some("UTF-8".to_owned()),
        },
        told: HeadHistory {
            scheme: 1,
            told: 7,
            latest: 8,
            shape: 9,
            row: 1,
            last: Some(at(91)),
            made: Some(DayVersions { since: at(90), versions: 2 }),
        },
        lineage: Lineage::new([
            Stretch { mark: 7, after: 0 },
            Stretch { mark: u32::MAX, after: 5 },
        ]),
    };
    StateRecord { state, next_event: 40, write: 300, asked_at: Some(at(29)) }
}

fn floor() -> FloorRecord {
    FloorRecord { floor: PurgeMark::under(&state().state, 6, None), sweeping: true }
}

fn kept() -> Vec<HeldEntry> {
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
        projection: vec![Field { path: "title".into(), value: "Über".into() }].into(),
        sync: None,
    };
    vec![HeldEntry { entry, format: Format::Atom03, since: at(31), foreign: true }]
}

fn event() -> Event {
    Event {
        kind: EventKind::Discarded,
        id: id("gate.example.abc"),
        native_id: "new".to_owned(),
        old_native_id: Some("old".to_owned()),
        title: "Title".to_owned(),
        tick: Some(Tick::at(at(30))),
        reason: "same link".to_owned(),
        at: at(30),
        seen_gone: Some(at(20)),
    }
}

fn note() -> VersionNote {
    VersionNote {
        updates: Count::new(3).unwrap(),
        update: history().topmost().clone(),
        deleted: true,
        tick: Tick::at(at(30)),
        title: "Title".to_owned(),
        reason: "hole".to_owned(),
        shown: at(32),
        size: 770,
    }
}

fn log() -> LoggedChange {
    LoggedChange {
        feed: FeedName::new("news").unwrap(),
        tick: Tick::at(at(30)),
        revision: Revision(12),
        versions: 2,
    }
}

/// The bytes in a file: hexadecimal, white space ignored.
pub(super) fn golden(name: &str, written: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/store").join(name);
    if std::env::var_os("TIDEGATE_GOLDEN").is_some() {
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
    ($($file:literal, $value:expr, $record:ty;)+) => {
        #[test]
        fn every_record_is_written_as_it_was() {
            $({
                let value: $record = $value;
                let written = encode(&value).unwrap();
                let stored = golden($file, &written);
                assert_eq!(decode::<$record>(&stored).unwrap(), value);
                // Compressed bytes depend on the compressor's version, plain ones on nothing.
                if stored[1] == PLAIN {
                    assert_eq!(written, stored, "{}: the layout is another one", $file);
                }
            })+
        }
    };
}

specimens! {
    "markup.hex", markup("<entry><id>urn:x</id></entry>"), Markup;
    "markup-packed.hex",
        markup(&format!("<entry>{}</entry>", "<p>text</p>".repeat(60))), Markup;
    "frame.hex", frame(), FrameRecord;
    "item.hex", item(), ItemRecord;
    "held.hex", kept(), Vec<HeldEntry>;
    "unsettled.hex", vec![id("b"), id("a")], Vec<SyncId>;
    "archive.hex", ArchiveRecord { note: archive_note(), blocks: 2 }, ArchiveRecord;
    "segment.hex", segment("<entry><id>urn:x</id></entry>"), SegmentRecord;
    "state.hex", state(), StateRecord;
    "events.hex", vec![event()], Vec<Event>;
    "poll.hex", poll(), PollState;
    "feed.hex", feed_record(), FeedRecord;
    "subscription.hex", subscription(), Subscription;
    "log.hex", log(), LoggedChange;
    "floor.hex", floor(), FloorRecord;
    "identity.hex", identity(), IdentityRecord;
    "log-ages.hex", log_ages(), LogAges;
    "attempt.hex", attempt(), Attempt;
    "stub.hex", stub(), Stub;
    "applied-origins.hex",
        AppliedOrigins([(FeedName::new("blog").unwrap(), URL.to_owned())].into()), AppliedOrigins;
}

/// A version stands before its bytes, which are a record of their own.
#[test]
fn a_text_is_written_as_it_was() {
    let body = encode(&markup("<entry><id>urn:x</id></entry>")).unwrap();
    let text = TextRecord { note: Some(note()), body: Some(body.into()) };
    let written = text.encode().unwrap();
    let stored = golden("text.hex", &written);
    assert_eq!(TextRecord::decode(&stored.clone().into()).unwrap(), text);
    let note = encode_plain(&text.note, VALUE_LIMIT).unwrap();
    assert!(stored.starts_with(&note), "the layout is another one");
    for cut in 0..note.len() {
        assert!(TextRecord::decode(&stored[..cut].to_vec().into()).is_err(), "{cut}");
    }
}

/// The number of each variant is part of the layout.
#[test]
fn variants_keep_their_numbers() {
    fn numbers<T: serde::Serialize>(values: &[T]) {
        for (number, value) in (0_u8..).zip(values) {
            assert_eq!(postcard::to_stdvec(value).unwrap().first(), Some(&number));
        }
    }
    let since = at(0);
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
    numbers(&[Atom10, Atom03, Rss20, Rss09x, Rss10, Rss090, JsonFeed, Opml]);
    use Evidence::*;
    numbers(&[Aged, Hole, Complete, Passed, Said, Unplaced]);
    numbers(&[Order::Auto, Order::NewestFirst, Order::OldestFirst, Order::Updated, Order::None]);
    numbers(&[Deletions::Safe, Deletions::Eager, Deletions::Off]);
    numbers(&[FeedSource::File, FeedSource::CommandLine, FeedSource::Api]);
    numbers(&[FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone]);
}

fn log_ages() -> LogAges {
    let mut ages = LogAges::default();
    ages.note(std::time::Duration::from_secs(3600), Epoch(7));
    ages.note(std::time::Duration::from_secs(7200), Epoch(300));
    ages
}

fn attempt() -> Attempt {
    let feed = FeedName::new("news").unwrap();
    Attempt { feed, entries: 300, begun: at(1), kills: 2, is_open: true }
}

/// A record stored as a difference is read as long as its base is.
#[test]
fn a_difference_is_read() {
    let xml = |edit: &str| format!("<entry>{edit}{}</entry>", "<p>text</p>".repeat(60));
    let newer = encode(&markup(&xml("two"))).unwrap();
    let written = encode(&markup(&xml("one"))).unwrap();
    let written = delta::against(&written, at(40), &newer).unwrap().unwrap();
    let stored = golden("markup-difference.hex", &written);
    assert_eq!(delta::base(&stored).unwrap(), Some(at(40)));
    let base = delta::payload(&newer, None).unwrap();
    let payload = delta::payload(&stored, Some(&base)).unwrap();
    assert_eq!(read_fields::<Markup>(&payload).unwrap(), markup(&xml("one")));
}

fn archive_note() -> ArchiveNote {
    ArchiveNote {
        number: 4,
        id: ArchiveId::new("abc123").unwrap(),
        previous: ArchiveId::new("abc122").ok(),
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
        data: markup(xml),
    };
    let item = Item {
        shared: Shared { winner: version(3, false), conflicts: vec![version(2, true)] },
        published_id: "urn:0".to_owned(),
        tick: Tick::at(at(30)),
        standing: ItemStatus::Retired { since: at(31) },
        sse091: None,
        extras: None,
        touched: 0,
    };
    let deletion = Deletion { id: id("d"), published_id: "urn:d".to_owned(), when: at(20) };
    let archive = Archive {
        upstream: URL.to_owned(),
        skeleton: skeleton(),
        items: vec![item],
        deleted: vec![deletion],
    };
    let mut blocks = SegmentRecord::blocks(&archive, 1 << 20);
    assert_eq!(SegmentRecord::join(blocks.clone()).unwrap(), archive);
    blocks.remove(0)
}
