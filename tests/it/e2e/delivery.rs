//! How answers are delivered: validators, HEAD, encodings, parameters.

use crate::e2e::support::{Format, Stage, posts};
use std::io::Read;

const VIEWS: [&str; 3] = ["", "/sync", "/complete"];

fn address(view: &str) -> String {
    format!("http://gateway.example/feeds/news{view}")
}

#[tokio::test]
async fn etags_are_strong_and_answer_304_until_something_changes() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.posts(&posts(1..=5)).await;
    let mut tags = Vec::new();
    for view in VIEWS {
        let answer = stage.net.get(&address(view)).send().await.unwrap();
        let headers = answer.headers().clone();
        let (etag, modified) = (&headers["etag"], &headers["last-modified"]);
        assert!(etag.to_str().unwrap().starts_with('"'));
        let stamp = httpdate::parse_http_date(modified.to_str().unwrap()).unwrap();
        let stamp = stamp.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(i64::try_from(stamp).unwrap() <= stage.now().unix(), "in the future");
        for (name, value) in [("if-none-match", etag), ("if-modified-since", modified)] {
            let again = stage.net.get(&address(view)).header(name, value).send().await.unwrap();
            assert_eq!(again.status(), 304, "{view} {name}");
            assert_eq!(&again.headers()["etag"], etag);
            assert!(again.bytes().await.unwrap().is_empty());
        }
        let other = stage.net.get(&address(view)).header("if-none-match", "\"x\"").send().await;
        assert_eq!(other.unwrap().status(), 200);
        tags.push(etag.clone());
    }
    stage.hours(1);
    stage.posts(&posts(2..=6)).await;
    for (view, tag) in VIEWS.iter().zip(tags) {
        let answer = stage.net.get(&address(view)).header("if-none-match", &tag).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200, "{view}");
        assert_ne!(answer.headers()["etag"], tag);
    }
    stage.end().await;
}

#[tokio::test]
async fn head_says_what_get_says() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=5)).await;
    for view in VIEWS {
        let get = stage.net.get(&address(view)).send().await.unwrap();
        let head = stage.net.request(reqwest::Method::HEAD, &address(view)).send().await.unwrap();
        assert_eq!(head.status(), 200);
        for name in ["etag", "last-modified", "content-type", "content-length", "cache-control"] {
            assert_eq!(head.headers().get(name), get.headers().get(name), "{view} {name}");
            assert!(head.headers().contains_key(name), "{view} {name}");
        }
        assert!(head.bytes().await.unwrap().is_empty());
    }
    stage.end().await;
}

#[tokio::test]
async fn encodings_carry_the_same_document_under_their_own_tags() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=20)).await;
    for view in VIEWS {
        let plain = stage.net.get(&address(view)).send().await.unwrap();
        assert!(plain.headers().get("content-encoding").is_none());
        let mut tags = vec![plain.headers()["etag"].clone()];
        let text = plain.text().await.unwrap();
        for coding in ["gzip", "zstd"] {
            let asked = || stage.net.get(&address(view)).header("accept-encoding", coding).send();
            let answer = asked().await.unwrap();
            assert_eq!(answer.headers()["content-encoding"], coding);
            assert!(answer.headers()["vary"].to_str().unwrap().contains("ccept-"));
            let tag = answer.headers()["etag"].clone();
            assert!(!tags.contains(&tag), "{coding} shares its tag");
            tags.push(tag);
            let bytes = answer.bytes().await.unwrap();
            assert!(bytes.len() < text.len());
            let mut decoded = String::new();
            match coding {
                "gzip" => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut decoded),
                _ => zstd::Decoder::new(&bytes[..]).unwrap().read_to_string(&mut decoded),
            }
            .unwrap();
            assert_eq!(decoded, text, "{view} {coding}");
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn what_is_asked_wrongly_is_said_so() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=3)).await;
    for (path, status) in [
        ("/feeds/news/sync?since=yesterday", 400),
        ("/feeds/news?as=word", 400),
        ("/feeds/news?sx=9", 400),
        ("/feeds/unknown", 404),
        ("/feeds/unknown/sync", 404),
    ] {
        let answer = stage.net.get(&format!("http://gateway.example{path}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json", "{path}");
        let problem: serde_json::Value =
            serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(problem["status"], status, "{path}");
    }
    stage.end().await;
}

#[tokio::test]
async fn the_other_dialect_says_the_same() {
    let mut stage = Stage::new(Format::Atom10).await;
    stage.posts(&posts(1..=3)).await;
    let sse = stage.net.text(&address("/sync")).await;
    let feedsync = stage.net.text(&format!("{}?sx=feedsync", address("/sync"))).await;
    assert!(feedsync.contains("http://feedsync.org/2007/feedsync"));
    assert!(!feedsync.contains("http://www.microsoft.com/schemas/sse"));
    let read = |text: &str| {
        let items = crate::support::shared_items::items(text).into_iter();
        items.map(|item| (item.winner.id.clone(), item.winner.history)).collect::<Vec<_>>()
    };
    assert_eq!(read(&sse), read(&feedsync));
    stage.end().await;
}
