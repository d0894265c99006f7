//! Missing items whose own addresses are asked.

use crate::e2e::support::{Answer, Format, Post, Stage, Step, posts};
use serde_json::Value;

const ASKING: &str = "probe = true";

/// The posts of some days with pages at the publisher itself, without those of some.
fn linked(stage: &Stage, days: std::ops::RangeInclusive<u32>, without: &[u32]) -> Vec<Post> {
    let all = posts(days).into_iter().filter(|p| !without.contains(&p.day));
    all.map(|p| Post { link: stage.publisher.address(&page(p.day)), ..p }).collect()
}

fn page(day: u32) -> String {
    format!("/2026/the-story-of-day-{day}")
}

/// A site that works: the pages of these days are there, and no others.
fn has_pages(stage: &Stage, days: std::ops::RangeInclusive<u32>) {
    stage.publisher.set_pages(Answer::status(404));
    for day in days {
        stage.publisher.set(&page(day), Answer::status(200));
    }
}

/// A feed with eight posts, read twice, and what came of a document without some of them.
async fn without(feed: &str, days: &[u32], site: impl Fn(&Stage)) -> (Stage, Step) {
    let mut stage = Stage::with(Format::Rss20, feed, "").await;
    has_pages(&stage, 1..=8);
    let posts = linked(&stage, 1..=8, &[]);
    stage.posts(&posts).await;
    stage.hours(1);
    stage.poll().await;
    assert!(stage.publisher.pages_asked().is_empty(), "nothing was missing");
    site(&stage);
    let posts = linked(&stage, 1..=8, days);
    let step = stage.posts(&posts).await;
    (stage, step)
}

fn gone(days: &[u32]) -> impl Fn(&Stage) {
    move |stage| days.iter().for_each(|day| stage.publisher.set(&page(*day), Answer::status(404)))
}

/// The reason of the newest event.
async fn reason(stage: &Stage) -> String {
    stage.status().await["events"][0]["reason"].as_str().unwrap().to_owned()
}

/// What the gateway says of the only missing item.
async fn missing(stage: &Stage) -> Value {
    let status = stage.status().await;
    assert_eq!(status["pending"].as_array().unwrap().len(), 1, "{status}");
    status["pending"][0].clone()
}

/// A feed with credentials is asked for with them, and its pages without.
#[tokio::test]
async fn pages_get_no_credentials() {
    let keys = "probe = true\nbearer = \"hush\"\nheaders = { X-Key = \"hush\" }";
    let (stage, step) = without(keys, &[5], gone(&[5])).await;
    assert_eq!(step.events, "deleted 1");
    let (path, headers) = stage.publisher.last();
    assert_eq!(path, page(5));
    assert!(!format!("{headers:?}").contains("hush"), "{headers:?}");
    // Where the operator does not ask for it, nobody is asked at all.
    let (mut stage, _) = without("bearer = \"hush\"", &[5], gone(&[5])).await;
    stage.polls(4, 24).await;
    assert!(stage.publisher.pages_asked().is_empty());
}

#[tokio::test]
async fn a_page_that_is_gone_confirms_a_deletion_at_once() {
    let (mut stage, step) = without(ASKING, &[5], gone(&[5])).await;
    assert_eq!((step.events.as_str(), step.reader.as_str()), ("deleted 1", "gone: Post 5"));
    assert!(stage.subscriber.item("Post 5").1);
    let said = reason(&stage).await;
    let address = stage.publisher.address(&page(5));
    assert!(said.contains(&format!("its own address, {address}, answered 404 at ")), "{said}");
    // What is listed, what is made up, and the page: no more, and never again.
    let asked = stage.publisher.pages_asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[1..], ["HEAD /2026/made-up".to_owned(), format!("HEAD {}", page(5))]);
    let status = stage.status().await;
    assert_eq!(status["last_probes"][0]["said"][0], format!("{address} is gone (404)"));
    assert_eq!(status["last_probes"][0]["requests"], 3);
    stage.polls(3, 12).await;
    assert_eq!(stage.publisher.pages_asked().len(), 3);
    // It comes back as what it was.
    let all = linked(&stage, 1..=8, &[]);
    assert_eq!(stage.posts(&all).await.events, "undeleted 1");
    stage.end().await;
}

#[tokio::test]
async fn nobody_is_asked_where_the_operator_did_not_say_so() {
    for feed in ["", "probe = true\ndeletions = \"off\""] {
        let (mut stage, step) = without(feed, &[5], gone(&[5])).await;
        assert_eq!(step.events, if feed.is_empty() { "" } else { "retired 1" });
        stage.polls(3, 6).await;
        assert!(stage.publisher.pages_asked().is_empty());
        stage.end().await;
    }
}

