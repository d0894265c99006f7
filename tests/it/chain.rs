//! A gateway in front of a gateway: the first one tells the second which feeds have changed, by its SUP document or by
//! its hub (WebSub), and the second reads only those.

use crate::support::gateways::{Running, until};
use crate::support::prelude::*;
use crate::support::publisher::{Answer, Publisher};

const FEEDS: [&str; 2] = ["ash", "birch"];

fn says(publisher: &Publisher, feed: &str, text: &str) {
    let mut posts = days(1..=10);
    text.clone_into(&mut posts[0].text);
    publisher.set(&format!("/{feed}"), Answer::atom(&posts));
}

/// A gateway that polls when it is told to, and at the start, when every feed has a document.
async fn gateway(address: impl Fn(&str) -> String, tables: &str) -> Running {
    let feed = |feed: &str| {
        let url = address(feed);
        format!("[[feed]]\nname = \"{feed}\"\nurl = \"{url}\"\nmin_interval = \"1d\"\n")
    };
    let polling = "[polling]\nmin_interval = \"2s\"\n";
    let gateway = Running::start(&format!("{tables}\n{polling}{}", FEEDS.map(feed).concat())).await;
    for feed in FEEDS.map(name) {
        until("a document", async || gateway.store().state(&feed).await.unwrap().is_some()).await;
    }
    gateway
}

async fn why(gateway: &Running, feed: &str) -> String {
    let status = gateway.operator().status(&name(feed)).await.unwrap();
    status.polling.next.map(|next| next.reason).unwrap_or_default()
}

async fn asked(gateway: &Running) -> usize {
    let text = gateway.text("/metrics").await;
    let lines = text.lines().filter(|line| {
        line.starts_with("tidegate_http_requests_total") && line.contains("\"/feeds/{name}\"")
    });
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
}

/// Two changes of one feed arrive, at once as far as it was told of them.
async fn two_changes_arrive(publisher: &Publisher, first: &Running, second: &Running) {
    for text in ["a new text, which is another one altogether", "and then one more of that kind"] {
        says(publisher, "ash", text);
        first.poll("ash").await;
        until("the change", async || second.text("/feeds/ash").await.contains(text)).await;
    }
}

async fn publisher() -> Publisher {
    let publisher = Publisher::start().await;
    FEEDS.iter().for_each(|feed| says(&publisher, feed, "first"));
    publisher
}

/// Both at a time: what they do is wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_gateway_tells_the_second_of_a_change() {
    tokio::join!(by_its_sup_document(), by_its_hub());
}

async fn by_its_sup_document() {
    let publisher = publisher().await;
    let tables = "[sup]\nperiods = [\"1s\", \"2s\", \"1h\"]\n[websub]\nhub = false";
    let first = gateway(|feed| publisher.address(&format!("/{feed}")), tables).await;
    let at = first.address();
    let address = |feed: &str| format!("http://{at}/feeds/{feed}");
    let second = gateway(address, "[websub]\nhub = false").await;
    for feed in FEEDS {
        until("a feed that is left to its SUP document", async || {
            second.poll(feed).await;
            why(&second, feed).await.contains("its SUP document tells of changes")
        })
        .await;
    }
    let polls = asked(&first).await;
    two_changes_arrive(&publisher, &first, &second).await;
    // What is listed in the document that was read before a feed was found in it may be read once more.
    let more = asked(&first).await - polls;
    assert!((2..=2 + FEEDS.len()).contains(&more), "{more} polls, for two that are listed");
    second.stop().await;
    first.stop().await;
}

async fn by_its_hub() {
    let publisher = publisher().await;
    // SUP documents are of an hour: what arrives sooner was pushed.
    let tables = "[sup]\nperiods = [\"1h\", \"2h\"]\n[websub]\nprivate_callbacks = true";
    let first = gateway(|feed| publisher.address(&format!("/{feed}")), tables).await;
    let at = first.address();
    let second = gateway(|feed| format!("http://{at}/feeds/{feed}"), tables).await;
    let hub = async |feed: &str| second.operator().status(&name(feed)).await.unwrap().hub;
    for feed in FEEDS {
        until("a subscription", async || {
            hub(feed).await.is_some_and(|hub| hub.state == "subscribed")
        })
        .await;
    }
    let polls = asked(&first).await;
    two_changes_arrive(&publisher, &first, &second).await;
    let ash = hub("ash").await.unwrap();
    assert_eq!((ash.pushes, ash.disbelieved.count, ash.missed), (2, 0, 0), "{ash:?}");
    assert_eq!(hub("birch").await.unwrap().pushes, 0);
    assert_eq!(asked(&first).await, polls + 2, "no poll but for a push");
    assert!(why(&second, "ash").await.contains("its hub tells of changes"));
    second.stop().await;
    first.stop().await;
}
