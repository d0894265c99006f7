//! Endpoints that all resolve by themselves come to rest, and agree.

use super::super::policy::{DROPPED, KEPT_PREFERRED, KEPT_WINNER, TURNS, settle_by_policy};
use super::{EndpointId, Shared, Stamp, SyncId, Time};
use proptest::prelude::*;
use tidegate_core::model::{ConflictPolicy, Count, History, Update};
use tidegate_core::sync::{self, Choice};

const NAMES: [&str; 5] = ["gate-a", "gate-b", "gate-c", "gate-d", "gate-e"];

type Replica = Shared<String>;

fn by(at: usize) -> EndpointId {
    EndpointId::new(NAMES[at]).unwrap()
}

fn stamp(at: usize, seconds: i64) -> Stamp {
    Stamp::Both { when: Time::from_unix(seconds), by: by(at) }
}

fn first() -> Replica {
    sync::create(SyncId::new("item").unwrap(), "created".to_owned(), stamp(0, 0), None)
}

/// What `at` has after it takes in `from` and settles by its policy.
fn exchange(
    at: usize,
    own: &Replica,
    from: &Replica,
    policy: &ConflictPolicy,
    now: i64,
) -> (Replica, Option<&'static str>) {
    let mut merged = sync::merge(own.clone(), from.clone()).unwrap();
    let settled = settle_by_policy(&mut merged, policy, stamp(at, now)).unwrap();
    (merged, settled)
}

fn edited(item: &Replica, at: usize, text: &str, now: i64) -> Replica {
    let mut item = item.clone();
    sync::update(&mut item, text.to_owned(), stamp(at, now)).unwrap();
    item
}

#[test]
fn what_each_policy_keeps() {
    let pair =
        |one: &str, other: &str| [edited(&first(), 0, one, 5), edited(&first(), 1, other, 6)];
    let third = edited(&first(), 3, "c", 4);
    let prefer = |at| ConflictPolicy::Prefer(by(at));
    for (policy, at, expected, kept) in [
        (ConflictPolicy::Winner, 2, Some(KEPT_WINNER), "b"),
        (prefer(0), 2, Some(KEPT_PREFERRED), "a"),
        // Where none is its own, the winner is kept.
        (prefer(4), 2, Some(KEPT_WINNER), "b"),
        // Of two whose versions meet, the winner answers.
        (ConflictPolicy::Winner, 0, Some(DROPPED), "b"),
        (ConflictPolicy::Winner, 1, Some(KEPT_WINNER), "b"),
    ] {
        let [one, other] = pair("a", "b");
        let both = sync::merge(one, third.clone()).unwrap();
        let (item, settled) = exchange(at, &both, &other, &policy, 9);
        let left = (item.winner.data.as_str(), item.conflicts.len());
        assert_eq!((settled, left), (expected, (kept, 0)), "{policy:?} {at}");
        let is_made = settled != Some(DROPPED);
        assert_eq!(item.winner.updates.value(), if is_made { 3 } else { 2 });
        let all = pair("a", "b").into_iter().chain([third.clone()]);
        for version in all.filter(|_| is_made) {
            assert_eq!(sync::merge(item.clone(), version).unwrap(), item, "nobody is asked twice");
        }
    }
    let settled = |one: &Replica, other: &Replica, policy| exchange(2, one, other, &policy, 9);
    let [one, other] = pair("a", "b");
    let merged = sync::merge(one.clone(), other.clone()).unwrap();
    assert_eq!(settled(&one, &other, ConflictPolicy::Keep), (merged, None));
    assert_eq!(settled(&first(), &first(), ConflictPolicy::Winner), (first(), None));
    // Versions that say the same are no conflict.
    let [one, other] = pair("same", "same");
    let dropped = settled(&one, &other, ConflictPolicy::Winner);
    assert_eq!(dropped, (other, Some(DROPPED)));
    // A deletion is preferred like anything else.
    let mut gone = first();
    sync::delete(&mut gone, stamp(0, 5)).unwrap();
    let (item, result) = settled(&gone, &edited(&first(), 1, "b", 6), prefer(0));
    assert!(result == Some(KEPT_PREFERRED) && item.winner.deleted);
}

