//! Local operations: create, update, delete and restore (SSE 1.0 sections 3.1 and 3.2, with
//! FeedSync section 3.2 step 4).

use super::{SyncError, update_is_subsumed};
use crate::model::{Count, EndpointId, History, Shared, Stamp, SyncId, Update, Version};
use std::collections::HashMap;

/// Creates an item (section 3.1). `noconflicts` is set here or never (section 2.4).
pub fn create<D>(id: SyncId, data: D, stamp: Stamp, noconflicts: Option<bool>) -> Shared<D> {
    let history = History::new(Update { sequence: Count::ONE, stamp });
    Shared::new(Version { id, updates: Count::ONE, deleted: false, noconflicts, history, data })
}

/// Updates an item with new data (section 3.2). A tombstone stays one: see [`restore`].
pub fn update<D>(item: &mut Shared<D>, data: D, stamp: Stamp) -> Result<(), SyncError> {
    advance(item, stamp, |_| false)?;
    item.winner.data = data;
    Ok(())
}

/// Deletes an item: an update that makes it a tombstone (section 3.2, step 4 of its list). Its data
/// stays, for conflicts and un-deletions to come.
pub fn delete<D>(item: &mut Shared<D>, stamp: Stamp) -> Result<(), SyncError> {
    advance(item, stamp, |_| false)?;
    item.winner.deleted = true;
    Ok(())
}

/// Un-deletes an item with the data that it has now (section 3.2, step 5 of its list).
pub fn restore<D>(item: &mut Shared<D>, data: D, stamp: Stamp) -> Result<(), SyncError> {
    advance(item, stamp, |_| false)?;
    item.winner.deleted = false;
    item.winner.data = data;
    Ok(())
}

/// Steps 1 and 2 of section 3.2: the number and the history entry of the next update.
///
/// `known` are the updates of the item's history and of its conflicts' histories. The sequence is
/// the new number of updates, or one more than the endpoint's greatest where that is greater;
/// conflicts count as well, so that no version of this endpoint outranks a later one of its own
/// (READINGS 1, row 13).
pub fn next_update<'a>(
    id: &SyncId,
    updates: Count,
    known: impl IntoIterator<Item = &'a Update>,
    stamp: Stamp,
) -> Result<(Count, Update), SyncError> {
    let exhausted = |_| SyncError::Exhausted { id: id.clone() };
    let updates = updates.next().map_err(exhausted)?;
    let sequence = match stamp.by().and_then(|by| Update::greatest_by(by, known)) {
        Some(greatest) if updates <= greatest => greatest.next().map_err(exhausted)?,
        _ => updates,
    };
    Ok((updates, Update { sequence, stamp }))
}

/// Steps 1 to 4 of section 3.2: counts the update, puts it on top, and takes into the history the
/// endpoint's own conflicting versions (FeedSync) and those whose number is `meant` (section 3.4).
/// Returns the versions taken, with their numbers.
fn advance<D>(
    item: &mut Shared<D>,
    stamp: Stamp,
    meant: impl Fn(usize) -> bool,
) -> Result<Vec<(usize, Version<D>)>, SyncError> {
    let versions = std::iter::once(&item.winner).chain(&item.conflicts);
    let known = versions.flat_map(|version| version.history.iter());
    let (updates, update) = next_update(&item.winner.id, item.winner.updates, known, stamp)?;
    let by = update.stamp.by().cloned();
    item.winner.updates = updates;
    item.winner.history.push(update);
    let is_own =
        |version: &Version<D>| by.is_some() && version.history.topmost().stamp.by() == by.as_ref();
    let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut item.conflicts)
        .into_iter()
        .enumerate()
        .partition(|(number, version)| meant(*number) || is_own(version));
    item.conflicts = left.into_iter().map(|(_, version)| version).collect();
    for (_, version) in &taken {
        merge_history(&mut item.winner.history, &version.history);
    }
    truncate(&mut item.winner.history, HISTORY_LIMIT);
    Ok(taken)
}

// Resolving conflicts (SSE 1.0 section 3.4).

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
fn merge_history(history: &mut History, conflict: &History) {
    let mut block: Vec<Update> = Vec::new();
    for update in conflict.iter() {
        if !history.iter().chain(&block).any(|known| update_is_subsumed(update, known)) {
            block.push(update.clone());
        }
    }
    history.insert_below_topmost(block);
}

// Cutting histories without harm (FeedSync sections 3.2 and 3.4; READINGS 1, row 15).

