//! What the gateway makes of what publishers do, scenario by scenario.

mod backfill;
mod came;
mod deleted_by_operator;
mod heads;
mod held;
mod holes;
mod ill_formed;
mod moved;
mod probe;
mod rivals;
mod schemes;
mod series;
mod signs;
mod stories;
use crate::support;

use support::{Gate, Post, atom, kinds, post};
use tidegate_core::model::EventKind::*;
use tidegate_store::Select;

pub fn days(range: std::ops::RangeInclusive<u32>) -> Vec<Post> {
    range.rev().map(post).collect()
}

#[tokio::test]
async fn http_to_https_is_no_news_to_readers() {
    let mut gate = Gate::new().await;
    let old = days(1..=8);
    gate.posts(&old).await;
    let before = gate.reader().await;
    let moved: Vec<Post> = old
        .iter()
        .map(|p| Post {
            id: p.id.replace("http://", "https://"),
            link: p.link.replace("http://", "https://"),
            ..p.clone()
        })
        .collect();
    gate.later(1);
    let held = gate.posts(&moved).await;
    assert!(held.held.is_some(), "a migration is held until it is confirmed");
    assert_eq!(kinds(&held), []);
    for _ in 0..4 {
        gate.later(1);
        gate.posts(&moved).await;
    }
    let events = gate.store_events().await;
    assert_eq!(events.iter().filter(|e| **e == Rekeyed).count(), 8);
    assert_eq!(events.iter().filter(|e| **e == Created).count(), 8);
    assert!(!events.contains(&Deleted) && !events.contains(&Updated));
    assert_eq!(gate.reader().await, before, "the published ids stay");
}

#[tokio::test]
async fn entries_that_share_an_id_are_told_apart_whichever_comes_first() {
    let mut gate = Gate::new().await;
    let twin = |day: u32| Post { id: "same".into(), ..post(day) };
    gate.posts(&[twin(2), twin(1)]).await;
    gate.later(1);
    let verdict = gate.posts(&[twin(3), twin(2), twin(1)]).await;
    assert_eq!(kinds(&verdict), [Created]);
    assert_eq!(verdict.events()[0].title, "The story of day 3");
}

/// Since when each item is shown as it is: (title, render revision), in the reader's order.
async fn touched(gate: &Gate) -> Vec<(u32, u64)> {
    let items = gate.items(Select::Current).await;
    let day = |title: &str| title.rsplit(' ').next().unwrap().parse().unwrap();
    items.iter().map(|i| (day(&i.shared.winner.data.card.title), i.touched)).collect()
}

/// What a reader who comes back with an earlier document must be given (RFC 3229).
#[tokio::test]
async fn every_item_says_since_when_it_is_shown_as_it_is() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=4)).await;
    assert_eq!(touched(&gate).await, [(4, 1), (3, 1), (2, 1), (1, 1)]);
    gate.posts(&days(2..=5)).await;
    assert_eq!(touched(&gate).await, [(5, 2), (4, 1), (3, 1), (2, 1)]);
    // Bytes without a version, a version, and one that comes back.
    let mut next = days(1..=5);
    next[1].extra = "<slash:comments xmlns:slash=\"urn:x\"/>".to_owned();
    next[2].text = "Told quite otherwise, so that everybody sees it.".to_owned();
    assert_eq!(kinds(&gate.posts(&next).await).len(), 2);
    assert_eq!(touched(&gate).await, [(5, 2), (4, 3), (3, 3), (2, 1), (1, 3)]);
    // Something else changes: nothing is touched.
    gate.take(&atom("http://publisher.example/new/", &next)).await;
    assert_eq!(gate.store_state().await.render_revision, 4);
    assert_eq!(touched(&gate).await, [(5, 2), (4, 3), (3, 3), (2, 1), (1, 3)]);
    assert_eq!(gate.store_state().await.deltas_from, 0, "entries told it all");
}

#[tokio::test]
async fn what_entries_cannot_tell_is_noted() {
    let mut gate = Gate::new().await;
    let mut posts = days(1..=6);
    gate.posts(&posts).await;
    // An item that changes may stand anywhere.
    posts[4].text = "Told quite otherwise, so that everybody sees it.".to_owned();
    let changed = posts.remove(4);
    posts.insert(0, changed);
    gate.posts(&posts).await;
    assert_eq!(gate.store_state().await.deltas_from, 0);
    posts.swap(2, 3);
    gate.posts(&posts).await;
    assert_eq!(gate.store_state().await.deltas_from, 3);
    posts.remove(2);
    gate.posts(&posts).await;
    assert_eq!(gate.store_state().await.deltas_from, 3, "Atom has a word for what is gone");
}
