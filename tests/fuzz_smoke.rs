//! The fuzz targets on fixtures and on mutations of them, the same in every run. What libFuzzer
//! does for hours (`fuzz/README.md`) begins here for some seconds.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// How many mutations a target gets, where `TIDEGATE_FUZZ` does not say.
const MUTATIONS: u64 = 2000;
/// How often one input is mutated.
const MOST_AT_ONCE: u64 = 4;
/// The largest input that is mutated, in bytes.
const LARGEST: usize = 32 << 10;
/// How much of a failing input is shown, in bytes.
const SHOWN: usize = 4096;

/// What breaks things.
const TOKENS: &[&str] = &[
    "<",
    ">",
    "&",
    "\"",
    "'",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?",
    "?>",
    "</",
    "/>",
    "&#0;",
    "&#x110000;",
    "&amp;",
    "&nbsp;",
    "xmlns=\"\"",
    "xmlns:sx=\"http://www.microsoft.com/schemas/sse\"",
    " xml:base=\"//\"",
    "<entry>",
    "</item>",
    "<sx:sync id=\"a\" updates=\"1\"/>",
    "<!DOCTYPE a [",
    "\u{0}",
    "\u{feff}",
    "\u{fffe}",
    "é",
    "\r\n",
    "{",
    "}",
    "[",
    "\\u0000",
    "2147483648",
    "-1",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00+23:59",
    "[[feed]]",
    "url = ",
    "= {",
    "\"\"\"",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(10));
        start..start + self.below(most + 1)
    }
}

fn mutate(chance: &mut Chance, input: &mut Vec<u8>, other: &[u8]) {
    let range = chance.range(input.len());
    match chance.below(7) {
        0 => drop(input.drain(range)),
        1 => {
            let copy = input[range.clone()].to_vec();
            input.splice(range.end..range.end, copy);
        }
        2 => {
            let token = TOKENS[chance.below(TOKENS.len())].as_bytes();
            input.splice(range.start..range.start, token.iter().copied());
        }
        3 => {
            let piece = other[chance.range(other.len())].to_vec();
            input.splice(range, piece);
        }
        4 => input.truncate(range.start),
        5 => input[range].reverse(),
        _ => {
            let bit = 1 << chance.below(8);
            input[range].iter_mut().take(1).for_each(|byte| *byte ^= bit);
        }
    }
    input.truncate(LARGEST);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder, in order.
fn files(folder: &str) -> Vec<Vec<u8>> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    found.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Pairs of feeds, as the merge target reads them.
fn pairs() -> Vec<Vec<u8>> {
    let mut pairs = Vec::new();
    for number in 0..48 {
        let folder = root().join(format!("tests/fixtures/merge/{number:03}"));
        let [Ok(local), Ok(incoming)] =
            ["local.xml", "incoming.xml"].map(|file| std::fs::read(folder.join(file)))
        else {
            continue;
        };
        pairs.push([local, vec![targets::BETWEEN], incoming].concat());
    }
    pairs
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
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15 ^ salt);
    for _ in 0..mutations {
        let mut input = seeds[chance.below(seeds.len())].clone();
        let other = &seeds[chance.below(seeds.len())];
        for _ in 0..=chance.below(MOST_AT_ONCE as usize) {
            mutate(&mut chance, &mut input, other);
        }
        check(&input);
    }
}

#[test]
fn documents() {
    run(targets::document, &files("tests/fixtures/feeds"), 1);
}

#[test]
fn documents_with_sync_markup() {
    run(targets::document, &files("tests/fixtures/merge"), 2);
}

#[test]
fn merges() {
    run(targets::merge, &pairs(), 3);
}

