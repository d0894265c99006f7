//! Administration: who may, what is understood, what is answered.

use super::*;
use crate::REQUEST_BODY_LIMIT;
use crate::admission::{Work, WorkKind};
use crate::client::{Client, Peer};
use std::sync::atomic::Ordering;
use tidegate_core::model::FeedName;
use tidegate_store::StoreStop;

#[tokio::test]
async fn nothing_is_answered_without_the_token() {
    let site = Site::new();
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
        ("GET", "/api/v1/nothing"),
        ("PATCH", "/api/v1/feeds"),
    ];
    for (method, path) in calls {
        for authorization in ["", "Bearer wrong", "Bearer correct-hors", "Basic correct-horse"] {
            let asked = [("authorization", authorization)];
            let answer = site.ask(request(method, path, &asked, "{}")).await;
            assert!(header(&answer, "www-authenticate").starts_with("Bearer"), "{method} {path}");
            problem(answer, 401).await;
        }
    }
    assert!(site.operator.asked.lock().unwrap().is_empty());
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
    let form =
        [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];
    let send = |peer: u8, path: &str, token: &str| {
        ask(peer, "POST", path, &form, &format!("do=pause&token={token}"))
    };
    let begun = tokio::time::Instant::now();
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
        assert!(!page.contains("sign out"), "{page}");
    }
    assert!(site.operator.asked.lock().unwrap().is_empty());
    assert_eq!(call(2, TOKEN).await.status(), 200);
    assert_eq!(send(2, "/session", TOKEN).await.status(), 303);
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
    tokio::time::sleep(pause).await;
    assert_eq!(call(1, TOKEN).await.status(), 200);
}

#[tokio::test]
async fn feeds_are_listed_and_shown_with_their_state() {
    let site = Site::new();
    let list = json(site.call("GET", "/feeds", "").await).await;
    let named: Vec<_> =
        list["feeds"].as_array().unwrap().iter().map(|feed| &feed["name"]).collect();
    assert_eq!(named, ["new", "news", "radio", "still"]);
    let answer = site.call("GET", "/feeds/news", "").await;
    assert_eq!(header(&answer, "cache-control"), "no-store");
    let feed = json(answer).await;
    for (pointer, value) in [
        ("/url", "https://me:secret@upstream.example/news.xml".into()),
        ("/source", "api".into()),
        ("/standing", "active".into()),
        ("/options/deletions", "safe".into()),
        ("/last_polls/0/outcome", "failed".into()),
        ("/last_polls/0/blame", "upstream".into()),
        ("/last_polls/0/error", "<script>alert('upstream')</script>".into()),
        ("/last_polls/0/duration_ms", 1234.into()),
        ("/last_polls/0/created", 2.into()),
        ("/next_poll/at", at(300).to_string().into()),
        ("/next_poll/why", "the feed's ttl".into()),
        ("/failures", 3.into()),
        ("/backfill/state", "walking".into()),
        ("/backfill/layout", "pages".into()),
        ("/backfill/items", 17.into()),
        ("/backfill/next", "https://upstream.example/?page=3".into()),
        ("/held", "<u>empty</u>".into()),
        ("/state/until", at(-10).to_string().into()),
        ("/state/window/since", at(-20 * DAY).to_string().into()),
        ("/state/counts/tombstones", 1.into()),
        ("/state/counts/retired", 0.into()),
        ("/state/counts/missing", 1.into()),
        ("/state/hold", serde_json::Value::Null),
        ("/hold", serde_json::Value::Null),
        ("/last_polls/0/notes/0", "<em>an odd redirect</em>".into()),
        ("/pending_absences", 1.into()),
        ("/pending/0/sync_id", "a".into()),
        ("/pending/0/native_id", "urn:<s>a</s>".into()),
        ("/pending/0/evidence", "hole".into()),
        ("/pending/0/reason", "gone while <tt>older</tt> items stay".into()),
        ("/pending/0/since", at(-3600).to_string().into()),
        ("/pending/0/observations", 2.into()),
        ("/pending/0/needed", 3.into()),
        ("/pending/0/decides_at", at(23 * 3600).to_string().into()),
        ("/pending/0/would", "deleted".into()),
        ("/no_news/0/sync_id", "b".into()),
        ("/noise", serde_json::json!([])),
        ("/pending/0/probe/asked", 2.into()),
        ("/pending/0/probe/answer", "gone".into()),
        ("/pending/0/probe/status", 404.into()),
        ("/pending/0/probe/silence", "it answered <var>503</var>".into()),
        ("/probing", false.into()),
        ("/last_probes/0/requests", 3.into()),
        ("/last_probes/0/said/0", "https://example.org/<kbd>a</kbd> is gone (404)".into()),
        ("/options/order", "auto".into()),
        ("/options/probe", "doubts".into()),
        ("/character/words", "too little was seen to say anything".into()),
        ("/document/entries", 9.into()),
        ("/document/partial", "it breaks off <b>here</b>".into()),
        ("/document/warnings/0", "at byte 7: <q>odd</q>".into()),
        ("/events/0/kind", "deleted".into()),
        ("/events/0/reason", "a hole that stayed".into()),
        ("/events/0/seen_gone", at(-6 * DAY).to_string().into()),
        ("/views/sync", "https://feeds.example.org/feeds/news/sync".into()),
    ] {
        assert_eq!(feed.pointer(pointer), Some(&value), "{pointer}");
    }
}

