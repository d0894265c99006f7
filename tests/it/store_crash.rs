//! SIGKILL at random moments: what was acknowledged is there, and nothing is there in part.
//!
//! `TIDEGATE_STORE_KILLS` and `TIDEGATE_LARGE_KILLS` set how many times; a few where they are not set.
//! The test runs itself a second time as the writer, reads what was acknowledged from its standard
//! output, kills it, and looks at what it left.

mod large;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::SystemClock;
use tidegate_core::model::*;
use tidegate_store::*;

const WRITER: &str = "TIDEGATE_STORE_CRASH_WRITER";
const FEEDS: u64 = 4;
const ITEMS: u64 = 5;
/// Every so many revisions seal what they changed, each another item.
const SEALED: u64 = 3;
/// So many archives are kept.
const ARCHIVES: u64 = 10;

fn feed(number: u64) -> FeedName {
    FeedName::new(&format!("feed-{number}")).unwrap()
}

fn id(number: u64) -> SyncId {
    SyncId::new(&format!("item-{number}")).unwrap()
}

/// Everything that a commit writes follows from the feed and the revision.
fn tick(revision: u64) -> Tick {
    Tick::at(Time::from_unix(1_795_191_605 + i64::try_from(revision).unwrap()))
}

/// Of very different lengths, some of them cut into pieces, and hard to compress.
fn text(feed: u64, revision: u64) -> String {
    let words = 1 + revision * 7 % 13 * 400;
    (0..words).map(|word| format!("{:x} ", (word + revision) * 2_654_435_761 + feed)).collect()
}

fn markup(feed: u64, revision: u64) -> Markup {
    Markup {
        format: Format::Atom10,
        xml: text(feed, revision),
        context: Context::default(),
        slots: Slots::default(),
        card: Card::default(),
    }
}

fn skeleton(revision: u64) -> Skeleton {
    Skeleton {
        format: Format::Atom10,
        text: format!("skeleton {revision}"),
        slots: SkeletonSlots::default(),
        context: Context::default(),
        title: String::new(),
        link: None,
    }
}

fn order(revision: u64) -> Vec<SyncId> {
    (1..=revision.min(ITEMS)).map(|back| id((revision + 1 - back) % ITEMS)).collect()
}

fn known(revision: u64) -> LedgerEntry {
    let updates = Count::new(u32::try_from((revision - 1) / ITEMS + 1).unwrap()).unwrap();
    let update = Update { sequence: updates, stamp: Stamp::When(tick(revision).time()) };
    LedgerEntry {
        id: id(revision % ITEMS),
        native: "n".to_owned(),
        native_shown: "n".to_owned(),
        published_id: "p".to_owned(),
        aliases: Vec::new(),
        title: format!("revision {revision}"),
        link: None,
        enclosure: None,
        published: None,
        updated: None,
        updates,
        history: History::new(update),
        tick: tick(revision),
        noconflicts: None,
        conflicts: 0,
        origin: tidegate_core::model::Origin::default(),
        first_seen: tick(1).time(),
        came: tick(1).time(),
        standing: ItemStatus::Current,
        absence: None,
        prints: vec![(revision, revision)],
        bytes: revision,
        noise: Noise::default(),
        sse091: None,
        extras: None,
        touched: revision,
    }
}

fn state(revision: u64) -> FeedState {
    FeedState {
        revision: Revision(revision),
        tick: Some(tick(revision)),
        render_revision: revision,
        wire: u128::from(revision),
        archives: chain(revision),
        ..FeedState::untouched(Format::Atom10, tick(revision).time())
    }
}

fn archive_id(number: u64) -> ArchiveId {
    ArchiveId::new(&format!("archive{number}")).unwrap()
}

fn chain(revision: u64) -> Chain {
    let next = revision / SEALED;
    Chain {
        sealed: (next > 0).then(|| tick(next * SEALED)),
        unsealed: u32::try_from(revision % SEALED).unwrap(),
        newest: next.checked_sub(1).map(archive_id),
        first: next.saturating_sub(ARCHIVES),
        next,
        bytes: 0,
        free: 0,
    }
}

/// The items of an archive, newest first.
fn sealed(number: u64) -> Vec<SyncId> {
    let last = (number + 1) * SEALED;
    (0..SEALED).map(|back| id((last - back) % ITEMS)).collect()
}

fn seals(revision: u64) -> Vec<Seal> {
    let number = match revision % SEALED {
        0 => revision / SEALED - 1,
        _ => return Vec::new(),
    };
    let previous = number.checked_sub(1).map(archive_id);
    let (id, items) = (archive_id(number), sealed(number));
    vec![Seal { number, id, previous, upstream: "u".to_owned(), items }]
}

