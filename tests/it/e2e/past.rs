//! The past of a feed: versions with their bytes and differences, what a view said at some time, and
//! text that is taken out of all of it.

use crate::e2e::support::{FEED, Format, PUBLIC, Post, Stage, on_disk, posts};
use serde_json::{Value, json};
use tidegate_core::model::Time;

/// What is never to be found again.
const SECRET: &str = "unspeakable";

async fn page(stage: &Stage, path: &str, accept: &str) -> (u16, String) {
    let request = stage.net.get(&format!("{PUBLIC}{path}")).header("accept", accept);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn item(stage: &Stage, id: &str) -> Value {
    let path = format!("/feeds/{FEED}/items/{id}");
    let (status, text) = page(stage, &path, "application/json").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The sync id of a post's item.
async fn id_of(stage: &Stage, post: &Post) -> String {
    let id = post.id.as_str();
    let name = tidegate_core::model::FeedName::new(FEED).unwrap();
    let snapshot = stage.gateway().store().snapshot(&name).await.unwrap().unwrap();
    snapshot.known.iter().find(|known| known.native_shown == id).unwrap().id.to_string()
}

fn as_of(time: Time) -> String {
    format!("as-of={time}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_can_be_read_and_compared() {
    for format in Format::BOTH {
        let mut stage = Stage::new(format).await;
        let mut all = posts(1..=6);
        all[2].title = "<script>alert('title')</script>".to_owned();
        stage.posts(&all).await;
        stage.hours(1);
        all[2].text = all[2].text.replace("no other", "<b>hardly any</b> other");
        stage.posts(&all).await;
        let id = id_of(&stage, &all[2]).await;
        let described = item(&stage, &id).await;
        assert_eq!(described["updates"], 2, "{described}");
        assert_eq!(described["standing"], "current");
        assert_eq!(described["native_id"], all[2].id);
        let bytes = described["versions"][0]["bytes"].as_str().unwrap();
        assert_eq!(bytes, format!("{PUBLIC}/feeds/{FEED}/items/{id}?version=2"));
        let answer = stage.net.get(bytes).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("sandbox;"), "{policy}");
        let etag = answer.headers()["etag"].clone();
        let text = answer.text().await.unwrap();
        assert!(text.contains("hardly any"), "{text}");
        let again = stage.net.get(bytes).header("if-none-match", etag).send().await.unwrap();
        assert_eq!(again.status(), 304);
        let size = described["versions"][0]["size"].as_u64().unwrap();
        assert_eq!(size, u64::try_from(text.len()).unwrap());

        let path = format!("/feeds/{FEED}/items/{id}");
        let (status, html) = page(&stage, &format!("{path}?diff=1..2"), "text/html").await;
        assert_eq!(status, 200);
        assert!(html.contains("<del>no</del>") && html.contains("<ins>hardly any</ins>"), "{html}");
        let (_, whole) = page(&stage, &path, "text/html").await;
        for page in [&html, &whole] {
            // Tags are taken out of a title that does not say that it has none.
            assert!(page.contains("alert('title')"), "{page}");
            assert!(!page.contains("<script") && !page.contains("<b>hardly"), "{page}");
        }
        let (_, json) = page(&stage, &format!("{path}?diff=1..2"), "application/json").await;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["old"], &json["new"]), (&"1".into(), &"2".into()));
        assert_eq!(json["fields"][0]["name"], "Text", "{json}");

        for (query, status) in [
            ("version=9", 404),
            ("version=x", 400),
            ("diff=1", 400),
            ("diff=1..9", 404),
            ("diff=1..newest", 200),
            ("version=newest", 200),
        ] {
            assert_eq!(page(&stage, &format!("{path}?{query}"), "*/*").await.0, status, "{query}");
        }
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_the_past_is_what_it_was() {
    for format in Format::BOTH {
        let mut stage = Stage::with(format, "deletions = \"eager\"", "").await;
        stage.posts(&posts(1..=6)).await;
        let first = stage.now();
        stage.hours(1);
        let mut later = posts(2..=8);
        later[1].title = "Another title".to_owned();
        stage.posts(&later).await;
        stage.hours(1);
        later.remove(3);
        assert_eq!(stage.posts(&later).await.events, "deleted 1");
        stage.hours(2);

        let path = format!("/feeds/{FEED}?{}", as_of(first));
        let (status, then) = page(&stage, &path, "*/*").await;
        assert_eq!(status, 200, "{then}");
        for day in 1..=6 {
            assert!(then.contains(&format!("Post {day}")), "{day}: {then}");
        }
        assert!(!then.contains("Post 7") && !then.contains("Another title"), "{then}");
        // It is an archive, and leads to the feed as it is.
        assert!(then.contains(":archive/>") || then.contains(":archive "), "{then}");
        assert!(then.contains("rel=\"current\""), "{then}");
        let own = format!("{PUBLIC}/feeds/{FEED}?{}", as_of(first));
        assert!(
            then.contains(&format!("rel=\"self\" type=\"{}\" href=\"{own}\"", format.media_type()))
        );
        assert!(!then.contains("rel=\"hub\"") && !then.contains("until="), "{then}");

        let answer = stage.net.get(&format!("{PUBLIC}{path}")).send().await.unwrap();
        let headers = answer.headers();
        assert_eq!(headers["cache-control"], "public, max-age=86400");
        assert_eq!(headers["memento-datetime"], first.rfc822());
        assert_eq!(headers["content-location"], own);
        let etag = headers["etag"].clone();
        // All times at which it was in force have the same document.
        let within = Time::from_unix(first.unix() + 1800);
        let again = format!("{PUBLIC}/feeds/{FEED}?{}", as_of(within));
        let again = stage.net.get(&again).header("if-none-match", etag).send().await.unwrap();
        assert_eq!(again.status(), 304);

        // The complete view lists what was deleted, as what it was then.
        let (_, then) =
            page(&stage, &format!("/feeds/{FEED}/complete?{}", as_of(first)), "*/*").await;
        assert_eq!(then.matches("deleted=\"true\"").count(), 0);
        let now = Time::from_unix(stage.now().unix() - 600);
        let (_, now) = page(&stage, &format!("/feeds/{FEED}/complete?{}", as_of(now)), "*/*").await;
        assert_eq!(now.matches("deleted=\"true\"").count(), 1, "{now}");
        assert!(now.contains("Post 1"), "a retired item lives on: {now}");

        let before = Time::from_unix(first.unix() - 86_400);
        let future = Time::from_unix(stage.now().unix() + 86_400);
        for (query, status) in [
            (as_of(before), 404),
            (as_of(future), 400),
            ("as-of=then".to_owned(), 400),
            (format!("{}&{}", as_of(first), as_of(first)), 400),
        ] {
            let (found, said) = page(&stage, &format!("/feeds/{FEED}?{query}"), "*/*").await;
            assert_eq!(found, status, "{query}");
            if status == 404 {
                assert!(said.contains(&format!("it can be read back to {first}")), "{said}");
            }
        }
        for view in ["", "/sync", "/complete"] {
            let bad = format!("/feeds/{FEED}{view}?as-of=yesterday");
            let answer = stage.net.get(&format!("{PUBLIC}{bad}")).send().await.unwrap();
            assert_eq!(answer.status(), 400, "{bad}");
            assert_eq!(answer.headers()["content-type"], "application/problem+json");
        }
        let name = tidegate_core::model::FeedName::new(FEED).unwrap();
        let note = stage.gateway().store().archives(&name, 1).await.unwrap().remove(0);
        let archive = format!("/feeds/{FEED}/archive/{}", note.id);
        assert_eq!(page(&stage, &archive, "*/*").await.0, 200);
        let (status, said) = page(&stage, &format!("{archive}?{}", as_of(first)), "*/*").await;
        assert!(status == 400 && said.contains("a fixed document"), "{said}");
        stage.end().await;
    }
}

/// Everything that the gateway answers of the feed.
async fn everything(stage: &Stage, first: Time, ids: &[String]) -> String {
    let mut all = String::new();
    let mut paths = vec![String::new(), "/sync".to_owned(), "/complete".to_owned()];
    for view in ["", "/sync", "/complete"] {
        for hours in 0..8 {
            let at = Time::from_unix((first.unix() + hours * 3600).min(stage.now().unix()));
            paths.push(format!("{view}?{}", as_of(at)));
        }
    }
    for id in ids {
        for query in ["", "?version=1", "?version=2", "?version=newest", "?diff=1..2"] {
            paths.push(format!("/items/{id}{query}"));
        }
    }
    let name = tidegate_core::model::FeedName::new(FEED).unwrap();
    for note in stage.gateway().store().archives(&name, 100).await.unwrap() {
        paths.push(format!("/archive/{}", note.id));
    }
    for path in paths {
        for accept in ["text/html", "application/json"] {
            let (_, text) = page(stage, &format!("/feeds/{FEED}{path}"), accept).await;
            all.push_str(&format!("\n== {path}\n{text}"));
        }
    }
    all.push_str(&stage.status().await.to_string());
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_text_is_nowhere_and_stays_out() {
    for format in [Format::Rss20, Format::Atom10, Format::Json] {
        let folder = tempfile::tempdir().unwrap();
        let tables = format!("{}[publish]\narchive_entries = 2\n", on_disk(folder.path()));
        let mut stage = Stage::with(format, "", &tables).await;
        let mut all = posts(1..=6);
        all[2].title = format!("An {SECRET} title");
        stage.posts(&all).await;
        let first = stage.now();
        stage.hours(1);
        all[2].text = format!("{} and {SECRET}", all[2].text);
        stage.posts(&all).await;
        stage.hours(1);
        stage.posts(&[posts(7..=9), all.clone()].concat()).await;
        let id = id_of(&stage, &all[2]).await;
        let ids = [id.clone(), id_of(&stage, &all[3]).await];
        let before = everything(&stage, first, &ids).await;
        assert!(before.matches(SECRET).count() > 20, "{before}");
        let etag = |stage: &Stage, path: String| {
            let request = stage.net.get(&format!("{PUBLIC}/feeds/{FEED}{path}"));
            async move { request.send().await.unwrap().headers()["etag"].clone() }
        };
        let old_past = etag(&stage, format!("?{}", as_of(first))).await;

        stage.hours(1);
        let path = format!("/feeds/{FEED}/items/{id}/redact");
        let (status, _) = stage.admin("POST", &path, Some(json!({ "why": "x" }))).await;
        assert_eq!(status, 400, "an unknown key");
        let body = json!({ "reason": "by court order" });
        let (status, said) = stage.admin("POST", &path, Some(body.clone())).await;
        assert_eq!(status, 200, "{said}");
        assert_eq!((&said["standing"], &said["kept_out"]), (&"redacted".into(), &true.into()));
        assert_eq!((&said["versions"], &said["was_redacted"]), (&3.into(), &false.into()));
        let (status, again) = stage.admin("POST", &path, Some(body)).await;
        assert_eq!((status, &again["was_redacted"]), (200, &true.into()));
        let unknown = format!("/feeds/{FEED}/items/nothing/redact");
        assert_eq!(stage.admin("POST", &unknown, None).await.0, 404);
        stage.compares_payloads = true;

        for restart in [false, true] {
            if restart {
                stage.restart().await;
            }
            let after = everything(&stage, first, &ids).await;
            assert!(!after.contains(SECRET), "{}", excerpt(&after));
            assert!(after.contains("by court order"));
            let described = item(&stage, &id).await;
            assert_eq!(
                (&described["redacted"], &described["kept_out"]),
                (&true.into(), &true.into())
            );
            // What could lead to the text elsewhere is not shown.
            assert_eq!((&described["link"], &described["native_id"]), (&Value::Null, &Value::Null));
            assert_eq!(described["aliases"], json!([]));
            assert!(described["published_id"].is_string());
            let (_, html) = page(&stage, &format!("/feeds/{FEED}/items/{id}"), "text/html").await;
            assert!(html.contains("Published as") && !html.contains("Publisher's id"), "{html}");
            assert_eq!(described["versions"][0]["reason"], "by court order");
            assert_eq!(described["versions"][1]["bytes"], Value::Null);
            let bytes = format!("/feeds/{FEED}/items/{id}?version=1");
            assert_eq!(page(&stage, &bytes, "*/*").await.0, 410);
            // The publisher lists it still, and something else is new.
            let days = if restart { 7..=12 } else { 7..=11 };
            let step = stage.posts(&[posts(days), all.clone()].concat()).await;
            assert!(step.events.starts_with("created"), "{step:?}");
            assert!(!step.events.contains("undeleted"), "{step:?}");
            assert!(!everything(&stage, first, &ids).await.contains(SECRET));
        }
        assert_ne!(etag(&stage, format!("?{}", as_of(first))).await, old_past);
        let kept = stage.status().await["kept"].clone();
        assert!(kept["versions"].as_u64().unwrap() > 6, "{kept}");
        assert!(kept["version_bytes"].as_u64().unwrap() > 0, "{kept}");
        assert_eq!(kept["back_to"], first.to_string());
        stage.end().await;
    }
}

/// Where it is found.
fn excerpt(text: &str) -> String {
    let at = text.find(SECRET).unwrap_or(0);
    let start = text[..at].rfind("\n== ").unwrap_or(0);
    text[start..].chars().take(3000).collect()
}