#[tokio::test]
async fn a_site_that_takes_no_head_is_asked_by_get() {
    let (stage, step) = without(ASKING, &[5], |stage| {
        (1..=8).for_each(|day| stage.publisher.set_head(&page(day), Answer::status(405)));
        stage.publisher.set(&page(5), Answer::status(410));
    })
    .await;
    assert_eq!(step.events, "deleted 1");
    let asked = stage.publisher.pages_asked();
    assert_eq!(asked[3..], [format!("HEAD {}", page(5)), format!("GET {}", page(5))], "{asked:?}");
    assert!(reason(&stage).await.contains("answered 410 at "));
    stage.end().await;
}

#[tokio::test]
async fn a_page_that_is_there_makes_a_retirement_of_the_deletion() {
    let (mut stage, step) = without(ASKING, &[5], |_| {}).await;
    assert_eq!(step.events, "");
    let item = missing(&stage).await;
    assert_eq!(item["probe"]["answer"], "there");
    assert_eq!(item["probe"]["status"], 200);
    assert_eq!(item["would"], "retired");
    assert!(item["words"].as_str().unwrap().contains("answered 200 at "), "{item}");
    let about = stage.net.text("http://gateway.example/feeds/news/about").await;
    assert!(about.contains("answered 200 at "), "{about}");
    let events: Vec<_> = stage.polls(5, 6).await.into_iter().map(|s| s.events).collect();
    assert_eq!(events.concat(), "retired 1");
    assert!(reason(&stage).await.contains("answered 200"), "{}", reason(&stage).await);
    assert!(!stage.subscriber.item("Post 5").1);
    stage.end().await;
}

#[tokio::test]
async fn a_page_that_goes_after_all_is_noticed() {
    let (mut stage, _) = without(ASKING, &[5], |_| {}).await;
    stage.publisher.set(&page(5), Answer::status(410));
    let events: Vec<_> = stage.polls(2, 6).await.into_iter().map(|s| s.events).collect();
    assert_eq!(events.concat(), "deleted 1");
    stage.end().await;
}

#[tokio::test]
async fn a_wall_of_404s_confirms_nothing() {
    let (mut stage, step) = without(ASKING, &[5], gone(&[1, 2, 3, 4, 5, 6, 7, 8])).await;
    assert_eq!(step.events, "");
    let item = missing(&stage).await;
    let silence = item["probe"]["silence"].as_str().unwrap();
    assert!(silence.contains("what the document lists answers 404 too"), "{silence}");
    assert_eq!(item["probe"]["answer"], Value::Null);
    // The page itself was left alone.
    assert!(stage.publisher.pages_asked().iter().all(|asked| !asked.ends_with(&page(5))));
    // The document's own evidence goes its way.
    let steps = stage.polls(5, 6).await;
    assert!(steps[..3].iter().all(|step| step.events.is_empty()), "{steps:?}");
    assert!(stage.subscriber.item("Post 5").1);
    stage.end().await;
}

#[tokio::test]
async fn a_site_that_finds_everything_refutes_nothing() {
    let site = |stage: &Stage| stage.publisher.set_pages(Answer::status(200));
    let (mut stage, step) = without(ASKING, &[5], site).await;
    assert_eq!(step.events, "");
    let item = missing(&stage).await;
    let silence = item["probe"]["silence"].as_str().unwrap();
    assert_eq!(silence, "it answered 200, but a made-up address answers 200 too");
    let asked = stage.publisher.pages_asked();
    assert_eq!(asked.iter().filter(|asked| asked.ends_with("made-up")).count(), 2, "{asked:?}");
    stage.polls(5, 6).await;
    assert!(stage.subscriber.item("Post 5").1);
    stage.end().await;
}

#[tokio::test]
async fn what_is_neither_there_nor_gone_says_nothing() {
    for answer in [
        Answer::status(500),
        Answer::status(403),
        Answer::status(503),
        Answer::redirect(302, "/"),
        Answer::redirect(301, &page(6)),
        Answer::redirect(302, "/login"),
        Answer::redirect(302, "http://elsewhere.example/"),
    ] {
        let (mut stage, step) = without(ASKING, &[5], |stage| {
            stage.publisher.set("/", Answer::status(200));
            stage.publisher.set("/login", Answer::status(200));
            stage.publisher.set(&page(5), answer.clone());
        })
        .await;
        assert_eq!(step.events, "", "{answer:?}");
        let item = missing(&stage).await;
        assert!(item["probe"]["silence"].is_string(), "{item}");
        assert_eq!(item["would"], "deleted", "{item}");
        stage.polls(5, 6).await;
        assert!(stage.subscriber.item("Post 5").1, "{answer:?}");
        stage.end().await;
    }
}

