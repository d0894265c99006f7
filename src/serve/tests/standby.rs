//! What a standby answers, whose database another gateway writes.

use super::callback::slow;
use super::doubles::LoggedLines;
use super::*;
use crate::client::Peer;
use crate::relay::{READ_ALONE, READ_PAGES, RelayedSite};
use crate::{PUSH_TIME, REQUEST_BODY_LIMIT};
use futures_util::future::{join_all, poll_immediate};
use std::sync::atomic::Ordering;
use tidegate_store::{DatabaseOwner, KnownGateway, StoreCondition, StoreStop};
use tokio::time::Instant;

/// A standby of a gateway that lives.
pub(super) fn standby() -> Site {
    let site = Site::announcing();
    let owner = DatabaseOwner { name: "process 7 elsewhere".to_owned(), is_gone: false };
    *site.store.condition.lock().unwrap() =
        StoreCondition { owner: Some(owner), ..StoreCondition::default() };
    site
}

#[tokio::test]
async fn readers_are_answered_as_by_the_other_gateway() {
    let (first, standby) = (Site::announcing(), standby());
    for path in ["/feeds/news", "/feeds/news/sync", "/sup.json", "/changes", "/feeds/news/items"] {
        let (one, other) = (first.get(path).await, standby.get(path).await);
        assert_eq!((one.status(), other.status()), (StatusCode::OK, StatusCode::OK), "{path}");
        assert_eq!(one.headers().get("etag"), other.headers().get("etag"), "{path}");
    }
    let ready = standby.get("/readyz").await;
    assert_eq!(ready.status(), 200);
    assert_eq!(text(ready).await, "standby: the gateway process 7 elsewhere writes\n");
    assert!(text(standby.get("/").await).await.contains("this one polls its part of the feeds"));
    assert!(text(standby.get("/metrics").await).await.contains("tidegate_standby 1\n"));
    assert!(text(first.get("/metrics").await).await.contains("tidegate_standby 0\n"));
}

