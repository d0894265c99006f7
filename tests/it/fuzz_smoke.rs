//! The fuzz targets on fixtures and on mutations of them, the same in every run. What libFuzzer
//! does for hours (`fuzz/README.md`) begins here for some seconds.

#[path = "../../fuzz/src/lib.rs"]
pub mod targets;

use crate::support::{Dice, files, root};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many mutations a target gets, where `TIDEGATE_FUZZ` does not say.
const MUTATIONS: u64 = 2000;
const MOST_AT_ONCE: usize = 4;
const LARGEST: usize = 32 << 10;
const SHOWN: usize = 4096;

fn below(dice: &mut Dice, limit: usize) -> usize {
    usize::try_from(dice.roll(limit.max(1) as u64)).unwrap()
}

fn stretch(dice: &mut Dice, length: usize) -> std::ops::Range<usize> {
    let start = below(dice, length + 1);
    let most = (length - start).min(1 << below(dice, 10));
    start..start + below(dice, most + 1)
}

fn mutate(dice: &mut Dice, input: &mut Vec<u8>, other: &[u8]) {
    let range = stretch(dice, input.len());
    match below(dice, 6) {
        0 => drop(input.drain(range)),
        1 => {
            let copy = input[range.clone()].to_vec();
            input.splice(range.end..range.end, copy);
        }
        2 => {
            let piece = other[stretch(dice, other.len())].to_vec();
            input.splice(range, piece);
        }
        3 => input.truncate(range.start),
        4 => input[range].reverse(),
        _ => {
            let bit = 1 << below(dice, 8);
            input[range].iter_mut().take(1).for_each(|byte| *byte ^= bit);
        }
    }
    input.truncate(LARGEST);
}

fn contents(folder: &str) -> Vec<Vec<u8>> {
    files(&root(folder)).into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Pairs of feeds, as the merge target reads them.
fn pairs() -> Vec<Vec<u8>> {
    let feed = |number: u32, file: &str| {
        std::fs::read(root(&format!("tests/fixtures/merge/{number:03}/{file}"))).unwrap()
    };
    let pair = |number| {
        let (local, incoming) = (feed(number, "local.xml"), feed(number, "incoming.xml"));
        [local, vec![targets::BETWEEN], incoming].concat()
    };
    (0..48).map(pair).collect()
}

/// Runs a target on every seed and on mutations of them; names the first input that breaks it.
fn run(target: fn(&[u8]), seeds: &[Vec<u8>], salt: u64) {
    let mutations = std::env::var("TIDEGATE_FUZZ").ok();
    let mutations = mutations.map_or(MUTATIONS, |text| text.parse().unwrap());
    assert!(!seeds.is_empty());
    let check = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
            let shown = &input[..input.len().min(SHOWN)];
            panic!("this input breaks it: {:?}", String::from_utf8_lossy(shown));
        }
    };
    seeds.iter().for_each(|seed| check(seed));
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ salt);
    for _ in 0..mutations {
        let mut input = seeds[below(&mut dice, seeds.len())].clone();
        let other = &seeds[below(&mut dice, seeds.len())];
        for _ in 0..=below(&mut dice, MOST_AT_ONCE) {
            mutate(&mut dice, &mut input, other);
        }
        check(&input);
    }
}

type Target = (fn(&[u8]), Vec<Vec<u8>>);

#[test]
fn what_reads_bytes_from_outside_holds_on_seeds_and_on_mutations_of_them() {
    let feeds = || contents("tests/fixtures/feeds");
    let mut configurations = contents("src/config/tests");
    configurations.retain(|seed| !seed.starts_with(b"//"));
    configurations.extend(contents("config"));
    let short = [
        "<p>Some &amp; more <a href=\"http://a.example/?utm_source=x&amp;b=1#c\">link</a>.</p>",
        "https://www.publisher.example/2026/01/a-long-name-of-a-post.html?utm_source=rss&id=3#c",
        "tag:publisher.example,2026-01-01:/posts/1",
        "2026-11-20T16:20:05.123+01:00",
        "2026-11-20T16:20:05Z",
    ];
    let mut texts = [feeds(), contents("tests/golden/pages")].concat();
    texts.extend(short.map(|text| text.as_bytes().to_vec()));
    let targets: [Target; 10] = [
        (targets::document, feeds()),
        (targets::document, contents("tests/fixtures/merge")),
        (targets::merge, pairs()),
        (targets::config, configurations),
        (targets::text, texts),
        (targets::sup, contents("fuzz/seeds/sup")),
        (targets::websub, contents("fuzz/seeds/websub")),
        (targets::document, contents("fuzz/seeds/collection")),
        (targets::opml, contents("fuzz/seeds/opml")),
        (targets::tree, feeds()),
    ];
    std::thread::scope(|threads| {
        for (salt, (target, seeds)) in (1..).zip(&targets) {
            threads.spawn(move || run(*target, seeds, salt));
        }
    });
}
