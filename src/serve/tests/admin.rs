use super::*;
use crate::admission::{Work, WorkKind};
use crate::client::{Client, Peer};
use crate::routes::{Access, ROUTES};
use crate::{OperatorError, REQUEST_BODY_LIMIT};
use std::future::poll_fn;
use std::task::Poll;

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_without_the_token() {
    let site = Site::new();
    let before = site.writes();
    let paths = ROUTES.iter().filter(|route| route.access == Access::Api).map(|route| &*route.path);
    for path in paths.filter(|path| !path.ends_with("openapi.json")).chain(["/api/v1/nothing"]) {
        let path = path.replace("{name}", "news").replace("{id}", "a");
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
            for authorization in ["", "Bearer wrong", "Basic correct-horse"] {
                let asked = [("authorization", authorization)];
                let answer = site.ask(request(method, &path, &asked, "{}")).await;
                assert!(header(&answer, "www-authenticate").starts_with("Bearer"), "{path}");
                problem(answer, 401).await;
            }
        }
    }
    assert_eq!(site.writes(), before);
}

/// How many guesses there are is shown where they are counted.
#[tokio::test(start_paused = true)]
async fn the_token_is_not_guessed_and_nobody_waits_for_who_tries() {
    let site = Site::new();
    let ask = |peer: u8, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let host = [("host", "feeds.example.org")];
        let request = request(method, path, &[&host, headers].concat(), body);
        site.ask(with_extension(request, Peer([192, 0, 2, peer].into())))
    };
    let get = async |peer: u8, path: &str, token: &str| {
        ask(peer, "GET", path, &[("authorization", &format!("Bearer {token}"))], "").await
    };
    let send = async |peer: u8, path: &str, token: &str| {
        ask(peer, "POST", path, &[FORM, OURS], &format!("do=pause&token={token}")).await
    };
    let (begun, before, feeds) = (tokio::time::Instant::now(), site.writes(), "/api/v1/feeds");
    for guess in 0..4 {
        problem(get(1, feeds, &format!("guess-{guess}")).await, 401).await;
        assert_eq!(send(1, "/session", &format!("session-{guess}")).await.status(), 403);
    }
    // One more was earned meanwhile.
    problem(get(1, feeds, "guess-4").await, 401).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(9), "each is held back");
    // Whether the next one is right is not told.
    for token in ["another", TOKEN] {
        problem(get(1, feeds, token).await, 429).await;
        for path in ["/session", "/feeds/news/about"] {
            let held = send(1, path, token).await;
            assert_eq!((held.status().as_u16(), header(&held, "set-cookie")), (429, ""), "{path}");
        }
    }
    text(get(1, "/", TOKEN).await).await.assert_lacks(&["sign out"]);
    let held = get(1, feeds, TOKEN).await;
    let pause = Duration::from_secs(header(&held, "retry-after").parse().unwrap());
    assert!(pause > Duration::from_secs(4), "{pause:?}");
    problem(held, 429).await;
    assert_eq!(site.writes(), before);
    assert_eq!(get(2, feeds, TOKEN).await.status(), 200);
    assert_eq!(send(2, "/session", TOKEN).await.status(), 303);
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
    tokio::time::sleep(pause).await;
    assert_eq!(get(1, feeds, TOKEN).await.status(), 200);
}

