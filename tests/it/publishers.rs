//! Generated publishers with known truth in front of the core: what the gateway says of their items
//! must be so.
//!
//! Each case is a publisher (window, order, ids, dates, habits) and a history of what it does. The
//! cases are the same in every run. `TIDEGATE_PUBLISHERS_WITHOUT=many` switches a rule off (those of
//! `replay --without`). `TIDEGATE_PUBLISHERS=10000` tells more of them,
//! `TIDEGATE_PUBLISHERS_SEED=7` others, `TIDEGATE_PUBLISHERS_CASE=74` that one alone. A failure is
//! shrunk, and told from the first document on.

mod gate;
mod plan;
mod publisher;
mod story;
mod truth;
mod write;

use crate::support::on_all_processors;
use plan::Plan;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How many publishers there are in a plain run.
const CASES: u64 = 200;
const CASES_NAMED: usize = 8;
const SHRINKS: u64 = 3000;

/// Of a thousand histories, so many may hold an item for deleted that only left the window or goes by
/// another name: of a feed that is hardly known, the documents alone do not always tell. Of four
/// thousand histories of seed 0, seven hold one; of seed 7, which is an unlucky one, twelve: most are of
/// feeds merged from sources whose windows grow for a while.
const FALSE_TOMBSTONES_PER_MILLE: u64 = 2;

/// How the kinds of failures begin that are tombstones for items that their publisher did not take away.
const FALSE_TOMBSTONE: &str = "a false tombstone";

/// What is counted and printed but not asked: nothing in the contract promises it outright, or
/// nobody could tell from the feed alone.
const COUNTED: &[&str] = &[
    "an entry of a broken document was believed",
    "a false tombstone: it left the window by an earlier date",
    "a false tombstone: it is back where the window does not show it",
];

fn setting(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn tree(seed: u64, case: u64) -> impl ValueTree<Value = Plan> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&case.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    plan::plan().new_tree(&mut TestRunner::new_with_rng(Config::default(), rng)).unwrap()
}

/// The smallest plan that fails in the same way, as far as it is found.
fn smallest(tree: &mut impl ValueTree<Value = Plan>, kind: &'static str) -> Plan {
    let mut best = tree.current();
    for _ in 0..SHRINKS {
        let plan = tree.current();
        let same = story::tell(&plan).failures.first().is_some_and(|failure| failure.kind == kind);
        if same {
            best = plan;
        }
        let goes_on = if same { tree.simplify() } else { tree.complicate() };
        if !goes_on {
            break;
        }
    }
    best
}

fn told(plan: &Plan) -> String {
    let told = story::tell(plan);
    let failure = told.failures.first().map(|it| format!("=> {:?}: {}\n", it.kind, it.words));
    let (story, failure) = (told.lines.join("\n"), failure.unwrap_or_default());
    format!("{:?}\n{} posts at first\n{story}\n{failure}", plan.site, plan.posts)
}

#[derive(Default)]
struct Outcome {
    failed: BTreeMap<&'static str, Vec<u64>>,
    checked: BTreeMap<&'static str, u64>,
}

fn all(cases: u64, seed: u64) -> Outcome {
    let only = std::env::var("TIDEGATE_PUBLISHERS_CASE").is_ok();
    let only = only.then(|| setting("TIDEGATE_PUBLISHERS_CASE", 0));
    let cases: Vec<u64> = (0..cases).filter(|case| only.is_none_or(|only| only == *case)).collect();
    let mut whole = Outcome::default();
    for (case, told) in
        on_all_processors(&cases, |case| (*case, story::tell(&tree(seed, *case).current())))
    {
        if let Some(failure) = told.failures.first() {
            whole.failed.entry(failure.kind).or_default().push(case);
        }
        for (check, count) in told.checked {
            *whole.checked.entry(check).or_default() += count;
        }
    }
    whole
}

/// What every run must have looked at, so that none passes because nothing happened.
const LOOKED_AT: &[&str] = &[
    "a deletion was found",
    "a moved post stayed an item",
    "a living item was retired",
    "a document was held",
    "other bytes changed nothing",
    "an edit made a version",
];

#[test]
fn what_is_said_of_generated_publishers_is_so() {
    let cases = setting("TIDEGATE_PUBLISHERS", CASES);
    let seed = setting("TIDEGATE_PUBLISHERS_SEED", 0);
    let tell_all = setting("TIDEGATE_PUBLISHERS_TELL", 0) > 0;
    let Outcome { failed, checked } = all(cases, seed);
    println!("{checked:?}");
    let mut report = String::new();
    let mut false_tombstones = 0;
    for (kind, mut failing) in failed {
        failing.sort_unstable();
        let count = failing.len();
        let false_tombstone = kind.starts_with(FALSE_TOMBSTONE) && !COUNTED.contains(&kind);
        if false_tombstone {
            false_tombstones += count as u64;
        }
        let allowed = COUNTED.contains(&kind) || false_tombstone;
        failing.truncate(CASES_NAMED);
        let headline = format!("{kind:?} in {count} of {cases}: {failing:?}");
        println!("{headline}");
        if tell_all || !allowed {
            let smallest = smallest(&mut tree(seed, failing[0]), kind);
            let _ = writeln!(report, "\n{headline}\n{}", told(&smallest));
        }
    }
    assert!(report.is_empty(), "{report}");
    let most = cases * FALSE_TOMBSTONES_PER_MILLE / 1000;
    assert!(false_tombstones <= most, "{false_tombstones} false tombstones in {cases} histories");
    if cases >= CASES {
        let unseen: Vec<_> = LOOKED_AT.iter().filter(|c| !checked.contains_key(*c)).collect();
        assert!(unseen.is_empty(), "nothing was found out about {unseen:?}");
    }
}