fn event(revision: u64) -> Event {
    Event {
        kind: EventKind::Updated,
        id: id(revision % ITEMS),
        native_id: "n".to_owned(),
        old_native_id: None,
        title: format!("revision {revision}"),
        tick: Some(tick(revision)),
        reason: "a test".to_owned(),
        at: tick(revision).time(),
        seen_gone: None,
    }
}

fn change(number: u64, revision: u64) -> Change {
    Change {
        feed: feed(number),
        base: Revision(revision - 1),
        at: tick(revision).time(),
        asked_at: None,
        tick: Some(tick(revision)),
        state: FeedState { revision: Revision(revision - 1), ..state(revision) },
        skeleton: Some(skeleton(revision)),
        order: Some(order(revision)),
        known: vec![known(revision)],
        index: IndexUpdate::NONE,
        versions: vec![NewVersion {
            id: id(revision % ITEMS),
            markup: Some(markup(number, revision)),
            reason: "a test".to_owned(),
        }],
        latest: Vec::new(),
        conflicts: Vec::new(),
        kept: None,
        seals: seals(revision),
        redacted: Vec::new(),
        evicted: Vec::new(),
        reinstated: Vec::new(),
        events: vec![event(revision)],
    }
}

fn poll(number: u64, revision: u64) -> PollState {
    PollState {
        feed: feed(number),
        url: String::new(),
        body: None,
        etag: Some(format!("\"{revision}\"")),
        last_modified: None,
        answered_by: None,
        moved_to: None,
        failures: u32::try_from(revision).unwrap(),
        last_error: None,
        refreshed: None,
        not_before: None,
        backfill: None,
        subscription: None,
        schedule: None,
        gone: 0,
        pause: None,
        interruptions: Interruptions::default(),
        overlap: Overlap::default(),
    }
}

fn open(path: &Path) -> Store {
    Store::on_disk(path, None, Arc::new(SystemClock)).unwrap()
}

/// Runs only as the second process: writes for ever, and says what was acknowledged.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(open(Path::new(&path)));
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..FEEDS {
            let store = Arc::clone(&store);
            writers.spawn(async move {
                let before = store.state(&feed(number)).await.unwrap();
                let mut revision = before.map_or(0, |state| state.revision.0);
                loop {
                    revision += 1;
                    let done = store.commit(change(number, revision)).await.unwrap();
                    assert_eq!(done.revision, Revision(revision));
                    say(&format!("ack commit {number} {revision}\n"));
                    store.checkpoint(&[poll(number, revision)]).await.unwrap();
                    say(&format!("ack poll {number} {revision}\n"));
                }
            });
        }
        writers.join_all().await;
    });
}

/// One write, so that a line that came through came through whole.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Lets the writer run until a random moment, kills it, and answers what it acknowledged.
fn run_and_kill(path: &Path, acknowledged: &mut BTreeMap<(String, u64), u64>) -> usize {
    let mut random = [0];
    getrandom::fill(&mut random).unwrap();
    let wanted = 1 + usize::from(random[0]) / 2;
    // Somewhere between two acknowledgements: within a group, a transaction or the barrier.
    let more = Duration::from_micros(u64::from(random[0]) * 100);
    run_until_killed(path, ("store_crash::writer", wanted, more), acknowledged)
}

/// Lets a writer run until it has acknowledged so much, and a while longer, and kills it.
fn run_until_killed(
    path: &Path,
    (name, wanted, more): (&str, usize, Duration),
    acknowledged: &mut BTreeMap<(String, u64), u64>,
) -> usize {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(WRITER, path)
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
    while let Some(Ok(line)) = lines.next() {
        if take(line) >= wanted {
            break;
        }
    }
    std::thread::sleep(more);
    writer.kill().unwrap();
    writer.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        take(line);
    }
    count
}

