//! What publishers do every day: they add, scroll and edit.

use crate::e2e::support::{Format, Stage, post, posts};

#[tokio::test]
async fn the_first_poll() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let step = stage.posts(&posts(1..=5)).await;
        assert_eq!(step.outcome, "changed");
        assert_eq!(step.events, "created 5");
        assert_eq!(step.reader, "new: Post 5, Post 4, Post 3, Post 2, Post 1");
        assert!(step.held.is_none() && step.error.is_none(), "{step:?}");
        let (updates, deleted, history) = stage.subscriber.item("Post 3");
        assert_eq!((updates, deleted, history.len()), (1, false, 1));
        assert_eq!(stage.subscriber.until(), step.until);
        stage.end().await;
    }
}

#[tokio::test]
async fn before_the_first_document_there_is_nothing_to_read() {
    let mut stage = Stage::new(Format::Rss20).await;
    let step = stage.poll().await;
    assert_eq!(step.outcome, "failed");
    for view in ["", "/sync", "/complete"] {
        let address = format!("http://gateway.example/feeds/news{view}");
        assert_eq!(stage.net.get(&address).send().await.unwrap().status(), 503, "{view}");
    }
    assert_eq!(stage.posts(&posts(1..=3)).await.events, "created 3");
    stage.end().await;
}

#[tokio::test]
async fn a_scroll_retires_and_deletes_nothing() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.posts(&posts(1..=5)).await;
        for newest in 6..=12 {
            stage.hours(5);
            let step = stage.posts(&posts(newest - 4..=newest)).await;
            assert_eq!(step.events, "created 1, retired 1");
            assert_eq!(step.reader, format!("new: Post {newest}; gone: Post {}", newest - 5));
        }
        // Who subscribes has them all; who reads has the publisher's window.
        assert_eq!(stage.subscriber.living().len(), 12);
        assert_eq!(stage.reader.titles(), ["Post 12", "Post 11", "Post 10", "Post 9", "Post 8"]);
        let quiet: Vec<_> = stage.polls(6, 12).await.iter().map(|s| s.events.clone()).collect();
        assert!(quiet.iter().all(String::is_empty), "{quiet:?}");
        stage.end().await;
    }
}

#[tokio::test]
async fn a_whole_window_that_turns_over_between_two_polls_retires() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=6)).await;
    stage.hours(30);
    let step = stage.posts(&posts(9..=14)).await;
    assert_eq!(step.held, None);
    assert_eq!(step.events, "created 6, retired 6");
    assert_eq!(stage.subscriber.living().len(), 12);
    stage.end().await;
}

#[tokio::test]
async fn an_edit_makes_a_version_with_its_history() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let mut all = posts(1..=5);
        stage.posts(&all).await;
        stage.hours(1);
        all[2] = post(3).edited("It was quite otherwise.");
        let step = stage.posts(&all).await;
        assert_eq!(step.events, "updated 1");
        assert_eq!(step.reader, "changed: Post 3");
        let (updates, deleted, history) = stage.subscriber.item("Post 3");
        assert_eq!((updates, deleted, history.len()), (2, false, 2));
        assert!(history[0].starts_with("2 ") && history[1].starts_with("1 "), "{history:?}");
        // The same document again says nothing new.
        stage.hours(1);
        let again = stage.poll().await;
        assert_eq!((again.events.as_str(), again.reader.as_str()), ("", ""));
        assert_eq!((again.outcome.as_str(), again.until), ("unchanged", step.until));
        stage.end().await;
    }
}

#[tokio::test]
async fn an_item_that_comes_back_from_beyond_the_window_is_not_new() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.posts(&posts(1..=5)).await;
    stage.hours(1);
    stage.posts(&posts(2..=6)).await;
    stage.hours(1);
    let step = stage.posts(&posts(1..=6)).await;
    assert_eq!(step.events, "returned 1");
    assert_eq!(step.reader, "back: Post 1");
    assert_eq!(stage.subscriber.item("Post 1").0, 1);
    stage.end().await;
}

#[tokio::test]
async fn counters_are_no_edits() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.compares_payloads = false;
    let count = |n: u32| {
        let mut all = posts(1..=5);
        for (at, p) in all.iter_mut().enumerate() {
            p.extra = format!(
                "<slash:comments xmlns:slash=\"http://purl.org/rss/1.0/modules/slash/\">{}\
                 </slash:comments><media:community xmlns:media=\"http://search.yahoo.com/mrss/\">\
                 <media:statistics views=\"{}\"/></media:community>",
                n * 3 + at as u32,
                n * 1000 + at as u32
            );
        }
        all
    };
    let first = stage.posts(&count(1)).await;
    for n in 2..8 {
        stage.hours(1);
        let step = stage.posts(&count(n)).await;
        assert_eq!(step.events, "", "poll {n}");
        assert_eq!(step.reader, "");
        assert_eq!(step.until, first.until);
    }
    // What is shown is the publisher's newest all the same.
    let text = stage.net.text("http://gateway.example/feeds/news").await;
    assert!(text.contains("views=\"7000\""), "{text}");
    stage.end().await;
}

#[tokio::test]
async fn an_edit_among_new_posts_and_a_scroll() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.posts(&posts(1..=6)).await;
    stage.hours(3);
    let mut next = posts(3..=8);
    next[3] = post(5).edited("An edit in the middle of much else.");
    let step = stage.posts(&next).await;
    assert_eq!(step.events, "created 2, updated 1, retired 2");
    assert_eq!(step.reader, "new: Post 8, Post 7; changed: Post 5; gone: Post 2, Post 1");
    stage.end().await;
}

#[tokio::test]
async fn ticks_rise_though_the_clock_goes_back() {
    let mut stage = Stage::new(Format::Rss20).await;
    let mut until = stage.posts(&posts(1..=3)).await.until;
    for newest in 4..10 {
        // The minute that each poll takes is taken back again.
        stage.turn_back(59);
        let step = stage.posts(&posts(newest - 2..=newest)).await;
        assert!(step.until > until, "{} after {until}", step.until);
        until = step.until;
    }
    stage.turn_back(7200);
    let step = stage.posts(&posts(8..=10)).await;
    assert!(step.until > until, "{} after {until}", step.until);
    stage.end().await;
}

#[tokio::test]
async fn a_reordered_document_is_shown_in_its_order_and_changes_nothing() {
    let mut stage = Stage::new(Format::Atom10).await;
    let before = stage.posts(&posts(1..=6)).await;
    stage.hours(1);
    let mut all = posts(1..=6);
    all.swap(0, 3);
    let step = stage.posts(&all).await;
    assert_eq!((step.events.as_str(), step.until), ("", before.until));
    assert_eq!(stage.reader.titles()[0], "Post 3");
    stage.end().await;
}
