//! What a document costs on its way through: decode and parse, judge and record, render.
//!
//! `cargo bench` measures over invented documents of realistic shape; with `TIDEGATE_CORPUS` set to
//! a folder with `single/` also over the real documents there. Throughput is of the documents'
//! decoded bytes. At the end stands how parsing compares with feed-rs, which keeps less.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::string_slice)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    BodyPrints, EndpointId, FeedName, FeedOptions, Snapshot, Time, VERSIONS_PER_DAY,
};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, Container, Dialect, HistoryPlace, Page, ViewKind};
use tidegate_judge::archive;
use tidegate_judge::record::{self, Observation};
use tidegate_store::{Store, Select, Store, View};

const PARAGRAPH: &str = "&lt;p&gt;The keeper noted the wind, the &lt;a href=\"https://light.example/log?utm_source=rss\"&gt;log&lt;/a&gt; and the ships, &amp;amp; wound the clock.&lt;/p&gt;\n";

/// An Atom feed of `entries` entries with about 4 KB of HTML each; `edited` has one changed text.
fn atom(entries: usize, edited: bool) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:media=\"http://search.yahoo.com/mrss/\">\n<title>The light</title><id>urn:light</id>\
         <link href=\"https://light.example/\"/><updated>2026-01-01T00:00:00Z</updated>\n",
    );
    for n in (0..entries).rev() {
        let text = PARAGRAPH.repeat(24);
        let more = if edited && n == entries / 2 { " Corrected." } else { "" };
        let (day, hour) = (1 + n / 24 % 28, n % 24);
        let _ = write!(
            xml,
            "<entry>\n <id>tag:light.example,2026:{n}</id>\n <title>Watch {n}</title>\n \
             <link rel=\"alternate\" href=\"https://light.example/{n}\"/>\n \
             <published>2026-01-{day:02}T{hour:02}:00:00Z</published>\n \
             <updated>2026-01-{day:02}T{hour:02}:00:00Z</updated>\n \
             <media:thumbnail url=\"https://light.example/{n}.jpg\"/>\n \
             <content type=\"html\">{text}{more}</content>\n</entry>\n"
        );
    }
    xml + "</feed>\n"
}

struct Gate {
    endpoint: EndpointId,
    feed: FeedName,
    options: FeedOptions,
}

impl Gate {
    fn round<'a>(&'a self, snapshot: Option<&'a Snapshot>, now: Time) -> Observation<'a> {
        Observation {
            feed: &self.feed,
            url: "",
            endpoint: &self.endpoint,
            options: &self.options,
            snapshot,
            now,
            window: Duration::from_secs(30 * 86_400),
            versions_per_day: VERSIONS_PER_DAY,
            aged: now,
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            items: tidegate_judge::record::ITEMS_KEPT,
            archives: archive::Policy::default(),
        }
    }
}

/// The state of a gateway that has taken in one document.
fn taken(gate: &Gate, text: &str, now: Time) -> (Snapshot, View) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store =
        Store::in_memory(Some(gate.endpoint.clone()), Arc::new(ManualClock::at(now)))
            .unwrap();
    let document = parse::document(text, None, &Limits::default()).unwrap();
    let verdict =
        record::take_in(&gate.round(None, now), &document, BodyPrints::default()).unwrap();
    runtime.block_on(async {
        store.commit(verdict.change.unwrap()).await.unwrap();
        let snapshot = store.snapshot(&gate.feed).await.unwrap().unwrap();
        (snapshot, store.view(&gate.feed, Select::Current).await.unwrap().unwrap())
    })
}