#[tokio::test]
async fn a_feed_says_why_it_is_as_it_is() {
    let site = Site::new();
    let feed = json(site.call("GET", "/feeds/news", "").await).await;
    let why = feed["why"].as_str().unwrap();
    for words in ["the last poll failed", "only a part", "it breaks off", "one item is missing"] {
        assert!(why.contains(words), "no {words:?} in {why}");
    }
    site.store.edit("news", |feed| {
        feed.state.hold = Some(doubles::hold("the document is empty"));
    });
    let feed = json(site.call("GET", "/feeds/news", "").await).await;
    for (pointer, value) in [
        ("/hold/kind", serde_json::Value::from("empty")),
        ("/hold/observations", 2.into()),
        ("/hold/needed", 3.into()),
        ("/hold/kept", 4.into()),
        ("/hold/believed_at", at(DAY - 60).to_string().into()),
        ("/hold/decision", serde_json::Value::Null),
    ] {
        assert_eq!(feed.pointer(pointer), Some(&value), "{pointer}");
    }
    assert!(feed["hold"]["words"].as_str().unwrap().contains("release or drop"), "{feed}");
    assert!(feed["why"].as_str().unwrap().contains("a document is held: the document"), "{feed}");
}

#[tokio::test]
async fn all_that_is_known_of_an_item() {
    let site = Site::new();
    let item = json(site.call("GET", "/feeds/news/items/gone", "").await).await;
    for (pointer, value) in [
        ("/sync_id", serde_json::Value::from("gone")),
        ("/standing", "deleted".into()),
        ("/versions/0/reason", "<i>because</i>".into()),
        ("/events/0/kind", "deleted".into()),
        ("/events/0/reason", "a hole that stayed".into()),
        ("/native_id", "urn:gone".into()),
        ("/pending", serde_json::Value::Null),
    ] {
        assert_eq!(item.pointer(pointer), Some(&value), "{pointer}");
    }
    let item = json(site.call("GET", "/feeds/news/items/a", "").await).await;
    assert_eq!(item["events"], serde_json::json!([]));
    assert_eq!(item["pending"]["would"], "deleted");
    assert!(item["pending"]["words"].as_str().unwrap().contains("older items stay"), "{item}");
    for unknown in ["nothing", "%20", "a%0ab"] {
        problem(site.call("GET", &format!("/feeds/news/items/{unknown}"), "").await, 404).await;
    }
    problem(site.call("GET", "/feeds/nobody/items/a", "").await, 404).await;
}

