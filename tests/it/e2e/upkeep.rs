//! Restarts, configuration and administration.

use crate::e2e::support::{Answer, FEED, Format, Stage, Subscriber, on_disk, posts};
use serde_json::json;
use tidegate_core::model::FeedName;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_goes_on_after_a_restart() {
    for format in Format::BOTH {
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Stage::with(format, "", &on_disk(folder.path())).await;
        stage.posts(&posts(1..=8)).await;
        stage.hours(1);
        let mut without = posts(1..=8);
        without.remove(3);
        let seen = stage.posts(&without).await;
        let before = stage.state().await;
        let etag = stage.net.get("http://gateway.example/feeds/news").send().await.unwrap();
        stage.restart().await;
        assert_eq!(stage.state().await, before);
        let again = stage.net.get("http://gateway.example/feeds/news").send().await.unwrap();
        assert_eq!(again.headers()["etag"], etag.headers()["etag"]);
        // A hole that was seen before the restart is confirmed after it.
        let step = stage.poll().await;
        assert_eq!((step.events.as_str(), step.reader.as_str(), step.until), ("", "", seen.until));
        stage.polls(5, 6).await;
        assert!(stage.subscriber.item("Post 5").1);
        stage.restart().await;
        let step = stage.posts(&posts(1..=9)).await;
        assert_eq!(step.events, "created 1, undeleted 1");
        assert_eq!(stage.subscriber.item("Post 5").2.len(), 3);
        stage.end().await;
    }
}

#[tokio::test]
async fn a_feed_that_leaves_the_configuration_is_paused_and_served() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=5)).await;
    let mut config = stage.config().clone();
    let feed = config.feeds.remove(0);
    let restart = stage.gateway_mut().reload(&config).await.unwrap();
    assert!(restart.is_empty(), "{restart:?}");
    assert_eq!(stage.status().await["standing"], "paused");
    assert_eq!(stage.reader.visit().await.to_string(), "");
    let (status, _) = stage.admin("POST", "/feeds/news/poll", None).await;
    assert_eq!(status, 409);
    let asked = stage.publisher.requests();
    stage.hours(24 * 400);
    assert_eq!(stage.publisher.requests(), asked);
    // It is in the file again, beside a new one.
    config.feeds.push(feed.clone());
    let mut other = feed;
    other.record.name = FeedName::new("other").unwrap();
    config.feeds.push(other);
    stage.gateway_mut().reload(&config).await.unwrap();
    assert_eq!(stage.status().await["standing"], "active");
    assert_eq!(stage.posts(&posts(2..=6)).await.events, "created 1, retired 1");
    let (status, _) = stage.admin("GET", "/feeds/other", None).await;
    assert_eq!(status, 200);
    stage.end().await;
}

#[tokio::test]
async fn a_feed_is_added_changed_and_deleted_by_the_api() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=5)).await;
    let url = stage.publisher.address("/second");
    let document = Format::Atom10.document(&posts(1..=3));
    stage.publisher.set("/second", Answer::document("application/atom+xml", document));
    let body = json!({ "url": url, "deletions": "eager" });
    let (status, _) = stage.admin("PUT", "/feeds/second", Some(body)).await;
    assert_eq!(status, 201);
    let (status, report) = stage.admin("POST", "/feeds/second/poll", None).await;
    assert_eq!((status, &report["error"]), (200, &json!(null)));
    let mut second = crate::e2e::support::Reader::new(&stage.net, "second");
    assert_eq!(second.visit().await.new.len(), 3);
    // The file's feeds are the file's.
    let (status, _) = stage.admin("DELETE", &format!("/feeds/{FEED}"), None).await;
    assert_eq!(status, 409);
    let (status, _) = stage.admin("DELETE", "/feeds/second", None).await;
    assert_eq!(status, 204);
    let change = Some(json!({ "min_interval": "2d" }));
    assert_eq!(stage.admin("PATCH", "/feeds/second", change).await.0, 409, "it was removed");
    for view in ["", "/sync", "/complete"] {
        let address = format!("http://gateway.example/feeds/second{view}");
        assert_eq!(stage.net.get(&address).send().await.unwrap().status(), 410, "{view}");
    }
    // Added again, it goes on where it was.
    let (status, _) = stage.admin("PUT", "/feeds/second", Some(json!({ "url": url }))).await;
    assert!(status == 200 || status == 201, "{status}");
    assert_eq!(second.visit().await.to_string(), "");
    // Purged, it is gone for good.
    let (status, _) = stage.admin("DELETE", "/feeds/second?purge=true", None).await;
    assert_eq!(status, 204);
    let address = "http://gateway.example/feeds/second";
    assert_eq!(stage.net.get(address).send().await.unwrap().status(), 410);
    stage.end().await;
}

#[tokio::test]
async fn a_feed_that_was_purged_begins_anew_and_its_subscribers_notice() {
    let stage = Stage::new(Format::Rss20).await;
    let url = stage.publisher.address("/second");
    let serve = |days| {
        let document = Format::Rss20.document(&posts(days));
        stage.publisher.set("/second", Answer::document("application/rss+xml", document));
    };
    let put = json!({ "url": url });
    let mut subscriber = Subscriber::new(&stage.net, "second", false);
    serve(1..=5);
    stage.admin("PUT", "/feeds/second", Some(put.clone())).await;
    stage.admin("POST", "/feeds/second/poll", None).await;
    subscriber.consume().await;
    assert_eq!(subscriber.living().len(), 5);
    // All in the same second.
    assert_eq!(stage.admin("DELETE", "/feeds/second?purge=true", None).await.0, 204);
    serve(4..=6);
    stage.admin("PUT", "/feeds/second", Some(put)).await;
    stage.admin("POST", "/feeds/second/poll", None).await;
    subscriber.consume().await;
    assert_eq!(subscriber.resets, 1);
    assert_eq!(subscriber.living(), ["Post 4", "Post 5", "Post 6"]);
    stage.stop().await;
}

#[tokio::test]
async fn the_cap_on_versions_is_as_configured() {
    let mut stage = Stage::with(Format::Rss20, "", "[publish]\nversions_per_day = 2\n").await;
    stage.compares_payloads = false;
    let mut all = posts(1..=5);
    let mut told = Vec::new();
    for text in ["All is calm.", "It rained.", "The sun shone.", "Nobody came.", "They went home."]
    {
        all[0] = all[0].clone().edited(text);
        told.push(stage.posts(&all).await.events);
        stage.hours(1);
    }
    // The third is told once as a change without a version.
    assert_eq!(told, ["created 5", "updated 1", "updated 1", "updated 1", ""]);
    assert_eq!(stage.subscriber.item("Post 5").0, 3);
    stage.end().await;
}
