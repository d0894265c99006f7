//! SIGKILL at random moments: what was acknowledged is there, and nothing is there in part.
//!
//! `TIDEGATE_STORE_KILLS` and `TIDEGATE_LARGE_KILLS` set how many times; a few where they are not set.
//! The test runs itself a second time as the writer, reads what was acknowledged from its standard
//! output, kills it, and compares what it left with a store in memory that took the same documents in.

use crate::support::prelude::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use tidegate_core::clock::SystemClock;
use tidegate_judge::archive::Policy;
use tidegate_store::*;

const WRITER: &str = "TIDEGATE_STORE_CRASH_WRITER";
/// The numbers of the feeds that it writes.
const WRITTEN: &str = "TIDEGATE_STORE_CRASH_FEEDS";
const FEEDS: u64 = 4;
/// So many kills each store sees: after each, all that it has is compared.
const OF_ONE_STORE: usize = 50;
/// Items of a feed, of which each revision changes the one that was changed longest ago.
const ITEMS: u64 = 5;
/// A feed of so many items that a change takes about ten portions.
const LARGE_FEED: u64 = 9;
const LARGE_ITEMS: u64 = 1500;

fn open(path: &Path) -> Arc<Store> {
    let endpoint = EndpointId::own("gate.example").unwrap();
    Arc::new(Store::on_disk(path, Some(endpoint), Arc::new(SystemClock)).unwrap())
}

fn name(number: u64) -> FeedName {
    crate::support::name(&format!("feed-{number}"))
}

/// A gateway that takes the documents of a feed in: into this store, or into one in memory.
async fn gate(number: u64, store: Option<&Arc<Store>>) -> Gate {
    let mut gate = Gate::new().await;
    if let Some(store) = store {
        gate.store = Arc::clone(store);
    }
    gate.feed = name(number);
    gate.archives = Policy { entries: 3, kept: 4, ..Policy::default() };
    gate
}

fn time(revision: u64) -> Time {
    Time::from_unix(START + 3600 * i64::try_from(revision).unwrap())
}

/// An entry of a publisher who shares, so that nothing of it is judged: the `updates`-th version, of a revision.
fn entry(item: u64, updates: u64, revision: u64, text: &str) -> String {
    let when = time(revision);
    format!(
        "<entry><sx:sync id=\"x.{item}\" updates=\"{updates}\"><sx:history sequence=\"{updates}\" \
         when=\"{when}\" by=\"REO\"/></sx:sync><id>urn:{item}</id><title>Of revision {revision}</title>\
         <updated>{when}</updated><content>{text}</content></entry>"
    )
}

/// Of very different lengths, some of them cut into pieces, and hard to compress.
fn text(feed: u64, revision: u64) -> String {
    let words = 1 + revision * 7 % 13 * 400;
    (0..words).map(|word| format!("{:x} ", (word + revision) * 2_654_435_761 + feed)).collect()
}

/// Takes in the document of a revision, from which everything follows that is stored then.
async fn advance(gate: &mut Gate, number: u64, revision: u64) {
    let entries: String = match number {
        LARGE_FEED => (0..LARGE_ITEMS).map(|it| entry(it, revision, revision, "A text")).collect(),
        _ => (revision.saturating_sub(ITEMS) + 1..=revision)
            .rev()
            .map(|at| entry(at % ITEMS, (at - 1) / ITEMS + 1, at, &text(number, at)))
            .collect(),
    };
    gate.now = time(revision);
    gate.take(&crate::support::sharing::document("", &[entries])).await;
    assert_eq!(gate.store_state().await.revision, Revision(revision));
}

async fn revision(gate: &Gate) -> u64 {
    gate.store.state(&gate.feed).await.unwrap().map_or(0, |state| state.revision.0)
}

fn poll(number: u64, revision: u64) -> PollState {
    PollState {
        etag: Some(format!("\"{revision}\"")),
        failures: u32::try_from(revision).unwrap(),
        ..PollState::new(&name(number), "")
    }
}

