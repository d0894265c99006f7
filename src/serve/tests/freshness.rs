//! What a gateway answers whose database other gateways write as well.

use super::*;

/// A gateway that has to look at its database before it answers.
pub(super) fn behind() -> Site {
    let site = Site::sharing();
    site.store.set_age(Some(Duration::from_secs(1)));
    site
}

/// Why a gateway reads its database no more.
pub(super) fn unread() -> StoreStop {
    let cause = "it went back behind what was shown".to_owned();
    StoreStop { cause, since: at(-60), next_try: None, failed_tries: 0 }
}

#[tokio::test]
async fn the_overview_lists_the_gateways_of_a_database() {
    let site = behind();
    let this = KnownGateway {
        name: "process 8".to_owned(),
        is_this: true,
        polls: true,
        beat_age: Duration::from_millis(1_400),
        ..KnownGateway::default()
    };
    let other = KnownGateway {
        name: "<process> 7".to_owned(),
        is_this: false,
        polls: false,
        beat_age: Duration::from_secs(14),
        differing: vec!["publish".to_owned()],
        ..this.clone()
    };
    site.store.confirm(vec![this.clone()]);
    site.text_for_operator("/").await.assert_lacks(&["Gateways"]);
    site.store.confirm(vec![this, other]);
    site.store.announce(-1, &["news"]);
    site.store.gateways().unwrap().set_clock_ahead(-2_400);
    // It is nobody else's.
    site.text("/").await.assert_lacks(&["Gateways", "Settings differ"]);
    insta::assert_snapshot!("gateways", site.text_for_operator("/").await);
    let lines = ["tidegate_settings_differ 1", "tidegate_clock_difference_seconds -2.4"];
    site.metrics_with(&lines).await;
    site.store.gateways().unwrap().set_clock_ahead(1_900);
    site.text_for_operator("/").await.assert_lacks(&["The clock of this gateway"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_old_is_answered_while_the_database_is_not_seen() {
    let site = behind();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    site.store.set_unseen(true);
    problem(site.get("/subscriptions.opml").await, 503).await;
    for path in ["/feeds/news", "/sup.json", "/changes", "/readyz", "/", "/nowhere"] {
        let said = is_retried(site.get(path).await).await["detail"].to_string();
        said.assert_shows(&["has not seen its database for "]);
    }
    assert_eq!(site.get("/healthz").await.status(), 200);
    // These are answers like any other.
    let routes = ["/feeds/{name}", "/sup.json", "/changes", "/readyz", "/", "none"];
    site.metrics_with(&routes.map(|route| counted("GET", route, 503, 1))).await;
    // It may be the address of a site, and its token: nobody is led on with that.
    problem(site.get("/subscribe?token=k3Jx9QzLw8VtYp2R7mNb4cHd").await, 503).await;
    site.store.set_unseen(false);
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    // One that reads its database no more says where it says why.
    let site = behind();
    site.store.set_unseen(true);
    site.store.set_stop(Some(unread()));
    for path in ["/feeds/news", "/sup.json", "/"] {
        let said = problem(site.get(path).await, 503).await["detail"].to_string();
        said.assert_shows(&["/readyz says why"]);
        said.assert_lacks(&["went back"]);
    }
    // A scrape waits for no database: each gateway counts what it polls, and what is stored.
    let all = "{standing=\"active\"} 3";
    let site = Site::with(TestStore::far(), settings());
    site.store.feed_list().await.unwrap();
    let _held = site.store.hold_reads().await;
    for (others, lines) in [
        (&["radio", "new", "still"][..], ["_polled 1", "_failing 1", "_with_gaps 1", all]),
        (&["news"], ["_polled 0", "_failing 0", "_with_gaps 0", all]),
    ] {
        others.iter().for_each(|feed| site.polling.forget(&doubles::name(feed)));
        let begun = tokio::time::Instant::now();
        site.metrics_with(&lines.map(|line| format!("tidegate_feeds{line}"))).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    assert_eq!(site.store.reads_of("polls"), 0);
}
