//! `/metrics`: what is counted, that no label names a feed or an address, and its two formats.

use super::private::{ANN, SECRET, announcing, store};
use super::*;

#[tokio::test]
async fn metrics_count_by_route_and_never_by_address() {
    let site = Site::new();
    let _ = site.get("/feeds/news").await;
    let _ = site.get("/feeds/news").await;
    let _ = site.get("/feeds/secret-name").await;
    let _ = site.get("/made-up/by-a-visitor").await;
    let _ = site.ask(request("BREW", "/feeds/news", &[], "")).await;
    let _ = site.call("POST", "/feeds/nobody/poll", "").await;
    let _ = site.call("PATCH", "/feeds/news", "").await;
    let _ = site.call("GET", "/made-up", "").await;
    let requests = [
        counted("GET", "/feeds/{name}", 200, 2),
        counted("GET", "/feeds/{name}", 404, 1),
        counted("other", "/feeds/{name}", 405, 1),
        counted("POST", "/api/v1/feeds/{name}/poll", 404, 1),
        counted("PATCH", "/api/v1/feeds/{name}", 400, 1),
    ];
    site.metrics_with(&requests).await;
    // How feeds and polls are counted, a snapshot shows (`golden.rs`).
    let caches = ["tidegate_cache_hits_total 1", "tidegate_cache_misses_total 1"];
    site.metrics_with(&caches).await.assert_lacks(&["secret-name", "made-up", "BREW"]);
}

#[tokio::test(start_paused = true)]
async fn a_database_that_does_not_answer_keeps_no_scrape_waiting() {
    let site = Site::over(TestStore::far());
    site.store.feed_list().await.unwrap();
    let _held = site.store.hold_reads().await;
    for feed in ["news", "new", "still"] {
        site.polling.forget(&doubles::name(feed));
    }
    let begun = tokio::time::Instant::now();
    let figures = ["_polled 1", "{standing=\"active\"} 3", "_in_conflict 0"];
    site.metrics_with(&figures.map(|figure| format!("tidegate_feeds{figure}"))).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn metrics_come_as_open_metrics_to_those_who_ask_for_it() {
    let site = Site::new();
    let asked = |accept| request("GET", "/metrics", &[("accept", accept)], "");
    for (accept, media_type, is_open) in [
        ("text/html,*/*;q=0.8", "text/plain; version=0.0.4; charset=utf-8", false),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            true,
        ),
        ("application/openmetrics-text;q=0", "text/plain; version=0.0.4; charset=utf-8", false),
    ] {
        let answer = site.ask(asked(accept)).await;
        assert_eq!(answer.headers()["content-type"], media_type, "{accept}");
        let vary: Vec<_> = answer.headers().get_all("vary").iter().collect();
        assert!(vary.iter().any(|vary| *vary == "Accept"), "{vary:?}");
        let text = text(answer).await;
        assert_eq!(text.ends_with("# EOF\n"), is_open, "{accept}");
        assert_eq!(text.contains("# TYPE tidegate_polls counter\n"), is_open, "{accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_entrance_answers_like_all_else() {
    let public_url = "https://feeds.example.org/gate/".to_owned();
    let challenge = true;
    let site = Arc::new(Site::with(
        store(),
        with(announcing(), |it| (it.public_url, it.server.challenge) = (public_url, challenge)),
    ));
    let page = site.get_with("/feeds/unknown", &[("accept", "text/html")]).await;
    assert_eq!(page.status(), 401);
    let page = text(page).await;
    page.assert_shows(&["href=\"/gate/assets/style.css\""]);
    page.assert_lacks(&["=\"/assets"]);
    let led = site.get(&format!("/feeds/{SECRET}?token={ANN}")).await;
    assert_eq!(led.status(), 308);
    assert_eq!(header(&led, "cache-control"), "private, no-cache");
    let mut guesses = Vec::new();
    for guess in 0..8 {
        let site = Arc::clone(&site);
        let path = format!("/t/0123456789abcdef0123456789abcd{guess:02}/feeds/news");
        guesses.push(tokio::spawn(async move { site.get(&path).await.status() }));
    }
    let mut refused = 0;
    for guess in guesses {
        refused += u32::from(guess.await.unwrap() == 429);
    }
    assert!(refused > 0);
    let lines = [(401, "/feeds/{name}", 1), (308, "none", 1), (429, "none", refused)];
    let lines = lines.map(|(status, route, number)| counted("GET", route, status, number));
    site.metrics_with(&lines).await;
}
