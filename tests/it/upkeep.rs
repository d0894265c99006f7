//! A gateway goes on as it was, and as its operator says: over restarts, reloads, a clock that leaps, and calls of the
//! API.

use crate::support::gateways::{Running, START, until};
use crate::support::prelude::*;
use crate::support::process::TOKEN;
use crate::support::publisher::{Answer, Publisher};
use std::ops::RangeInclusive;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn without(range: RangeInclusive<u32>, day: u32) -> Vec<Post> {
    days(range).into_iter().filter(|post| post.day != day).collect()
}

/// A publisher, and a gateway on disk whose file has its feed `news`.
struct Stage {
    publisher: Publisher,
    gateway: Running,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// `more`: lines in the table of the feed, and further tables.
    async fn new(first: &[Post], more: &str) -> Self {
        let (publisher, folder) = (Publisher::start().await, tempfile::tempdir().unwrap());
        let (path, url) = (folder.path().join("data"), publisher.address("/feed"));
        publisher.set("/feed", Answer::atom(first));
        let text = format!(
            "[server]\npublic_url = \"http://gateway.example\"\n\
             [store]\npath = {path:?}\n[[feed]]\nname = \"news\"\nurl = \"{url}\"\n{more}"
        );
        let gateway = Running::start_at(START, &text).await;
        gateway.poll("news").await;
        Self { publisher, gateway, _folder: folder }
    }

    /// A minute later the publisher has these posts, and is polled.
    async fn posts(&mut self, posts: &[Post]) {
        self.publisher.set("/feed", Answer::atom(posts));
        self.gateway.pass(60);
        self.gateway.poll("news").await;
    }

    async fn restart(&mut self) {
        self.gateway.close().await;
        self.gateway.pass(60);
        self.gateway.open().await;
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.gateway.admin(method, path, body).await
    }

    async fn status(&self) -> Value {
        self.call("GET", "/feeds/news", Value::Null).await.1
    }

    async fn state(&self) -> FeedState {
        self.gateway.store().state(&name("news")).await.unwrap().unwrap()
    }

    async fn items(&self) -> Vec<Item> {
        let view = self.gateway.store().view(&name("news"), Select::All).await;
        view.unwrap().unwrap().items
    }

    /// The kinds of the last events, the newest first.
    async fn events(&self, count: usize) -> Vec<EventKind> {
        let events = self.gateway.store().events(&name("news"), count).await.unwrap();
        events.into_iter().map(|event| event.kind).collect()
    }
}

