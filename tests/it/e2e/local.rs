//! Feeds of the gateway's own: items made, changed and deleted through the API.

use crate::e2e::support::{Format, Stage, Subscriber};
use serde_json::json;

const NOTES: &str = "http://gateway.example/feeds/notes";

async fn titles(stage: &Stage, feed: &str) -> Vec<String> {
    let address = format!("http://gateway.example/feeds/{feed}");
    let text = stage.net.text(&address).await;
    let read = feed_titles(&text);
    read.into_iter().skip(1).collect()
}

/// The titles in a document, that of the feed first.
fn feed_titles(text: &str) -> Vec<String> {
    let titles = text.split("<title").skip(1).filter_map(|rest| {
        let inner = rest.split_once('>')?.1;
        Some(inner.split_once("</title>")?.0.to_owned())
    });
    titles.collect()
}

async fn create(stage: &Stage, feed: &str, title: &str) -> String {
    let body = json!({ "title": title, "content": format!("About {title}") });
    let (status, made) = stage.admin("POST", &format!("/feeds/{feed}/items"), Some(body)).await;
    assert_eq!(status, 201, "{made}");
    made["sync_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_local_feed_lives_through_the_api_alone() {
    let local = "[[feed]]\nname = \"notes\"\nlocal = true\ntitle = \"Our notes\"\n\
                 [[aggregate]]\nname = \"all\"\nsources = [\"notes\"]\ntitle = \"All of it\"\n";
    let mut stage = Stage::with(Format::Atom10, "", local).await;
    // It is there before it has an item, and so is an aggregate.
    let empty = stage.net.text(NOTES).await;
    assert_eq!(feed_titles(&empty), ["Our notes"]);
    assert!(!empty.contains("rel=\"via\""), "{empty}");
    assert!(stage.net.text("http://gateway.example/feeds/all").await.contains("All of it"));
    assert_eq!(stage.admin("POST", "/feeds/notes/poll", None).await.0, 409);
    // Nobody says of either that it is polled.
    for (feed, why) in [("notes", "its items are made here"), ("all", "it gathers notes")] {
        let status = stage.admin("GET", &format!("/feeds/{feed}"), None).await.1;
        assert_eq!((&status["url"], &status["why"]), (&json!(null), &json!(why)));
        let about = stage.net.text(&format!("http://gateway.example/feeds/{feed}/about")).await;
        assert!(about.contains(why) && !about.contains("polled"), "{about}");
        let dashboard = stage.net.text("http://gateway.example/").await;
        assert!(dashboard.contains(why), "{dashboard}");
    }

    let first = create(&stage, "notes", "first").await;
    let mut subscriber = Subscriber::new(&stage.net, "notes", false);
    subscriber.consume().await;
    stage.later(std::time::Duration::from_secs(60));
    let second = create(&stage, "notes", "second").await;
    assert_eq!(titles(&stage, "notes").await, ["second", "first"]);

    let of = format!("/feeds/notes/items/{first}");
    stage.later(std::time::Duration::from_secs(60));
    let (status, changed) = stage.admin("PUT", &of, Some(json!({ "title": "First" }))).await;
    assert_eq!((status, &changed["updates"]), (200, &json!(2)));
    stage.later(std::time::Duration::from_secs(60));
    let (status, gone) = stage.admin("DELETE", &format!("/feeds/notes/items/{second}"), None).await;
    assert_eq!((status, &gone["deleted"]), (200, &json!(true)));
    assert_eq!(titles(&stage, "notes").await, ["First"]);
    subscriber.consume().await;
    assert_eq!(subscriber.resets, 0);
    let first = subscriber.item("First");
    assert_eq!((first.0, first.1), (2, false));
    assert_eq!(subscriber.living().len(), 1);

    let back = format!("/feeds/notes/items/{second}/restore");
    assert_eq!(stage.admin("POST", &back, None).await.0, 200);
    assert_eq!(titles(&stage, "notes").await, ["second", "First"]);
    // All of it is there after a restart of whoever reads, and nobody else's items can be changed.
    let mut late = Subscriber::new(&stage.net, "notes", true);
    late.consume().await;
    subscriber.consume().await;
    assert_eq!(late.known(), subscriber.known());
    stage.posts(&crate::e2e::support::posts(1..=3)).await;
    let (status, refused) =
        stage.admin("POST", "/feeds/news/items", Some(json!({ "title": "x" }))).await;
    assert_eq!(status, 409, "{refused}");

    // Another one, through the API.
    let put = json!({ "local": true, "title": "A diary", "shares_with": ["notes"] });
    let (status, diary) = stage.admin("PUT", "/feeds/diary", Some(put)).await;
    assert_eq!((status, &diary["options"]["local"]), (201, &json!(true)), "{diary}");
    create(&stage, "diary", "today").await;
    let diary = stage.net.text("http://gateway.example/feeds/diary").await;
    assert_eq!(feed_titles(&diary), ["A diary", "today"]);
    for other in ["nobody", "diary"] {
        let wrong = json!({ "local": true, "shares_with": [other] });
        let (status, said) = stage.admin("PUT", "/feeds/diary", Some(wrong)).await;
        let there_is = format!("shares_with: there is no other feed {other}");
        assert!(status == 400 && said.to_string().contains(&there_is), "{said}");
    }
    stage.stop().await;
}
