//! Three processes in a ring, each polling the one before it: everybody makes items, changes and
//! deletes those of others, and all end with the same.
//!
//! `TIDEGATE_RING_ROUNDS` sets how often a ring at rest goes round; a hundred where it is not set.

use crate::support::process::{Process, free_port};
use crate::support::shared_items;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::model::{Markup, Shared, Version};

/// A version as an endpoint shows it: updates, deleted, history, title.
type Shown = (u32, bool, Vec<String>, String);

fn shown(version: &Version<Markup>) -> Shown {
    let history = version.history.iter().map(|update| format!("{update:?}")).collect();
    // A tombstone says what its publisher likes.
    let title = if version.deleted { String::new() } else { version.data.card.title.clone() };
    (version.updates.value(), version.deleted, history, title)
}

/// Everything that a gateway shares: the winner and what is in conflict, by id.
async fn items(gateway: &Process) -> BTreeMap<String, (Shown, BTreeSet<Shown>)> {
    let text = gateway.get("/feeds/list/complete").await;
    let item = |item: Shared<Markup>| {
        let conflicts = item.conflicts.iter().map(shown).collect();
        (item.winner.id.to_string(), (shown(&item.winner), conflicts))
    };
    shared_items::items(&text).into_iter().map(item).collect()
}

/// What each gateway shares, as it says it.
async fn documents(ring: &[Process]) -> Vec<String> {
    let mut documents = Vec::new();
    for gateway in ring {
        documents.push(gateway.get("/feeds/list/sync").await);
    }
    documents
}

/// Goes round until a whole round leaves what everybody shares as it was: each has then read what the one before
/// it shares. That no poll says "changed" shows less, since a gateway polls in turn as well, between two of these.
async fn settle(ring: &[Process]) {
    let mut before = Vec::new();
    for _ in 0..20 {
        for gateway in ring {
            gateway.poll("list").await;
        }
        let after = documents(ring).await;
        if after == before {
            return;
        }
        before = after;
    }
    panic!("the ring does not come to rest: {before:?}");
}

async fn same(ring: &[Process]) -> BTreeMap<String, (Shown, BTreeSet<Shown>)> {
    let first = items(&ring[0]).await;
    for gateway in &ring[1..] {
        assert_eq!(items(gateway).await, first);
    }
    first
}

async fn create(gateway: &Process, title: &str) -> String {
    let made = gateway.call(Method::POST, "/feeds/list/items", Some(json!({"title": title}))).await;
    made["sync_id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

async fn edit(gateway: &Process, id: &str, title: &str) -> Value {
    let path = format!("/feeds/list/items/{id}");
    gateway.call(Method::PUT, &path, Some(json!({"title": title}))).await
}

/// Three in a ring.
async fn ring() -> (Vec<tempfile::TempDir>, Vec<Process>) {
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let ports = [free_port().await, free_port().await, free_port().await];
    let mut ring = Vec::new();
    for (at, folder) in folders.iter().enumerate() {
        let before = ports[(at + 2) % 3];
        let name = ["a", "b", "c"][at];
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:{}\"\n[publish]\nendpoint = \"{name}.example\"\n\
             [polling]\nallow_private = true\nhost_spacing = \"0s\"\nmin_interval = \"1d\"\n\
             [websub]\nsubscribe = false\n[[feed]]\nname = \"list\"\nlocal = true\n\
             url = \"http://127.0.0.1:{before}/feeds/list/sync\"\n",
            ports[at]
        );
        std::fs::write(folder.path().join("t.toml"), config).unwrap();
        ring.push(Process::configured(folder.path()).await);
    }
    (folders, ring)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_of_processes_ends_with_the_same_and_comes_to_rest() {
    let (folders, mut ring) = ring().await;
    let [a, b, c] = [0, 1, 2];

    // Everybody makes something.
    let milk = create(&ring[a], "Buy milk").await;
    let eggs = create(&ring[a], "Buy eggs").await;
    create(&ring[b], "Mow the lawn").await;
    create(&ring[c], "Call Ray").await;
    settle(&ring).await;
    let all = same(&ring).await;
    assert_eq!(all.len(), 4);
    assert_eq!(all[&milk].0.2.len(), 1, "histories pass through untouched: {all:?}");

    // One changes another's item, one deletes another's.
    edit(&ring[b], &milk, "Buy milk and bread").await;
    ring[c].call(Method::DELETE, &format!("/feeds/list/items/{eggs}"), None).await;
    settle(&ring).await;
    let all = same(&ring).await;
    assert_eq!((all[&milk].0.0, all[&milk].0.3.as_str()), (2, "Buy milk and bread"));
    assert_eq!((all[&eggs].0.0, all[&eggs].0.1), (2, true));
    assert!(!ring[a].get("/feeds/list").await.contains("Buy eggs"));

    // Two change the same version: a conflict, which all see alike.
    edit(&ring[a], &milk, "Buy oat milk").await;
    edit(&ring[c], &milk, "Buy nothing").await;
    settle(&ring).await;
    let all = same(&ring).await;
    assert_eq!(all[&milk].1.len(), 1, "{all:?}");
    let titles = [all[&milk].0.3.as_str(), all[&milk].1.iter().next().unwrap().3.as_str()];
    assert_eq!(BTreeSet::from(titles), BTreeSet::from(["Buy oat milk", "Buy nothing"]));
    // The reader view shows the winner alone.
    assert!(!ring[b].get("/feeds/list").await.contains("conflicts"));

    // A person at the third one resolves it; nobody is asked twice.
    let path = format!("/feeds/list/items/{milk}/resolve");
    ring[b].call(Method::POST, &path, Some(json!({"keep": 0}))).await;
    settle(&ring).await;
    let all = same(&ring).await;
    assert_eq!((all[&milk].0.0, all[&milk].1.len()), (4, 0));

    // Through a kill and a restart.
    let killed = ring.remove(b);
    killed.kill().await;
    edit(&ring[0], &milk, "Buy rice milk").await;
    ring.insert(b, Process::configured(folders[b].path()).await);
    settle(&ring).await;
    assert_eq!(same(&ring).await[&milk].0.3, "Buy rice milk");

    // At rest nothing echoes: no version, no write.
    let before = documents(&ring).await;
    let rounds = std::env::var("TIDEGATE_RING_ROUNDS").ok().and_then(|n| n.parse().ok());
    for _ in 0..rounds.unwrap_or(100) {
        for gateway in &ring {
            assert_ne!(gateway.poll("list").await["outcome"], "changed");
        }
    }
    assert_eq!(documents(&ring).await, before);
    for gateway in ring {
        gateway.stop().await;
    }
}
