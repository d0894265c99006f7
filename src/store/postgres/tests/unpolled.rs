//! For how long nobody has polled the shards that a gateway takes.

use super::polls::{two_that_poll, until, until_held};
use super::{OTHER_NODE, SHORT_LEASE, open, open_for};
use crate::testing::{TestSchema, sql};
use crate::{SHARDS, Shard, Store};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many shards each of two gateways has.
pub(super) fn half() -> usize {
    usize::from(SHARDS) / 2
}

/// A gateway on its own that was killed, and was started again much later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_takes_shards_knows_since_when_nobody_has_polled_them() {
    let Some(schema) = TestSchema::new() else { return };
    open(&schema).unwrap().close().await.unwrap();
    // It had half of them; the others were given back, who knows when.
    schema.sql(&OTHER_NODE.replace("AHEAD", "-600000"));
    schema.sql("UPDATE tidegate_node SET polls = true");
    schema.sql(&format!("UPDATE tidegate_shard SET owner = NULL WHERE shard > {}", half()));
    // Looks that are a third of a lease apart say nothing of the time between them.
    let gateway = open_for(&schema.url, SHORT_LEASE * 3).unwrap();
    let shards = gateway.poll_shards().await.unwrap().unwrap();
    until_held(&[&shards], &[usize::from(SHARDS)]).await;
    let unpolled = |number: usize| {
        shards.unpolled_for(Shard::numbered(i32::try_from(number).unwrap()).unwrap())
    };
    let minutes = |count: u64| Duration::from_secs(60 * count);
    for number in [1, half()] {
        let found = unpolled(number);
        assert!(found.is_some_and(|it| it > minutes(10) && it < minutes(11)), "{found:?}");
    }
    assert_eq!(unpolled(half() + 1), Some(Duration::MAX));
    gateway.close().await.unwrap();
}

/// It goes on with what it knows, unless it takes nothing in for long and another gateway polls.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_whose_store_has_stopped_keeps_its_shards_for_a_while() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], [first, second]) = two_that_poll(&schema).await;
    let (all, kept) = (usize::from(SHARDS), first.held());
    first.note_stop(true);
    sleep(SHORT_LEASE / 2).await;
    first.note_stop(false);
    sleep(SHORT_LEASE).await;
    assert_eq!(first.held(), kept);
    first.note_stop(true);
    until_held(&[&first, &second], &[0, all]).await;
    first.note_stop(false);
    until_held(&[&first, &second], &[half(), half()]).await;
    // Where it is alone, it has them all the time, and says that it polls nothing.
    follower.close().await.unwrap();
    until_held(&[&first], &[all]).await;
    let kept = first.held();
    first.note_stop(true);
    let says = "SELECT 1 FROM tidegate_node WHERE NOT polls";
    until(Instant::now() + SHORT_LEASE * 3, || sql(&schema.url, says) == 1).await;
    sleep(SHORT_LEASE).await;
    assert_eq!(first.held(), kept);
    writer.close().await.unwrap();
}

/// What a gateway asked before the others took it for dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_forgotten_gateway_asked_for_is_not_taken_up() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], _) = two_that_poll(&schema).await;
    schema.sql(
        "INSERT INTO tidegate_request (node, number, asked_at, body, once_until) \
        SELECT asks.node, 1000000, beat_at, 'what is no request', NULL FROM tidegate_node n, \
        LATERAL (VALUES (n.node), (7)) AS asks (node) WHERE n.node <> \
        (SELECT owner FROM tidegate_shard WHERE shard = 0)",
    );
    let taken = |node: &str| {
        let taken = format!("SELECT 1 FROM tidegate_request WHERE taken > 0 AND node {node} 7");
        sql(&schema.url, &taken)
    };
    until(Instant::now() + SHORT_LEASE, || taken("<>") == 1).await;
    assert_eq!(taken("="), 0);
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}