fn pipeline(c: &mut Criterion) {
    let gate = Gate {
        endpoint: EndpointId::own("bench.example").unwrap(),
        feed: FeedName::new("light").unwrap(),
        options: FeedOptions::default(),
    };
    let now = Time::from_unix(1_800_000_000);
    let limits = Limits::default();
    let first = atom(50, false);
    let second = atom(50, true);
    let (snapshot, view) = taken(&gate, &first, now);
    let (addresses, history) = (addresses(), HistoryPlace::default());
    let page = reader_page(&view, &addresses, &history);
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Bytes(second.len() as u64));
    group.bench_function("decode", |b| {
        b.iter(|| black_box(parse::decode(second.as_bytes(), None, &limits).unwrap().text.len()));
    });
    group.bench_function("parse", |b| {
        b.iter(|| black_box(parse::document(&second, None, &limits).unwrap().entries.len()));
    });
    let document = parse::document(&second, None, &limits).unwrap();
    let later = now.plus(Duration::from_secs(3600));
    group.bench_function("judge and record, one edit in fifty", |b| {
        let round = gate.round(Some(&snapshot), later);
        b.iter(|| black_box(record::take_in(&round, &document, BodyPrints::default()).unwrap()));
    });
    group.bench_function("judge and record, first document", |b| {
        let round = gate.round(None, later);
        b.iter(|| black_box(record::take_in(&round, &document, BodyPrints::default()).unwrap()));
    });
    group.bench_function("render reader view", |b| {
        b.iter(|| black_box(render::document(&page).len()));
    });
    group.finish();
}

/// The real documents that both parsers read, decoded and without a declaration of their encoding.
fn real() -> Vec<String> {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else { return Vec::new() };
    let folder = std::path::Path::new(&corpus).join("single");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let limits = Limits::default();
    let decoded = paths.iter().filter(|path| path.is_file()).filter_map(|path| {
        let bytes = std::fs::read(path).unwrap();
        let text = parse::decode(&bytes, None, &limits).ok()?.text.into_owned();
        let text = match text.split_once("?>") {
            Some((declaration, rest)) if declaration.starts_with("<?xml ") => rest.to_owned(),
            _ => text,
        };
        let ours = parse::document(&text, None, &limits).ok()?.entries.len();
        let theirs = feed_rs::parser::parse(text.as_bytes()).ok()?.entries.len();
        (ours > 0 && ours == theirs).then_some(text)
    });
    decoded.collect()
}

fn parse_all(documents: &[String], limits: &Limits) -> usize {
    documents.iter().map(|text| parse::document(text, None, limits).unwrap().entries.len()).sum()
}

fn feed_rs_all(documents: &[String]) -> usize {
    let read = |text: &String| feed_rs::parser::parse(text.as_bytes()).unwrap().entries.len();
    documents.iter().map(read).sum()
}

fn parsers(c: &mut Criterion) {
    let limits = Limits::default();
    let mut sets = vec![("invented", vec![atom(50, true)])];
    let real = real();
    if !real.is_empty() {
        sets.push(("real", real));
    }
    for (name, documents) in &sets {
        let bytes = documents.iter().map(String::len).sum::<usize>() as u64;
        let mut group = c.benchmark_group(format!("parsers, {name} documents"));
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function("tidegate", |b| b.iter(|| black_box(parse_all(documents, &limits))));
        group.bench_function("feed-rs", |b| b.iter(|| black_box(feed_rs_all(documents))));
        group.finish();
        let (ours, theirs) = fastest(
            || black_box(parse_all(documents, &limits)),
            || black_box(feed_rs_all(documents)),
        );
        println!(
            "parsers, {name} documents: {} in {} KB; tidegate takes {:.2} times the time of feed-rs\n",
            documents.len(),
            bytes / 1000,
            ours.as_secs_f64() / theirs.as_secs_f64()
        );
    }
}

/// How often each parser runs for the comparison.
const TURNS: u32 = 15;

/// The shortest times of two functions, run in turns so that a busy machine hurts both alike.
#[allow(clippy::disallowed_methods)]
fn fastest(one: impl Fn() -> usize, other: impl Fn() -> usize) -> (Duration, Duration) {
    let time = |run: &dyn Fn() -> usize| {
        let began = std::time::Instant::now();
        black_box(run());
        began.elapsed()
    };
    (0..TURNS)
        .map(|_| (time(&one), time(&other)))
        .fold((Duration::MAX, Duration::MAX), |(a, b), (c, d)| (a.min(c), b.min(d)))
}

