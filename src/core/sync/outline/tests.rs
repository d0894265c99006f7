use super::super::create;
use super::*;
use crate::model::{EndpointId, Shared, Stamp, Time, Update};
use proptest::prelude::*;

type Node = OutlineItem091<&'static str>;
type Set = Outlines<&'static str>;

fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

fn node(name: &str, parent: Option<&str>, position: u32) -> Node {
    let data = PlacedOutline { parent: parent.map(id), position, data: "" };
    let by = Stamp::By(EndpointId::new("a").unwrap());
    By091 { item: create(id(name), data, by, None), conflict: false }
}

/// Updated by an endpoint: a new version with another place (section 4.2).
fn moved(item: &Node, by: &str, parent: Option<&str>, position: u32) -> Node {
    let mut winner = item.item.winner.clone();
    let when = Time::from_unix(i64::from(winner.updates.value()));
    winner.updates = winner.updates.next().unwrap();
    let stamp = Stamp::Both { when, by: EndpointId::new(by).unwrap() };
    winner.history.push(Update { sequence: winner.updates, stamp });
    winner.data = PlacedOutline { parent: parent.map(id), position, data: "" };
    By091 { item: Shared::new(winner), conflict: false }
}

fn set(items: &[Node]) -> Set {
    items.iter().map(|item| (item.item.winner.id.clone(), item.clone())).collect()
}

