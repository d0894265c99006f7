//! A million feeds in compressed time: the real scheduler and store over a publisher that answers at
//! once.
//!
//! Time goes on when nothing is left to do, so that an hour takes as long as its work. What is measured:
//! how long the start takes, the memory of a feed (in polling, and in the store, which is in memory here
//! and holds what else is on disk), and the processor time of a poll, nearly all of them answered 304.
//! Memory is resident memory once polling keeps as many polls of each feed as it ever does. With two
//! numbers of feeds, each of them in a process of its own, it is also the growth from one to the other.
//!
//!     cargo bench --bench schedule -- 500000 1000000

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::*;
use tidegate_judge::probe::Replies;
use tidegate_judge::record::{Observation, Verdict};
use tidegate_net::fetch::{
    AllowPrivate, Call, CallRequest, Fetch, FetchAnswer, FetchRequest, Fetched, FetchedDocument,
    LeadScope, Passing, Services, Validators,
};
use tidegate_poll::*;
use tidegate_store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const START: Time = Time::from_unix(1_795_191_605);
const INTERVAL: Duration = Duration::from_secs(600);
/// How many feeds are read at the same time while the store is filled: what polling frees of them is hardly
/// more than nothing, and not taken for what the store needs.
const BATCH: u64 = 1_000;
/// For how long what polling remembers is gathered at most before it is written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(15);
/// How long memory that was freed may take to go back to the system, in real time.
const FREED_WITHIN: Duration = Duration::from_secs(12);
/// One poll in so many finds another document.
const CHANGES: u64 = 1000;
const DOCUMENT: Bytes = Bytes::from_static(b"<feed/>");

/// A clock that goes with the runtime's.
struct CompressedClock(Instant);

impl Clock for CompressedClock {
    fn now(&self) -> Time {
        START.plus(self.0.elapsed())
    }

