//! The first document of a new address.

use crate::judgement::days;
use crate::support::{Gate, Post, SITE, atom, kinds, post};
use tidegate_core::model::EventKind::*;

#[tokio::test]
async fn a_new_address_of_another_feed_is_held() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=6)).await;
    gate.url = "http://publisher.example/comments".to_owned();
    gate.later(1);
    // Its items are newer, and of the same site: at the old address they would be a busy feed's.
    let comments = |range: std::ops::Range<u32>| -> Vec<Post> {
        let comment = |day| Post {
            id: format!("http://publisher.example/c/{day}"),
            title: format!("Re {day}"),
            link: format!("http://publisher.example/c/{day}"),
            text: format!("I do not agree with number {day}."),
            ..post(day)
        };
        range.rev().map(comment).collect()
    };
    let verdict = gate.posts(&comments(20..26)).await;
    assert!(verdict.held.as_deref().is_some_and(|h| h.starts_with("other-feed")), "{verdict:?}");
    // A part of it does not go around that, and the right address ends it without a trace.
    let whole = atom(SITE, &comments(20..26));
    assert!(gate.take(&whole[..whole.len() / 2]).await.held.is_some());
    gate.url = "http://publisher.example/feed".to_owned();
    assert_eq!(kinds(&gate.posts(&days(1..=6)).await), []);
    assert_eq!(gate.reader().await.len(), 6);
}

#[tokio::test]
async fn a_plain_move_of_the_address_waits_for_nothing() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=8)).await;
    gate.url = "https://www.publisher.example/feed".to_owned();
    let to = |text: &str| text.replace("http://", "https://www.");
    let moved: Vec<Post> =
        days(2..=9).into_iter().map(|p| Post { id: to(&p.id), link: to(&p.link), ..p }).collect();
    let verdict = gate.posts(&moved).await;
    assert_eq!(verdict.held, None);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Rekeyed).count(), 7);
    assert_eq!(kinds(&verdict).iter().filter(|k| **k == Created).count(), 1);
    assert!(!kinds(&verdict).contains(&Deleted) && !kinds(&verdict).contains(&Updated));
}
