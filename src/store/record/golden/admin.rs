//! Specimens of feeds and of what polling remembers of them.

use super::files::{URL, at, golden};
use super::*;
use crate::websub::{Active, Manner, Pending, Secret, Wanted};

pub(super) fn poll(url: &str, body: Option<u128>, backfill: Option<Backfill>) -> PollRecord {
    poll_and_hub(url, body, backfill, (None, None))
}

pub(super) fn schedule() -> PollSchedule {
    let span = |seconds| Some(std::time::Duration::from_secs(seconds));
    PollSchedule {
        noted: at(4),
        polled: at(3),
        hints: UpdateHints {
            ttl: span(3600),
            period: span(7200),
            skip_hours: vec![1, 2],
            skip_days: vec![6],
            expires: Some(at(6)),
        },
        freshness: span(600),
        last_change: at(-90),
        gap: span(86_400),
        retry: Some((at(5), "it failed once".to_owned())),
    }
}

pub(super) fn poll_and_hub(
    url: &str,
    body: Option<u128>,
    backfill: Option<Backfill>,
    others: (Option<HubSubscription>, Option<PollSchedule>),
) -> PollRecord {
    PollRecord::from(&poll_state(url, body, backfill, others))
}

/// One of a feed that is gone, at a host that asked for a pause.
pub(super) fn paused_poll() -> PollRecord {
    let others = (Some(hub()), Some(schedule()));
    PollRecord::from(&PollState {
        gone: 2,
        pause: Some(HostPause { address: URL.to_owned(), until: at(5) }),
        ..poll_state(URL, Some(u128::MAX - 1), Some(walk()), others)
    })
}

fn poll_state(
    url: &str,
    body: Option<u128>,
    backfill: Option<Backfill>,
    (subscription, schedule): (Option<HubSubscription>, Option<PollSchedule>),
) -> PollState {
    PollState {
        feed: FeedName::new("news").unwrap(),
        url: url.to_owned(),
        body,
        etag: Some("W/\"1\"".to_owned()),
        last_modified: Some("Fri, 20 Nov 2026 16:20:05 GMT".to_owned()),
        answered_by: Some(URL.to_owned()),
        moved_to: Some("https://example.net/".to_owned()),
        failures: 3,
        last_error: Some("timeout".to_owned()),
        refreshed: Some(at(4)),
        not_before: Some(at(5)),
        backfill,
        subscription,
        schedule,
        gone: 0,
        pause: None,
    }
}

pub(super) fn walk() -> Backfill {
    Backfill {
        standing: WalkStanding::Stopped,
        trail: Some(Trail::Numbered),
        next: Some("https://example.org/?paged=7".to_owned()),
        documents: 6,
        items: 50,
        known: 10,
        bytes: 70_000,
        taken_bytes: 60_000,
        failures: 2,
        started: at(6),
        ended: Some(at(7)),
        note: Some("the publisher answered 503".to_owned()),
        marks: vec![u64::MAX, 0],
        gone: vec![8],
    }
}

pub(super) fn hub() -> HubSubscription {
    HubSubscription {
        topic: URL.to_owned(),
        hubs: vec!["https://a.example/".to_owned(), "https://b.example/".to_owned()],
        hub: 1,
        keys: SubscriptionKeys { token: "token".to_owned(), secret: "secret".to_owned() },
        callbacks: "https://gate.example/websub/callback".to_owned(),
        standing: SubscriptionStanding::Verified,
        next: at(8),
        lease: Some(Lease { since: at(9), until: at(10) }),
        failures: 1,
        attempts: 2,
        day: at(11),
        note: Some("it answered 503".to_owned()),
        trust: HubTrust::Distrusted,
        heard: 3,
        silent: 4,
        suspect: Some(at(12)),
        last_push: Some(at(13)),
        pushes: 5,
    }
}

/// What a feed ignores in the specimens.
fn noise() -> Vec<Ignore> {
    vec![
        Ignore::new("media:keywords", None).unwrap(),
        Ignore::new("description", Some("[0-9]+ views")).unwrap(),
    ]
}

/// The same in two places of the list of subscriptions.
pub(super) fn placed_feed() -> FeedRow {
    let mut record = FeedRecord::try_from(secret_feed()).unwrap();
    let label = |text: &str| OutlineLabel {
        text: Some(text.to_owned()),
        title: Some("Über".to_owned()),
        description: Some("all of it".to_owned()),
        category: Some("/a/b,c".to_owned()),
        language: Some("de".to_owned()),
    };
    let place = |number, folders: &[u32], position| ListPlace {
        number,
        folders: folders.iter().map(|p| ListFolder { position: *p, label: label("F") }).collect(),
        position,
        label: label("own"),
        site: Some(URL.to_owned()),
    };
    record.enrolment.places = vec![place(0, &[300, 2], 1), place(2, &[], 0)];
    record.enrolment.next_place = 3;
    FeedRow::from(&record)
}

/// A feed whose address is secret.
fn secret_feed() -> FeedRow {
    let mut record = FeedRecord::try_from(shared_feed()).unwrap();
    record.options.secret = Some(true);
    FeedRow::from(&record)
}

