//! What polling says of feeds, and what publishers answer.

use super::*;
use tidegate_core::model::{Interruption, InterruptionKind};
use tidegate_net::fetch::Services;
use tidegate_poll::testing::idle::IdlePolling;
use tokio::sync::Semaphore;
use url::Url;

/// A page with a feed, for an address with `site` in it, and 503 for that of a feed of [`TestStore::with_news`]; a feed
/// of twelve entries for any other one.
pub(in crate::tests) fn services() -> Services {
    let answer = |url: &Url| {
        SiteAnswer::Text(match url.as_str().contains("site") {
            true => "<html><head><link rel='alternate' type='application/atom+xml' title='&lt;i>Posts&lt;/i>' \
                     href='https://site.example/%3Cb%3E/feed'></head></html>"
                .to_owned(),
            false => {
                let entries = (1..=12).map(|n| format!("<item><title>&lt;b>{n}&lt;/b></title></item>"));
                let entries = entries.collect::<String>();
                format!("<rss version='2.0'><channel><title>&lt;u>News&lt;/u></title>{entries}</channel></rss>")
            }
        })
    };
    ScriptedSite::new(Semaphore::MAX_PERMITS, answer).services()
}

/// `news` is polled and fails; of the others nothing is known yet.
pub(in crate::tests) fn tell_of_feeds(polling: &IdlePolling, store: &TestStore) {
    for feed in ["news", "radio", "new", "still"] {
        let status = if feed == "news" { self::polling() } else { PollStatus::default() };
        let record =
            store.record(&name(feed)).unwrap_or_else(|| record(feed, FeedStanding::Active));
        polling.tell(&record, status);
    }
}

/// How the polling of `news` stands.
pub(in crate::tests) fn polling() -> PollStatus {
    let failure = PollFailure {
        error: "<script>alert('upstream')</script>".to_owned(),
        blame: FetchBlame::Upstream,
        status: Some(503),
    };
    PollStatus {
        polls: [FinishedPoll {
            at: at(-60),
            took: Duration::from_millis(1234),
            outcome: PollEnding::Failed,
            asked_for: false,
            bytes: 99,
            committed: false,
            is_apart: false,
            entries: None,
            rewritten: 1,
            counts: [(EventKind::Created, 2)].into(),
            failure: Some(failure),
            notes: vec!["<em>an odd redirect</em>".to_owned()],
        }]
        .into(),
        probes: [FinishedProbe {
            at: at(-30),
            requests: 3,
            said: vec!["https://example.org/<kbd>a</kbd> is gone (404)".to_owned()],
            counts: EventCounts::new(),
        }]
        .into(),
        next: Some(ScheduledPoll { at: at(300), reason: "the feed's ttl".to_owned() }),
        failures: 3,
        moved_to: Some("https://me:secret@elsewhere.example/".to_owned()),
        document: Some(ParsedNote {
            at: at(-600),
            entries: 9,
            partial: Some("it breaks off <b>here</b>".to_owned()),
            warnings: vec!["at byte 7: <q>odd</q>".to_owned()],
        }),
        same: 2,
        gaps: PollGaps { count: 2, last: Some(at(-7200)) },
        interruptions: [(-7 * 86_400, Some(-5 * 86_400)), (-3600, None)]
            .map(|(since, until)| Interruption {
                kind: InterruptionKind::Failed,
                since: at(since),
                until: until.map(at),
                reason: "it answered <b>503</b>".to_owned(),
            })
            .into_iter()
            .collect(),
        backfill: Some(Backfill {
            trail: Some(ArchiveLayout::Pages),
            next: Some("https://me:secret@upstream.example/?page=3".to_owned()),
            documents: 2,
            items: 17,
            note: Some("it answered <dfn>503</dfn>".to_owned()),
            ..Backfill::begin(at(-30))
        }),
        ..PollStatus::default()
    }
}

pub(in crate::tests) fn status(feed: &str) -> FeedStatus {
    let record = record(feed, FeedStanding::Active);
    FeedStatus {
        name: record.name,
        url: record.url,
        source: record.source,
        standing: record.standing,
        options: record.options,
        access: None,
        private: false,
        adds_feeds: false,
        feeds_of_list: None,
        list: None,
        polling: polling(),
        held: Some("<u>empty</u>".to_owned()),
        pending: vec![PendingAbsence {
            id: id("a"),
            native_id: "urn:<s>a</s>".to_owned(),
            title: "<u>A</u>".to_owned(),
            evidence: Evidence::Hole,
            seen: "gone while <tt>older</tt> items stay".to_owned(),
            since: at(-3600),
            observations: 2,
            needed: 3,
            decides_at: at(23 * 3600),
            would: Conclusion::Delete,
            probe: Some(Probe {
                asked: 2,
                last: at(-30),
                heard: Some(ProbeAnswer { gone: true, status: 404, first: at(-60), last: at(-60) }),
                silence: Some("it answered <var>503</var>".to_owned()),
            }),
            answered: Some("its own address answered <samp>404</samp>".to_owned()),
        }],
        pending_absences: 1,
        hub: Some(HubNote {
            state: "subscribed",
            words: "the hub delivers: <code>no</code>".to_owned(),
            hub: ShownAddress::new("https://hub.example/?<i>", None),
            others: Vec::new(),
            topic: ShownAddress::new("https://upstream.example/?<b>", None),
            until: Some(at(900)),
            next: at(600),
            missed: 0,
            distrusted_until: Some(at(3600)),
            pushes: 7,
            last_push: Some(at(-90)),
            disbelieved: RejectedPushes {
                count: 2,
                last: Some(RejectedPush {
                    at: at(-80),
                    why: "the <cite>signature</cite>".to_owned(),
                }),
            },
        }),
        polled_by: None,
        gathered: None,
    }
}

/// What polling knows of a subscription under this topic; one of the hubs has a key in its address.
pub(in crate::tests) fn hub_report(topic: &str) -> HubReport {
    let hubs = ["https://hub.example/", "https://hub.example/?key=4fJ9xQ2mLp7Rk1Zt"];
    let subscription = HubSubscription {
        topic: topic.to_owned(),
        hubs: hubs.map(str::to_owned).to_vec(),
        hub: 0,
        keys: SubscriptionKeys { token: String::new(), secret: String::new() },
        callbacks: String::new(),
        standing: SubscriptionStanding::Waiting,
        next: at(0),
        lease: None,
        failures: 0,
        spent: None,
        note: None,
        trust: PushTrust::default(),
        last_push: None,
        pushes: 0,
    };
    HubReport { subscription, disbelieved: RejectedPushes::default() }
}
