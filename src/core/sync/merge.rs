//! Merge (SSE 1.0 section 3.3).

use super::{Canonical, SyncError};
use crate::model::{EndpointId, Shared, Time, Update, Version};
use std::cmp::Ordering;

/// Merges an incoming item with the local one of the same id (section 3.3).
///
/// What comes out depends on which one is local only where one update is there with different data,
/// which conformant endpoints cannot make; the incoming data is taken then (READINGS 1, row 3).
/// The conflicts come out in order of precedence, although the list means no order.
pub fn merge<D: Canonical>(local: Shared<D>, incoming: Shared<D>) -> Result<Shared<D>, SyncError> {
    if local.winner.id == incoming.winner.id {
        Ok(merge_same(local, incoming))
    } else {
        Err(SyncError::OtherItem { local: local.winner.id, incoming: incoming.winner.id })
    }
}

/// Whether two items are the same but for the order of their conflicts: a merge that changes
/// nothing is no change.
pub fn same_item<D: Canonical + PartialEq>(x: &Shared<D>, y: &Shared<D>) -> bool {
    fn sorted<D: Canonical>(conflicts: &[Version<D>]) -> Vec<&Version<D>> {
        let mut sorted: Vec<_> = conflicts.iter().collect();
        sorted.sort_by(|x, y| precedence(y, x));
        sorted
    }
    x.winner == y.winner && sorted(&x.conflicts) == sorted(&y.conflicts)
}

/// Steps 2 to 11 of section 3.3, numbered from 1 at its first step (READINGS 1, row 2).
fn merge_same<D: Canonical>(local: Shared<D>, incoming: Shared<D>) -> Shared<D> {
    // Steps 6 and 7, first with the local versions outside. What is subsumed is really removed, so
    // that of two equal versions the incoming one stays (READINGS 1, row 3).
    let (outer, inner) = (versions(&local), versions(&incoming));
    let local_stays = unknown_to(&outer, &inner);
    let outer: Vec<_> = kept(outer, &local_stays).collect();
    // Step 8, the other way round.
    let incoming_stays = unknown_to(&inner, &outer);

    // Steps 2 and 3: the items with their conflicts as flat lists, the winner last.
    let local = local.conflicts.into_iter().chain([local.winner]);
    let local = kept(local, &local_stays);
    let incoming_conflicts = kept(incoming.conflicts, &incoming_stays);
    // Steps 7c, 7d and 9. One version at least stays: were all the local ones subsumed, the
    // incoming ones have none left to be subsumed by.
    let mut stays = incoming_stays.last().copied().unwrap_or(true);
    let mut winner = incoming.winner;
    let mut conflicts = Vec::new();
    for version in local.chain(incoming_conflicts) {
        if !stays || precedence(&version, &winner) == Ordering::Greater {
            let loser = std::mem::replace(&mut winner, version);
            if stays {
                conflicts.push(loser);
            }
            stays = true;
        } else {
            conflicts.push(version);
        }
    }
    // Step 10: the winner's flag counts, and nobody's conflicts survive it (READINGS 1, rows 16
    // and 17).
    if winner.noconflicts == Some(true) {
        conflicts.clear();
    }
    conflicts.sort_by(|x, y| precedence(y, x));
    Shared { winner, conflicts }
}

/// The versions of an item, the winner last.
fn versions<D>(item: &Shared<D>) -> Vec<&Version<D>> {
    item.conflicts.iter().chain([&item.winner]).collect()
}

/// For each of `outer`, whether no one of `inner` knows it.
fn unknown_to<D>(outer: &[&Version<D>], inner: &[&Version<D>]) -> Vec<bool> {
    outer.iter().map(|x| !inner.iter().any(|y| is_subsumed(x, y))).collect()
}

fn kept<T>(all: impl IntoIterator<Item = T>, stays: &[bool]) -> impl Iterator<Item = T> {
    all.into_iter().zip(stays).filter(|(_, stays)| **stays).map(|(version, _)| version)
}

// Which of two versions knows of the other, and which of two wins (SSE 1.0 section 3.3, notes 1
// to 3).

/// History Subsumption (section 3.3, note 2): whether `x` is known to a history that holds `y`.
///
/// Times are compared as instants, so that equal ones in different spelling match (READINGS 1,
/// row 6).
pub fn update_is_subsumed(x: &Update, y: &Update) -> bool {
    match (x.stamp.by(), y.stamp.by()) {
        (Some(by_x), Some(by_y)) => by_x == by_y && x.sequence <= y.sequence,
        (None, None) => x.stamp.when() == y.stamp.when() && x.sequence == y.sequence,
        _ => false,
    }
}

/// Item Subsumption (section 3.3, note 1): whether `y` was made by someone who knew `x`.
pub fn is_subsumed<D>(x: &Version<D>, y: &Version<D>) -> bool {
    y.history.iter().any(|update| update_is_subsumed(x.history.topmost(), update))
}

/// Winner Picking (section 3.3, note 3): [`Ordering::Greater`] where `x` wins over `y`.
///
/// More updates win; then a `when` over none, and the later one; then a `by` over none, and the
/// greater one in code-point order. Two absent values are the same (READINGS 1, row 5). What is
/// still equal then cannot have been made by conformant endpoints: the greater topmost sequence
/// wins, then the greater canonical bytes (row 4).
pub fn precedence<D: Canonical>(x: &Version<D>, y: &Version<D>) -> Ordering {
    rank(x).cmp(&rank(y))
}