/// What a document costs after it was parsed, by what its publisher did, for feeds of 50 and of
/// 1,000 entries. The change that comes of it is made, not stored.
fn judgement(c: &mut Criterion) {
    let gate = Gate {
        endpoint: EndpointId::own("bench.example").unwrap(),
        feed: FeedName::new("light").unwrap(),
        options: FeedOptions::default(),
    };
    let now = Time::from_unix(1_800_000_000);
    for entries in [50, 1000] {
        let first = atom(entries, false);
        let (snapshot, _) = taken(&gate, &first, now);
        let cut = |from: usize, count: usize| {
            let mut rest = first.clone();
            for _ in 0..count {
                let starts: Vec<usize> = rest.match_indices("<entry>").map(|(at, _)| at).collect();
                let end = starts.get(from + 1).copied().unwrap_or(rest.len() - "</feed>\n".len());
                rest.replace_range(starts[from]..end, "");
            }
            rest
        };
        let cases = [
            ("stamps alone", first.replacen("<updated>2026-01-01T00", "<updated>2026-01-01T01", 1)),
            ("one edit", atom(entries, true)),
            ("one gone from the middle", cut(entries / 2, 1)),
            ("ten slid off", cut(entries - 10, 10)),
            ("all edited", first.replace("wound the clock", "wound the clocks")),
            (
                "all under other ids",
                first.replace("tag:light.example,2026", "tag:lamp.example,2026"),
            ),
        ];
        let mut group = c.benchmark_group(format!("judgement, {entries} entries"));
        group.throughput(Throughput::Elements(1));
        for (name, text) in &cases {
            let document = parse::document(text, None, &Limits::default()).unwrap();
            let round = gate.round(Some(&snapshot), now.plus(Duration::from_secs(3600)));
            group.bench_function(*name, |b| {
                b.iter(|| {
                    black_box(record::take_in(&round, &document, BodyPrints::default()).unwrap())
                });
            });
        }
        group.finish();
    }
}

/// An RSS feed of about 50 KB: 32 items, the newest of which is number `newest`.
fn rss(newest: usize) -> String {
    let mut xml = String::from(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
         xmlns:content=\"http://purl.org/rss/1.0/modules/content/\">\n<channel>\n<title>The light</title>\n\
         <link>https://light.example/</link>\n<description>What the keeper saw</description>\n",
    );
    for n in (newest.saturating_sub(31)..=newest).rev() {
        let time = Time::from_unix(1_700_000_000 + 3600 * i64::try_from(n).unwrap());
        let text: String =
            (0..7).map(|part| PARAGRAPH.replace("ships", &words(n * 7 + part))).collect();
        let _ = write!(
            xml,
            "<item>\n <title>Watch {n}: {}</title>\n <link>https://light.example/log/{n}?from=rss&amp;n={n}</link>\n \
             <guid isPermaLink=\"false\">light-{n}</guid>\n <dc:creator>The keeper</dc:creator>\n \
             <pubDate>{}</pubDate>\n <category>Log</category>\n <description>{text}</description>\n</item>\n",
            words(n),
            httpdate::fmt_http_date(
                std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(time.unix()).unwrap())
            ),
        );
    }
    xml + "</channel>\n</rss>\n"
}

/// A few words that are others for each number.
fn words(n: usize) -> String {
    const WORDS: [&str; 16] = [
        "brigs", "barques", "luggers", "cutters", "fog", "rain", "gulls", "seals", "swell", "tide",
        "lamps", "wicks", "oil", "brass", "stairs", "keys",
    ];
    let mut n = n.wrapping_mul(0x9E37_79B9).wrapping_add(7);
    let mut all = Vec::new();
    for _ in 0..6 {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push(WORDS[(n >> 33) % WORDS.len()]);
    }
    all.join(" ")
}

