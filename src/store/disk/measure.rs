//! What sled costs, under the rules of the store: bytes written, space, time and memory.
//!
//! Ignored, since it takes minutes; `benches/compare/store.sh` runs each case in a process of its own and makes a
//! table.

use super::DiskRequest;
use super::faults::{noise, open_raw};
use crate::Store;
use crate::conformance::make::{self, feed, poll_state};
use crate::engine::{Class, Engine, KeyOrder, beginning_with};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
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

/// Bytes handed to the system by this process, and those of pages that became dirty.
fn written() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    (number("wchar:"), number("write_bytes:"))
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The processor's time that this process took.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
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
    let feeds = Arc::new(Mutex::new(revisions.to_vec().into_iter().zip(0..)));
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

/// Changed polls, each with a barrier of its own; then polls that share barriers until a million records were
/// written; then what is on the disk, and how long opening takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for minutes"]
async fn cost() {
    let (feeds, polls) = (setting("FEEDS", 500), setting("POLLS", 10_000));
    let together = setting("TOGETHER", 60_000);
    let text = usize::try_from(setting("TEXT", 1500)).unwrap();
    let shape = Arc::new(Shape { items: setting("ITEMS", 32), text });
    let folder = tempfile::Builder::new().prefix("measure").tempdir().unwrap();
    let (store, engine) = open_raw(folder.path());
    let store = Arc::new(store);
    let (begun, used) = (Instant::now(), processor());
    let mut revisions = vec![1_u64; usize::try_from(feeds).unwrap()];
    commit_together(&store, &shape, &revisions).await;
    let took = begun.elapsed().as_secs_f64();
    let cpu = (processor() - used).as_secs_f64() * 1e6 / feeds as f64;
    println!("sled: filled {feeds} feeds in {took:.1} s, {cpu:.0} µs of CPU each");

    let (before, begun, used) = (written(), Instant::now(), processor());
    for poll in 0..polls {
        let number = poll * 7919 % feeds;
        let revision = &mut revisions[usize::try_from(number).unwrap()];
        *revision += 1;
        store.commit(shape.change(&name(number), *revision)).await.unwrap();
        let state = PollState { feed: name(number), ..poll_state("any") };
        if poll % 16 == 0 {
            store.checkpoint(&[state]).await.unwrap();
        }
    }
    let took = begun.elapsed().as_secs_f64();
    let cpu = (processor() - used).as_secs_f64() * 1e6 / polls.max(1) as f64;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = written();
    let each = |of: u64| of / polls.max(1);
    println!(
        "sled: {polls} changed polls, a barrier each: {:.0}/s, {cpu:.0} µs of CPU, {} bytes to the \
         system, {} bytes of dirty pages",
        polls as f64 / took,
        each(after.0 - before.0),
        each(after.1 - before.1)
    );

    // Each feed in turn, so that two changes of one feed are never made at a time.
    let (before, begun) = (written(), Instant::now());
    let mut left = usize::try_from(together).unwrap();
    while left > 0 {
        let count = left.min(revisions.len());
        let turn = &mut revisions[..count];
        turn.iter_mut().for_each(|revision| *revision += 1);
        commit_together(&store, &shape, turn).await;
        left -= count;
    }
    let took = begun.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = written();
    let of = together.max(1);
    println!(
        "sled: {together} changed polls, {TOGETHER} at a time: {:.0}/s, {} bytes to the system, {} bytes \
         of dirty pages",
        together as f64 / took,
        (after.0 - before.0) / of,
        (after.1 - before.1) / of
    );
    let (logical, disk) = (logical(&*engine), space(folder.path()));
    println!(
        "sled: {logical} logical bytes, {disk} on disk: {:.2}; {} MiB resident",
        disk as f64 / logical as f64,
        resident() >> 20
    );
    drop(engine);
    store.close().await.unwrap();
    drop(store);
    println!("sled: closed, {} bytes on disk", space(folder.path()));
    if setting("KEEP", 0) == 1 {
        println!("kept {}", folder.keep().display());
    }
}

/// Opens a store that [`cost`] kept.
#[test]
#[ignore = "needs a store that was kept"]
fn opening() {
    let path = std::env::var("TIDEGATE_MEASURE_FOLDER").unwrap();
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let (begun, used) = (Instant::now(), processor());
    let request = DiskRequest::new(Path::new(&path), None);
    let store = Store::open_on_disk(request, clock).unwrap();
    println!(
        "sled: opened in {:.2} s, {:.2} s of CPU, {} MiB resident",
        begun.elapsed().as_secs_f64(),
        (processor() - used).as_secs_f64(),
        resident() >> 20
    );
    drop(store);
}
