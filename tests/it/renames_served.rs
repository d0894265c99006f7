//! Renames as a reader of the running program meets them: one entry a post, under one id.

use crate::support::process::Process;
use std::sync::{Arc, Mutex};

/// The program in front of a publisher whose document a test writes.
struct Served {
    gateway: Process,
    document: Arc<Mutex<String>>,
    _folder: tempfile::TempDir,
}

impl Served {
    async fn new() -> Self {
        let document: Arc<Mutex<String>> = Arc::default();
        let shown = Arc::clone(&document);
        let app = axum::Router::new().fallback(move || {
            let document = shown.lock().unwrap().clone();
            async move { ([("content-type", "application/rss+xml")], document) }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\npath = \"data\"\n\
             [polling]\nallow_private = true\nhost_spacing = \"0s\"\n\
             min_interval = \"1d\"\nmax_interval = \"1d\"\n[[feed]]\n\
             name = \"news\"\nurl = \"http://127.0.0.1:{port}/\"\n"
        );
        std::fs::write(folder.path().join("t.toml"), config).unwrap();
        let gateway = Process::configured(folder.path()).await;
        Self { gateway, document, _folder: folder }
    }

    /// Publishes these items, and has them polled.
    async fn publish(&self, items: &str) -> serde_json::Value {
        *self.document.lock().unwrap() = format!(
            "<rss version=\"2.0\"><channel><title>Notes</title>\
             <link>https://notes.example/</link><description>d</description>{items}</channel></rss>"
        );
        self.gateway.poll("news").await
    }

    /// The title and id of each entry that a reader gets, in their order.
    async fn entries(&self) -> Vec<(String, String)> {
        let text = self.gateway.get("/feeds/news").await;
        let feed = feed_rs::parser::parse(text.as_bytes()).unwrap();
        feed.entries.into_iter().map(|entry| (entry.title.unwrap().content, entry.id)).collect()
    }
}

#[tokio::test]
async fn a_session_in_every_address_shows_a_reader_the_new_post_alone() {
    let served = Served::new().await;
    let titles = ["駅前で", "ねむい", "おみやげです", "本棚", "雨のち晴れ", "朝の海"];
    let items = |posts: std::ops::Range<usize>, session: &str| -> String {
        let item = |at: usize| {
            let address = format!("https://notes.example/diary/{}?sid={session}", 40_200 + at);
            format!(
                "<item><title>{}</title><guid>{address}</guid><link>{address}</link></item>",
                titles[at]
            )
        };
        posts.rev().map(item).collect()
    };
    served.publish(&items(0..5, "a1")).await;
    let before = served.entries().await;
    assert_eq!(before.len(), 5);
    served.publish(&items(0..5, "b2")).await;
    assert_eq!(served.entries().await, before);
    served.publish(&items(1..6, "c3")).await;
    let after = served.entries().await;
    assert_eq!(after[0].0, titles[5]);
    assert_eq!(after[1..5], before[..4], "the others go by the ids that readers know");
    served.gateway.stop().await;
}

#[tokio::test]
async fn a_press_picture_makes_no_item_of_two_articles() {
    let served = Served::new().await;
    let item = |n: u32, title: &str, picture: &str| {
        let address = format!("https://notes.example/{n}");
        format!(
            "<item><title>{title}</title><guid>{address}</guid><link>{address}</link>\
             <description>The text of article {n}.</description>\
             <pubDate>{n} Mar 2026 06:00:00 +0000</pubDate>\
             <enclosure url=\"https://notes.example/{picture}\" length=\"9\" type=\"image/jpeg\"/>\
             </item>"
        )
    };
    let listed = |numbers: std::ops::RangeInclusive<u32>| -> String {
        let numbers = numbers.rev();
        numbers.map(|n| item(n, &format!("Report about matter {n}"), &format!("{n}.jpg"))).collect()
    };
    served.publish(&format!("{}{}", listed(2..=5), item(1, "The council meets", "hall.jpg"))).await;
    let before = served.entries().await;
    // The first one has slid off; the newest shows its picture.
    let newest = item(6, "The council resigns", "hall.jpg");
    served.publish(&format!("{newest}{}", listed(2..=5))).await;
    let after = served.entries().await;
    assert_eq!(after[0].0, "The council resigns");
    assert!(before.iter().all(|(_, id)| *id != after[0].1), "it goes by the id of another article");
    assert_eq!(after[1..5], before[..4]);
    served.gateway.stop().await;
}
