//! Merging items of SSE 0.91 (its sections 4.4 and 5.2; READINGS 2).
//!
//! Here an update is known by its time and endpoint alone, and its number by its place, so these
//! histories are of another kind than those of SSE 1.0 and have types of their own.

use crate::model::{Count, EndpointId, History, Shared, Stamp, SyncId, Time, Update, Version};
use std::cmp::Ordering;

/// An item of SSE 0.91. `D` is its data, `C` what is kept of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item091<D, C> {
    pub id: SyncId,
    /// Its `version`, from 1.
    pub version: Count,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// Whether a conflict was detected that nobody has resolved.
    pub conflict: bool,
    /// The most recent update (`sx:history`).
    pub last: Stamp,
    /// The updates before it, newest first (`sx:update`); there may be none.
    pub updates: Vec<Stamp>,
    /// The conflicts kept, at most one for each endpoint and one without.
    pub conflicts: Vec<Conflict091<C>>,
    /// What it says.
    pub data: D,
}

/// An `sx:conflict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict091<C> {
    /// The version that lost.
    pub version: Count,
    /// Its most recent update.
    pub edit: Stamp,
    /// What is kept of it.
    pub data: C,
}

/// What a merge of two items comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged091<D, C> {
    /// The local item stays as it is.
    Unchanged,
    /// This takes its place.
    Changed(Item091<D, C>),
}

/// Incorporates an incoming item into the local one of the same id (section 4.4). `preserve` makes
/// of a loser, its own conflicts taken out, what is kept of it (section 5.2).
pub fn merge_091<D: Clone, C: Clone>(
    local: &Item091<D, C>,
    incoming: &Item091<D, C>,
    preserve: impl FnOnce(Item091<D, C>) -> C,
) -> Merged091<D, C> {
    let (winner, loser) = match rank(local).cmp(&rank(incoming)) {
        // Step 2: equal in all keys is identical.
        Ordering::Equal => return Merged091::Unchanged,
        Ordering::Greater => (local, incoming),
        Ordering::Less => (incoming, local),
    };
    if !is_conflict(winner, loser) {
        // The winner's conflict attribute is preserved (READINGS 2, row 7).
        return match rank(winner).cmp(&rank(local)) {
            Ordering::Equal => Merged091::Unchanged,
            _ => Merged091::Changed(winner.clone()),
        };
    }
    let mut merged = winner.clone();
    merged.conflict = true;
    let mut lost = loser.clone();
    let mut conflicts = std::mem::take(&mut lost.conflicts);
    let (version, edit) = (lost.version, lost.last.clone());
    conflicts.push(Conflict091 { version, edit, data: preserve(lost) });
    let mut news = !winner.conflict || std::ptr::eq(winner, incoming);
    for conflict in conflicts {
        news |= keep(&mut merged, conflict);
    }
    if news { Merged091::Changed(merged) } else { Merged091::Unchanged }
}

/// The keys of section 4.4 step 1. A value that is not present is less than every other
/// (READINGS 2, rows 2 to 4).
fn rank<D, C>(item: &Item091<D, C>) -> (Count, Option<Time>, Option<&EndpointId>) {
    (item.version, item.last.when(), item.last.by())
}

/// Conflict Detection (section 4.4.1), which asks first whether there is an nth update (READINGS 2,
/// rows 5 and 6).
fn is_conflict<D, C>(winner: &Item091<D, C>, loser: &Item091<D, C>) -> bool {
    let n = winner.version.value().saturating_sub(loser.version.value());
    let known = match usize::try_from(n) {
        Ok(0) => Some(&winner.last),
        Ok(n) => winner.updates.get(n - 1),
        Err(_) => None,
    };
    known.is_some_and(|known| *known != loser.last)
}

/// Adds a conflict: one for each endpoint and one without, of the latest version (section 5.2).
/// Returns whether it was news.
fn keep<D, C>(item: &mut Item091<D, C>, conflict: Conflict091<C>) -> bool {
    let is_itself = conflict.version == item.version && conflict.edit == item.last;
    if is_itself {
        return false;
    }
    let age = |conflict: &Conflict091<C>| (conflict.version, conflict.edit.when());
    match item.conflicts.iter_mut().find(|kept| kept.edit.by() == conflict.edit.by()) {
        Some(kept) if age(kept) < age(&conflict) => *kept = conflict,
        Some(_) => return false,
        None => item.conflicts.push(conflict),
    }
    true
}

