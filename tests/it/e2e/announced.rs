//! What is told of changes: SUP documents, their discovery, and the doors of the change log.

use crate::e2e::support::{FEED, Format, Stage, header, on_disk, posts};
use std::time::Duration;
use tidegate_core::sup::{self, SupDocument};

const SITE: &str = "http://gateway.example";

/// The SUP document as of the stage's time. One that was made a moment ago may still be served.
async fn document(stage: &Stage, seconds: u32) -> SupDocument {
    for _ in 0..600 {
        let text = stage.net.text(&format!("{SITE}/sup.json?seconds={seconds}")).await;
        let document = sup::read(text.as_bytes()).unwrap();
        if document.updated == stage.now().minus(Duration::from_secs(1)) {
            return document;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no document of {} came", stage.now());
}

fn listed(document: &SupDocument) -> Vec<(&str, &str)> {
    document.updates.iter().map(|update| (update.id.as_str(), &*update.update)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_announced_and_noise_is_not_and_both_outlive_a_restart() {
    for format in Format::BOTH {
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Stage::with(format, "", &on_disk(folder.path())).await;
        let first = stage.posts(&posts(1..=8)).await;
        let place = async |stage: &Stage| {
            let answer = stage.net.get(&format!("{SITE}/feeds/{FEED}")).send().await.unwrap();
            sup::in_header(&header(&answer, "x-sup-id").unwrap()).unwrap()
        };
        let place_of = place(&stage).await;
        assert_eq!(place_of.document, format!("{SITE}/sup.json"));
        let id = place_of.id.as_str();
        let update = |until: &str| until.replace(':', "-");
        assert_eq!(listed(&document(&stage, 60).await), [(id, &*update(&first.until))]);

        // Ten minutes later nothing has changed: the short document is empty, a longer one is not.
        stage.later(Duration::from_secs(600));
        assert_eq!(listed(&document(&stage, 60).await), []);
        assert_eq!(listed(&document(&stage, 3600).await), [(id, &*update(&first.until))]);
        // The bytes are others, and nothing that a reader sees is.
        let text = format.document(&posts(1..=8)).replace("><", ">\n<");
        stage.publishes_text(&text);
        assert_eq!(stage.poll().await.until, first.until);
        assert_eq!(listed(&document(&stage, 60).await), []);

        let second = stage.posts(&posts(1..=9)).await;
        assert_ne!(second.until, first.until);
        let whole = [(id, &*update(&second.until))];
        assert_eq!(listed(&document(&stage, 60).await), whole);
        stage.restart().await;
        assert_eq!(place(&stage).await, place_of);
        assert_eq!(listed(&document(&stage, 300).await), whole);
        stage.hours(2);
        assert_eq!(listed(&document(&stage, 3600).await), []);
        assert_eq!(listed(&document(&stage, 86_400).await), whole);
        stage.end().await;
    }
}
