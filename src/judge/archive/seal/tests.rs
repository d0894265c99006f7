use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tidegate_core::model::testing::{self, tick};
use tidegate_core::model::{ArchiveId, ItemStatus};

fn known(name: &str, at: i64, deleted: bool) -> LedgerEntry {
    let since = testing::at(at);
    LedgerEntry {
        id: SyncId::new(name).unwrap(),
        published_id: format!("urn:{name}"),
        tick: tick(at),
        first_seen: since,
        standing: if deleted { ItemStatus::Deleted { since } } else { ItemStatus::Current },
        bytes: 7,
        ..LedgerEntry::left(name)
    }
}

/// Seals a feed of that name and endpoint.
fn seal_of(
    (feed, endpoint): (&str, &str),
    known: &[LedgerEntry],
    order: &[&str],
    chain: &mut Chain,
    entries: u32,
) -> Vec<Seal> {
    let (feed, endpoint) = (FeedName::new(feed).unwrap(), EndpointId::own(endpoint).unwrap());
    let order: Vec<SyncId> = order.iter().map(|id| SyncId::new(id).unwrap()).collect();
    let living = known.iter().filter(|known| !known.is_deleted());
    let unsealed = Unsealed {
        feed: &feed,
        endpoint: &endpoint,
        upstream: "https://example.org/feed",
        items: known.iter().collect(),
        borne: living.map(|known| known.published_id.as_str()).collect(),
        order: &order,
        tick: tick(100),
    };
    seal(chain, &Policy { entries, ..Policy::default() }, unsealed)
}

const NEWS: (&str, &str) = ("news", "gate.example");

fn names(seal: &Seal) -> Vec<&str> {
    seal.items.iter().map(SyncId::as_str).collect()
}

#[test]
fn a_segment_is_due_when_it_is_full_or_an_unsealed_entry_leaves() {
    let chain = Chain { sealed: Some(tick(10)), unsealed: 4, ..Chain::default() };
    let old = known("old", 10, false);
    let new = known("new", 11, false);
    let gone = known("gone", 11, true);
    let never = Chain::default();
    for (chain, entries, leaving, due) in [
        (&chain, 5, &[][..], false),
        (&chain, 4, &[], true),
        (&chain, 5, &[&old, &gone], false),
        (&chain, 5, &[&old, &new], true),
        (&never, 5, &[&old], true),
    ] {
        let policy = Policy { entries, ..Policy::default() };
        assert_eq!(is_due(chain, &policy, leaving.iter().copied()), due, "{entries} {leaving:?}");
    }
}

#[test]
fn a_segment_lists_the_newest_first_and_follows_the_one_before() {
    let items = vec![known("b", 2, false), known("a", 2, false), known("z", 1, false)];
    let mut chain = Chain::default();
    let seals = seal_of(NEWS, &items, &["b", "a"], &mut chain, 2);
    assert_eq!(seals.len(), 2);
    assert_eq!(names(&seals[0]), ["z"]);
    assert_eq!(names(&seals[1]), ["b", "a"]);
    assert_eq!((seals[0].number, seals[1].number, chain.next), (0, 1, 2));
    assert_eq!(seals[0].previous, None);
    assert_eq!(seals[1].previous.as_ref(), Some(&seals[0].id));
    assert_eq!(chain.newest.as_ref(), Some(&seals[1].id));
    assert_eq!((chain.sealed, chain.unsealed), (Some(tick(100)), 0));
    assert_eq!(seals[0].id.as_str().len(), 24);
    // An id that a living item bears is not said to be deleted.
    let twin = LedgerEntry { published_id: "urn:a".to_owned(), ..known("twin", 2, true) };
    let items = [known("a", 1, false), twin, known("gone", 2, true)];
    let seals = seal_of(NEWS, &items, &["a"], &mut Chain::default(), 9);
    assert_eq!(names(&seals[0]), ["gone", "a"]);
    let mut chain = Chain::default();
    assert!(seal_of(NEWS, &[], &[], &mut chain, 9).is_empty());
    assert_eq!((chain.next, chain.newest), (0, None));
}

#[test]
fn ids_differ_with_what_is_listed_and_with_what_came_before() {
    let base = || known("a", 1, false);
    let id = |feed, known: LedgerEntry, chain: &mut Chain| {
        seal_of(feed, &[known], &["a"], chain, 9).remove(0).id
    };
    let first = id(NEWS, base(), &mut Chain::default());
    assert_eq!(first, id(NEWS, base(), &mut Chain::default()), "the same segment has the same id");
    let mut chain = Chain::default();
    id(NEWS, base(), &mut chain);
    let second = id(NEWS, base(), &mut chain);
    assert_eq!(chain.newest.as_ref(), Some(&second));
    let mut all = vec![first, second];
    for (feed, known) in [
        (("other", "gate.example"), base()),
        (("news", "gate.example2"), base()),
        (NEWS, LedgerEntry { tick: tick(2), ..base() }),
        (NEWS, LedgerEntry { bytes: 8, ..base() }),
    ] {
        all.push(id(feed, known, &mut Chain::default()));
    }
    let each: BTreeSet<&str> = all.iter().map(ArchiveId::as_str).collect();
    assert_eq!(each.len(), all.len(), "{all:?}");
}

proptest! {
    /// Every unsealed item stands in exactly one segment, none is longer than allowed, and the
    /// segments are in the order of their versions.
    #[test]
    fn everything_unsealed_is_sealed_once(ticks in vec(0_i64..20, 0..60), entries in 1_u32..15) {
        let items: Vec<LedgerEntry> =
            ticks.iter().enumerate().map(|(n, at)| known(&format!("i{n}"), *at, n % 5 == 0)).collect();
        let order = ["i3", "i1", "i2"];
        let seals = seal_of(NEWS, &items, &order, &mut Chain::default(), entries);
        let listed: Vec<&SyncId> =
            seals.iter().flat_map(|seal| seal.items.iter().rev()).collect();
        let once: BTreeSet<&SyncId> = listed.iter().copied().collect();
        prop_assert_eq!((listed.len(), once.len()), (ticks.len(), ticks.len()));
        let at = |id: &SyncId| items.iter().find(|known| known.id == *id).unwrap().tick;
        prop_assert!(listed.is_sorted_by_key(|id| at(id)));
        let fewest = ticks.len().div_ceil(entries as usize);
        prop_assert_eq!(seals.len(), fewest);
        prop_assert!(seals.iter().all(|seal| (1..=entries as usize).contains(&seal.items.len())));
    }
}
