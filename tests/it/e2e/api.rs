//! Administration as programs use it: each answer is as it is described (the stage checks that), and a feed is added
//! by the address of its site.

use crate::e2e::support::{Answer, FEED, Format, PUBLIC, Stage, described, posts};
use serde_json::{Value, json};

#[tokio::test]
async fn a_feed_is_added_by_the_address_of_its_site() {
    let stage = Stage::new(Format::Rss20).await;
    stage.publishes(&posts(1..=3));
    let site = stage.publisher.address("/site");
    let page = "<html><head><link rel='alternate' type='application/rss+xml' title='News' href='/feed'>\
                </head><body>Hello</body></html>";
    stage.publisher.set("/site", Answer::document("text/html", page));
    let look = |url: String| stage.admin("POST", "/preview", Some(json!({ "url": url })));
    let (status, seen) = look(site.clone()).await;
    assert_eq!(
        (status, &seen["kind"], &seen["feeds"][0]["title"]),
        (200, &json!("page"), &json!("News"))
    );
    let found = seen["feeds"][0]["url"].as_str().unwrap().to_owned();
    let (_, seen) = look(found.clone()).await;
    assert_eq!((&seen["kind"], &seen["entries"]), (&json!("feed"), &json!(3)));
    let named = seen["name"].as_str().unwrap().to_owned();

    // Under the name that it was said to get, and never over another.
    let add = |body: Value| stage.admin("POST", "/feeds", Some(body));
    let (status, feed) = add(json!({ "url": found, "deletions": "off" })).await;
    assert_eq!(
        (status, &feed["name"], &feed["options"]["deletions"]),
        (201, &json!(named), &json!("off"))
    );
    assert_eq!(add(json!({ "url": found, "name": named })).await.0, 409);
    assert_eq!(add(json!({ "url": found, "name": "mine" })).await.1["name"], "mine");
    for (body, parameter) in [
        (json!({ "name": "x" }), "url"),
        (json!({ "url": found, "name": "A B" }), "name"),
        (json!({ "url": found, "name": 7 }), "name"),
        (json!({ "url": found, "colour": 1 }), "colour"),
    ] {
        let (status, problem) = add(body).await;
        assert_eq!((status, &problem["parameter"]), (400, &json!(parameter)));
    }
    let (status, problem) = stage.admin("POST", "/preview", Some(json!({}))).await;
    assert_eq!((status, &problem["parameter"]), (400, &json!("url")));
    assert_eq!(look("ftp://example.org/".to_owned()).await.0, 400);
    stage.stop().await;
}

#[tokio::test]
async fn what_programs_read_is_as_it_is_described() {
    let mut stage = Stage::with(Format::Atom10, "", "[websub]\nhub = true\n").await;
    stage.posts(&posts(1..=4)).await;
    stage.posts(&posts(1..=5)).await;
    assert_eq!(stage.admin("GET", "/subscriptions", None).await.0, 200);
    assert_eq!(stage.admin("GET", "/subscriptions?feed=A", None).await.0, 400);
    assert_eq!(stage.admin("GET", "/feeds/nobody", None).await.0, 404);
    assert_eq!(stage.admin("GET", "/feeds?colour=1", None).await.0, 400);
    assert_eq!(stage.admin("POST", &format!("/feeds/{FEED}/hold"), None).await.0, 400);
    let release = Some(json!({ "action": "release" }));
    assert_eq!(stage.admin("POST", &format!("/feeds/{FEED}/hold"), release).await.0, 409);
    assert_eq!(stage.admin("GET", &format!("/feeds/{FEED}/items?show=current"), None).await.0, 200);
    let wide = stage.admin("POST", &format!("/feeds/{FEED}/backfill"), None).await;
    assert!(matches!(wide.0, 202 | 409), "{wide:?}");

    let lines = stage.net.text(&format!("{PUBLIC}/changes?after=0&wait=0")).await;
    let mut changes = 0;
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        described::check_named("ChangeLine", &line);
        changes += line["changes"].as_array().unwrap().len();
    }
    assert!(changes > 0, "{lines}");
    for path in ["/sup.json?seconds=60", "/feeds/news/items", "/feeds/news/conflicts"] {
        let answer = stage.net.get(&format!("{PUBLIC}{path}")).header("accept", "application/json");
        let answer = answer.send().await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        let value = serde_json::from_str(&text).unwrap();
        described::check_answer("GET", path, (status, &kind), &value);
    }
    stage.stop().await;
}
