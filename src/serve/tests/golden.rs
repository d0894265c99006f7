//! What administration and pages answer, word for word: the JSON of each answer as it goes out.

use super::*;
use crate::REQUEST_BODY_LIMIT;
use std::collections::HashSet;
use tidegate_judge::record::LeftOut;

/// A site whose feed has everything that can be said of one.
fn full() -> Site {
    let site = Site::new();
    site.store.edit_record("news", |record| {
        record.options.min_interval = Some(Duration::from_secs(300));
        record.options.sharing.sources = vec![name("other"), name("new")];
    });
    let why = "it is <q>too</q> long".to_owned();
    let left_out = LeftOut { source: name("other"), id: id("a"), why };
    let gathered = &site.app.operator.gathered;
    gathered.took(&name("news"), &HashSet::new(), vec![left_out]);
    gathered.failed(&name("news"), "the store is <i>full</i>".to_owned());
    site.store.edit("news", |feed| {
        feed.state.hold = Some(doubles::hold("the document is <u>empty</u>"));
    });
    site
}

/// How markup begins that only others wrote, and what no page has.
const NEVER: &str = "<script <u> <s> <i> <b> <q> <tt> <em> <kbd> <samp> <dfn> <code>no <cite> ?<b> \
                     secret style= =\"javascript: <time>";

#[tokio::test]
async fn the_pages_and_the_answers_of_administration() {
    let site = full();
    for (name, path) in [
        ("dashboard", "/"),
        ("about", "/feeds/news/about"),
        ("item_page", "/feeds/news/items/a"),
        ("tombstone_page", "/feeds/news/items/gone"),
        ("conflicts_page", "/feeds/news/conflicts"),
        ("recent", "/recent"),
        ("reading", "/feeds/news?as=html"),
        ("items_page", "/feeds/news/items"),
        ("changes_page", "/feeds/news/changes?as=html"),
        ("changes_feed", "/feeds/news/changes"),
        ("subscriptions", "/subscriptions.opml"),
    ] {
        let page = text(site.get(path).await).await;
        page.assert_lacks(&NEVER.split(' ').collect::<Vec<_>>());
        insta::assert_snapshot!(name, page);
    }
    let public = site.get_with("/feeds/news/items/gone", &[("accept", "application/json")]).await;
    insta::assert_snapshot!("tombstone_for_everybody", text(public).await);
    insta::assert_snapshot!("changes_json", site.text("/feeds/news/changes?as=jsonfeed").await);
    // The values of a label stand in no order.
    let metrics = text(site.get("/metrics").await).await;
    // Nor is the process the same each time; and what pages weigh is no matter of this.
    let varies = ["process_", "tidegate_cache_bytes", "tidegate_http_sent_bytes_total"];
    let without_value = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        varies.iter().find(|varies| name.starts_with(**varies))?;
        assert!(value.parse::<f64>().is_ok_and(|value| value >= 0.0), "{line}");
        Some(format!("{name} …"))
    };
    let lines = metrics.lines().map(|line| without_value(line).unwrap_or_else(|| line.to_owned()));
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    insta::assert_snapshot!("metrics", lines.join("\n"));
    for (name, method, path, body) in [
        ("feeds", "GET", "/feeds", ""),
        ("feed", "GET", "/feeds/news", ""),
        ("item", "GET", "/feeds/news/items/a", ""),
        ("tombstone", "GET", "/feeds/news/items/gone", ""),
        ("conflicts", "GET", "/feeds/news/conflicts", ""),
        ("poll", "POST", "/feeds/radio/poll", ""),
        ("redacted", "POST", "/feeds/news/items/a/redact", ""),
        ("deleted", "DELETE", "/feeds/news/items/b", ""),
    ] {
        // From here on they act.
        if name == "poll" {
            site.store.edit_record("news", |record| record.options.sharing.local = true);
            site.polling.start().await;
        }
        let answer = site.call(method, path, body).await;
        insta::assert_snapshot!(name, text(answer).await);
    }
}

fn requests(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// What an answer is: its status, its headers and, of a feed, what its document shows.
async fn described(answer: Response<Body>) -> String {
    let mut said = format!("    {}\n", answer.status().as_u16());
    let mut headers: Vec<(&str, &str)> = answer
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    headers.sort_unstable();
    for (name, value) in headers.into_iter().filter(|(name, _)| *name != "content-length") {
        let tag = if value.starts_with("W/") { "W/\"…\"" } else { "\"…\"" };
        let value = if name == "etag" { tag } else { value };
        said.push_str(&format!("    {name}: {value}\n"));
    }
    if header(&answer, "content-type") != "text/event-stream" {
        let length = header(&answer, "content-length").to_owned();
        let body = text(answer).await;
        assert!(length.is_empty() || length == body.len().to_string(), "{length}: {body}");
        let shown = body.split_once("filling ").map_or("", |(shown, _)| shown);
        shown.lines().for_each(|line| said.push_str(&format!("        {line}\n")));
    }
    said
}

#[tokio::test]
async fn the_answers_to_readers() {
    let (site, mut told) = (Site::announcing(), String::new());
    for line in requests(include_str!("answers.txt")) {
        let mut parts = line.split(" | ");
        let (method, path) = parts.next().unwrap().split_once(' ').unwrap();
        let headers: Vec<_> = parts.map(|part| part.split_once(": ").unwrap()).collect();
        let answer = site.ask(request(method, path, &headers, "")).await;
        told.push_str(&format!("{line}\n{}", described(answer).await));
    }
    insta::assert_snapshot!("answers", told);
    let none = problem(site.call("GET", "/subscriptions", "").await, 404).await;
    assert_eq!(none["detail"], "there is no hub here");
    // Mistakes are named, and reach nobody.
    let site = Site::announcing().with_hub().await;
    let source = FeedSource::File;
    site.store.set_record(&FeedRecord { source, ..record("file", FeedStanding::Active) });
    site.store.edit_record("radio", |record| record.options.sharing.local = true);
    site.store.edit("radio", |feed| {
        feed.items.retain(|item| item.shared.winner.id != id("a"));
        feed.items.push(conflicts::contested("a"));
    });
    let (before, mut told) = (site.writes(), String::new());
    for line in requests(include_str!("requests.txt")) {
        let mut parts = line.splitn(3, ' ');
        let [method, path, rest] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let typed = rest.strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let (kind, body) = typed.unwrap_or(("", rest));
        let mut headers = Vec::from([BEARER, ("content-type", kind)]);
        headers.retain(|(name, _)| match *name {
            "authorization" => path.starts_with("/api/"),
            _ => !kind.is_empty(),
        });
        let body = body.replace("\\n", "\n");
        let answer = site.ask(request(method, path, &headers, &body)).await;
        let status = answer.status().as_u16();
        let mut problem = problem(answer, status).await;
        let members = problem.as_object_mut().unwrap();
        members.retain(|name, _| !["type", "title", "status"].contains(&name.as_str()));
        told.push_str(&format!("{line}\n    {status} {problem}\n"));
    }
    let long = "x".repeat(REQUEST_BODY_LIMIT + 1);
    problem(site.ask(request("POST", "/websub", &[FORM], &long)).await, 413).await;
    assert_eq!(site.writes(), before);
    let subscriptions = site.told("/subscriptions").await;
    assert_eq!((&subscriptions["active"], &subscriptions["pending"]), (&0.into(), &0.into()));
    insta::assert_snapshot!("refusals", told);
}