/// Runs only as the second process: writes feeds for ever, and says what was acknowledged.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let feeds = std::env::var(WRITTEN).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&path));
        let writes = feeds.split(' ').map(|feed| write(&store, feed.parse().unwrap()));
        futures_util::future::join_all(writes).await;
    });
}

async fn write(store: &Arc<Store>, number: u64) {
    let mut gate = gate(number, Some(store)).await;
    for revision in revision(&gate).await + 1.. {
        let ack = |kind: &str| say(&format!("ack {kind} {number} {revision}\n"));
        if number == LARGE_FEED {
            // Somebody reads it all the while.
            let reader = store.pin(&gate.feed).await.unwrap();
            say("ack begun 0 0\n");
            advance(&mut gate, number, revision).await;
            ack("commit");
            let Some(reader) = reader else { continue };
            // It was pinned before the change, and is told so instead of being shown a mixture.
            let view = reader.view(Select::All).await;
            assert!(matches!(view, Err(StoreError::Outdated)), "{view:?}");
        } else {
            advance(&mut gate, number, revision).await;
            ack("commit");
            store.checkpoint(&[poll(number, revision)]).await.unwrap();
            ack("poll");
        }
    }
}
/// One write, so that a line that came through came through whole.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What was acknowledged: by the kind and the feed, the last revision.
type Acknowledged = BTreeMap<(String, u64), u64>;

/// Lets a writer run until it has acknowledged so much, and a while longer, and kills it.
fn run_until_killed(
    path: &Path,
    feeds: &[u64],
    (wanted, more): (usize, Duration),
    acknowledged: &mut Acknowledged,
) -> usize {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["store_crash::writer", "--exact", "--nocapture"])
        .env(WRITER, path)
        .env(WRITTEN, feeds.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut count = 0;
    let mut take = |line: String| {
        // The test harness may have begun the line with words of its own.
        let told = line.split_once("ack ").map(|(_, told)| told.split(' ').collect::<Vec<_>>());
        if let Some([kind, number, revision]) = told.as_deref() {
            let key = ((*kind).to_owned(), number.parse().unwrap());
            acknowledged.insert(key, revision.parse().unwrap());
            count += 1;
        }
        count
    };
    while take(lines.next().expect("the writer ended by itself").unwrap()) < wanted {}
    std::thread::sleep(more);
    writer.kill().unwrap();
    assert_eq!(writer.wait().unwrap().code(), None, "the writer ended by itself");
    for line in lines.map_while(Result::ok) {
        take(line);
    }
    count
}

async fn answers(gate: &Gate) -> String {
    let (store, feed) = (&gate.store, &gate.feed);
    let Snapshot { state, mut known, order, .. } = gate.snapshot().await;
    known.sort_by_key(|known| known.tick);
    let mut all = format!("{known:?}\n{order:?}\n{:?}", store.events(feed, EVENTS_KEPT).await);
    let view = store.view(feed, Select::All).await.unwrap().unwrap();
    all.push_str(&format!("\n{:?} {:?}", view.skeleton, view.items));
    for known in known.iter().take(2 * ITEMS as usize) {
        all.push_str(&format!("\n{:?}", store.versions(feed, &known.id, VERSIONS_KEPT).await));
    }
    // What takes how much room is the backend's, and which opening made a state is chance.
    for note in store.archives(feed, usize::MAX).await.unwrap() {
        let kept = store.archive(feed, &note.id).await;
        all.push_str(&format!("\n{:?} {kept:?}", ArchiveNote { bytes: 0, ..note }));
    }
    let archives = Chain { bytes: 0, ..state.archives };
    all + &format!("\n{:?}", FeedState { lineage: Default::default(), archives, ..state })
}

/// Brings the reference to what a killed writer left of a feed, and compares both; the revision.
async fn compare(store: &Arc<Store>, number: u64, reference: &mut Gate, least: u64) -> u64 {
    let left = gate(number, Some(store)).await;
    let found = revision(&left).await;
    assert!((least..=least + 1).contains(&found), "{least} acknowledged, {found} found");
    for next in revision(reference).await + 1..=found {
        advance(reference, number, next).await;
    }
    if found > 0 {
        let (left, wanted) = (answers(&left).await, answers(reference).await);
        let at = left.bytes().zip(wanted.bytes()).take_while(|(one, other)| one == other).count();
        let near =
            |text: &str| text.chars().skip(at.saturating_sub(200)).take(400).collect::<String>();
        assert!(left == wanted, "feed {number}: {} is not {}", near(&left), near(&wanted));
    }
    found
}