#[test]
fn collections() {
    let item = r#"{"title":"A","description":"<b>x</b>","tags":["a",1],"sync":{"id":"a","updates":"2",
                   "deleted":"false","history":[{"sequence":"2","when":"2026-01-01T00:00:00Z",
                   "by":"x"}],"conflicts":[{"title":"B","sync":{"id":"a","updates":2,"history":[
                   {"sequence":2,"by":"y"}]}}]}}"#;
    let pox = r#"<item><sx:sync id="a" updates="2"><sx:history sequence="2" by="x"/><sx:conflicts>
                 <item><sx:sync id="a" updates="1"><sx:history sequence="1" by="y"/></sx:sync>
                 <subject>B</subject></item></sx:conflicts></sx:sync><subject>A</subject>
                 <body>&lt;b&gt;</body><m:x xmlns:m="urn:m" y="1"/></item>"#;
    let seeds = [
        format!(
            r#"{{"sharing":{{"since":"a","until":"b","related":[{{"link":"http://a.example/all",
                "type":"complete"}}]}},"items":[{item}]}}"#
        ),
        format!(
            r#"<?xml version="1.0"?><collection xmlns:sx="http://feedsync.org/2007/feedsync">
                <sx:sharing since="a" until="b"/>{pox}</collection>"#
        ),
        r#"<opml xmlns:sx="http://www.microsoft.com/schemas/rss/sse"><head><title>T</title>
           <sx:sharing version="0.91"/></head><body><outline text="F"><outline text="A"
           xmlUrl="http://a.example/" x="1"><sx:sync id="a" version="2" conflict="true"><sx:history
           by="x"/><sx:conflicts><sx:conflict version="1" by="y"><outline text="B"/></sx:conflict>
           </sx:conflicts></sx:sync></outline></outline><outline text="C"/></body></opml>"#
            .to_owned(),
    ];
    run(targets::document, &seeds.map(String::into_bytes), 8);
}

#[test]
fn subscription_lists() {
    let sync = r#"<sx:sync id="a" version="2" conflict="true"><sx:history when="Tue, 24 May 2005
                  09:43:33 GMT" by="x"><sx:update when="Mon, 23 May 2005 09:43:33 GMT" by="x"/>
                  </sx:history></sx:sync>"#;
    let seeds = [
        format!(
            r#"<?xml version="1.0"?><opml version="2.0"
                xmlns:sx="http://www.microsoft.com/schemas/rss/sse"><head><title>T</title>
                <sx:sharing version="0.91"/></head><body><outline text="F"><outline type="rss"
                text="A" xmlUrl="http://a.example/?a=1&amp;b">{sync}</outline></outline></body></opml>"#
        ),
        "<opml><body><outline text='F & G'><outline text=\"A\" xmlUrl=http://a.example/></body>"
            .into(),
    ];
    run(targets::opml, &seeds.map(String::into_bytes), 9);
}

#[test]
fn configurations() {
    let mut seeds = files("src/config/tests");
    seeds.retain(|seed| !seed.starts_with(b"//"));
    seeds.extend(files("config"));
    run(targets::config, &seeds, 4);
}

#[test]
fn sup_documents() {
    let seeds = [
        r#"{"updates":[["14ea1a46","16NV"],["a2f57d4b","16Nx"]],"period":60,"since_time":
           "2009-01-06T00:48:38Z","updated_time":"2009-01-06T00:50:48+00:00","available_periods":
           {"60":"http://a.example/sup.json","300":"http://a.example/sup.json?seconds=300"}}"#,
        r#"{"period":"60","updates":[],"since_time":"9999-12-30T21:59:00Z",
           "updated_time":"9999-12-30T22:00:00Z","more":{"a":[1,null]}}"#,
        "http://a.example/sup.json?seconds=60#4496672d",
        "<http://a.example/>; rel=self, </sup#a>; rel=\"x http://api.friendfeed.com/2008/03#sup\"",
    ];
    run(targets::sup, &seeds.map(|text| text.as_bytes().to_vec()), 6);
}

#[test]
fn requests_to_a_hub() {
    let seeds = [
        "hub.mode=subscribe&hub.topic=https%3A%2F%2Fg.example%2Ffeeds%2Fnews%3Fas%3Drss\
         &hub.callback=https%3A%2F%2Fr.example%2Fpush%3Fid%3D7&hub.lease_seconds=60&hub.secret=s",
        "hub.mode=unsubscribe&hub.topic=t&hub.callback=http://a.example/?%20&x=%ff",
        "id=7&hub.mode=subscribe&hub.topic=t&hub.challenge=c0ffee&hub.lease_seconds=60",
        "hub.mode=denied&hub.topic=t&hub.reason=it+is+gone",
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ];
    run(targets::websub, &seeds.map(|text| text.as_bytes().to_vec()), 7);
}

#[test]
fn texts() {
    let mut seeds = files("tests/fixtures/feeds");
    let short = [
        "<p>Some &amp; more <a href=\"http://a.example/?utm_source=x&amp;b=1#c\">link</a>.</p>",
        "https://www.publisher.example/2026/01/a-long-name-of-a-post.html?utm_source=rss&id=3#c",
        "tag:publisher.example,2026-01-01:/posts/1",
        "2026-11-20T16:20:05.123+01:00",
        "2026-11-20T16:20:05Z",
    ];
    seeds.extend(short.map(|text| text.as_bytes().to_vec()));
    run(targets::text, &seeds, 5);
}
