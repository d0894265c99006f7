//! A feed that has more items than it may keep: the oldest leave its ledger and its complete view, and
//! come back as themselves.

use crate::support::prelude::*;

const LISTED: u32 = 5;
const KEPT: usize = 20;

/// A gateway behind a publisher who has published a post a day until `last`, and lists the newest.
async fn after(last: u32) -> Gate {
    let mut gate = Gate::new().await;
    gate.items = KEPT;
    for day in LISTED..=last {
        publish(&mut gate, listed(day)).await;
    }
    gate
}

/// The posts that the publisher lists on a day, the newest first.
fn listed(day: u32) -> Vec<Post> {
    (day - LISTED + 1..=day).rev().map(post).collect()
}

async fn publish(gate: &mut Gate, posts: Vec<Post>) -> tidegate_judge::record::Verdict {
    gate.later(24).posts(&posts).await
}

async fn stub(gate: &Gate, day: u32) -> Option<tidegate_core::model::LedgerEntry> {
    gate.store.stubs(&gate.feed, &[post(day).id]).await.unwrap().pop()
}

/// A document that lists posts and says that those of some days were deleted.
fn saying(posts: &[Post], withdrawn: impl IntoIterator<Item = u32>) -> String {
    with_deletions(&atom(SITE, posts), withdrawn.into_iter().map(|day| post(day).id))
}

#[tokio::test]
async fn the_oldest_retired_items_leave_and_the_ledger_is_bounded() {
    let gate = after(60).await;
    let (snapshot, state) = (gate.snapshot().await, gate.store_state().await);
    assert!(snapshot.known.len() <= KEPT + 1, "{}", snapshot.known.len());
    assert_eq!(snapshot.known.len(), usize::try_from(state.living).unwrap());
    assert_eq!(state.evictions.count, 60 - u64::from(state.living));
    assert!(state.evictions.since < state.evictions.latest);
    assert_eq!(gate.items(Select::All).await.len(), snapshot.known.len());
    assert_eq!(gate.reader().await.len(), usize::try_from(LISTED).unwrap());
    // It is the oldest that left, and nothing of them is in a view.
    let days: HashSet<String> =
        snapshot.known.iter().map(|known| known.native_shown.clone()).collect();
    assert!(!days.contains(&post(1).id) && days.contains(&post(60).id));
    let left = stub(&gate, 1).await.unwrap();
    assert_eq!(gate.store.item(&gate.feed, &left.id).await.unwrap(), None);
    assert_eq!(gate.store.known(&gate.feed, &left.id).await.unwrap(), None);
    assert_eq!(gate.store.versions(&gate.feed, &left.id, 9).await.unwrap(), []);
    // `since` rises past them, and whatever changed since then is in the complete view.
    assert!(state.complete_start > Some(left.tick));
    let start = state.complete_start.unwrap();
    let all = gate.items(Select::All).await;
    assert_eq!(gate.items(Select::After(start)).await.len(), all.len());
    assert!(state.window_start >= Some(start) && state.window_start <= state.tick);
}

#[tokio::test]
async fn what_left_comes_back_as_itself() {
    let mut gate = after(30).await;
    let left = stub(&gate, 2).await.unwrap();
    let before = gate.store_state().await;
    let mut posts = listed(30);
    posts.push(post(2));
    assert_eq!(kinds(&publish(&mut gate, posts.clone()).await), [EventKind::Returned]);
    let known = gate.known(&left.published_id).await;
    assert_eq!((&known.id, known.standing), (&left.id, ItemStatus::Current));
    assert_eq!(known.updates.value(), left.updates.value() + 1);
    assert_eq!(known.first_seen, left.first_seen);
    let state = gate.store_state().await;
    assert_eq!(Some(known.tick), state.tick);
    assert!(state.tick > before.tick);
    assert_eq!(stub(&gate, 2).await, None);
    assert_eq!(gate.reader().await.last().unwrap().1, "The story of day 2");
    // A second look finds nothing new, and it leaves again.
    assert_eq!(kinds(&publish(&mut gate, posts).await), []);
    for day in 31..=60 {
        publish(&mut gate, listed(day)).await;
    }
    let again = stub(&gate, 2).await.unwrap();
    assert_eq!((again.id, again.updates.value()), (left.id, left.updates.value() + 1));
}

/// A publisher who withdraws everything that slides off leaves no more than one who forgets it.
#[tokio::test]
async fn tombstones_leave_where_nothing_else_may() {
    let mut gate = Gate::new().await;
    gate.items = KEPT;
    for day in LISTED..=60 {
        gate.later(24);
        let withdrawn = (day > LISTED).then(|| day - LISTED);
        gate.take(&saying(&listed(day), withdrawn)).await;
    }
    let (snapshot, state) = (gate.snapshot().await, gate.store_state().await);
    assert!(state.tombstones > 5, "{state:?}");
    assert!(snapshot.known.len() <= KEPT + 1, "{}", snapshot.known.len());
    let left = stub(&gate, 1).await.unwrap();
    assert!(!left.standing.left_alive());
    assert!(state.window_start > Some(left.tick), "who has not seen it is told");
}