/// The most updates that a history made here keeps, unless more are needed to detect conflicts.
///
/// Readers like to see what happened, so the recent past is kept; one that fills a screen or two
/// is enough.
pub const HISTORY_LIMIT: usize = 64;

/// Cuts a history to `limit` updates, oldest first.
///
/// Never cut are the topmost, the one with the highest sequence of each endpoint, and those without
/// `by`: without them a conflict would be seen where there is none. They may be more than `limit`.
pub fn truncate(history: &mut History, limit: usize) {
    if history.len() <= limit {
        return;
    }
    let needed = needed(history);
    let mut spare = limit.saturating_sub(needed.iter().filter(|n| **n).count());
    let mut needed = needed.into_iter().skip(1);
    history.retain_below(|_| {
        if needed.next().unwrap_or(true) {
            return true;
        }
        let kept = spare > 0;
        spare = spare.saturating_sub(1);
        kept
    });
}

/// Whether each update of a history must be kept, the topmost first.
fn needed(history: &History) -> Vec<bool> {
    let mut highest: HashMap<&EndpointId, (usize, &Update)> = HashMap::new();
    for (place, update) in history.iter().enumerate() {
        if let Some(by) = update.stamp.by() {
            let best = highest.entry(by).or_insert((place, update));
            if update.sequence > best.1.sequence {
                *best = (place, update);
            }
        }
    }
    let needs = |(place, update): (usize, &Update)| match update.stamp.by() {
        Some(by) => place == 0 || highest.get(by).is_some_and(|best| best.0 == place),
        None => true,
    };
    history.iter().enumerate().map(needs).collect()
}

#[cfg(test)]
mod tests {
    use super::super::is_subsumed;
    use super::super::samples::{any_update, both, by, count, version, when};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn stamp(seconds: i64, name: &str) -> Stamp {
        both(1, seconds, name).stamp
    }

    #[test]
    fn delete_and_restore_are_updates_and_update_does_neither() {
        let mut item = Shared::new(version(1, "a", [both(1, 1, "A")]));
        delete(&mut item, stamp(2, "A")).unwrap();
        assert!(item.winner.deleted);
        assert_eq!(item.winner.data, "a");
        update(&mut item, "b".to_owned(), stamp(3, "B")).unwrap();
        assert!(item.winner.deleted);
        restore(&mut item, "c".to_owned(), stamp(4, "A")).unwrap();
        let expected = [both(4, 4, "A"), both(3, 3, "B"), both(2, 2, "A"), both(1, 1, "A")];
        assert_eq!(item, Shared::new(version(4, "c", expected)));
    }

    /// Section 3.2 step 2c: an own sequence that is already greater is exceeded.
    #[test]
    fn a_sequence_exceeds_the_endpoints_greatest() {
        let mut item = Shared::new(version(2, "a", [by(2, "B"), both(7, 1, "A")]));
        update(&mut item, "b".to_owned(), by(1, "A").stamp).unwrap();
        assert_eq!(item.winner.updates, count(3));
        assert_eq!(*item.winner.history.topmost(), by(8, "A"));
        update(&mut item, "c".to_owned(), when(1, 9).stamp).unwrap();
        assert_eq!(*item.winner.history.topmost(), when(4, 9));
    }

    /// FeedSync section 3.2 step 4, and the greatest sequence over conflicts (READINGS 1, row
    /// 13).
    #[test]
    fn own_conflicts_are_taken_into_the_history() {
        let mut item = Shared::new(version(2, "b", [both(2, 9, "B"), both(1, 1, "A")]));
        item.conflicts = vec![
            version(2, "a", [both(6, 5, "A"), both(1, 1, "A")]),
            version(2, "c", [both(2, 5, "C"), both(1, 1, "A")]),
        ];
        update(&mut item, "n".to_owned(), stamp(10, "A")).unwrap();
        let expected = [both(7, 10, "A"), both(2, 9, "B"), both(1, 1, "A")];
        assert_eq!(item.winner, version(3, "n", expected));
        assert_eq!(item.conflicts.len(), 1);
        assert_eq!(item.conflicts[0].data, "c");
        // One without `by` has none of its own, not even one that says no `by` either.
        item.conflicts.push(version(1, "w", [when(1, 5)]));
        update(&mut item, "m".to_owned(), when(1, 11).stamp).unwrap();
        assert_eq!(item.conflicts.len(), 2);
        // Conflicts are numbered as they were before the update takes those of its own.
        let mut item = contested();
        resolve(&mut item, Choice::Conflict(2), &[], both(1, 20, "C").stamp).unwrap();
        assert_eq!(item.winner.data, "e");
        assert_eq!(item.conflicts, contested().conflicts[..1]);
    }