#[tokio::test]
async fn what_has_no_place_is_asked_twice() {
    let days = [3, 4, 5];
    let (mut stage, step) = without(ASKING, &days, gone(&days)).await;
    assert_eq!(step.events, "");
    assert_eq!(stage.status().await["pending"][0]["evidence"], "unplaced");
    stage.later(std::time::Duration::from_secs(30 * 60));
    assert_eq!(stage.poll().await.events, "");
    assert_eq!(stage.publisher.pages_asked().len(), 5);
    stage.hours(1);
    assert_eq!(stage.poll().await.events, "deleted 3");
    assert_eq!(stage.publisher.pages_asked().len(), 10);
    let said = reason(&stage).await;
    assert!(said.contains("answered 404 at ") && said.contains("Z and 2026-"), "{said}");
    stage.end().await;
}

#[tokio::test]
async fn addresses_of_others_are_not_asked() {
    let mut stage = Stage::with(Format::Rss20, ASKING, "").await;
    // The document's own site, by its word, is another one; one post leads to a port of ours.
    let own_site = |days: &[u32]| -> Vec<Post> {
        let days = posts(1..=8).into_iter().filter(|p| !days.contains(&p.day));
        days.map(|p| match p.day {
            4 => Post { link: "http://127.0.0.1:1/secret".to_owned(), ..p },
            _ => p,
        })
        .collect()
    };
    stage.posts(&own_site(&[])).await;
    stage.hours(1);
    let before = stage.publisher.requests();
    stage.posts(&own_site(&[4, 5])).await;
    assert_eq!(stage.publisher.requests(), before + 1);
    let status = stage.status().await;
    assert_eq!(status["pending"].as_array().unwrap().len(), 2, "{status}");
    assert_eq!(status["pending"][0]["probe"], Value::Null);
    assert_eq!(status["last_probes"].as_array().unwrap().len(), 0);
    stage.end().await;
}

#[tokio::test]
async fn a_page_that_leads_inside_meets_the_guard() {
    let feed = "probe = true\nurl = \"http://localhost:{port}/feed\"";
    let polling = "[polling]\nallow_private = [\"localhost:{port}\"]\nhost_spacing = \"0s\"\n\
                   min_interval = \"365d\"\nmax_interval = \"365d\"\n";
    let mut stage = Stage::with(Format::Rss20, feed, polling).await;
    has_pages(&stage, 1..=8);
    let local = |days: &[u32]| -> Vec<Post> {
        let posts = linked(&stage, 1..=8, days).into_iter();
        posts.map(|p| Post { link: p.link.replace("127.0.0.1", "localhost"), ..p }).collect()
    };
    let (all, most) = (local(&[]), local(&[5]));
    stage.posts(&all).await;
    stage.hours(1);
    // Port 80 of this machine is nobody's feed; only the one that is listed may be asked.
    stage.publisher.set(&page(5), Answer::redirect(302, "http://localhost/admin"));
    assert_eq!(stage.posts(&most).await.events, "");
    let item = missing(&stage).await;
    let silence = item["probe"]["silence"].as_str().unwrap();
    assert!(silence.contains("localhost has a loopback address"), "{silence}");
    stage.end().await;
}

#[tokio::test]
async fn a_few_an_hour_and_no_more() {
    let days: Vec<u32> = (1..=10).map(|n| 3 * n).collect();
    let feed = "probe = true\ncomplete = true";
    let mut stage = Stage::with(Format::Rss20, feed, "").await;
    has_pages(&stage, 1..=40);
    gone(&days)(&stage);
    let (all, most) = (linked(&stage, 1..=40, &[]), linked(&stage, 1..=40, &days));
    stage.posts(&all).await;
    stage.hours(1);
    assert_eq!(stage.posts(&most).await.events, "deleted 4");
    // Four, and the two they are compared with.
    assert_eq!(stage.publisher.pages_asked().len(), 6);
    for _ in 0..3 {
        assert_eq!(stage.poll().await.events, "");
    }
    assert_eq!(stage.publisher.pages_asked().len(), 6);
    stage.hours(1);
    assert_eq!(stage.poll().await.events, "deleted 4");
    stage.hours(1);
    assert_eq!(stage.poll().await.events, "deleted 2");
    assert_eq!(stage.publisher.pages_asked().len(), 16);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_does_not_ask_again() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let disk = format!("[store]\nkind = \"sled\"\npath = \"{}\"\n", data.display());
    let mut stage = Stage::with(Format::Rss20, ASKING, &disk).await;
    has_pages(&stage, 1..=8);
    let (all, most) = (linked(&stage, 1..=8, &[]), linked(&stage, 1..=8, &[5]));
    stage.posts(&all).await;
    stage.hours(1);
    stage.posts(&most).await;
    let asked = stage.publisher.pages_asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    let before = missing(&stage).await;
    stage.restart().await;
    stage.poll().await;
    assert_eq!(missing(&stage).await["probe"], before["probe"]);
    assert_eq!(stage.publisher.pages_asked(), asked);
    // And what it said then still counts.
    let events: Vec<_> = stage.polls(5, 6).await.into_iter().map(|s| s.events).collect();
    assert_eq!(events.concat(), "retired 1");
    assert!(!stage.subscriber.item("Post 5").1);
    stage.end().await;
}
