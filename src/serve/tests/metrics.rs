//! `/metrics`: what is counted, that no label names a feed or an address, and its two formats.

use super::private::{ANN, SECRET, announcing, store};
use super::*;

#[tokio::test]
async fn metrics_count_by_route_and_never_by_address() {
    let site = Site::new();
    for path in ["/feeds/news", "/feeds/news", "/feeds/secret-name", "/made-up/by-a-visitor"] {
        site.get(path).await;
    }
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
    // Who asks for OpenMetrics gets it.
    let asked = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    for (accept, is_open) in
        [("text/html,*/*;q=0.8", false), (asked, true), ("application/openmetrics-text;q=0", false)]
    {
        let answer = site.get_with("/metrics", &[("accept", accept)]).await;
        let kind = match is_open {
            true => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            false => "text/plain; version=0.0.4; charset=utf-8",
        };
        assert_eq!(header(&answer, "content-type"), kind, "{accept}");
        assert!(answer.headers().get_all("vary").iter().any(|vary| vary == "Accept"));
        let text = text(answer).await;
        assert_eq!(text.ends_with("# EOF\n"), is_open, "{accept}");
        assert_eq!(text.contains("# TYPE tidegate_polls counter\n"), is_open, "{accept}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_entrance_answers_like_all_else() {
    let change = |it: &mut ServeSettings| {
        it.public_url = "https://feeds.example.org/gate/".to_owned();
        it.server.challenge = true;
    };
    let site = Site::with(store(), with(announcing(), change));
    let page = site.get_with("/feeds/unknown", &[("accept", "text/html")]).await;
    assert_eq!(page.status(), 401);
    let page = text(page).await;
    page.assert_shows(&["href=\"/gate/assets/style.css\""]);
    page.assert_lacks(&["=\"/assets"]);
    let led = site.get(&format!("/feeds/{SECRET}?token={ANN}")).await;
    assert_eq!((led.status().as_u16(), header(&led, "cache-control")), (308, "private, no-cache"));
    let paths = (0..8).map(|n| format!("/t/0123456789abcdef0123456789abcd{n:02}/feeds/news"));
    let paths: Vec<String> = paths.collect();
    let guesses = paths.iter().map(|path| site.get(path));
    let guesses = futures_util::future::join_all(guesses).await;
    let refused = guesses.iter().filter(|guess| guess.status() == 429).count();
    let refused = u32::try_from(refused).unwrap();
    assert!(refused > 0);
    let lines = [(401, "/feeds/{name}", 1), (308, "none", 1), (429, "none", refused)];
    let lines = lines.map(|(status, route, number)| counted("GET", route, status, number));
    site.metrics_with(&lines).await;
}