#[tokio::test]
async fn no_sync_id_is_given_out_twice() {
    let mut gate = after(LISTED).await;
    let mut ids: HashSet<SyncId> = HashSet::new();
    for day in LISTED..=50 {
        publish(&mut gate, listed(day)).await;
        // The ids of posts that left are in use: that of a fifth comes again, as another's.
        ids.extend(gate.snapshot().await.known.into_iter().map(|known| known.id));
    }
    assert_eq!(ids.len(), 50);
}

/// Subscribers have what only archives have here: they learn that it was deleted.
#[tokio::test]
async fn what_left_and_is_said_to_be_deleted_comes_back_as_a_tombstone() {
    let mut gate = after(40).await;
    let (left, before) = (stub(&gate, 3).await.unwrap(), gate.store_state().await);
    assert!(left.standing.left_alive());
    // Nothing has to make place for it.
    gate.items += 1;
    let verdict = gate.later(24).take(&saying(&listed(40), [3])).await;
    assert_eq!(kinds(&verdict), [EventKind::Deleted]);
    assert!(verdict.events()[0].reason.contains("says that it was deleted"));
    assert_eq!(stub(&gate, 3).await, None);

    let (known, state) = (gate.known(&left.published_id).await, gate.store_state().await);
    assert_eq!(known.id, left.id);
    assert_eq!(known.standing, ItemStatus::Deleted { since: gate.wall() });
    assert_eq!(known.updates.value(), left.updates.value() + 1);
    let sequences: Vec<u32> = known.history.iter().map(|update| update.sequence.value()).collect();
    assert_eq!(sequences, [2, 1]);
    assert_eq!((Some(known.tick), known.published), (state.tick, left.published));
    assert_eq!((state.tombstones, state.evictions.count), (1, before.evictions.count - 1));
    // In the sync view it is all that is new, in the complete view one of all, in the reader view nothing.
    let news = gate.items(Select::After(before.tick.unwrap())).await;
    assert_eq!(news.len(), 1);
    assert!(news[0].shared.winner.deleted && news[0].shared.winner.id == left.id);
    assert!(gate.items(Select::All).await.contains(&news[0]));
    assert_eq!(gate.reader().await.len(), usize::try_from(LISTED).unwrap());
    gate.restore().await;
    assert_eq!(gate.items(Select::All).await.iter().filter(|i| i.shared.winner.deleted).count(), 1);

    // It leaves as tombstones do.
    gate.later(24 * 200).age().await;
    let again = stub(&gate, 3).await.unwrap();
    assert!(!again.standing.left_alive());
    assert_eq!((&again.id, again.updates, again.tick), (&left.id, known.updates, known.tick));
    gate.later(24);
    assert_eq!(kinds(&gate.take(&saying(&listed(40), [3, 99])).await), []);
    assert_eq!(stub(&gate, 3).await, Some(again));
}

#[tokio::test]
async fn the_operator_deletes_what_left_or_takes_its_text_away() {
    let mut gate = after(40).await;
    let left = stub(&gate, 1).await.unwrap();
    let verdict = gate.delete_missing(&left.id).await.unwrap().unwrap();
    assert_eq!(kinds(&verdict), [EventKind::Deleted]);
    let known = gate.store.known(&gate.feed, &left.id).await.unwrap().unwrap();
    assert!(known.is_tombstone() && known.updates.value() == left.updates.value() + 1);
    assert_eq!(gate.delete_missing(&left.id).await, Ok(None));

    let left = stub(&gate, 3).await.unwrap();
    gate.redact_item(&left.id).await;
    assert_eq!(stub(&gate, 3).await, None);
    let known = gate.known(&left.published_id).await;
    assert!(known.is_redacted());
    for note in gate.store.archives(&gate.feed, 999).await.unwrap() {
        let archive = gate.store.archive(&gate.feed, &note.id).await.unwrap().unwrap();
        assert!(!format!("{archive:?}").contains("day 3,"));
    }
    // And it does not come back, however long its publisher lists it.
    let mut posts = listed(40);
    posts.push(post(3));
    assert_eq!(kinds(&publish(&mut gate, posts).await), []);
}

#[tokio::test]
async fn what_was_there_before_the_limit_leaves_without_a_poll() {
    let mut gate = after(KEPT as u32).await;
    gate.items = 10;
    gate.later(24);
    assert!(gate.age().await.change.is_some());
    assert_eq!(gate.snapshot().await.known.len(), 10);
    assert!(gate.age().await.change.is_none());
}
