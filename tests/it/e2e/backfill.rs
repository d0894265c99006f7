//! Walks through a publisher's older documents: everything is taken in once, subscribers hear of all
//! of it, and readers see nothing new.

use crate::e2e::support::{Answer, FEED, Format, Post, Stage, on_disk, posts};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_core::model::{EventKind, FeedName};

const PAUSE: Duration = Duration::from_millis(10);

/// A document with a link of its head.
fn linked(format: Format, posts: &[Post], links: &[(&str, &str)]) -> Answer {
    let title = "<title>News</title>";
    let links = links.iter().map(|(rel, href)| {
        format!("<link xmlns=\"http://www.w3.org/2005/Atom\" rel=\"{rel}\" href=\"{href}\"/>")
    });
    let head = format!("{title}{}", links.collect::<String>());
    let text = format.document(posts).replacen(title, &head, 1);
    Answer::document(format.media_type(), text)
}

/// Waits until the walk is in that state.
async fn walked(stage: &Stage, is: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..2_000 {
        let walk = stage.status().await["backfill"].clone();
        if is(&walk) {
            return walk;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("the walk goes on: {}", stage.status().await);
}

async fn ended(stage: &Stage) -> Value {
    walked(stage, |walk| walk["ended"].is_string()).await
}

/// An operator asks for the walk.
async fn begins(stage: &Stage) {
    let (status, feed) = stage.admin("POST", &format!("/feeds/{FEED}/backfill"), None).await;
    assert_eq!(status, 202, "{feed}");
}

/// Three archives behind the feed; the middle one says that a post was deleted since.
fn publishes_archives(stage: &Stage, format: Format) {
    let archive = |n: u32| format!("/archive/{n}");
    stage.answers(linked(format, &posts(16..=20), &[("prev-archive", "/archive/3")]));
    stage.publisher.set(&archive(3), linked(format, &posts(11..=16), &[("previous", "2")]));
    let mut middle = posts(6..=10);
    if format == Format::Atom10 {
        // Deletions are only said in Atom.
        middle[0].extra = "</entry><at:deleted-entry \
            xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" \
            ref=\"http://publisher.example/2026/the-story-of-day-2\" \
            when=\"2026-05-01T00:00:00Z\"/><entry><id>urn:x:extra</id><title>Extra</title>\
            <updated>2026-01-01T00:00:00Z</updated>"
            .to_owned();
    }
    stage.publisher.set(&archive(2), linked(format, &middle, &[("prev-archive", "1")]));
    stage.publisher.set(&archive(1), linked(format, &posts(1..=5), &[]));
}

#[tokio::test]
async fn archives_are_taken_in_and_readers_see_nothing_new() {
    for format in Format::BOTH {
        let mut stage = Stage::with(format, "backfill = true", "").await;
        publishes_archives(&stage, format);
        let step = stage.poll_alone().await;
        assert_eq!(step.events, "created 5");
        let walk = ended(&stage).await;
        // One post was deleted, one is the extra one.
        assert_eq!(
            (&walk["state"], &walk["layout"]),
            (&json!("done"), &json!("archives")),
            "{walk}"
        );
        assert_eq!((&walk["documents"], &walk["items"]), (&json!(3), &json!(15)), "{walk}");
        assert_eq!(walk["known"], 1);
        let known = stage.state().await.unwrap().len();
        assert_eq!(known, 20);
        let step = stage.poll().await;
        let visit = "new: Post 20, Post 19, Post 18, Post 17, Post 16";
        assert_eq!((step.events.as_str(), step.reader.as_str()), ("", visit));
        // Whoever subscribes hears of them; the sleeper too, at the end.
        assert_eq!(stage.subscriber.known().len(), 20);
        // Nothing is walked through twice.
        let asked = stage.publisher.asked("/archive/1");
        stage.hours(24 * 30);
        assert_eq!(stage.posts(&posts(17..=21)).await.events, "created 1, retired 1");
        assert_eq!((asked, stage.publisher.asked("/archive/1")), (1, 1));
        let status = stage.status().await;
        assert_eq!(status["backfill"]["state"], "done");
        let name = FeedName::new(FEED).unwrap();
        let events = stage.gateway().store().events(&name, 500).await.unwrap();
        let backfilled = events.iter().filter(|event| event.kind == EventKind::Backfilled);
        assert_eq!(backfilled.count(), 15);
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Format::Rss20, "backfill = true", &on_disk(folder.path())).await;
    publishes_archives(&stage, Format::Rss20);
    let middle = linked(Format::Rss20, &posts(6..=10), &[("prev-archive", "1")]);
    stage.publisher.set("/archive/2", Answer::status(503));
    stage.poll_alone().await;
    let walk = walked(&stage, |walk| walk["failures"] == 1).await;
    assert_eq!((&walk["state"], &walk["documents"]), (&json!("walking"), &json!(1)));
    assert_eq!(walk["next"], stage.publisher.address("/archive/2"));
    assert!(walk["note"].as_str().unwrap().contains("503"), "{walk}");
    // Before the restart: it takes a minute, and then the pause is over.
    stage.publisher.set("/archive/2", middle);
    stage.restart().await;
    stage.hours(1);
    let walk = ended(&stage).await;
    assert_eq!((&walk["state"], &walk["documents"]), (&json!("done"), &json!(3)), "{walk}");
    assert_eq!(stage.publisher.asked("/archive/3"), 1, "it went on from where it was");
    stage.restart().await;
    assert_eq!(stage.status().await["backfill"]["items"], 15);
    let step = stage.poll().await;
    assert_eq!(step.events, "");
    assert_eq!(stage.reader.current.len(), 5);
    assert_eq!(stage.subscriber.known().len(), 20);
    stage.end().await;
}

#[tokio::test]
async fn an_operator_begins_and_stops_a_walk() {
    let mut stage = Stage::new(Format::Atom10).await;
    publishes_archives(&stage, Format::Atom10);
    stage.publisher.set("/archive/1", Answer::status(503));
    stage.poll().await;
    assert_eq!(stage.status().await["backfill"], Value::Null);
    assert_eq!(stage.publisher.asked("/archive/3"), 0);
    let path = format!("/feeds/{FEED}/backfill");
    begins(&stage).await;
    walked(&stage, |walk| walk["failures"] == 1).await;
    let (status, feed) = stage.admin("POST", &path, Some(json!({"action": "stop"}))).await;
    assert_eq!((status, &feed["backfill"]["state"]), (202, &json!("stopped")), "{feed}");
    let walk = ended(&stage).await;
    assert_eq!((&walk["documents"], &walk["items"]), (&json!(2), &json!(11)));
    let asked = stage.publisher.asked("/archive/1");
    stage.hours(100);
    stage.poll().await;
    assert_eq!(stage.publisher.asked("/archive/1"), asked);
    // It goes on from there.
    stage.publisher.set("/archive/1", linked(Format::Atom10, &posts(1..=5), &[]));
    begins(&stage).await;
    let walk = ended(&stage).await;
    assert_eq!((&walk["state"], &walk["items"]), (&json!("done"), &json!(15)), "{walk}");
    assert_eq!(stage.publisher.asked("/archive/3"), 1);
    // Once more from the beginning: nothing is new.
    begins(&stage).await;
    let walk = ended(&stage).await;
    assert_eq!((&walk["items"], &walk["known"]), (&json!(0), &json!(16)), "{walk}");
    assert_eq!(stage.publisher.asked("/archive/3"), 2);
    assert_eq!(stage.poll().await.reader, "");
    for (body, status) in [(json!({"action": "hurry"}), 400), (json!({"speed": 9}), 400)] {
        assert_eq!(stage.admin("POST", &path, Some(body)).await.0, status);
    }
    assert_eq!(stage.admin("POST", "/feeds/nobody/backfill", None).await.0, 404);
    stage.end().await;
}

#[tokio::test]
async fn a_walk_meets_the_guard() {
    let feed = "backfill = true\nurl = \"http://localhost:{port}/feed\"";
    let polling = "[polling]\nallow_private = [\"localhost:{port}\"]\nhost_spacing = \"0s\"\n\
                   min_interval = \"365d\"\nmax_interval = \"365d\"\n";
    for (inside, why) in [
        // The publisher's own machine by another name, of which nobody said that it may be asked.
        ("http://127.0.0.1:{port}/archive/3", "loopback"),
        ("http://169.254.169.254/latest/meta-data/", "link-local"),
        ("http://localhost:1/archive/3", "loopback"),
    ] {
        let mut stage = Stage::with(Format::Atom10, feed, polling).await;
        let own = stage.publisher.address("/archive/3");
        let port = own.split([':', '/']).nth(4).unwrap().to_owned();
        let inside = inside.replace("{port}", &port);
        stage.publisher.set("/archive/3", linked(Format::Atom10, &posts(1..=5), &[]));
        stage.answers(linked(Format::Atom10, &posts(6..=9), &[("prev-archive", &inside)]));
        stage.poll().await;
        let walk = ended(&stage).await;
        assert_eq!((&walk["state"], &walk["items"]), (&json!("stopped"), &json!(0)), "{walk}");
        assert!(walk["note"].as_str().unwrap().contains(why), "{walk}");
        assert_eq!(stage.publisher.asked("/archive/3"), 0);
        stage.end().await;
    }
}
