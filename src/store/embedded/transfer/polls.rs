//! Poll states for an export of a database that is far away, read while others write.

use super::super::read;
use super::super::records::Records;
use super::super::shared::StoreShared;
use crate::{FeedList, StoreError, as_list};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegate_core::model::{FeedName, PollState};

/// Poll states, each read after the list of feeds was as it is here.
pub(super) struct PollsAhead {
    /// The records of all feeds.
    pub(super) feeds: Arc<FeedList>,
    pub(super) polls: Vec<PollState>,
}

impl PollsAhead {
    /// Reads all poll states, a round trip for each few hundred of them. Others write meanwhile.
    pub(super) fn read(records: &Records, shared: &StoreShared) -> Result<Self, StoreError> {
        let feeds = shared.list_feeds(|| Ok(as_list(read::feeds(records)?)))?;
        let polls = read::poll_states(records)?;
        // What changed meanwhile is read now: little is left to be read while the committer waits.
        Self { feeds, polls }.renewed(records, shared)
    }

    /// The records of all feeds as they are now. The poll states of those that changed are read anew: such a feed may
    /// have been purged, and another one may have its name.
    ///
    /// While the gate of the lists is held, none is left of a feed that was purged.
    pub(super) fn renewed(
        mut self,
        records: &Records,
        shared: &StoreShared,
    ) -> Result<Self, StoreError> {
        let feeds = match shared.listed() {
            Some(listed) => listed,
            None => Arc::new(as_list(read::feeds(records)?)),
        };
        let changed = changed(&self.feeds, &feeds);
        if !changed.is_empty() {
            self.polls.retain(|state| !changed.contains(&state.feed));
            self.polls.extend(read::poll_states_of(records, &changed)?);
        }
        Ok(Self { feeds, ..self })
    }
}

/// The feeds of which a record was changed, removed or added. A feed that was purged and put again has another record,
/// also where it says the same.
fn changed(before: &Arc<FeedList>, now: &Arc<FeedList>) -> BTreeSet<FeedName> {
    let mut changed = BTreeSet::new();
    if Arc::ptr_eq(before, now) {
        return changed;
    }
    // Both are in the order of the names.
    let mut before = before.iter().peekable();
    for (name, record) in now.iter() {
        while let Some((removed, _)) = before.next_if(|(other, _)| *other < name) {
            changed.insert(removed.clone());
        }
        let was = before.next_if(|(other, _)| *other == name);
        let is_same = was.is_some_and(|(_, was)| Arc::ptr_eq(was, record));
        if !is_same {
            changed.insert(name.clone());
        }
    }
    changed.extend(before.map(|(removed, _)| removed.clone()));
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::make;

    #[test]
    fn feeds_that_were_changed_removed_or_added_are_told() {
        let before = Arc::new(as_list(["b", "d", "f", "h"].map(make::record).into()));
        assert!(changed(&before, &before).is_empty());
        let mut now = FeedList::clone(&before);
        assert!(changed(&before, &Arc::new(now.clone())).is_empty());
        for name in ["a", "e", "z"] {
            now.insert(make::feed(name), Arc::new(make::record(name)));
        }
        now.remove(&make::feed("b"));
        now.remove(&make::feed("h"));
        // It was purged and put again.
        now.insert(make::feed("f"), Arc::new(make::record("f")));
        let names = ["a", "b", "e", "f", "h", "z"].map(make::feed);
        assert_eq!(changed(&before, &Arc::new(now)), BTreeSet::from(names));
    }
}
