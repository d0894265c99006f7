//! What each view shows, and how parameters and names are judged.

use super::*;

/// Checks that a view has these lines.
async fn has(site: &Site, path: &str, lines: &[&str]) -> String {
    let said = site.text(path).await;
    for line in lines {
        assert!(said.lines().any(|found| found == *line), "no line {line:?} in\n{said}");
    }
    said
}

fn since(tick: Tick) -> String {
    format!("since Some({tick:?})")
}

fn until(tick: Tick) -> String {
    format!("until Some({tick:?})")
}

/// Publishers use ids twice: the one item that is deleted must not take the other along.
#[tokio::test]
async fn an_id_that_a_living_item_bears_is_not_said_to_be_deleted() {
    // One that is shown, and one that was retired long ago.
    for bearer in ["b", "old"] {
        let site = Site::new();
        site.store.edit("news", |feed| {
            let bears = |item: &&mut Item| item.shared.winner.id == id(bearer);
            feed.items.iter_mut().find(bears).unwrap().published_id = "urn:gone".to_owned();
        });
        for view in ["/feeds/news", "/feeds/news/sync"] {
            site.text(view).await.assert_lacks(&["deleted gone"]);
        }
    }
}

/// The window moves whenever something leaves it.
#[tokio::test]
async fn of_a_view_one_document_is_kept_wherever_its_window_starts() {
    let site = Site::new();
    let mut kept = Vec::new();
    for start in [-20, -15] {
        site.store.edit("news", |feed| feed.state.window_start = Some(tick(start * DAY)));
        has(&site, "/feeds/news/sync", &[&since(tick(start * DAY))]).await;
        kept.push(site.room.documents.size().0);
    }
    assert!(kept[0] > 0 && kept[1] < kept[0] * 3 / 2, "{kept:?}");
}

#[tokio::test]
async fn the_sync_view_shows_the_window_with_tombstones_and_bounds() {
    let lines = [
        "items b gone a",
        // For those who know RFC 6721 and not SSE.
        "deleted gone",
        &since(tick(-20 * DAY)),
        &until(tick(-10)),
        // The oldest item in the window leaves it 30 days after its tick.
        &format!("expires Some({:?})", at(20 * DAY)),
        "complete https://feeds.example.org/feeds/news/complete",
        "upstream https://upstream.example/news.xml",
        "sup None",
    ];
    has(&Site::new(), "/feeds/news/sync", &lines).await;
}

#[tokio::test]
async fn since_answers_what_came_after_it_but_never_before_the_window() {
    let site = Site::new();
    let late = format!("/feeds/news/sync?since={}", tick(-80 * DAY));
    for (seen, begin, items) in [
        (tick(-5 * DAY), tick(-5 * DAY), "items a"),
        (tick(-5 * DAY - 1), tick(-5 * DAY - 1), "items gone a"),
        (tick(-10), tick(-10), "items "),
        (tick(-80 * DAY), tick(-20 * DAY), "items b gone a"),
    ] {
        let deleted = if items.contains("gone") { "deleted gone" } else { "deleted " };
        let lines = [items, deleted, &since(begin), &until(tick(-10))];
        let said = has(&site, &format!("/feeds/news/sync?since={seen}"), &lines).await;
        // An empty answer does not expire.
        assert_eq!(said.contains("expires None"), items == "items ");
    }
    // A subscriber who was away too long gets the very document of one who asks for all.
    let (late, all) = (site.get(&late).await, site.get("/feeds/news/sync").await);
    assert_eq!(header(&late, "etag"), header(&all, "etag"));
}

/// SSE 1.0 section 4.1.2 step 2: out of sync where since is greater than the cached until.
#[tokio::test]
async fn a_since_after_our_until_starts_the_subscriber_again() {
    let site = Site::new();
    let complete = "complete https://feeds.example.org/feeds/news/complete";
    let lines = ["items ", complete, &since(tick(-8)), &until(tick(-8))];
    has(&site, &format!("/feeds/news/sync?since={}", tick(-9)), &lines).await;
    let last = site.get(&format!("/feeds/news/sync?since={}", Time::MAX)).await;
    assert_eq!(problem(last, 400).await["parameter"], "since");
}

#[tokio::test]
async fn another_dialect_is_kept_in_links() {
    let (site, path) = (Site::new(), "/feeds/news/sync?sx=feedsync");
    let complete = "https://feeds.example.org/feeds/news/complete?sx=feedsync";
    headers::links(&site.get(path).await).assert_shows(&[&format!("<{complete}>")]);
    has(&site, path, &["Sync FeedSync render 5", &format!("complete {complete}")]).await;
}

