//! Merging items of SSE 0.91 (its sections 4.4 and 5.2; READINGS 2).
//!
//! Here an update is known by its time and endpoint alone, and its number by its place, so these
//! histories are of another kind than those of SSE 1.0 and have types of their own.

use crate::model::{Count, EndpointId, Stamp, SyncId, Time};
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

#[cfg(test)]
mod tests {
    use super::super::samples::{ITEM, both, by, count, when};
    use super::*;
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
