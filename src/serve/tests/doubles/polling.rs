//! What polling says of feeds, and what publishers answer.

use super::*;
use tidegate_core::model::{Interruption, InterruptionKind};
use tidegate_core::websub::{Discovery, subscriber};
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

pub(in crate::tests) fn polling() -> PollStatus {
    let failure = PollFailure {
        error: "<script>alert('upstream')</script>".to_owned(),
        blame: FetchBlame::Upstream,
        status: Some(503),
    };
    let poll = FinishedPoll {
        took: Duration::from_millis(1234),
        bytes: 99,
        rewritten: 1,
        counts: [(EventKind::Created, 2)].into(),
        failure: Some(failure),
        notes: vec!["<em>an odd redirect</em>".to_owned()],
        ..FinishedPoll::new(at(-60), PollEnding::Failed)
    };
    let failed = |(since, until): (i64, Option<i64>)| Interruption {
        kind: InterruptionKind::Failed,
        since: at(since),
        until: until.map(at),
        reason: "it answered <b>503</b>".to_owned(),
    };
    let interruptions = [(-7 * DAY, Some(-5 * DAY)), (-3600, None)];
    PollStatus {
        polls: [poll].into(),
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
        interruptions: interruptions.into_iter().map(failed).collect(),
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

/// What polling knows of a subscription under this topic; one of the hubs has a key in its address.
pub(in crate::tests) fn hub_report(topic: &str) -> HubReport {
    let hubs = ["https://hub.example/", "https://hub.example/?key=4fJ9xQ2mLp7Rk1Zt"];
    let found = Discovery { hubs: hubs.map(str::to_owned).to_vec(), topic: topic.to_owned() };
    let keys = SubscriptionKeys { token: String::new(), secret: String::new() };
    let subscription = subscriber::begin(&found, keys, "", None, at(0));
    HubReport { subscription, disbelieved: RejectedPushes::default() }
}
