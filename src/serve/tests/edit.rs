//! Items that are made here, and conflicts that are resolved: what is understood and answered.

use super::*;
use crate::edit::ENTRY_LIMIT;

const ATOM: &str = "application/atom+xml;type=entry";

async fn send(
    site: &Site,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    body: &str,
) -> Response<Body> {
    let bearer = format!("Bearer {TOKEN}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend_from_slice(more);
    site.ask(request(method, &format!("/api/v1{path}"), &headers, body)).await
}

fn asked(site: &Site) -> String {
    site.operator.asked.lock().unwrap().last().cloned().unwrap_or_default()
}

#[tokio::test]
async fn an_item_is_made_of_atom_or_of_json() {
    let site = Site::new();
    let entry = "<entry xmlns='http://www.w3.org/2005/Atom'><title>Over Atom</title></entry>";
    let json = r#"{"title":"Over JSON","content_html":"<p>x</p>","link":"https://example.org/",
                   "author":"me","published":"2026-01-02T03:04:05Z","categories":["a"],
                   "noconflicts":true}"#;
    for (kind, path, body, noconflicts) in [
        (ATOM, "/feeds/news/items", entry, "noconflicts: None"),
        (ATOM, "/feeds/news/items?noconflicts=false", entry, "noconflicts: Some(false)"),
        ("text/xml", "/feeds/news/items", entry, "noconflicts: None"),
        ("application/json; charset=utf-8", "/feeds/news/items", json, "noconflicts: Some(true)"),
    ] {
        let answer = send(&site, "POST", path, &[("content-type", kind)], body).await;
        assert_eq!(answer.status(), StatusCode::CREATED, "{kind}");
        let at = "https://feeds.example.org/api/v1/feeds/news/items/made";
        assert_eq!(header(&answer, "location"), at);
        assert_eq!(header(&answer, "etag"), "\"3\"");
        assert_eq!(header(&answer, "cache-control"), "no-store");
        let said = super::json(answer).await;
        assert_eq!((&said["sync_id"], &said["updates"]), (&"made".into(), &3.into()));
        assert_eq!(said["tick"], at_tick());
        let asked = asked(&site);
        assert!(asked.contains("Create") && asked.contains("Over "), "{asked}");
        assert!(asked.contains(noconflicts), "{asked}");
    }
}

fn at_tick() -> String {
    at(0).to_string()
}

#[tokio::test]
async fn an_item_is_changed_deleted_and_restored() {
    let site = Site::new();
    let body = r#"{"title":"Anew"}"#;
    let kind = ("content-type", "application/json");
    let of = "/feeds/news/items/a";
    let restore = "/feeds/news/items/a/restore";
    for (method, path, headers, body, wanted) in [
        ("PUT", of, vec![kind], body, "expected: None"),
        ("PUT", of, vec![kind, ("if-match", "\"3\"")], body, "expected: Some(Count(3))"),
        ("PUT", of, vec![kind, ("if-match", "*")], body, "expected: None"),
        (
            "DELETE",
            of,
            vec![("if-match", "\"7\"")],
            "",
            "Delete { id: SyncId(a), expected: Some(Count(7)) }",
        ),
        ("POST", restore, vec![], "", "entry: None"),
        ("POST", restore, vec![kind], body, "entry: Some("),
    ] {
        let answer = send(&site, method, path, &headers, body).await;
        assert_eq!(answer.status(), StatusCode::OK, "{method} {path}");
        let asked = asked(&site);
        assert!(asked.contains(wanted), "{wanted}: {asked}");
    }
    // What `If-Match` is to say can be had.
    let item = site.call("GET", of, "").await;
    assert_eq!(header(&item, "etag"), "\"1\"");
}