async fn verify(store: &Store, acknowledged: &BTreeMap<(String, u64), u64>) {
    let mut tail = Vec::new();
    loop {
        // One call answers a bounded number, and many kills leave more.
        let after = tail.last().map_or(Epoch(0), |sealed: &ClosedEpoch| sealed.epoch);
        let more = store.epochs_after(after, usize::MAX).await.unwrap();
        if more.is_empty() {
            break;
        }
        tail.extend(more);
    }
    let epochs: Vec<u64> = tail.iter().map(|sealed| sealed.epoch.0).collect();
    assert_eq!(epochs, (1..=store.watch_epochs().borrow().0).collect::<Vec<_>>());
    assert!(tail.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let polls = store.poll_states().await.unwrap();
    for number in 0..FEEDS {
        let told = |kind: &str| acknowledged.get(&(kind.to_owned(), number)).copied();
        let name = feed(number);
        let Some(found) = store.state(&name).await.unwrap() else {
            assert_eq!(told("commit"), None, "an acknowledged feed is gone");
            continue;
        };
        let revision = found.revision.0;
        let least = told("commit").unwrap_or(0);
        assert!((least..=least + 1).contains(&revision), "{least} acknowledged, {revision} found");
        assert_eq!(found.lineage.stretches().len(), 1, "which opening made it is chance");
        let archives = Chain { bytes: found.archives.bytes, ..chain(revision) };
        let lineage = found.lineage.clone();
        assert_eq!(found, FeedState { lineage, archives, ..state(revision) });
        verify_archives(store, number, &found).await;
        let oldest = revision.saturating_sub(ITEMS) + 1;

        let snapshot = store.snapshot(&name).await.unwrap().unwrap();
        let mut ledger = snapshot.known;
        ledger.sort_by_key(|known| known.tick);
        assert_eq!(ledger, (oldest..=revision).map(known).collect::<Vec<_>>());
        assert_eq!(snapshot.order, order(revision));

        let view = store.view(&name, Select::All).await.unwrap().unwrap();
        assert_eq!(view.skeleton, skeleton(revision));
        let bytes: Vec<_> = view.items.into_iter().map(|item| item.shared.winner.data).collect();
        assert!(bytes == (oldest..=revision).map(|at| markup(number, at)).collect::<Vec<_>>());

        for at in oldest..=revision {
            let notes = store.versions(&name, &id(at % ITEMS), VERSIONS_KEPT).await.unwrap();
            let ticks = notes.into_iter().map(|note| note.tick);
            let back = (1..=at).rev().filter(|back| back % ITEMS == at % ITEMS).map(tick);
            assert!(ticks.eq(back.take(VERSIONS_KEPT)));
        }
        let events = store.events(&name, EVENTS_KEPT).await.unwrap();
        assert!(events.into_iter().eq((1..=revision).rev().take(EVENTS_KEPT).map(event)));

        let log = tail.iter().flat_map(|sealed| &sealed.changes);
        let log = log.filter(|change| change.feed == name).map(|change| change.revision.0);
        assert!(log.eq(1..=revision), "the log of feed {number} does not tell of every change");

        let polled = polls.iter().find(|state| state.feed == name);
        let least = told("poll").unwrap_or(0);
        match polled {
            None => assert_eq!(least, 0),
            Some(state) => {
                let found = u64::from(state.failures);
                assert!((least..=revision).contains(&found), "{least} acknowledged, {found} found");
                assert_eq!(*state, poll(number, found));
            }
        }
    }
}

/// Every archive is there whole, with what its revisions changed, or dropped and empty.
async fn verify_archives(store: &Store, number: u64, state: &FeedState) {
    let name = feed(number);
    let Chain { first, next, bytes, .. } = state.archives;
    let notes = store.archives(&name, usize::MAX).await.unwrap();
    assert!(notes.iter().map(|note| note.number).eq((first..next).rev()));
    assert_eq!(notes.iter().map(|note| note.bytes).sum::<u64>(), bytes);
    for at in 0..next {
        let place = store.archive_place(&name, &archive_id(at)).await.unwrap().unwrap();
        let archive = store.archive(&name, &archive_id(at)).await.unwrap();
        assert_eq!(place.note.dropped, at < first);
        assert_eq!(archive.is_some(), at >= first);
        assert_eq!(place.next.is_some(), at + 1 < next);
        let Some(archive) = archive else { continue };
        let last = (at + 1) * SEALED;
        assert_eq!(archive.skeleton, skeleton(last));
        let ids: Vec<_> = archive.items.iter().map(|item| &item.shared.winner.id).collect();
        assert!(ids.into_iter().eq(&sealed(at)));
        let texts = archive.items.iter().map(|item| &item.shared.winner.data);
        let wanted: Vec<_> = (0..SEALED).map(|back| markup(number, last - back)).collect();
        assert!(texts.eq(&wanted));
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_torn() {
    let kills = std::env::var("TIDEGATE_STORE_KILLS").ok().and_then(|n| n.parse().ok());
    let kills: usize = kills.unwrap_or(10);
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    let mut total = 0;
    for _ in 0..kills {
        total += run_and_kill(folder.path(), &mut acknowledged);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = open(folder.path());
            verify(&store, &acknowledged).await;
            store.close().await.unwrap();
        });
    }
    assert!(total > kills, "the writer acknowledged next to nothing: {total}");
}
