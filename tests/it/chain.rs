//! A gateway in front of a gateway: the second asks the first which feeds have changed (SUP), and
//! reads only those; or it is told by the first one's hub (WebSub).
//!
//! `TIDEGATE_CHAIN_FEEDS` sets how many feeds; a hundred where it is not set.

use crate::e2e::support::{Answer, Publisher};
use crate::support::gateways::{Running, until};
use crate::support::{SITE, atom, post};
use std::time::Duration;
use tidegate::app::Gateway;
use tidegate_core::model::FeedName;

/// Longer than a poll waits that a document calls for: five seconds, ten where the last one found nothing.
const QUIET: Duration = Duration::from_secs(12);
/// The words of the schedule for a feed whose changes its SUP document tells of.
const LEFT: &str = "its SUP document tells of changes";

/// A feed of ten posts, with this text in the newest.
fn document(text: &str) -> String {
    let mut posts: Vec<_> = (1..=10).rev().map(post).collect();
    text.clone_into(&mut posts[0].text);
    atom(SITE, &posts)
}

/// A publisher of these feeds, whose newest post says what is set here.
async fn publisher(feeds: &[String]) -> Publisher {
    let publisher = Publisher::start().await;
    for feed in feeds {
        says(&publisher, feed, "first");
    }
    publisher
}

fn says(publisher: &Publisher, feed: &str, text: &str) {
    publisher.set(&format!("/{feed}"), Answer::document("application/atom+xml", document(text)));
}

async fn gateway(feeds: &[String], address: impl Fn(&str) -> String, tables: &str) -> Running {
    let mut text = format!("{tables}\n[polling]\nmin_interval = \"2s\"\n");
    for feed in feeds {
        let url = address(feed);
        text.push_str(&format!("[[feed]]\nname = \"{feed}\"\nurl = \"{url}\"\n"));
        // Where there are some, it polls when it is told to, and at the start.
        if !tables.is_empty() {
            text.push_str("min_interval = \"1d\"\n");
        }
    }
    Running::start(&text).await
}

fn name(feed: &str) -> FeedName {
    FeedName::new(feed).unwrap()
}

/// Waits until every feed has a document.
async fn ready(gateway: &Gateway, feeds: &[String]) {
    for feed in feeds {
        let name = name(feed);
        until("a document", async || gateway.store().state(&name).await.unwrap().is_some()).await;
    }
}

async fn why(gateway: &Gateway, feed: &str) -> String {
    let status = gateway.operator().status(&name(feed)).await.unwrap();
    status.polling.next.map(|next| next.reason).unwrap_or_default()
}