    #[test]
    fn at_the_end_of_the_numbers_the_item_stays_as_it_is() {
        let most = Count::MAX.value();
        for full in [version(most, "a", [both(1, 1, "A")]), version(1, "a", [both(most, 1, "A")])] {
            let mut item = Shared::new(full.clone());
            let refused = update(&mut item, "b".to_owned(), stamp(2, "A"));
            assert_eq!(refused, Err(SyncError::Exhausted { id: full.id.clone() }));
            assert_eq!(item.winner, full);
        }
    }

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

    fn resolution() -> Stamp {
        both(1, 20, "B").stamp
    }

    #[test]
    fn a_block_keeps_its_order_and_repeats_nothing() {
        let mut item = contested();
        resolve(&mut item, Choice::Winner, &[0], resolution()).unwrap();
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
        resolve_all(&mut item, Choice::Winner, resolution()).unwrap();
        assert_eq!((item.winner.history.len(), item.conflicts.len()), (9, 0));
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("b", false));
    }

    #[test]
    fn a_chosen_conflict_gives_its_data_and_its_deletion() {
        let mut item = contested();
        resolve(&mut item, Choice::Conflict(1), &[], resolution()).unwrap();
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("gone", true));
        assert_eq!(item.conflicts.len(), 2);
        resolve_all(&mut item, Choice::New("n".to_owned()), resolution()).unwrap();
        assert_eq!((item.winner.data.as_str(), item.winner.deleted), ("n", false));
        assert!(item.conflicts.is_empty());
    }

    #[test]
    fn a_number_that_is_not_there_changes_nothing() {
        let mut item = contested();
        let refused = resolve(&mut item, Choice::Conflict(3), &[], resolution());
        assert!(matches!(refused, Err(SyncError::NoSuchConflict { asked: 3, have: 3, .. })));
        let refused = resolve(&mut item, Choice::Winner, &[0, 9], resolution());
        assert!(matches!(refused, Err(SyncError::NoSuchConflict { asked: 9, have: 3, .. })));
        assert_eq!(item, contested());
    }

    #[test]
    fn the_recent_past_is_kept_and_the_needed_far_past() {
        let long = [
            [both(9, 9, "A"), both(8, 8, "A"), both(7, 7, "A"), both(6, 6, "B")],
            [both(5, 5, "B"), when(4, 4), both(3, 3, "C"), both(2, 2, "C")],
        ];
        // A topmost that is not its endpoint's highest stays.
        let late = vec![both(1, 9, "A"), both(5, 8, "A"), both(4, 4, "A")];
        for (updates, limit, kept) in [
            (long.concat(), 6, &[9, 8, 7, 6, 4, 3][..]),
            (long.concat(), 1, &[9, 6, 4, 3]),
            (late, 2, &[1, 5]),
        ] {
            let mut history = History::from_newest_first(updates).unwrap();
            truncate(&mut history, limit);
            let left: Vec<u32> = history.iter().map(|update| update.sequence.value()).collect();
            assert_eq!(left, kept, "{limit}");
        }
    }

    proptest! {
        /// What a history subsumes is the same before and after, whatever the limit.
        #[test]
        fn no_conflict_is_detected_that_was_none(
            updates in vec(any_update(1..9_u32), 1..30),
            probe in vec(any_update(1..9_u32), 1..30),
            limit in 0..30_usize,
        ) {
            let whole = version(1, "", updates);
            let mut cut = whole.clone();
            truncate(&mut cut.history, limit);
            prop_assert_eq!(cut.history.topmost(), whole.history.topmost());
            let probe = version(1, "", probe);
            prop_assert_eq!(is_subsumed(&probe, &cut), is_subsumed(&probe, &whole));
            // No more is cut than the limit wants, and nothing that is needed.
            let mut needed = whole.clone();
            truncate(&mut needed.history, 0);
            let kept = limit.max(needed.history.len()).min(whole.history.len());
            prop_assert_eq!(cut.history.len(), kept);
            let mut again = cut.clone();
            truncate(&mut again.history, limit);
            prop_assert_eq!(again, cut);
        }
    }
}
