//! What it costs to catch up: the bytes that a returning reader or subscriber is sent when it asks
//! for a delta (`A-IM: feed`) or with `?since=`, against the whole document.
//!
//! Runs over a made-up feed always, and when it is asked for over the recorded feeds that
//! `TIDEGATE_CORPUS` names (a folder with `replay/`):
//!
//! ```text
//! TIDEGATE_CORPUS=path/to/corpus cargo test --release --test it catch_up:: -- --ignored --nocapture
//! ```

use crate::history::site;
use crate::support;

use site::{READER, SYNC, Site};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Gate, SITE, START, atom, post};
use tidegate_core::model::Time;
use tidegate_format::parse::{self, Limits};
use tidegate_replay as replay;

const DAY: u64 = 24 * 3600;
/// How often somebody comes: the least time between two visits.
const EVERY: [(&str, u64); 4] =
    [("each change", 0), ("daily", DAY), ("weekly", 7 * DAY), ("monthly", 30 * DAY)];
/// What is asked for as `Accept-Encoding`.
const ENCODINGS: [&str; 2] = ["identity", "gzip"];
/// How often a document is looked at again before the next, at most.
const LOOKS: usize = 200;

/// Who asks, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A feed reader, with a conditional request.
    Reader,
    /// The same, asking for a delta.
    ReaderDelta,
    /// A subscriber of the sync view, with a conditional request.
    Sync,
    /// The same, asking for a delta.
    SyncDelta,
    /// A subscriber that asks with the `until` it knows.
    Since,
}

const ALL: [Who; 5] = [Who::Reader, Who::ReaderDelta, Who::Sync, Who::SyncDelta, Who::Since];

/// Somebody who comes again and again.
#[derive(Default)]
struct Client {
    last: Option<Time>,
    /// The address that gave the tag, and the tag.
    known: Option<(String, String)>,
    until: String,
}

/// What a kind of client was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sent {
    bytes: u64,
    visits: u64,
    /// 304.
    same: u64,
    /// 226.
    deltas: u64,
}

impl Sent {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.visits += other.visits;
        self.same += other.same;
        self.deltas += other.deltas;
    }
}

type Sums = BTreeMap<(usize, usize, Who), Sent>;

/// Lets everybody come whose time it is.
struct Crowd {
    clients: BTreeMap<(usize, usize, Who), Client>,
    sums: Sums,
}

impl Crowd {
    fn new() -> Self {
        let mut clients = BTreeMap::new();
        for (every, _) in EVERY.iter().enumerate() {
            for (encoding, _) in ENCODINGS.iter().enumerate() {
                clients.extend(ALL.map(|who| ((every, encoding, who), Client::default())));
            }
        }
        Self { clients, sums: Sums::new() }
    }

    async fn come(&mut self, site: &Site) {
        let now = site.gate.now;
        let until = site.text(SYNC).await;
        let until = until.split_once(" until=\"").map(|(_, rest)| rest.split('"').next().unwrap());
        let until = until.unwrap_or_default().to_owned();
        for (key, client) in &mut self.clients {
            let pause = Duration::from_secs(EVERY[key.0].1);
            if client.last.is_some_and(|last| now < last.plus(pause)) {
                continue;
            }
            let sent = client.visit(site, ENCODINGS[key.1], key.2, &until).await;
            // The first visit is no return.
            if client.last.replace(now).is_some() {
                self.sums.entry(*key).or_default().add(sent);
            }
        }
    }
}

impl Client {
    async fn visit(&mut self, site: &Site, encoding: &str, who: Who, until: &str) -> Sent {
        let address = match who {
            Who::Reader | Who::ReaderDelta => READER.to_owned(),
            Who::Since if !self.until.is_empty() => format!("{SYNC}?since={}", self.until),
            Who::Sync | Who::SyncDelta | Who::Since => SYNC.to_owned(),
        };
        let mut headers = vec![("accept-encoding", encoding)];
        if let Some((_, tag)) = self.known.as_ref().filter(|(asked, _)| *asked == address) {
            headers.push(("if-none-match", tag));
        }
        if matches!(who, Who::ReaderDelta | Who::SyncDelta) {
            headers.push(("a-im", "feed"));
        }
        let (status, headers, body) = site.bytes(&address, &headers).await;
        let sent = Sent {
            bytes: body.len() as u64,
            visits: 1,
            same: u64::from(status == 304),
            deltas: u64::from(status == 226),
        };
        assert!(matches!(status, 200 | 226 | 304), "{address}: {status}");
        let tag = headers["etag"].to_str().unwrap().to_owned();
        self.known = Some((address, tag));
        until.clone_into(&mut self.until);
        sent
    }
}

/// Takes a document in, as often as it needs to be looked at until the next one comes.
async fn in_force(gate: &mut Gate, text: &str, until: Option<Time>) {
    let mut verdict = gate.take(text).await;
    let Some(until) = until else { return };
    for _ in 0..LOOKS {
        let ripens =
            gate.store.state(&gate.feed).await.unwrap().and_then(|state| state.next_decision_at);
        let next = if verdict.held.is_some() { verdict.look_again } else { ripens };
        let Some(next) = next.map(|next| next.max(gate.now.plus(Duration::from_secs(3600)))) else {
            break;
        };
        if next >= until {
            break;
        }
        gate.now = next;
        verdict = if verdict.held.is_some() { gate.take(text).await } else { gate.same().await };
    }
    gate.now = until.minus(Duration::from_secs(1)).max(gate.now);
    gate.age().await;
}

