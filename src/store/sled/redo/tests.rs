use super::*;
use crate::model::SupIdBasis;
use crate::store::record::IdentityRecord;
use std::collections::BTreeMap;
use std::path::Path;

/// A change of so many entries, some of them removals of what [`Trees::apply`] set for `turn - 1`.
fn writes(entries: usize, turn: u8) -> Writes {
    let classes = [Class::Ledger, Class::Heads, Class::ByTick, Class::Bodies, Class::Pieces];
    let one = |number: usize| {
        let class = classes[number % classes.len()];
        let length = match class {
            Class::ByTick => 0,
            Class::Pieces => PIECE,
            _ => number % 400,
        };
        let value = vec![turn; length];
        let gone = turn > 0 && number.is_multiple_of(7);
        ((class, format!("news\0{number:06}").into_bytes()), (!gone).then_some(value))
    };
    (0..entries).map(one).collect()
}

/// Whose store it is.
fn identity() -> IdentityRecord {
    let endpoint = crate::store::endpoint::random().unwrap();
    IdentityRecord { endpoint, fence: 1, sup_ids: SupIdBasis::Name }
}

fn open(path: &Path) -> Trees {
    open::engine(path, path).unwrap()
}

/// Everything that stands in a store but the redo log.
type Content = BTreeMap<RecordKey, Vec<u8>>;

fn content(trees: &Trees) -> Content {
    let classes = Class::ALL.iter().filter(|class| **class != Class::Redo);
    let all = classes.flat_map(|class| {
        let entries = trees.tree(*class).iter().map(Result::unwrap);
        entries.map(|(key, value)| ((*class, key.to_vec()), value.to_vec()))
    });
    all.collect()
}

/// A store with a first change, which is small, and what it looks like before and after the second.
fn before_and_after(path: &Path) -> (Trees, Content, Content) {
    let trees = open(path);
    let first = writes(TRANSACTION, 0);
    trees.apply(&first).unwrap();
    let before = content(&trees);
    let mut after = before.clone();
    for (place, value) in writes(TRANSACTION + 700, 1) {
        match value {
            Some(value) => drop(after.insert(place, value)),
            None => drop(after.remove(&place)),
        }
    }
    assert_ne!(before, after);
    (trees, before, after)
}

fn never() -> Result<(), StoreError> {
    panic!("a small change passes no barrier of its own")
}

#[test]
fn a_small_change_is_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let trees = open(folder.path());
    apply(&trees, &writes(TRANSACTION, 0), &mut never).unwrap();
    assert_eq!(content(&trees).len(), TRANSACTION);
}

#[test]
fn a_large_change_is_carried_out_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (trees, _, after) = before_and_after(folder.path());
    let mut passed = 0;
    let mut pass = || {
        passed += 1;
        Ok(())
    };
    apply(&trees, &writes(TRANSACTION + 700, 1), &mut pass).unwrap();
    assert_eq!(content(&trees), after);
    assert!(trees.tree(Class::Redo).is_empty());
    assert_eq!(passed, 4, "blocks, mark, what was carried out, the mark's removal");
}

/// Wherever a large change breaks off, the next start finds it whole or not at all.
#[test]
fn a_barrier_that_fails_leaves_all_or_nothing() {
    for failing in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let (trees, before, after) = before_and_after(folder.path());
        let mut passed = 0;
        let mut pass = || {
            let failed =
                StoreError::Io { doing: "pass", source: std::io::Error::other("no power") };
            passed += 1;
            if passed > failing { Err(failed) } else { Ok(()) }
        };
        apply(&trees, &writes(TRANSACTION + 700, 1), &mut pass).unwrap_err();
        open::write_identity(&trees, &identity()).unwrap();
        trees.db().flush().unwrap();
        drop(trees);
        let trees = open(folder.path());
        clear(&trees, &mut || Ok(())).unwrap();
        let wanted = if failing == 0 { &before } else { &after };
        assert_eq!(&content(&trees), wanted, "barrier {failing}");
        assert!(trees.tree(Class::Redo).is_empty());
    }
}

/// A stop after any entry: what was carried out before is carried out again.
#[test]
fn a_start_carries_out_what_is_marked() {
    let large = writes(TRANSACTION + 700, 1);
    for done in [0, 1, 2500, large.len()] {
        let folder = tempfile::tempdir().unwrap();
        let (trees, _, after) = before_and_after(folder.path());
        open::write_identity(&trees, &identity()).unwrap();
        write_down(&trees, &large, &mut || Ok(())).unwrap();
        for (place, value) in large.iter().take(done) {
            trees.set(place, value.as_deref()).unwrap();
        }
        trees.db().flush().unwrap();
        drop(trees);
        // Stopped again, before the mark is gone.
        drop(open(folder.path()));
        let trees = open(folder.path());
        assert!(!trees.tree(Class::Redo).is_empty(), "kept until it is durable");
        clear(&trees, &mut || Ok(())).unwrap();
        assert_eq!(content(&trees), after, "{done} done");
    }
}

#[test]
fn a_missing_block_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (trees, _, _) = before_and_after(folder.path());
    open::write_identity(&trees, &identity()).unwrap();
    write_down(&trees, &writes(TRANSACTION + 700, 1), &mut || Ok(())).unwrap();
    trees.set(&(Class::Redo, 3_u32.to_be_bytes().to_vec()), None).unwrap();
    let error = carry_out(&trees).unwrap_err();
    assert!(error.to_string().contains("a block is missing"), "{error}");
}
