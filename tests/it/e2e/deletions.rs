//! What publishers take away, and what only looks so.

use crate::e2e::support::{Format, Post, Stage, post, posts};

fn without(mut posts: Vec<Post>, day: u32) -> Vec<Post> {
    posts.retain(|p| p.day != day);
    posts
}

#[tokio::test]
async fn a_deletion_in_the_middle_is_confirmed_by_quiet_polls() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.posts(&posts(1..=8)).await;
        stage.hours(1);
        let seen = stage.posts(&without(posts(1..=8), 5)).await;
        assert_eq!(seen.events, "");
        assert!(!stage.subscriber.item("Post 5").1);
        let steps = stage.polls(5, 6).await;
        let events: Vec<_> =
            steps.iter().map(|s| s.events.as_str()).filter(|e| !e.is_empty()).collect();
        assert_eq!(events, ["deleted 1"]);
        assert!(steps[0].events.is_empty() && steps[1].events.is_empty(), "too soon: {steps:?}");
        assert!(stage.subscriber.item("Post 5").1);
        assert!(!stage.reader.titles().contains(&"Post 5"));
        if format == Format::Atom10 {
            assert!(stage.reader.deleted.contains(&post(5).id.unwrap()));
        }
        stage.end().await;
    }
}

#[tokio::test]
async fn the_publishers_304_confirms_as_well() {
    use crate::e2e::support::Answer;
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let document = Format::Rss20.document(&without(posts(1..=8), 5));
    stage.answers(Answer::document("application/rss+xml", document).with("etag", "\"two\""));
    stage.poll().await;
    let steps = stage.polls(3, 6).await;
    assert_eq!(steps[2].outcome, "not_modified");
    let steps = stage.polls(2, 4).await;
    assert_eq!(steps[1].events, "deleted 1", "{steps:?}");
    stage.end().await;
}

#[tokio::test]
async fn an_accident_that_is_mended_in_time_leaves_no_trace() {
    let mut stage = Stage::new(Format::Rss20).await;
    let before = stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    stage.posts(&without(posts(1..=8), 5)).await;
    stage.polls(2, 4).await;
    let mended = stage.posts(&posts(1..=8)).await;
    assert_eq!(mended.events, "");
    assert_eq!(mended.until, before.until);
    stage.polls(4, 12).await;
    assert_eq!(stage.subscriber.item("Post 5").0, 1);
    stage.end().await;
}

#[tokio::test]
async fn a_deletion_that_is_filled_up_from_below() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.posts(&posts(1..=8)).await;
        stage.hours(1);
        stage.posts(&posts(3..=10)).await;
        stage.hours(1);
        let step = stage.posts(&without(posts(2..=10), 6)).await;
        assert_eq!(step.events, "returned 1");
        stage.polls(5, 6).await;
        assert!(stage.subscriber.item("Post 6").1);
        assert!(!stage.subscriber.item("Post 1").1);
        assert_eq!(stage.subscriber.living().len(), 9);
        stage.end().await;
    }
}

#[tokio::test]
async fn what_is_deleted_and_comes_again_is_undeleted() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.posts(&posts(1..=8)).await;
        stage.posts(&without(posts(1..=8), 5)).await;
        stage.polls(5, 6).await;
        assert!(stage.subscriber.item("Post 5").1);
        let step = stage.posts(&posts(1..=8)).await;
        assert_eq!(step.events, "undeleted 1");
        assert_eq!(step.reader, "back: Post 5");
        let (updates, deleted, history) = stage.subscriber.item("Post 5");
        assert_eq!((updates, deleted, history.len()), (3, false, 3));
        assert!(stage.reader.deleted.is_empty());
        stage.end().await;
    }
}

#[tokio::test]
async fn an_eager_feed_deletes_with_the_first_document() {
    let mut stage = Stage::with(Format::Rss20, "deletions = \"eager\"", "").await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    assert_eq!(stage.posts(&without(posts(1..=8), 4)).await.events, "deleted 1");
    assert!(stage.subscriber.item("Post 4").1);
    assert_eq!(stage.posts(&posts(1..=8)).await.events, "undeleted 1");
    // Sliding off the end is no deletion, however eager.
    stage.hours(1);
    assert_eq!(stage.posts(&posts(2..=9)).await.events, "created 1, retired 1");
    stage.end().await;
}

#[tokio::test]
async fn a_feed_with_deletions_off_deletes_nothing() {
    let mut stage = Stage::with(Format::Rss20, "deletions = \"off\"", "").await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut steps = vec![stage.posts(&without(posts(1..=8), 4)).await];
    steps.extend(stage.polls(6, 8).await);
    assert!(steps.iter().all(|s| !s.events.contains("deleted")), "{steps:?}");
    assert!(!stage.subscriber.item("Post 4").1);
    assert!(!stage.reader.titles().contains(&"Post 4"));
    stage.end().await;
}

#[tokio::test]
async fn what_a_complete_feed_does_not_list_is_deleted() {
    let mut stage = Stage::with(Format::Atom10, "complete = true", "").await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    // The oldest: without the operator's word it would have slid off.
    assert_eq!(stage.posts(&posts(2..=8)).await.events, "");
    stage.polls(5, 6).await;
    assert!(stage.subscriber.item("Post 1").1);
    stage.end().await;
}