fn readable(text: &[u8]) -> Option<String> {
    let limits = Limits::default();
    let text = parse::decode(text, None, &limits).ok()?.text.into_owned();
    parse::document(&text, None, &limits).ok()?;
    Some(text)
}

/// What catching up with a series of documents costs.
async fn cost(documents: Vec<(Time, String)>) -> Sums {
    let mut site = Site::new(Gate::new().await).await;
    let mut crowd = Crowd::new();
    let times: Vec<Time> = documents.iter().map(|(time, _)| *time).collect();
    for (at, (time, text)) in documents.into_iter().enumerate() {
        site.gate.now = time;
        in_force(&mut site.gate, &text, times.get(at + 1).copied()).await;
        if site.gate.store.state(&site.gate.feed).await.unwrap().is_some() {
            crowd.come(&site).await;
        }
    }
    crowd.sums
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn part(bytes: u64, of: u64) -> String {
    format!("{:5.1} %", bytes as f64 * 100.0 / (of.max(1)) as f64)
}

fn print(sums: &Sums) {
    println!(
        "{:12} {:9} {:>7} | {:>12} {:>12} {:>7} | {:>12} {:>12} {:>7} {:>12} {:>7}",
        "comes",
        "encoding",
        "changed",
        "reader",
        "A-IM: feed",
        "",
        "sync",
        "A-IM: feed",
        "",
        "?since=",
        ""
    );
    for (every, (words, _)) in EVERY.iter().enumerate() {
        for (encoding, name) in ENCODINGS.iter().enumerate() {
            let [reader, delta, sync, sync_delta, since] =
                ALL.map(|who| sums.get(&(every, encoding, who)).copied().unwrap_or_default());
            println!(
                "{words:12} {name:9} {:7} | {:12} {:12} {} | {:12} {:12} {} {:12} {}",
                reader.visits - reader.same,
                reader.bytes,
                delta.bytes,
                part(delta.bytes, reader.bytes),
                sync.bytes,
                sync_delta.bytes,
                part(sync_delta.bytes, sync.bytes),
                since.bytes,
                part(since.bytes, sync.bytes),
            );
        }
    }
    for who in [Who::ReaderDelta, Who::SyncDelta] {
        let mut all = Sent::default();
        sums.iter().filter(|(key, _)| key.2 == who).for_each(|(_, sent)| all.add(*sent));
        let Sent { visits, same, deltas, .. } = all;
        println!("{who:?}: {deltas} of {} documents as deltas", visits - same);
    }
}

#[test]
fn a_delta_is_a_part_of_the_document() {
    let mut documents = Vec::new();
    for day in 0..60 {
        let mut posts: Vec<_> = (day + 1..=day + 15).rev().map(post).collect();
        if day % 7 == 3 {
            posts[6].text = format!("On day {day} it was told in quite other words than before.");
        }
        documents.push((Time::from_unix(START + i64::from(day) * 86_400), atom(SITE, &posts)));
    }
    let sums = block_on(cost(documents));
    print(&sums);
    for encoding in 0..ENCODINGS.len() {
        for every in 0..3 {
            let bytes = |who| sums[&(every, encoding, who)].bytes;
            assert!(bytes(Who::ReaderDelta) < bytes(Who::Reader));
            assert!(bytes(Who::SyncDelta) < bytes(Who::Sync));
            assert!(bytes(Who::Since) < bytes(Who::Sync));
        }
    }
    assert!(sums[&(0, 0, Who::ReaderDelta)].bytes * 3 < sums[&(0, 0, Who::Reader)].bytes);
}

#[test]
#[ignore = "a measurement; takes minutes"]
fn the_recorded_feeds() {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return;
    };
    let folder = PathBuf::from(corpus).join("replay");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let all = replay::read(&folders).unwrap();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(|| {
                while let Some(series) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let documents = series.documents.iter().filter_map(|recorded| {
                        let text = readable(&std::fs::read(&recorded.path).unwrap())?;
                        Some((recorded.time, text))
                    });
                    let sums = block_on(cost(documents.collect()));
                    done.lock().unwrap().insert(series.name.clone(), sums);
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    let mut total = Sums::new();
    println!("each change, identity: reader, A-IM: feed, sync, A-IM: feed, ?since=");
    for (name, sums) in &done {
        let bytes = ALL.map(|who| sums.get(&(0, 0, who)).copied().unwrap_or_default().bytes);
        println!("{name:24} {bytes:>10?}");
        for (key, sent) in sums {
            total.entry(*key).or_default().add(*sent);
        }
        // Whoever asks for less is never sent more than a little.
        for ((every, encoding, who), sent) in sums {
            let whole = match who {
                Who::ReaderDelta => sums[&(*every, *encoding, Who::Reader)],
                Who::SyncDelta => sums[&(*every, *encoding, Who::Sync)],
                _ => continue,
            };
            assert!(sent.bytes <= whole.bytes, "{name}: {who:?} {sent:?} {whole:?}");
            assert_eq!((sent.visits, sent.same), (whole.visits, whole.same), "{name}");
        }
    }
    print(&total);
    let sum = |who| total[&(1, 0, who)].bytes;
    assert!(sum(Who::ReaderDelta) < sum(Who::Reader) && sum(Who::SyncDelta) < sum(Who::Sync));
}
