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
