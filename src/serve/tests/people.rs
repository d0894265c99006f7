//! What people do on pages: sign in, act on a feed, look at lists, and meet errors.

use super::*;
use crate::routes::{Access, ROUTES};

const BROWSER: (&str, &str) =
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

async fn send(site: &Site, path: &str, cookie: &str, body: &str) -> Response<Body> {
    site.ask(request("POST", path, &[FORM, OURS, BROWSER, ("cookie", cookie)], body)).await
}

/// Keeps the cookie that an answer sets, as a browser does.
fn keep_cookie(cookie: &mut String, answer: &Response<Body>) {
    if let Some(set) = header(answer, "set-cookie").split(';').next().filter(|set| !set.is_empty())
    {
        set.clone_into(cookie);
    }
}

/// Looks at a page with forms, as who is signed in.
async fn look(site: &Site, path: &str, cookie: &mut String) -> String {
    let answer = site.get_with(path, &[BROWSER, ("cookie", cookie)]).await;
    assert!(header(&answer, "content-security-policy").contains("form-action 'self'"));
    assert_eq!(header(&answer, "cache-control"), "no-store");
    keep_cookie(cookie, &answer);
    text(answer).await
}

async fn sign_in(site: &Site) -> String {
    let answer = send(site, "/session", "", &format!("token={TOKEN}&to=/feeds/news/about")).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/feeds/news/about"));
    header(&answer, "set-cookie").split(';').next().unwrap().to_owned()
}
#[tokio::test]
async fn who_signs_in_has_buttons_and_is_told_once_what_came_of_them() {
    let site = Site::new();
    for path in ["feeds/news/about", "feeds/news/items/a", "feeds/news/edit", "add", "add/list"] {
        let page = site.text(&format!("/{path}")).await;
        let to = path.replace('/', "%2F");
        page.assert_shows(&[&format!("href=\"/session?to=%2F{to}\"")]);
        page.assert_lacks(&["<form", "href=\"/session\""]);
    }
    let mut cookie = sign_in(&site).await;
    let about = "/feeds/news/about";
    for path in ["/", "/recent", "/add", "/feeds/news/items", "/feeds/nobody"] {
        let page = text(site.get_with(path, &[BROWSER, ("cookie", &cookie)]).await).await;
        page.assert_shows(&["<a href=\"/session\">Signed in: sign out</a>"]);
    }
    insta::assert_snapshot!("about_for_operator", look(&site, about, &mut cookie).await);
    site.polling.start().await;
    let standing = || site.store.record(&name("news")).unwrap().standing;
    for (action, is_paused, said) in [
        ("poll", false, "Polled, and it failed: "),
        ("pause", true, "served as it is"),
        ("resume", false, "polled again"),
        ("backfill", false, "older documents"),
    ] {
        let answer = send(&site, about, &cookie, &format!("do={action}")).await;
        keep_cookie(&mut cookie, &answer);
        assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, about));
        assert_eq!(standing() == FeedStanding::Paused, is_paused, "{action}");
        let note = "<p class=\"note done\" role=\"status\">";
        look(&site, about, &mut cookie).await.assert_shows(&[note, said]);
        assert!(!look(&site, about, &mut cookie).await.contains(note), "{action}: said once");
    }
    // A feed goes only when its name was typed.
    let answer = send(&site, about, &cookie, "do=remove&name=new").await;
    assert_eq!((answer.status().as_u16(), standing()), (400, FeedStanding::Active));
    let answer = send(&site, about, &cookie, "do=remove&name=news").await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/"));
    assert_eq!(standing(), FeedStanding::Gone);
    // Nobody is signed in after that.
    site.store.edit_record("news", |record| record.standing = FeedStanding::Active);
    let answer = send(&site, "/session/end", &cookie, "").await;
    assert!(header(&answer, "set-cookie").contains("Max-Age=0;"), "{answer:?}");
    assert_eq!(answer.status(), 303);
    keep_cookie(&mut cookie, &answer);
    let page = text(site.get_with(about, &[("cookie", &cookie)]).await).await;
    page.assert_lacks(&["Poll now"]);
    assert_eq!(send(&site, about, &cookie, "do=poll").await.status(), 403);
}