// Items of SSE 1.0 as items of SSE 0.91, and back (READINGS 2, its last sentence).
//
// The two know updates by different things: 1.0 by endpoint and sequence, 0.91 by time, endpoint
// and place. What comes back whole is an item whose updates are numbered one by one from its
// topmost, which has the number of all updates. Lost on the way to 0.91 are `noconflicts`; updates
// below a number that is missing, since places would shift; of several updates with one number all
// but the latest, which is the one that 0.91 would have made the winner; and a topmost sequence
// that is not the number of updates. Lost on the way from 0.91 are conflicts of which no item was
// kept, the attribute `conflict` where there is no such item, and updates beyond the first.

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
    mod sse091 {
        use super::super::super::samples::{ITEM, both, by, count, when};
        use super::super::*;
        use crate::model::Update;

        type Item = Item091<&'static str, &'static str>;

        fn item(version: u32, data: &'static str, edits: &[Update]) -> Item {
            let mut edits = edits.iter().map(|update| update.stamp.clone());
            Item091 {
                id: SyncId::new(ITEM).unwrap(),
                version: count(version),
                deleted: false,
                conflict: false,
                last: edits.next().unwrap(),
                updates: edits.collect(),
                conflicts: Vec::new(),
                data,
            }
        }

        fn merged(local: &Item, incoming: &Item) -> Item {
            match merge_091(local, incoming, |lost| lost.data) {
                Merged091::Unchanged => local.clone(),
                Merged091::Changed(item) => item,
            }
        }

        #[test]
        fn a_later_version_that_knows_the_earlier_wins_without_conflict() {
            let old = item(1, "old", &[both(1, 1, "A")]);
            let new = item(3, "new", &[both(1, 3, "B"), both(1, 2, "A"), both(1, 1, "A")]);
            assert_eq!(merged(&old, &new), new);
            assert_eq!(merged(&new, &old), new);
            assert_eq!(merge_091(&new, &old, |lost| lost.data), Merged091::Unchanged);
            assert_eq!(merge_091(&new, &new, |lost| lost.data), Merged091::Unchanged);
        }

        /// Section 4.4.1 step 4: an update that was truncated away is no conflict.
        #[test]
        fn what_was_truncated_is_no_conflict() {
            let old = item(1, "old", &[both(1, 1, "A")]);
            let new = item(3, "new", &[both(1, 3, "B"), both(1, 2, "B")]);
            assert_eq!(merged(&old, &new), new);
        }

        #[test]
        fn separate_edits_of_one_version_conflict_and_the_loser_is_kept() {
            let first = both(1, 1, "A");
            let early = item(2, "early", &[both(1, 5, "A"), first.clone()]);
            let late = item(2, "late", &[both(1, 9, "B"), first.clone()]);
            let sum = merged(&early, &late);
            assert_eq!(sum, merged(&late, &early));
            assert!(sum.conflict && sum.data == "late");
            let kept = Conflict091 { version: count(2), edit: early.last.clone(), data: "early" };
            assert_eq!(sum.conflicts, [kept]);
            assert_eq!(merge_091(&sum, &early, |lost| lost.data), Merged091::Unchanged);
            assert_eq!(merged(&early, &sum), sum);
            let further = item(3, "further", &[both(1, 10, "B"), both(1, 9, "B"), first]);
            assert!(merged(&early, &further).conflict);
            assert!(!merged(&late, &further).conflict);
        }

        #[test]
        fn a_value_that_is_there_wins_over_one_that_is_not() {
            let with_when = item(2, "when", &[when(1, 1)]);
            let with_by = item(2, "by", &[by(1, "Z")]);
            let with_both = item(2, "both", &[both(1, 1, "A")]);
            assert_eq!(merged(&with_by, &with_when).data, "when");
            assert_eq!(merged(&with_both, &with_when).data, "both");
        }

        /// Section 5.2: of one endpoint's conflicts the latest version is kept.
        #[test]
        fn one_conflict_is_kept_for_each_endpoint() {
            let mut winner = item(4, "w", &[both(1, 9, "W")]);
            let conflict =
                |n, edit: Update, data| Conflict091 { version: count(n), edit: edit.stamp, data };
            winner.conflicts =
                vec![conflict(2, both(1, 2, "A"), "a2"), conflict(3, both(1, 2, "B"), "b3")];
            let mut loser = item(4, "l", &[when(1, 8)]);
            loser.conflicts = vec![
                conflict(3, both(1, 3, "A"), "a3"),
                conflict(1, both(1, 9, "B"), "b1"),
                conflict(4, both(1, 9, "W"), "w"),
            ];
            let kept: Vec<_> = merged(&winner, &loser).conflicts.iter().map(|c| c.data).collect();
            assert_eq!(kept, ["a3", "b3", "l"]);
        }
    }

    mod convert {
        use super::super::super::samples::{both, by, count, version, when};
        use super::super::*;
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
            item.conflicts.push(Conflict091 {
                version: count(2),
                edit,
                data: Whole(Box::new(other)),
            });
            let shared = back(item);
            assert!(shared.conflicts.is_empty());
            assert_eq!(shared.winner.history.len(), 2);
        }
    }
}
