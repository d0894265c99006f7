//! What the store takes on the disk, for each byte of its keys and values.
//!
//! Ignored, since it takes minutes: `cargo test --release -p tidegate-store --lib -- --ignored --nocapture disk::measure`

use super::faults::{noise, open_raw};
use crate::Store;
use crate::conformance::make::{self, feed};
use crate::engine::{Class, Engine, KeyOrder, beginning_with};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tidegate_core::model::*;

/// How many feeds are written at a time.
const TOGETHER: usize = 32;
/// How many changed polls are committed, over all feeds.
const POLLS: usize = 70_000;

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

/// Commits to each feed the change that makes this revision; some at a time, so that they share barriers.
async fn commit_together(store: &Arc<Store>, shape: &Arc<Shape>, feeds: usize, revision: u64) {
    let numbers = Arc::new(Mutex::new(0..feeds));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..TOGETHER {
        let (store, shape, numbers) = (Arc::clone(store), Arc::clone(shape), Arc::clone(&numbers));
        writers.spawn(async move {
            let next = || numbers.lock().unwrap().next();
            while let Some(number) = next() {
                let name = feed(&format!("feed-{number:06}"));
                store.commit(shape.change(&name, revision)).await.unwrap();
            }
        });
    }
    writers.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for minutes"]
async fn disk_for_each_logical_byte() {
    for (feeds, items, text) in [(500, 32, 1500), (5000, 10, 160)] {
        let shape = Arc::new(Shape { items, text });
        let folder = tempfile::tempdir().unwrap();
        let (store, engine) = open_raw(folder.path());
        let store = Arc::new(store);
        // Round after round, so that two changes of one feed are never made at a time.
        for round in 0..=POLLS / feeds {
            commit_together(&store, &shape, feeds, round as u64 + 1).await;
        }
        let (logical, disk) = (logical(&*engine), space(folder.path()));
        let ratio = disk as f64 / logical as f64;
        println!("{feeds} feeds of {items} items of {text} bytes: {ratio:.2} on disk");
    }
}
