//! The past of a feed: versions with their bytes and differences, what a view said at some time, and
//! text that is taken out of all of it.

use super::site::{READER, Site};
use super::*;
use crate::support::prelude::*;

const SECRET: &str = "unspeakable";

async fn site() -> Site {
    let mut gate = Gate::new().await;
    gate.archives = Policy { entries: 2, ..Policy::default() };
    gate.options.deletions = Deletions::Eager;
    Site::new(gate).await
}

async fn page(site: &Site, path: &str, accept: &str) -> (u16, String) {
    let (status, _, text) = site.ask_with(&format!("{READER}{path}"), &[("accept", accept)]).await;
    (status, text)
}

async fn json_of(site: &Site, path: &str) -> Value {
    let (status, text) = page(site, path, "application/json").await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn check_statuses(site: &Site, path: &str, wanted: &[(&str, u16)]) {
    for (query, status) in wanted {
        let (found, said) = page(site, &format!("{path}?{query}"), "*/*").await;
        assert_eq!(found, *status, "{path}?{query}: {said}");
    }
}

#[tokio::test]
async fn versions_can_be_read_and_compared() {
    let mut site = site().await;
    let mut all = days(1..=3);
    all[1].title = "<script>alert('title')</script>".to_owned();
    site.gate.posts(&all).await;
    all[1].text = all[1].text.replace("such", "<b>hardly any</b>");
    site.gate.later(1).posts(&all).await;
    let path = format!("/items/{}", site.gate.known(&all[1].id).await.id);
    let bytes = json_of(&site, &path).await["versions"][0]["bytes"].as_str().unwrap().to_owned();
    assert_eq!(bytes, format!("{READER}{path}?version=2"));
    assert!(site.text(&bytes).await.contains("hardly any"));

    let (_, difference) = page(&site, &format!("{path}?diff=1..2"), "text/html").await;
    assert!(difference.contains("<del>such</del>") && difference.contains("<ins>hardly any</ins>"));
    let (_, whole) = page(&site, &path, "text/html").await;
    for page in [&difference, &whole] {
        // Tags are taken out of a title that does not say that it has none.
        assert!(page.contains("alert('title')"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<b>hardly"), "{page}");
    }
    let wanted = [("version=9", 404), ("diff=1..9", 404), ("diff=1..newest", 200)];
    check_statuses(&site, &path, &wanted).await;
}

/// That it is the right one is shown of many by `check_past`.
#[tokio::test]
async fn a_view_of_the_past_says_what_it_is() {
    let mut site = site().await;
    site.gate.posts(&days(1..=6)).await;
    let first = site.gate.now;
    let mut later = days(2..=8);
    later.remove(3);
    site.gate.later(1).posts(&later).await;
    site.gate.later(2);
    let own = format!("{READER}?as-of={first}");
    let (_, headers, then) = site.ask(&own).await;
    assert!(then.contains("day 1<") && !then.contains("day 7<"), "{then}");
    // It is an archive, and leads to the feed as it is.
    assert!(then.contains(":archive/>") && then.contains("rel=\"current\""), "{then}");
    let link = format!("rel=\"self\" type=\"application/atom+xml\" href=\"{own}\"");
    assert!(then.contains(&link), "{then}");
    assert!(!then.contains("rel=\"hub\"") && !then.contains("until="), "{then}");
    assert_eq!(headers["cache-control"], "public, max-age=86400");
    assert_eq!(headers["memento-datetime"], first.rfc822());
    assert_eq!(headers["content-location"], own);
    // All times at which it was in force have the same document.
    let within = format!("{READER}?as-of={}", Time::from_unix(first.unix() + 1800));
    let tag = headers["etag"].to_str().unwrap();
    assert_eq!(site.ask_with(&within, &[("if-none-match", tag)]).await.0, 304);
    // The complete view lists what was deleted as what it was then, and what was retired.
    for (at, deleted) in [(first, 0), (Time::from_unix(site.gate.now.unix() - 600), 1)] {
        let (_, all) = page(&site, &format!("/complete?as-of={at}"), "*/*").await;
        assert_eq!(all.matches("deleted=\"true\"").count(), deleted, "{all}");
        assert!(all.contains("day 1<"), "{all}");
    }
    let at = |seconds: i64| format!("as-of={}", Time::from_unix(first.unix() + seconds));
    let [early, now, future] = [-86_400, 0, 864_000].map(at);
    for view in ["", "/sync", "/complete"] {
        check_statuses(&site, view, &[(&early, 404), (&future, 400)]).await;
    }
    let (_, said) = page(&site, &format!("?{early}"), "*/*").await;
    assert!(said.contains(&format!("it can be read back to {first}")), "{said}");
    let note = site.gate.store.archives(&site.gate.feed, 1).await.unwrap().remove(0);
    let (status, said) = page(&site, &format!("/archive/{}?{now}", note.id), "*/*").await;
    assert!(status == 400 && said.contains("a fixed document"), "{said}");
}

async fn everything(site: &Site, first: Time, ids: &[String]) -> String {
    let mut paths: Vec<String> = ["", "/sync", "/complete", "/about"].map(str::to_owned).into();
    for view in ["", "/sync", "/complete"] {
        let hours = (0..8).map(|hours| first.plus(Duration::from_secs(hours * 3600)));
        let times = hours.filter(|at| *at <= site.gate.now);
        paths.extend(times.map(|at| format!("{view}?as-of={at}")));
    }
    for id in ids {
        let queries = ["", "?version=1", "?version=2", "?version=newest", "?diff=1..2"];
        paths.extend(queries.map(|query| format!("/items/{id}{query}")));
    }
    for note in site.gate.store.archives(&site.gate.feed, 100).await.unwrap() {
        paths.push(format!("/archive/{}", note.id));
    }
    let mut all = String::new();
    for path in paths {
        for accept in ["text/html", "application/json"] {
            let (_, text) = page(site, &path, accept).await;
            all.push_str(&format!("\n== {path}\n{text}"));
        }
    }
    all
}

#[tokio::test]
async fn redacted_text_is_nowhere_and_stays_out() {
    for is_rss in [true, false] {
        let document = |posts: &[Post]| {
            if is_rss { rss(posts) } else { support::atom(support::SITE, posts) }
        };
        let mut site = site().await;
        let mut all = days(1..=6);
        all[2].title = format!("An {SECRET} title");
        site.gate.take(&document(&all)).await;
        let first = site.gate.now;
        all[2].text = format!("{} and {SECRET}", all[2].text);
        site.gate.later(1).take(&document(&all)).await;
        site.gate.later(1).take(&document(&[days(7..=9), all.clone()].concat())).await;
        let id = site.gate.known(&all[2].id).await.id;
        let ids = [id.to_string(), site.gate.known(&all[3].id).await.id.to_string()];
        let before = everything(&site, first, &ids).await;
        assert!(before.matches(SECRET).count() > 20, "{before}");
        let then = format!("{READER}?as-of={first}");
        let old_tag = site.ask(&then).await.1["etag"].clone();

        site.gate.later(1).redact_item(&id).await;
        let item = format!("/items/{id}");
        // The publisher lists it still, and something else is new.
        for newest in [9, 10] {
            let listed = [days(7..=newest), all.clone()].concat();
            let verdict = site.gate.later(1).take(&document(&listed)).await;
            assert!(!support::kinds(&verdict).contains(&EventKind::Undeleted));
            let after = everything(&site, first, &ids).await;
            let at = after.find(SECRET).map(|at| after[..at].rfind("\n== "));
            assert_eq!(at, None, "{after}");
            let described = json_of(&site, &item).await;
            // What could lead to the text elsewhere is not shown.
            for (key, value) in [
                ("redacted", json!(true)),
                ("kept_out", json!(true)),
                ("link", Value::Null),
                ("native_id", Value::Null),
                ("aliases", json!([])),
            ] {
                assert_eq!(described[key], value, "{key}: {described}");
            }
            assert_eq!(described["versions"][0]["reason"], "by court order");
            assert_eq!(described["versions"][1]["bytes"], Value::Null);
            check_statuses(&site, &item, &[("version=1", 410)]).await;
        }
        let (_, html) = page(&site, &item, "text/html").await;
        assert!(html.contains("Published as") && !html.contains("Publisher's id"), "{html}");
        assert_ne!(site.ask(&then).await.1["etag"], old_tag);
    }
}
