//! Documents that say too much at once: held until they heal or are confirmed.

use crate::e2e::support::{Answer, Format, Post, Stage, post, posts};

#[tokio::test]
async fn an_empty_document_that_heals_changes_nothing() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let before = stage.posts(&posts(1..=8)).await;
        stage.hours(1);
        let step = stage.posts(&[]).await;
        assert!(step.held.is_some(), "{step:?}");
        assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""));
        assert!(!stage.status().await["held"].is_null());
        let step = &stage.polls(2, 2).await[1];
        assert!(step.held.is_some(), "{step:?}");
        let healed = stage.posts(&posts(1..=8)).await;
        assert_eq!(healed.held, None);
        assert_eq!((healed.events.as_str(), healed.reader.as_str()), ("", ""));
        assert_eq!(healed.until, before.until);
        assert!(stage.status().await["held"].is_null());
        stage.end().await;
    }
}

#[tokio::test]
async fn an_empty_document_that_stays_retires_and_deletes_nothing() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    assert!(stage.posts(&[]).await.held.is_some());
    let steps = stage.polls(12, 4).await;
    let events: Vec<_> =
        steps.iter().map(|s| s.events.as_str()).filter(|e| !e.is_empty()).collect();
    assert_eq!(events, ["retired 8"]);
    assert!(steps[4].events.is_empty(), "it is held for a day: {steps:?}");
    assert_eq!(steps[11].held, None);
    assert!(stage.reader.titles().is_empty());
    assert_eq!(stage.subscriber.living().len(), 8);
    // The publisher is back: nothing is new.
    let step = stage.posts(&posts(1..=8)).await;
    assert_eq!(step.events, "returned 8");
    assert!(step.reader.starts_with("back: Post 8, "), "{}", step.reader);
    stage.end().await;
}

#[tokio::test]
async fn an_empty_document_is_held_where_deletions_are_eager() {
    let mut stage = Stage::with(Format::Rss20, "deletions = \"eager\"", "").await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let step = stage.posts(&[]).await;
    assert!(step.held.is_some() && step.events.is_empty(), "{step:?}");
    stage.end().await;
}

#[tokio::test]
async fn a_login_page_is_a_failure() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=5)).await;
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>\
                <input name=user></form></body></html>";
    stage.answers(Answer::document("text/html", page));
    let step = stage.poll().await;
    assert_eq!(step.outcome, "failed");
    assert!(step.error.as_ref().is_some_and(|e| e.to_lowercase().contains("html")), "{step:?}");
    let status = stage.status().await;
    assert_eq!(status["last_polls"][0]["blame"], "upstream", "{status}");
    assert_eq!(step.reader, "");
    assert_eq!(stage.posts(&posts(1..=5)).await.events, "");
    stage.end().await;
}

#[tokio::test]
async fn a_mostly_gone_document_is_held() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    let step = stage.posts(&posts(9..=10)).await;
    assert!(step.held.is_some(), "{step:?}");
    assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""));
    let healed = stage.posts(&posts(2..=11)).await;
    assert_eq!(healed.events, "created 1, retired 1");
    stage.end().await;
}

#[tokio::test]
async fn half_of_the_items_gone_is_not_held() {
    let mut stage = Stage::with(Format::Rss20, "complete = true\ndeletions = \"eager\"", "").await;
    stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    let step = stage.posts(&posts(6..=10)).await;
    assert_eq!(step.held, None);
    assert_eq!(step.events, "deleted 5");
    stage.end().await;
}

#[tokio::test]
async fn half_of_the_items_changed_is_not_held() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    let mut all = posts(1..=10);
    for p in all.iter_mut().take(5) {
        p.text.push_str(" This was added to five of ten.");
    }
    let step = stage.posts(&all).await;
    assert_eq!(step.held, None);
    assert_eq!(step.events, "updated 5");
    stage.end().await;
}

/// Posts of another publisher, with ids and links of its own.
fn foreign() -> Vec<Post> {
    let foreign = |day| {
        let mut p = post(day);
        p.title = format!("Foreign {day}");
        p.link = format!("http://other.example/articles/{day}-something-else");
        p.id = Some(p.link.clone());
        p.text = format!("Something entirely different, number {day}.");
        p
    };
    (1..=8).rev().map(foreign).collect()
}

#[tokio::test]
async fn another_sites_feed_is_held_and_heals() {
    let mut stage = Stage::new(Format::Rss20).await;
    let before = stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    stage.publishes_text(&Format::Rss20.of_site("http://other.example/", &foreign()));
    let step = stage.poll().await;
    assert!(step.held.is_some(), "{step:?}");
    assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""));
    let healed = stage.posts(&posts(1..=8)).await;
    assert_eq!((healed.events.as_str(), healed.until), ("", before.until));
    stage.end().await;
}