#[derive(Debug, Clone)]
enum Act {
    Edit,
    Delete,
    Restore,
    /// A person resolves what is in conflict, where a policy left anything.
    Decide,
    /// Take in what another has, or had so many steps ago.
    Pull(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Edit),
        1 => Just(Act::Delete),
        1 => Just(Act::Restore),
        1 => Just(Act::Decide),
        8 => (0..NAMES.len(), 0..4_usize).prop_map(|(from, ago)| Act::Pull(from, ago)),
    ]
}

fn policy() -> impl Strategy<Value = ConflictPolicy> {
    prop_oneof![
        2 => Just(ConflictPolicy::Winner),
        3 => (0..NAMES.len()).prop_map(|at| ConflictPolicy::Prefer(by(at))),
    ]
}

/// The most rounds, in each of which everybody hears of everybody, until nothing changes any more.
const ROUNDS: i64 = 60;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever happened, and whatever each of them prefers: once nobody edits any more, exchanges,
    /// late documents among them, come to an end, and all have the same item without a conflict.
    #[test]
    fn endpoints_with_policies_come_to_rest(
        policies in proptest::collection::vec(policy(), NAMES.len()),
        steps in proptest::collection::vec((0..NAMES.len(), act(), 0..6_i64), 1..50),
        orders in proptest::collection::vec((0..NAMES.len(), 0..NAMES.len(), 0..2_usize), 10..60),
    ) {
        let mut past: Vec<Vec<Replica>> = vec![vec![first()]; NAMES.len()];
        let mut now = 10;
        for (number, (at, act, seconds)) in steps.into_iter().enumerate() {
            now += seconds;
            let own = past[at].last().unwrap().clone();
            let mut item = own.clone();
            match act {
                Act::Edit => item = edited(&own, at, &format!("step {number}"), now),
                Act::Delete => sync::delete(&mut item, stamp(at, now)).unwrap(),
                Act::Restore => {
                    sync::restore(&mut item, format!("step {number}"), stamp(at, now)).unwrap();
                }
                Act::Decide => sync::resolve_all(&mut item, Choice::Winner, stamp(at, now)).unwrap(),
                Act::Pull(from, ago) => {
                    let seen = past[from].iter().rev().nth(ago).unwrap_or(&past[from][0]).clone();
                    item = exchange(at, &own, &seen, &policies[at], now).0;
                }
            }
            past[at].push(item);
        }
        let mut last: Vec<Replica> = past.iter().map(|p| p.last().unwrap().clone()).collect();
        let mut sent = last.clone();
        let mut made = 0;
        let mut at_rest = false;
        for round in 0..ROUNDS {
            now += 1;
            let before = last.clone();
            // Some hear late: what they take in is what was sent in the round before.
            for (at, from, late) in &orders {
                let seen = if *late == 1 { sent[*from].clone() } else { last[*from].clone() };
                let (item, settled) = exchange(*at, &last[*at], &seen, &policies[*at], now);
                made += u32::from(matches!(settled, Some(KEPT_WINNER | KEPT_PREFERRED)));
                last[*at] = item;
            }
            for at in 0..NAMES.len() {
                for from in 0..NAMES.len() {
                    let seen = if round % 2 == 0 { sent[from].clone() } else { last[from].clone() };
                    last[at] = exchange(at, &last[at], &seen, &policies[at], now).0;
                }
            }
            sent = before.clone();
            if round > 2 && before == last && round % 2 == 1 {
                at_rest = true;
                break;
            }
        }
        prop_assert!(at_rest, "{} resolutions and no rest: {:?}", made, last);
        for item in &last {
            prop_assert!(item.conflicts.is_empty());
            prop_assert_eq!(item, &last[0]);
        }
    }
}

#[test]
fn turns_are_told_from_the_history() {
    let update = |sequence: u32, at: usize| Update {
        sequence: Count::new(sequence).unwrap(),
        stamp: stamp(at, 1),
    };
    let updates: Vec<Update> =
        (0..2 * TURNS).map(|n| update(40 - u32::try_from(n).unwrap(), n % 2)).collect();
    let mut item = sync::merge(edited(&first(), 0, "a", 5), edited(&first(), 1, "b", 6)).unwrap();
    item.winner.history = History::from_newest_first(updates).unwrap();
    let mut tired = item.clone();
    let settled = settle_by_policy(&mut tired, &ConflictPolicy::Winner, stamp(0, 9));
    assert_eq!(settled, Ok(Some(DROPPED)));
    let settled = settle_by_policy(&mut item, &ConflictPolicy::Winner, stamp(2, 9));
    assert_eq!(settled, Ok(Some(KEPT_WINNER)));
}