/// The overview of each gateway says which there are, what each does, and where settings differ.
#[tokio::test]
async fn the_overview_lists_the_gateways_of_a_database() {
    let site = standby();
    let this = KnownGateway {
        name: "process 8".to_owned(),
        is_this: true,
        polls: true,
        shards: 600,
        reaches: true,
        beat_age: Duration::from_millis(1_400),
        ..KnownGateway::default()
    };
    let other = KnownGateway {
        name: "<process> 7".to_owned(),
        is_this: false,
        writes: true,
        reaches: false,
        shards: 424,
        beat_age: Duration::from_secs(14),
        differing: vec!["publish".to_owned()],
        ..this.clone()
    };
    let set = |gateways: Vec<KnownGateway>| {
        site.store.condition.lock().unwrap().gateways = gateways.into();
    };
    let bearer = format!("Bearer {TOKEN}");
    let by_operator = [("authorization", &*bearer)];
    set(vec![this.clone()]);
    assert!(!text(site.get_with("/", &by_operator).await).await.contains("Gateways"));
    set(vec![this, other]);
    site.store.log.close(-1, &["news"]);
    site.store.condition.lock().unwrap().clock_ahead = -2_400;
    // It is nobody else's.
    let page = text(site.get("/").await).await;
    assert!(!page.contains("Gateways") && !page.contains("Settings differ"), "{page}");
    let page = text(site.get_with("/", &by_operator).await).await;
    for said in [
        "process 8 (this one)",
        "600 of 1024 shards",
        "&lt;process&gt; 7</th><td>writes",
        "424 of 1024 shards of feeds; it reaches few publishers",
        "<td>1 second ago; it shows epoch 1</td>",
        "<td>14 seconds ago</td>",
        "The clock of this gateway is 2 seconds behind that of its database.",
        "Settings differ: the gateway &lt;process&gt; 7 has another publish.",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    let metrics = text(site.get("/metrics").await).await;
    for line in ["tidegate_settings_differ 1\n", "tidegate_clock_difference_seconds -2.4\n"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    site.store.condition.lock().unwrap().clock_ahead = 1_900;
    let page = text(site.get_with("/", &by_operator).await).await;
    assert!(!page.contains("The clock of this gateway"), "{page}");
}

/// A standby, and the gateway that writes, which answers what the standby passes on for as long as the third is there.
fn pair() -> (Site, Site, Arc<RelayedSite>) {
    let (writer, standby) = (Site::announcing(), standby());
    let relayed = RelayedSite::new(&writer.room);
    *standby.store.writer.lock().unwrap() = Some(relayed.answers());
    (writer, standby, relayed)
}

#[tokio::test]
async fn what_only_the_writer_answers_is_passed_on_to_it() {
    let ((writer, standby, _relayed), bearer) = (pair(), format!("Bearer {TOKEN}"));
    let by_operator = [("authorization", &*bearer)];
    let page = [("accept", "text/html")];
    let body = r#"{"url": "https://example.org/feed"}"#;
    for (method, path, headers, body) in [
        ("PUT", "/api/v1/feeds/more", &by_operator[..], body),
        ("POST", "/api/v1/feeds/news/poll", &by_operator, ""),
        ("GET", "/api/v1/feeds/news", &by_operator, ""),
        ("GET", "/api/v1/feeds?limit=2", &by_operator, ""),
        ("DELETE", "/api/v1/feeds/news", &by_operator, ""),
        ("POST", "/websub", &[], "hub.mode=subscribe"),
        ("GET", "/websub/callback/known?hub.mode=subscribe", &[], ""),
        ("GET", "/session", &page, ""),
        ("POST", "/feeds/news/about", &page, "act=pause"),
    ] {
        let one = writer.ask(request(method, path, headers, body)).await;
        let other = standby.ask(request(method, path, headers, body)).await;
        assert_eq!(one.status(), other.status(), "{method} {path}");
        for name in ["content-type", "cache-control", "location", "content-security-policy"] {
            assert_eq!(one.headers().get(name), other.headers().get(name), "{path}: {name}");
        }
        assert_eq!(text(one).await, text(other).await, "{method} {path}");
    }
    let asked = writer.operator.asked.lock().unwrap().clone();
    assert_eq!(asked.iter().filter(|call| call.starts_with("delete news")).count(), 2, "{asked:?}");
    assert!(standby.operator.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn each_gateway_counts_what_it_polls_and_the_writer_what_is_stored() {
    let (writer, standby) = (Site::announcing(), standby());
    *writer.operator.own.lock().unwrap() = Some(vec!["radio", "new", "still"]);
    *standby.operator.own.lock().unwrap() = Some(vec!["news"]);
    let by_writer = ["feeds_polled 2", "feeds_failing 0", "feeds_with_gaps 0", "polls_waiting 0"];
    let by_standby = ["feeds_polled 1", "feeds_failing 1", "feeds_with_gaps 1"];
    let stored = "feeds{standing=\"active\"} 3";
    let nothing = "feeds{standing=\"active\"} 0";
    for (site, lines, stored) in
        [(&writer, &by_writer[..], stored), (&standby, &by_standby, nothing)]
    {
        let metrics = text(site.get("/metrics").await).await;
        for line in lines.iter().chain([&stored]) {
            let line = format!("tidegate_{line}");
            assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
        }
    }
    assert!(writer.operator.lists.load(Ordering::SeqCst) == 0, "nothing is read for metrics");
}

/// Signs in at a gateway; the cookie of the session.
async fn sign_in(site: &Site) -> String {
    let headers = [
        ("origin", "https://feeds.example.org"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let body = format!("token={TOKEN}");
    let answer = site.ask(request("POST", "/session", &headers, &body)).await;
    let cookie = header(&answer, "set-cookie").split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("tidegate-session="), "{answer:?}");
    cookie
}

#[tokio::test]
async fn a_person_who_signed_in_through_a_standby_is_known_to_it() {
    let (_writer, standby, _relayed) = pair();
    let cookie = sign_in(&standby).await;
    let signed_in = [("cookie", &*cookie), ("accept", "text/html")];
    let page = text(standby.get_with("/feeds/news/about", &signed_in).await).await;
    assert!(page.contains("Poll now"), "{page}");
    let page = text(standby.get_with("/feeds/news/about", &[("accept", "text/html")]).await).await;
    assert!(!page.contains("Poll now"), "{page}");
}

/// Whatever others ask for by the hundred, hubs and operators are answered.
#[tokio::test]
async fn each_kind_of_request_has_places_of_its_own_at_the_writer() {
    let (writer, standby, _relayed) = pair();
    let cookie = sign_in(&standby).await;
    let challenge = "/websub/callback/known?hub.mode=subscribe";
    let free = standby.get(challenge).await.status();
    let others = &writer.room.relays.answered.others;
    let all = u32::try_from(others.available_permits()).unwrap();
    let held = others.try_acquire_many(all).unwrap();
    let refused = standby.get("/session").await;
    assert_eq!(header(&refused, "retry-after"), "30");
    let said = problem(refused, 503).await["detail"].to_string();
    assert!(said.contains("too many such requests for other gateways"), "{said}");
    assert_eq!(standby.get(challenge).await.status(), free);
    assert_eq!(standby.call("GET", "/feeds/news", "").await.status(), 200);
    let signed_in = [("cookie", &*cookie), ("accept", "text/html")];
    assert_eq!(standby.get_with("/feeds/news/about", &signed_in).await.status(), 200);
    drop(held);
    assert_eq!(standby.get("/session").await.status(), 200);
    assert_eq!(others.available_permits(), usize::try_from(all).unwrap());
}

#[tokio::test]
async fn a_hub_pushes_to_many_topics_at_the_same_moment_through_a_standby() {
    let (writer, standby, _relayed) = pair();
    let push = |topic: u8| {
        let path = format!("/websub/callback/known-{topic}");
        standby.ask(request("POST", &path, &[], "x"))
    };
    for answer in join_all((0..12).map(push)).await {
        assert_eq!(answer.status(), 202);
    }
    assert_eq!(writer.operator.asked.lock().unwrap().len(), 12);
}

/// Four clients have all places for as long as they send, and that is not for long.
#[tokio::test(start_paused = true)]
async fn slow_bodies_keep_others_out_of_a_standby_for_some_seconds_only() {
    let (_writer, standby, _relayed) = pair();
    let push = |number: u8| {
        let mut request = slow(&format!("/websub/callback/known-{number}"), 1);
        request.extensions_mut().insert(Peer([192, 0, 2, number / 4].into()));
        request.headers_mut().insert("host", "feeds.example.org".parse().unwrap());
        Box::pin(standby.ask(request))
    };
    let begun = Instant::now();
    let mut slow = join_all((0..16).map(push));
    assert!(poll_immediate(&mut slow).await.is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    let other = standby.ask(request("POST", "/websub/callback/known", &[], "x"));
    let (late, answer) = tokio::join!(slow, other);
    assert_eq!(answer.status(), 202);
    assert_eq!(begun.elapsed().as_secs(), PUSH_TIME.as_secs());
    for answer in late {
        let said = problem(answer, 408).await["detail"].to_string();
        assert!(said.contains("takes 5 seconds at most"), "{said}");
    }
}

/// The body of an operator's request may take as long as at the gateway that writes.
#[tokio::test(start_paused = true)]
async fn an_operator_may_send_slowly_through_a_standby() {
    let (_writer, standby, _relayed) = pair();
    let mut request = slow("/api/v1/import", 1);
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let begun = Instant::now();
    problem(standby.ask(request).await, 408).await;
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn what_only_reads_refuses_other_methods_without_the_writer() {
    let (writer, alone) = (Site::announcing(), standby());
    for route in READ_PAGES.into_iter().chain(READ_ALONE) {
        let path = route.replace("{name}", "news").replace("{id}", "1");
        for method in ["POST", "PUT", "DELETE"] {
            // If the gateway that writes takes it, it is to be passed on.
            problem(writer.ask(request(method, &path, &[], "")).await, 405).await;
            problem(alone.ask(request(method, &path, &[], "")).await, 405).await;
        }
    }
}

#[tokio::test]
async fn answers_to_other_gateways_take_so_many_bytes_and_no_more() {
    let (writer, standby) = (Site::with_long_documents(), standby());
    let relayed = RelayedSite::new(&writer.room);
    *standby.store.writer.lock().unwrap() = Some(relayed.answers());
    let cookie = sign_in(&standby).await;
    let get = async |path: &str| standby.get_with(path, &[("cookie", &*cookie)]).await;
    let budget = &writer.room.relays.answers;
    let all = budget.available_permits();
    assert!(text(get("/feeds/news").await).await.len() > LONG_DOCUMENT);
    assert_eq!(budget.available_permits(), all, "it was sent");
    let most = u32::try_from(all - LONG_DOCUMENT / 1024).unwrap();
    let held = budget.try_acquire_many(most).unwrap();
    let refused = get("/feeds/news").await;
    assert_eq!(header(&refused, "retry-after"), "30");
    let said = problem(refused, 503).await["detail"].to_string();
    assert!(said.contains("to other gateways"), "{said}");
    // What is short, and what says how an action ended, is answered.
    assert_eq!(get("/feeds/news/about").await.status(), 200);
    assert_eq!(standby.call("POST", "/feeds/news/poll", "").await.status(), 200);
    drop(held);
    assert_eq!(get("/feeds/news").await.status(), 200);
}

/// Each gateway tells an open session from a cookie that somebody made up, and passes on requests of the former alone.
#[tokio::test]
async fn a_cookie_that_was_made_up_passes_nothing_on() {
    let (_writer, standby, _relayed) = pair();
    let cookie = sign_in(&standby).await;
    // Another one, which nobody answers: what it passes on is refused.
    let alone = self::standby();
    let made_up = format!("tidegate-session={}", "0".repeat(cookie.len() - 17));
    let another = cookie.replace(|c: char| c.is_ascii_digit(), "a");
    assert_eq!((another.len(), made_up.len()), (cookie.len(), cookie.len()));
    let pages = ["/feeds/news", "/feeds/news/sync", "/sup.json", "/", "/feeds/news/about"];
    for path in pages {
        let said = problem(alone.get_with(path, &[("cookie", &*cookie)]).await, 503).await;
        assert!(said["detail"].to_string().contains("7 elsewhere writes"), "{path}: {said}");
        for forged in [&made_up, &another] {
            let answer = alone.get_with(path, &[("cookie", forged.as_str())]).await;
            assert_eq!(answer.status(), 200, "{path}");
        }
    }
    // Nor does one of a session that is over.
    alone.clock.set(at(13 * 3600));
    for path in pages {
        assert_eq!(alone.get_with(path, &[("cookie", &*cookie)]).await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn what_cannot_be_passed_on_is_refused() {
    let bearer = format!("Bearer {TOKEN}");
    let by_operator = [("authorization", &*bearer)];
    let refused = async |site: &Site, method: &str, path: &str| {
        let answer = site.ask(request(method, path, &by_operator, "")).await;
        assert_eq!(header(&answer, "retry-after"), "30", "{method} {path}");
        problem(answer, 503).await["detail"].as_str().unwrap().to_owned()
    };
    // Nobody answers, the whole state, and a standby that is asked by another.
    let alone = standby();
    for (method, path) in [("PUT", "/api/v1/feeds/more"), ("GET", "/api/v1/subscriptions")] {
        let said = refused(&alone, method, path).await;
        assert!(said.contains("the gateway process 7 elsewhere writes"), "{path}: {said}");
    }
    let (_writer, first, _relayed) = pair();
    let said = refused(&first, "GET", "/api/v1/export").await;
    assert!(said.contains("exported by the gateway that writes alone"), "{said}");
    assert!(said.contains("process 7 elsewhere") && !said.contains("changes nothing"), "{said}");
    let relayed = RelayedSite::new(&first.room);
    let second = standby();
    *second.store.writer.lock().unwrap() = Some(relayed.answers());
    assert!(refused(&second, "DELETE", "/api/v1/feeds/news").await.contains("7 elsewhere writes"));
    // The one that wrote is gone, or ends in the middle of it.
    let (_writer, standby, relayed) = pair();
    drop(relayed);
    let said = refused(&standby, "DELETE", "/api/v1/feeds/news").await;
    assert!(said.contains("whether it did what was asked is unknown"), "{said}");
    // Nobody is sent to it.
    let taken = "another takes its place in a moment";
    for (name, gone) in [
        ("process 7 elsewhere", "the gateway process 7 elsewhere wrote and is gone"),
        ("", "the gateway that wrote is gone"),
    ] {
        let owner = DatabaseOwner { name: name.to_owned(), is_gone: true };
        standby.store.condition.lock().unwrap().owner = Some(owner);
        for (method, path) in [("DELETE", "/api/v1/feeds/news"), ("GET", "/api/v1/export")] {
            let said = refused(&standby, method, path).await;
            assert!(said.ends_with(&format!(": {gone}; {taken}; ask again")), "{path}: {said}");
        }
        let ready = standby.get("/readyz").await;
        assert_eq!(ready.status(), 200);
        assert_eq!(text(ready).await, format!("standby: {gone}; {taken}\n"));
        let overview = text(standby.get("/").await).await;
        assert!(overview.contains(gone) && overview.contains("ask again."), "{overview}");
    }
    // Without the right to it, a request goes no further.
    problem(standby.ask(request("DELETE", "/api/v1/feeds/news", &[], "")).await, 401).await;
    let long = "x".repeat(REQUEST_BODY_LIMIT + 1);
    let (_writer, standby, _relayed) = pair();
    problem(standby.ask(request("POST", "/websub", &[], &long)).await, 413).await;
    let answer = standby.ask(request("POST", "/api/v1/import", &by_operator, &long)).await;
    assert_ne!(answer.status(), 413);
}

#[tokio::test]
async fn a_gateway_that_its_database_does_not_answer_says_so_and_serves_what_it_has() {
    let site = Site::announcing();
    let unanswered = Some(std::time::Duration::from_secs(17));
    *site.store.condition.lock().unwrap() =
        StoreCondition { unanswered, ..StoreCondition::default() };
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("the database has not answered for 17 seconds"), "{said}");
    let metrics = text(site.get("/metrics").await).await;
    for line in ["tidegate_store_up 1\n", "tidegate_store_takes_in 0\n"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}

#[tokio::test]
async fn nothing_old_is_answered_while_the_database_is_not_seen() {
    let site = standby();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    site.store.is_unseen.store(true, Ordering::Release);
    problem(site.get("/subscriptions.opml").await, 503).await;
    let (lines, _logging) = LoggedLines::begin();
    for path in ["/feeds/news", "/sup.json", "/changes", "/readyz", "/", "/nowhere"] {
        let answer = site.get(path).await;
        assert_eq!(header(&answer, "retry-after"), "30", "{path}");
        let said = problem(answer, 503).await["detail"].as_str().unwrap().to_owned();
        assert!(said.contains("has not seen its database for 6 seconds"), "{path}: {said}");
    }
    for path in ["/healthz", "/metrics"] {
        assert_eq!(site.get(path).await.status(), 200, "{path}");
    }
    // These are answers like any other: counted, and logged with their reason.
    let metrics = text(site.get("/metrics").await).await;
    for route in ["/feeds/{name}", "/sup.json", "/changes", "/readyz", "/", "none"] {
        let labels = format!("method=\"GET\",route=\"{route}\",status=\"503\"");
        let line = format!("tidegate_http_requests_total{{{labels}}} 1");
        assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
    }
    let logged = lines.with("answered");
    assert_eq!(logged.len(), 6, "{logged:?}");
    for line in logged {
        assert!(line.contains("status=503") && line.contains("not seen its database"), "{line}");
    }
    // It may be the address of a site, and its token: nobody is led on with that.
    problem(site.get("/subscribe?token=k3Jx9QzLw8VtYp2R7mNb4cHd").await, 503).await;
    site.store.is_unseen.store(false, Ordering::Release);
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}

/// What is known is answered at once, to a load balancer that does not wait.
#[tokio::test]
async fn a_standby_says_without_a_look_that_its_database_is_silent() {
    let site = standby();
    site.store.is_unseen.store(true, Ordering::Release);
    site.store.condition.lock().unwrap().unanswered = Some(Duration::from_secs(35));
    let before = site.store.looks.load(Ordering::SeqCst);
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("has not answered for 35 seconds"), "{said}");
    assert_eq!(site.store.looks.load(Ordering::SeqCst), before);
    problem(site.get("/feeds/news").await, 503).await;
    assert_eq!(site.store.looks.load(Ordering::SeqCst), before + 1);
}

/// As one whose database went back. Who watches it is told why.
#[tokio::test]
async fn a_standby_that_follows_no_more_says_why() {
    let site = standby();
    site.store.is_unseen.store(true, Ordering::Release);
    let cause = "it went back behind what was shown".to_owned();
    let stop = StoreStop { cause, since: at(-60), next_try: None, failed_tries: 0 };
    site.store.condition.lock().unwrap().stop = Some(stop);
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("it went back behind what was shown"), "{said}");
    for path in ["/feeds/news", "/sup.json", "/"] {
        let said = problem(site.get(path).await, 503).await["detail"].to_string();
        assert!(said.contains("/readyz says why") && !said.contains("went back"), "{said}");
    }
}
