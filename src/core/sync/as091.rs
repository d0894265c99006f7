//! Merging items that are known by SSE 0.91 alone, by its own rules, while they are kept as items of
//! SSE 1.0 (0.91 sections 4.4 and 5.2; READINGS 2).
//!
//! The k-th update from the top has the sequence `updates` − k ([`super::from_091`]), so that what 0.91
//! asks of a history can be asked of this one, and nothing is converted to and fro. Two things go beyond
//! the text, and both only so that rings come to rest, on however many of their hops 0.91 is spoken:
//! of two equal items the conflicts are put together, where the text takes no action (4.4 step 2); and
//! nothing is in conflict with a version that its own endpoint made later, knowing it.

use super::{Canonical, precedence, update_is_subsumed};
use crate::model::{Count, EndpointId, Shared, Stamp, Time, Update, Version};
use std::cmp::Ordering;

/// An item that is known by SSE 0.91 alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By091<D> {
    pub item: Shared<D>,
    /// Whether it bears `conflict="true"`: somebody detected a conflict that nobody has resolved.
    pub conflict: bool,
}

/// Incorporates an incoming item into the local one of the same id (section 4.4).
pub fn merge_as_091<D: Canonical>(local: By091<D>, incoming: By091<D>) -> By091<D> {
    let order = rank(&local.item.winner).cmp(&rank(&incoming.item.winner));
    let (mut winner, mut loser) = match order {
        Ordering::Less => (incoming, local),
        Ordering::Equal | Ordering::Greater => (local, incoming),
    };
    let mut kept = std::mem::take(&mut winner.item.conflicts);
    let others = match order {
        Ordering::Equal => {
            // The data that comes in is the newer one, as in a merge of 1.0 (READINGS 1, row 3).
            std::mem::swap(&mut winner.item.winner.data, &mut loser.item.winner.data);
            winner.conflict |= loser.conflict;
            loser.item.conflicts
        }
        // The winner's conflict attribute is preserved (READINGS 2, row 7).
        _ if !is_conflict(&winner.item.winner, &loser.item.winner) => Vec::new(),
        _ => {
            winner.conflict = true;
            loser.item.conflicts.into_iter().chain([loser.item.winner]).collect()
        }
    };
    for conflict in others {
        keep(&mut kept, conflict);
    }
    let is_known = |conflict: &Version<D>| is_known_to(conflict, &winner.item.winner);
    kept.retain(|conflict| !is_known(conflict));
    kept.sort_by(|x, y| precedence(y, x));
    if winner.item.winner.noconflicts == Some(true) {
        kept.clear();
    }
    winner.item.conflicts = kept;
    winner
}

/// The keys of section 4.4 step 1. A value that is not present is less than every other.
fn rank<D>(version: &Version<D>) -> (Count, Option<Time>, Option<&EndpointId>) {
    let stamp = &version.history.topmost().stamp;
    (version.updates, stamp.when(), stamp.by())
}

/// Conflict Detection (section 4.4.1): whether the winner's update of the loser's number is another one
/// than the loser's. One that is not there any more is none.
fn is_conflict<D>(winner: &Version<D>, loser: &Version<D>) -> bool {
    if is_known_to(loser, winner) {
        return false;
    }
    let theirs = &loser.history.topmost().stamp;
    if winner.updates == loser.updates {
        return winner.history.topmost().stamp != *theirs;
    }
    let mut same = winner.history.below().iter().filter(|u| u.sequence == loser.updates).peekable();
    same.peek().is_some() && !same.any(|update| update.stamp == *theirs)
}

/// Whether a version was known to the endpoint that made it when that made a later one, which the
/// winner's history has.
fn is_known_to<D>(version: &Version<D>, winner: &Version<D>) -> bool {
    let theirs = version.history.topmost();
    let is_later = |update: &Update| match (&update.stamp, &theirs.stamp) {
        (Stamp::Both { when, .. }, Stamp::Both { when: before, .. }) => {
            if update.sequence == theirs.sequence { when == before } else { when >= before }
        }
        (now, before) => now == before || update.sequence > theirs.sequence,
    };
    winner.history.iter().any(|update| update_is_subsumed(theirs, update) && is_later(update))
}

