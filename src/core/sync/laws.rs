//! The laws of the algebra, over replicas that live as the specification lets them: random
//! operations at several endpoints, random gossip between them.
//!
//! Stamps come with and without `by` and `when`, and clocks are skewed and repeat themselves. One
//! thing is kept from happening: two updates without `by` in the same second with the same
//! sequence, which the specification cannot tell apart (section 3.3, note 2).

use super::samples::ITEM;
use super::*;
use crate::model::{EndpointId, Shared, Stamp, Time};
use proptest::prelude::*;

const ENDPOINTS: usize = 4;

#[derive(Debug, Clone)]
enum Act {
    Update,
    Delete,
    Restore,
    /// Resolve the conflicts whose bit is set, keeping the winner, the n-th or something new.
    Resolve(u8, u8),
    Pull(usize),
}

#[derive(Debug, Clone)]
struct Step {
    at: usize,
    act: Act,
    /// 0: without `by`, 1: without `when`, else both.
    stamp: u8,
    /// What a skewed clock shows.
    seconds: i64,
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        4 => Just(Act::Update),
        1 => Just(Act::Delete),
        1 => Just(Act::Restore),
        2 => (any::<u8>(), 0..5_u8).prop_map(|(considered, keep)| Act::Resolve(considered, keep)),
        5 => (0..ENDPOINTS).prop_map(Act::Pull),
    ];
    let steps = (0..ENDPOINTS, act, 0..6_u8, 0..6_i64);
    steps.prop_map(|(at, act, stamp, seconds)| Step { at, act, stamp, seconds })
}

/// What the creator says of conflicts, and how long histories may grow.
type Policy = (Option<bool>, usize);

fn history() -> impl Strategy<Value = (Policy, Vec<Step>)> {
    let flag = prop_oneof![4 => Just(None), 1 => Just(Some(false)), 2 => Just(Some(true))];
    let limit = prop_oneof![Just(HISTORY_LIMIT), 1..6_usize];
    ((flag, limit), proptest::collection::vec(step(), 1..60))
}

type Replica = Shared<String>;

/// Whether a replica is well-made: every version has the id, and none knows of another.
fn is_well_made(item: &Replica) -> bool {
    let versions: Vec<_> = item.conflicts.iter().chain([&item.winner]).collect();
    let apart = versions
        .iter()
        .enumerate()
        .all(|(i, x)| versions.iter().enumerate().all(|(j, y)| i == j || !is_subsumed(x, y)));
    let best = item.conflicts.iter().all(|x| precedence(&item.winner, x).is_gt());
    apart && best && (item.winner.noconflicts != Some(true) || item.conflicts.is_empty())
}

/// Plays the steps, and returns what each endpoint has in the end. All begin with the item that
/// the first created: a sync id has one creator (section 2.4).
fn play((noconflicts, limit): Policy, steps: &[Step]) -> Vec<Replica> {
    let id = crate::model::SyncId::new(ITEM).unwrap();
    let created = create(id, "created".to_owned(), stamp_of(0, 2, 0, 0), noconflicts);
    let mut replicas = vec![created; ENDPOINTS];
    for (number, step) in steps.iter().enumerate() {
        let stamp = stamp_of(step.at, step.stamp, step.seconds, number);
        let data = format!("step {number}");
        if let Act::Pull(from) = step.act {
            let incoming = replicas[from].clone();
            replicas[step.at] = merge(replicas[step.at].clone(), incoming).unwrap();
            continue;
        }
        let item = &mut replicas[step.at];
        match step.act {
            Act::Update => update(item, data, stamp).unwrap(),
            Act::Delete => delete(item, stamp).unwrap(),
            Act::Restore => restore(item, data, stamp).unwrap(),
            Act::Resolve(considered, keep) => {
                let have = item.conflicts.len();
                let meant: Vec<usize> =
                    (0..have.min(8)).filter(|n| considered & (1 << n) != 0).collect();
                let choice = match usize::from(keep) {
                    0 => Choice::Winner,
                    1 => Choice::New(data),
                    n if n - 2 < have => Choice::Conflict(n - 2),
                    _ => Choice::Winner,
                };
                resolve(item, choice, &meant, stamp).unwrap();
            }
            Act::Pull(_) => {}
        }
        // Cutting belongs to the operation that makes the version: all copies of it are cut alike.
        truncate(&mut item.winner.history, limit);
    }
    replicas
}

fn stamp_of(endpoint: usize, kind: u8, seconds: i64, number: usize) -> Stamp {
    let by = EndpointId::new(["GPM7383", "JEO2000", "REO1750", "é-point"][endpoint]).unwrap();
    match kind {
        // One second each, so that no two updates without `by` are mistaken for one.
        0 => Stamp::When(Time::from_unix(1000 + i64::try_from(number).unwrap())),
        1 => Stamp::By(by),
        _ => Stamp::Both { when: Time::from_unix(seconds), by },
    }
}

fn merged(x: &Replica, y: &Replica) -> Replica {
    merge(x.clone(), y.clone()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Idempotent, commutative and associative. What was taken in once changes nothing when it comes
    /// again, from whomever, and `updates` never goes back.
    #[test]
    fn merge_is_a_semilattice((policy, steps) in history()) {
        let replicas = play(policy, &steps);
        for x in &replicas {
            prop_assert_eq!(&merged(x, x), x);
            for y in &replicas {
                let both = merged(x, y);
                prop_assert!(both.winner.updates >= x.winner.updates.max(y.winner.updates));
                for same in [merged(y, x), merged(&both, y), merged(x, &both)] {
                    prop_assert_eq!(&same, &both);
                }
                for z in &replicas {
                    prop_assert_eq!(merged(&both, z), merged(x, &merged(y, z)));
                }
            }
        }
    }

    #[test]
    fn every_item_made_is_well_made((policy, steps) in history()) {
        for replica in play(policy, &steps) {
            prop_assert!(is_well_made(&replica), "{replica:?}");
            prop_assert_eq!(replica.winner.noconflicts, policy.0);
        }
    }
}
