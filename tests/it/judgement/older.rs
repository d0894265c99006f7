//! A window that grows below its old end: what always was there is no news.

use crate::judgement::days;
use crate::support::{Gate, SITE, atom, kinds};
use tidegate_core::model::EventKind::{self, *};
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
