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
