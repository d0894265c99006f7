//! Items of SSE 1.0 as items of SSE 0.91, and back (READINGS 2, its last sentence).
//!
//! The two know updates by different things: 1.0 by endpoint and sequence, 0.91 by time, endpoint and
//! place. What comes back whole is an item whose updates are numbered one by one from its topmost,
//! which has the number of all updates. Lost on the way to 0.91 are `noconflicts`; updates below a
//! number that is missing, since places would shift; of several updates with one number all but the
//! latest, which is the one that 0.91 would have made the winner; and a topmost sequence that is not
//! the number of updates. Lost on the way from 0.91 are conflicts of which no item was kept, the
//! attribute `conflict` where there is no such item, and updates beyond the first.

use super::{Conflict091, Item091};
use crate::model::{Count, History, Shared, Stamp, Update, Version};

/// An item of SSE 1.0 as one of 0.91. `keep` makes of a conflicting version, which has no conflicts
/// of its own, what is kept of it (section 5.2).
pub fn to_091<D, C>(item: Shared<D>, mut keep: impl FnMut(Item091<D, C>) -> C) -> Item091<D, C> {
    let conflicts = item.conflicts.into_iter().map(|version| {
        let lost = alone(version);
        let (version, edit) = (lost.version, lost.last.clone());
        Conflict091 { version, edit, data: keep(lost) }
    });
    let conflicts: Vec<_> = conflicts.collect();
    Item091 { conflict: !conflicts.is_empty(), conflicts, ..alone(item.winner) }
}

fn alone<D, C>(version: Version<D>) -> Item091<D, C> {
    let (last, updates) = line(version.updates, &version.history);
    Item091 {
        id: version.id,
        version: version.updates,
        deleted: version.deleted,
        conflict: false,
        last,
        updates,
        conflicts: Vec::new(),
        data: version.data,
    }
}

/// The updates that stand one by one below the topmost: the k-th has the sequence `updates` − k.
fn line(updates: Count, history: &History) -> (Stamp, Vec<Stamp>) {
    let mut stamps = Vec::new();
    for sequence in (1..updates.value()).rev() {
        let with = history.below().iter().filter(|update| update.sequence.value() == sequence);
        let latest = with.max_by_key(|update| (update.stamp.when(), update.stamp.by()));
        match latest {
            Some(update) => stamps.push(update.stamp.clone()),
            None => break,
        }
    }
    (history.topmost().stamp.clone(), stamps)
}

/// An item of SSE 0.91 as one of 1.0: the k-th update from the top, the topmost being the 0th, gets
/// the sequence `version` − k. `item_of` gives the item that was kept of a conflict; one of another
/// id is none.
pub fn from_091<D, C>(
    item: Item091<D, C>,
    mut item_of: impl FnMut(Conflict091<C>) -> Option<Item091<D, C>>,
) -> Shared<D> {
    let Item091 { id, version, deleted, conflict: _, last, updates, conflicts, data } = item;
    let lost = conflicts.into_iter().filter_map(&mut item_of).filter(|lost| lost.id == id);
    let conflicts = lost.map(|lost| {
        let history = numbered(lost.version, lost.last, lost.updates);
        let (updates, deleted) = (lost.version, lost.deleted);
        Version { id: lost.id, updates, deleted, noconflicts: None, history, data: lost.data }
    });
    let conflicts = conflicts.collect();
    let history = numbered(version, last, updates);
    let winner = Version { id, updates: version, deleted, noconflicts: None, history, data };
    Shared { winner, conflicts }
}

fn numbered(version: Count, last: Stamp, updates: Vec<Stamp>) -> History {
    let topmost = Update { sequence: version, stamp: last };
    let sequences = (1..version.value()).rev().map_while(|sequence| Count::new(sequence).ok());
    let below = sequences.zip(updates).map(|(sequence, stamp)| Update { sequence, stamp });
    let mut history = History::new(topmost);
    history.insert_below_topmost(below);
    history
}

#[cfg(test)]
mod tests {
    use super::super::samples::{both, by, count, version, when};
    use super::*;
    use proptest::prelude::*;

