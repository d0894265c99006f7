//! What is delivered, to whom, and how often (sections 7 and 7.1).

use super::*;

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
