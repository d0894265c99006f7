use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tidegate_core::model::{ItemStatus, Time};

fn tick(seconds: i64) -> Tick {
    Tick::at(Time::from_unix(seconds))
}

fn known(name: &str, at: i64, deleted: bool) -> LedgerEntry {
    let since = Time::from_unix(at);
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

struct Scene {
    feed: FeedName,
    endpoint: EndpointId,
    known: Vec<LedgerEntry>,
    order: Vec<SyncId>,
}

impl Scene {
    fn new(known: Vec<LedgerEntry>, order: &[&str]) -> Self {
        Self {
            feed: FeedName::new("news").unwrap(),
            endpoint: EndpointId::own("gate.example").unwrap(),
            known,
            order: order.iter().map(|id| SyncId::new(id).unwrap()).collect(),
        }
    }

    fn unsealed(&self) -> Unsealed<'_> {
        let living = self.known.iter().filter(|known| !known.is_deleted());
        Unsealed {
            feed: &self.feed,
            endpoint: &self.endpoint,
            upstream: "https://example.org/feed",
            items: self.known.iter().collect(),
            borne: living.map(|known| known.published_id.as_str()).collect(),
            order: &self.order,
            tick: tick(100),
        }
    }
}

fn policy(entries: u32) -> Policy {
    Policy { entries, ..Policy::default() }
}

fn names(seal: &Seal) -> Vec<&str> {
    seal.items.iter().map(SyncId::as_str).collect()
}

#[test]
fn a_segment_is_due_when_it_is_full_or_an_unsealed_entry_leaves() {
    let chain = Chain { sealed: Some(tick(10)), unsealed: 4, ..Chain::default() };
    let old = known("old", 10, false);
    let new = known("new", 11, false);
    let gone = known("gone", 11, true);
    assert!(!is_due(&chain, &policy(5), []));
    assert!(is_due(&chain, &policy(4), []));
    assert!(!is_due(&chain, &policy(5), [&old, &gone]));
    assert!(is_due(&chain, &policy(5), [&old, &new]));
    assert!(is_due(&Chain::default(), &policy(5), [&old]), "nothing was ever sealed");
}

#[test]
fn a_segment_lists_the_newest_first_and_follows_the_one_before() {
    let items = vec![known("b", 2, false), known("a", 2, false), known("z", 1, false)];
    let scene = Scene::new(items, &["b", "a"]);
    let mut chain = Chain::default();
    let seals = seal(&mut chain, &policy(2), scene.unsealed());
    assert_eq!(seals.len(), 2);
    assert_eq!(names(&seals[0]), ["z"]);
    assert_eq!(names(&seals[1]), ["b", "a"]);
    assert_eq!((seals[0].number, seals[1].number, chain.next), (0, 1, 2));
    assert_eq!(seals[0].previous, None);
    assert_eq!(seals[1].previous.as_ref(), Some(&seals[0].id));
    assert_eq!(chain.newest.as_ref(), Some(&seals[1].id));
    assert_eq!((chain.sealed, chain.unsealed), (Some(tick(100)), 0));
    assert_eq!(seals[0].id.as_str().len(), 24);
}

#[test]
fn an_id_that_a_living_item_bears_is_not_said_to_be_deleted() {
    let mut twin = known("twin", 2, true);
    twin.published_id = "urn:a".to_owned();
    let scene = Scene::new(vec![known("a", 1, false), twin, known("gone", 2, true)], &["a"]);
    let seals = seal(&mut Chain::default(), &policy(9), scene.unsealed());
    assert_eq!(names(&seals[0]), ["gone", "a"]);
    let nothing = Scene::new(Vec::new(), &[]);
    let mut chain = Chain::default();
    assert!(seal(&mut chain, &policy(9), nothing.unsealed()).is_empty());
    assert_eq!((chain.next, chain.newest), (0, None));
}

#[test]
fn ids_differ_with_what_is_listed_and_with_what_came_before() {
    let base = || Scene::new(vec![known("a", 1, false)], &["a"]);
    let id = |scene: &Scene, chain: &mut Chain| {
        seal(chain, &policy(9), scene.unsealed()).remove(0).id.to_string()
    };
    let first = id(&base(), &mut Chain::default());
    assert_eq!(first, id(&base(), &mut Chain::default()), "the same segment has the same id");
    let mut seen = BTreeSet::from([first]);
    let mut chain = Chain::default();
    for _ in 0..2 {
        id(&base(), &mut chain);
    }
    let second = chain.newest.as_ref().map(ToString::to_string);
    assert!(seen.insert(second.unwrap()), "one that follows another differs");
    let mut others = [base(), base(), base(), base()];
    others[0].feed = FeedName::new("other").unwrap();
    others[1].endpoint = EndpointId::own("gate.example2").unwrap();
    others[2].known[0].tick = tick(2);
    others[3].known[0].bytes = 8;
    for other in others {
        assert!(seen.insert(id(&other, &mut Chain::default())));
    }
}

proptest! {
    /// Every unsealed item stands in exactly one segment, none is longer than allowed, and the
    /// segments are in the order of their versions.
    #[test]
    fn everything_unsealed_is_sealed_once(ticks in vec(0_i64..20, 0..60), entries in 1_u32..15) {
        let items: Vec<LedgerEntry> =
            ticks.iter().enumerate().map(|(n, at)| known(&format!("i{n}"), *at, n % 5 == 0)).collect();
        let scene = Scene::new(items, &["i3", "i1", "i2"]);
        let mut chain = Chain::default();
        let seals = seal(&mut chain, &policy(entries), scene.unsealed());
        let listed: Vec<&SyncId> =
            seals.iter().flat_map(|seal| seal.items.iter().rev()).collect();
        let once: BTreeSet<&SyncId> = listed.iter().copied().collect();
        prop_assert_eq!((listed.len(), once.len()), (ticks.len(), ticks.len()));
        let at = |id: &SyncId| scene.known.iter().find(|known| known.id == *id).unwrap().tick;
        prop_assert!(listed.is_sorted_by_key(|id| at(id)));
        let fewest = ticks.len().div_ceil(entries as usize);
        prop_assert_eq!(seals.len(), fewest);
        prop_assert!(seals.iter().all(|seal| (1..=entries as usize).contains(&seal.items.len())));
    }
}
