//! Which archives are kept: the newest ones, whole.

use super::Policy;
use crate::model::{ArchiveNote, Chain, Time};

/// The most archives that one commit drops.
const AT_ONCE: u64 = 256;

/// Moves the chain's start behind the archives that are to be dropped; says whether it moved.
///
/// `oldest`: the notes of the oldest archives kept, as far as they are known. `sealed`: the number
/// of the first archive that is sealed in this commit. What a commit seals it does not drop, and
/// the newest archive is never dropped: what left the reader view last can be reached.
pub fn retain(
    chain: &mut Chain,
    oldest: &[ArchiveNote],
    sealed: u64,
    policy: &Policy,
    now: Time,
) -> bool {
    let end = sealed.min(chain.next.saturating_sub(1)).min(chain.first.saturating_add(AT_ONCE));
    let by_count = chain.next.saturating_sub(policy.kept.max(1));
    let mut first = chain.first.max(by_count.min(end));
    let mut bytes = chain.bytes;
    for note in oldest {
        if note.number >= first {
            let is_old = policy.age.is_some_and(|age| now.since(note.sealed) > age);
            let is_much = policy.bytes.is_some_and(|limit| bytes > limit);
            if note.number >= end || !(is_old || is_much) {
                break;
            }
            first = note.number.saturating_add(1);
        }
        bytes = bytes.saturating_sub(note.bytes);
    }
    let moved = first > chain.first;
    chain.first = chain.first.max(first);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ArchiveId, Tick};
    use proptest::prelude::*;
    use std::time::Duration;

    const DAY: Duration = Duration::from_secs(86_400);

    fn notes(chain: &Chain) -> Vec<ArchiveNote> {
        let numbers = chain.first..chain.next;
        let note = |number: u64| ArchiveNote {
            number,
            id: ArchiveId::new(&format!("a{number}")).unwrap(),
            previous: None,
            sealed: Time::from_unix(i64::try_from(number).unwrap() * 86_400),
            until: Tick::at(Time::from_unix(0)),
            entries: 1,
            deletions: 0,
            bytes: 100,
            redacted: None,
            dropped: false,
        };
        numbers.map(note).collect()
    }

    fn chain(first: u64, next: u64) -> Chain {
        let bytes = (next - first) * 100;
        Chain { first, next, bytes, ..Chain::default() }
    }

    #[test]
    fn count_age_and_bytes_drop_from_the_oldest_end() {
        let now = Time::from_unix(10 * 86_400);
        let keep = Policy { kept: 1000, ..Policy::default() };
        for (policy, first) in [
            (keep, 0),
            (Policy { kept: 4, ..keep }, 6),
            (Policy { age: Some(DAY * 4), ..keep }, 6),
            (Policy { age: Some(DAY), ..keep }, 9),
            (Policy { bytes: Some(350), ..keep }, 7),
            (Policy { bytes: Some(0), ..keep }, 9),
            (Policy { kept: 8, age: Some(DAY * 5), bytes: Some(900), ..keep }, 5),
        ] {
            let mut ten = chain(0, 10);
            let notes = notes(&ten);
            assert_eq!(retain(&mut ten, &notes, 10, &policy, now), first > 0, "{policy:?}");
            assert_eq!(ten.first, first, "{policy:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_now_and_the_newest_are_kept(
            (first, kept, fresh) in (0_u64..20, 0_u64..20, 0_u64..20),
            (most, days, bytes) in (1_u64..20, proptest::option::of(0_u32..20), proptest::option::of(0_u64..2000)),
        ) {
            let mut some = chain(first, first + kept);
            let notes = notes(&some);
            some.next += fresh;
            let policy = Policy { kept: most, age: days.map(|days| DAY * days), bytes, ..Policy::default() };
            let sealed = first + kept;
            let before = some.clone();
            let moved = retain(&mut some, &notes, sealed, &policy, Time::from_unix(30 * 86_400));
            prop_assert_eq!(moved, some != before);
            prop_assert!(some.first <= sealed && some.first >= first);
            prop_assert!(some.next == first || some.kept() >= 1);
            if fresh == 0 && kept > 0 {
                prop_assert!(some.kept() <= most || some.kept() == 1);
            }
            // A second look finds nothing more to drop.
            some.bytes -= notes.iter().filter(|n| n.number < some.first).map(|n| n.bytes).sum::<u64>();
            let left: Vec<_> = notes.into_iter().filter(|n| n.number >= some.first).collect();
            let again = some.clone();
            retain(&mut some, &left, sealed, &policy, Time::from_unix(30 * 86_400));
            prop_assert_eq!(again, some);
        }
    }
}
