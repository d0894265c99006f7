//! Missing items whose own addresses are asked.

use crate::e2e::support::{Answer, Format, Post, Stage, Step, on_disk, posts};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_does_not_ask_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Format::Rss20, ASKING, &on_disk(folder.path())).await;
    has_pages(&stage, 1..=8);
    let (all, most) = (linked(&stage, 1..=8, &[]), linked(&stage, 1..=8, &[5]));
    stage.posts(&all).await;
    stage.hours(1);
    stage.posts(&most).await;
    let asked = stage.publisher.pages_asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    let before = stage.status().await["pending"][0]["probe"].clone();
    assert!(!before.is_null());
    stage.restart().await;
    stage.poll().await;
    assert_eq!(stage.status().await["pending"][0]["probe"], before);
    assert_eq!(stage.publisher.pages_asked(), asked);
    // And what it said then still counts.
    let events: Vec<_> = stage.polls(5, 6).await.into_iter().map(|step| step.events).collect();
    assert_eq!(events.concat(), "retired 1");
    stage.end().await;
}
