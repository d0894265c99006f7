//! What publishers write their feeds in.

use crate::e2e::support::{Format, Stage, posts};

#[tokio::test]
async fn a_change_of_format_makes_nothing_new() {
    for (before, after) in [
        (Format::Rss20, Format::Atom10),
        (Format::Atom10, Format::Rss20),
        (Format::Rss20, Format::Json),
    ] {
        let mut stage = Stage::new(before).await;
        stage.compares_payloads = false;
        stage.posts(&posts(1..=8)).await;
        let ids = stage.reader.current.clone();
        stage.hours(1);
        stage.writes(after);
        let mut steps = vec![stage.posts(&posts(1..=8)).await];
        steps.extend(stage.polls(4, 2).await);
        let words = format!("{before:?} to {after:?}: {steps:?}");
        assert!(steps.iter().all(|s| !s.events.contains("created")), "{words}");
        assert!(steps.iter().all(|s| s.reader.is_empty()), "{words}");
        assert_eq!(stage.reader.current, ids);
        stage.hours(1);
        let step = stage.posts(&posts(2..=9)).await;
        assert_eq!(step.reader, "new: Post 9; gone: Post 1", "{words}");
        stage.end().await;
    }
}
