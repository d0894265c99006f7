//! What sled costs, under the rules of the store: time, bytes written and space.
//!
//! Ignored, since it takes minutes; `benches/compare/store.sh` runs each case in a process of its own and makes a
//! table.

use super::faults::{noise, open_raw};
use crate::Store;
use crate::conformance::make::{self, feed, poll_state};
use crate::engine::{Class, Engine, KeyOrder, beginning_with};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidegate_core::model::*;
use tokio::time::Instant;

/// How many feeds are written at a time where the barrier is shared.
const TOGETHER: usize = 32;

fn setting(name: &str, or: u64) -> u64 {
    let set = std::env::var(format!("TIDEGATE_MEASURE_{name}")).ok();
    set.map_or(or, |value| value.parse().unwrap())
}

fn tick(revision: u64) -> Tick {
    Tick::at(Time::from_unix(1_795_191_605 + i64::try_from(revision).unwrap()))
}

fn id(item: u64) -> SyncId {
    SyncId::new(&format!("i{item:012x}")).unwrap()
}

/// A window of items, one of which changes at each revision after the first, which brings them all.
struct Shape {
    items: u64,
    /// The bytes of an item's text.
    text: usize,
}

impl Shape {
    fn known(&self, item: u64, revision: u64) -> LedgerEntry {
        let updates = u32::try_from(revision / self.items + 1).unwrap();
        let name = format!("https://example.org/2026/11/an-entry-{item}");
        LedgerEntry {
            id: id(item),
            native_shown: name.clone(),
            published_id: name.clone(),
            title: format!("What happened on day {item}, and what was said about it"),
            link: Some(name),
            published: Some(tick(item).time()),
            updated: Some(tick(revision).time()),
            touched: revision,
            ..make::known("any", updates, tick(revision))
        }
    }

    fn version(&self, item: u64, revision: u64) -> NewVersion {
        let text = noise(self.text);
        let xml = format!("<id>{item}</id><p>{revision}</p>{text}");
        // Each item and version has a text of its own.
        let xml = xml.replace('7', &format!("{:x}", revision.wrapping_mul(2_654_435_761) % 16));
        let markup = Markup { card: Card::default(), ..make::markup(&xml) };
        NewVersion { id: id(item), markup: Some(markup), reason: "content changed".to_owned() }
    }

    fn change(&self, name: &FeedName, revision: u64) -> Change {
        let (at, base) = (tick(revision), Revision(revision - 1));
        let changed: Vec<u64> =
            if revision == 1 { (0..self.items).collect() } else { vec![revision % self.items] };
        let state = FeedState {
            revision: base,
            tick: Some(at),
            render_revision: revision,
            wire: u128::from(revision),
            ..FeedState::untouched(Format::Atom10, at.time())
        };
        let text = format!("<feed><title>{name}</title><updated>{revision}</updated></feed>");
        let order = (0..self.items).map(|item| id((item + revision) % self.items));
        Change {
            tick: Some(at),
            skeleton: Some(make::skeleton(&text)),
            order: Some(order.collect()),
            known: changed.iter().map(|item| self.known(*item, revision)).collect(),
            versions: changed.iter().map(|item| self.version(*item, revision)).collect(),
            events: vec![make::event("What happened", Some(at))],
            ..Change::of_state(name.clone(), base, at.time(), state)
        }
    }
}

/// Bytes handed to the system by this process.
fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar:")).unwrap();
    line.trim().parse().unwrap()
}

/// The blocks that files take on the disk.
fn space(path: &Path) -> u64 {
    let about = std::fs::symlink_metadata(path).unwrap();
    if !about.is_dir() {
        return about.blocks() * 512;
    }
    std::fs::read_dir(path).unwrap().map(|entry| space(&entry.unwrap().path())).sum()
}

/// The bytes of all keys and values, as the store hands them to the engine.
fn logical(engine: &dyn Engine) -> u64 {
    let mut sum = 0_usize;
    for class in Class::ALL {
        let mut range = beginning_with(&[]);
        loop {
            let found = engine.portion(*class, &range, KeyOrder::Ascending, 1000).unwrap();
            sum += found.entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            let Some((last, _)) = found.entries.last().filter(|_| found.has_more) else { break };
            range.0 = std::ops::Bound::Excluded(last.clone());
        }
    }
    sum as u64
}

fn name(number: u64) -> FeedName {
    feed(&format!("feed-{number:06}"))
}

/// Commits to each feed, by its number, the change that makes this revision; some at a time, so that they share
/// barriers.
async fn commit_together(store: &Arc<Store>, shape: &Arc<Shape>, revisions: &[u64]) {
    let feeds = Arc::new(Mutex::new(Vec::from(revisions).into_iter().zip(0..)));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..TOGETHER {
        let (store, shape, feeds) = (Arc::clone(store), Arc::clone(shape), Arc::clone(&feeds));
        writers.spawn(async move {
            let next = || feeds.lock().unwrap().next();
            while let Some((revision, number)) = next() {
                store.commit(shape.change(&name(number), revision)).await.unwrap();
            }
        });
    }
    writers.join_all().await;
}

/// Feeds that are filled, changed polls of them that each have a barrier of their own, and as many as are said that share
/// barriers; then what is on the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for minutes"]
async fn cost() {
    let (polls, together) = (setting("POLLS", 10_000), setting("TOGETHER", 60_000));
    let text = usize::try_from(setting("TEXT", 1500)).unwrap();
    let shape = Arc::new(Shape { items: setting("ITEMS", 32), text });
    let folder = tempfile::Builder::new().prefix("measure").tempdir().unwrap();
    let (store, engine) = open_raw(folder.path());
    let store = Arc::new(store);
    let mut revisions = vec![1_u64; usize::try_from(setting("FEEDS", 500)).unwrap()];
    let (mut begun, mut before) = (Instant::now(), written());
    let mut tell = |what: &str, count: u64| {
        let rate = count as f64 / begun.elapsed().as_secs_f64();
        let bytes = (written() - before) / count.max(1);
        println!("sled: {count} {what}: {rate:.0}/s, {bytes} bytes to the system each");
        (begun, before) = (Instant::now(), written());
    };
    commit_together(&store, &shape, &revisions).await;
    tell("feeds filled", revisions.len() as u64);
    for poll in 0..polls {
        let number = poll * 7919 % revisions.len() as u64;
        let revision = &mut revisions[usize::try_from(number).unwrap()];
        *revision += 1;
        store.commit(shape.change(&name(number), *revision)).await.unwrap();
        if poll % 16 == 0 {
            let state = PollState { feed: name(number), ..poll_state("any") };
            store.checkpoint(&[state]).await.unwrap();
        }
    }
    tell("changed polls, a barrier each", polls);
    // Each feed in turn, so that two changes of one feed are never made at a time.
    let mut left = usize::try_from(together).unwrap();
    while left > 0 {
        let count = left.min(revisions.len());
        let turn = &mut revisions[..count];
        turn.iter_mut().for_each(|revision| *revision += 1);
        commit_together(&store, &shape, turn).await;
        left -= count;
    }
    tell(&format!("changed polls, {TOGETHER} at a time"), together);
    let (logical, disk) = (logical(&*engine), space(folder.path()));
    let ratio = disk as f64 / logical as f64;
    println!("sled: {logical} logical bytes, {disk} on disk: {ratio:.2}");
    drop(engine);
    store.close().await.unwrap();
    drop(store);
    println!("sled: closed, {} bytes on disk", space(folder.path()));
}