/// The keys of winner picking, most significant first. `None` is less than every value.
type Rank<'a> = (u32, Option<Time>, Option<&'a EndpointId>, u32, &'a [u8]);

fn rank<D: Canonical>(version: &Version<D>) -> Rank<'_> {
    let topmost = version.history.topmost();
    (
        version.updates.value(),
        topmost.stamp.when(),
        topmost.stamp.by(),
        topmost.sequence.value(),
        version.data.canonical(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples::{both, by, version, when};
    use super::*;
    use crate::model::SyncId;

    fn shared(
        winner: Version<String>,
        conflicts: impl IntoIterator<Item = Version<String>>,
    ) -> Shared<String> {
        Shared { winner, conflicts: conflicts.into_iter().collect() }
    }

    #[test]
    fn other_items_are_refused() {
        let local = Shared::new(version(1, "a", [by(1, "A")]));
        let mut incoming = local.clone();
        incoming.winner.id = SyncId::new("other").unwrap();
        assert!(matches!(merge(local, incoming), Err(SyncError::OtherItem { .. })));
    }

    #[test]
    fn of_one_update_with_two_datas_the_incoming_one_stays() {
        let local = Shared::new(version(1, "a", [when(1, 5)]));
        let incoming = Shared::new(version(1, "b", [when(1, 5)]));
        assert_eq!(merge(local.clone(), incoming.clone()), Ok(incoming.clone()));
        assert_eq!(merge(incoming, local.clone()), Ok(local));
    }

    /// READINGS 1, rows 16 and 17.
    #[test]
    fn the_winners_flag_drops_all_conflicts() {
        let old = version(1, "o", [both(1, 1, "O")]);
        let mut winner = version(3, "w", [both(3, 3, "W")]);
        let loser = version(2, "l", [both(2, 2, "L")]);
        let kept = merge(Shared::new(winner.clone()), shared(loser.clone(), [old.clone()]));
        assert_eq!(kept.map(|item| item.conflicts), Ok(vec![loser.clone(), old.clone()]));
        winner.noconflicts = Some(true);
        let dropped = merge(shared(winner.clone(), [old.clone()]), Shared::new(loser.clone()));
        assert_eq!(dropped, Ok(Shared::new(winner)));
        let mut flagged = loser;
        flagged.noconflicts = Some(true);
        let winner = version(3, "w", [both(3, 3, "W")]);
        let merged = merge(Shared::new(winner.clone()), Shared::new(flagged.clone()));
        assert_eq!(merged, Ok(shared(winner, [flagged])));
    }

    #[test]
    fn the_order_of_conflicts_makes_no_other_item() {
        let a = version(3, "a", [both(3, 5, "A")]);
        let b = version(2, "b", [both(2, 4, "B")]);
        let c = version(2, "c", [both(2, 3, "C")]);
        let one = shared(a.clone(), [b.clone(), c.clone()]);
        assert!(same_item(&one, &shared(a.clone(), [c.clone(), b.clone()])));
        assert!(!same_item(&one, &shared(a.clone(), [b.clone()])));
        assert!(!same_item(&one, &shared(b, [a, c])));
    }

    #[test]
    fn an_endpoint_knows_its_own_earlier_updates_and_else_the_same_alone() {
        let ours = both(3, 9, "A");
        for (update, other, known) in [
            (&ours, ours.clone(), true),
            (&ours, by(4, "A"), true),
            (&both(4, 9, "A"), ours.clone(), false),
            (&ours, both(4, 9, "B"), false),
            (&when(3, 9), when(3, 9), true),
            (&when(3, 9), when(4, 9), false),
            (&when(3, 9), when(3, 10), false),
            (&when(3, 9), ours.clone(), false),
            (&ours, when(3, 9), false),
        ] {
            assert_eq!(update_is_subsumed(update, &other), known, "{update:?} {other:?}");
        }
        // Of an item the topmost one counts alone.
        let old = version(2, "old", [both(2, 2, "A"), both(1, 1, "B")]);
        let new = version(3, "new", [both(3, 3, "C"), both(2, 2, "A"), both(1, 1, "B")]);
        assert!(is_subsumed(&old, &new) && !is_subsumed(&new, &old));
    }

    /// Each step of Winner Picking in its order, the greater version first.
    #[test]
    fn the_keys_decide_in_the_order_of_the_specification() {
        let pairs = [
            (version(3, "", [by(1, "A")]), version(2, "", [both(9, 9, "Z")])),
            (version(2, "", [when(2, 1)]), version(2, "", [by(2, "Z")])),
            (version(2, "", [when(2, 2)]), version(2, "", [both(2, 1, "Z")])),
            (version(2, "", [both(2, 2, "A")]), version(2, "", [when(2, 2)])),
            (version(2, "", [both(2, 2, "é")]), version(2, "", [both(2, 2, "z")])),
            (version(2, "", [both(2, 2, "\u{10000}")]), version(2, "", [both(2, 2, "\u{ff5e}")])),
            (version(2, "", [by(2, "B")]), version(2, "", [by(2, "A")])),
            (version(2, "", [when(3, 2)]), version(2, "", [when(2, 2)])),
            (version(2, "b", [when(2, 2)]), version(2, "a", [when(2, 2)])),
        ];
        for (greater, lesser) in pairs {
            assert_eq!(precedence(&greater, &lesser), Ordering::Greater, "{greater:?}");
            assert_eq!(precedence(&lesser, &greater), Ordering::Less, "{lesser:?}");
            assert_eq!(precedence(&lesser, &lesser), Ordering::Equal, "{lesser:?}");
        }
    }
}
