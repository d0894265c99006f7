//! An upstream's failure never becomes a reader's.

use crate::e2e::support::{Answer, Format, Stage, posts};

#[tokio::test]
async fn failures_keep_the_last_good_feed() {
    let mut stage = Stage::new(Format::Rss20).await;
    let before = stage.posts(&posts(1..=5)).await;
    let document = Format::Rss20.document(&posts(1..=5));
    let answers = [
        (Answer::status(404), Some(404)),
        (Answer::status(410), Some(410)),
        (Answer::status(500), Some(500)),
        (Answer::status(503).with("retry-after", "120"), Some(503)),
        (Answer::status(401), Some(401)),
        (Answer::document("application/rss+xml", ""), None),
        (Answer::document("application/rss+xml", "no feed at all"), None),
        (Answer::document("application/rss+xml", document).breaking_after(200), None),
        (Answer::redirect(302, "/feed"), None),
        (Answer::redirect(302, "ftp://publisher.example/feed"), None),
    ];
    for (failures, (answer, status)) in (1..).zip(answers) {
        stage.hours(1);
        stage.answers(answer);
        let step = stage.poll().await;
        assert_eq!(step.outcome, "failed", "{failures}");
        assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""), "{failures}");
        assert!(step.error.is_some_and(|error| !error.is_empty()), "{failures}");
        let state = stage.status().await;
        let last = &state["last_polls"][0];
        assert_eq!(last["outcome"], "failed");
        assert_eq!(last["status"].as_u64(), status, "{last}");
        assert!(last["blame"] == "upstream" || last["blame"] == "network", "{last}");
        assert!(state["failures"].as_u64().unwrap() >= failures, "{state}");
    }
    let step = stage.posts(&posts(2..=6)).await;
    assert_eq!(step.events, "created 1, retired 1");
    assert!(step.until > before.until);
    assert_eq!(stage.status().await["failures"], 0);
    stage.end().await;
}

#[tokio::test]
async fn an_outage_is_no_evidence_of_absence() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut without = posts(1..=8);
    without.remove(3);
    stage.posts(&without).await;
    // Down for days: nobody has seen the hole again.
    stage.answers(Answer::status(502));
    let down = stage.polls(6, 12).await;
    assert!(down.iter().all(|s| s.events.is_empty()), "{down:?}");
    let step = stage.posts(&posts(1..=8)).await;
    assert_eq!((step.events.as_str(), step.held), ("", None));
    assert_eq!(stage.subscriber.item("Post 5").0, 1);
    stage.end().await;
}

#[tokio::test]
async fn a_permanent_redirect_is_followed_and_shown() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=5)).await;
    stage.hours(1);
    let document = Format::Rss20.document(&posts(2..=6));
    stage.publisher.set("/new-feed", Answer::document("application/rss+xml", document));
    stage.answers(Answer::redirect(301, "/new-feed"));
    let step = stage.poll().await;
    assert_eq!(step.events, "created 1, retired 1");
    let status = stage.status().await;
    assert_eq!(status["moved_to"], stage.publisher.address("/new-feed"));
    assert_eq!(status["url"], stage.publisher.address("/feed"), "the configured one stays");
    // The redirect was a mistake: the configured address goes on.
    let step = stage.posts(&posts(3..=7)).await;
    assert_eq!(step.events, "created 1, retired 1");
    assert!(stage.status().await["moved_to"].is_null());
    stage.end().await;
}

#[tokio::test]
async fn validators_are_sent_back_and_a_304_changes_nothing() {
    let mut stage = Stage::new(Format::Rss20).await;
    let stamp = "Mon, 01 Jun 2026 00:00:00 GMT";
    let document = |days, tag: &str| {
        let body = Format::Rss20.document(&posts(days));
        Answer::document("application/rss+xml", body).with("etag", tag).with("last-modified", stamp)
    };
    stage.answers(document(1..=5, "\"one\""));
    let first = stage.poll().await;
    assert_eq!(first.events, "created 5");
    let quiet = stage.poll().await;
    let (_, asked) = stage.publisher.last();
    assert_eq!(asked["if-none-match"], "\"one\"");
    assert_eq!(asked["if-modified-since"], stamp);
    assert_eq!(asked["accept-encoding"].to_str().unwrap().matches("gzip").count(), 1);
    assert_eq!((quiet.outcome.as_str(), quiet.until), ("not_modified", first.until));
    stage.answers(document(2..=6, "W/\"two\""));
    assert_eq!(stage.poll().await.events, "created 1, retired 1");
    assert_eq!(stage.poll().await.outcome, "not_modified");
    assert_eq!(stage.publisher.last().1["if-none-match"], "W/\"two\"");
    stage.end().await;
}

#[tokio::test]
async fn a_server_that_answers_304_for_ever_is_asked_for_the_whole_in_time() {
    let mut stage = Stage::new(Format::Rss20).await;
    let stuck = |days| {
        let body = Format::Rss20.document(&posts(days));
        Answer::document("application/rss+xml", body).with("etag", "\"always-the-same\"")
    };
    stage.answers(stuck(1..=5));
    stage.poll().await;
    stage.answers(stuck(2..=6));
    assert_eq!(stage.poll().await.outcome, "not_modified");
    let steps = stage.polls(3, 12).await;
    assert!(steps.iter().any(|s| s.events == "created 1, retired 1"), "{steps:?}");
    stage.end().await;
}

#[tokio::test]
async fn the_same_body_without_validators_is_unchanged() {
    let mut stage = Stage::new(Format::Rss20).await;
    let first = stage.posts(&posts(1..=5)).await;
    let revision = stage.status().await["revision"].clone();
    for _ in 0..3 {
        stage.hours(1);
        let step = stage.poll().await;
        assert_eq!((step.outcome.as_str(), &step.until), ("unchanged", &first.until));
    }
    assert_eq!(stage.status().await["revision"], revision, "nothing was written");
    stage.end().await;
}

#[tokio::test]
async fn compressed_upstreams_are_read() {
    use std::io::Write;
    let mut stage = Stage::new(Format::Rss20).await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(Format::Rss20.document(&posts(1..=5)).as_bytes()).unwrap();
    let body = gzip.finish().unwrap();
    let cut = body.len() / 2;
    let answer = |body: &[u8]| {
        Answer::document("application/rss+xml", body).with("content-encoding", "gzip")
    };
    stage.answers(answer(&body));
    assert_eq!(stage.poll().await.events, "created 5");
    stage.answers(answer(&body[..cut]));
    let step = stage.poll().await;
    assert_eq!((step.outcome.as_str(), step.reader.as_str()), ("failed", ""));
    stage.end().await;
}
