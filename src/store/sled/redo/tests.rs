use super::*;
use crate::store::engine::Class;
use crate::store::sled::{barrier::Barrier, engine, flush_and_sync};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A change of so many entries, some of them removals of what was set for `turn - 1`.
fn writes(entries: usize, turn: u8) -> TreeWrites {
    let classes = [Class::Ledger, Class::Heads, Class::ByTick, Class::Bodies].map(Place::Of);
    let places = [&classes[..], &[Place::Pieces]].concat();
    let one = |number: usize| {
        let place = places[number % places.len()];
        let length = match place {
            Place::Of(Class::ByTick) => 0,
            Place::Pieces => PIECE,
            Place::Of(_) => number % 400,
        };
        let value = vec![turn; length];
        let gone = turn > 0 && number.is_multiple_of(7);
        ((place, format!("news\0{number:06}").into_bytes()), (!gone).then_some(value))
    };
    (0..entries).map(one).collect()
}

/// A barrier that counts how often it is passed, and fails after `left` times.
struct Counting {
    real: Box<dyn Barrier>,
    passed: Arc<AtomicUsize>,
    left: usize,
}

impl Barrier for Counting {
    fn pass(&mut self) -> io::Result<()> {
        if self.passed.fetch_add(1, Ordering::AcqRel) >= self.left {
            return Err(io::Error::other("no power"));
        }
        self.real.pass()
    }
}

fn open_counting(path: &Path, left: usize) -> (SledEngine, Arc<AtomicUsize>) {
    let passed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&passed);
    let engine = engine::open(path, path, |db, folder| {
        Ok(Box::new(Counting { real: flush_and_sync(db, folder)?, passed: counted, left }))
    });
    (engine.unwrap(), passed)
}

fn open(path: &Path) -> SledEngine {
    open_counting(path, usize::MAX).0
}

/// Everything that stands in a store but the redo log.
type Content = BTreeMap<(Place, Vec<u8>), Vec<u8>>;

fn content(engine: &SledEngine) -> Content {
    let all = Place::all().flat_map(|place| {
        let entries = engine.tree(place).unwrap().iter().map(Result::unwrap);
        entries.map(move |(key, value)| ((place, key.to_vec()), value.to_vec()))
    });
    all.collect()
}

/// Writes a first change, which is small; what the store looks like before and after the second.
fn before_and_after(engine: &SledEngine) -> (Content, Content) {
    apply(engine, writes(TRANSACTION, 0)).unwrap();
    let before = content(engine);
    let mut after = before.clone();
    for (place, value) in writes(TRANSACTION + 700, 1) {
        match value {
            Some(value) => drop(after.insert(place, value)),
            None => drop(after.remove(&place)),
        }
    }
    assert_ne!(before, after);
    (before, after)
}

#[test]
fn a_small_change_is_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, passed) = open_counting(folder.path(), 0);
    apply(&engine, writes(TRANSACTION, 0)).unwrap();
    assert_eq!(content(&engine).len(), TRANSACTION);
    assert_eq!(passed.load(Ordering::Acquire), 0, "it passes no barrier of its own");
}

#[test]
fn a_large_change_is_carried_out_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, passed) = open_counting(folder.path(), usize::MAX);
    let (_, after) = before_and_after(&engine);
    apply(&engine, writes(TRANSACTION + 700, 1)).unwrap();
    assert_eq!(content(&engine), after);
    assert!(engine.redo().is_empty());
    let passed = passed.load(Ordering::Acquire);
    assert_eq!(passed, 4, "blocks, mark, what was carried out, the mark's removal");
}

/// Wherever a large change breaks off, the next start finds it whole or not at all.
#[test]
fn a_barrier_that_fails_leaves_all_or_nothing() {
    for failing in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = open_counting(folder.path(), failing);
        let (before, after) = before_and_after(&engine);
        apply(&engine, writes(TRANSACTION + 700, 1)).unwrap_err();
        engine.redo().flush().unwrap();
        drop(engine);
        let engine = open(folder.path());
        carry_out(&engine).unwrap();
        let wanted = if failing == 0 { &before } else { &after };
        assert_eq!(&content(&engine), wanted, "barrier {failing}");
        assert!(engine.redo().is_empty());
    }
}

/// A stop after any entry: what was carried out before is carried out again.
#[test]
fn a_start_carries_out_what_is_marked() {
    let large = writes(TRANSACTION + 700, 1);
    for done in [0, 1, 2500, large.len()] {
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path());
        let (_, after) = before_and_after(&engine);
        write_down(&engine, &large).unwrap();
        for ((place, key), value) in large.iter().take(done) {
            engine.set((*place, key), value.as_deref()).unwrap();
        }
        engine.redo().flush().unwrap();
        drop(engine);
        // Stopped again, before the mark is gone.
        let (engine, _) = open_counting(folder.path(), 0);
        carry_out(&engine).unwrap_err();
        drop(engine);
        let engine = open(folder.path());
        assert!(!engine.redo().is_empty(), "kept until it is durable");
        carry_out(&engine).unwrap();
        assert_eq!(content(&engine), after, "{done} done");
    }
}

#[test]
fn a_missing_block_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path());
    before_and_after(&engine);
    write_down(&engine, &writes(TRANSACTION + 700, 1)).unwrap();
    set(&engine, &3_u32.to_be_bytes(), None).unwrap();
    let error = carry_out(&engine).unwrap_err();
    assert!(error.to_string().contains("a block is missing"), "{error}");
}
