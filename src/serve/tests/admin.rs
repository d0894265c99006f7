//! Administration: who may, what is understood, what is answered.

use super::*;
use crate::admission::{Work, WorkKind};
use crate::client::{Client, Peer};
use crate::{OperatorError, REQUEST_BODY_LIMIT};
use std::future::poll_fn;
use std::task::Poll;
use tidegate_poll::testing::gateway::eventually;

#[tokio::test]
async fn nothing_is_answered_without_the_token() {
    let site = Site::new();
    let before = site.writes();
    let calls = [
        ("GET", "/api/v1/feeds"),
        ("GET", "/api/v1/feeds/news"),
        ("PUT", "/api/v1/feeds/news"),
        ("DELETE", "/api/v1/feeds/news"),
        ("POST", "/api/v1/feeds/news/poll"),
        ("POST", "/api/v1/feeds/news/hold"),
        ("GET", "/api/v1/feeds/news/items/a"),
        ("POST", "/api/v1/feeds/news/backfill"),
        ("POST", "/api/v1/feeds/news/items/a/resolve"),
        ("POST", "/api/v1/feeds/news/items/a/redact"),
        ("POST", "/api/v1/feeds/news/items/a/delete"),
        ("GET", "/api/v1/nothing"),
        ("PATCH", "/api/v1/feeds"),
    ];
    for (method, path) in calls {
        for authorization in ["", "Bearer wrong", "Basic correct-horse"] {
            let asked = [("authorization", authorization)];
            let answer = site.ask(request(method, path, &asked, "{}")).await;
            assert!(header(&answer, "www-authenticate").starts_with("Bearer"), "{method} {path}");
            problem(answer, 401).await;
        }
    }
    assert_eq!(site.writes(), before);
}

