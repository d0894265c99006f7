//! Items that are known by SSE 0.91 alone: read and kept as items of SSE 1.0, and merged by the rules of
//! 0.91 (its sections 4.4 and 5.2; READINGS 2).
//!
//! In 0.91 an update is known by its time and endpoint alone, and its number by its place. Here the k-th
//! from the top has the sequence `updates` − k ([`history_of_091`]), so that what 0.91 asks of a history
//! can be asked of this one. Two things go beyond the text, and both only so that rings come to rest, on
//! however many of their hops 0.91 is spoken: of two equal items the conflicts are put together, where
//! the text takes no action (4.4 step 2); and nothing is in conflict with a version that its own endpoint
//! made later, knowing it.

use super::{Canonical, precedence, update_is_subsumed};
use crate::model::{Count, EndpointId, History, Shared, Stamp, Time, Update, Version};
use std::cmp::Ordering;

/// An item that is known by SSE 0.91 alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By091<D> {
    pub item: Shared<D>,
    /// Whether it bears `conflict="true"`: somebody detected a conflict that nobody has resolved.
    pub conflict: bool,
}

/// Incorporates an incoming item into the local one of the same id (section 4.4).
pub fn merge_091<D: Canonical>(local: By091<D>, incoming: By091<D>) -> By091<D> {
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

// Histories of SSE 1.0 as lines of updates of SSE 0.91, and back (READINGS 2, its last sentence).
//
// What comes back whole is a version whose updates are numbered one by one from its topmost, which has
// the number of all updates. Lost on the way to 0.91 are `noconflicts`; updates below a number that is
// missing, since places would shift; of several updates with one number all but the latest, which is
// the one that 0.91 would have made the winner; and a topmost sequence that is not the number of
// updates. Lost on the way from 0.91 are updates beyond the first.

/// The updates below the topmost as SSE 0.91 has them, newest first: the k-th has the sequence
/// `updates` − k.
pub fn updates_of_091<D>(version: &Version<D>) -> impl Iterator<Item = &Stamp> {
    let below = version.history.below();
    (1..version.updates.value()).rev().map_while(move |sequence| {
        let with = below.iter().filter(|update| update.sequence.value() == sequence);
        let latest = with.max_by_key(|update| (update.stamp.when(), update.stamp.by()));
        latest.map(|update| &update.stamp)
    })
}

/// The history of the version number `updates` of SSE 0.91, which has this most recent update and those
/// before it, newest first.
pub fn history_of_091(updates: Count, last: Stamp, before: Vec<Stamp>) -> History {
    let sequences = (1..updates.value()).rev().map_while(|sequence| Count::new(sequence).ok());
    let below = sequences.zip(before).map(|(sequence, stamp)| Update { sequence, stamp });
    let mut history = History::new(Update { sequence: updates, stamp: last });
    history.insert_below_topmost(below);
    history
}

#[cfg(test)]
mod tests {
    use super::super::samples::{ITEM, any_update, both, by, count, version, when};
    use super::super::{create, merge, update};
    use super::*;
    use crate::model::SyncId;
    use proptest::prelude::*;

    fn known(version: Version<String>) -> By091<String> {
        By091 { item: Shared::new(version), conflict: false }
    }

    /// A version as it goes over the wire by 0.91.
    fn over_091(version: &Version<String>) -> Version<String> {
        let before = updates_of_091(version).cloned().collect();
        let last = version.history.topmost().stamp.clone();
        let history = history_of_091(version.updates, last, before);
        Version { history, noconflicts: None, ..version.clone() }
    }

    /// Section 4.4.1 step 4: an update that was truncated away is no conflict either. What made every foreign
    /// edit one: a publisher that keeps no `sx:update`, which the text allows.
    #[test]
    fn a_later_version_wins_without_conflict_whether_it_knows_the_earlier_or_cut_it() {
        let whole = vec![both(3, 3, "B"), both(2, 2, "B"), both(1, 1, "A")];
        let cut = vec![both(3, 3, "A")];
        for (history, conflicts_by_1_0) in [(whole, 0), (cut, 1)] {
            let old = known(version(2, "old", [both(2, 2, "B"), both(1, 1, "A")]));
            let new = known(version(3, "new", history));
            for (local, incoming) in [(&old, &new), (&new, &old), (&new, &new)] {
                assert_eq!(merge_091(local.clone(), incoming.clone()), new);
            }
            let by_1_0 = merge(old.item, new.item).unwrap();
            assert_eq!(by_1_0.conflicts.len(), conflicts_by_1_0);
        }
    }

    #[test]
    fn separate_edits_of_one_version_conflict_and_the_loser_is_kept() {
        let early = known(version(2, "early", [both(2, 5, "A"), both(1, 1, "A")]));
        let late = known(version(2, "late", [both(2, 9, "B"), both(1, 1, "A")]));
        let sum = merge_091(early.clone(), late.clone());
        assert_eq!(sum, merge_091(late.clone(), early.clone()));
        assert!(sum.conflict);
        assert_eq!(sum.item.winner, late.item.winner);
        assert_eq!(sum.item.conflicts, std::slice::from_ref(&early.item.winner));
        // What has one of the two alone learns of the conflict, and nothing is news after that.
        for (local, incoming) in [(&late, &sum), (&early, &sum), (&sum, &early), (&sum, &sum)] {
            assert_eq!(merge_091(local.clone(), incoming.clone()), sum);
        }
        // A later version of the winner's conflicts with what it does not know.
        let later = [both(3, 10, "B"), both(2, 9, "B"), both(1, 1, "A")];
        let later = known(version(3, "later", later));
        let merged = merge_091(early, later.clone());
        assert!(merged.conflict && merged.item.conflicts.len() == 1);
        assert!(!merge_091(late, later).conflict);
    }

    #[test]
    fn a_value_that_is_there_wins_over_one_that_is_not() {
        let with_when = known(version(2, "when", [when(2, 1)]));
        let with_by = known(version(2, "by", [by(2, "Z")]));
        let with_both = known(version(2, "both", [both(2, 1, "A")]));
        assert_eq!(merge_091(with_by, with_when.clone()).item.winner.data, "when");
        assert_eq!(merge_091(with_both, with_when).item.winner.data, "both");
    }

    /// Section 5.2: of one endpoint's conflicts the latest version is kept.
    #[test]
    fn one_conflict_is_kept_for_each_endpoint() {
        let mut winner = known(version(4, "w", [both(4, 9, "W")]));
        winner.item.conflicts =
            vec![version(2, "a2", [both(2, 2, "A")]), version(3, "b3", [both(3, 2, "B")])];
        let mut loser = known(version(4, "l", [when(4, 8)]));
        loser.item.conflicts = vec![
            version(3, "a3", [both(3, 3, "A")]),
            version(1, "b1", [both(1, 9, "B")]),
            version(4, "w", [both(4, 9, "W")]),
        ];
        let kept = merge_091(winner, loser).item.conflicts;
        let kept: Vec<_> = kept.iter().map(|lost| lost.data.as_str()).collect();
        assert_eq!(kept, ["l", "a3", "b3"]);
        // None is what an endpoint of the winner's history knew: that very update, or an earlier one of its own, if
        // only of the same second.
        for (last, before, known) in [
            (both(3, 9, "W"), both(2, 5, "A"), both(1, 5, "A")),
            (by(2, "W"), by(1, "A"), by(1, "A")),
            (when(2, 9), when(1, 5), when(1, 5)),
        ] {
            let mut winner = self::known(version(3, "w", [last, before]));
            let plain = winner.clone();
            winner.item.conflicts = vec![version(1, "known", [known])];
            assert_eq!(merge_091(plain.clone(), winner).item, plain.item);
        }
    }

    #[test]
    fn the_winners_mark_is_kept_and_stands_without_details() {
        let mut marked = known(version(2, "new", [both(2, 5, "B"), both(1, 1, "A")]));
        marked.conflict = true;
        let old = known(version(1, "old", [both(1, 1, "A")]));
        assert_eq!(merge_091(old.clone(), marked.clone()), marked);
        let mut marked_old = old;
        marked_old.conflict = true;
        let plain = By091 { conflict: false, ..marked };
        assert_eq!(merge_091(marked_old, plain.clone()), plain);
    }

    /// An endpoint in a ring: who reads whom by 0.91 is said for each hop.
    #[derive(Debug, Clone)]
    struct Endpoint {
        name: &'static str,
        held: Option<(By091<String>, bool)>,
    }

    const RING: [&str; 4] = ["A", "B", "C", "D"];

    impl Endpoint {
        fn by_091(item: &By091<String>) -> By091<String> {
            let conflict = item.conflict || !item.item.conflicts.is_empty();
            let conflicts = item.item.conflicts.iter().map(over_091).collect();
            By091 { item: Shared { winner: over_091(&item.item.winner), conflicts }, conflict }
        }

        fn reads(&mut self, other: &Self, old: bool) {
            let Some((theirs, _)) = &other.held else { return };
            let theirs = if old { Self::by_091(theirs) } else { theirs.clone() };
            self.held = Some(match self.held.take() {
                None => (theirs, old),
                Some((own, true)) if old => (merge_091(own, theirs), true),
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

    /// What is in conflict, in whatever order.
    fn lost(item: &Shared<String>) -> Vec<String> {
        let mut lost: Vec<String> = item.conflicts.iter().map(|c| c.data.clone()).collect();
        lost.sort_unstable();
        lost
    }

    /// Of two updates with one number the later stands in the line.
    #[test]
    fn updates_below_a_missing_number_and_before_the_first_are_left_out() {
        let twice = [both(5, 53, "G"), both(4, 3, "J"), both(4, 43, "G"), both(3, 2, "J")];
        let missing = [both(5, 5, "A"), both(4, 4, "B"), both(2, 2, "A"), both(1, 1, "A")];
        for (all, kept) in [(twice, vec![(4, 43, "G"), (3, 2, "J")]), (missing, vec![(4, 4, "B")])]
        {
            let kept: Vec<_> = kept.into_iter().map(|(n, at, by)| both(n, at, by).stamp).collect();
            assert!(updates_of_091(&version(5, "x", all)).eq(&kept));
        }
        let [last, first, before] = [2, 1, 0].map(|at| both(1, at, "A").stamp);
        assert_eq!(history_of_091(count(2), last, vec![first, before]).len(), 2);
    }

    /// A version whose updates are numbered one by one, some of the oldest left out.
    fn numbered_one_by_one() -> impl Strategy<Value = Version<String>> {
        (1_u32..8, 0_u32..8).prop_flat_map(|(updates, cut)| {
            let first = 1 + cut.min(updates - 1);
            let all: Vec<_> = (first..=updates).rev().map(|n| any_update(Just(n))).collect();
            all.prop_map(move |all| version(updates, "x", all))
        })
    }

    proptest! {
        /// Whatever else a history has, what comes back of it comes back again.
        #[test]
        fn what_is_not_lost_comes_back(
            kept in numbered_one_by_one(),
            updates in 1_u32..8,
            all in prop::collection::vec(any_update(1_u32..8), 1..8),
        ) {
            prop_assert_eq!(over_091(&kept), kept);
            let once = over_091(&version(updates, "x", all));
            prop_assert_eq!(over_091(&once), once);
        }

        /// Rings come to rest with one winner everywhere, whichever of their hops speak 0.91; with 0.91
        /// on none or on all hops, or on one, with the same in conflict as well.
        #[test]
        fn rings_converge(
            steps in prop::collection::vec((0_usize..4, any::<bool>()), 1..40),
            hops in any::<[bool; 4]>(),
        ) {
            let mut ring = RING.map(|name| Endpoint { name, held: None });
            let id = SyncId::new(ITEM).unwrap();
            let first = create(id, "first".to_owned(), both(1, 0, "A").stamp, None);
            ring[0].held = Some((By091 { item: first, conflict: false }, true));
            let read = |ring: &mut [Endpoint; 4], at: usize| {
                let other = ring[(at + 3) % 4].clone();
                ring[at].reads(&other, hops[at]);
            };
            for (now, (at, edits)) in (1..).zip(steps) {
                if edits { ring[at].edits(now) } else { read(&mut ring, at) }
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