fn bound(text: &str, name: &str) -> String {
    let sharing = text.split_once("<sx:sharing").unwrap().1;
    let value = sharing.split_once(&format!(" {name}=\"")).unwrap().1;
    value.split_once('"').unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_on_after_a_restart() {
    let mut stage = Stage::new(&days(1..=8), "").await;
    stage.gateway.later(HOUR);
    stage.posts(&without(1..=8, 5)).await;
    let (before, (_, headers, _)) = (stage.items().await, stage.gateway.get("/feeds/news").await);
    stage.restart().await;
    assert_eq!(stage.items().await, before);
    assert_eq!(stage.gateway.get("/feeds/news").await.1["etag"], headers["etag"]);
    // A hole that was seen before the restart is confirmed after it.
    for _ in 0..5 {
        stage.gateway.later(6 * HOUR);
        stage.gateway.poll("news").await;
    }
    assert_eq!(stage.events(1).await, [EventKind::Deleted]);
    stage.restart().await;
    stage.posts(&days(1..=9)).await;
    let mut events = stage.events(2).await;
    events.sort();
    assert_eq!(events, [EventKind::Created, EventKind::Undeleted]);
    stage.gateway.stop().await;
}

/// It is served, its hold can be decided, and nobody polls it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_leaves_the_configuration_is_paused() {
    let mut stage = Stage::new(&days(1..=8), "").await;
    stage.posts(&[]).await;
    assert!(stage.status().await["hold"].is_object());
    let feed = stage.gateway.config.feeds.remove(0);
    stage.gateway.reload().await;
    assert_eq!(stage.status().await["standing"], "paused");
    assert_eq!(stage.gateway.text("/feeds/news").await.matches("<entry").count(), 8);
    let (status, told) = stage.call("POST", "/feeds/news/hold", json!({"action": "drop"})).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(stage.call("POST", "/feeds/news/poll", Value::Null).await.0, 409);
    let asked = stage.publisher.seen().len();
    stage.gateway.later(400 * DAY);
    assert_eq!(stage.publisher.seen().len(), asked);
    // It is in the file again, beside a new one.
    let mut other = feed.clone();
    other.record.name = name("other");
    stage.gateway.config.feeds.extend([feed, other]);
    stage.gateway.reload().await;
    assert_eq!(stage.status().await["standing"], "active");
    stage.posts(&days(2..=9)).await;
    assert!(stage.events(2).await.contains(&EventKind::Created));
    assert_eq!(stage.call("GET", "/feeds/other", Value::Null).await.0, 200);
    stage.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_of_the_api_goes_on_after_it_was_deleted_and_begins_anew_after_a_purge() {
    let stage = Stage::new(&days(1..=5), "").await;
    let says = |range| stage.publisher.set("/second", Answer::atom(&days(range)));
    let put = json!({ "url": stage.publisher.address("/second") });
    let sync = async || stage.gateway.text("/feeds/second/sync").await;
    let delete = async |query: &str| {
        stage.call("DELETE", &format!("/feeds/second{query}"), Value::Null).await.0
    };
    says(1..=3);
    assert_eq!(stage.call("PUT", "/feeds/second", put.clone()).await.0, 201);
    stage.gateway.poll("second").await;
    let first = sync().await;
    assert_eq!(first.matches("<entry").count(), 3);
    // The file's feeds are the file's.
    assert_eq!(stage.call("DELETE", "/feeds/news", Value::Null).await.0, 409);
    assert_eq!(delete("").await, 204);
    let change = json!({ "min_interval": "2d" });
    assert_eq!(stage.call("PATCH", "/feeds/second", change).await.0, 409, "it was removed");
    for view in ["", "/sync", "/complete"] {
        assert_eq!(stage.gateway.get(&format!("/feeds/second{view}")).await.0, 410, "{view}");
    }
    // Added again, it goes on where it was.
    assert!(stage.call("PUT", "/feeds/second", put.clone()).await.0 < 300);
    assert_eq!(sync().await, first);
    // Purged, all in the same second: its subscribers are out of sync.
    assert_eq!(delete("?purge=true").await, 204);
    assert_eq!(stage.gateway.get("/feeds/second").await.0, 410);
    says(4..=6);
    assert!(stage.call("PUT", "/feeds/second", put).await.0 < 300);
    stage.gateway.poll("second").await;
    let anew = sync().await;
    assert!(bound(&anew, "since") > bound(&first, "until"), "{first} {anew}");
    assert!(anew.matches("<entry").count() == 3 && !anew.contains("day 3"), "{anew}");
    stage.gateway.stop().await;
}

/// What is shown of credentials can be put back, and goes to nobody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_keeps_credentials_for_their_origin() {
    const HUSH: &str = "hush-7d1f";
    let polling = "[polling]\nallow_private = [\"127.0.0.1:PORT\"]\nhost_spacing = \"0s\"\n[[feed]]\n\
         name = \"own\"\nlocal = true\n";
    let publisher = Publisher::start().await;
    publisher.set("/feed", Answer::atom(&days(1..=3)));
    let gateway = Running::start(&polling.replace("PORT", &publisher.port.to_string())).await;
    let other = Publisher::start().await;
    let feed = |more: Value| {
        let mut body = json!({ "url": publisher.address("/feed") });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let put = async |body: &Value| gateway.admin("PUT", "/feeds/news", body.clone()).await;
    let refused = async |body: &Value, said: &str| {
        let (status, text) = put(body).await;
        let text = text.to_string();
        assert!(status == 400 && text.contains(said) && !text.contains(HUSH), "{body}: {text}");
    };
    assert_eq!(put(&feed(json!({ "bearer": HUSH, "headers": { "X-Key": HUSH } }))).await.0, 201);
    let (_, told) = gateway.admin("GET", "/feeds/news", Value::Null).await;
    assert!(!told.to_string().contains(HUSH), "{told}");
    let mut body = feed(json!({ "complete": true }));
    for key in ["bearer", "headers", "cookie", "basic", "proxy", "user_agent"] {
        body[key] = told["options"][key].clone();
    }
    assert_eq!(put(&body).await.0, 200);
    gateway.poll("news").await;
    let sent = publisher.seen().pop().unwrap();
    assert_eq!(sent.header("authorization"), format!("Bearer {HUSH}"));
    assert_eq!(sent.header("x-key"), HUSH);
    for (key, address, said) in [
        ("url", other.address("/feed"), "of another origin"),
        ("proxy", publisher.address(""), "proxy is another one"),
    ] {
        let mut stolen = body.clone();
        stolen[key] = json!(address);
        refused(&stolen, said).await;
    }
    // A feed that was deleted has none any more.
    assert!(gateway.admin("DELETE", "/feeds/news", Value::Null).await.0 < 300);
    refused(&body, "none is stored").await;
    assert_eq!(other.seen().len(), 0);
    gateway.stop().await;
}

fn linked(range: RangeInclusive<u32>, rel: &str, href: &str) -> Answer {
    let link = format!("<title>News</title><link rel=\"{rel}\" href=\"{href}\"/>");
    let text = atom(SITE, &days(range)).replacen("<title>News</title>", &link, 1);
    Answer::document("application/atom+xml", text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_through_archives_meets_the_guard() {
    let (publisher, other) = (Publisher::start().await, Publisher::start().await);
    let text = format!(
        "[polling]\nallow_private = [\"127.0.0.1:{}\"]\nhost_spacing = \"0s\"\n[[feed]]\nname = \"news\"\n\
         url = \"{}\"\nbackfill = true\n",
        publisher.port,
        publisher.address("/feed")
    );
    let metadata = "http://169.254.169.254/latest/meta-data/".to_owned();
    for (inside, why) in [(metadata, "link-local"), (other.address("/archive"), "loopback")] {
        publisher.set("/feed", linked(6..=9, "prev-archive", &inside));
        let gateway = Running::start(&text).await;
        let walk =
            async || gateway.admin("GET", "/feeds/news", Value::Null).await.1["backfill"].clone();
        until("it ended", async || walk().await["ended"].is_string()).await;
        let told = walk().await;
        assert_eq!((&told["state"], &told["items"]), (&json!("stopped"), &json!(0)), "{told}");
        assert!(told["note"].as_str().unwrap().contains(why), "{told}");
        assert_eq!(other.seen().len(), 0);
        gateway.stop().await;
    }
}

/// Archives behind a feed are walked through once, over a restart as well: subscribers hear of all that is in them, and
/// readers see nothing new.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_through_archives_goes_on_after_a_restart() {
    let mut stage = Stage::new(&days(16..=20), "").await;
    let reader = stage.gateway.text("/feeds/news").await;
    stage.publisher.set("/feed", linked(16..=20, "prev-archive", "/archive/3"));
    stage.publisher.set("/archive/3", linked(11..=16, "previous", "2"));
    stage.publisher.set("/archive/2", Answer::status(503));
    stage.publisher.set("/archive/1", Answer::atom(&days(1..=5)));
    let action = |action: &str| json!({ "action": action });
    assert_eq!(stage.call("POST", "/feeds/news/backfill", action("hurry")).await.0, 400);
    stage.gateway.poll("news").await;
    assert_eq!(stage.call("POST", "/feeds/news/backfill", Value::Null).await.0, 202);
    let walk = async |stage: &Stage| stage.status().await["backfill"].clone();
    until("it failed", async || walk(&stage).await["failures"] == 1).await;
    let told = walk(&stage).await;
    assert_eq!((&told["state"], &told["documents"]), (&json!("walking"), &json!(1)), "{told}");
    stage.publisher.set("/archive/2", linked(6..=10, "prev-archive", "1"));
    stage.restart().await;
    stage.gateway.later(HOUR);
    until("it ended", async || walk(&stage).await["ended"].is_string()).await;
    let told = walk(&stage).await;
    let figures = ["state", "documents", "items", "known"].map(|key| &told[key]);
    assert_eq!(figures, [&json!("done"), &json!(3), &json!(15), &json!(1)], "{told}");
    assert_eq!(["3", "1"].map(|n| stage.publisher.asked(&format!("/archive/{n}"))), [1, 1]);
    stage.gateway.poll("news").await;
    let titles = |text: &str| text.matches("<entry").count();
    assert_eq!(titles(&stage.gateway.text("/feeds/news").await), titles(&reader));
    assert_eq!(titles(&stage.gateway.text("/feeds/news/sync").await), 20);
    stage.gateway.stop().await;
}

/// What would have gone, had the time passed.
fn kept(state: &FeedState) -> (u32, u64, bool) {
    (state.tombstones, state.archives.first, state.window_start < state.tick)
}

/// By how many seconds a feed is said to be ahead, and whether the overview says so.
async fn told_ahead(stage: &Stage) -> (i64, bool) {
    let metrics = stage.gateway.text("/metrics").await;
    let line = metrics.lines().find_map(|line| line.strip_prefix("tidegate_tick_lead_seconds "));
    let ahead: i64 = line.unwrap().parse().unwrap();
    assert_eq!(stage.status().await["tick_lead"].as_i64().unwrap_or(0), ahead);
    // What everybody sees is kept for some seconds.
    let overview = stage.gateway.client().get(stage.gateway.url("/")).bearer_auth(TOKEN).send();
    let overview = overview.await.unwrap().text().await.unwrap();
    (ahead, overview.contains(" days ahead: the clock was ahead then"))
}

/// What goes with time goes by time that has run, whatever the wall clock is set to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wall_clock_that_leaps_ages_nothing() {
    let more = "deletions = \"eager\"\n[publish]\nwindow = \"10d\"\ntombstones = \"20d\"\n\
                archive_age = \"15d\"\narchive_entries = 2\n";
    let mut stage = Stage::new(&days(1..=6), more).await;
    for newest in 7..=12 {
        stage.gateway.later(HOUR);
        stage.posts(&days(newest - 5..=newest)).await;
    }
    stage.gateway.later(HOUR);
    stage.posts(&without(7..=12, 10)).await;
    let before = kept(&stage.state().await);
    assert!(before.0 == 1 && before.2, "{before:?}");
    stage.gateway.leap(365 * DAY);
    stage.posts(&without(8..=13, 10)).await;
    assert_eq!(kept(&stage.state().await), before);
    // A gateway that is started then ages nothing either.
    stage.restart().await;
    stage.posts(&without(8..=14, 10)).await;
    let ahead = stage.state().await;
    assert_eq!(kept(&ahead), before);
    // Nothing tells while it is ahead; once it is right again, how far ahead the feed is.
    assert_eq!(told_ahead(&stage).await, (0, false));
    // And back: nothing moves backwards, and what is old goes when its time has passed.
    stage.gateway.turn_back(365 * DAY);
    stage.posts(&without(8..=15, 10)).await;
    let after = stage.state().await;
    assert!(after.tick > ahead.tick && after.updated_at > ahead.updated_at);
    assert_eq!(kept(&after), before);
    let (lead, is_shown) = told_ahead(&stage).await;
    assert!(lead > 364 * 86_400 && is_shown, "{lead}");
    stage.gateway.later(30 * DAY);
    stage.posts(&without(8..=16, 10)).await;
    assert_eq!(stage.state().await.tombstones, 0, "a leap makes nothing stay for ever");
    stage.gateway.stop().await;
}