    fn running(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Takes every document for one of ten items.
struct Taken;

impl DocumentJudge for Taken {
    fn take_in(
        &self,
        round: &Observation<'_>,
        seen: &FetchedDocument,
        _: &SharingContext,
        _: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        let before = round.snapshot.map(|snapshot| snapshot.state.clone());
        let base = before.as_ref().map_or(Revision(0), |state| state.revision);
        let before = before.unwrap_or_else(|| FeedState::untouched(Format::Atom10, round.now));
        let state = FeedState {
            render_revision: before.render_revision + 1,
            updated_at: round.now,
            wire: seen.prints.wire,
            body: seen.prints.body,
            site: Some("https://example.org/".to_owned()),
            current: 10,
            ..before
        };
        let change = Change::of_state(round.feed.clone(), base, round.now, state);
        let verdict = Verdict { change: Some(change), ..Verdict::default() };
        Ok(Judged { verdict, full: true, entries: 10, ..Judged::default() })
    }

    fn look_again(&self, _: &Observation<'_>, _: u32) -> Result<Verdict, JudgeError> {
        Ok(Verdict::default())
    }

    fn backfill(
        &self,
        _: &Observation<'_>,
        _: &FetchedDocument,
        _: &Backfill,
        _: &LedgerReader,
    ) -> Result<Judged, JudgeError> {
        Ok(Judged::default())
    }

    fn answered(&self, _: &Observation<'_>, _: &Replies, _: u32) -> Result<Judged, JudgeError> {
        Ok(Judged::default())
    }
}

fn services() -> Services {
    let asked = Arc::new(std::sync::atomic::AtomicU64::new(1));
    let fetch = tower::service_fn(move |request: FetchRequest| {
        let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            let known = request.validators.etag.is_some() && !number.is_multiple_of(CHANGES);
            let print = u128::from(number);
            let document = FetchedDocument {
                bytes: DOCUMENT,
                content_type: None,
                url: request.url.clone(),
                prints: BodyPrints { wire: print, body: print },
                delta: false,
            };
            let answer =
                if known { FetchAnswer::NotModified } else { FetchAnswer::Document(document) };
            Ok(Fetched {
                answer,
                status: if known { 304 } else { 200 },
                validators: Validators {
                    etag: Some("W/\"5f3c-61a8e0c2\"".to_owned()),
                    last_modified: Some("Fri, 20 Nov 2026 16:20:05 GMT".to_owned()),
                    answered_by: Some(request.url.clone()),
                    given_to: 0,
                },
                freshness: None,
                final_url: request.url,
                moved_to: None,
                wire_bytes: 0,
                notes: Vec::new(),
                announced: None,
                links: tidegate_core::websub::HubLinks::default(),
                is_handed: false,
                leads: LeadScope::Allowed,
                rate_reset: None,
                page_links: Vec::new(),
            })
        }
    });
    let call = tower::service_fn(|request: CallRequest| async move { panic!("{request:?}") });
    let call = Call::new(call);
    Services { fetch: Fetch::new(fetch), call, passing: Passing::default() }
}

/// Resident memory in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Processor time of this process.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

async fn polling(
    store: &Arc<Store>,
    clock: &Arc<CompressedClock>,
) -> (Poller, CancellationToken, tokio::task::JoinHandle<()>) {
    let cancel = CancellationToken::new();
    let parts = PollerConfig {
        settings: PollSettings {
            min_interval: INTERVAL,
            max_interval: INTERVAL,
            allow_private: AllowPrivate::No,
            ..PollSettings::default()
        },
        store: Arc::clone(store),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        running: Arc::clone(clock) as Arc<dyn Clock>,
        services: services(),
        judge: Arc::new(Taken),
        hosts: HostQueue::new(),
        cancel: cancel.clone(),
    };
    let (poller, task) = Poller::start(parts).await.unwrap();
    (poller, cancel, task)
}

async fn until(poller: &Poller, polls: u64) {
    while poller.totals().polls() < polls {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Reads every feed once, so that the store knows it, with nothing left in polling.
async fn fill(store: &Arc<Store>, clock: &Arc<CompressedClock>, feeds: u64) {
    let (poller, cancel, task) = polling(store, clock).await;
    for first in (0..feeds).step_by(BATCH as usize) {
        let names = (first..feeds.min(first + BATCH))
            .map(|n| (FeedName::new(&format!("feed-of-some-name-{n}")).unwrap(), n));
        for (name, n) in names.clone() {
            let address = format!("https://host{n}.example/blog/feed.xml");
            let record = FeedRecord::new(name, address, FeedSource::File);
            store.put_feed(&record).await.unwrap();
            poller.put(record).await.unwrap();
        }
        until(&poller, feeds.min(first + BATCH)).await;
        tokio::time::sleep(WRITTEN_WITHIN).await;
        for (name, _) in names {
            poller.remove(&name).await.unwrap();
        }
    }
    cancel.cancel();
    task.await.unwrap();
}

/// Prints what so many feeds need; how many bytes of it are in polling.
async fn simulate(feeds: u64) -> u64 {
    let clock = Arc::new(CompressedClock(Instant::now()));
    let endpoint = EndpointId::own("gate").unwrap();
    let store = Store::in_memory(Some(endpoint), Arc::clone(&clock) as Arc<dyn Clock>);
    let store: Arc<Store> = Arc::new(store.unwrap());
    let empty = resident();
    fill(&store, &clock, feeds).await;
    std::thread::sleep(FREED_WITHIN);
    let stored = resident();
    let began = processor();
    let (poller, cancel, task) = polling(&store, &clock).await;
    let start = processor() - began;
    until(&poller, feeds).await;
    let (before, begun, at) = (poller.totals(), processor(), clock.running());
    let kept = u64::try_from(tidegate_status::POLLS_KEPT).unwrap();
    until(&poller, feeds * (kept + 1)).await;
    let (after, used, took) = (poller.totals(), processor() - begun, clock.running() - at);
    std::thread::sleep(FREED_WITHIN);
    let polled = resident().saturating_sub(stored);
    let polls = after.polls() - before.polls();
    let each = |bytes: u64| bytes as f64 / feeds as f64;
    println!("{feeds} feeds, one poll in {CHANGES} finds a change");
    println!("start: {:.1} s of processor time", start.as_secs_f64());
    println!("memory a feed: {:.0} B in the store (in memory)", each(stored - empty));
    println!("               {:.0} B in polling", each(polled));
    println!(
        "{polls} polls in {:.0} s: {:.1} a second",
        took.as_secs_f64(),
        polls as f64 / took.as_secs_f64()
    );
    println!(
        "processor: {:.1} µs a poll, {:.3} of one",
        used.as_secs_f64() * 1e6 / polls as f64,
        used.as_secs_f64() / took.as_secs_f64()
    );
    println!("changed {}, failed {}", after.changed - before.changed, after.failed - before.failed);
    cancel.cancel();
    task.await.unwrap();
    polled
}

/// Simulates so many feeds in a process of its own; how many bytes are in polling.
fn simulate_apart(feeds: u64) -> u64 {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program).arg(feeds.to_string()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    print!("{text}");
    text.lines().last().and_then(|line| line.strip_prefix(TOTAL)).unwrap().parse().unwrap()
}

/// What stands before the number of bytes in polling.
const TOTAL: &str = "bytes in polling: ";

fn main() {
    let numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    if let [few, many] = numbers[..] {
        let grown = simulate_apart(many) as f64 - simulate_apart(few) as f64;
        println!("growth: {:.0} B a feed in polling", grown / (many - few) as f64);
        return;
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    let polled = runtime.block_on(simulate(numbers.first().copied().unwrap_or(20_000)));
    println!("{TOTAL}{polled}");
}