#[tokio::test]
async fn bodies_that_cannot_be_taken_are_told_apart() {
    let site = Site::new();
    let before = site.operator.asked.lock().unwrap().len();
    let items = "/feeds/news/items";
    for (kind, path, body, status, parameter) in [
        ("", items, "{}", 415, ""),
        ("text/html", items, "<p>", 415, ""),
        (ATOM, items, "<entry>\n<title>A</b></entry>", 422, ""),
        (ATOM, items, "<feed/>", 422, ""),
        (ATOM, "/feeds/news/items?noconflicts=maybe", "<entry/>", 400, "noconflicts"),
        (ATOM, "/feeds/news/items?noconflict=true", "<entry/>", 400, "noconflict"),
        ("application/json", items, "{", 400, ""),
        ("application/json", items, "[]", 400, ""),
        ("application/json", items, "{}", 400, "title"),
        ("application/json", items, r#"{"title":7}"#, 400, "title"),
        ("application/json", items, r#"{"title":" "}"#, 422, ""),
        ("application/json", items, r#"{"title":"A","titel":"B"}"#, 400, "titel"),
        ("application/json", items, r#"{"title":"A","published":"today"}"#, 400, "published"),
        ("application/json", items, r#"{"title":"A","noconflicts":"yes"}"#, 400, "noconflicts"),
        ("application/json", items, r#"{"title":"A","categories":"b"}"#, 400, "categories"),
        ("application/json", items, r#"{"title":"A","link":"javascript:x"}"#, 422, ""),
        ("application/json", items, r#"{"title":"A","content":"b","content_html":"c"}"#, 422, ""),
    ] {
        let answer = send(&site, "POST", path, &[("content-type", kind)], body).await;
        let problem = problem(answer, status).await;
        if !parameter.is_empty() {
            assert_eq!(problem["parameter"], parameter, "{body}");
        }
    }
    let broken = "<entry>\n<title>A</b></entry>";
    let broken = send(&site, "POST", items, &[("content-type", ATOM)], broken).await;
    assert_eq!(problem(broken, 422).await["line"], 2);
    let kind = ("content-type", "application/json");
    let said = r#"{"title":"A","noconflicts":true}"#;
    let again = send(&site, "PUT", "/feeds/news/items/a", &[kind], said).await;
    assert_eq!(problem(again, 400).await["parameter"], "noconflicts");
    for tag in ["3", "W/\"3\"", "\"3\", \"4\""] {
        let headers = [kind, ("if-match", tag)];
        let answer = send(&site, "PUT", "/feeds/news/items/a", &headers, r#"{"title":"A"}"#).await;
        assert_eq!(problem(answer, 400).await["parameter"], "If-Match", "{tag}");
    }
    let headers = [kind, ("if-match", "\"x\"")];
    let answer = send(&site, "PUT", "/feeds/news/items/a", &headers, r#"{"title":"A"}"#).await;
    problem(answer, 412).await;
    let long = format!("{{\"title\":\"{}\"}}", "x".repeat(ENTRY_LIMIT));
    problem(send(&site, "POST", items, &[kind], &long).await, 413).await;
    // An entry may be longer than other bodies are.
    let fits = format!("{{\"title\":\"A\",\"content\":\"{}\"}}", "x".repeat(ENTRY_LIMIT / 2));
    assert_eq!(site.operator.asked.lock().unwrap().len(), before, "nothing was done so far");
    assert_eq!(send(&site, "POST", items, &[kind], &fits).await.status(), StatusCode::CREATED);
    let put = send(&site, "PUT", "/feeds/news", &[], &fits).await;
    problem(put, 413).await;
}

#[tokio::test]
async fn conflicts_are_resolved_as_the_body_says() {
    let site = Site::new();
    let of = "/feeds/news/items/a/resolve";
    for (body, wanted) in [
        (r#"{"keep":"winner"}"#, "keep: Winner, conflicts: None, expected: None"),
        (r#"{"keep":2}"#, "keep: Conflict(2)"),
        (r#"{"keep":"winner","conflicts":[1,0]}"#, "conflicts: Some([1, 0])"),
        (r#"{"keep":0,"etag":"seen"}"#, "expected: Some(\"seen\")"),
        (r#"{"item":"<entry><title>A</title></entry>"}"#, "keep: New("),
        (r#"{"item":{"title":"A","content":"b"}}"#, "keep: New("),
    ] {
        let said = json(site.call("POST", of, body).await).await;
        assert_eq!((&said["conflicts"], &said["deleted"]), (&1.into(), &false.into()));
        let asked = asked(&site);
        assert!(asked.contains("Resolve") && asked.contains(wanted), "{body}: {asked}");
    }
    let done = send(&site, "POST", of, &[("if-match", "\"tag\"")], r#"{"keep":"winner"}"#).await;
    assert_eq!(done.status(), StatusCode::OK);
    assert!(asked(&site).contains("expected: Some(\"tag\")"));
    for (body, parameter) in [
        ("{}", "keep"),
        (r#"{"keep":"loser"}"#, "keep"),
        (r#"{"keep":-1}"#, "keep"),
        (r#"{"keep":null}"#, "keep"),
        (r#"{"keep":"winner","item":"<entry><title>A</title></entry>"}"#, "keep"),
        (r#"{"item":7}"#, "item"),
        (r#"{"keep":"winner","conflicts":[]}"#, "conflicts"),
        (r#"{"keep":"winner","conflicts":["a"]}"#, "conflicts"),
        (r#"{"keep":"winner","etag":7}"#, "etag"),
        (r#"{"keep":"winner","conflict":[1]}"#, "conflict"),
    ] {
        let said = problem(site.call("POST", of, body).await, 400).await;
        assert_eq!(said["parameter"], parameter, "{body}");
    }
    problem(site.call("POST", of, r#"{"item":"<entry/>"}"#).await, 422).await;
    for (item, status) in
        [("news/items/nothing", 404), ("other/items/a", 404), ("file/items/a", 409)]
    {
        let path = format!("/feeds/{item}/resolve");
        problem(site.call("POST", &path, r#"{"keep":"winner"}"#).await, status).await;
    }
}

/// Fields are laid over an outline of a list, which has more to say than Atom has words for.
#[tokio::test]
async fn an_outline_that_is_changed_as_json_stays_one() {
    let site = Site::new();
    let list = "<opml version='2.0'><body><outline text='Old' type='rss' xmlUrl='http://h/feed' \
                category='/a'/></body></opml>";
    let atom = tidegate_format::parse::opml::transcoded(list).unwrap().unwrap();
    let document =
        tidegate_format::parse::document(&atom, None, &tidegate_format::parse::Limits::default())
            .unwrap();
    let data = tidegate_format::parse::own(&document, &document.entries[0]);
    site.store.edit("news", |feed| {
        let known = feed.items.iter_mut().find(|item| item.shared.winner.id.as_str() == "a");
        known.unwrap().shared.winner.data = data.clone();
    });
    let kind = [("content-type", "application/json")];
    let path = "/feeds/news/items/a";
    let body = r#"{"title":"New","link":"http://h/"}"#;
    assert_eq!(send(&site, "PUT", path, &kind, body).await.status(), StatusCode::OK);
    let asked = asked(&site);
    asked.assert_shows(&["Amended", "format: Opml", "xmlUrl", "title: Some(\"New\")"]);
    let body = r#"{"title":"New","content":"x"}"#;
    let refused = send(&site, "PUT", path, &kind, body).await;
    assert!(text(refused).await.contains("is an outline of a list"));
}