/// Adds a conflict: one for each endpoint and one without, of the latest version (section 5.2).
fn keep<D>(kept: &mut Vec<Version<D>>, conflict: Version<D>) {
    fn age<D>(version: &Version<D>) -> (Count, Option<Time>) {
        (version.updates, version.history.topmost().stamp.when())
    }
    let by = |version: &Version<D>| version.history.topmost().stamp.by().cloned();
    match kept.iter_mut().find(|other| by(other) == by(&conflict)) {
        Some(other) if age(other) < age(&conflict) => *other = conflict,
        Some(_) => {}
        None => kept.push(conflict),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{ITEM, both, version};
    use super::super::{Item091, create, from_091, merge, to_091, update};
    use super::*;
    use crate::model::SyncId;
    use proptest::prelude::*;

    fn known(version: Version<String>) -> By091<String> {
        By091 { item: Shared::new(version), conflict: false }
    }

    /// What made every foreign edit a conflict: a publisher that keeps no `sx:update`, which the text
    /// allows.
    #[test]
    fn an_update_whose_history_was_dropped_is_no_conflict() {
        let old = known(version(2, "old", [both(2, 2, "B"), both(1, 1, "A")]));
        let new = known(version(3, "new", [both(3, 3, "A")]));
        assert_eq!(merge_as_091(old.clone(), new.clone()), new);
        assert_eq!(merge_as_091(new.clone(), old.clone()), new);
        let by_1_0 = merge(old.item, new.item.clone()).unwrap();
        assert_eq!(by_1_0.conflicts.len(), 1);
    }

    #[test]
    fn two_edits_of_one_version_conflict_and_both_sides_agree() {
        let early = known(version(2, "early", [both(2, 5, "A"), both(1, 1, "A")]));
        let late = known(version(2, "late", [both(2, 9, "B"), both(1, 1, "A")]));
        let sum = merge_as_091(early.clone(), late.clone());
        assert_eq!(sum, merge_as_091(late.clone(), early.clone()));
        assert!(sum.conflict);
        assert_eq!(sum.item.winner, late.item.winner);
        assert_eq!(sum.item.conflicts, std::slice::from_ref(&early.item.winner));
        // A third that has the winner alone learns of the conflict.
        assert_eq!(merge_as_091(late, sum.clone()), sum);
        // A later version of the winner's conflicts with what it does not know.
        let later = [both(3, 10, "B"), both(2, 9, "B"), both(1, 1, "A")];
        let later = known(version(3, "later", later));
        let merged = merge_as_091(early, later);
        assert!(merged.conflict && merged.item.conflicts.len() == 1);
    }

    #[test]
    fn the_winners_mark_is_kept_and_stands_without_details() {
        let mut marked = known(version(2, "new", [both(2, 5, "B"), both(1, 1, "A")]));
        marked.conflict = true;
        let old = known(version(1, "old", [both(1, 1, "A")]));
        assert_eq!(merge_as_091(old.clone(), marked.clone()), marked);
        let mut marked_old = old;
        marked_old.conflict = true;
        let plain = By091 { conflict: false, ..marked };
        assert_eq!(merge_as_091(marked_old, plain.clone()), plain);
    }

    /// An endpoint in a ring: who reads whom by 0.91 is said for each hop.
    #[derive(Debug, Clone)]
    struct Endpoint {
        name: &'static str,
        held: Option<(By091<String>, bool)>,
    }

    const RING: [&str; 4] = ["A", "B", "C", "D"];

    impl Endpoint {
        /// As an item goes over the wire by 0.91: a line of updates (READINGS 2).
        fn by_091(item: &By091<String>) -> By091<String> {
            let conflict = item.conflict || !item.item.conflicts.is_empty();
            let there = to_091(item.item.clone(), |lost| Box::new(Kept(lost)));
            let back = from_091(there, |conflict| Some(conflict.data.0));
            By091 { item: back, conflict }
        }

        fn reads(&mut self, other: &Self, old: bool) {
            let Some((theirs, _)) = &other.held else { return };
            let theirs = if old { Self::by_091(theirs) } else { theirs.clone() };
            self.held = Some(match self.held.take() {
                None => (theirs, old),
                Some((own, true)) if old => (merge_as_091(own, theirs), true),
                Some((own, _)) => {
                    let item = merge(own.item, theirs.item).unwrap();
                    (By091 { item, conflict: false }, false)
                }
            });
        }

        fn edits(&mut self, now: i64) {
            let text = format!("{} at {now}", self.name);
            let stamp = both(1, now, self.name).stamp;
            if let Some((own, _)) = &mut self.held {
                update(&mut own.item, text, stamp).unwrap();
                own.conflict = !own.item.conflicts.is_empty();
            }
        }
    }

    struct Kept(Item091<String, Box<Kept>>);

    impl Clone for Kept {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Edit(usize),
        Read(usize),
    }

    /// What is in conflict, in whatever order.
    fn lost(item: &Shared<String>) -> Vec<String> {
        let mut lost: Vec<String> = item.conflicts.iter().map(|c| c.data.clone()).collect();
        lost.sort_unstable();
        lost
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step =
            prop_oneof![(0_usize..4).prop_map(Step::Edit), (0_usize..4).prop_map(Step::Read)];
        prop::collection::vec(step, 1..40)
    }

    proptest! {
        /// Rings come to rest with one winner everywhere, whichever of their hops speak 0.91; with 0.91
        /// on none or on all hops, or on one, with the same in conflict as well.
        #[test]
        fn rings_converge(steps in steps(), hops in any::<[bool; 4]>()) {
            let mut ring = RING.map(|name| Endpoint { name, held: None });
            let id = SyncId::new(ITEM).unwrap();
            let first = create(id, "first".to_owned(), both(1, 0, "A").stamp, None);
            ring[0].held = Some((By091 { item: first, conflict: false }, true));
            let read = |ring: &mut [Endpoint; 4], at: usize| {
                let other = ring[(at + 3) % 4].clone();
                ring[at].reads(&other, hops[at]);
            };
            for (now, step) in (1..).zip(steps) {
                match step {
                    Step::Edit(at) => ring[at].edits(now),
                    Step::Read(at) => read(&mut ring, at),
                }
            }
            let mut rounds = 0;
            loop {
                let before = ring.clone().map(|endpoint| endpoint.held);
                for at in 0..4 {
                    read(&mut ring, at);
                }
                rounds += 1;
                prop_assert!(rounds < 20, "it never comes to rest");
                if before == ring.clone().map(|endpoint| endpoint.held) {
                    break;
                }
            }
            let shown = ring.map(|endpoint| endpoint.held.unwrap().0.item);
            let old_hops = hops.iter().filter(|hop| **hop).count();
            for other in &shown[1..] {
                prop_assert_eq!(&other.winner.data, &shown[0].winner.data);
                prop_assert_eq!(other.winner.updates, shown[0].winner.updates);
                if matches!(old_hops, 0 | 1 | 4) {
                    prop_assert_eq!(lost(other), lost(&shown[0]));
                }
            }
        }
    }
}