    type Kept = Box<Item091<String, Whole>>;

    /// What is kept of a conflict: the item.
    #[derive(Debug, Clone, PartialEq)]
    struct Whole(Kept);

    fn there(item: Shared<String>) -> Item091<String, Whole> {
        to_091(item, |lost| Whole(Box::new(lost)))
    }

    fn back(item: Item091<String, Whole>) -> Shared<String> {
        from_091(item, |conflict| Some(*conflict.data.0))
    }

    /// An update of one of three endpoints; each has a time, an endpoint, or both.
    fn update(sequence: u32) -> impl Strategy<Value = Update> {
        (0_usize..3, 0_usize..3, 0_i64..1000).prop_map(move |(kind, endpoint, seconds)| {
            let name = ["A", "B", "C"][endpoint];
            match kind {
                0 => both(sequence, seconds, name),
                1 => by(sequence, name),
                _ => when(sequence, seconds),
            }
        })
    }

    /// A version whose updates are numbered one by one, some of the oldest left out.
    fn numbered_one_by_one() -> impl Strategy<Value = Version<String>> {
        (1_u32..8, 0_u32..8, any::<bool>(), "[a-c]{0,3}").prop_flat_map(
            |(updates, cut, deleted, data)| {
                let first = 1 + cut.min(updates - 1);
                let all: Vec<_> = (first..=updates).rev().map(update).collect();
                all.prop_map(move |all| {
                    let mut version = version(updates, &data, all);
                    version.deleted = deleted;
                    version
                })
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_not_lost_comes_back(
            winner in numbered_one_by_one(),
            conflicts in proptest::collection::vec(numbered_one_by_one(), 0..4),
        ) {
            let item = Shared { winner, conflicts };
            let other = there(item.clone());
            prop_assert_eq!(other.conflict, !item.conflicts.is_empty());
            prop_assert_eq!(back(other.clone()), item);
            prop_assert_eq!(there(back(other.clone())), other);
        }

        /// Whatever else a history has, the way there gives an item that comes back unchanged.
        #[test]
        fn what_was_converted_once_stays(
            updates in 1_u32..6,
            sequences in proptest::collection::vec(1_u32..8, 1..8),
        ) {
            let all = sequences.iter().enumerate().map(|(n, sequence)| {
                both(*sequence, i64::try_from(n).unwrap(), ["A", "B"][n % 2])
            });
            let item = Shared::new(version(updates, "x", all));
            let once = there(item);
            prop_assert_eq!(there(back(once.clone())), once);
        }
    }

    #[test]
    fn of_two_updates_with_one_number_the_later_stands_in_the_line() {
        let all = [both(5, 53, "G"), both(4, 3, "J"), both(4, 43, "G"), both(3, 2, "J")];
        let item = there(Shared::new(version(5, "x", all)));
        let stamps = [both(4, 43, "G").stamp, both(3, 2, "J").stamp];
        assert_eq!(item.updates, stamps);
        assert_eq!(item.version, count(5));
    }

    #[test]
    fn updates_below_a_missing_number_are_left_out() {
        let all = [both(5, 5, "A"), both(4, 4, "B"), both(2, 2, "A"), both(1, 1, "A")];
        assert_eq!(there(Shared::new(version(5, "x", all))).updates, [both(4, 4, "B").stamp]);
    }

    #[test]
    fn a_conflict_of_another_item_and_updates_before_the_first_are_none() {
        let mut item = there(Shared::new(version(2, "x", [both(2, 2, "A")])));
        item.updates = vec![both(1, 1, "A").stamp, both(1, 0, "A").stamp];
        let mut other = item.clone();
        other.id = crate::model::SyncId::new("other").unwrap();
        let edit = other.last.clone();
        item.conflicts.push(Conflict091 { version: count(2), edit, data: Whole(Box::new(other)) });
        let shared = back(item);
        assert!(shared.conflicts.is_empty());
        assert_eq!(shared.winner.history.len(), 2);
    }
}
