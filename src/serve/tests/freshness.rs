//! What a gateway answers whose database other gateways write as well.

use super::*;

/// A gateway that has to look at its database before it answers.
pub(super) fn behind() -> Site {
    let site = Site::sharing();
    site.store.set_age(Some(Duration::from_secs(1)));
    site
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

#[tokio::test]
async fn each_gateway_counts_what_it_polls_and_what_is_stored() {
    let all = "{standing=\"active\"} 3";
    for (own, lines) in [
        (&["radio", "new", "still"][..], ["_polled 2", "_failing 0", "_with_gaps 0", all]),
        (&["news"], ["_polled 1", "_failing 1", "_with_gaps 1", all]),
    ] {
        let site = behind();
        for feed in ["news", "radio", "new", "still"].iter().filter(|feed| !own.contains(feed)) {
            site.polling.forget(&doubles::name(feed));
        }
        site.metrics_with(&lines.map(|line| format!("tidegate_feeds{line}"))).await;
        assert_eq!(site.store.reads_of("polls"), 0, "nothing is read for metrics");
    }
}

#[tokio::test]
async fn a_gateway_that_its_database_does_not_answer_says_so() {
    let site = Site::announcing();
    site.store.set_age(Some(Duration::from_secs(17)));
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    said.assert_shows(&["the database has not answered for 17 seconds"]);
    site.metrics_with(&["tidegate_store_up 1", "tidegate_store_takes_in 0"]).await;
    problem(site.get("/feeds/news").await, 503).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_old_is_answered_while_the_database_is_not_seen() {
    let site = behind();
    assert_eq!(site.get("/feeds/news").await.status(), 200);
    site.store.set_unseen(true);
    problem(site.get("/subscriptions.opml").await, 503).await;
    let (lines, _logging) = LoggedLines::begin();
    for path in ["/feeds/news", "/sup.json", "/changes", "/readyz", "/", "/nowhere"] {
        let answer = site.get(path).await;
        assert_eq!(header(&answer, "retry-after"), "30", "{path}");
        let said = problem(answer, 503).await["detail"].to_string();
        said.assert_shows(&["has not seen its database for "]);
    }
    assert_eq!(site.get("/healthz").await.status(), 200);
    // These are answers like any other: counted, and logged with their reason.
    let routes = ["/feeds/{name}", "/sup.json", "/changes", "/readyz", "/", "none"];
    site.metrics_with(&routes.map(|route| counted("GET", route, 503, 1))).await;
    let logged = lines.with("answered");
    assert_eq!(logged.len(), 6, "{logged:?}");
    for line in logged {
        assert!(line.contains("status=503") && line.contains("not seen its database"), "{line}");
    }
    // It may be the address of a site, and its token: nobody is led on with that.
    problem(site.get("/subscribe?token=k3Jx9QzLw8VtYp2R7mNb4cHd").await, 503).await;
    site.store.set_unseen(false);
    assert_eq!(site.get("/feeds/news").await.status(), 200);
}

/// What is known is answered at once, to a load balancer that does not wait.
#[tokio::test]
async fn a_gateway_says_without_a_look_that_its_database_is_silent() {
    let site = behind();
    site.store.set_unseen(true);
    site.store.set_age(Some(Duration::from_secs(35)));
    let before = site.store.looks();
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    said.assert_shows(&["has not answered for 35 seconds"]);
    assert_eq!(site.store.looks(), before);
    problem(site.get("/feeds/news").await, 503).await;
    assert!(site.store.looks() > before);
}

#[tokio::test]
async fn a_gateway_that_reads_its_database_no_more_says_why() {
    let site = behind();
    site.store.set_unseen(true);
    let cause = "it went back behind what was shown".to_owned();
    let stop = StoreStop { cause, since: at(-60), next_try: None, failed_tries: 0 };
    site.store.set_stop(Some(stop));
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    said.assert_shows(&["it went back behind what was shown"]);
    for path in ["/feeds/news", "/sup.json", "/"] {
        let said = problem(site.get(path).await, 503).await["detail"].to_string();
        said.assert_shows(&["/readyz says why"]);
        said.assert_lacks(&["went back"]);
    }
}
