//! Selects what is pruned from the past of a feed. Pure.

use super::limits::{PRUNE_LIMIT, VERSIONS_KEPT, VERSIONS_LIMIT};
use super::past::Retention;
use std::time::Duration;
use tidegate_core::model::Time;

/// A hundred years: nothing goes by its age unless the operator says so.
const AGE_KEPT: Duration = Duration::from_secs(36_525 * 86_400);
/// What a feed's past may take unless the operator says otherwise: 256 MiB.
const BYTES_KEPT: u64 = 256 << 20;

impl Default for Retention {
    fn default() -> Self {
        Self { versions: VERSIONS_KEPT, age: AGE_KEPT, bytes: BYTES_KEPT }
    }
}

/// A version of an item, or a frame of a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PastEntry<K> {
    /// Names it.
    pub(super) key: K,
    /// When it began to be in force.
    pub(super) from: Time,
    /// Its size in bytes.
    pub(super) size: u64,
}

/// Entries of which each replaced the one before, oldest first: the versions of an item, or the frames of a feed.
pub(super) struct PastLine<K> {
    pub(super) entries: Vec<PastEntry<K>>,
    /// When the last entry was replaced; `None` where it is in force.
    pub(super) ended: Option<Time>,
    /// The most entries that are kept.
    pub(super) limit: usize,
}

impl<K> PastLine<K> {
    /// The versions of an item, whose last one is the newest.
    pub(super) fn of_versions(entries: Vec<PastEntry<K>>, retention: &Retention) -> Self {
        let limit = retention.versions.clamp(1, VERSIONS_LIMIT);
        Self { entries, ended: None, limit }
    }
}

/// Selects the entries to remove: from the old end of each line those that are too old or too many, then the oldest
/// of all lines until their sizes fit. An entry in force stays. At most [`PRUNE_LIMIT`]; answers whether there are
/// more.
pub(super) fn surplus<K: Copy>(
    lines: &[PastLine<K>],
    retention: &Retention,
    now: Time,
) -> (Vec<K>, bool) {
    let cut = now.minus(retention.age);
    let mut total: u64 = 0;
    let mut gone: Vec<(Time, K)> = Vec::new();
    let mut rest: Vec<(Time, u64, K)> = Vec::new();
    for line in lines {
        let count = line.entries.len();
        let ends = line.entries.iter().skip(1).map(|t| Some(t.from)).chain([line.ended]);
        let mut too_old = true;
        for (at, (entry, ended)) in line.entries.iter().zip(ends).enumerate() {
            total = total.saturating_add(entry.size);
            let Some(ended) = ended else { continue };
            // From the old end only: an entry may be stored as a difference to the next.
            too_old = too_old && ended <= cut;
            if too_old || count - at > line.limit {
                total = total.saturating_sub(entry.size);
                gone.push((ended, entry.key));
            } else {
                rest.push((ended, entry.size, entry.key));
            }
        }
    }
    if total > retention.bytes {
        rest.sort_by_key(|(ended, ..)| *ended);
        for (ended, size, key) in rest {
            if total <= retention.bytes {
                break;
            }
            total = total.saturating_sub(size);
            gone.push((ended, key));
        }
    }
    gone.sort_by_key(|(ended, _)| *ended);
    let more = gone.len() > PRUNE_LIMIT;
    gone.truncate(PRUNE_LIMIT);
    (gone.into_iter().map(|(_, key)| key).collect(), more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::testing::at;

    fn line(item: char, times: &[i64], retention: &Retention) -> PastLine<(char, i64)> {
        let entries = times.iter().map(|t| PastEntry { key: (item, *t), from: at(*t), size: 10 });
        PastLine::of_versions(entries.collect(), retention)
    }

    const ALL: Retention =
        Retention { versions: 9, age: Duration::from_secs(1_000_000), bytes: 1_000 };

    #[test]
    fn what_goes_is_what_is_too_old_too_many_of_an_item_or_too_large_for_the_feed() {
        let aged = Retention { age: Duration::from_secs(100), ..ALL };
        let versions = |versions| Retention { versions, ..ALL };
        let bytes = |bytes| Retention { bytes, ..ALL };
        type Sizes = &'static [(char, &'static [i64])];
        type Case = (Retention, i64, Sizes, &'static [(char, i64)]);
        let ages: Sizes = &[('a', &[0, 200, 400]), ('b', &[0])];
        let sizes: Sizes = &[('a', &[1, 9]), ('b', &[2, 4, 5])];
        let cases: [Case; 7] = [
            // Age counts from the replacement of an entry.
            (aged, 299, ages, &[]),
            (aged, 300, ages, &[('a', 0)]),
            (aged, 9_999, ages, &[('a', 0), ('a', 200)]),
            (versions(2), 50, &[('a', &[1, 2, 3, 4]), ('b', &[1, 2])], &[('a', 1), ('a', 2)]),
            (versions(0), 50, &[('a', &[1, 2])], &[('a', 1)]),
            (bytes(30), 50, sizes, &[('b', 2), ('b', 4)]),
            (bytes(0), 50, sizes, &[('b', 2), ('b', 4), ('a', 1)]),
        ];
        for (retention, now, lines, expected) in cases {
            let lines: Vec<_> =
                lines.iter().map(|(item, times)| line(*item, times, &retention)).collect();
            assert_eq!(surplus(&lines, &retention, at(now)), (expected.to_vec(), false));
        }
        // A line that has ended can go whole.
        let ended = PastLine { ended: Some(at(2)), ..line('a', &[1], &ALL) };
        assert_eq!(surplus(&[ended], &aged, at(102)).0, [('a', 1)]);
    }

    proptest! {
        #[test]
        fn the_newest_stays_and_what_goes_is_the_old_end(
            lines in proptest::collection::vec(proptest::collection::vec(1..50_i64, 1..30), 1..6),
            versions in 0..20_usize, age in 0..600_u64, bytes in 0..2_000_u64,
        ) {
            let retention = Retention { versions, age: Duration::from_secs(age), bytes };
            let times = |steps: &Vec<i64>| -> Vec<i64> {
                steps.iter().scan(0, |now, step| { *now += step; Some(*now) }).collect()
            };
            let made: Vec<(char, Vec<i64>)> = ('a'..).zip(lines.iter().map(times)).collect();
            let lines = made.iter().map(|(name, times)| line(*name, times, &retention));
            let (gone, _) = surplus(&lines.collect::<Vec<_>>(), &retention, at(2_000));
            for (n, times) in &made {
                let of: Vec<i64> = gone.iter().filter(|(m, _)| m == n).map(|(_, t)| *t).collect();
                prop_assert_eq!(&of[..], &times[..of.len()], "from the old end, in order");
                prop_assert!(of.len() < times.len(), "the newest stays");
                prop_assert!(times.len() - of.len() <= versions.max(1));
            }
        }
    }
}
