use super::*;

/// The window moves whenever something leaves it.
#[tokio::test]
async fn of_a_view_one_document_is_kept_wherever_its_window_starts() {
    let site = Site::new();
    let mut kept = Vec::new();
    for start in [-20, -15] {
        site.store.edit("news", |feed| feed.state.window_start = Some(tick(start * DAY)));
        let begins = format!("\nsince Some({:?})\n", tick(start * DAY));
        site.text("/feeds/news/sync").await.assert_shows(&[&begins]);
        kept.push(site.app.documents.size().0);
    }
    assert!(kept[0] > 0 && kept[1] < kept[0] * 3 / 2, "{kept:?}");
    // A subscriber who was away too long gets the very document of one who asks for all.
    let late = format!("/feeds/news/sync?since={}", tick(-80 * DAY));
    let (late, all) = (site.get(&late).await, site.get("/feeds/news/sync").await);
    assert_eq!(header(&late, "etag"), header(&all, "etag"));
    // Publishers use ids twice: the one item that is deleted must not take the other along.
    // One that is shown, and one that was retired long ago.
    for bearer in ["b", "old"] {
        let site = Site::new();
        site.store.edit("news", |feed| {
            let bears = |item: &&mut Item| item.shared.winner.id == id(bearer);
            feed.items.iter_mut().find(bears).unwrap().published_id = "urn:gone".to_owned();
        });
        for view in ["/feeds/news", "/feeds/news/sync", "/feeds/news/changes"] {
            site.text(view).await.assert_lacks(&["deleted gone", "Deleted: Gone"]);
        }
    }
}

/// What is unknown, gone or not ready is in the golden answers.
#[tokio::test]
async fn a_feed_is_served_as_it_stands_and_rendered_once() {
    let site = Site::new();
    problem(site.get(&format!("/feeds/{}", "a".repeat(5000))).await, 404).await;
    for view in ["", "/sync", "/complete", "/conflicts", "/items/a"] {
        assert_eq!(site.get(&format!("/feeds/still{view}")).await.status(), 200);
    }
    for view in ["", "/sync", "/complete"] {
        assert_ne!(header(&site.get(&format!("/feeds/new{view}")).await, "retry-after"), "");
    }
    // An equal state is rendered once, and a new one again.
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
    site.text("/feeds/news").await.assert_shows(&["\nitems b a\n"]);
    // Another address shows without a commit, and another format has another media type.
    site.store.edit_record("news", |it| it.url = "https://moved.example/".to_owned());
    site.text("/feeds/news").await.assert_shows(&["\nupstream https://moved.example/\n"]);
    site.store.edit("news", |news| *news = feed(Format::Rss10));
    site.store.edit("news", |news| news.state.revision.0 += 10);
    for path in ["/feeds/news", "/feeds/news?as=rss"] {
        assert!(header(&site.get(path).await, "content-type").contains("rss"), "{path}");
    }
    // The list of feeds is the one that the store has.
    let before = site.app.directory.listing().await.unwrap();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    let same = site.app.directory.listing().await.unwrap();
    assert!(Arc::ptr_eq(&before, &same), "what is known of a list is found out once");
    site.store.edit_record("news", |it| it.standing = FeedStanding::Gone);
    assert_eq!(site.get("/feeds/news").await.status(), 410);
    // While the store fails the last good rendition is served.
    let site = Site::new();
    let before = bytes(site.get("/feeds/news").await).await;
    let tag = header(&site.get("/feeds/news").await, "etag").to_owned();
    for is_closed in [false, true] {
        site.store.mend();
        if is_closed {
            site.store.set_stop(stopped("no disk"));
        } else {
            site.store.fault(StoreFault::Reads);
        }
        assert_eq!(bytes(site.get("/feeds/news").await).await, before);
        let same = site.get_with("/feeds/news", &[("if-none-match", &tag)]).await;
        assert_eq!(same.status(), 304);
        // What was never made cannot be served, and an incremental answer must not be stale.
        let since = "/feeds/news/sync?since=2026-11-01T00:00:00Z";
        for path in ["/feeds/news/complete", since, "/feeds/radio"] {
            let answer = site.get(path).await;
            assert_ne!(header(&answer, "retry-after"), "", "{path}");
            let said = problem(answer, 503).await.to_string();
            // The inside is for the log.
            said.assert_lacks(&["no disk"]);
            assert_eq!(said.contains("opened again"), is_closed, "{path}: {said}");
        }
    }
    problem(site.get("/feeds/news/items/a").await, 503).await;
    site.store.set_stop(None);
    assert_eq!(site.get("/feeds/news/complete").await.status(), 200, "a failure is not kept");
    // A feed that changes while it is read is read anew.
    for path in ["/feeds/news/sync", "/feeds/news"] {
        let site = Site::new();
        let (store, done) = ((*site.store).clone(), std::sync::Once::new());
        let change = move || done.call_once(|| store.edit("news", |_| {}));
        site.store.at_read("frames", change);
        site.text(path).await.assert_shows(&["\ndeleted gone\n"]);
    }
}
