//! What one poll of a changed feed costs, part by part: decode and parse, read the ledger, judge and record, render, pack.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{BodyPrints, EndpointId, FeedName, FeedOptions, Time};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{self, Addresses, Container, Dialect, HistoryPlace, Page, ViewKind};
use tidegate_judge::{record, testing};
use tidegate_store::{Select, Store, View};

const PARAGRAPH: &str = "&lt;p&gt;The keeper noted the wind, the &lt;a href=\"https://light.example/log?utm_source=rss\"&gt;log&lt;/a&gt; and the ships, &amp;amp; wound the clock.&lt;/p&gt;\n";

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
            time.rfc822(),
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
    let word = |at: usize| WORDS[(n.wrapping_mul(0x9E37_79B9) >> (3 * at)) % WORDS.len()];
    (0..6).map(word).collect::<Vec<_>>().join(" ")
}

/// With a store on disk: one item is new at the top, and one is gone at the end. What a whole poll takes is measured by
/// `compare/polling.py`.
fn changed_poll(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (endpoint, feed) =
        (EndpointId::own("bench.example").unwrap(), FeedName::new("light").unwrap());
    let options = FeedOptions::default();
    let start = Time::from_unix(1_800_000_000);
    let clock = Arc::new(ManualClock::at(start));
    let store = Store::on_disk(folder.path(), Some(endpoint.clone()), clock).unwrap();
    let limits = Limits::default();
    let at = |newest: usize| start.plus(Duration::from_secs(600 * newest as u64));
    let before = rss(40);
    let document = testing::read(&before);
    let observation = testing::observation(&feed, &endpoint, &options, None, at(40));
    let verdict = record::take_in(&observation, &document, BodyPrints::default()).unwrap();
    runtime.block_on(store.commit(verdict.change.unwrap())).unwrap();
    let view = || runtime.block_on(store.view(&feed, Select::Current)).unwrap().unwrap();
    let reader = "https://gate.example/feeds/light".to_owned();
    let addresses = Addresses { reader, ..Addresses::default() };
    let rendered = |view: &View| {
        render::document(&Page {
            container: Container::of(view.state.format),
            window: None,
            kind: ViewKind::Reader,
            dialect: Dialect::Sse,
            addresses: &addresses,
            state: &view.state,
            skeleton: &view.skeleton,
            items: &view.items,
            deleted: &[],
            history: &HistoryPlace::default(),
            since: None,
            until: None,
            expires: None,
        })
    };
    let (text, shown) = (rss(41), rendered(&view()));
    let snapshot = runtime.block_on(store.snapshot(&feed)).unwrap();
    let document = testing::read(&text);
    let mut group = c.benchmark_group("changed poll");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("decode and parse", |b| {
        b.iter(|| {
            let decoded = parse::decode(text.as_bytes(), None, &limits).unwrap();
            black_box(parse::document(&decoded.text, None, &limits).unwrap().entries.len())
        });
    });
    group.bench_function("read the ledger", |b| {
        b.iter(|| black_box(runtime.block_on(store.snapshot(&feed)).unwrap()));
    });
    group.bench_function("judge and record", |b| {
        let observation =
            testing::observation(&feed, &endpoint, &options, snapshot.as_ref(), at(41));
        b.iter(|| {
            black_box(record::take_in(&observation, &document, BodyPrints::default()).unwrap())
        });
    });
    group.bench_function("judge and record, a new feed", |b| {
        let observation = testing::observation(&feed, &endpoint, &options, None, at(41));
        b.iter(|| {
            let document = parse::document(&text, None, &limits).unwrap();
            black_box(record::take_in(&observation, &document, BodyPrints::default()).unwrap())
        });
    });
    group.bench_function("read the view", |b| b.iter(|| black_box(view())));
    let view_now = view();
    group.bench_function("render", |b| b.iter(|| black_box(rendered(&view_now).len())));
    group.bench_function("gzip", |b| b.iter(|| black_box(packed(&shown).len())));
    group.finish();
}

fn packed(text: &str) -> Vec<u8> {
    let mut packing = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    packing.write_all(text.as_bytes()).unwrap();
    packing.finish().unwrap()
}

criterion_group!(benches, changed_poll);
criterion_main!(benches);
