//! A window that grows below its old end: what always was there is no news.

use crate::judgement::days;
use crate::support::{Gate, SITE, atom, kinds};
use tidegate_core::model::EventKind::{self, *};
use tidegate_core::model::Order;
use tidegate_store::Select;

/// How many readers are shown, and how many the complete feed has.
async fn sizes(gate: &Gate) -> (usize, usize) {
    (gate.reader().await.len(), gate.items(Select::All).await.len())
}

fn many(kind: EventKind, count: usize) -> Vec<EventKind> {
    vec![kind; count]
}

#[tokio::test]
async fn five_older_posts_at_once_are_no_news_and_fewer_are() {
    let mut gate = Gate::new().await;
    gate.posts(&days(11..=20)).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(6..=20)).await), many(Backfilled, 5));
    assert_eq!(sizes(&gate).await, (10, 15));
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(2..=20)).await), many(Created, 4));
    assert_eq!(sizes(&gate).await, (14, 19));
}

#[tokio::test]
async fn what_is_taken_so_stays_out_of_the_reader_view_while_it_is_listed() {
    let mut gate = Gate::new().await;
    gate.posts(&days(11..=20)).await;
    gate.later(1);
    gate.posts(&days(3..=20)).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(3..=21)).await), [Created]);
    let mut edited = days(3..=21);
    edited.last_mut().unwrap().text = "Told anew, in other words than the first time.".to_owned();
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&edited).await), [Updated]);
    assert_eq!(sizes(&gate).await, (11, 19));
    // It goes without a word as it came, and comes back so.
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(11..=21)).await), []);
    gate.later(48);
    assert_eq!(kinds(&gate.posts(&days(11..=22)).await), [Created]);
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(3..=22)).await), [Updated]);
    assert_eq!(sizes(&gate).await, (12, 20));
    // One that comes back alone is shown.
    gate.later(1);
    gate.posts(&days(11..=22)).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(10..=22)).await), [Returned]);
    assert_eq!(sizes(&gate).await, (13, 20));
}

#[tokio::test]
async fn a_deletion_above_older_posts_is_found_and_a_narrower_window_deletes_none() {
    let mut gate = Gate::new().await;
    gate.posts(&days(11..=20)).await;
    gate.later(1);
    gate.posts(&days(3..=20)).await;
    let mut without = days(3..=20);
    without.retain(|post| post.day != 11);
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&without).await), []);
    gate.later(13);
    gate.same().await;
    gate.later(13);
    assert_eq!(kinds(&gate.same().await), [Deleted]);
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(14..=20)).await), many(Retired, 2));
    gate.later(48);
    assert_eq!(kinds(&gate.same().await), []);
}

/// A document of posts without dates.
fn undated(range: std::ops::RangeInclusive<u32>) -> String {
    let mut text = atom(SITE, &days(range));
    for (begin, end) in [("<published>", "</published>"), ("<updated>", "</updated>")] {
        while let Some(from) = text.find(begin) {
            let to = text[from..].find(end).unwrap();
            text.replace_range(from..from + to + end.len(), "");
        }
    }
    text
}

#[tokio::test]
async fn undated_posts_are_older_where_the_order_is_known() {
    let mut gate = Gate::new().await;
    gate.take(&undated(11..=20)).await;
    for last in [21, 22] {
        gate.later(1);
        assert_eq!(kinds(&gate.take(&undated(11..=last)).await), [Created]);
    }
    gate.later(1);
    assert_eq!(kinds(&gate.take(&undated(3..=22)).await), many(Backfilled, 8));
    assert_eq!(sizes(&gate).await, (12, 20));
    // Nothing says there which end is the old one.
    let mut other = Gate::new().await;
    other.take(&undated(11..=20)).await;
    other.later(1);
    assert_eq!(kinds(&other.take(&undated(3..=20)).await), many(Created, 8));
}

#[tokio::test]
async fn what_slides_off_below_older_posts_is_no_deletion() {
    let mut gate = Gate::new().await;
    gate.take(&undated(13..=20)).await;
    for last in [21, 22, 23] {
        gate.later(1);
        gate.take(&undated(13..=last)).await;
    }
    gate.later(1);
    assert_eq!(kinds(&gate.take(&undated(8..=23)).await), many(Backfilled, 5));
    gate.later(1);
    assert_eq!(kinds(&gate.take(&undated(6..=23)).await), many(Created, 2));
    // The two slide off, below what readers are not shown.
    for first in [7, 8] {
        gate.later(1);
        assert!(!kinds(&gate.take(&undated(first..=first + 17)).await).contains(&Deleted));
        for _ in 0..3 {
            gate.later(13);
            assert!(!kinds(&gate.same().await).contains(&Deleted), "{first}");
        }
    }
}

#[tokio::test]
async fn a_window_that_turned_over_below_a_pinned_post_is_news() {
    let mut gate = Gate::new().await;
    gate.options.order = Order::NewestFirst;
    gate.take(&undated(11..=20)).await;
    gate.later(1);
    let pinned = undated(20..=20);
    let pinned = &pinned[pinned.find("<entry>").unwrap()..pinned.find("</feed>").unwrap()];
    let turned = undated(31..=39).replacen("<entry>", &format!("{pinned}<entry>"), 1);
    let seen = kinds(&gate.take(&turned).await);
    assert!(seen.contains(&Created) && !seen.contains(&Backfilled), "{seen:?}");
}

#[tokio::test]
async fn a_feed_that_lists_everything_shows_everything() {
    let mut gate = Gate::new().await;
    gate.options.complete = true;
    gate.posts(&days(11..=20)).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(3..=20)).await), many(Created, 8));
}

#[tokio::test]
async fn edits_of_a_few_older_posts_are_not_held() {
    let mut gate = Gate::new().await;
    gate.posts(&days(41..=50)).await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(1..=50)).await), many(Backfilled, 40));
    let mut edited = days(1..=50);
    for post in edited.iter_mut().rev().take(7) {
        post.text = format!("Told anew, in quite other words: {}", post.day);
    }
    gate.later(1);
    let verdict = gate.posts(&edited).await;
    assert_eq!((verdict.held.as_deref(), kinds(&verdict)), (None, many(Updated, 7)));
}

#[tokio::test]
async fn a_post_that_was_missed_is_news_below_the_old_end_too() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=10)).await;
    gate.later(1);
    // Eleven to nineteen came and went while nobody looked.
    let mut after = days(20..=29);
    after.push(days(10..=10).remove(0));
    gate.posts(&after).await;
    gate.later(1);
    gate.posts(&days(20..=29)).await;
    gate.later(48);
    gate.same().await;
    gate.later(1);
    assert_eq!(kinds(&gate.posts(&days(11..=29)).await), many(Created, 9));
}