#[tokio::test]
async fn who_signs_in_decides_about_an_item_on_its_page() {
    let site = Site::new();
    let (item, gone) = ("/feeds/news/items/a", "/feeds/news/items/gone");
    let missing = ["class=\"badge missing\"", "It is deleted if it is so at <time"];
    site.text(item).await.assert_shows(&missing);
    let mut cookie = sign_in(&site).await;
    let page = look(&site, item, &mut cookie).await;
    page.assert_lacks(&["<b>a</b>", "<script>"]);
    insta::assert_snapshot!("item_for_operator", page);
    // What its publisher deleted comes back with its publisher; what was made here is restored here.
    let page = look(&site, gone, &mut cookie).await;
    insta::assert_snapshot!("tombstone_for_operator", page);
    site.store.edit_record("news", |record| record.options.sharing.local = true);
    look(&site, gone, &mut cookie).await.assert_shows(&["value=\"restore\">Restore"]);
    let (a, b) = (item, "/feeds/news/items/b");
    let kept = async |item: &str| {
        let known = site.store.known(&name("news"), &SyncId::new(item).unwrap()).await.unwrap();
        known.unwrap().standing
    };
    for (path, body, said, is_so) in [
        (b, "do=delete", "Deleted: subscribers get its tombstone.", "deleted"),
        (b, "do=restore", "Restored: it is in the feed again.", "current"),
        (b, "do=redact&id=+b&reason=+a+name", "Redacted: what", "redacted"),
        // What was not made here is its publisher's again from here on.
        (a, "do=delete", "Deleted: subscribers get its tombstone.", "deleted"),
        (gone, "do=delete", "It was deleted before.", "deleted"),
    ] {
        site.store.edit_record("news", |record| record.options.sharing.local = path == b);
        let answer = send(&site, path, &cookie, body).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, path), "{body}");
        let (_, id) = path.rsplit_once('/').unwrap();
        assert_eq!(crate::items::standing(&kept(id).await).0, is_so, "{body}");
        keep_cookie(&mut cookie, &answer);
        assert!(look(&site, path, &mut cookie).await.contains(said), "{body}");
        assert!(!look(&site, path, &mut cookie).await.contains(said), "{body}: said once");
    }
    let versions = site.store.versions(&name("news"), &SyncId::new("b").unwrap(), 1).await.unwrap();
    assert_eq!(versions[0].reason, "a name");
    let before = site.writes();
    for (path, body, status) in [
        (item, "do=redact&id=b", 400),
        (item, "do=redact", 400),
        (item, "do=explode", 400),
        ("/feeds/nobody/items/a", "do=delete", 404),
    ] {
        assert_eq!(send(&site, path, &cookie, body).await.status(), status, "{body}");
    }
    assert_eq!(site.writes(), before);
}

/// One place finds out whether a form is taken: of a page of ours, as the browser says, and of who is signed in or types
/// the token.
#[tokio::test(start_paused = true)]
async fn a_form_is_taken_from_pages_of_ours_and_from_who_may_alone() {
    let site = conflicts::site(&["a"]);
    let (cookie, before) = (sign_in(&site).await, site.writes());
    let signed_in = ("cookie", cookie.as_str());
    let form = |path: &str| match path {
        "/add/list" => ("content-type", "multipart/form-data; boundary=cut"),
        _ => FORM,
    };
    let (host, token) = (("host", "feeds.example.org"), format!("do=pause&token={TOKEN}"));
    let posts = ROUTES.iter().filter(|it| matches!(it.access, Access::Form | Access::Operator));
    for route in posts.filter(|route| route.path != "/metrics") {
        let path = route.path.replace("{name}", "news").replace("{id}", "a");
        let ask = async |headers: &[(&str, &str)], body: &str| {
            let answer = site.ask(request("POST", &path, headers, body)).await;
            let status = answer.status().as_u16();
            text(answer).await.assert_lacks(&[TOKEN, "evil.example"]);
            status
        };
        for (name, value) in [
            ("x", ""),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "none"),
            ("origin", "null"),
            ("origin", "https://evil.example"),
            ("origin", "http://feeds.example.org:81"),
        ] {
            let theirs = [form(&path), host, (name, value), signed_in];
            assert_eq!(ask(&theirs, &token).await, 403, "{path} {name}: {value}");
        }
        let nobodys = [form(&path), OURS];
        for body in ["do=pause", "do=pause&token=wrong&to=//evil.example"] {
            let expected = if path == "/session/end" { 303 } else { 403 };
            assert_eq!(ask(&nobodys, body).await, expected, "{path} {body}");
        }
    }
    assert_eq!(site.writes(), before);
    site.polling.start().await;
    let about = "/feeds/news/about";
    for (origin, host) in
        [("https://feeds.example.org", "inner:80"), ("http://gate.local:8080", "gate.local:8080")]
    {
        // With the token itself it is done without a session.
        let headers = [FORM, ("origin", origin), ("host", host)];
        assert_eq!(site.ask(request("POST", about, &headers, &token)).await.status(), 303);
    }
    assert_eq!(site.store.record(&name("news")).unwrap().standing, FeedStanding::Paused);
    for body in ["do=explode", ""] {
        assert_eq!(send(&site, about, &cookie, body).await.status(), 400, "{body}");
    }
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_documents_for_programs() {
    let site = Site::new();
    for (path, status, words) in [
        ("/feeds/dead", 410, "This feed was deleted"),
        ("/feeds/news/items/none", 404, "no item of that sync id"),
        ("/%3Cb%3E", 404, "%3Cb%3E"),
        ("/?show=x", 400, "show is one of"),
    ] {
        let answer = site.get_with(path, &[BROWSER]).await;
        assert_eq!(answer.status().as_u16(), status, "{path}");
        let kind = ["content-type", "cache-control"].map(|name| header(&answer, name));
        assert_eq!(kind, ["text/html; charset=utf-8", "no-store"], "{path}");
        text(answer).await.assert_shows(&[words]);
        let accept = [("accept", "application/atom+xml, text/html;q=0.5")];
        problem(site.get_with(path, &accept).await, status).await;
    }
    // Administration is for programs, whatever they say they take.
    problem(site.get_with("/api/v1/feeds", &[BROWSER]).await, 401).await;
}