#[tokio::test]
async fn a_deletion_that_the_publisher_declares() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let document = Format::Atom10.document(&without(posts(1..=8), 5));
    let said = format!(
        "<at:deleted-entry xmlns:at=\"http://purl.org/atompub/tombstones/1.0\" ref=\"{}\" \
         when=\"2026-05-31T00:00:00Z\"/></feed>",
        post(5).id.unwrap()
    );
    stage.publishes_text(&document.replace("</feed>", &said));
    let mut events = vec![stage.poll().await.events];
    events.extend(stage.polls(4, 1).await.into_iter().map(|s| s.events));
    events.retain(|e| !e.is_empty());
    assert_eq!(events, ["deleted 1"]);
    assert!(stage.subscriber.item("Post 5").1);
    assert!(stage.reader.deleted.contains(&post(5).id.unwrap()));
    stage.end().await;
}

#[tokio::test]
async fn a_tombstone_is_a_shell() {
    let mut stage = Stage::with(Format::Rss20, "deletions = \"eager\"", "").await;
    let mut all = posts(1..=8);
    all[3] = post(5).edited("A secret that was told by mistake.");
    stage.posts(&all).await;
    stage.hours(1);
    stage.posts(&without(all, 5)).await;
    for view in ["", "/sync", "/complete"] {
        let text = stage.net.text(&format!("http://gateway.example/feeds/news{view}")).await;
        assert!(!text.contains("secret"), "{view}: {text}");
        assert_eq!(text.contains("Post 5"), !view.is_empty(), "{view}: {text}");
    }
    stage.end().await;
}

#[tokio::test]
async fn a_deleted_post_that_scrolls_past_stays_deleted() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut without = posts(1..=8);
    without.retain(|p| p.day != 5);
    stage.posts(&without).await;
    stage.polls(5, 6).await;
    stage.posts(&posts(9..=16)).await;
    stage.polls(3, 12).await;
    assert!(stage.subscriber.item("Post 5").1);
    assert_eq!(stage.subscriber.living().len(), 15);
    stage.end().await;
}

#[tokio::test]
async fn a_hole_that_scrolls_past_before_it_is_confirmed() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut without = posts(1..=8);
    without.retain(|p| p.day != 5);
    stage.posts(&without).await;
    stage.hours(2);
    stage.posts(&posts(9..=16)).await;
    stage.polls(6, 12).await;
    // Nothing says any more that it was taken away.
    assert_eq!(stage.subscriber.living().len(), 16);
    stage.end().await;
}

#[tokio::test]
async fn what_the_operator_says_was_deleted() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let but = |days: &[u32]| days.iter().fold(posts(1..=12), |all, day| without(all, *day));
        stage.posts(&posts(1..=12)).await;
        stage.hours(1);
        stage.posts(&but(&[4, 7, 10])).await;
        let steps = stage.polls(2, 2).await;
        assert!(steps.iter().any(|step| step.events == "retired 3"), "{steps:?}");
        let known = stage.state().await.unwrap();
        assert!(known.values().all(|(_, deleted, _)| !deleted), "{known:?}");

        let name = tidegate_core::model::FeedName::new("news").unwrap();
        let snapshot = stage.gateway().store().snapshot(&name).await.unwrap().unwrap();
        let path = |day: u32| {
            let native = post(day).id.unwrap();
            let known = snapshot.known.iter().find(|known| known.native_shown == native).unwrap();
            format!("/feeds/news/items/{}/delete", known.id)
        };
        let (status, said) = stage.admin("POST", &path(5), None).await;
        assert_eq!(status, 409, "{said}");
        assert!(said["detail"].as_str().unwrap().contains("lists the item"), "{said}");
        assert_eq!(stage.admin("POST", "/feeds/news/items/nothing/delete", None).await.0, 404);
        let (status, said) = stage.admin("POST", &path(7), None).await;
        assert_eq!((status, &said["was_deleted"]), (200, &false.into()), "{said}");
        let until = said["tick"].clone();
        let (status, again) = stage.admin("POST", &path(7), None).await;
        assert_eq!((status, &again["was_deleted"]), (200, &true.into()), "{again}");

        // Subscribers and readers learn it with the next look at the gateway; nothing else went.
        let step = stage.poll().await;
        assert_eq!((step.events.as_str(), step.until.as_str()), ("", until.as_str().unwrap()));
        assert!(stage.subscriber.item("Post 7").1);
        assert!(!stage.subscriber.item("Post 4").1 && !stage.subscriber.item("Post 10").1);
        for view in ["/sync", "/complete"] {
            let text = stage.net.text(&format!("http://gateway.example/feeds/news{view}")).await;
            assert_eq!(text.matches("deleted=\"true\"").count(), 1, "{view}: {text}");
        }
        let status = stage.status().await;
        let event = &status["events"][0];
        let why = event["reason"].as_str().unwrap();
        assert!(
            event["kind"] == "deleted" && why.starts_with("deleted by the operator: "),
            "{why}"
        );

        stage.hours(1);
        let step = stage.posts(&but(&[4, 10])).await;
        assert_eq!(step.events, "undeleted 1");
        let (updates, deleted, _) = stage.subscriber.item("Post 7");
        assert_eq!((updates, deleted), (3, false));
        stage.end().await;
    }
}
