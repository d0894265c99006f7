//! Specimens of feeds and of what polling remembers of them.

use super::files::{URL, at};
use super::*;
use std::time::Duration;
use tidegate_core::websub::{
    Active, CallbackPurpose, Manner, PendingRequest, Secret, Subscription,
};

fn schedule() -> PollSchedule {
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

/// Of a feed that is gone, at a host that asked for a pause.
pub(super) fn poll() -> PollState {
    PollState {
        feed: FeedName::new("news").unwrap(),
        url: URL.to_owned(),
        body: Some(u128::MAX - 1),
        etag: Some("W/\"1\"".to_owned()),
        last_modified: Some("Fri, 20 Nov 2026 16:20:05 GMT".to_owned()),
        answered_by: Some(URL.to_owned()),
        moved_to: Some("https://example.net/".to_owned()),
        failures: 3,
        last_error: Some("timeout".to_owned()),
        refreshed: Some(at(4)),
        not_before: Some(at(5)),
        backfill: Some(Box::new(walk())),
        subscription: Some(Box::new(hub())),
        schedule: Some(Box::new(schedule())),
        gone: 2,
        pause: Some(HostPause { address: URL.to_owned(), until: at(5) }),
        overlap: Overlap {
            half_life: Some(Duration::from_secs(7200)),
            missed: 2,
            last_missed: Some(at(6)),
        },
        interruptions: interruptions(),
    }
}

fn interruptions() -> Interruptions {
    let failed = Interruption {
        kind: InterruptionKind::Failed,
        since: at(1),
        until: Some(at(2)),
        reason: "it answered 503".to_owned(),
    };
    let held = Interruption {
        kind: InterruptionKind::Held,
        since: at(3),
        until: None,
        reason: "the document has no entries".to_owned(),
    };
    [failed, held].into_iter().collect()
}

fn walk() -> Backfill {
    Backfill {
        standing: WalkStanding::Stopped,
        trail: Some(ArchiveLayout::Numbered),
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

fn hub() -> HubSubscription {
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
        trust: PushTrust { awaited: Some(at(12)), missed: 1, distrusted_until: Some(at(14)) },
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

/// A feed that shares, at a secret address, in two places of the list of subscriptions.
pub(super) fn feed() -> FeedRecord {
    let by = |text: &str| EndpointId::new(text).unwrap();
    let name = |text: &str| FeedName::new(text).unwrap();
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
    FeedRecord {
        name: name("news"),
        url: URL.to_owned(),
        source: FeedSource::Api,
        standing: FeedStanding::Paused,
        options: FeedOptions {
            complete: true,
            deletions: Deletions::Eager,
            min_interval: Some(std::time::Duration::from_secs(300)),
            max_interval: Some(std::time::Duration::from_millis(86_400_500)),
            order: Order::OldestFirst,
            probe: Probing::All,
            backfill: true,
            ignore: noise(),
            sharing: SharingOptions {
                local: true,
                title: Some("What we read".to_owned()),
                sources: vec![name("a"), name("b")],
                shares_with: vec![name("c")],
                conflicts: ConflictPolicy::Prefer(by("gate.example")),
            },
            secret: Some(true),
            items: Some(20_000),
            without: Without::default(),
        },
        enrolment: Enrolment {
            title: Some("Über".to_owned()),
            version: Count::new(3).unwrap(),
            history: vec![
                Stamp::Both { when: at(30), by: by("gate.example") },
                Stamp::By(by("other:é")),
                Stamp::When(at(-30)),
            ],
            places: vec![place(0, &[300, 2], 1), place(2, &[], 0)],
            next_place: 3,
        },
        access: Some(Box::new(access())),
        private: true,
        adds_feeds: true,
        list: Some(ListMember {
            list: name("ours"),
            standing: MemberStanding::Dropped,
            placed: 0x5f0c_31ab_0000_0007,
        }),
        on_demand: Some(OnDemand {
            site: URL.to_owned(),
            asked: at(40),
            is_let_go: true,
            is_json: true,
        }),
    }
}

fn access() -> FeedAccess {
    let literal = |text: &str| SecretSource::Literal(SecretText::new(text).unwrap());
    let pair = || UserPassword { user: literal("me"), password: SecretSource::LeftOut };
    FeedAccess {
        headers: vec![
            ("X-Api-Key".to_owned(), SecretSource::Env("NEWS_KEY".to_owned())),
            ("X-Other".to_owned(), literal("hush")),
        ],
        cookie: Some(SecretSource::File("/run/secrets/news".to_owned())),
        user_agent: Some("reader".to_owned()),
        login: Some(Login::Basic(pair())),
        route: Some(ProxyRoute::Proxy(ProxyAddress {
            url: "socks5://proxy.example:1080".to_owned(),
            login: Some(Box::new(pair())),
        })),
    }
}

pub(super) fn subscription() -> Subscription {
    let tick = |seconds| Some(Tick::at(at(seconds)));
    Subscription {
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
            gone: Some(at(90)),
            trouble: Some("the callback answered 500".to_owned()),
        }),
        pending: Some(PendingRequest {
            wanted: CallbackPurpose::Subscribe { lease: 600, secret: None, told: tick(29) },
            asked: at(40),
            attempts: 1,
            not_before: Some(at(70)),
            trouble: Some("the callback answered 503".to_owned()),
        }),
    }
}

pub(super) fn identity() -> IdentityRecord {
    let endpoint = EndpointId::own("gate.example").unwrap();
    let lineage =
        Lineage::new([Stretch { mark: 0x5f0c_31ab, after: 0 }, Stretch { mark: 9, after: 12 }]);
    let running = Some(Time::from_unix(1_795_191_600));
    IdentityRecord { endpoint, fence: 7, sup_ids: SupIdBasis::Name, lineage, running }
}