#[tokio::test]
async fn the_items_of_a_feed_are_listed_as_data() {
    let site = Site::new();
    let json_of = async |query: &str| {
        let path = format!("/feeds/news/items{query}");
        let public = json(site.get_with(&path, &[("accept", "application/json")]).await).await;
        assert_eq!(public, site.told(&path).await);
        public
    };
    let number = |told: &serde_json::Value| told["matches"].as_u64().unwrap();
    let all = json_of("").await;
    assert_eq!(all["items"].as_array().unwrap().len() as u64, number(&all));
    let mut parts = 0;
    for filter in ["current", "missing", "retired", "deleted"] {
        let standing = if filter == "missing" { "current" } else { filter };
        let told = json_of(&format!("?show={filter}")).await;
        assert!(number(&told) > 0, "{filter}");
        assert!(told["items"].as_array().unwrap().iter().all(|item| item["standing"] == standing));
        parts += number(&told);
    }
    assert_eq!((parts, number(&json_of("?q=no+such+title").await)), (number(&all), 0));
    // One below the old end of the publisher's document is in it too, so that nobody else deletes it.
    let older = ItemStatus::Older { since: at(-60) };
    site.store.edit("news", |feed| feed.items[1].standing = older);
    assert_eq!(json_of("?show=current").await["items"][0]["standing"], "older");
    let page = look(&site, "/feeds/news/items/b", &mut sign_in(&site).await).await;
    page.assert_shows(&["Type b to redact it"]);
    page.assert_lacks(&["value=\"delete\""]);
}

