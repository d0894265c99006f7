//! What an operator says of the order of a feed stands over what its documents show.

use super::support::{Gate, Post, kinds, post};
use tidegate_core::model::{EventKind, EventKind::*, Order};

/// Days in the order in which the document has them.
fn posts(days: &[u32]) -> Vec<Post> {
    days.iter().copied().map(post).collect()
}

/// What comes of an item that goes from the middle while no other does.
async fn gone(order: Order, before: &[u32], gone: u32) -> Vec<EventKind> {
    let mut gate = Gate::new().await;
    gate.options.order = order;
    gate.posts(&posts(before)).await;
    let mut after = posts(before);
    after.retain(|p| p.day != gone);
    gate.later(1);
    let mut events = kinds(&gate.posts(&after).await);
    for _ in 0..4 {
        gate.later(12);
        events.extend(kinds(&gate.same().await));
    }
    events
}

#[tokio::test]
async fn a_list_in_no_order_deletes_where_the_operator_says_how_it_runs() {
    let shuffled = [4, 8, 1, 6, 3, 7, 2, 5];
    assert_eq!(gone(Order::Auto, &shuffled, 6).await, []);
    assert_eq!(gone(Order::NewestFirst, &shuffled, 6).await, [Deleted]);
    assert_eq!(gone(Order::OldestFirst, &shuffled, 6).await, [Deleted]);
}

#[tokio::test]
async fn a_list_without_an_order_has_no_middle() {
    let sorted = [8, 7, 6, 5, 4, 3, 2, 1];
    assert_eq!(gone(Order::Auto, &sorted, 5).await, [Deleted]);
    assert_eq!(gone(Order::None, &sorted, 5).await, [Retired]);
}

#[tokio::test]
async fn the_end_at_which_items_leave_is_the_one_that_the_operator_names() {
    let same_ends = [3, 1, 4, 2];
    // The last of a list that runs newest first has slid off, the first of one that runs oldest first.
    assert_eq!(gone(Order::NewestFirst, &same_ends, 2).await, [Retired]);
    assert_eq!(gone(Order::OldestFirst, &same_ends, 3).await, [Retired]);
    assert_eq!(gone(Order::OldestFirst, &same_ends, 2).await, [Deleted]);
}

#[tokio::test]
async fn an_edited_item_that_jumps_to_the_top_pushes_nothing_out() {
    let mut gate = Gate::new().await;
    gate.options.order = Order::Updated;
    gate.posts(&posts(&[8, 7, 6, 5, 4, 3])).await;
    gate.later(1);
    // The oldest comes to the top again, and what is the oldest now slides off.
    let verdict = gate.posts(&posts(&[3, 9, 8, 7, 6, 5])).await;
    assert_eq!(kinds(&verdict), [Created, Retired]);
}
