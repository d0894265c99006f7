use super::*;
use std::sync::Mutex;
use tidegate_core::model::{FeedRecord, WalkStanding};
use tidegate_net::fetch::Fetched;

const HOST: &str = "http://all.example";

/// Creates a store whose feeds all have one host.
fn store(feeds: &[&str]) -> Arc<ScriptedStore> {
    let store = store_of(feeds);
    for feed in feeds {
        store.edit_record(feed, |it| it.url = format!("{HOST}/{feed}/feed"));
    }
    store
}

fn busy(seconds: u64) -> FetchError {
    status_error(429, Some(Duration::from_secs(seconds)))
}

fn next(gateway: &Gateway, feed: &str) -> ScheduledPoll {
    gateway.poller.status(&name(feed)).unwrap().next.unwrap()
}

pub(super) fn is_put_off(gateway: &Gateway, feed: &str, until: u64) -> bool {
    let next = gateway.poller.status(&name(feed)).unwrap().next;
    next.is_some_and(|next| next.at >= later(until) && next.reason.contains("asked for a pause"))
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_line_of_a_host_waits_for_the_end_of_its_pause() {
    let feeds = ["one", "two", "three", "four"];
    let publisher = Publisher::new("one");
    publisher.fails(busy(1800));
    let gateway = Gateway::start(&store(&feeds), &publisher).await;
    eventually(|| publisher.requests() == 1).await;
    a_while().await;
    assert_eq!(publisher.requests(), 1, "it answered for all of them");
    let waiting = feeds.iter().filter(|feed| is_put_off(&gateway, feed, 1800)).count();
    assert_eq!(waiting, 3);
    // The pause survives a restart.
    let gateway = gateway.restart(60).await;
    a_while().await;
    assert_eq!(publisher.requests(), 1);
    assert!(feeds.iter().all(|feed| next(&gateway, feed).at >= later(1700)));

    publisher.says("one", "1");
    tokio::time::sleep(Duration::from_secs(1800)).await;
    gateway.clock.set(later(4000));
    for feed in feeds {
        gateway.polls(feed, 1).await;
    }
    assert_eq!(publisher.requests(), 1 + feeds.len());
}

/// A host accepts one request a minute: all its feeds are read in turn, and none is refused.
#[tokio::test(start_paused = true)]
async fn a_slow_host_is_asked_at_the_pace_that_its_answers_tell() {
    const MINUTE: Duration = Duration::from_secs(60);
    let (publisher, last) = (Publisher::new("one"), Mutex::new(None));
    let services = publisher.services_by(move |publisher, request| {
        let now = tokio::time::Instant::now();
        let before = last.lock().unwrap().replace(now);
        if before.is_some_and(|before| now < before + MINUTE) {
            return Err(busy(60));
        }
        Ok(Fetched { rate_reset: Some(MINUTE), ..publisher.reply(request)? })
    });
    let feeds = ["one", "two", "three", "four", "five"];
    let gateway = Gateway::with_client(&store(&feeds), &publisher, services).await;
    tokio::time::sleep(6 * MINUTE).await;
    for feed in feeds {
        let status = gateway.poller.status(&name(feed)).unwrap();
        assert_eq!((status.polls.len(), status.failures), (1, 0), "{feed}");
        assert!(status.polls[0].notes[0].contains("takes few requests"), "{status:?}");
    }
}

/// A feed refused all the same (429) soon waits in line again, instead of for its interval.
#[tokio::test(start_paused = true)]
async fn a_feed_that_a_slow_host_refused_is_tried_soon() {
    for retry_after in [Some(Duration::from_secs(60)), None] {
        let publisher = Publisher::new("one");
        publisher.fails(status_error(429, retry_after));
        let gateway = Gateway::start(&store(&["news"]), &publisher).await;
        gateway.polls("news", 1).await;
        let next = next(&gateway, "news");
        assert_eq!(next.at, later(60));
        assert!(next.reason.contains("takes few requests"), "{next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_walk_speaks_for_its_host_and_waits_for_it() {
    let publisher = Publisher::new("one");
    let gateway = Gateway::start(&store(&["news", "more"]), &publisher).await;
    gateway.polls("news", 1).await;
    gateway.polls("more", 1).await;
    publisher.fails(busy(3600));
    gateway.poller.walk(&name("news"), WalkOrder::Start).await.unwrap();
    eventually(|| publisher.requests() == 3).await;
    gateway.clock.set(next(&gateway, "more").at);
    eventually(|| is_put_off(&gateway, "more", 3600)).await;

    gateway.poller.walk(&name("more"), WalkOrder::Start).await.unwrap();
    let note = || gateway.poller.status(&name("more")).unwrap().backfill.and_then(|walk| walk.note);
    eventually(|| note().is_some_and(|note| note.contains("asked for a pause"))).await;
    a_while().await;
    assert_eq!(publisher.requests(), 3);
    // A poll on demand ignores the pause.
    gateway.poller.poll_now(&name("more")).await.unwrap();
    assert_eq!(publisher.requests(), 4);
}

/// The pause stays however often the record changes; the next step uses the current record.
#[tokio::test(start_paused = true)]
async fn a_walk_keeps_its_pause_when_the_record_changes() {
    let gateway = Gateway::with_news("one").await;
    gateway.publisher.fails(status_error(500, None));
    gateway.poller.walk(&name("news"), WalkOrder::Start).await.unwrap();
    eventually(|| gateway.publisher.requests() == 2).await;
    for keep in 1..=6 {
        let mut changed = record("news");
        (changed.options.items, changed.options.secret) = (Some(keep), Some(true));
        gateway.poller.put(changed).await.unwrap();
        tokio::time::sleep(Duration::from_secs(8)).await;
    }
    assert_eq!(gateway.publisher.requests(), 2);
    assert_eq!(gateway.status().backfill.unwrap().failures, 1);
    tokio::time::sleep(Duration::from_secs(7200)).await;
    assert!(gateway.publisher.asked.lock().unwrap()[2].is_secret);
}

/// Starts a gateway whose walk waits for its commit, and returns the gate of commits.
async fn committing_walk() -> (Gateway, Arc<tokio::sync::Semaphore>) {
    let gateway = Gateway::with_news("one").await;
    let gate = gateway.store.hold_commits();
    let older = "<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel><title/>\
                 <atom:link rel=\"prev-archive\" href=\"http://news.example/older\"/></channel></rss>";
    gateway.publisher.says(older, "2");
    gateway.poller.walk(&name("news"), WalkOrder::Start).await.unwrap();
    eventually(|| gateway.publisher.requests() == 2).await;
    gateway.publisher.says(posts(&[1]), "3");
    eventually(|| gateway.publisher.requests() == 3).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    (gateway, gate)
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_committed_later_counts_and_leaves_what_was_decided_meanwhile() {
    let (gateway, gate) = committing_walk().await;
    gateway.cancel.cancel();
    gate.add_permits(1);
    let store = gateway.stop().await;
    assert_eq!(store.writes().0, 2);
    let walk = store.poll_state("news").unwrap().backfill;
    assert_eq!(walk.unwrap().standing, WalkStanding::Done);

    let (gateway, gate) = committing_walk().await;
    gateway.poller.walk(&name("news"), WalkOrder::Stop).await.unwrap();
    gate.add_permits(1);
    eventually(|| gateway.store.writes().0 == 2).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(gateway.status().backfill.unwrap().standing, WalkStanding::Stopped);

    let (gateway, gate) = committing_walk().await;
    gateway.poller.remove(&name("news")).await.unwrap();
    gateway.store.set_polls(&[]);
    gate.add_permits(1);
    eventually(|| gateway.store.writes().0 == 2).await;
    assert!(gateway.stop().await.stored_polls().is_empty());
}

/// After redirects, the pause belongs to the host that answered.
#[tokio::test(start_paused = true)]
async fn the_host_that_answered_has_the_pause() {
    let publisher = Publisher::new("one");
    let gateway = Gateway::start(&store(&["news", "more"]), &publisher).await;
    gateway.polls("news", 1).await;
    gateway.polls("more", 1).await;
    let retry_after = Some(Duration::from_secs(7200));
    let redirected_to = Some("http://elsewhere.example/feed".to_owned());
    publisher.fails(FetchError::Status { code: 503, retry_after, redirected_to, says: None });
    gateway.poll().await;
    publisher.says("one", "1");
    gateway.clock.set(next(&gateway, "more").at);
    gateway.polls("more", 2).await;
    let url = "http://elsewhere.example/other".to_owned();
    let moved = FeedRecord { url, ..record("other") };
    gateway.poller.put(moved).await.unwrap();
    eventually(|| is_put_off(&gateway, "other", 7200)).await;
}

/// SUP documents skip the line, but wait during a pause.
#[tokio::test(start_paused = true)]
async fn a_sup_document_waits_for_its_host() {
    const SUP: &str = "http://all.example/sup.json";
    let publisher = Publisher::new("one");
    let services = publisher.services_by(|publisher, request| {
        let fetched = publisher.note_and_reply(request);
        let announced = tidegate_core::sup::in_header(&format!("{SUP}#news"));
        if request.url == SUP { Err(busy(3600)) } else { Ok(Fetched { announced, ..fetched? }) }
    });
    // How often the document and the feed were asked for.
    let asked = || {
        let asked = publisher.asked.lock().unwrap();
        let looks = asked.iter().filter(|request| request.url == SUP).count();
        (looks, asked.len() - looks)
    };
    let gateway = Gateway::with_client(&store(&["news"]), &publisher, services).await;
    gateway.polls("news", 1).await;
    // Its answer pauses the host,
    eventually(|| asked().0 == 1).await;
    gateway.clock.set(next(&gateway, "news").at);
    eventually(|| is_put_off(&gateway, "news", 3600)).await;
    // and another answer of that host delays the document.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    publisher.fails(busy(7200));
    gateway.poll().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(asked(), (1, 2));
    tokio::time::sleep(Duration::from_secs(3700)).await;
    assert_eq!(asked().0, 2);
}

/// Feeds of different hosts that redirect to one host wait in the line of that one.
#[tokio::test(start_paused = true)]
async fn a_poll_that_is_asked_for_counts_at_the_host_that_answered_last() {
    let publisher = Publisher::new("one");
    let services = publisher.services_by(|publisher, request| {
        let mut fetched = publisher.note_and_reply(request)?;
        fetched.final_url = format!("{HOST}/feed");
        fetched.validators.answered_by = Some(fetched.final_url.clone());
        Ok(fetched)
    });
    let feeds = store_of(&["one", "two"]);
    let gateway = Gateway::with_client(&feeds, &publisher, services.clone()).await;
    gateway.polls("one", 1).await;
    gateway.polls("two", 1).await;
    // Reconfiguring recomputes the line of each feed.
    let pace = Pace { spacing: Duration::from_secs(3600), parallel: 1 };
    let paces = Arc::new([("all.example".to_owned(), pace)].into());
    let settings = PollSettings::default();
    let hosts = HostRules { paces, ..settings.hosts.clone() };
    gateway.poller.reconfigure(PollSettings { hosts, ..settings }, services).await.unwrap();
    gateway.poller.poll_now(&name("one")).await.unwrap();
    gateway.clock.set(next(&gateway, "two").at);
    a_while().await;
    assert_eq!(publisher.requests(), 3, "it did not wait for its host");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    eventually(|| publisher.requests() == 4).await;
}