#[tokio::test]
async fn another_sites_feed_that_stays_retires_and_deletes_nothing() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    stage.publishes_text(&Format::Rss20.of_site("http://other.example/", &foreign()));
    assert!(stage.poll().await.held.is_some());
    let steps = stage.polls(8, 4).await;
    let events: Vec<_> =
        steps.iter().map(|s| s.events.as_str()).filter(|e| !e.is_empty()).collect();
    assert_eq!(events, ["created 8, retired 8"]);
    assert_eq!(stage.subscriber.living().len(), 16);
    assert_eq!(stage.reader.titles()[0], "Foreign 8");
    stage.end().await;
}

#[tokio::test]
async fn a_template_change_with_a_real_edit_inside_goes_out_once_as_one_batch() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.compares_payloads = false;
    let before = stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    let mut all = posts(1..=10);
    for p in &mut all {
        p.text.push_str(" Sponsored by our new partner.");
    }
    all[4].text = "An edit of substance. Sponsored by our new partner.".to_owned();
    let step = stage.posts(&all).await;
    assert!(step.held.is_some(), "{step:?}");
    assert_eq!((step.events.as_str(), step.until), ("", before.until));
    let steps = stage.polls(8, 4).await;
    let ticks: std::collections::BTreeSet<_> = steps.iter().map(|s| s.until.clone()).collect();
    assert_eq!(steps[7].held, None);
    assert!(ticks.len() <= 2, "one batch: {ticks:?}");
    assert_eq!(stage.subscriber.item("Post 6").0, 2, "the real edit came out");
    assert_eq!(stage.subscriber.living().len(), 10);
    let text = stage.net.text("http://gateway.example/feeds/news").await;
    assert!(text.contains("An edit of substance"), "{text}");
    stage.end().await;
}

#[tokio::test]
async fn a_change_of_template_alone_is_no_edit() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.compares_payloads = false;
        let before = stage.posts(&posts(1..=6)).await;
        stage.hours(1);
        // Other white space, another order of attributes, another generator: the same to a reader.
        let document = format.document(&posts(1..=6));
        let other = document
            .replace("<title>News</title>", "<title>News</title>\n  <generator>New</generator>")
            .replace("</entry>", "\n  </entry>")
            .replace("</item>", "\n  </item>");
        stage.publishes_text(&other);
        let step = stage.poll().await;
        assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""));
        assert_eq!((step.held, step.until), (None, before.until));
        stage.end().await;
    }
}

#[tokio::test]
async fn a_cut_document_adds_and_takes_nothing_away() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        stage.posts(&posts(1..=8)).await;
        stage.hours(1);
        let mut next = posts(2..=9);
        next[1] = post(8).edited("Told anew before the cut.");
        let whole = format.document(&next);
        let cut = whole.find("Post 6").unwrap();
        stage.publishes_text(&whole[..cut]);
        let step = stage.poll().await;
        // What a document says that breaks off is not believed before it is seen a second time.
        assert_eq!((step.events.as_str(), step.reader.as_str()), ("", ""));
        stage.hours(1);
        let step = stage.poll().await;
        assert_eq!(step.events, "created 1, updated 1");
        assert_eq!(step.reader, "new: Post 9; changed: Post 8");
        assert_eq!(stage.reader.titles().len(), 9);
        // However long it stays cut.
        let quiet = stage.polls(6, 12).await;
        assert!(quiet.iter().all(|s| s.events.is_empty() && s.reader.is_empty()), "{quiet:?}");
        let step = stage.posts(&next).await;
        assert_eq!(step.events, "retired 1");
        assert_eq!(step.reader, "gone: Post 1");
        stage.end().await;
    }
}

#[tokio::test]
async fn an_empty_document_that_stays_deletes_on_a_complete_feed() {
    let mut stage = Stage::with(Format::Rss20, "complete = true", "").await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    assert!(stage.posts(&[]).await.held.is_some());
    let steps = stage.polls(20, 4).await;
    let events: Vec<_> =
        steps.iter().map(|s| s.events.as_str()).filter(|e| !e.is_empty()).collect();
    assert_eq!(events, ["deleted 8"]);
    stage.end().await;
}

#[tokio::test]
async fn a_mostly_gone_document_that_stays_goes_out_as_one_batch() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=10)).await;
    stage.hours(1);
    assert!(stage.posts(&posts(9..=10)).await.held.is_some());
    let steps = stage.polls(12, 4).await;
    let events: Vec<_> =
        steps.iter().map(|s| s.events.as_str()).filter(|e| !e.is_empty()).collect();
    assert_eq!(events, ["retired 8"]);
    stage.end().await;
}