/// A feed that says how it takes part in sharing.
pub(super) fn shared_feed() -> FeedRow {
    let sharing = SharingOptions {
        local: true,
        title: Some("What we read".to_owned()),
        sources: vec![FeedName::new("a").unwrap(), FeedName::new("b").unwrap()],
        shares_with: vec![FeedName::new("c").unwrap()],
        conflicts: ConflictPolicy::Prefer(EndpointId::new("gate.example").unwrap()),
    };
    let row = feed(Order::OldestFirst, true, noise(), true, sharing);
    let enrolment = FeedRecord::try_from(listed_feed()).unwrap().enrolment;
    FeedRow::from(&FeedRecord { enrolment, ..FeedRecord::try_from(row).unwrap() })
}

#[test]
fn feeds_of_earlier_layouts_lack_what_came_later() {
    let unshared = SharingOptions::default;
    for (name, expected) in [
        ("feed-6.hex", secret_feed()),
        ("feed-5.hex", shared_feed()),
        ("feed-4.hex", listed_feed()),
        ("feed-3.hex", feed(Order::OldestFirst, true, noise(), true, unshared())),
        ("feed-2.hex", feed(Order::OldestFirst, true, noise(), false, unshared())),
        ("feed-1.hex", feed(Order::Auto, false, Vec::new(), false, unshared())),
    ] {
        assert_eq!(decode::<FeedRow>(&golden(name, &[])).unwrap(), expected, "{name}");
    }
}

fn feed(
    order: Order,
    probe: bool,
    ignore: Vec<Ignore>,
    backfill: bool,
    sharing: SharingOptions,
) -> FeedRow {
    FeedRow::from(&FeedRecord {
        name: FeedName::new("news").unwrap(),
        url: URL.to_owned(),
        source: FeedSource::Api,
        standing: FeedStanding::Paused,
        options: FeedOptions {
            complete: true,
            deletions: Deletions::Eager,
            min_interval: Some(std::time::Duration::from_secs(300)),
            max_interval: Some(std::time::Duration::from_millis(86_400_500)),
            order,
            probe,
            backfill,
            ignore,
            sharing,
            secret: None,
            without: Without::default(),
        },
        enrolment: Enrolment::default(),
    })
}

/// The same with a place in the list of subscriptions.
fn listed_feed() -> FeedRow {
    let row = feed(Order::OldestFirst, true, Vec::new(), true, SharingOptions::default());
    let by = |text: &str| EndpointId::new(text).unwrap();
    FeedRow::from(&FeedRecord {
        enrolment: Enrolment {
            title: Some("Über".to_owned()),
            version: Count::new(3).unwrap(),
            history: vec![
                Stamp::Both { when: at(30), by: by("gate.example") },
                Stamp::By(by("other:é")),
                Stamp::When(at(-30)),
            ],
            ..Enrolment::default()
        },
        ..FeedRecord::try_from(row).unwrap()
    })
}

pub(super) fn subscription(gone: Option<Time>) -> SubscriptionRecord {
    let tick = |seconds| Some(Tick::at(at(seconds)));
    SubscriptionRecord::from(&Subscription {
        manner: Manner::RssCloud,
        feed: FeedName::new("news").unwrap(),
        topic: "https://gate.example/feeds/news?sx=feedsync".to_owned(),
        callback: url::Url::parse("https://reader.example/push?id=7").unwrap(),
        active: Some(Active {
            secret: Secret::new("hush").ok(),
            since: at(0),
            until: at(864_000),
            told: tick(30),
            delivered: Some(at(31)),
            deliveries: 300,
            failures: 2,
            not_before: Some(at(91)),
            gone,
            trouble: Some("the callback answered 500".to_owned()),
        }),
        pending: Some(Pending {
            wanted: Wanted::Subscribe { lease: 600, secret: None, told: tick(29) },
            asked: at(40),
            attempts: 1,
            not_before: Some(at(70)),
            trouble: Some("the callback answered 503".to_owned()),
        }),
    })
}

pub(super) fn history_record() -> HistoryRecord {
    let mut history = HistoryRecord::default();
    history.set_order(at(30), 3);
    history.set_skeleton(at(20), 0);
    history
}

/// Before `expires` was remembered.
#[test]
fn the_schedule_of_the_sixth_layout_is_read() {
    let stored = golden("poll-6.hex", &[]);
    let mut old = schedule();
    old.hints.expires = None;
    let sixth = poll_and_hub(URL, Some(u128::MAX - 1), Some(walk()), (Some(hub()), Some(old)));
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), sixth);
}

/// Before pauses of hosts were remembered.
#[test]
fn the_polls_of_the_seventh_layout_are_read() {
    let stored = golden("poll-7.hex", &[]);
    let others = (Some(hub()), Some(schedule()));
    let seventh = poll_and_hub(URL, Some(u128::MAX - 1), Some(walk()), others);
    assert_eq!(decode::<PollRecord>(&stored).unwrap(), seventh);
}

pub(super) fn identity(sup_ids: SupIdBasis) -> IdentityRecord {
    IdentityRecord::new(&EndpointId::own("gate.example").unwrap(), 7, sup_ids)
}

/// A store that was made before SUP ids could be made of anything else goes on with those it has.
#[test]
fn sup_ids_of_the_first_layout_are_made_of_the_endpoint() {
    let stored = golden("identity-1.hex", &[]);
    let first = decode::<IdentityRecord>(&stored).unwrap();
    assert_eq!((first.sup_ids(), first), (SupIdBasis::Endpoint, identity(SupIdBasis::Endpoint)));
}
