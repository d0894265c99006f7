//! Resolving conflicts (SSE 1.0 section 3.4).

use super::local::advance;
use super::{SyncError, update_is_subsumed};
use crate::model::{History, Shared, Stamp, Update};

/// What the item shall say once its conflicts are resolved (section 3.4, step 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice<D> {
    /// What it says now.
    Winner,
    /// What the conflict of this number says, counted from 0; a tombstone chosen is a deletion.
    Conflict(usize),
    /// Something new, live.
    New(D),
}

/// Resolves the conflicts whose numbers are in `considered` (counted from 0) by one update, and
/// leaves the others. A conflict that is chosen counts as considered.
///
/// The update comes first and the histories are merged into it then (READINGS 1, row 12), so the
/// topmost entry is the resolution's own. Being an update, it takes the endpoint's own conflicts
/// into the history as well (FeedSync section 3.2 step 4).
pub fn resolve<D>(
    item: &mut Shared<D>,
    choice: Choice<D>,
    considered: &[usize],
    stamp: Stamp,
) -> Result<(), SyncError> {
    let have = item.conflicts.len();
    let chosen = match &choice {
        Choice::Conflict(number) => Some(*number),
        Choice::Winner | Choice::New(_) => None,
    };
    if let Some(&asked) = considered.iter().chain(&chosen).find(|number| **number >= have) {
        return Err(SyncError::NoSuchConflict { id: item.winner.id.clone(), asked, have });
    }
    let settled =
        advance(item, stamp, |number| considered.contains(&number) || chosen == Some(number))?;
    match choice {
        Choice::Winner => {}
        Choice::Conflict(number) => {
            if let Some((_, version)) = settled.into_iter().find(|(n, _)| *n == number) {
                item.winner.deleted = version.deleted;
                item.winner.data = version.data;
            }
        }
        Choice::New(data) => {
            item.winner.deleted = false;
            item.winner.data = data;
        }
    }
    Ok(())
}

/// Resolves all conflicts by one update.
pub fn resolve_all<D>(
    item: &mut Shared<D>,
    choice: Choice<D>,
    stamp: Stamp,
) -> Result<(), SyncError> {
    let all: Vec<usize> = (0..item.conflicts.len()).collect();
    resolve(item, choice, &all, stamp)
}

/// Merging Conflict Items (section 3.4, note 4): takes the updates of a conflict's history that the
/// item's does not subsume, in their order, as a block directly under the topmost.
///
/// Each is added once, if nothing that is there by then subsumes it; the texts, read to the letter,
/// skip the rest of a history (SSE 1.0) or add every update many times (FeedSync). READINGS 1,
/// rows 10 and 11.
pub(super) fn merge_history(history: &mut History, conflict: &History) {
    let mut block: Vec<Update> = Vec::new();
    for update in conflict.iter() {
        if !history.iter().chain(&block).any(|known| update_is_subsumed(update, known)) {
            block.push(update.clone());
        }
    }
    history.insert_below_topmost(block);
}

#[cfg(test)]
mod tests {
    use super::super::samples::{both, version, when};
    use super::*;

    fn contested() -> Shared<String> {
        let mut deleted = version(3, "gone", [both(3, 7, "C"), both(1, 1, "A")]);
        deleted.deleted = true;
        Shared {
            winner: version(3, "b", [both(3, 9, "B"), both(2, 2, "B"), both(1, 1, "A")]),
            conflicts: vec![
                version(3, "w", [when(3, 8), both(2, 4, "D"), both(1, 1, "A")]),
                deleted,
                version(2, "e", [both(2, 6, "E"), both(1, 1, "A")]),
            ],
        }
    }

    fn stamp() -> Stamp {
        both(1, 20, "B").stamp
    }

    #[test]
    fn keeping_the_winner_takes_in_every_history() {
        let mut item = contested();
        resolve_all(&mut item, Choice::Winner, stamp()).unwrap();
        assert!(item.conflicts.is_empty());
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("b", false));
        assert_eq!(item.winner.updates.value(), 4);
        assert_eq!(*item.winner.history.topmost(), both(4, 20, "B"));
        assert_eq!(item.winner.history.len(), 8);
        for version in contested().conflicts {
            let known = |y: &Update| update_is_subsumed(version.history.topmost(), y);
            assert!(item.winner.history.iter().any(known), "{version:?}");
        }
    }

    #[test]
    fn a_block_keeps_its_order_and_repeats_nothing() {
        let mut item = contested();
        resolve(&mut item, Choice::Winner, &[0], stamp()).unwrap();
        let expected = [
            both(4, 20, "B"),
            when(3, 8),
            both(2, 4, "D"),
            both(3, 9, "B"),
            both(2, 2, "B"),
            both(1, 1, "A"),
        ];
        assert_eq!(item.winner, version(4, "b", expected));
        assert_eq!(item.conflicts, contested().conflicts[1..]);
    }

    #[test]
    fn a_chosen_conflict_gives_its_data_and_its_deletion() {
        let mut item = contested();
        resolve(&mut item, Choice::Conflict(1), &[], stamp()).unwrap();
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("gone", true));
        assert_eq!(item.conflicts.len(), 2);
        resolve_all(&mut item, Choice::New("n".to_owned()), stamp()).unwrap();
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("n", false));
        assert!(item.conflicts.is_empty());
    }

    #[test]
    fn the_numbers_are_those_before_the_update_takes_own_conflicts() {
        let mut item = contested();
        resolve(&mut item, Choice::Conflict(2), &[], both(1, 20, "C").stamp).unwrap();
        assert_eq!(item.winner.data, "e");
        assert_eq!(item.conflicts, contested().conflicts[..1]);
    }

    #[test]
    fn a_number_that_is_not_there_changes_nothing() {
        let mut item = contested();
        let refused = resolve(&mut item, Choice::Conflict(3), &[], stamp());
        assert!(matches!(refused, Err(SyncError::NoSuchConflict { asked: 3, have: 3, .. })));
        let refused = resolve(&mut item, Choice::Winner, &[0, 9], stamp());
        assert!(matches!(refused, Err(SyncError::NoSuchConflict { asked: 9, have: 3, .. })));
        assert_eq!(item, contested());
    }
}
