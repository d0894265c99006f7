//! What a gateway answers whose database other gateways write as well.

use super::doubles::LoggedLines;
use super::*;
use tidegate_store::{KnownGateway, StoreStop};

/// A gateway that has to look at its database before it answers.
pub(super) fn behind() -> Site {
    let site = Site::sharing();
    site.store.set_age(Some(Duration::from_secs(1)));
    site
}

/// The overview of each gateway says which there are, what each does, and where settings differ.
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
    let set = |gateways: Vec<KnownGateway>| site.store.confirm(gateways);
    let bearer = format!("Bearer {TOKEN}");
    let by_operator = [("authorization", &*bearer)];
    set(vec![this.clone()]);
    assert!(!text(site.get_with("/", &by_operator).await).await.contains("Gateways"));
    set(vec![this, other]);
    site.store.announce(-1, &["news"]);
    site.store.gateways().unwrap().set_clock_ahead(-2_400);
    // It is nobody else's.
    let page = text(site.get("/").await).await;
    assert!(!page.contains("Gateways") && !page.contains("Settings differ"), "{page}");
    let page = text(site.get_with("/", &by_operator).await).await;
    page.assert_shows(&[
        "process 8 (this one)</th><td>its part of the feeds</td>",
        "&lt;process&gt; 7</th><td>nothing</td>",
        "<td>1 second ago; it shows epoch 1</td>",
        "<td>14 seconds ago</td>",
        "The clock of this gateway is 2 seconds behind that of its database.",
        "Settings differ: the gateway &lt;process&gt; 7 has another publish.",
    ]);
    let metrics = text(site.get("/metrics").await).await;
    metrics.assert_shows(&[
        "tidegate_settings_differ 1\n",
        "tidegate_clock_difference_seconds -2.4\n",
    ]);
    site.store.gateways().unwrap().set_clock_ahead(1_900);
    let page = text(site.get_with("/", &by_operator).await).await;
    assert!(!page.contains("The clock of this gateway"), "{page}");
}

#[tokio::test]
async fn each_gateway_counts_what_it_polls_and_what_is_stored() {
    for (own, lines) in [
        (vec!["radio", "new", "still"], ["feeds_polled 2", "feeds_failing 0", "feeds_with_gaps 0"]),
        (vec!["news"], ["feeds_polled 1", "feeds_failing 1", "feeds_with_gaps 1"]),
    ] {
        let site = behind();
        for feed in ["news", "radio", "new", "still"].iter().filter(|feed| !own.contains(feed)) {
            site.polling.forget(&doubles::name(feed));
        }
        let metrics = text(site.get("/metrics").await).await;
        for line in lines.iter().chain(&["feeds{standing=\"active\"} 3"]) {
            let line = format!("tidegate_{line}");
            assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
        }
        assert_eq!(site.store.reads_of("polls"), 0, "nothing is read for metrics");
    }
}

#[tokio::test]
async fn a_gateway_that_its_database_does_not_answer_says_so() {
    let site = Site::announcing();
    site.store.set_age(Some(Duration::from_secs(17)));
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("the database has not answered for 17 seconds"), "{said}");
    let metrics = text(site.get("/metrics").await).await;
    metrics.assert_shows(&["tidegate_store_up 1\n", "tidegate_store_takes_in 0\n"]);
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
        let said = problem(answer, 503).await["detail"].as_str().unwrap().to_owned();
        assert!(said.contains("has not seen its database for "), "{path}: {said}");
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
    assert!(said.contains("has not answered for 35 seconds"), "{said}");
    assert_eq!(site.store.looks(), before);
    problem(site.get("/feeds/news").await, 503).await;
    assert!(site.store.looks() > before);
}

/// As one whose database went back. Who watches it is told why.
#[tokio::test]
async fn a_gateway_that_reads_its_database_no_more_says_why() {
    let site = behind();
    site.store.set_unseen(true);
    let cause = "it went back behind what was shown".to_owned();
    let stop = StoreStop { cause, since: at(-60), next_try: None, failed_tries: 0 };
    site.store.set_stop(Some(stop));
    let said = problem(site.get("/readyz").await, 503).await["detail"].to_string();
    assert!(said.contains("it went back behind what was shown"), "{said}");
    for path in ["/feeds/news", "/sup.json", "/"] {
        let said = problem(site.get(path).await, 503).await["detail"].to_string();
        assert!(said.contains("/readyz says why") && !said.contains("went back"), "{said}");
    }
}