/// How often a route of a gateway was asked.
async fn asked(gateway: &Running, route: &str) -> u64 {
    let text = gateway.text("/metrics").await;
    let of_route = format!("route=\"{route}\"");
    let lines = text.lines().filter(|line| {
        line.starts_with("tidegate_http_requests_total") && line.contains(&of_route)
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

const FEED_ROUTE: &str = "/feeds/{name}";
const SUP_ROUTE: &str = "/sup.json";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_gateway_asks_once_a_period_and_reads_what_changed() {
    let count = std::env::var("TIDEGATE_CHAIN_FEEDS").ok().and_then(|n| n.parse().ok());
    let feeds: Vec<String> = (0..count.unwrap_or(100)).map(|n| format!("feed-{n}")).collect();
    let publisher = publisher(&feeds).await;
    let first = gateway(
        &feeds,
        |feed| publisher.address(&format!("/{feed}")),
        "[sup]\nperiods = [\"1s\", \"2s\", \"1h\"]\n[websub]\nhub = false",
    )
    .await;
    ready(&first, &feeds).await;
    let at = first.address();
    let tables = "[websub]\nhub = false";
    let second = gateway(&feeds, |feed| format!("http://{at}/feeds/{feed}"), tables).await;
    ready(&second, &feeds).await;
    // One more poll of each after the SUP document was read, and it is left to that.
    until("the SUP document", async || asked(&first, SUP_ROUTE).await > 0).await;
    for feed in &feeds {
        until("a feed that is left to its SUP document", async || {
            second.operator().poll_now(&name(feed)).await.unwrap();
            why(&second, feed).await.contains(LEFT)
        })
        .await;
    }

    // A document that was read before a feed was found in it remembers nothing of that feed: the next
    // may list it once more, as long as its window reaches back.
    until("what is listed was read", async || {
        let before = asked(&first, FEED_ROUTE).await;
        tokio::time::sleep(QUIET).await;
        asked(&first, FEED_ROUTE).await == before
    })
    .await;

    // Nothing changes for ten periods: ten requests.
    let (feeds_asked, sup_asked) =
        (asked(&first, FEED_ROUTE).await, asked(&first, SUP_ROUTE).await);
    until("ten more SUP documents", async || asked(&first, SUP_ROUTE).await >= sup_asked + 10)
        .await;
    assert_eq!(asked(&first, FEED_ROUTE).await, feeds_asked, "no feed was asked for");

    // Two change: both are read soon, and nothing else is.
    let sup_asked = asked(&first, SUP_ROUTE).await;
    for feed in [&feeds[3], &feeds[7]] {
        says(&publisher, feed, "a new text, which is another one altogether");
        first.operator().poll_now(&name(feed)).await.unwrap();
    }
    for feed in [&feeds[3], &feeds[7]] {
        let published = format!("http://{}/feeds/{feed}", second.address());
        until("the change", async || {
            let text = reqwest::get(&published).await.unwrap().text().await.unwrap();
            text.contains("a new text, which is another one altogether")
        })
        .await;
    }
    let documents = asked(&first, SUP_ROUTE).await - sup_asked;
    assert!(documents <= 3, "it took {documents} documents");
    until("both feeds were read", async || asked(&first, FEED_ROUTE).await >= feeds_asked + 2)
        .await;
    assert_eq!(asked(&first, FEED_ROUTE).await, feeds_asked + 2);
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_gateways_hub_tells_the_second_of_a_change() {
    let feeds: Vec<String> = ["ash", "birch"].map(str::to_owned).into();
    let publisher = publisher(&feeds).await;
    // SUP documents are of an hour: what arrives sooner was pushed.
    let tables = "[sup]\nperiods = [\"1h\", \"2h\"]\n[websub]\nprivate_callbacks = true";
    let first = gateway(&feeds, |feed| publisher.address(&format!("/{feed}")), tables).await;
    ready(&first, &feeds).await;
    let at = first.address();
    let second = gateway(&feeds, |feed| format!("http://{at}/feeds/{feed}"), tables).await;
    ready(&second, &feeds).await;
    let hub = async |feed: &str| second.operator().status(&name(feed)).await.unwrap().hub;
    for feed in &feeds {
        until("a subscription", async || {
            hub(feed).await.is_some_and(|hub| hub.state == "subscribed")
        })
        .await;
    }
    let polls = asked(&first, FEED_ROUTE).await;
    for text in ["a new text, which is another one altogether", "and then one more of that kind"] {
        says(&publisher, "ash", text);
        first.operator().poll_now(&name("ash")).await.unwrap();
        let published = format!("http://{}/feeds/ash", second.address());
        until("the change", async || {
            reqwest::get(&published).await.unwrap().text().await.unwrap().contains(text)
        })
        .await;
    }
    let ash = hub("ash").await.unwrap();
    assert_eq!((ash.pushes, ash.disbelieved.count, ash.missed), (2, 0, 0), "{ash:?}");
    assert_eq!(hub("birch").await.unwrap().pushes, 0);
    assert_eq!(asked(&first, FEED_ROUTE).await, polls + 2, "no poll but for a push");
    assert!(why(&second, "ash").await.contains("its hub tells of changes"));
    second.stop().await;
    first.stop().await;
}
