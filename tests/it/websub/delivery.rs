//! What is delivered, to whom, and how often (sections 7 and 7.1).

use super::*;

/// A subscriber to whom a change is delivered, and who answers it so.
async fn answering(status: u16) -> (Stage, Callback) {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    stage.subscribes(&topic("/feeds/news"), &callback.url("/"), &[]).await;
    callback.takes(Takes::With(status));
    stage.changes_to(&["two", "one"]).await;
    (stage, callback)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_view_is_a_topic_of_its_own() {
    let mut stage = Stage::new().await;
    let paths = [
        "/feeds/news",
        "/feeds/news/sync",
        "/feeds/news/complete",
        "/feeds/news/sync?sx=feedsync",
        "/feeds/news?as=atom",
    ];
    let callback = Callback::start().await;
    for (number, path) in paths.iter().enumerate() {
        stage.subscribes(&topic(path), &callback.url(&format!("/{number}")), &[]).await;
    }
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, paths.len()).await;
    for pushed in callback.deliveries() {
        let number: usize = pushed.path.trim_start_matches('/').parse().unwrap();
        let (_, _, document) = stage.get(paths[number]).await;
        assert_eq!(pushed.text(), document, "{}", paths[number]);
        assert!(pushed.all("x-hub-signature").is_empty(), "nobody gave a secret");
        assert_eq!(pushed.all("content-encoding"), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_is_behind_gets_the_newest_document_once() {
    let mut stage = Stage::new().await;
    let (behind, prompt) = (Callback::start().await, Callback::start().await);
    let news = topic("/feeds/news");
    stage.subscribes(&news, &behind.url("/"), &[]).await;
    stage.subscribes(&news, &prompt.url("/"), &[]).await;
    behind.takes(Takes::With(500));
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&behind, 1).await;
    stage.changes_to(&["three", "two", "one"]).await;
    stage.delivers(&prompt, 2).await;
    stage.changes_to(&["four", "three", "two", "one"]).await;
    stage.delivers(&prompt, 3).await;
    assert_eq!(behind.deliveries().len(), 1, "it has its pause");
    behind.takes(Takes::With(200));
    stage.later(31);
    stage.delivers(&behind, 2).await;
    assert!(behind.deliveries()[1].text().contains("<title>four</title>"));
    stage.until("all is told", async || stage.seen().await["delivered"] == 4).await;
    stage.later(3600);
    stage.says(&["four", "three", "two", "one"]);
    assert_eq!(stage.poll("news").await["outcome"], "unchanged");
    stage.stop().await;
    stage.start().await;
    stage.later(3600);
    // The next thing that either hears of is the next change.
    stage.changes_to(&["five", "four", "three", "two", "one"]).await;
    stage.delivers(&behind, 3).await;
    stage.delivers(&prompt, 4).await;
    for last in [behind.deliveries().pop(), prompt.deliveries().pop()] {
        assert!(last.unwrap().text().contains("<title>five</title>"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_a_failure_and_not_followed() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    stage.subscribes(&topic("/feeds/news"), &callback.url("/push"), &[]).await;
    callback.takes(Takes::With(307));
    stage.changes_to(&["two", "one"]).await;
    stage.until("it failed", async || stage.seen().await["failed"] == 1).await;
    let seen = stage.seen().await;
    let of = &seen["subscriptions"][0];
    assert_eq!(of["failures"], 1);
    assert!(of["trouble"].as_str().unwrap().contains("redirect (307)"), "{of}");
    assert!(callback.seen().iter().all(|seen| seen.path == "/push"));
    callback.takes(Takes::With(202));
    stage.later(31);
    stage.delivers(&callback, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_is_gone_is_not_called_again() {
    let (mut stage, callback) = answering(410).await;
    stage.until("it has heard", async || stage.seen().await["failed"] == 1).await;
    // There are subscribers that answer so while they read the feed themselves.
    assert_eq!(stage.active().await, 1);
    stage.stop().await;
    stage.start().await;
    stage.later(301);
    stage.until("it has ended", async || stage.active().await == 0).await;
    stage.changes_to(&["three", "two", "one"]).await;
    stage.later(3600);
    stage.stop().await;
    stage.start().await;
    assert_eq!(callback.deliveries().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_410_is_not_the_end() {
    let (mut stage, callback) = answering(410).await;
    stage.until("it has heard", async || stage.seen().await["failed"] == 1).await;
    callback.takes(Takes::With(204));
    stage.later(301);
    stage.delivers(&callback, 2).await;
    assert!(callback.deliveries().pop().unwrap().text().contains("<title>two</title>"));
    assert_eq!(stage.active().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_callbacks_hold_up_nobody_else() {
    let mut stage = Stage::new().await;
    let (slow, quick) = (Callback::start().await, Callback::start().await);
    let news = topic("/feeds/news");
    for number in 0..12 {
        stage.subscribes(&news, &slow.url(&format!("/{number}")), &[]).await;
    }
    stage.subscribes(&news, &quick.url("/"), &[]).await;
    slow.takes(Takes::Hangs);
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&quick, 1).await;
    stage.changes_to(&["three", "two", "one"]).await;
    stage.delivers(&quick, 2).await;
    stage.until("the slow one is called", async || slow.deliveries().len() >= 4).await;
    assert_eq!(slow.deliveries().len(), 4, "so many at once to one host");

    // What hangs is cut when the gateway stops, and done again when it starts.
    stage.stop().await;
    slow.takes(Takes::With(204));
    stage.start().await;
    stage.delivers(&slow, 4 + 12).await;
    assert_eq!(quick.deliveries().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_given_up_after_many_failures_and_the_next_one_tried() {
    let (mut stage, callback) = answering(500).await;
    for tries in 1..=10 {
        stage.delivers(&callback, tries).await;
        stage.until("it is noted", async || stage.seen().await["failed"] == tries as u64).await;
        stage.later(6 * 3600);
    }
    assert_eq!(stage.seen().await["subscriptions"][0]["failures"], 10);
    stage.later(6 * 3600);
    callback.takes(Takes::With(204));
    stage.changes_to(&["three", "two", "one"]).await;
    stage.delivers(&callback, 11).await;
    stage.until("it is well again", async || stage.seen().await["delivered"] == 1).await;
    assert_eq!(stage.seen().await["subscriptions"][0]["failures"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_without_a_document_delivers_its_first_one() {
    let mut stage = Stage::without_feeds("allow_private = true", "").await;
    let callback = Callback::start().await;
    // The publisher answers nothing that can be read yet.
    stage.add("news").await;
    assert_eq!(stage.poll("news").await["outcome"], "failed");
    stage.subscribes(&topic("/feeds/news"), &callback.url("/"), &[]).await;
    stage.changes_to(&["one"]).await;
    stage.delivers(&callback, 1).await;
    assert!(callback.deliveries()[0].text().contains("<title>one</title>"));
}
