//! What is answered while the store is closed after a failure, and while its disk is nearly full.

use super::*;

const CAUSE: &str = "the store could not make a write durable: /data: no space left";

/// Who was told of the change, or got it from another gateway, would take the older document for the newest.
#[tokio::test]
async fn nothing_older_than_what_is_published_is_served_while_the_store_is_closed() {
    let site = Site::new();
    let before = site.get("/feeds/news").await;
    let tag = header(&before, "etag").to_owned();
    site.store.edit("news", |feed| {
        feed.state.render_revision += 1;
        feed.order.reverse();
    });
    site.store.set_stop(stopped(CAUSE));
    let conditional = [("if-none-match", &*tag)];
    for headers in [&conditional[..], &conditional[..0]] {
        is_retried(site.get_with("/feeds/news", headers).await).await;
    }
    site.store.set_stop(None);
    assert_ne!(header(&site.get("/feeds/news").await, "etag"), tag);
    // Who watches the gateway is told.
    assert_eq!(site.get("/").await.status(), 200);
    site.store.set_stop(stopped(CAUSE));
    site.metrics_with(&["tidegate_store_up 0", "tidegate_store_takes_in 0"]).await;
    site.text("/").await.assert_shows(&["no space left", "/feeds/news"]);
    // Also where nothing was ever read.
    let early = Site::new();
    early.store.set_stop(stopped(CAUSE));
    early.text("/metrics").await;
    early.text("/").await;
    // Low space is told and keeps nobody from reading.
    let site = Site::new().with_hub().await;
    site.store.edit_record("radio", |record| record.options.sharing.local = true);
    site.polling.start().await;
    site.store.set_free(100 << 20);
    for path in ["/readyz", "/"] {
        site.text(path).await.assert_shows(&["100.0 MiB", "256.0 MiB", "store.min_free"]);
    }
    let lines = ["up 1", "takes_in 0", "free_bytes 104857600", "min_free_bytes 268435456"];
    site.metrics_with(&lines.map(|line| format!("tidegate_store_{line}"))).await;
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    // Nothing is taken in, and what takes nothing in is done.
    let json = ("content-type", "application/json");
    for (method, path, body, status) in [
        ("PUT", "/feeds/second", "{\"local\": true}", 507),
        ("POST", "/feeds/radio/items", "{\"title\": \"Two\"}", 507),
        ("PUT", "/feeds/radio/items/a", "{\"title\": \"Changed\"}", 507),
        ("POST", "/feeds/news/poll", "", 507),
        ("DELETE", "/feeds/radio/items/a", "", 200),
    ] {
        let answer = site.call_with(method, path, &[json], body).await;
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(text(answer).await.contains("store.min_free"), status == 507, "{path}");
    }
    let topic = "hub.mode=subscribe&hub.topic=https://feeds.example.org/feeds/news";
    let subscribes = format!("{topic}&hub.callback=http://s.example/");
    let refused = site.ask(request("POST", "/websub", &[FORM], &subscribes)).await;
    is_retried(refused).await["detail"].as_str().unwrap().assert_shows(&["store.min_free"]);
}

#[tokio::test(start_paused = true)]
async fn sup_goes_on_from_what_is_in_memory() {
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    site.text("/sup.json").await;
    // An epoch that cannot be read any more, for a period that nobody has asked for yet.
    site.store.announce(-1, &["radio"]);
    site.store.set_stop(stopped(CAUSE));
    tokio::time::advance(Duration::from_secs(60)).await;
    for path in ["/sup.json", "/sup.json?seconds=300"] {
        let document = tidegate_core::sup::read(site.text(path).await.as_bytes()).unwrap();
        assert_eq!(document.updates.len(), 1, "{path}");
        assert!(document.updated < at(0), "{path}");
    }
    let early = Site::announcing();
    early.store.set_stop(stopped(CAUSE));
    early.store.announce(-2, &["news"]);
    problem(early.get("/sup.json").await, 503).await;
    // It claims no time at which the store was closed: the database may answer again, and have an epoch that this gateway
    // knows nothing of before its store is open again.
    let site = Site::announcing();
    site.store.announce(-2, &["news"]);
    site.text("/sup.json").await;
    for (now, stop, updated) in [(200, stopped(CAUSE), at(-1)), (400, None, at(399))] {
        site.clock.set(at(now));
        site.store.set_stop(stop);
        tokio::time::advance(Duration::from_secs(60)).await;
        let document = tidegate_core::sup::read(site.text("/sup.json").await.as_bytes()).unwrap();
        assert_eq!(document.updated, updated);
    }
}

/// A gateway that is not ready is alive all the same.
#[tokio::test]
async fn who_watches_the_gateway_is_told_why_it_is_not_ready() {
    fn site(site: Site, change: impl FnOnce(&Site)) -> Site {
        change(&site);
        site
    }
    let silent = site(freshness::behind(), |site| {
        site.store.set_unseen(true);
        site.store.set_age(Some(Duration::from_secs(35)));
    });
    let unread = site(freshness::behind(), |site| {
        site.store.set_unseen(true);
        site.store.set_stop(Some(freshness::unread()));
    });
    for (site, words) in [
        (site(Site::new(), |site| site.closing.cancel()), &["shutting down"][..]),
        (
            site(Site::new(), |site| site.store.set_stop(stopped(CAUSE))),
            &["no space left", "2026-11-20T16:19:05Z", "2026-11-20T16:20:10Z", "3 tries"],
        ),
        (
            site(Site::announcing(), |site| site.store.set_age(Some(Duration::from_secs(17)))),
            &["the database has not answered for 17 seconds"],
        ),
        (silent, &["has not answered for 35 seconds"]),
        (unread, &["it went back behind what was shown"]),
    ] {
        let looks = site.store.looks();
        let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
        said.assert_shows(words);
        // What is known is answered at once, to a load balancer that does not wait.
        assert!(!said.contains("35 seconds") || site.store.looks() == looks, "{said}");
        assert_eq!(site.get("/healthz").await.status(), 200);
    }
}