#[tokio::test(start_paused = true)]
async fn the_token_is_not_guessed_and_nobody_waits_for_who_tries() {
    let site = Site::new();
    let ask = |peer: u8, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let host = [("host", "feeds.example.org")];
        let mut request = request(method, path, &[&host, headers].concat(), body);
        request.extensions_mut().insert(Peer([192, 0, 2, peer].into()));
        site.ask(request)
    };
    let call = |peer: u8, token: &str| {
        ask(peer, "GET", "/api/v1/feeds", &[("authorization", &format!("Bearer {token}"))], "")
    };
    let send = |peer: u8, path: &str, token: &str| {
        ask(peer, "POST", path, &[FORM, OURS], &format!("do=pause&token={token}"))
    };
    let (begun, before) = (tokio::time::Instant::now(), site.writes());
    for guess in 0..4 {
        problem(call(1, &format!("guess-{guess}")).await, 401).await;
        assert_eq!(send(1, "/session", &format!("session-{guess}")).await.status(), 403);
    }
    // One more was earned meanwhile.
    problem(call(1, "guess-4").await, 401).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(9), "each is held back");
    let mut pause = Duration::ZERO;
    // The next one may be right, and is not told.
    for token in ["another", TOKEN] {
        let held = call(1, token).await;
        pause = Duration::from_secs(header(&held, "retry-after").parse().unwrap());
        assert!(pause > Duration::from_secs(4), "{pause:?}");
        problem(held, 429).await;
        for path in ["/session", "/feeds/news/about"] {
            let held = send(1, path, token).await;
            assert_eq!((held.status().as_u16(), header(&held, "set-cookie")), (429, ""), "{path}");
        }
        let bearer = format!("Bearer {token}");
        let page = text(ask(1, "GET", "/", &[("authorization", &bearer)], "").await).await;
        page.assert_lacks(&["sign out"]);
    }
    assert_eq!(site.writes(), before);
    assert_eq!(call(2, TOKEN).await.status(), 200);
    assert_eq!(send(2, "/session", TOKEN).await.status(), 303);
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
    tokio::time::sleep(pause).await;
    assert_eq!(call(1, TOKEN).await.status(), 200);
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
        text(answer).await
    };
    let record = |feed: &str| site.store.record(&name(feed)).unwrap();
    let body = r#"{"url":"https://upstream.example/fresh","deletions":"off"}"#;
    for (feed, status) in [("fresh", 201), ("news", 200)] {
        call("PUT", &format!("/feeds/{feed}"), body, status).await;
        let record = record(feed);
        assert_eq!(record.url, "https://upstream.example/fresh");
        assert_eq!(record.options.deletions, Deletions::Off);
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
    assert!(site.polling.poller.status(&name("news")).unwrap().backfill.is_none());
    for body in ["", r#"{"action":"stop"}"#, "{}", r#"{"action":"start"}"#] {
        call("POST", "/feeds/news/backfill", body, 202).await;
        let walk = site.polling.poller.status(&name("news")).unwrap().backfill;
        assert!(walk.is_some(), "{body}");
    }
    call("POST", "/feeds/news/hold", r#"{"action":"release"}"#, 200).await;
    let hold = site.store.state(&name("news")).await.unwrap().unwrap().hold;
    assert_eq!(hold.and_then(|hold| hold.decision), Some(Decision::Release));

    // What a redaction answers is in the golden answers.
    for (id, was_deleted) in [("a", false), ("a", true), ("gone", true)] {
        let path = format!("/feeds/news/items/{id}/delete");
        let said = json(site.call("POST", &path, "").await).await;
        assert_eq!((&said["sync_id"], &said["deleted"]), (&id.into(), &true.into()), "{said}");
        let before = (&said["was_deleted"], said["tick"].is_null());
        assert_eq!(before, (&was_deleted.into(), was_deleted));
    }
    for (id, body, reason, was_redacted) in [
        ("old", "", "its text was removed by the operator", false),
        ("b", r#"{"reason":" x "}"#, "x", false),
        ("b", "", "x", true),
    ] {
        let said = call("POST", &format!("/feeds/news/items/{id}/redact"), body, 200).await;
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let done = (&said["was_redacted"], said["tick"].is_null());
        assert_eq!(done, (&was_redacted.into(), was_redacted), "{said}");
        let published = serde_json::Value::from(format!("urn:{id}"));
        assert_eq!([&said["published_id"], &said["native_id"]], [&published; 2]);
        let id = SyncId::new(id).unwrap();
        let versions = site.store.versions(&name("news"), &id, 1).await.unwrap();
        assert_eq!(versions[0].reason, reason);
    }
    let list = "<opml version='2.0'><body><outline text='L' xmlUrl='http://listed.example/'/></body></opml>";
    call("POST", "/import?rearrange=false", list, 200).await;
    assert_eq!(record("listed-example").url, "http://listed.example/");

    call("DELETE", "/feeds/fresh", "", 204).await;
    assert_eq!(record("fresh").standing, FeedStanding::Gone);
    call("DELETE", "/feeds/news?purge=true", "", 204).await;
    assert_eq!(record("news").standing, FeedStanding::Gone);
    assert!(site.store.state(&name("news")).await.unwrap().is_none());
    let sharing =
        r#"{"local":true,"title":"Notes","shares_with":["radio"],"conflicts":"prefer:a"}"#;
    call("PUT", "/feeds/fresh", sharing, 200).await;
    assert!(record("fresh").url.is_empty() && record("fresh").options.sharing.local);
}

/// What is refused by its words is in the golden answers.
#[tokio::test]
async fn bodies_have_limits_and_keys_are_known_where_they_mean_something() {
    let site = Site::new();
    let (long, before) = (format!("{{\"reason\":\"{}\"}}", "x".repeat(501)), site.writes());
    let said = problem(site.call("POST", "/feeds/news/items/a/redact", &long).await, 400).await;
    assert_eq!(said["parameter"], "reason");
    let large = format!("{{\"url\":\"{}\"}}", "x".repeat(REQUEST_BODY_LIMIT));
    problem(site.call("PUT", "/feeds/news", &large).await, 413).await;
    let answer = site.call("BREW", "/feeds/news", "").await;
    header(&answer, "allow").assert_shows(&["PUT"]);
    problem(answer, 405).await;
    assert_eq!(site.writes(), before);
    // A key is known to HEAD as it is to GET.
    assert_eq!(site.call("HEAD", "/feeds?show=all&limit=1", "").await.status(), 200);
    assert_eq!(site.call("HEAD", "/feeds?colour=1", "").await.status(), 400);
    // Where readers look, keys that nothing knows say nothing.
    assert_eq!(site.get("/feeds/news/conflicts?utm_source=x").await.status(), 200);
}

#[tokio::test]
async fn an_action_outlives_its_caller() {
    let site = Site::new();
    site.polling.start().await;
    {
        let mut call = std::pin::pin!(site.call("DELETE", "/feeds/news", ""));
        // The caller goes away as soon as the action has begun.
        assert!(futures_util::poll!(call.as_mut()).is_pending());
    }
    let standing = || site.store.record(&name("news")).unwrap().standing;
    assert_eq!(standing(), FeedStanding::Active);
    eventually(|| standing() == FeedStanding::Gone).await;
}

#[tokio::test]
async fn nobody_is_told_how_an_action_broke_off() {
    let site = Site::new();
    let broken =
        |_| poll_fn(|_| -> Poll<Result<(), OperatorError>> { panic!("a secret of the gateway") });
    let problem = site.room.act(broken).await.unwrap_err();
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
    while let Ok(admitted) = site.room.admission.admit(Client::Own, &work, 1).await {
        held.push(admitted);
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
