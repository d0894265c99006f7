//! What sled costs, under the rules of the store: bytes written, space, time and memory.
//!
//! Ignored, since it takes minutes; `benches/compare/store.sh` runs each case in a process of its own and makes a
//! table.

use super::DiskRequest;
use super::faults::{noise, open_raw};
use crate::Store;
use crate::conformance::make::{feed, poll_state};
use crate::engine::{Class, Engine, KeyOrder, beginning_with};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
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
        let updates = Count::new(u32::try_from(revision / self.items + 1).unwrap()).unwrap();
        let update = Update { sequence: updates, stamp: Stamp::When(tick(revision).time()) };
        let name = format!("https://example.org/2026/11/an-entry-{item}");
        LedgerEntry {
            id: id(item),
            native_shown: name.clone(),
            published_id: name.clone(),
            aliases: Vec::new(),
            title: format!("What happened on day {item}, and what was said about it"),
            link: Some(name),
            published: Some(tick(item).time()),
            updated: Some(tick(revision).time()),
            updates,
            history: History::new(update),
            tick: tick(revision),
            noconflicts: None,
            conflicts: 0,
            origin: Origin::default(),
            first_seen: tick(1).time(),
            came: tick(1).time(),
            standing: ItemStatus::Current,
            absence: None,
            prints: vec![(revision, item), (item, revision)],
            bytes: 0,
            noise: Noise::default(),
            sse091: None,
            extras: None,
            touched: revision,
        }
    }

    fn version(&self, item: u64, revision: u64) -> NewVersion {
        let text = noise(self.text);
        let xml = format!("<entry><id>{item}</id><p>{revision}</p>{text}</entry>");
        // Each item and version has a text of its own.
        let xml = xml.replace('7', &format!("{:x}", revision.wrapping_mul(2_654_435_761) % 16));
        let markup = Markup {
            format: Format::Atom10,
            xml,
            context: Context::default(),
            slots: Slots::default(),
            card: Card::default(),
        };
        NewVersion { id: id(item), markup: Some(markup), reason: "content changed".to_owned() }
    }

    fn change(&self, name: &FeedName, revision: u64) -> Change {
        let at = tick(revision);
        let changed: Vec<u64> =
            if revision == 1 { (0..self.items).collect() } else { vec![revision % self.items] };
        let state = FeedState {
            revision: Revision(revision - 1),
            tick: Some(at),
            render_revision: revision,
            wire: u128::from(revision),
            ..FeedState::untouched(Format::Atom10, at.time())
        };
        let skeleton = Skeleton {
            format: Format::Atom10,
            text: format!("<feed><title>{name}</title><updated>{revision}</updated></feed>"),
            slots: SkeletonSlots::default(),
            context: Context::default(),
            title: String::new(),
            link: None,
        };
        let event = Event {
            kind: EventKind::Updated,
            id: id(revision % self.items),
            native_id: "n".to_owned(),
            old_native_id: None,
            title: "What happened".to_owned(),
            tick: Some(at),
            reason: "content changed".to_owned(),
            at: at.time(),
            seen_gone: None,
        };
        Change {
            feed: name.clone(),
            base: Revision(revision - 1),
            at: at.time(),
            asked_at: None,
            tick: Some(at),
            state,
            skeleton: Some(skeleton),
            order: Some((0..self.items).map(|item| id((item + revision) % self.items)).collect()),
            known: changed.iter().map(|item| self.known(*item, revision)).collect(),
            versions: changed.iter().map(|item| self.version(*item, revision)).collect(),
            latest: Vec::new(),
            conflicts: Vec::new(),
            kept: None,
            seals: Vec::new(),
            redacted: Vec::new(),
            evicted: Vec::new(),
            reinstated: Vec::new(),
            events: vec![event],
            index: IndexUpdate::NONE,
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

async fn fill(store: &Arc<Store>, shape: &Arc<Shape>, feeds: u64) {
    each(store, feeds, {
        let shape = Arc::clone(shape);
        move |number| shape.change(&name(number), 1)
    })
    .await;
}

/// Commits changes, some at a time, so that they share barriers.
async fn each(
    store: &Arc<Store>,
    count: u64,
    make: impl Fn(u64) -> Change + Send + Sync + 'static,
) {
    let make = Arc::new(make);
    let next = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..TOGETHER {
        let (store, make) = (Arc::clone(store), Arc::clone(&make));
        let next = Arc::clone(&next);
        writers.spawn(async move {
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if at >= count {
                    return;
                }
                store.commit(make(at)).await.unwrap();
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
    fill(&store, &shape, feeds).await;
    let took = begun.elapsed().as_secs_f64();
    let cpu = (processor() - used).as_secs_f64() * 1e6 / feeds as f64;
    println!("sled: filled {feeds} feeds in {took:.1} s, {cpu:.0} µs of CPU each");

    let mut revisions = vec![1_u64; usize::try_from(feeds).unwrap()];
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
    let mut left = together;
    while left > 0 {
        let count = left.min(feeds);
        let (shape, now) = (Arc::clone(&shape), revisions.clone());
        each_of(&store, count, shape, now).await;
        revisions.iter_mut().take(usize::try_from(count).unwrap()).for_each(|at| *at += 1);
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

async fn each_of(store: &Arc<Store>, count: u64, shape: Arc<Shape>, revisions: Vec<u64>) {
    each(store, count, move |number| {
        let revision = revisions[usize::try_from(number).unwrap()] + 1;
        shape.change(&name(number), revision)
    })
    .await;
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