/// All epochs of the log, which has no gap.
async fn log(store: &Store) -> Vec<ClosedEpoch> {
    let mut log = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
    // One call answers a bounded number, and many kills leave more.
    while let Some(last) = log.last().map(|sealed| sealed.epoch)
        && let more = store.epochs_after(last, usize::MAX).await.unwrap()
        && !more.is_empty()
    {
        log.extend(more);
    }
    let epochs: Vec<u64> = log.iter().map(|sealed| sealed.epoch.0).collect();
    assert_eq!(epochs, (1..=store.watch_epochs().borrow().0).collect::<Vec<_>>());
    assert!(log.windows(2).all(|pair| pair[0].at <= pair[1].at));
    log
}

fn kills(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_torn() {
    let kills = kills("TIDEGATE_STORE_KILLS", 10);
    let feeds: Vec<u64> = (0..FEEDS).collect();
    let total = kill_writers(&feeds, kills, |_| {
        let mut random = [0];
        getrandom::fill(&mut random).unwrap();
        // Somewhere between two acknowledgements: within a group, a transaction or the barrier.
        (1 + usize::from(random[0]) / 4, Duration::from_micros(u64::from(random[0]) * 100))
    });
    assert!(total > kills, "the writer acknowledged next to nothing: {total}");
}

/// Kills inside changes that are written in portions.
#[test]
fn a_large_change_is_there_whole_or_not_at_all() {
    let kills = kills("TIDEGATE_LARGE_KILLS", 3);
    kill_writers(&[LARGE_FEED], kills, |kill| {
        // At any time of a change, which takes about a second here.
        (1 + kill % 3, Duration::from_millis((kill as u64 * 137) % 900))
    });
}

/// Kills writers of these feeds, after so many acknowledgements and a while, and compares what each left; how much
/// they acknowledged.
fn kill_writers(feeds: &[u64], kills: usize, pause: impl Fn(usize) -> (usize, Duration)) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fresh = || {
        let reference = |number: &u64| runtime.block_on(gate(*number, None));
        let references: Vec<Gate> = feeds.iter().map(reference).collect();
        (tempfile::tempdir().unwrap(), references, Acknowledged::new())
    };
    let (mut folder, mut references, mut acknowledged) = fresh();
    let mut total = 0;
    for kill in 0..kills {
        if kill > 0 && kill % OF_ONE_STORE == 0 {
            (folder, references, acknowledged) = fresh();
        }
        total += run_until_killed(folder.path(), feeds, pause(kill), &mut acknowledged);
        runtime.block_on(async {
            let store = open(folder.path());
            let (log, polls) = (log(&store).await, store.poll_states().await.unwrap());
            for (number, reference) in feeds.iter().copied().zip(&mut references) {
                let least =
                    |kind: &str| *acknowledged.get(&(kind.to_owned(), number)).unwrap_or(&0);
                let found = compare(&store, number, reference, least("commit")).await;
                let changes = log.iter().flat_map(|sealed| &sealed.changes);
                let changes = changes.filter(|change| change.feed == name(number));
                let told: Vec<u64> = changes.map(|change| change.revision.0).collect();
                assert!(told.iter().copied().eq(1..=found), "feed {number}: {told:?} of {found}");
                let polled = polls.iter().find(|state| state.feed == name(number));
                let last = polled.map_or(0, |state| u64::from(state.failures));
                assert!((least("poll")..=found).contains(&last), "{last} found");
                assert!(polled.is_none_or(|state| *state == poll(number, last)));
                // The next writer goes on from here, and may be killed before it acknowledges more.
                acknowledged.insert(("commit".to_owned(), number), found);
            }
            store.close().await.unwrap();
        });
    }
    total
}
