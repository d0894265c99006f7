//! Publishers that want to know who asks: credentials reach them and nobody else. That nothing shows any is
//! `secrets.rs`.

use crate::e2e::support::{Answer, Format, Publisher, Stage, TOKEN, on_disk, posts};
use serde_json::{Value, json};
use std::path::Path;
use tidegate::app::{ConfigSource, Imported, export, import};
use tidegate_config::Config;

/// Stands in every secret of these tests.
const HUSH: &str = "hush-7d1f";

/// A feed's table with credentials of every kind but one.
fn secrets() -> String {
    format!(
        "headers = {{ X-Api-Key = \"key-{HUSH}\" }}\ncookie = \"session={HUSH}\"\n\
         basic = {{ user = \"user-{HUSH}\", password = \"{HUSH}\" }}\nuser_agent = \"our reader\"\n"
    )
}

fn sent(publisher: &Publisher, name: &str) -> Option<String> {
    let (_, headers) = publisher.last();
    headers.get(name).map(|value| value.to_str().unwrap().to_owned())
}

/// A feed beside the first one, at the same address.
fn second(stage: &Stage, more: &Value) -> Value {
    let mut body = json!({ "url": stage.publisher.address("/feed") });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feeds_of_one_address_share_no_answer() {
    let mut stage = Stage::with(Format::Rss20, "bearer = \"one\"\n", "").await;
    let document = Format::Rss20.document(&posts(1..=5));
    let answer = Answer::document("application/rss+xml", document).with("etag", "\"1\"");
    stage.answers(answer);
    stage.poll().await;
    let asked = stage.publisher.requests();
    let body = second(&stage, &json!({ "bearer": "two" }));
    assert_eq!(stage.admin("PUT", "/feeds/other", Some(body)).await.0, 201);
    stage.admin("POST", "/feeds/other/poll", None).await;
    assert!(stage.publisher.requests() > asked);
    let (_, other) = stage.admin("GET", "/feeds/other", None).await;
    assert_eq!(other["state"]["counts"]["living"], 5, "it was answered with a document: {other}");
    assert_eq!(sent(&stage.publisher, "authorization").as_deref(), Some("Bearer two"));
    assert_eq!(stage.poll().await.outcome, "not_modified");
    assert_eq!(sent(&stage.publisher, "authorization").as_deref(), Some("Bearer one"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_keeps_what_it_does_not_show() {
    let mut stage = Stage::new(Format::Rss20).await;
    // From now on it is not polled by itself.
    stage.posts(&posts(1..=5)).await;
    let put = |body: Value| stage.admin("PUT", "/feeds/other", Some(body));
    let refused = |answer: (u16, Value), said: &str| {
        let text = answer.1.to_string();
        assert!(answer.0 == 400 && text.contains(said) && !text.contains(HUSH), "{text}");
    };
    let stored = json!({ "stored": true });
    refused(put(second(&stage, &json!({ "bearer": stored }))).await, "bearer: none is stored");
    for named in [json!({ "env": "HOME" }), json!({ "file": "/etc/hostname" })] {
        let body = second(&stage, &json!({ "cookie": named }));
        refused(put(body).await, "polling.api_secrets = true");
    }
    refused(put(second(&stage, &json!({ "bearer": format!("{HUSH}\n") }))).await, "line break");
    let body = second(&stage, &json!({ "bearer": HUSH, "headers": { "X-Key": HUSH } }));
    assert_eq!(put(body).await.0, 201);
    // What is shown can be put back, and goes nowhere else.
    let (_, told) = stage.admin("GET", "/feeds/other", None).await;
    assert!(!told.to_string().contains(HUSH), "{told}");
    let mut body = second(&stage, &json!({ "complete": true }));
    for key in ["bearer", "headers", "cookie", "basic", "proxy", "user_agent"] {
        body[key] = told["options"][key].clone();
    }
    assert_eq!(put(body.clone()).await.0, 200);
    stage.admin("POST", "/feeds/other/poll", None).await;
    assert_eq!(sent(&stage.publisher, "authorization"), Some(format!("Bearer {HUSH}")));
    assert_eq!(sent(&stage.publisher, "x-key").as_deref(), Some(HUSH));
    let elsewhere = Publisher::start().await;
    let mut stolen = body.clone();
    stolen["url"] = json!(elsewhere.address("/feed"));
    refused(put(stolen).await, "of another origin");
    let mut stolen = body.clone();
    stolen["proxy"] = json!(elsewhere.address(""));
    refused(put(stolen).await, "proxy is another one");
    // The form of the page keeps what it does not have: secrets, options and a pause.
    assert_eq!(stage.admin("POST", "/feeds/other/pause", None).await.0, 200);
    let url = told["url"].as_str().unwrap().as_bytes();
    let url: String = url::form_urlencoded::byte_serialize(url).collect();
    let typed = format!(
        "token={TOKEN}&url={url}&deletions=%22off%22&complete=true&order=%22auto%22&probe=false&min_interval=2h"
    );
    let edit = "http://gateway.example/feeds/other/edit";
    let form =
        stage.net.request(reqwest::Method::POST, edit).header("sec-fetch-site", "same-origin");
    let form = form.header("content-type", "application/x-www-form-urlencoded").body(typed);
    assert!(form.send().await.unwrap().url().path().ends_with("/feeds/other/about"));
    let (_, now) = stage.admin("GET", "/feeds/other", None).await;
    for key in ["bearer", "headers", "cookie", "ignore", "backfill", "user_agent"] {
        assert_eq!(now["options"][key], told["options"][key], "{key}");
    }
    let changed = ["deletions", "complete", "min_interval"].map(|key| now["options"][key].clone());
    assert_eq!(changed, [json!("off"), json!(true), json!("2h")]);
    assert_eq!(now["standing"], "paused");
    // A feed that was deleted has none any more.
    assert!(stage.admin("DELETE", "/feeds/other", None).await.0 < 300);
    refused(put(body).await, "none is stored");
    assert_eq!(elsewhere.requests(), 0);
    stage.stop().await;
}

/// A proxy may have any address where the configuration names it; who has the token may not choose any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_names_no_private_proxy() {
    let polling = "[polling]\nallow_private = [\"127.0.0.1:{port}\"]\nhost_spacing = \"0s\"\n";
    let stage = Stage::with(Format::Rss20, "", polling).await;
    for proxy in ["http://127.0.0.1:1", "socks5://169.254.169.254:80", "http://intranet:3128"] {
        let body = second(&stage, &json!({ "proxy": proxy }));
        let (status, said) = stage.admin("PUT", "/feeds/other", Some(body)).await;
        assert!(status == 400 && said.to_string().contains("polling.allow_private"), "{said}");
    }
    for proxy in [json!(stage.publisher.address("")), json!("none"), json!("http://1.1.1.1:3128")] {
        let body = second(&stage, &json!({ "proxy": proxy }));
        assert!(stage.admin("PUT", "/feeds/other", Some(body)).await.0 < 300, "{proxy}");
    }
    stage.stop().await;
}

fn bytes_below(path: &Path) -> Vec<u8> {
    zstd::stream::decode_all(&std::fs::read(path).unwrap()[b"tidegate export\n".len()..]).unwrap()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_has_no_credentials_and_says_whose_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::with(Format::Rss20, &secrets(), &on_disk(folder.path())).await;
    stage.posts(&posts(1..=5)).await;
    let body = second(&stage, &json!({ "bearer": HUSH }));
    assert_eq!(stage.admin("PUT", "/feeds/other", Some(body)).await.0, 201);
    let config = stage.config().clone();
    // What is stored outlives a restart.
    stage.restart().await;
    stage.admin("POST", "/feeds/other/poll", None).await;
    assert_eq!(sent(&stage.publisher, "authorization"), Some(format!("Bearer {HUSH}")));
    stage.stop().await;
    let file = folder.path().join("gate.tg");
    let fixed = |config: &Config| ConfigSource::Fixed(Box::new(config.clone()));
    let carried = export(&file, &fixed(&config)).await.unwrap();
    let names: Vec<_> = carried.left_out.named.iter().map(|name| name.as_str()).collect();
    assert_eq!((names.as_slice(), carried.left_out.filed), (["other"].as_slice(), 1));
    let bytes = bytes_below(&file);
    assert!(!has(&bytes, HUSH) && has(&bytes, "X-Api-Key"), "the names are there");

    let mut there = config;
    there.store.path = folder.path().join("there");
    let clock = std::sync::Arc::new(tidegate_core::clock::SystemClock);
    let brought = import(&file, &fixed(&there), false, clock).await.unwrap();
    let Imported::State(brought) = brought else { panic!() };
    assert_eq!(brought.left_out, carried.left_out);
}
