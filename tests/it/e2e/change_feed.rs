//! The edits and deletions of a feed as a feed of their own.

use crate::e2e::support::{Format, Stage, header, post, posts};
use serde_json::Value;

const CHANGES: &str = "http://gateway.example/feeds/news/changes";

/// The entries of the feed of changes: id, title, and the text of the whole entry.
fn told(text: &str) -> Vec<(String, String, String)> {
    let inner = |entry: &str, name: &str| {
        let rest = entry.split_once(&format!("<{name}>")).unwrap().1;
        rest.split_once(&format!("</{name}>")).unwrap().0.to_owned()
    };
    let all = text.split("<entry>").skip(1);
    all.map(|entry| (inner(entry, "id"), inner(entry, "title"), entry.to_owned())).collect()
}

#[tokio::test]
async fn edits_and_deletions_are_a_feed_of_their_own() {
    let mut stage = Stage::with(Format::Atom10, "deletions = \"eager\"", "").await;
    let mut all = posts(1..=8);
    stage.posts(&all).await;
    let empty = stage.net.text(CHANGES).await;
    assert!(
        told(&empty).is_empty() && empty.contains("<updated>"),
        "new posts are no edits: {empty}"
    );

    stage.hours(2);
    all[4] = post(4).edited("Something &amp;lt;else&amp;gt; entirely");
    assert_eq!(stage.posts(&all).await.events, "updated 1");
    let edited = told(&stage.net.text(CHANGES).await);
    assert_eq!(edited.len(), 1);
    let (id, title, entry) = &edited[0];
    assert!(title.starts_with("Edited: "), "{title}");
    // What publishers wrote is text in the HTML, which is text in the XML.
    assert!(
        entry.contains("&lt;ins&gt;") && entry.contains("Something &amp;lt;else&amp;gt;"),
        "{entry}"
    );
    assert!(entry.contains("?diff=1..2"), "{entry}");

    stage.hours(2);
    all.remove(5);
    stage.posts(&all).await;
    stage.polls(4, 12).await;
    let text = stage.net.text(CHANGES).await;
    let both = told(&text);
    assert_eq!(both.len(), 2, "{text}");
    assert!(both[0].1.starts_with("Deleted: "), "newest first: {}", both[0].1);
    assert_eq!((&both[1].0, &both[1].2), (id, entry), "an entry stays as it was");

    // The same as JSON Feed, and as a page for a browser.
    let json: Value =
        serde_json::from_str(&stage.net.text(&format!("{CHANGES}?as=jsonfeed")).await).unwrap();
    let ids: Vec<_> =
        json["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [both[0].0.as_str(), id]);
    let navigation = stage.net.get(CHANGES).header("accept", "text/html,*/*;q=0.8");
    let page = navigation.header("sec-fetch-dest", "document").send().await.unwrap();
    assert_eq!(header(&page, "content-type").as_deref(), Some("text/html; charset=utf-8"));
    let page = page.text().await.unwrap();
    assert!(page.contains("<ins>") && !page.contains("<else>"), "{page}");

    // Who has it is told so, and a change to something else leaves every entry as it was.
    let answer = stage.net.get(CHANGES).send().await.unwrap();
    let etag = header(&answer, "etag").unwrap();
    let again = stage.net.get(CHANGES).header("if-none-match", etag).send().await.unwrap();
    assert_eq!(again.status(), 304);
    stage.hours(2);
    all.insert(0, post(9));
    stage.posts(&all).await;
    assert_eq!(told(&stage.net.text(CHANGES).await), both);
    assert_eq!(stage.net.get(&format!("{CHANGES}?as=rss")).send().await.unwrap().status(), 400);

    // A text that is taken out is in it no more.
    let sync_id = json["items"][1]["url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let redact = format!("/feeds/news/items/{sync_id}/redact");
    assert_eq!(stage.admin("POST", &redact, Some(serde_json::json!({}))).await.0, 200);
    let text = stage.net.text(CHANGES).await;
    assert!(!text.contains("Something") && told(&text).iter().all(|one| one.0 != *id), "{text}");
    stage.end().await;
}
