//! Feeds that get another address, and holds that operators decide about.

use crate::e2e::support::{Answer, Format, Post, Reader, Stage, on_disk, post, posts};
use serde_json::{Value, json};

/// A feed that was added by the API; its address can be changed there.
struct Second {
    stage: Stage,
    reader: Reader,
}

impl Second {
    async fn new(days: std::ops::RangeInclusive<u32>) -> Self {
        let stage = Stage::new(Format::Rss20).await;
        let reader = Reader::new(&stage.net, "second");
        let mut second = Self { stage, reader };
        second.serves("/old", &posts(days));
        second.moves_to("/old").await;
        second.poll().await;
        second
    }

    fn serves(&self, path: &str, posts: &[Post]) {
        let answer = Answer::document("application/rss+xml", Format::Rss20.document(posts));
        let modified = "Mon, 01 Jun 2026 00:00:00 GMT";
        let answer = answer.with("etag", "\"always-the-same\"").with("last-modified", modified);
        self.stage.publisher.set(path, answer);
    }

    async fn moves_to(&self, path: &str) {
        let url = self.stage.publisher.address(path);
        let (status, body) =
            self.stage.admin("PUT", "/feeds/second", Some(json!({ "url": url }))).await;
        assert!(status == 200 || status == 201, "{body}");
    }

    /// A minute later it is polled; what came of it and what the reader saw.
    async fn poll(&mut self) -> (Value, String) {
        self.stage.later(std::time::Duration::from_secs(60));
        let (status, report) = self.stage.admin("POST", "/feeds/second/poll", None).await;
        assert_eq!(status, 200, "{report}");
        (report, self.reader.visit().await.to_string())
    }

    async fn status(&self) -> Value {
        self.stage.admin("GET", "/feeds/second", None).await.1
    }
}

fn unlike(day: u32) -> Post {
    let mut p = post(day);
    p.title = format!("Unlike {day}");
    p.link = format!("http://publisher.example/comments/{day}");
    p.id = Some(format!("urn:unlike:{day}"));
    p.text = format!("I do not agree with number {day}.");
    p
}

#[tokio::test]
async fn a_new_address_is_asked_for_the_whole_document() {
    let mut second = Second::new(1..=6).await;
    second.poll().await;
    let (_, asked) = second.stage.publisher.last();
    assert_eq!(asked["if-none-match"], "\"always-the-same\"");
    // The other server has the same validators for other posts, as generated ones may be.
    second.serves("/new", &posts(2..=7));
    second.moves_to("/new").await;
    let (report, seen) = second.poll().await;
    // The gateway may have polled by itself before; its reader sees the same.
    assert_eq!((&report["held"], &report["error"]), (&json!(null), &json!(null)));
    assert_eq!(seen, "new: Post 7; gone: Post 1");
    let (path, asked) = second.stage.publisher.last();
    assert_eq!(path, "/new");
    assert!(!asked.contains_key("if-none-match") || report["outcome"] == "not_modified");
    second.stage.stop().await;
}

#[tokio::test]
async fn a_mistyped_address_wipes_nothing() {
    let mut second = Second::new(1..=6).await;
    // Of the same site, and all newer: at the old address it would be a busy feed's new window.
    let comments: Vec<Post> = (20..=27).rev().map(unlike).collect();
    second.serves("/comments", &comments);
    second.moves_to("/comments").await;
    let (report, seen) = second.poll().await;
    assert!(report["held"].as_str().is_some_and(|h| h.starts_with("other-feed")), "{report}");
    assert_eq!(seen, "");
    let status = second.status().await;
    assert_eq!(status["hold"]["kind"], "other-feed");
    assert!(status["hold"]["reason"].as_str().unwrap().contains("address is a new one"));
    // Corrected, the feed goes on as if nothing had been.
    second.serves("/right", &posts(2..=7));
    second.moves_to("/right").await;
    let (report, seen) = second.poll().await;
    assert_eq!(report["held"], json!(null));
    assert_eq!(seen, "new: Post 7; gone: Post 1");
    assert!(second.status().await["hold"].is_null());
    let text = second.stage.net.text("http://gateway.example/feeds/second/complete").await;
    assert!(!text.contains("Unlike"), "{text}");
    second.stage.stop().await;
}

/// The decision is stored, though no poll follows.
#[tokio::test]
async fn a_hold_of_a_paused_feed_is_released() {
    let mut second = Second::new(1..=8).await;
    let empty = Answer::document("application/rss+xml", Format::Rss20.document(&[]));
    second.stage.publisher.set("/old", empty);
    let (report, _) = second.poll().await;
    assert!(report["held"].is_string(), "{report}");
    let (status, paused) = second.stage.admin("POST", "/feeds/second/pause", None).await;
    assert_eq!((status, &paused["standing"]), (200, &json!("paused")));
    let release = Some(json!({ "action": "release" }));
    let (status, told) = second.stage.admin("POST", "/feeds/second/hold", release).await;
    assert_eq!((status, &told["hold"]["decision"]), (200, &json!("release")), "{told}");
    second.stage.stop().await;
}

/// Posts of which those after the eighth wait for the end of a hold: their address is that of the first,
/// which is missing.
fn doubtful(days: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    let mut posts = posts(days);
    for p in posts.iter_mut().filter(|p| p.day > 8) {
        p.link = post(1).link;
    }
    posts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_seen_while_held_outlives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Format::Atom10, "", &on_disk(folder.path())).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    assert!(stage.posts(&doubtful(8..=10)).await.held.is_some());
    stage.restart().await;
    let mut next = doubtful(8..=10);
    next.retain(|p| p.day != 9);
    assert!(stage.posts(&next).await.held.is_some());
    let release = Some(json!({ "action": "release" }));
    let (code, status) = stage.admin("POST", "/feeds/news/hold", release).await;
    assert_eq!((code, &status["hold"]), (200, &json!(null)), "{status}");
    stage.poll().await;
    assert!(stage.subscriber.living().contains(&"Post 9".to_owned()));
    stage.end().await;
}

#[tokio::test]
async fn what_is_missing_is_explained_until_it_is_decided() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut without = posts(1..=8);
    without.retain(|p| p.day != 5);
    stage.posts(&without).await;
    stage.hours(6);
    stage.poll().await;
    let status = stage.status().await;
    let pending = &status["pending"][0];
    assert_eq!(status["pending_absences"], 1);
    for (key, value) in [
        ("title", json!("Post 5")),
        ("evidence", json!("hole")),
        ("observations", json!(2)),
        ("would", json!("deleted")),
    ] {
        assert_eq!(pending[key], value, "{key} of {pending}");
    }
    assert!(pending["reason"].as_str().unwrap().contains("older items stay"), "{pending}");
    assert!(pending["decides_at"].as_str().unwrap() > pending["since"].as_str().unwrap());
    let id = pending["sync_id"].as_str().unwrap().to_owned();
    let (code, item) = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await;
    assert_eq!((code, &item["pending"]), (200, pending));
    let page = stage.net.text("http://gateway.example/feeds/news/about").await;
    assert!(page.contains("Missing, to be confirmed") && page.contains("Post 5"), "{page}");
    stage.polls(5, 6).await;
    let (_, item) = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await;
    assert_eq!((&item["deleted"], &item["pending"]), (&json!(true), &json!(null)));
    let said = item["events"][0]["reason"].as_str().unwrap();
    assert!(said.contains("older items stay; so for"), "{said}");
    assert_eq!(stage.status().await["pending"], json!([]));
    stage.end().await;
}
