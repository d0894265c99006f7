//! Which archives are retained: the newest ones within the limits, and each one with the last state of a living item.
//!
//! A reader who follows the archive links from the reader view must find every living item. So no limit drops an
//! archive that has the last state of one. If such archives exceed the limits, all living items are sealed again and
//! the old archives are dropped, once that frees at least [`WORTH`] archives for each new one. So a feed exceeds the
//! limits by at most twice the archives that its living items fill.

use super::Policy;
use tidegate_core::model::{ArchiveNote, Chain, Tick, Time};

/// The most archives that one commit drops.
const AT_ONCE: u64 = 256;
/// So many archives must be let go for one that is sealed anew.
const WORTH: u64 = 2;

/// What is sealed of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedArchives<'a> {
    /// The notes of the oldest archives kept, oldest first, as far as they are known.
    pub oldest: &'a [ArchiveNote],
    /// The earliest tick of the items that live and whose last state is sealed; `None` if there
    /// are none.
    pub lowest: Option<Tick>,
    /// How many such items there are.
    pub living: u64,
    /// The number of the first archive that the commit seals. What it seals it does not drop.
    pub end: u64,
}

/// Moves the chain's start behind the archives that are to be dropped; returns whether it moved.
///
/// The newest archive is never dropped, and none that has the last state of an item that lives.
pub fn retain(chain: &mut Chain, sealed: &SealedArchives<'_>, policy: &Policy, now: Time) -> bool {
    let newest = chain.next.saturating_sub(1);
    let end = sealed.end.min(newest).min(chain.first.saturating_add(AT_ONCE));
    let wanted = wanted(chain, sealed.oldest, policy, now).min(free(chain, sealed)).min(end);
    let moved = wanted > chain.first;
    chain.first = chain.first.max(wanted);
    moved
}

/// Whether the limits would drop an archive at all: where they would not, what is sealed need not be
/// gathered. `oldest` is [`SealedArchives::oldest`].
pub fn is_over(chain: &Chain, oldest: &[ArchiveNote], policy: &Policy, now: Time) -> bool {
    wanted(chain, oldest, policy, now) > chain.first
}

/// Whether everything that lives is to be sealed anew, so that archives can be dropped.
pub fn is_worth_it(chain: &Chain, sealed: &SealedArchives<'_>, policy: &Policy, now: Time) -> bool {
    let blocked = wanted(chain, sealed.oldest, policy, now)
        .min(sealed.end)
        .saturating_sub(free(chain, sealed).max(chain.first));
    let needed = sealed.living.div_ceil(u64::from(policy.entries.max(1)));
    blocked > 0 && needed.saturating_mul(WORTH) <= blocked
}

/// The number of the first archive that the limits would keep.
fn wanted(chain: &Chain, oldest: &[ArchiveNote], policy: &Policy, now: Time) -> u64 {
    let mut first = chain.first.max(chain.next.saturating_sub(policy.kept.max(1)));
    let mut bytes = chain.bytes;
    for note in oldest {
        if note.number >= first {
            let is_old = policy.age.is_some_and(|age| now.since(note.sealed) > age);
            let is_much = policy.bytes.is_some_and(|limit| bytes > limit);
            if !(is_old || is_much) {
                return first;
            }
            first = note.number.saturating_add(1);
        }
        bytes = bytes.saturating_sub(note.bytes);
    }
    // Of those that are not known, as many as there would be if they were all of one size.
    let rest = chain.next.saturating_sub(first);
    let excess = policy.bytes.map_or(0, |limit| bytes.saturating_sub(limit));
    let share = u128::from(excess).saturating_mul(rest.into()) / u128::from(bytes.max(1));
    first.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
}

