//! What foreign readers make of the published documents: the reader and the sync view of a feed,
//! after its recorded documents were taken in, read by feed-rs, checked by roxmltree
//! and compared with what the publisher's own document says.
//!
//! Runs over the fixtures always, and over the recorded feeds that `TIDEGATE_CORPUS` names (a folder
//! with `replay/` and `single/`) where it is set.

use crate::support::prelude::*;
use crate::support::{self, corpus};
use crate::views::{Compared, series};
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate_replay::{self as replay, Recorded, Series};

/// The fewest recorded feeds that must be compared, and by feed-rs on both sides.
const FEEDS_WANTED: usize = 30;
const DOCUMENTS_WANTED: usize = 150;

/// A document as a series of its own.
fn alone(path: &Path) -> Series {
    let file = path.file_name().unwrap().to_string_lossy().into_owned();
    let time = Time::from_unix(support::START);
    let recorded = Recorded { n: 1, time, file: file.clone(), path: path.to_owned() };
    Series { name: file, documents: vec![recorded] }
}

/// Compares every series on all processors; what cannot be compared at all is left out.
fn compare(all: &[Series]) -> Vec<(String, Compared)> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Some(compared) = series(one) {
                        done.lock().unwrap().push((one.name.clone(), compared));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by(|(a, _), (b, _)| a.cmp(b));
    done
}

fn demand_the_same(compared: &[(String, Compared)]) {
    let first = |(name, one): &(String, Compared)| -> String {
        one.differences.iter().take(5).map(|line| format!("\n{name}: {line}")).collect()
    };
    let wrong: String = compared.iter().map(first).collect();
    assert!(wrong.is_empty(), "the views differ from what the publishers say:{wrong}");
}

#[test]
fn recorded_feeds_come_through_as_their_publishers_have_them() {
    let Some(documents) = corpus("replay") else { return };
    let folders = documents.iter().map(|path| path.parent().unwrap().to_owned());
    let folders: BTreeSet<_> = folders.filter(|path| path.join("index.jsonl").is_file()).collect();
    let all = replay::read(&Vec::from_iter(folders)).unwrap();
    let compared = compare(&all);
    let sum = |of: fn(&Compared) -> usize| compared.iter().map(|(_, one)| of(one)).sum::<usize>();
    let foreign = sum(|one| usize::from(one.by_feed_rs && one.items > 0));
    demand_the_same(&compared);
    assert!(foreign >= FEEDS_WANTED, "only {foreign} feeds were compared by feed-rs");
    assert!(sum(|one| one.renamed) > 0, "no re-keyed item was looked at");
}

#[test]
fn single_documents_come_through_as_their_publishers_have_them() {
    let Some(documents) = corpus("single") else { return };
    let all: Vec<_> = documents.iter().map(|path| alone(path)).collect();
    let compared = compare(&all);
    let foreign = compared.iter().filter(|(_, one)| one.by_feed_rs && one.items > 0).count();
    demand_the_same(&compared);
    assert!(foreign >= DOCUMENTS_WANTED, "only {foreign} documents were compared by feed-rs");
}

#[test]
fn fixtures_come_through_as_they_are() {
    let all: Vec<_> = files(&root("tests/fixtures/feeds")).iter().map(|path| alone(path)).collect();
    assert!(all.len() >= 8, "only {} fixtures", all.len());
    let compared = compare(&all);
    assert_eq!(compared.len() + 1, all.len(), "all but one, which has no items, can be compared");
    demand_the_same(&compared);
}

/// A series of our own with what recorded feeds seldom have: a tombstone, and an item re-keyed.
#[test]
fn a_tombstone_and_a_new_key_are_seen_by_a_foreign_reader() {
    let folder = tempfile::tempdir().unwrap();
    let mut posts: Vec<_> = (1..=12).rev().map(support::post).collect();
    let mut documents = Vec::new();
    let mut write = |n: u64, text: &str| {
        let file = format!("{n:04}.xml");
        let path = folder.path().join(&file);
        std::fs::write(&path, text).unwrap();
        let days = i64::try_from(n).unwrap() * 24 * support::HOUR;
        let time = Time::from_unix(support::START + 400 * 24 * support::HOUR + days);
        documents.push(Recorded { n, time, file, path });
    };
    write(1, &support::atom(support::SITE, &posts));
    posts.remove(4);
    write(2, &support::atom(support::SITE, &posts));
    write(40, &support::atom(support::SITE, &posts));
    posts[0].id = posts[0].id.replace("http://", "https://");
    posts[1].title.push_str(" &amp; more");
    write(41, &support::atom(support::SITE, &posts));
    let own = Series { name: "own".to_owned(), documents };
    let compared = compare(&[own]);
    demand_the_same(&compared);
    let (_, one) = &compared[0];
    assert_eq!((one.items, one.renamed, one.tombstones), (11, 1, 1), "{one:?}");
}