#[tokio::test]
async fn a_poll_answers_in_the_words_of_the_contract() {
    let answer = json(Site::new().call("POST", "/feeds/news/poll", "").await).await;
    let expected = serde_json::json!({
        "outcome": "not_modified", "created": 0, "updated": 3, "deleted": 0, "undeleted": 0,
        "retired": 0, "returned": 0, "rekeyed": 0, "held": null, "until": at(-10).to_string(),
        "error": null,
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn feeds_are_put_and_deleted() {
    let site = Site::new();
    let body = r#"{"url":"https://example.org/","deletions":"off"}"#;
    let answer = site.call("PUT", "/feeds/fresh", body).await;
    assert_eq!(answer.status(), 201);
    assert_eq!(header(&answer, "location"), "https://feeds.example.org/api/v1/feeds/fresh");
    assert_eq!(json(answer).await["name"], "fresh");
    assert_eq!(site.call("PUT", "/feeds/news", body).await.status(), 200);
    assert_eq!(site.call("DELETE", "/feeds/news", "").await.status(), 204);
    assert_eq!(site.call("DELETE", "/feeds/news?purge=true", "").await.status(), 204);
    assert_eq!(
        *site.operator.asked.lock().unwrap(),
        [
            "put fresh https://example.org/ Off",
            "put news https://example.org/ Off",
            "delete news false",
            "delete news true",
        ]
    );
}

#[tokio::test]
async fn mistakes_reach_nobody() {
    let site = Site::new();
    for (method, path, body, parameter) in [
        ("PUT", "/feeds/news", r#"{"url":"http://x/","colour":1}"#, "colour"),
        ("PUT", "/feeds/news", "{}", "url"),
        ("PUT", "/feeds/News", r#"{"url":"http://x/"}"#, "name"),
        ("PUT", "/feeds/a%2Fb", r#"{"url":"http://x/"}"#, "name"),
        ("DELETE", "/feeds/news?purge=yes", "", "purge"),
        ("DELETE", "/feeds/news?prune=true", "", "prune"),
        ("POST", "/feeds/news/hold", r#"{"action":"keep"}"#, "action"),
        ("POST", "/feeds/news/hold", r#"{"action":7}"#, "action"),
        ("POST", "/feeds/news/hold", "{}", "action"),
        ("POST", "/feeds/news/hold", r#"{"action":"drop","now":1}"#, "now"),
    ] {
        let problem = problem(site.call(method, path, body).await, 400).await;
        assert_eq!(problem["parameter"], parameter, "{method} {path} {body}");
    }
    problem(site.call("PUT", "/feeds/news", "{").await, 400).await;
    let large = format!("{{\"url\":\"{}\"}}", "x".repeat(REQUEST_BODY_LIMIT));
    problem(site.call("PUT", "/feeds/news", &large).await, 413).await;
    assert!(site.operator.asked.lock().unwrap().is_empty());
}

/// A misspelt key must not pass in silence, nor one that says two things.
#[tokio::test]
async fn queries_are_understood_as_a_whole() {
    let site = Site::new();
    for (method, path, parameter) in [
        ("GET", "/feeds?x=1", "x"),
        ("GET", "/feeds/news?utm_source=x", "utm_source"),
        ("DELETE", "/feeds/news?purged=true", "purged"),
        ("DELETE", "/feeds/news?purge=true&purge=true", "purge"),
        ("DELETE", "/feeds/news?purge=yes", "purge"),
        ("POST", "/feeds/news/poll?now", "now"),
        ("POST", "/feeds/news/items?noconflicts=1", "noconflicts"),
        ("GET", "/subscriptions?feed=a&feed=b", "feed"),
        ("GET", "/feeds/news/conflicts?resolved=a", "resolved"),
        ("GET", "/feeds/news/conflicts?after=a&after=b", "after"),
        ("GET", "/feeds/news/conflicts?after=", "after"),
    ] {
        let said = problem(site.call(method, path, "{}").await, 400).await;
        assert_eq!(said["parameter"], parameter, "{path}");
    }
    assert!(site.operator.asked.lock().unwrap().is_empty());
    // Where readers look, keys that nothing knows say nothing, and the others are read as strictly.
    for (path, status) in [
        ("/feeds/news/conflicts?utm_source=x", 200),
        ("/feeds/news/conflicts?after=", 400),
        ("/feeds/news/conflicts?after=a&after=b", 400),
        ("/feeds/news/conflicts?after=%20", 400),
        ("/sup.json?seconds=60&seconds=60", 400),
    ] {
        assert_eq!(site.get(path).await.status(), status, "{path}");
    }
}

#[tokio::test]
async fn refusals_keep_their_kind() {
    let site = Site::new();
    let put = r#"{"url":"http://x/"}"#;
    problem(site.call("GET", "/feeds/nobody", "").await, 404).await;
    problem(site.call("GET", "/feeds/%00", "").await, 404).await;
    problem(site.call("POST", "/feeds/nobody/poll", "").await, 404).await;
    let file = problem(site.call("PUT", "/feeds/file", put).await, 409).await;
    assert!(file["detail"].as_str().unwrap().contains("configuration file"));
    problem(site.call("DELETE", "/feeds/file", "").await, 409).await;
    let hold = r#"{"action":"drop"}"#;
    problem(site.call("POST", "/feeds/news/hold", hold).await, 409).await;
    let hold = r#"{"action":"release"}"#;
    assert_eq!(site.call("POST", "/feeds/news/hold", hold).await.status(), 200);
    problem(site.call("POST", "/feeds/news/items/a/resolve", "{}").await, 400).await;
    problem(site.call("PATCH", "/feeds/nobody", put).await, 404).await;
    problem(site.call("PATCH", "/feeds/news", "").await, 400).await;
    let unknown = problem(site.call("PATCH", "/feeds/news", r#"{"interval":null}"#).await, 400);
    assert_eq!(unknown.await["parameter"], "interval");
    let answer = site.call("BREW", "/feeds/news", "").await;
    assert!(header(&answer, "allow").contains("PUT"));
    problem(answer, 405).await;
    problem(site.call("GET", "/nothing", "").await, 404).await;
}

#[tokio::test]
async fn what_administration_changed_is_seen_at_once() {
    let site = Site::new();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    site.store.edit_record("news", |it| it.standing = tidegate_core::model::FeedStanding::Gone);
    assert_eq!(site.call("DELETE", "/feeds/news", "").await.status(), 204);
    assert_eq!(site.get("/feeds/news").await.status(), 410);
}

#[tokio::test]
async fn an_action_outlives_its_caller() {
    let site = Site::new();
    site.operator.slow.store(5, Ordering::SeqCst);
    {
        let mut call = std::pin::pin!(site.call("DELETE", "/feeds/news", ""));
        // The caller goes away as soon as the action has begun.
        assert!(futures_util::poll!(call.as_mut()).is_pending());
    }
    assert!(site.operator.asked.lock().unwrap().is_empty());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*site.operator.asked.lock().unwrap(), ["delete news false"]);
}

#[tokio::test]
async fn a_redaction_is_asked_for_with_its_reason() {
    let site = Site::new();
    let path = "/feeds/news/items/a/redact";
    let said = json(site.call("POST", path, r#"{"reason":" by court order "}"#).await).await;
    for (key, value) in [
        ("standing", serde_json::json!("redacted")),
        ("sync_id", "a".into()),
        ("kept_out", true.into()),
        ("deleted", true.into()),
        ("versions", 3.into()),
    ] {
        assert_eq!(said[key], value, "{key}");
    }
    assert_eq!(site.call("POST", path, "").await.status(), 200);
    let asked = site.operator.asked.lock().unwrap().clone();
    assert_eq!(asked, ["redact news a Some(\"by court order\")", "redact news a None"]);
    let long = format!("{{\"reason\":\"{}\"}}", "x".repeat(501));
    for (body, parameter) in
        [(r#"{"reason":7}"#, "reason"), (r#"{"why":"x"}"#, "why"), (&*long, "reason")]
    {
        let wrong = problem(site.call("POST", path, body).await, 400).await;
        assert_eq!(wrong["parameter"], parameter, "{body}");
    }
    problem(site.call("POST", "/feeds/news/items/nothing/redact", "").await, 404).await;
    problem(site.call("POST", "/feeds/other/items/a/redact", "").await, 404).await;
    problem(site.ask(request("POST", &format!("/api/v1{path}"), &[], "")).await, 401).await;
}

#[tokio::test]
async fn a_missing_item_is_deleted() {
    let site = Site::new();
    let path = |id: &str| format!("/feeds/news/items/{id}/delete");
    let said = json(site.call("POST", &path("a"), "").await).await;
    assert_eq!((&said["sync_id"], &said["was_deleted"]), (&"a".into(), &false.into()), "{said}");
    assert!(said["deleted"] == true && said["tick"].is_string(), "{said}");
    let again = json(site.call("POST", &path("gone"), "").await).await;
    assert!(again["was_deleted"] == true && again["tick"].is_null(), "{again}");
    let asked = site.operator.asked.lock().unwrap().clone();
    assert_eq!(asked, ["delete_missing news a", "delete_missing news gone"]);
    problem(site.call("POST", &path("listed"), "").await, 409).await;
    problem(site.call("POST", &path("nothing"), "").await, 404).await;
    problem(site.call("POST", "/feeds/other/items/a/delete", "").await, 404).await;
    let without_token = format!("/api/v1{}", path("a"));
    problem(site.ask(request("POST", &without_token, &[], "")).await, 401).await;
}

#[tokio::test]
async fn what_is_kept_is_told() {
    let feed = json(Site::new().call("GET", "/feeds/news", "").await).await;
    assert_eq!(feed["kept"]["versions"], 4);
    assert!(feed["kept"]["version_bytes"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_backfill_is_begun_and_stopped() {
    let site = Site::new();
    for (body, status) in [
        ("", 202),
        ("{}", 202),
        (r#"{"action":"start"}"#, 202),
        (r#"{"action":"stop"}"#, 202),
        (r#"{"action":"pause"}"#, 400),
        (r#"{"actoin":"stop"}"#, 400),
        ("[]", 400),
    ] {
        let answer = site.call("POST", "/feeds/news/backfill", body).await;
        assert_eq!(answer.status(), status, "{body}");
    }
    let asked = site.operator.asked.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|asked| *asked == "backfill news Start").count(), 3);
    assert_eq!(asked.iter().filter(|asked| *asked == "backfill news Stop").count(), 1);
    problem(site.call("POST", "/feeds/nobody/backfill", "").await, 404).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_carried_out_is_answered_however_much_is_made() {
    let site = Site::new();
    let work = Work::new(&FeedName::new("news").unwrap(), WorkKind::Ledger);
    let mut held = Vec::new();
    while let Ok(admitted) = site.room.admission.admit(Client::Own, &work, 1).await {
        held.push(admitted);
    }
    problem(site.call("GET", "/feeds/news", "").await, 503).await;
    for (method, path, body, status) in [
        ("PUT", "/feeds/news", r#"{"url":"https://news.example/feed"}"#, 200),
        ("POST", "/feeds/news/hold", r#"{"action":"release"}"#, 200),
        ("POST", "/feeds/news/backfill", "", 202),
    ] {
        let answer = site.call(method, path, body).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(json(answer).await["name"], "news");
    }
    drop(held);
    // Nor is it taken for undone where the store stopped right behind it.
    let (cause, since) = ("close an epoch".to_owned(), at(0));
    let stop = StoreStop { cause, since, next_try: Some(since), failed_tries: 0 };
    site.store.set_stop(Some(stop));
    problem(site.call("GET", "/feeds/news", "").await, 503).await;
    let answer = site.call("POST", "/feeds/news/hold", r#"{"action":"release"}"#).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(json(answer).await, serde_json::json!({ "name": "news" }));
}

#[tokio::test]
async fn a_key_of_a_query_is_known_to_every_method_that_reads_it() {
    let site = Site::new();
    assert_eq!(site.call("HEAD", "/feeds?show=all&limit=1", "").await.status(), 200);
    assert_eq!(site.call("HEAD", "/feeds?colour=1", "").await.status(), 400);
    // A misspelt key is no reason to change something.
    let patch = site.call("PATCH", "/feeds/news?nonsense=1", r#"{"probe":false}"#).await;
    assert_eq!(problem(patch, 400).await["parameter"], "nonsense");
    assert!(site.operator.asked.lock().unwrap().is_empty());
    let wrong = problem(site.call("PATCH", "/feeds", "").await, 405).await;
    assert!(wrong["detail"].as_str().unwrap().starts_with("PATCH is not for this"), "{wrong}");
    for method in ["TRACE", "PATCH", "BREW", "PUT"] {
        problem(site.call(method, "/feeds?show=all", "").await, 405).await;
    }
    problem(site.call("PUT", "/feeds/news/items?q=x", "{}").await, 405).await;
    problem(site.call("POST", "/feeds/news?purge=true", "{}").await, 405).await;
    problem(site.call("PUT", "/feeds/news?purge=true", "{}").await, 400).await;
}

#[tokio::test]
async fn an_export_goes_out_piece_by_piece_and_breaks_off_where_it_fails() {
    let site = Site::new();
    let answer = site.call("GET", "/export", "").await;
    assert_eq!(header(&answer, "content-type"), "application/vnd.tidegate.export");
    assert_eq!(text(answer).await, "tidegate");
    site.operator.breaks_off.store(true, Ordering::SeqCst);
    let answer = site.call("GET", "/export", "").await;
    assert_eq!(answer.status(), 200);
    assert!(http_body_util::BodyExt::collect(answer.into_body()).await.is_err());
    // A gateway that ends lets go of who takes it.
    site.operator.breaks_off.store(false, Ordering::SeqCst);
    site.closing.cancel();
    let answer = site.call("GET", "/export", "").await;
    assert!(http_body_util::BodyExt::collect(answer.into_body()).await.is_err());
}
