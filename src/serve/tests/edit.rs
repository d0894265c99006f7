use super::conflicts::stored;
use super::*;
use crate::edit::ENTRY_LIMIT;
use tidegate_judge::record::local;

const ATOM: &str = "application/atom+xml;type=entry";

/// A site whose feed `news` is made here; its item `a` is in conflict with two versions.
fn site() -> Site {
    let site = conflicts::site(&["a"]);
    site.store.edit_record("news", |record| record.options.sharing.local = true);
    site
}

#[tokio::test]
async fn items_are_made_changed_deleted_and_restored() {
    let site = site();
    let entry = "<entry xmlns='http://www.w3.org/2005/Atom'><title>Over Atom</title></entry>";
    let json = r#"{"title":"Over JSON","content_html":"<p>x</p>","link":"https://example.org/",
                   "author":"me","published":"2026-01-02T03:04:05Z","categories":["a"],
                   "noconflicts":true}"#;
    for (kind, path, body, noconflicts) in [
        (ATOM, "/feeds/news/items", entry, None),
        (ATOM, "/feeds/news/items?noconflicts=false", entry, Some(false)),
        ("text/xml", "/feeds/news/items", entry, None),
        ("application/json; charset=utf-8", "/feeds/news/items", json, Some(true)),
    ] {
        let answer = site.call_with("POST", path, &[("content-type", kind)], body).await;
        assert_eq!(answer.status(), StatusCode::CREATED, "{kind}");
        let at = header(&answer, "location").to_owned();
        assert_eq!(header(&answer, "etag"), "\"1\"");
        assert_eq!(header(&answer, "cache-control"), "no-store");
        let said = super::json(answer).await;
        let made = said["sync_id"].as_str().unwrap();
        assert_eq!(at, format!("https://feeds.example.org/api/v1/feeds/news/items/{made}"));
        assert_eq!((&said["updates"], &said["conflicts"]), (&1.into(), &0.into()));
        let version = stored(&site, made).await.winner;
        assert!(version.data.card.title.starts_with("Over "), "{version:?}");
        assert_eq!(version.noconflicts, noconflicts, "{path}");
    }
    // And is changed, deleted and restored.
    let kind = ("content-type", "application/json");
    let of = "/feeds/news/items/b";
    let restore = "/feeds/news/items/b/restore";
    // What `If-Match` is to say can be had.
    assert_eq!(header(&site.call("GET", of, "").await, "etag"), "\"1\"");
    for (method, path, headers, body, status, title) in [
        ("PUT", of, vec![kind], r#"{"title":"Anew"}"#, 200, "Anew"),
        ("PUT", of, vec![kind, ("if-match", "\"1\"")], r#"{"title":"Late"}"#, 412, "Anew"),
        ("PUT", of, vec![kind, ("if-match", "\"2\"")], r#"{"title":"Again"}"#, 200, "Again"),
        ("PUT", of, vec![kind, ("if-match", "*")], r#"{"title":"Any"}"#, 200, "Any"),
        ("PUT", of, vec![kind, ("if-none-match", "*")], r#"{"title":"New"}"#, 412, "Any"),
        ("DELETE", of, vec![("if-match", "\"7\"")], "", 412, "Any"),
        ("DELETE", of, vec![("if-match", "\"4\"")], "", 200, "Any"),
        ("POST", restore, vec![], "", 200, "Any"),
        ("DELETE", of, vec![], "", 200, "Any"),
        ("POST", restore, vec![kind], r#"{"title":"Back"}"#, 200, "Back"),
    ] {
        let answer = site.call_with(method, path, &headers, body).await;
        assert_eq!(answer.status(), status, "{method} {path} {body}");
        let version = stored(&site, "b").await.winner;
        if !version.deleted {
            assert_eq!(version.data.card.title, title, "{method} {path}");
        }
        assert_eq!(version.deleted, method == "DELETE" && status == 200, "{method} {path}");
    }
    // What is too long or written over is refused.
    let (before, items) = (site.writes(), "/feeds/news/items");
    let kind = ("content-type", "application/json");
    for (tag, status) in [("3", 400), ("W/\"3\"", 400), ("\"3\", \"4\"", 400), ("\"x\"", 412)] {
        let headers = [kind, ("if-match", tag)];
        let answer =
            site.call_with("PUT", "/feeds/news/items/a", &headers, r#"{"title":"A"}"#).await;
        assert_eq!(problem(answer, status).await["parameter"], "If-Match", "{tag}");
    }
    let long = format!("{{\"title\":\"{}\"}}", "x".repeat(ENTRY_LIMIT));
    problem(site.call_with("POST", items, &[kind], &long).await, 413).await;
    assert_eq!(site.writes(), before, "nothing was done so far");
    // An entry may be longer than other bodies are.
    let fits = format!("{{\"title\":\"A\",\"content\":\"{}\"}}", "x".repeat(ENTRY_LIMIT / 2));
    assert_eq!(site.call_with("POST", items, &[kind], &fits).await.status(), StatusCode::CREATED);
    problem(site.call_with("PUT", "/feeds/news", &[], &fits).await, 413).await;
}

#[tokio::test]
async fn conflicts_are_resolved_as_the_body_says() {
    let site = site();
    let of = "/feeds/news/items/a/resolve";
    let tag = local::tag(&stored(&site, "a").await);
    let winner = "The harbour opens";
    let of_atom =
        r#"{"item":"<entry xmlns='http://www.w3.org/2005/Atom'><title>A</title></entry>"}"#;
    for (body, tags, status, title, left) in [
        (r#"{"keep":"winner"}"#, "", 200, winner, 0),
        (r#"{"keep":"winner","etag":"seen"}"#, "", 412, winner, 2),
        (r#"{"keep":"winner"}"#, "\"seen\"", 412, winner, 2),
        (r#"{"keep":"winner","etag":"TAG"}"#, "", 200, winner, 0),
        (r#"{"keep":"winner"}"#, "\"TAG\"", 200, winner, 0),
        (r#"{"keep":"winner","conflicts":[1]}"#, "", 200, winner, 1),
        (r#"{"keep":0}"#, "", 200, "The harbour <b>closes</b>", 0),
        (of_atom, "", 200, "A", 0),
        (r#"{"item":{"title":"B","content":"b"}}"#, "", 200, "B", 0),
    ] {
        site.store.restore("news");
        let (body, tags) = (body.replace("TAG", &tag), tags.replace("TAG", &tag));
        let headers = [("if-match", tags.as_str())];
        let headers = if tags.is_empty() { &[] } else { &headers[..] };
        let answer = site.call_with("POST", of, headers, &body).await;
        assert_eq!(answer.status(), status, "{body} {tags}");
        let shared = stored(&site, "a").await;
        let kept = (&*shared.winner.data.card.title, shared.conflicts.len());
        assert_eq!(kept, (title, left), "{body}");
        if status == 200 {
            let said = json(answer).await;
            assert_eq!((&said["conflicts"], &said["deleted"]), (&left.into(), &false.into()));
        }
    }
    // Fields are laid over an outline of a list, which has more to say than Atom has words for.
    let site = self::site();
    let old = "text='Old' type='rss' xmlUrl='http://h/feed' category='/a'";
    conflicts::edit_last(&site, |item| {
        (item.shared.winner.data, item.shared.conflicts) = (conflicts::outline(old), Vec::new());
    });
    let kind = [("content-type", "application/json")];
    let path = "/feeds/news/items/a";
    let body = r#"{"title":"New","link":"http://h/"}"#;
    assert_eq!(site.call_with("PUT", path, &kind, body).await.status(), StatusCode::OK);
    let version = stored(&site, "a").await.winner;
    assert_eq!((version.data.format, &*version.data.card.title), (Format::Opml, "New"));
    assert!(version.data.xml.contains("xmlUrl"), "{version:?}");
    let body = r#"{"title":"New","content":"x"}"#;
    let refused = site.call_with("PUT", path, &kind, body).await;
    text(refused).await.assert_shows(&["is an outline of a list"]);
}