#[tokio::test]
async fn feeds_are_looked_at_added_changed_and_uploaded_by_forms() {
    let site = Site::new();
    let (cookie, before) = (sign_in(&site).await, site.writes());
    let of_site = ["&lt;i&gt;Posts&lt;/i&gt;", "value=\"https://site.example/%3Cb%3E/feed\""];
    let of_feed = [
        "value=\"https://feed.example/x\"",
        "News",
        "12 entries without an id: known by link and title",
        "name=\"name\" value=\"feed-example-x\"",
        "and 2 more",
    ];
    for (body, status, shown) in [
        ("url=site.example&do=look", 200, &of_site[..]),
        ("url=feed.example/x&do=look", 200, &of_feed),
        ("url=upstream.example&do=look", 400, &["503"]),
        ("url=feed.example&do=add&name=No", 400, &["No"]),
        ("url=feed.example&do=add&name=news", 409, &["there is a feed news already"]),
    ] {
        let answer = send(&site, "/add", &cookie, body).await;
        assert_eq!(answer.status().as_u16(), status, "{body}");
        let page = text(answer).await;
        page.assert_shows(shown);
        page.assert_lacks(&["<script", "<u>", "<i>", "<s>", "<q>", "<b>"]);
    }
    assert_eq!(site.writes(), before, "looking adds nothing");
    site.polling.start().await;
    let answer = send(&site, "/add", &cookie, "url=feed.example/x&do=add&name=fresh").await;
    let answered = (answer.status().as_u16(), header(&answer, "location"));
    assert_eq!(answered, (303, "/feeds/fresh/about"));
    assert_eq!(site.store.record(&name("fresh")).unwrap().url, "https://feed.example/x");
    // What is said of a feed is changed.
    let body = "url=https://new.example/feed&deletions=%22off%22&complete=false&order=%22auto%22\
                &probe=%22doubts%22&secret=&min_interval=1h&max_interval=";
    let page = text(site.get_with("/feeds/news/edit", &[("cookie", &cookie)]).await).await;
    insta::assert_snapshot!("edit_for_operator", page);
    let done = send(&site, "/feeds/news/edit", &cookie, body).await;
    assert_eq!((done.status().as_u16(), header(&done, "location")), (303, "/feeds/news/about"));
    let record = site.store.record(&name("news")).unwrap();
    assert_eq!(record.url, "https://new.example/feed");
    assert_eq!(record.options.deletions, Deletions::Off);
    // What is wrong is named, and what was typed stays.
    let wrong = body.replace("min_interval=1h", "min_interval=%3Csoon%3E");
    let refused = send(&site, "/feeds/news/edit", &cookie, &wrong).await;
    assert_eq!(refused.status(), 400);
    let kept = "value=\"https://new.example/feed\"";
    text(refused).await.assert_shows(&["min_interval", "value=\"&lt;soon&gt;\"", kept]);
    // A list is uploaded.
    let form = ("content-type", "multipart/form-data; boundary=cut");
    let headers = [form, OURS, BROWSER, ("cookie", cookie.as_str())];
    let uploads = async |list: &str| {
        let field = "--cut\r\nContent-Disposition: form-data; name=";
        let body = format!(
            "{field}\"list\"; filename=\"my.opml\"\r\n\r\n{list}\r\n\
             {field}\"rearrange\"\r\n\r\nyes\r\n--cut--\r\n"
        );
        site.ask(request("POST", "/add/list", &headers, &body)).await
    };
    let list = |host: &str| {
        format!(
            "<opml version='2.0'><body>\n<outline text='A' xmlUrl='http://{host}/'/>\n\
             <outline text='B' xmlUrl='javascript:&lt;b>'/></body></opml>"
        )
    };
    let done = text(uploads(&list("fresh.example")).await).await;
    let refused = "line 3: </span>javascript:&lt;b&gt;: ";
    done.assert_shows(&["1 feed added", "/feeds/fresh-example/about", refused]);
    for (list, said) in [("<i>nothing</i>", "the list: "), ("", "no file was chosen")] {
        let refused = uploads(list).await;
        assert_eq!(refused.status(), 400, "{list}");
        text(refused).await.assert_shows(&[said, "Nothing was changed"]);
    }
    let asked = "/import?rearrange=false";
    let answer = json(site.call("POST", asked, &list("more.example")).await).await;
    assert_eq!(answer["added"][0], "more-example");
    assert_eq!(site.store.record(&name("more-example")).unwrap().url, "http://more.example/");
    assert_eq!(answer["refused"][0]["line"], 3);
    problem(site.call("POST", "/import", "nothing").await, 400).await;
}

/// A page that is kept for everybody is none of the operator's.
#[tokio::test]
async fn each_page_has_the_way_out_for_the_operator_alone() {
    let site = Site::new();
    let html = ("accept", "text/html");
    let (lists, of_feed) = (["", "recent", "add", "feeds/nobody/about"], "feeds/news");
    let of_feed = ["?as=html", "/changes?as=html", "/about", "/items", "/conflicts"]
        .map(|below| format!("{of_feed}{below}"));
    for path in lists.map(str::to_owned).iter().chain(&of_feed) {
        for headers in [&[html][..], &[html, BEARER], &[html], &[html, BEARER]] {
            let page = text(site.get_with(&format!("/{path}"), headers).await).await;
            let is_signed_in = headers.contains(&BEARER);
            assert_eq!(page.contains("Signed in: sign out"), is_signed_in, "{path}");
        }
    }
}
