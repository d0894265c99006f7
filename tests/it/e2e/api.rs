//! Administration as programs use it: each answer is as it is described, which the stage checks.

use crate::e2e::support::{FEED, Format, PUBLIC, Stage, described, posts};
use serde_json::{Value, json};

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
