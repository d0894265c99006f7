//! What is asked of the hub, and what it does not take (sections 4 and 5.1).

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn header_and_document_lead_to_the_same_hub_and_topic() {
    let stage = Stage::new().await;
    for path in ["/feeds/news", "/feeds/news/sync", "/feeds/news/complete"] {
        let (status, headers, document) = stage.get(path).await;
        assert_eq!(status, 200);
        let links = |headers: &http::HeaderMap| {
            let all = headers.get_all("link").into_iter();
            all.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(", ")
        };
        // Section 4: the header is looked at before the document; both say the same.
        let (hub, own) = (topic("/websub"), topic(path));
        for said in [format!("<{hub}>; rel=\"hub\""), format!("<{own}>; rel=\"self\"")] {
            assert!(links(&headers).contains(&said), "{path}: {}", links(&headers));
        }
        assert!(document.contains(&format!("rel=\"hub\" href=\"{hub}\"")), "{document}");
        let etag = headers["etag"].to_str().unwrap();
        let again = reqwest::Client::new().get(stage.at(path)).header("if-none-match", etag);
        let again = again.send().await.unwrap();
        assert_eq!(again.status(), 304);
        assert!(links(again.headers()).contains(&format!("<{hub}>; rel=\"hub\"")), "on a 304 too");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_wrongly_is_refused_in_words_and_nobody_is_called() {
    let stage = Stage::new().await;
    let callback = Callback::start().await;
    let url = callback.url("/push");
    let news = topic("/feeds/news");
    let secret = "s".repeat(200);
    let subscribe = |topic: &str, more: &[(&str, &str)]| {
        let mut form = vec![("hub.mode", "subscribe"), ("hub.topic", topic)];
        form.extend_from_slice(more);
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form).finish()
    };
    let form = "application/x-www-form-urlencoded";
    let to = ("hub.callback", url.as_str());
    for (media_type, body, status, said) in [
        ("application/json", subscribe(&news, &[to]), 415, form),
        ("multipart/form-data", subscribe(&news, &[to]), 415, form),
        (form, String::new(), 400, "hub.mode is missing"),
        (form, "hub.mode=publish&hub.url=x".to_owned(), 400, "asks the publishers itself"),
        (form, "hub.mode=renew".to_owned(), 400, "not subscribe or unsubscribe"),
        (form, subscribe(&news, &[]), 400, "hub.callback is missing"),
        (form, subscribe(&news, &[("hub.callback", "/push")]), 400, "no absolute http"),
        (form, subscribe(&news, &[to, ("hub.secret", &secret)]), 400, "the limit is 199"),
        (form, subscribe(&news, &[to, ("hub.lease_seconds", "x")]), 400, "whole number"),
        (form, subscribe(&topic("/feeds/none"), &[to]), 404, "no feed of that name"),
        (form, subscribe("https://other.example/feeds/news", &[to]), 404, "of this gateway"),
        (form, subscribe(&topic("/feeds/news/about"), &[to]), 404, "of this gateway"),
        (form, subscribe(&topic("/feeds/news?as=exe"), &[to]), 400, "as is one of"),
        (form, subscribe(&topic("/feeds/news?as-of=2026-01-01T00:00:00Z"), &[to]), 400, "as-of"),
        (
            form,
            subscribe(&topic("/feeds/news/sync?since=2026-01-01T00:00:00Z"), &[to]),
            400,
            "neither since",
        ),
        (form, subscribe(&topic("/feeds/news?junk=1"), &[to]), 400, "but as and sx"),
        (form, subscribe(&topic("/feeds/news?"), &[to]), 400, "but as and sx"),
        (form, "x".repeat(17_000), 400, "the limit is 16384"),
        (form, "x".repeat(70_000), 413, "limit"),
    ] {
        let (answered, problem) = stage.post_as(media_type, body.clone()).await;
        assert_eq!(answered.as_u16(), status, "{body}: {problem}");
        assert!(problem.contains(said), "{body}: {problem}");
        assert!(problem.contains("\"detail\""), "{problem}");
    }
    let (status, said) = stage
        .post(&[("hub.mode", "unsubscribe"), ("hub.topic", &news), ("hub.callback", &url)])
        .await;
    assert_eq!((status.as_u16(), said.contains("no subscription")), (404, true), "{said}");
    assert_eq!(stage.get("/websub").await.0, 405);
    assert_eq!(stage.seen().await["subscriptions"], serde_json::json!([]));
    assert!(callback.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_callback_is_refused_however_it_is_named() {
    // The operator allows them to feeds.
    let websub = "[websub]\nprivate_callbacks = false\n";
    let stage = Stage::without_feeds("allow_private = true", websub).await;
    stage.add("news").await;
    let callback = Callback::start().await;
    let news = topic("/feeds/news");
    let port = callback.host_and_port();
    let port = port.rsplit_once(':').unwrap().1;
    for host in ["127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "0x7f.1", "2130706433"] {
        let url = format!("http://{host}:{port}/push");
        let (status, said) = stage
            .post(&[("hub.mode", "subscribe"), ("hub.topic", &news), ("hub.callback", &url)])
            .await;
        assert_eq!(status, 400, "{host}: {said}");
        assert!(said.contains("not public"), "{said}");
    }
    // A name says nothing of its address before it is asked for; then nobody is connected to.
    stage.asks(&news, &format!("http://localhost:{port}/push"), &[]).await;
    stage
        .until("the request is dropped", async || {
            stage.seen().await["subscriptions"] == serde_json::json!([])
        })
        .await;
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs([("notifyProcedure", ""), ("protocol", "http-post"), ("path", "/push?a=b")]);
    form.extend_pairs([("domain", "127.0.0.1"), ("port", port), ("url1", &news)]);
    let cloud = reqwest::Client::new().post(stage.at("/rsscloud/pleaseNotify"));
    let cloud = cloud.header("content-type", "application/x-www-form-urlencoded");
    let said = cloud.body(form.finish()).send().await.unwrap().text().await.unwrap();
    assert!(said.contains("success=\"false\"") && said.contains("not public"), "{said}");
    assert!(callback.seen().is_empty(), "{:?}", callback.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_said_and_what_is_there_may_still_be_renewed() {
    let limits = "[websub]\nsubscriptions = 3\nsubscriptions_per_host = 2\n";
    let stage = Stage::with(limits).await;
    let (one, other) = (Callback::start().await, Callback::start().await);
    let news = topic("/feeds/news");
    stage.subscribes(&news, &one.url("/a"), &[]).await;
    stage.subscribes(&news, &one.url("/b"), &[]).await;
    let more = [("hub.mode", "subscribe"), ("hub.topic", &*news)];
    let (url, third) = (one.url("/c"), other.url("/c"));
    let (status, said) = stage.post(&[more[0], more[1], ("hub.callback", &url)]).await;
    assert_eq!((status.as_u16(), said.contains("limit of 2")), (503, true), "{said}");
    stage.subscribes(&news, &third, &[]).await;
    let fourth = other.url("/d");
    let (status, said) = stage.post(&[more[0], more[1], ("hub.callback", &fourth)]).await;
    assert_eq!((status.as_u16(), said.contains("limit of 3")), (503, true), "{said}");
    stage.asks(&news, &one.url("/a"), &[]).await;
    stage.settles().await;
    assert_eq!(stage.active().await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_subscriptions_and_never_what_protects_them() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let url = callback.url("/push/very-private?token=1234");
    stage.subscribes(&topic("/feeds/news"), &url, &[("hub.secret", "hush-hush")]).await;
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    stage.until("it is noted", async || stage.seen().await["delivered"] == 1).await;
    let seen = stage.seen().await;
    let of = &seen["subscriptions"][0];
    assert_eq!(of["topic"], topic("/feeds/news"));
    assert_eq!((&of["feed"], &of["state"]), (&"news".into(), &"active".into()));
    assert_eq!((&of["callback_host"], &of["signed"]), (&"127.0.0.1".into(), &true.into()));
    assert_eq!((&of["deliveries"], &of["failures"]), (&1.into(), &0.into()));
    assert!(of["lease_ends"].is_string() && of["last_delivery"].is_string(), "{of}");
    let shown = seen.to_string();
    for hidden in ["hush-hush", "very-private", "1234"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    let unasked = reqwest::get(stage.at("/api/v1/subscriptions")).await.unwrap();
    assert_eq!(unasked.status(), 401);
    let (_, _, metrics) = stage.get("/metrics").await;
    for line in [
        "tidegate_websub_subscriptions{standing=\"active\"} 1",
        "tidegate_websub_deliveries_total{outcome=\"delivered\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_hub_nothing_leads_to_one() {
    let stage = Stage::with("[websub]\nhub = false\n").await;
    let (_, headers, document) = stage.get("/feeds/news").await;
    assert!(!format!("{headers:?}").contains("websub") && !document.contains("websub"));
    let (status, said) = stage.post(&[("hub.mode", "subscribe")]).await;
    assert_eq!((status.as_u16(), said.contains("no hub here")), (404, true), "{said}");
}
