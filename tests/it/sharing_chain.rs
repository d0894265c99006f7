//! Gateways in a row, each in front of the next: what the first one makes of a plain feed passes
//! through untouched, ids, histories and tombstones.

use crate::support::gateways::{Running, gateway, items, poll};
use crate::support::prelude::*;
use crate::support::publisher::{Answer, Publisher};

async fn reader(gateway: &Running) -> Vec<String> {
    let view = gateway.store().view(&name("news"), Select::Current).await.unwrap().unwrap();
    view.items.into_iter().map(|item| item.published_id).collect()
}

async fn row(kind: &str) {
    let publisher = Publisher::start().await;
    let mut listed = days(1..=6);
    publisher.set("/feed", Answer::atom(&listed));
    let url = publisher.address("/feed");
    let more = "complete = true\ndeletions = \"eager\"\n";
    let first = gateway("one.example", &url, more).await;
    let address = |gateway: &Running| format!("http://{}/feeds/news{kind}", gateway.address());
    poll(&first).await;
    let second = gateway("two.example", &address(&first), "").await;
    poll(&second).await;
    let third = gateway("three.example", &address(&second), "").await;
    poll(&third).await;
    let mut all = [first, second, third];

    let origin = items(&all[0]).await;
    assert_eq!(origin.len(), 6);
    assert!(origin.keys().all(|id| id.starts_with("one.example.")));
    for gateway in &all {
        assert_eq!(items(gateway).await, origin);
    }
    let known = all[2].store().snapshot(&name("news")).await.unwrap().unwrap().known;
    assert!(known.iter().all(|known| known.origin == Origin::Upstream));

    // An edit, a deletion and a new post.
    listed[1].text = "Another text".to_owned();
    listed.remove(3);
    listed.insert(0, post(7));
    publisher.set("/feed", Answer::atom(&listed));
    for (gateway, seconds) in all.iter_mut().zip(1..) {
        gateway.pass(seconds);
        poll(gateway).await;
    }
    let origin = items(&all[0]).await;
    assert_eq!(origin.values().filter(|said| said.1).count(), 1, "{origin:?}");
    for gateway in &all {
        assert_eq!(items(gateway).await, origin, "{}", gateway.address());
        let readers = reader(gateway).await;
        assert!(!readers.contains(&post(3).id) && readers.len() == 6, "{readers:?}");
    }
    // What is at rest stays so: no version, no write.
    let before = states(&all).await;
    for _ in 0..5 {
        for gateway in &all {
            poll(gateway).await;
        }
    }
    assert_eq!(states(&all).await, before);
    let dead = all[2].store().snapshot(&name("news")).await.unwrap().unwrap().known;
    let dead = dead.into_iter().find(|known| known.is_deleted()).unwrap();
    assert!(matches!(dead.standing, ItemStatus::Deleted { .. }));
    assert_eq!(dead.history.len(), 2, "nobody but the first gateway has its name in it");
    for gateway in all {
        gateway.stop().await;
    }
}

async fn states(gateways: &[Running]) -> Vec<tidegate_core::model::Revision> {
    let mut revisions = Vec::new();
    for gateway in gateways {
        revisions.push(gateway.store().state(&name("news")).await.unwrap().unwrap().revision);
    }
    revisions
}

/// By the sync view and by the reader view, which has no tombstones: what it does not list any more is asked of the
/// complete feed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_in_a_row_have_the_same() {
    tokio::join!(row("/sync"), row(""));
}