/// The processor time of this process, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// What one poll of a changed feed takes from the last byte to what readers are sent, part by part and all
/// together, with a store on disk: one item is new at the top, and one is gone at the end.
fn changed_poll(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let gate = Gate {
        endpoint: EndpointId::own("bench.example").unwrap(),
        feed: FeedName::new("light").unwrap(),
        options: FeedOptions::default(),
    };
    let start = Time::from_unix(1_800_000_000);
    let clock = Arc::new(ManualClock::at(start));
    let store = Store::on_disk(folder.path(), Some(gate.endpoint.clone()), clock).unwrap();
    let limits = Limits::default();
    let at = |newest: usize| start.plus(Duration::from_secs(600 * newest as u64));
    let judged = |text: &str, newest: usize| {
        let snapshot = runtime.block_on(store.snapshot(&gate.feed)).unwrap();
        let bytes = text.as_bytes();
        let decoded = parse::decode(bytes, Some("application/rss+xml"), &limits).unwrap();
        let document = parse::document(&decoded.text, None, &limits).unwrap();
        let round = gate.round(snapshot.as_ref(), at(newest));
        record::take_in(&round, &document, BodyPrints::default()).unwrap()
    };
    let committed = |newest: usize| {
        let change = judged(&rss(newest), newest).change.unwrap();
        runtime.block_on(store.commit(change)).unwrap();
    };
    let view = || runtime.block_on(store.view(&gate.feed, Select::Current)).unwrap().unwrap();
    let rendered =
        |view: &View| render::document(&reader_page(view, &addresses(), &HistoryPlace::default()));
    committed(40);
    let (text, shown) = (rss(41), rendered(&view()));
    let snapshot = runtime.block_on(store.snapshot(&gate.feed)).unwrap();
    let document = parse::document(&text, None, &limits).unwrap();
    let mut group = c.benchmark_group("changed poll");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("decode and parse", |b| {
        b.iter(|| {
            let decoded = parse::decode(text.as_bytes(), None, &limits).unwrap();
            black_box(parse::document(&decoded.text, None, &limits).unwrap().entries.len())
        });
    });
    group.bench_function("read the ledger", |b| {
        b.iter(|| black_box(runtime.block_on(store.snapshot(&gate.feed)).unwrap()));
    });
    group.bench_function("judge and record", |b| {
        let round = gate.round(snapshot.as_ref(), at(41));
        b.iter(|| black_box(record::take_in(&round, &document, BodyPrints::default()).unwrap()));
    });
    group.bench_function("judge and record, a new feed", |b| {
        let round = gate.round(None, at(41));
        b.iter(|| {
            let document = parse::document(&text, None, &limits).unwrap();
            black_box(record::take_in(&round, &document, BodyPrints::default()).unwrap())
        });
    });
    group.bench_function("read the view", |b| b.iter(|| black_box(view())));
    let view_now = view();
    group.bench_function("render", |b| b.iter(|| black_box(rendered(&view_now).len())));
    group.bench_function("gzip", |b| b.iter(|| black_box(packed(&shown).len())));
    group.finish();

    let texts: Vec<String> = (41..41 + POLLS).map(rss).collect();
    let began = ticks();
    for (text, newest) in texts.iter().zip(41..) {
        let change = judged(text, newest).change.unwrap();
        runtime.block_on(store.commit(change)).unwrap();
        black_box(packed(&rendered(&view())).len());
    }
    let each = (ticks() - began) as f64 * 10_000.0 / POLLS as f64;
    println!(
        "changed poll, from the last byte to durable, rendered and packed: {each:.0} µs of processor time\n"
    );
}

/// How many polls the whole is measured over.
const POLLS: usize = 500;

fn packed(text: &str) -> Vec<u8> {
    let mut packing = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    packing.write_all(text.as_bytes()).unwrap();
    packing.finish().unwrap()
}

fn addresses() -> Addresses {
    Addresses {
        reader: "https://gate.example/feeds/light".into(),
        sync: "https://gate.example/feeds/light/sync".into(),
        complete: "https://gate.example/feeds/light/complete".into(),
        upstream: "https://light.example/feed".into(),
        via: Some("https://light.example/feed".into()),
        sup: None,
        hub: None,
        absolute: false,
        aggregated: Vec::new(),
        cloud: None,
    }
}

/// The reader view of a feed.
fn reader_page<'a>(
    view: &'a View,
    addresses: &'a Addresses,
    history: &'a HistoryPlace,
) -> Page<'a> {
    Page {
        container: Container::of(view.state.format),
        window: None,
        kind: ViewKind::Reader,
        dialect: Dialect::Sse,
        addresses,
        state: &view.state,
        skeleton: &view.skeleton,
        items: &view.items,
        deleted: &[],
        history,
        since: None,
        until: None,
        expires: None,
    }
}

criterion_group!(benches, pipeline, judgement, changed_poll, parsers);
criterion_main!(benches);