#[tokio::test]
async fn what_is_asked_is_done() {
    let site = Site::new();
    site.polling.start().await;
    site.store.edit("news", |feed| feed.state.hold = Some(hold("it is empty")));
    let call = async |method: &str, path: &str, body: &str, status: u16| {
        let answer = site.call(method, path, body).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {path} {body}");
        let at = "https://feeds.example.org/api/v1/feeds/fresh";
        assert_eq!(header(&answer, "location"), if status == 201 { at } else { "" });
        serde_json::from_str::<serde_json::Value>(&text(answer).await).unwrap_or_default()
    };
    let record = |feed: &str| site.store.record(&name(feed)).unwrap();
    let body = r#"{"url":"https://upstream.example/fresh","deletions":"off"}"#;
    for (feed, status) in [("fresh", 201), ("news", 200)] {
        call("PUT", &format!("/feeds/{feed}"), body, status).await;
        assert_eq!(record(feed).url, "https://upstream.example/fresh");
        assert_eq!(record(feed).options.deletions, Deletions::Off);
    }
    for (body, standing) in [
        ("", FeedStanding::Paused),
        (r#"{"action":"resume"}"#, FeedStanding::Active),
        (r#"{"action":"pause"}"#, FeedStanding::Paused),
        (r#"{"action":"resume"}"#, FeedStanding::Active),
    ] {
        call("POST", "/feeds/news/pause", body, 200).await;
        assert_eq!(record("news").standing, standing, "{body}");
    }
    for body in ["", r#"{"action":"stop"}"#, "{}", r#"{"action":"start"}"#] {
        call("POST", "/feeds/news/backfill", body, 202).await;
        assert!(site.polling.poller.status(&name("news")).unwrap().backfill.is_some(), "{body}");
    }
    call("POST", "/feeds/news/hold", r#"{"action":"release"}"#, 200).await;
    let hold = site.store.state(&name("news")).await.unwrap().unwrap().hold;
    assert_eq!(hold.and_then(|hold| hold.decision), Some(Decision::Release));
    // What a redaction answers is in the golden answers.
    for (path, body, done, was_done) in [
        ("a/delete", "", "was_deleted", false),
        ("a/delete", "", "was_deleted", true),
        ("gone/delete", "", "was_deleted", true),
        ("old/redact", "", "was_redacted", false),
        ("b/redact", r#"{"reason":" x "}"#, "was_redacted", false),
        ("b/redact", "", "was_redacted", true),
    ] {
        let said = call("POST", &format!("/feeds/news/items/{path}"), body, 200).await;
        assert_eq!((&said[done], said["tick"].is_null()), (&was_done.into(), was_done), "{said}");
    }
    for (id, reason) in [("old", "its text was removed by the operator"), ("b", "x")] {
        let versions = site.store.versions(&name("news"), &doubles::id(id), 1).await.unwrap();
        assert_eq!(versions[0].reason, reason);
    }
    call("DELETE", "/feeds/fresh", "", 204).await;
    call("DELETE", "/feeds/news?purge=true", "", 204).await;
    assert_eq!(["fresh", "news"].map(|feed| record(feed).standing), [FeedStanding::Gone; 2]);
    assert!(site.store.state(&name("news")).await.unwrap().is_none());
    let sharing =
        r#"{"local":true,"title":"Notes","shares_with":["radio"],"conflicts":"prefer:a"}"#;
    call("PUT", "/feeds/fresh", sharing, 200).await;
    assert!(record("fresh").url.is_empty() && record("fresh").options.sharing.local);
}

/// What is refused by its words is in the golden answers.
#[tokio::test]
async fn bodies_and_pages_have_limits_and_keys_are_known_where_they_mean_something() {
    let site = Site::new();
    let (long, before) = (format!("{{\"reason\":\"{}\"}}", "x".repeat(501)), site.writes());
    let said = problem(site.call("POST", "/feeds/news/items/a/redact", &long).await, 400).await;
    assert_eq!(said["parameter"], "reason");
    let large = format!("{{\"url\":\"{}\"}}", "x".repeat(REQUEST_BODY_LIMIT));
    problem(site.call("PUT", "/feeds/news", &large).await, 413).await;
    assert_eq!(site.writes(), before);
    // A key is known to HEAD as it is to GET.
    assert_eq!(site.call("HEAD", "/feeds?show=all&limit=1", "").await.status(), 200);
    assert_eq!(site.call("HEAD", "/feeds?colour=1", "").await.status(), 400);
    // Where readers look, keys that nothing knows say nothing.
    assert_eq!(site.get("/feeds/news/conflicts?utm_source=x").await.status(), 200);
    // Feeds are listed page by page.
    let at = |query: &str| format!("https://feeds.example.org/api/v1/feeds?{query}").into();
    for (query, names, matches, next) in [
        ("limit=2", "dead new", 5, at("limit=2&after=new")),
        // The feed that a page ended with may be gone by then.
        ("limit=2&after=news2", "radio still", 5, serde_json::Value::Null),
        ("q=RADIO&show=all&limit=3", "radio", 1, serde_json::Value::Null),
        ("q=.xml&show=all&limit=1", "new", 4, at("q=.xml&show=all&limit=1&after=new")),
    ] {
        let told = site.told(&format!("/feeds?{query}")).await;
        let shown = told["feeds"].as_array().unwrap().iter();
        let shown: Vec<&str> = shown.map(|feed| feed["name"].as_str().unwrap()).collect();
        assert_eq!((shown.join(" "), &told["matches"]), (names.to_owned(), &matches.into()));
        assert_eq!(told["next"], next, "{query}");
    }
    // A page has an end whether a number is asked for or not.
    (0..500)
        .for_each(|n| site.store.set_record(&record(&format!("f{n:03}"), FeedStanding::Active)));
    let told = site.told("/feeds").await;
    assert_eq!((told["feeds"].as_array().unwrap().len(), &told["matches"]), (500, &505.into()));
    assert_eq!(told["next"], at("after=f498"));
}

#[tokio::test]
async fn an_action_outlives_its_caller_and_nobody_is_told_how_it_broke_off() {
    let site = Site::new();
    site.polling.start().await;
    let mut call = Box::pin(site.call("DELETE", "/feeds/news", ""));
    assert!(futures_util::poll!(&mut call).is_pending());
    // The caller goes away as soon as the action has begun.
    drop(call);
    let standing = || site.store.record(&name("news")).unwrap().standing;
    assert_eq!(standing(), FeedStanding::Active);
    eventually(|| standing() == FeedStanding::Gone).await;
    let broken =
        |_| poll_fn(|_| -> Poll<Result<(), OperatorError>> { panic!("a secret of the gateway") });
    let problem = site.app.act(broken).await.unwrap_err();
    let said = "the action broke off; the gateway's log says why";
    assert_eq!((problem.status.as_u16(), &*problem.detail), (500, said));
}

#[tokio::test(start_paused = true)]
async fn what_was_carried_out_is_answered_however_much_is_made() {
    let site = Site::new();
    site.polling.start().await;
    site.store.edit("news", |feed| feed.state.hold = Some(hold("it is empty")));
    let work = Work::new(&FeedName::new("news").unwrap(), WorkKind::Ledger);
    let mut held = Vec::new();
    while let Ok(admitted) = site.app.admission.admit(Client::Own, &work, 1).await {
        held.push(admitted);
    }
    let subscriptions = "/subscriptions.opml?since=2006-01-06T19:24:09Z";
    for path in ["/feeds/news/complete", "/subscriptions.opml", subscriptions] {
        is_retried(site.get(path).await).await;
    }
    problem(site.call("GET", "/feeds/news", "").await, 503).await;
    for (method, path, body, status) in [
        ("PUT", "/feeds/news", r#"{"url":"https://upstream.example/feed"}"#, 200),
        ("POST", "/feeds/news/hold", r#"{"action":"drop"}"#, 200),
        ("POST", "/feeds/news/backfill", "", 202),
    ] {
        let answer = site.call(method, path, body).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(json(answer).await["name"], "news");
    }
    drop(held);
    // Nor is it taken for undone where the store stopped right behind it.
    let store = Arc::clone(&site.store);
    site.store.at_read("events", move || store.set_stop(stopped("close an epoch")));
    let answer = site.call("POST", "/feeds/news/pause", "").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(json(answer).await, serde_json::json!({ "name": "news" }));
}

#[tokio::test]
async fn an_export_goes_out_piece_by_piece_and_breaks_off_where_it_fails() {
    let site = Site::new();
    let answer = site.call("GET", "/export", "").await;
    assert_eq!(header(&answer, "content-type"), "application/vnd.tidegate.export");
    assert!(bytes(answer).await.starts_with(tidegate_store::portable::MAGIC));
    site.store.fault(StoreFault::Reads);
    let answer = site.call("GET", "/export", "").await;
    assert_eq!(answer.status(), 200);
    assert!(http_body_util::BodyExt::collect(answer.into_body()).await.is_err());
    // A gateway that ends lets go of who takes it.
    site.store.mend();
    site.closing.cancel();
    let answer = site.call("GET", "/export", "").await;
    assert!(http_body_util::BodyExt::collect(answer.into_body()).await.is_err());
}