/// What is unknown, gone or not ready is in the golden answers.
#[tokio::test]
async fn a_paused_feed_is_served_and_one_that_is_not_ready_is_to_be_asked_again() {
    let site = Site::new();
    problem(site.get(&format!("/feeds/{}", "a".repeat(5000))).await, 404).await;
    for view in ["", "/sync", "/complete", "/conflicts", "/items/a"] {
        assert_eq!(site.get(&format!("/feeds/still{view}")).await.status(), 200);
    }
    for view in ["", "/sync", "/complete"] {
        assert_ne!(header(&site.get(&format!("/feeds/new{view}")).await, "retry-after"), "");
    }
}

#[tokio::test]
async fn an_equal_state_is_rendered_once_and_a_new_one_again() {
    let site = Site::new();
    let tag = async || header(&site.get("/feeds/news").await, "etag").to_owned();
    let (first, reads) = (tag().await, site.store.reads_of("frames"));
    for _ in 0..5 {
        assert_eq!(tag().await, first);
    }
    assert_eq!(site.store.reads_of("frames"), reads, "a hit reads nothing");
    site.store.edit("news", |feed| {
        feed.state.render_revision += 1;
        feed.order.reverse();
    });
    assert_ne!(tag().await, first);
    has(&site, "/feeds/news", &["items b a"]).await;
}

#[tokio::test]
async fn while_the_store_fails_the_last_good_rendition_is_served() {
    let site = Site::new();
    let good = header(&site.get("/feeds/news").await, "etag").to_owned();
    site.store.fault(StoreFault::Reads);
    let answer = site.get("/feeds/news").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(&answer, "etag"), good);
    // What was never rendered cannot be served, and an incremental answer must not be stale.
    for path in ["/feeds/news/complete", "/feeds/news/sync?since=2026-11-01T00:00:00Z"] {
        let answer = site.get(path).await;
        assert_ne!(header(&answer, "retry-after"), "");
        // The inside is for the log.
        problem(answer, 503).await.to_string().assert_lacks(&["no disk"]);
    }
    site.store.mend();
    assert_eq!(site.get("/feeds/news/complete").await.status(), 200, "a failure is not kept");
}

#[tokio::test]
async fn a_feed_that_changes_while_it_is_read_is_read_anew() {
    for path in ["/feeds/news/sync", "/feeds/news"] {
        let site = Site::new();
        let (store, done) = ((*site.store).clone(), std::sync::Once::new());
        let change = move || done.call_once(|| store.edit("news", |_| {}));
        site.store.at_read("frames", change);
        has(&site, path, &["deleted gone"]).await;
    }
}

#[tokio::test]
async fn a_new_upstream_address_shows_without_a_commit() {
    let site = Site::new();
    has(&site, "/feeds/news", &["upstream https://upstream.example/news.xml"]).await;
    site.store.edit_record("news", |it| it.url = "https://moved.example/".to_owned());
    has(&site, "/feeds/news", &["upstream https://moved.example/"]).await;
}

#[tokio::test]
async fn the_list_of_feeds_is_the_one_that_the_store_has() {
    let site = Site::new();
    let before = site.room.directory.listing().await.unwrap();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    let same = site.room.directory.listing().await.unwrap();
    assert!(Arc::ptr_eq(&before, &same), "what is known of a list is found out once");
    site.store.edit_record("news", |it| it.standing = FeedStanding::Gone);
    assert_eq!(site.get("/feeds/news").await.status(), 410);
}

#[tokio::test]
async fn a_format_that_changes_takes_its_media_type_along() {
    let site = Site::new();
    assert!(header(&site.get("/feeds/news").await, "content-type").contains("atom"));
    site.store.edit("news", |news| *news = feed(Format::Rss10));
    site.store.edit("news", |news| news.state.revision.0 += 10);
    assert!(header(&site.get("/feeds/news").await, "content-type").contains("rss"));
    assert_eq!(site.get("/feeds/news?as=rss").await.status(), 200);
}

#[tokio::test]
async fn what_accept_chose_is_told_again_with_304() {
    let site = Site::new();
    for accept in ["*/*", "application/rss+xml", "application/feed+json"] {
        let answer = site.get_with("/feeds/news", &[("accept", accept)]).await;
        let asked = [("accept", accept), ("if-none-match", header(&answer, "etag"))];
        let again = site.get_with("/feeds/news", &asked).await;
        assert_eq!(again.status(), 304, "{accept}");
        assert_eq!(header(&again, "vary"), header(&answer, "vary"));
    }
}