fn shown(items: &Set) -> String {
    let lines = in_order(items).into_iter().map(|(depth, item)| {
        let mark = if item.conflict { "!" } else { "" };
        format!("{}{}{mark}", "-".repeat(depth), item.item.winner.id)
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn merged(local: &Set, incoming: &Set) -> Set {
    let mut local = local.clone();
    merge_outlines(&mut local, incoming.values().cloned());
    local
}

/// Section 3.2, second rule: the same place, by two endpoints.
#[test]
fn at_one_position_the_lower_id_comes_first() {
    let one = set(&[node("a", None, 0), node("m", None, 1)]);
    let other = set(&[node("a", None, 0), node("c", None, 1)]);
    assert_eq!(shown(&merged(&one, &other)), "a c m");
    assert_eq!(shown(&merged(&other, &one)), "a c m");
    // Code points count, whatever a language makes of them.
    let codes = set(&[node("é", None, 0), node("z", None, 0), node("Z", None, 0)]);
    assert_eq!(shown(&codes), "Z z é");
}

/// Section 3.2, first and third rule: the winner's new place counts, and moves with its parent.
#[test]
fn a_winner_stays_with_its_parent() {
    let (f, g, a) = (node("f", None, 0), node("g", None, 1), node("a", Some("f"), 0));
    let base = set(&[f.clone(), g, a.clone()]);
    let folder_moved = merged(&base, &set(&[moved(&f, "x", Some("g"), 0)]));
    assert_eq!(shown(&folder_moved), "g -f --a");
    let both = merged(&folder_moved, &set(&[moved(&a, "y", Some("f"), 7)]));
    assert_eq!(shown(&both), "g -f --a");
    assert_eq!(both[&id("a")].outline().position, 7);
}

/// Section 4.4.2: two endpoints put each folder into the other.
#[test]
fn a_cycle_is_broken_by_the_merge_that_makes_it() {
    let (a, b, c) = (node("a", None, 0), node("b", None, 1), node("c", Some("b"), 3));
    let base = set(&[a.clone(), b.clone(), c]);
    let one = merged(&base, &set(&[moved(&a, "x", Some("b"), 0)]));
    let other = merged(&base, &set(&[moved(&b, "y", Some("a"), 0)]));
    let sum = merged(&one, &other);
    assert_eq!(shown(&sum), "a! -b --c");
    assert_eq!(sum, merged(&other, &one));
    // Who has seen it tells others, and it does not change back.
    assert_eq!(shown(&merged(&one, &sum)), "a! -b --c");
    assert!(!merge_outlines(&mut sum.clone(), sum.values().cloned()));
}

/// Many items under each other, in one cycle, and below the cycle of the two highest.
#[test]
fn long_ways_to_the_root_are_walked_once() {
    let count = 20_000;
    let name = |n: usize| format!("{n:06}");
    let last = count - 1;
    for (end, lowest) in [(None, None), (Some(0), Some(0)), (Some(last - 1), Some(last - 1))] {
        let parent = |n: usize| if n == last { end } else { Some(n + 1) };
        let nodes = (0..count).map(|n| node(&name(n), parent(n).map(name).as_deref(), 0));
        let mut items = set(&nodes.collect::<Vec<_>>());
        assert_eq!(break_cycles(&mut items), lowest.is_some());
        let conflicts = items.values().filter(|item| item.conflict);
        let conflicts: Vec<_> = conflicts.map(|item| item.item.winner.id.clone()).collect();
        assert_eq!(conflicts, Vec::from_iter(lowest.map(|n| id(&name(n)))));
        assert_eq!(in_order(&items).len(), count);
    }
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A graph of parents, some of which are missing, or the item itself.
fn graph() -> impl Strategy<Value = Set> {
    let place = (0..NAMES.len() + 2, 0..3_u32);
    proptest::collection::vec(place, 1..=NAMES.len()).prop_map(|places| {
        let nodes: Vec<_> = places
            .iter()
            .zip(NAMES)
            .map(|((parent, at), name)| node(name, NAMES.get(*parent).copied(), *at))
            .collect();
        set(&nodes)
    })
}

/// The ids on the way to the root, until one comes again.
fn cycle_of(items: &Set, start: &SyncId) -> Option<Vec<SyncId>> {
    let mut way = vec![start.clone()];
    loop {
        let parent = items.get(way.last()?)?.outline().parent.clone()?;
        if parent == *start {
            way.sort();
            return Some(way);
        }
        if way.contains(&parent) {
            return None;
        }
        way.push(parent);
    }
}

/// A replica's own changes, and from whom it reads then.
fn story() -> impl Strategy<Value = Vec<(usize, usize, usize, u32, usize)>> {
    proptest::collection::vec(
        (0..3_usize, 0..NAMES.len(), 0..NAMES.len() + 1, 0..4_u32, 0..3_usize),
        0..24,
    )
}

proptest! {
    /// Exactly the lowest id of each cycle moves, to the root; nothing else changes, and nothing is
    /// left to do.
    #[test]
    fn exactly_the_lowest_of_each_cycle_moves(items in graph()) {
        let mut broken = items.clone();
        let moved = break_cycles(&mut broken);
        let cycles: HashSet<Vec<SyncId>> =
            items.keys().filter_map(|id| cycle_of(&items, id)).collect();
        let lowest: HashSet<&SyncId> = cycles.iter().map(|cycle| &cycle[0]).collect();
        prop_assert_eq!(moved, !cycles.is_empty());
        for (id, item) in &broken {
            let mut expected = items[id].clone();
            if lowest.contains(id) {
                expected.item.winner.data.parent = None;
                expected.conflict = true;
            }
            prop_assert_eq!(item, &expected);
        }
        prop_assert!(broken.keys().all(|id| cycle_of(&broken, id).is_none()));
        prop_assert_eq!(in_order(&broken).len(), items.len());
        prop_assert!(!break_cycles(&mut broken));
        // Cyclic or not, showing ends, and shows nothing twice.
        prop_assert!(in_order(&items).len() <= items.len());
    }

    /// Endpoints that hold the same set show the same outline, in whatever order they met.
    #[test]
    fn endpoints_converge(base in graph(), story in story()) {
        let mut base = base;
        break_cycles(&mut base);
        let mut replicas = [base.clone(), base.clone(), base];
        for (replica, name, parent, position, from) in story {
            let name = id(NAMES[name]);
            let by = ["x", "y", "z"][replica];
            let parent = NAMES.get(parent).copied();
            if let Some(item) = replicas[replica].get(&name) {
                let item = moved(item, by, parent, position);
                replicas[replica].insert(name, item);
                // An endpoint does not make a cycle by itself and leave it.
                break_cycles(&mut replicas[replica]);
            }
            let other = replicas[from].clone();
            replicas[replica] = merged(&replicas[replica], &other);
        }
        // Everybody reads everybody until nothing changes any more.
        for _ in 0..4 {
            for (reader, from) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                let other = replicas[from].clone();
                replicas[reader] = merged(&replicas[reader], &other);
            }
        }
        prop_assert_eq!(shown(&replicas[0]), shown(&replicas[1]));
        prop_assert_eq!(shown(&replicas[0]), shown(&replicas[2]));
    }
}
