//! Local operations: create, update, delete and restore (SSE 1.0 sections 3.1 and 3.2, with
//! FeedSync section 3.2 step 4).

use super::resolve::merge_history;
use super::{HISTORY_LIMIT, SyncError, truncate};
use crate::model::{Count, History, Shared, Stamp, SyncId, Update, Version};

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
pub(super) fn advance<D>(
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

#[cfg(test)]
mod tests {
    use super::super::samples::{ITEM, both, by, count, version, when};
    use super::*;

    fn stamp(seconds: i64, name: &str) -> Stamp {
        both(1, seconds, name).stamp
    }

    #[test]
    fn a_new_item_starts_at_one() {
        let id = SyncId::new(ITEM).unwrap();
        let item = create(id, "x", stamp(5, "A"), Some(false));
        assert_eq!(item.winner.updates, Count::ONE);
        assert_eq!(item.winner.noconflicts, Some(false));
        assert_eq!(item.winner.history, History::new(both(1, 5, "A")));
        assert!(!item.winner.deleted);
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

    /// FeedSync section 3.2 step 4, and the greatest sequence over conflicts (READINGS 1, row 13).
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
    }

    #[test]
    fn an_update_without_by_leaves_the_conflicts() {
        let mut item = Shared::new(version(2, "b", [both(2, 9, "B")]));
        item.conflicts = vec![version(2, "a", [both(2, 5, "A")]), version(1, "w", [when(1, 5)])];
        update(&mut item, "n".to_owned(), when(1, 10).stamp).unwrap();
        assert_eq!(item.conflicts.len(), 2);
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
}