/// The number of the first archive that must be kept for what lives, as far as is known.
fn free(chain: &Chain, sealed: &SealedArchives<'_>) -> u64 {
    let Some(lowest) = sealed.lowest else { return u64::MAX };
    // An archive older than the last state of every living item has no such state.
    let passed = sealed.oldest.iter().take_while(|note| note.until < lowest).last();
    passed.map_or(0, |note| note.number.saturating_add(1)).max(chain.free)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_core::model::{ArchiveId, Tick};

    const DAY: Duration = Duration::from_secs(86_400);

    fn notes(chain: &Chain) -> Vec<ArchiveNote> {
        let numbers = chain.first..chain.next;
        let note = |number: u64| ArchiveNote {
            number,
            id: ArchiveId::new(&format!("a{number}")).unwrap(),
            previous: None,
            sealed: Time::from_unix(i64::try_from(number).unwrap() * 86_400),
            until: Tick::at(Time::from_unix(i64::try_from(number).unwrap() * 10)),
            entries: 1,
            deletions: 0,
            bytes: 100,
            redacted: None,
            dropped: false,
        };
        numbers.map(note).collect()
    }

    /// Nothing lives.
    const fn dead(oldest: &[ArchiveNote], end: u64) -> SealedArchives<'_> {
        SealedArchives { oldest, lowest: None, living: 0, end }
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
            assert_eq!(retain(&mut ten, &dead(&notes, 10), &policy, now), first > 0, "{policy:?}");
            assert_eq!(ten.first, first, "{policy:?}");
            // A second look finds nothing more to drop, nor is anything dropped that is sealed now.
            ten.bytes -= 100 * first;
            let left = &notes[usize::try_from(first).unwrap()..];
            assert!(!retain(&mut ten, &dead(left, 10), &policy, now), "{policy:?}");
            let mut more = Chain { next: 20, ..chain(0, 10) };
            let one = Policy { kept: 1, ..policy };
            assert!(retain(&mut more, &dead(&notes, 10), &one, now));
            assert_eq!(more.first, 10, "{policy:?}");
        }
    }

    #[test]
    fn what_lives_stays_until_it_is_sealed_anew() {
        let now = Time::from_unix(10 * 86_400);
        let policy = Policy { entries: 5, kept: 2, ..Policy::default() };
        let notes = notes(&chain(0, 10));
        let at = |n: i64| Tick::at(Time::from_unix(n));
        // Archive n has what came until 10 n.
        for (lowest, living, free, first, worth) in [
            (None, 0, 0, 8, false),
            (Some(at(0)), 5, 0, 0, true),
            (Some(at(5)), 20, 0, 1, false),
            (Some(at(15)), 15, 0, 2, true),
            (Some(at(15)), 16, 0, 2, false),
            (Some(at(75)), 3, 0, 8, false),
            (Some(at(99)), 3, 0, 8, false),
            // Everything that lives was sealed anew, in archive 6 and later.
            (Some(at(15)), 5, 6, 6, true),
            (Some(at(15)), 6, 6, 6, false),
            (Some(at(15)), 6, 9, 8, false),
        ] {
            let mut ten = Chain { free, ..chain(0, 10) };
            let sealed = SealedArchives { oldest: &notes, lowest, living, end: 10 };
            let said = (lowest, living, free);
            assert_eq!(is_worth_it(&ten, &sealed, &policy, now), worth, "{said:?}");
            retain(&mut ten, &sealed, &policy, now);
            assert_eq!(ten.first, first, "{said:?}");
        }
    }

    /// Only the oldest notes are at hand.
    #[test]
    fn archives_that_are_not_known_count_as_if_all_were_of_one_size() {
        let now = Time::from_unix(0);
        let notes: Vec<_> = notes(&chain(0, 100)).into_iter().take(10).collect();
        let policy = Policy { kept: 1000, bytes: Some(2000), ..Policy::default() };
        assert_eq!(wanted(&chain(0, 100), &notes, &policy, now), 80);
        let policy = Policy { bytes: Some(9_500), ..policy };
        assert_eq!(wanted(&chain(0, 100), &notes, &policy, now), 5);
        let policy = Policy { bytes: Some(0), ..policy };
        assert_eq!(wanted(&chain(0, 100), &notes, &policy, now), 100);
    }
}
